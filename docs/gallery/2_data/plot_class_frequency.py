"""
Which classes does a tagger miss?
=================================

The plot shows precision and recall of each entity type against its frequency. Rare types are on
the left. High precision with low recall is typical of a rare class: the tagger predicts it too
seldom.
"""

import matplotlib.pyplot as plt

from skdice import DiceTokenClassifier
from skdice.datasets import load_town_notes
from skdice.inspection import ClassFrequencyDisplay

X, y = load_town_notes(subset="train")
X_dev, y_dev = load_town_notes(subset="dev")

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
