"""Search Tversky's alpha, and plot precision, recall and F1 against it.

    python examples/search_tversky.py

A larger alpha gives more weight to false positives, which favours precision.
"""

from sklearn.datasets import make_classification

from skdice import DiceClassifier
from skdice.inspection import TverskySweepDisplay
from skdice.model_selection import LossSearchCV, loss_space


def main(n_trials=32, picture="tversky.png"):
    """Search `n_trials` values of alpha with heads on three folds."""
    X, y = make_classification(2000, weights=[0.95], flip_y=0.02, random_state=0)
    search = LossSearchCV(
        DiceClassifier(max_epochs=20, random_state=0),
        loss_space("tversky"),
        n_trials=n_trials,
        cv=3,
        scoring={name: name for name in ("precision", "recall", "f1")},
        refit="f1",
        random_state=0,
    ).fit(X, y)
    print(f"best F1 {search.best_score_:.3f} with {search.best_params_}")
    TverskySweepDisplay.from_search(search).figure_.savefig(picture)
    print(f"drawn to {picture}")


if __name__ == "__main__":
    main()
