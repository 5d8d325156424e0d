"""
The gradient of each loss
=========================

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
