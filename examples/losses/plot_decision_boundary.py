"""
How a loss moves the decision boundary
======================================

One row in twenty is positive. Cross-entropy predicts few positives. Tversky with a small alpha
puts a small price on false positives, so it predicts many more.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.inspection import DecisionBoundaryDisplay

from skdice import DiceClassifier
from skdice.losses import TverskyLoss

random = np.random.default_rng(0)
X = np.concatenate(
    [random.normal(0, 1, (950, 2)), random.normal(1.6, 0.6, (50, 2))]
).astype(np.float32)
y = np.repeat([0, 1], [950, 50])

losses = {
    "ce": "ce",
    "dice": "dice",
    "tversky, alpha 0.1": TverskyLoss(alpha=0.1, beta=0.9),
}
fig, axes = plt.subplots(
    1, 3, figsize=(10, 3.4), sharey=True, layout="constrained"
)
for ax, (name, loss) in zip(axes, losses.items(), strict=True):
    model = DiceClassifier(
        loss=loss,
        hidden_layer_sizes=(16,),
        max_epochs=40,
        lr=1e-2,
        random_state=0,
    )
    model.fit(X, y)
    DecisionBoundaryDisplay.from_estimator(
        model,
        X,
        response_method="predict",
        alpha=0.3,
        cmap="cividis",
        ax=ax,
    )
    ax.scatter(*X[y == 0].T, s=5, color="0.4")
    ax.scatter(*X[y == 1].T, s=12, color="black", marker="x")
    ax.set_title(name)
plt.show()
