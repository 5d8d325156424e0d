"""
Better ranking, or only another threshold?
==========================================

A precision-recall curve does not depend on the threshold. Losses whose curves coincide rank the
texts equally well: they differ only in what the threshold of 0.5 means (the dots). Then tuning the
decision is enough.

The messages ship with skdice. Each is a vector of the frozen encoder, on which a head is trained,
and each probability comes from a head that did not see the message.
"""

from importlib.resources import files

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import (
    PrecisionRecallDisplay,
    precision_score,
    recall_score,
)
from sklearn.model_selection import cross_val_predict

from skdice import DiceClassifier, TransformerFeatures
from skdice.datasets import read_table

texts, labels = read_table(
    files("skdice.datasets") / "data/town_messages.csv"
)
X = TransformerFeatures().fit_transform(texts)
y = (np.array(labels) == "spam").astype(int)

fig, ax = plt.subplots(figsize=(5.5, 4), layout="constrained")
styles = {"ce": "-", "focal": ":", "dsc": "--", "ce_dice": "-."}
for i, (loss, style) in enumerate(styles.items()):
    head = DiceClassifier(loss=loss, random_state=0)
    p = cross_val_predict(head, X, y, cv=5, method="predict_proba")[:, 1]
    PrecisionRecallDisplay.from_predictions(
        y, p, name=loss, ax=ax, curve_kwargs={"linestyle": style}
    )
    at_half = [
        score(y, p > 0.5, zero_division=0)
        for score in (recall_score, precision_score)
    ]
    ax.plot(*at_half, "o", color=f"C{i}")
plt.show()
