"""
Can I trust the probabilities?
==============================

A calibrated model follows the dotted line. Dice is far from it: of the rows to which it gives a
probability of 0.6, only one in seven is positive. Cross-entropy is closer, but underconfident. If
you need probabilities, train with cross-entropy and tune the decision, or wrap the model in
``CalibratedClassifierCV``.
"""

import matplotlib.pyplot as plt
from sklearn.calibration import CalibrationDisplay
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split

from skdice import DiceClassifier

X, y = make_classification(
    12000, n_informative=4, weights=[0.9], flip_y=0.05, random_state=0
)
X_train, X_test, y_train, y_test = train_test_split(
    X, y, stratify=y, random_state=0
)

fig, ax = plt.subplots(figsize=(5, 4.5), layout="constrained")
for loss, marker in (("ce", "o"), ("focal", "s"), ("dice", "^")):
    model = DiceClassifier(loss=loss, max_epochs=8, random_state=0).fit(
        X_train, y_train
    )
    CalibrationDisplay.from_estimator(
        model, X_test, y_test, n_bins=8, name=loss, ax=ax, marker=marker
    )
plt.show()
