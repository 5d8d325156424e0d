"""
Can I trust the probabilities?
==============================

A calibrated model follows the dotted line: of the messages to which it gives a probability of 0.6,
six in ten are spam. Here all three losses are off by some four points on average. If you need
probabilities, tune with ``scoring="neg_log_loss"``, or use ``CalibratedClassifierCV``.

The messages ship with skdice. Each is a vector of the frozen encoder, on which a head is trained,
and each probability comes from a head that did not see the message.
"""

from importlib.resources import files

import matplotlib.pyplot as plt
import numpy as np
from sklearn.calibration import CalibrationDisplay
from sklearn.model_selection import cross_val_predict

from skdice import DiceClassifier, TransformerFeatures
from skdice.datasets import read_table
from skdice.metrics import expected_calibration_error

texts, labels = read_table(
    files("skdice.datasets") / "data/town_messages.csv"
)
X = TransformerFeatures().fit_transform(texts)
y = (np.array(labels) == "spam").astype(int)

fig, ax = plt.subplots(figsize=(5, 4.5), layout="constrained")
for loss, marker in (("ce", "o"), ("focal", "s"), ("dice", "^")):
    head = DiceClassifier(loss=loss, random_state=0)
    p = cross_val_predict(head, X, y, cv=5, method="predict_proba")[:, 1]
    error = expected_calibration_error(y, p)
    print(f"{loss}: off by {100 * error:.1f} points on average")
    CalibrationDisplay.from_predictions(
        y, p, n_bins=6, name=loss, ax=ax, marker=marker
    )
plt.show()
