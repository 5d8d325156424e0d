"""
How rare is each type, and which does a tagger miss?
====================================================

Count the tokens inside and outside entities before you train anything. Below ten negatives to a
positive, cross-entropy is usually enough.
"""

import matplotlib.pyplot as plt

from skdice import DiceTokenClassifier
from skdice.datasets import load_town_notes
from skdice.inspection import ClassFrequencyDisplay, ImbalanceDisplay

X, y = load_town_notes(subset="train")
X_dev, y_dev = load_town_notes(subset="dev")
ImbalanceDisplay.from_labels(y)
plt.show()

# %%
# Precision and recall of each entity type against its frequency, for a tagger that was trained
# for a short time. Rare types are on the left. High precision with low recall is typical of a rare
# class: the tagger predicts it too seldom.
tagger = DiceTokenClassifier(
    loss="ce_dice",
    max_epochs=3,
    lr=5e-4,
    frozen=4,
    batch_size=16,
    random_state=0,
)
tagger.fit(X, y)
ClassFrequencyDisplay.from_estimator(tagger, X_dev, y_dev)
plt.show()
