"""
Search a loss and its parameters
================================

One search covers three losses, each with its own search space. Each marker is a trial.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification

from skdice import DiceClassifier
from skdice.model_selection import LossSearchCV, loss_space

X, y = make_classification(
    2000, n_informative=4, weights=[0.95], flip_y=0.03, random_state=0
)
spaces = [loss_space(name) for name in ("tversky", "focal", "weighted_ce")]
search = LossSearchCV(
    DiceClassifier(max_epochs=8),
    spaces,
    n_trials=30,
    cv=3,
    scoring="f1",
    random_state=0,
)
search.fit(X, y)

fig, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
scores = np.array(search.cv_results_["mean_test_score"])
losses = [params["loss"] for params in search.cv_results_["params"]]
for name, marker in (
    ("tversky", "o"),
    ("focal", "s"),
    ("weighted_ce", "^"),
):
    at = [i for i, loss in enumerate(losses) if loss == name]
    ax.plot(at, scores[at], marker, label=name)
ax.set(
    xlabel="trial",
    ylabel="cross-validated F1",
    title=f"best: {search.best_params_}",
)
ax.title.set_fontsize(9)
ax.legend()
plt.show()
