"""
What a tuned decision does
==========================

Precision, recall and F1 against the threshold, for cross-entropy and for dice. Cross-entropy's best
threshold lies far below 0.5. Dice has moved its probabilities already, so tuning gains little.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split

from skdice import DiceClassifier
from skdice.inspection import ThresholdDisplay

X, y = make_classification(6000, n_informative=4, weights=[0.95], flip_y=0.03, random_state=1)
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)

fig, axes = plt.subplots(1, 2, figsize=(9, 3.5), sharey=True, layout="constrained")
for loss, ax in zip(("ce", "dice"), axes, strict=True):
    model = DiceClassifier(loss=loss, max_epochs=10, random_state=0).fit(X_train, y_train)
    display = ThresholdDisplay.from_estimator(model, X_test, y_test, ax=ax)
    ax.set_title(f"{loss}: {ax.get_title()}")
plt.show()
