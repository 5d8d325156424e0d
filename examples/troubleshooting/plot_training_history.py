"""
Does the fit learn?
===================

Training loss and validation F1 per epoch, for two losses on the same sentences. The values of two
different losses cannot be compared, but their F1 can.
"""

import matplotlib.pyplot as plt

from skdice import DiceTokenClassifier
from skdice.datasets import load_town_notes
from skdice.inspection import TrainingHistoryDisplay

X, y = load_town_notes(subset="train")
X_dev, y_dev = load_town_notes(subset="dev")

axes = None
for loss in ("ce", "ce_dice"):
    tagger = DiceTokenClassifier(
        loss=loss,
        max_epochs=4,
        lr=5e-4,
        batch_size=16,
        frozen=4,
        random_state=0,
    )
    tagger.fit(X, y, X_val=X_dev, y_val=y_dev)
    axes = TrainingHistoryDisplay.from_estimator(tagger, axes=axes).axes_
plt.show()
