"""
Is dice better? Not always
==========================

The plot shows F1 at a threshold of one half against the number of training positives, on synthetic
data whose classes are well separated. With few positives ``dsc`` is ahead, and with 100
cross-entropy is. So always include cross-entropy when you compare losses on your own data. The
bands span five seeds.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification
from sklearn.inspection import DecisionBoundaryDisplay
from sklearn.metrics import f1_score

from skdice import DiceClassifier
from skdice.losses import TverskyLoss

X, y = make_classification(
    20000,
    n_informative=4,
    weights=[0.9],
    class_sep=1.5,
    flip_y=0,
    random_state=0,
)
X_test, y_test = X[10000:], y[10000:]
numbers = (10, 30, 100)

fig, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
for loss, style in (("ce", "-"), ("focal", ":"), ("dsc", "--")):
    scores = []
    for n in numbers:
        rows = np.concatenate(
            [
                np.flatnonzero(y[:10000] == 1)[:n],
                np.flatnonzero(y[:10000] == 0)[:1000],
            ]
        )
        fits = (
            DiceClassifier(loss=loss, max_epochs=20, random_state=seed).fit(
                X[rows], y[rows]
            )
            for seed in range(5)
        )
        scores.append(
            [
                f1_score(y_test, model.predict(X_test), zero_division=0)
                for model in fits
            ]
        )
    ax.plot(numbers, np.mean(scores, axis=1), style, marker="o", label=loss)
    ax.fill_between(
        numbers, np.min(scores, axis=1), np.max(scores, axis=1), alpha=0.12
    )
ax.set(
    xscale="log",
    xticks=numbers,
    xticklabels=numbers,
    xlabel="positives among 1,000 negatives",
    ylabel="F1",
)
ax.legend()
plt.show()

# %%
# How a loss moves the decision boundary
# --------------------------------------
#
# One row in twenty is positive. Cross-entropy predicts few positives. Tversky with a small alpha
# puts a small price on false positives, so it predicts many more.
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
