"""Adapt a decision to other frequencies without labels, on saved probabilities of CLINC.

    python run.py budget --data FOLDER --probabilities /tmp/probabilities ...
    python prior_shift.py /tmp/probabilities --data FOLDER

Out-of-scope questions are 3 % of the development rows and 18 % of the test rows. "tuned on target
labels" tunes on one half of the test rows and is scored on the other, and the other way round. No
model is fitted.
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from decisions import Part, parts_of
from sklearn.base import BaseEstimator, ClassifierMixin

from skdice import BiasTunedClassifier
from skdice.model_selection import adapt_prior

HERE = Path(__file__).parent


class Saved(ClassifierMixin, BaseEstimator):
    """A classifier whose rows are their probabilities."""

    def __init__(self, positive: int = 1) -> None:
        self.positive = positive

    def fit(self, X: Any, y: Any) -> Saved:
        self.classes_, self.positive_ = np.arange(2), self.positive
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        return np.asarray(X)

    def predict(self, X: Any) -> np.ndarray:
        return np.asarray(X).argmax(axis=1)


def f1(part: Part, predicted: np.ndarray) -> float:
    return 100 * part.score()(predicted)


def scores(dev: Part, test: Part) -> dict[str, float]:
    """F1 on the test rows by each decision, and what was estimated."""
    assert dev.positive is not None
    known, rows = np.exp(dev.log_p), np.exp(test.log_p)
    blank = Saved(dev.positive).fit(known, dev.truth)
    tuned = BiasTunedClassifier(blank, cv="prefit", n_bootstraps=0).fit(known, dev.truth)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the test, whose p-value is in the table
        moved = adapt_prior(tuned, rows)
    shift = moved.prior_shift_
    half = np.random.default_rng(0).permutation(len(rows)) % 2
    target = np.empty(len(rows), dtype=int)
    for side in (0, 1):
        learn = half != side
        there = BiasTunedClassifier(blank, cv="prefit", n_bootstraps=0)
        there.fit(rows[learn], test.truth[learn])
        target[~learn] = there.predict(rows[~learn])
    told = adapt_prior(tuned, prior={dev.positive: float((test.truth == dev.positive).mean())})
    return {
        "as trained": f1(test, blank.predict(rows)),
        "tuned on development rows": f1(test, tuned.predict(rows)),
        "then adapted to test rows without labels": f1(test, moved.predict(rows)),
        "then adapted, the frequency known": f1(test, told.predict(rows)),
        "tuned on target labels": f1(test, target),
        "estimated frequency, %": 100 * float(shift.after[dev.positive]),
        "p-value": float(shift.p_value or 0),
    }


def table(found: list[dict[str, float]]) -> list[str]:
    """Means over the fits, and the share of the gain by target labels."""
    means = {name: float(np.mean([record[name] for record in found])) for name in found[0]}
    gain = means["tuned on target labels"] - means["as trained"]
    lines = ["| decision | F1 | share of the gain |", "|---|---|---|"]
    for name, value in means.items():
        if name not in ("estimated frequency, %", "p-value"):
            lines.append(f"| {name} | {value:.1f} | {(value - means['as trained']) / gain:.0%} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("probabilities", type=Path)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=HERE / "results" / "prior_shift.json")
    args = parser.parse_args()
    found = []
    for file in sorted(args.probabilities.glob("*.npz")):
        with np.load(file, allow_pickle=True) as saved:
            if dict(json.loads(str(saved["job"])))["task"] != "clinc_oos":
                continue
        job, parts = parts_of(file, args.data)
        found.append(scores(parts["dev"], parts["test"]))
        figures = ", ".join(f"{name} {value:.2f}" for name, value in found[-1].items())
        print(job["loss"], job["max_epochs"], job["seed"], figures, flush=True)
        args.out.write_text(json.dumps(found, indent=1))
    print("\n".join(table(found)))


if __name__ == "__main__":
    main()
