"""
What a loss does: its gradient, and Tversky's alpha
===================================================

The derivative of each loss for a positive and a negative example, against the predicted
probability of the positive class, as in the paper's Figure 1. The gradient of cross-entropy is
largest where the model is most wrong. The printed formulas of dice and DSC (dashed) have hardly
any gradient there.

The example stands in a batch of 10 positives and 90 negatives, which matters to losses over a whole
batch. Shown is the derivative of the batch's loss, times its size.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
import torch

from skdice.losses import LOSSES, DiceLoss, DSCLoss, TverskyLoss

OTHERS = torch.tensor([0.7] * 10 + [0.1] * 90, dtype=torch.float64)
LABELS = torch.tensor([1] * 10 + [0] * 90)


def slope(loss, p, label):
    """The derivative of a loss in the probability p of one more example."""
    p = torch.tensor([p], dtype=torch.float64, requires_grad=True)
    logits = torch.logit(torch.cat([p, OTHERS]))
    target = torch.cat([torch.tensor([label]), LABELS])
    return float(torch.autograd.grad(loss(logits, target), p)[0]) * len(
        target
    )


losses = {name: make() for name, make in LOSSES.items()}
with warnings.catch_warnings():
    warnings.simplefilter(
        "ignore"
    )  # the printed form of DSC does not train
    printed = {
        "dice": DiceLoss.literal(),
        "tversky": TverskyLoss.literal(),
        "dsc": DSCLoss.literal(),
    }
grid = np.linspace(0.01, 0.99, 99)
figure, axes = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
sides = (
    ("a positive example", 1, (-12, 2)),
    ("a negative example", 0, (-2, 8)),
)
for ax, (title, label, limits) in zip(axes, sides, strict=True):
    for i, (name, loss) in enumerate(losses.items()):
        for form, style in ((loss, "-"), (printed.get(name), "--")):
            if form is not None:
                form = form.prepare([90, 10]).eval()
                values = [slope(form, p, label) for p in grid]
                called = name if style == "-" else f"{name}, as printed"
                ax.plot(
                    grid, values, style, color=f"C{i % 10}", label=called
                )
    ax.axhline(0, color="#999999", lw=0.8)
    ax.set(title=title, xlabel="p", ylim=limits)
    ax.grid(alpha=0.25)
axes[0].set_ylabel("derivative of the loss in p")
axes[1].legend(
    frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5)
)
plt.show()

# %%
# Precision against recall with Tversky's alpha
# ---------------------------------------------
#
# ``alpha`` is the price of a false positive, and beta = 1 - alpha that of a missed positive. A
# larger alpha raises precision and lowers recall. To search alpha, use ``LossSearchCV``. A line is
# the mean of three folds, and a band their standard deviation.
from sklearn.datasets import make_classification
from sklearn.model_selection import cross_validate

from skdice import DiceClassifier

X, y = make_classification(
    3000, n_informative=4, weights=[0.95], flip_y=0.03, random_state=0
)
alphas = np.arange(1, 10) / 10
measures = ("precision", "recall", "f1")
scores = {name: [] for name in measures}  # of each alpha, one a fold
for alpha in alphas:
    loss = TverskyLoss(alpha=alpha, beta=1 - alpha)
    model = DiceClassifier(loss=loss, max_epochs=8, random_state=0)
    found = cross_validate(model, X, y, cv=3, scoring=measures)
    for name in measures:
        scores[name].append(100 * found[f"test_{name}"])

sweep, ax = plt.subplots(figsize=(6, 4), layout="constrained")
for name in measures:
    mean, spread = (
        np.mean(scores[name], axis=1),
        np.std(scores[name], axis=1),
    )
    ax.plot(alphas, mean, "o-", label=name, markersize=4)
    ax.fill_between(alphas, mean - spread, mean + spread, alpha=0.15, lw=0)
best = np.mean(scores["f1"], axis=1).argmax()
ax.axvline(alphas[best], color="#999999", lw=0.8, ls=":")
ax.set(xlabel="alpha (beta = 1 - alpha)", ylabel="%")
ax.legend()
plt.show()
