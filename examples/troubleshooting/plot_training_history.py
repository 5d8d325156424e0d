"""
Does the fit learn?
===================

Training loss and validation F1 per epoch, for two losses on the same sentences. The values of two
different losses cannot be compared, but their F1 can.
"""

import matplotlib.pyplot as plt
import pandas as pd

from skdice import DiceTokenClassifier
from skdice.datasets import load_town_notes

X, y = load_town_notes(subset="train")
X_dev, y_dev = load_town_notes(subset="dev")

_, axes = plt.subplots(1, 2, figsize=(8.4, 3), layout="constrained")
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
    history = pd.DataFrame(tagger.history_).set_index("epoch")
    for ax, name in zip(axes, ("train_loss", "valid_score"), strict=True):
        history[name].plot(ax=ax, label=loss, title=name, legend=True)
plt.show()
