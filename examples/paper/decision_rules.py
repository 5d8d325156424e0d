"""Compare rules that choose a threshold for F1, on simulated scores whose true F1 is known.

    python decision_rules.py                # three minutes on one core; writes into docs too
    python decision_rules.py --repeats 40   # smaller errors

Scores of negatives and positives are normal, a distance apart, and a monotone function makes the
model's log-odds of them. So the F1 of any threshold on endless new rows is a formula, and the
regret of a rule is the F1 of the best threshold less that of the chosen one. Nothing is trained.

The default of `BiasTunedClassifier` is the simplest rule whose regret is at most 2.5 points for
each kind of scores, and whose mean regret is within 0.1 points of the least.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from pages import replaced
from scipy.special import expit, logit, ndtr
from sklearn.model_selection import StratifiedKFold

from skdice.metrics import Fbeta
from skdice.metrics.calibration import calibrate
from skdice.metrics.decisions.held_out_rows import BinaryRows
from skdice.metrics.decisions.tuning import Tuning, tune

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "evidence.md"
DISTANCES = 1.5, 2.25, 3.0  # standard deviations between the classes' means
PREVALENCES = 0.01, 0.05, 0.2
SIZES = 200, 1000, 5000
KINDS = "well calibrated", "badly calibrated", "distorted", "nothing to gain"
N_FOLDS, N_THRESHOLDS = 5, 100  # the defaults of TunedThresholdClassifierCV


@dataclass(frozen=True)
class Scores:
    """Scores of two classes and what a model makes of them.

    Attributes
    ----------
    kind : str
        One of `KINDS`.
    distance, prevalence : float
    model : callable
        From true log-odds to those of the model.
    inverse : callable
    """

    kind: str
    distance: float
    prevalence: float
    model: Callable[[Any], Any]
    inverse: Callable[[Any], Any]

    def drawn(self, n: int, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Log-odds of the model and truth of some rows."""
        truth = random.random(n) < self.prevalence
        x = random.normal(size=n) + self.distance * (truth - 0.5)
        return self.model(self.distance * x + logit(self.prevalence)), truth

    def f1(self, bias: float) -> float:
        """F1, in points, on endless new rows where log-odds plus bias are above 0."""
        return f1_from(self.inverse(-bias), self.distance, self.prevalence)


def f1_from(odds: Any, distance: float, prevalence: float) -> Any:
    """F1, in points, of calling positive what has true log-odds above some."""
    x = (odds - logit(prevalence)) / distance
    hits = prevalence * ndtr(distance / 2 - x)
    alarms = (1 - prevalence) * ndtr(-distance / 2 - x)
    return 200 * hits / (prevalence + hits + alarms)


def best_odds(distance: float, prevalence: float) -> float:
    """True log-odds from which on rows are best called positive."""
    grid = np.linspace(-15, 15, 30001)
    return float(grid[f1_from(grid, distance, prevalence).argmax()])


def settings() -> list[Scores]:
    """Each kind of scores at each distance and prevalence."""
    found = []
    for d, p in product(DISTANCES, PREVALENCES):
        best = best_odds(d, p)
        for kind, model, inverse in (
            (KINDS[0], lambda t: t, lambda s: s),
            (KINDS[1], lambda t: t - 3, lambda s: s + 3),  # too few are called
            (KINDS[1], lambda t: 2.5 * t, lambda s: s / 2.5),  # too sure
            (KINDS[1], lambda t: 0.6 * t + 2, lambda s: (s - 2) / 0.6),  # too many, not sure
            (KINDS[2], lambda t: ((t - 0.3) / 2) ** 3, lambda s: 2 * np.cbrt(s) + 0.3),
            (KINDS[2], lambda t: 1.5 * np.arcsinh(2 * t), lambda s: np.sinh(s / 1.5) / 2),
            (KINDS[3], lambda t, best=best: t - best, lambda s, best=best: s + best),
        ):
            found.append(Scores(kind, d, p, model, inverse))
    return found


# ---- the rules: from log-odds, truth and what `tune` found to a bias


def gains_of(rows: Any, objective: Any, biases: np.ndarray) -> np.ndarray:
    """What the bias of each draw of `tune` gains on the rows outside the draw."""
    random, gains = np.random.default_rng(0), []
    for bias in biases:
        outside = np.ones(rows.n_rows, dtype=bool)
        outside[random.integers(rows.n_rows, size=rows.n_rows)] = False
        if outside.any():
            held = rows.take(np.flatnonzero(outside))
            tuned, plain = (held.score(objective, held.decide(b)) for b in (bias, 0 * bias))
            gains.append(tuned - plain)
    return np.array(gains)


def share_without_loss(gains: np.ndarray) -> float:
    """Share of the draws whose bias loses nothing on the rows outside the draw."""
    return float((gains >= -1e-12).mean()) if len(gains) else 1.0


def spread(found: Tuning) -> float:
    """Squared mean of the draws' biases over the same plus their variance."""
    square = found.biases.mean() ** 2
    return float(square / max(square + found.biases.var(), 1e-12))


def kept(gains: np.ndarray, deviations: float) -> bool:
    """Return True if the draws gain by more than some standard deviations."""
    return bool(len(gains) and gains.mean() > max(deviations * gains.std(), 1e-12))


def plug_in(odds: np.ndarray, truth: np.ndarray) -> float:
    """Bias of the best expected F1 after a calibration by a line (Lipton et al. 2014)."""
    both = np.column_stack([np.zeros(len(odds)), odds])
    temperature, biases = calibrate(both, truth.astype(int), biases=True)
    shift = biases[1] - biases[0]
    p = np.sort(expit((odds + shift) / temperature))[::-1]
    expected = 2 * np.cumsum(p) / (np.arange(1, len(p) + 1) + p.sum())
    return float(shift - temperature * logit(np.clip(expected.max() / 2, 1e-9, 1 - 1e-9)))


def tuned_threshold_cv(odds: np.ndarray, truth: np.ndarray) -> float:
    """Bias of the threshold that TunedThresholdClassifierCV takes, of a model that stays as it is.

    Thresholds are equally spaced probabilities; the scores of the folds are interpolated and
    averaged.
    """
    smallest = int(min(truth.sum(), (~truth).sum()))
    if smallest < 2:
        return 0.0  # no folds
    curves = []
    for _, held in StratifiedKFold(min(N_FOLDS, smallest)).split(odds, truth):
        p, right = expit(odds[held]), truth[held]
        thresholds = np.linspace(p.min(), p.max(), N_THRESHOLDS)
        found = p >= thresholds[:, None]
        total = found.sum(axis=1) + right.sum()
        curves.append((thresholds, 2 * (found & right).sum(axis=1) / np.maximum(total, 1)))
    ends = min(t[0] for t, _ in curves), max(t[-1] for t, _ in curves)
    grid = np.linspace(*ends, N_THRESHOLDS)
    mean = np.mean([np.interp(grid, *curve) for curve in curves], axis=0)
    chosen = np.clip(grid[mean.argmax()], 1e-12, 1 - 1e-12)
    return float(-np.nextafter(logit(chosen), -np.inf))  # a row at the threshold is positive


def rules(odds: np.ndarray, truth: np.ndarray) -> dict[str, float]:
    """Bias by each rule."""
    rows = BinaryRows(odds[:, None], truth[:, None], truth.astype(int), np.array([0, 1]))
    found = tune(rows, Fbeta())
    gains, ten = gains_of(rows, Fbeta(), found.biases), float(found.biases[:10].mean())
    bag, line = float(found.biases.mean()), plug_in(odds, truth)
    return {
        "plain": 0.0,
        "bag of 10, kept above 0.607 sd": (ten * kept(gains[:10], float(np.exp(-0.5)))),
        "best on all rows": float(tune(rows, Fbeta(), n_draws=0).bias[0]),
        "TunedThresholdClassifierCV": tuned_threshold_cv(odds, truth),
        "bag of 10": ten,
        "bag of 20 (default)": float(found.bias[0]),
        "bag of 20, kept above 0": bag * kept(gains, 0),
        "bag of 20, shrunk by its spread": bag * spread(found),
        "bag of 20, times share without loss": bag * share_without_loss(gains),
        "bag of 20, half of it times share without loss": (
            bag * (1 + share_without_loss(gains)) / 2
        ),
        "plug-in": line,
        "half bag of 20, half plug-in": (bag + line) / 2,
    }


def run(scores: Scores, n: int, repeats: int, number: int) -> dict[str, Any]:
    """Mean F1 and regret of each rule over draws of the rows."""
    best = scores.f1(-scores.model(best_odds(scores.distance, scores.prevalence)))
    f1: dict[str, list[float]] = {}
    for repeat in range(repeats):
        random = np.random.default_rng([repeat, number, n])
        for name, bias in rules(*scores.drawn(n, random)).items():
            f1.setdefault(name, []).append(float(scores.f1(bias)))
    return {
        "kind": scores.kind,
        "distance": scores.distance,
        "prevalence": scores.prevalence,
        "n": n,
        "fits": repeats,
        "best": best,
        "f1": {name: float(np.mean(values)) for name, values in f1.items()},
    }


def table(records: list[dict[str, Any]]) -> list[str]:
    """Mean regret by kind of scores and size, and the mean F1."""
    small = [f"{kind}, {SIZES[0]} and {SIZES[1]:,} rows" for kind in KINDS]
    heads = ["mean F1", *small, f"{KINDS[3]}, {SIZES[1]:,} rows", "mean regret"]
    lines = [" | ".join(["| rule", *heads]) + " |", "|---|" + "---:|" * len(heads)]
    for name in records[0]["f1"]:

        def regret(name: str = name, **wanted: Any) -> float:
            chosen = [r for r in records if all(r[k] in v for k, v in wanted.items())]
            return float(np.mean([r["best"] - r["f1"][name] for r in chosen]))

        figures = [
            float(np.mean([r["f1"][name] for r in records])),
            *(regret(kind=[kind], n=SIZES[:2]) for kind in KINDS),
            regret(kind=[KINDS[3]], n=[SIZES[1]]),
            regret(),
        ]
        lines.append(" | ".join([f"| {name}", *(f"{value:.1f}" for value in figures)]) + " |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--out", type=Path, default=HERE / "results" / "decision-rules.json")
    args = parser.parse_args()
    records = [
        run(scores, n, args.repeats, number)
        for number, scores in enumerate(settings())
        for n in SIZES
    ]
    args.out.write_text(json.dumps(records, indent=1))
    made = "\n".join(table(records))
    print(made)
    PAGE.write_text(replaced(PAGE.read_text(), "decision rules", made, "decision_rules.py"))


if __name__ == "__main__":
    main()
