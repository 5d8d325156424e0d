"""How often a comparison of equal models calls one of them behind.

    python examples/benchmarks/comparisons.py --rounds 400

Simulates comparisons of seven models that are equally good, whose answers on the test rows differ
by chance. In each round a comparison is wrong if the interval of at least one row, to the highest
score, does not hold 0. Of models with several seeds each seed is better or worse by chance, too.

Wanted: at most 5 % of the rounds.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from skdice.model_selection.candidates import Candidate
from skdice.model_selection.intervals import F1_WITHOUT, MOST_PARTS, differences

N_MODELS = 7


@dataclass
class Setting:
    """What is simulated: `alike` is the correlation of two models' errors on a row."""

    n_rows: int
    n_seeds: int
    alike: float = 0.0
    of_seeds: float = 0.0  # spread of the rate of errors over seeds, in units of the normal law
    positives: float = 0.2
    measure: str = "f1"


SETTINGS = [
    Setting(1000, 1, measure="accuracy"),
    Setting(1000, 1),
    Setting(1000, 1, alike=0.6),
    Setting(1000, 3, alike=0.6, of_seeds=0.2),
    Setting(200, 1, alike=0.6, positives=0.1),
    Setting(200, 3, alike=0.6, positives=0.1),
    Setting(200, 3, alike=0.8, of_seeds=0.4, positives=0.1),
]


def f1(true: np.ndarray, found: np.ndarray) -> np.ndarray:
    """F1 of answers of shape (..., n_rows)."""
    return 2 * (true & found).sum(-1) / np.maximum(true.sum(-1) + found.sum(-1), 1)


def accuracy(true: np.ndarray, found: np.ndarray) -> np.ndarray:
    """Accuracy of answers of shape (..., n_rows)."""
    return (true == found).mean(-1)


def equal_models(setting: Setting, seed: int) -> list[Candidate]:
    """The rows of one simulated comparison: 20 % of positives and 5 % of negatives are missed."""
    rng, n = np.random.default_rng(seed), setting.n_rows
    true = rng.random(n) < setting.positives
    shape = (N_MODELS, setting.n_seeds)
    own, shared = rng.standard_normal((*shape, n)), rng.standard_normal(n)
    luck = setting.of_seeds * rng.standard_normal((*shape, 1))
    errors = setting.alike**0.5 * shared + (1 - setting.alike) ** 0.5 * own + luck
    found = true ^ (errors < ndtri(np.where(true, 0.2, 0.05)))
    score: Callable[..., np.ndarray] = globals()[setting.measure]
    parts = np.array_split(np.random.default_rng(0).permutation(n), MOST_PARTS)
    kept = [np.delete(np.arange(n), part) for part in parts]
    scores = score(true, found)
    without = np.stack([score(true[rows], found[..., rows]) for rows in kept], axis=-1)
    records = [
        [{"f1": float(scores[i, k]), F1_WITHOUT: without[i, k].tolist()} for k in range(shape[1])]
        for i in range(N_MODELS)
    ]
    return [Candidate(f"model {i}", "ce", runs=runs) for i, runs in enumerate(records)]


def is_wrong(models: list[Candidate]) -> bool:
    """Tell whether one of several equal models is called behind."""
    best = int(np.argmax([model.mean("f1") for model in models]))
    return any(high < 0 for _, _, high in differences(models, best))


def main() -> None:
    """Print the share of wrong comparisons for each setting."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=400)
    rounds = parser.parse_args().rounds
    for setting in SETTINGS:
        wrong = np.mean([is_wrong(equal_models(setting, seed)) for seed in range(rounds)])
        error = np.sqrt(wrong * (1 - wrong) / rounds)
        print(f"{100 * wrong:4.1f} % (± {100 * error:.1f})  {setting}", flush=True)


if __name__ == "__main__":
    main()
