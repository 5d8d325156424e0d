"""
Precision against recall with Tversky's alpha
=============================================

``alpha`` is the price of a false positive, and beta = 1 - alpha that of a missed positive. A larger
alpha raises precision and lowers recall. To search alpha, use ``LossSearchCV``.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification
from sklearn.model_selection import cross_validate

from skdice import DiceClassifier
from skdice.losses import TverskyLoss

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

# %%
# A line is the mean of the folds, and a band their standard deviation.
figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
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
