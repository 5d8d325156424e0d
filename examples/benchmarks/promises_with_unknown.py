"""How often a promise for new rows is broken, with and without hidden labels.

    python promises_with_unknown.py                 # 1,000 draws, three minutes

Three labels a row, of logistic scores. A draw has 1,500 rows to tune on, of whose cells a share is
hidden (NaN), and 750 new ones. ``AlertBudget(200)`` is broken if more than 200 of 1,000 new rows
have an alert, ``RejectAt(0.8)`` if fewer than 80 % of the decided new rows are right. At 95 %
confidence at most 5 % may be broken. A promise that the rows do not allow is none, and counts as
kept. `RejectAt` tunes on the rows of which all three labels are known, some 96 of 1,500 at 60 %.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin

from skdice import BiasTunedClassifier
from skdice.metrics import AlertBudget, RejectAt

N_ROWS, N_NEW = 1_500, 750  # a promise is for half as many rows or more
PROMISES = {"AlertBudget": AlertBudget(200), "RejectAt": RejectAt(0.8)}


class Known(ClassifierMixin, BaseEstimator):
    """A fitted classifier of three labels, whose rows are their log-odds."""

    classes_, multilabel_ = np.array(["a", "b", "c"]), True

    def fit(self, X, y):
        return self

    def __sklearn_is_fitted__(self):
        return True

    def predict_proba(self, X):
        return expit(X)

    def predict(self, X):
        return (X > 0).astype(int)


def drawn(random: np.random.Generator, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Log-odds of three labels, and their truth."""
    margins = random.normal([-2.0, -2.5, -3.0], 2.0, size=(n_rows, 3))
    return margins, (random.logistic(size=margins.shape) < margins).astype(float)


def is_broken(random: np.random.Generator, promise: str, hidden: float) -> bool:
    """Whether one draw's promise does not hold for new rows."""
    X, y = drawn(random, N_ROWS)
    y[random.random(y.shape) < hidden] = np.nan
    known = ~np.isnan(y).all(axis=1)  # rows without any label are left out, as `fit` asks
    X, y = X[known], y[known]
    tuned = BiasTunedClassifier(Known(), scoring=PROMISES[promise], cv="prefit").fit(X, y)
    X, y = drawn(random, N_NEW)
    found = tuned.predict(X)  # rows of -1 are left to a person
    if promise == "AlertBudget":
        return bool(1000 * (found > 0).any(axis=1).mean() > tuned.bound_.promised)
    right = (found == y).all(axis=1)[(found >= 0).all(axis=1)]
    return bool(len(right) and right.mean() < tuned.bound_.promised)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=1_000)
    draws = parser.parse_args().draws
    warnings.simplefilter("ignore")
    print("| promise | cells hidden | broken |\n|---|---|---|")
    for promise in PROMISES:
        for hidden in (0.0, 0.6):
            random = np.random.default_rng(0)
            broken = np.mean([is_broken(random, promise, hidden) for _ in range(draws)])
            print(f"| `{promise}` | {hidden:.0%} | {broken:.1%} |", flush=True)


if __name__ == "__main__":
    main()
