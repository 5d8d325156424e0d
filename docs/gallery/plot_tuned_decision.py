"""
What a tuned decision does
==========================

F1 against the threshold, for cross-entropy and for dice. Cross-entropy's best threshold lies far
below 0.5. Dice has moved its probabilities there already, so tuning gains little.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification
from sklearn.metrics import f1_score
from sklearn.model_selection import train_test_split

from skdice import DiceClassifier

X, y = make_classification(6000, n_informative=4, weights=[0.95], flip_y=0.03, random_state=1)
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)
thresholds = np.linspace(0.02, 0.98, 49)

fig, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
for loss, style in (("ce", "-"), ("dice", "--")):
    model = DiceClassifier(loss=loss, max_epochs=10, random_state=0).fit(X_train, y_train)
    p = model.predict_proba(X_test)[:, 1]
    ax.plot(thresholds, [f1_score(y_test, p > t) for t in thresholds], style, label=loss)
ax.axvline(0.5, color="0.6", linewidth=1)
ax.set(
    xlabel="threshold",
    ylabel="F1 on held-out rows",
    title="The decision matters as much as the loss",
)
ax.legend()
plt.show()
