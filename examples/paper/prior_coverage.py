"""How often the interval of `adapt_prior` holds the true frequency.

    python prior_coverage.py      # some 15 minutes on one core; writes results/ and docs

Rows are drawn 300 times from one large made set, whose classes have other frequencies among the
rows that train and tune than among the new ones. Each time a logistic regression is fitted and
tuned by folds, and the frequencies of the new rows are estimated with 100 draws.
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from pages import replaced
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression

from skdice import BiasTunedClassifier
from skdice.model_selection import adapt_prior

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "experiments.md"
# Distance of the classes, and the frequencies before and after.
CASES = (
    ("two classes", 1.0, [0.9, 0.1], [0.7, 0.3]),
    ("two classes, rarer later", 1.0, [0.7, 0.3], [0.92, 0.08]),
    ("three classes", 1.5, [0.7, 0.2, 0.1], [0.4, 0.3, 0.3]),
)
N_KNOWN, N_NEW = 800, 500


def run(number: int, repeats: int) -> dict[str, Any]:
    """Share of the repeats in which the interval of each class holds its true frequency."""
    name, apart, before, after = CASES[number]
    X, y = make_classification(
        60_000,
        n_features=12,
        n_informative=6,
        n_classes=len(before),
        class_sep=apart,
        flip_y=0.02,
        random_state=1,
    )
    of_class = [np.flatnonzero(y == k) for k in range(len(before))]
    inside, widths = [], []
    for repeat in range(repeats):
        random = np.random.default_rng([repeat, number])
        known, new = (
            np.concatenate(
                [random.choice(of_class[k], size, replace=False) for k, size in enumerate(sizes)]
            )
            for sizes in (random.multinomial(N_KNOWN, before), random.multinomial(N_NEW, after))
        )
        model = BiasTunedClassifier(LogisticRegression(), scoring="neg_log_loss")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the test of the shift
            shift = adapt_prior(model.fit(X[known], y[known]), X[new]).prior_shift_
        inside.append((shift.low <= after) & (after <= shift.high))
        widths.append(shift.high - shift.low)
    return {
        "case": name,
        "before": before,
        "after": after,
        "repeats": repeats,
        "covered": np.mean(inside, axis=0).tolist(),
        "width": np.mean(widths, axis=0).tolist(),
    }


def table(records: list[dict[str, Any]]) -> list[str]:
    """A row for each class; of two classes one, as they mirror each other."""
    lines = ["| case | before | after | repeats | covered | mean width |", "|---|" + "---:|" * 5]
    for record in records:
        columns = (record[name] for name in ("before", "after", "covered", "width"))
        rows = list(zip(*columns, strict=True))
        for before, after, covered, width in rows[1:] if len(rows) == 2 else rows:
            lines.append(
                f"| {record['case']} | {before:.0%} | {after:.0%} | {record['repeats']} "
                f"| {covered:.1%} | {100 * width:.1f} points |"
            )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=300)
    parser.add_argument("--out", type=Path, default=HERE / "results" / "prior-coverage.json")
    args = parser.parse_args()
    records: list[dict[str, Any]] = []
    for number in range(len(CASES)):
        records.append(run(number, args.repeats))
        args.out.write_text(json.dumps(records, indent=1))
    made = "\n".join(table(records))
    print(made)
    PAGE.write_text(replaced(PAGE.read_text(), "prior coverage", made, "prior_coverage.py"))


if __name__ == "__main__":
    main()
