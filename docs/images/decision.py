"""Draw decision.svg: F1 and a bound on precision, tuned on held-out rows and drawn on test rows.

python docs/images/decision.py
"""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split

from skdice import BiasTunedClassifier, DiceClassifier
from skdice.inspection import DecisionDisplay
from skdice.metrics import RecallAtPrecision


def main() -> None:
    """Write the picture beside this file."""
    X, y = make_classification(
        20000, n_informative=4, weights=[0.95], flip_y=0.003, class_sep=1.6, random_state=5
    )
    X, X_test, y, y_test = train_test_split(X, y, test_size=4000, stratify=y, random_state=0)
    model = DiceClassifier(loss="ce", max_epochs=4, random_state=0)
    figure, axes = plt.subplots(2, 2, figsize=(8.4, 6.4), layout="constrained")
    for scoring, row in zip(("auto", RecallAtPrecision(0.7)), axes, strict=True):
        tuned = BiasTunedClassifier(model, scoring=scoring, cv=0.5, random_state=0).fit(X, y)
        DecisionDisplay.from_estimator(tuned, X_test, y_test, axes=row)
    with plt.rc_context({"svg.hashsalt": "skdice", "svg.fonttype": "none"}):
        figure.savefig(Path(__file__).with_suffix(".svg"), metadata={"Date": None})


if __name__ == "__main__":
    main()
