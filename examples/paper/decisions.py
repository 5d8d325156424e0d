"""Rules that choose a threshold for F1, and how far probabilities are off.

    python decisions.py rules                # three minutes on one core; writes into docs too
    python decisions.py rules --repeats 40   # smaller errors
    python run.py budget --data FOLDER --probabilities /tmp/probabilities ...
    python decisions.py calibration /tmp/probabilities --data FOLDER

`rules` simulates. Scores of negatives and positives are normal, a distance apart, and a monotone
function makes the model's log-odds of them. So the F1 of any threshold on endless new rows is a
formula, and the regret of a rule is the F1 of the best threshold less that of the chosen one.
The default of `BiasTunedClassifier` was chosen by its regret.

`calibration` reads probabilities of fits. A temperature is fitted on the development rows of each,
and the errors are those of its test rows. No model is fitted.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import tasks
from experiments import SETTINGS
from pages import replaced
from scipy.special import expit, logit, ndtr, softmax
from sklearn.model_selection import StratifiedKFold

from skdice.metrics import Fbeta, expected_calibration_error
from skdice.metrics.calibration import calibrate
from skdice.metrics.decisions.held_out_rows import BinaryRows
from skdice.metrics.decisions.tuning import tune

HERE = Path(__file__).parent
PAGES = [HERE.parents[1] / "docs" / name for name in ("evidence.md", "experiments.md")]
RULES, CALIBRATION = (
    HERE / "results" / f"{name}.json" for name in ("decision-rules", "decisions-kept")
)
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


# ---- the rules: from log-odds and truth to a bias


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
    return {
        "plain": 0.0,
        "best on all rows": float(tune(rows, Fbeta(), n_draws=0).bias[0]),
        "TunedThresholdClassifierCV": tuned_threshold_cv(odds, truth),
        "mean of 20 draws (default)": float(tune(rows, Fbeta()).bias[0]),
        "plug-in": plug_in(odds, truth),
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


def rule_table(records: list[dict[str, Any]]) -> list[str]:
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


# ---- calibration


@dataclass
class Part:
    """The development or the test rows of a run.

    Attributes
    ----------
    log_p : ndarray of shape (n, n_classes)
    truth : ndarray of int, shape (n,)
    positive : int or None
        Of two classes; tags have none.
    """

    log_p: np.ndarray
    truth: np.ndarray
    positive: int | None

    def common(self) -> int:
        """The class that is no event: the negative one, or the most frequent tag."""
        if self.positive is not None:
            return 1 - self.positive
        return int(np.bincount(self.truth[self.truth >= 0]).argmax())


def parts_of(file: Path, data: Path) -> tuple[dict[str, Any], dict[str, Part]]:
    """The job of a run that `run.py --probabilities` kept, and its rows."""
    with np.load(file, allow_pickle=True) as saved:
        job = dict(json.loads(str(saved["job"])))
        classes = [str(name) for name in saved["classes"]]
        tables = {part: saved[part].astype(float) for part in ("dev", "test")}
    task = tasks.load(job["task"], data, job["seed"], job.get("limit"))
    index = {name: i for i, name in enumerate(classes)}
    made = {}
    for part, p in tables.items():
        y = getattr(task, part)[1]
        flat = [tag for row in y for tag in row] if task.kind == "tags" else y
        made[part] = Part(
            np.log(np.maximum(p, 1e-30)),
            np.array([index.get(str(name), -1) for name in flat]),
            None if task.kind == "tags" else index[str(task.pos_label)],
        )
    return job, made


def errors(dev: Part, test: Part) -> dict[str, float]:
    """Expected calibration error, in points, that a test row is positive or a token tagged."""
    at, found = dev.common(), {}
    for name, (temperature, bias) in {
        "as it is": (1.0, np.zeros(dev.log_p.shape[1])),
        "temperature": calibrate(dev.log_p, dev.truth, biases=False),
        "neg_log_loss": calibrate(dev.log_p, dev.truth, biases=True),
    }.items():
        p = 1 - softmax((test.log_p + bias) / temperature, axis=1)[:, at]
        found[name] = 100 * expected_calibration_error(test.truth != at, np.clip(p, 0, 1))
    return found


def error_tables(found: list[dict[str, Any]]) -> dict[str, list[str]]:
    """By the part of a page that holds it."""
    return {
        "calibration": error_table(found),
        "calibration of each set": errors_of_sets(found),
    }


def error_table(found: list[dict[str, Any]]) -> list[str]:
    """The mean calibration error by loss, each data set alike."""
    names = list(found[0]["ece"])
    lines = ["| loss | fits | " + " | ".join(names) + " |", "|---" * (len(names) + 2) + "|"]
    by_set = errors_by_set(found)
    for loss in dict.fromkeys(loss for _, loss in by_set):
        of_sets = [rows for (_, other), rows in by_set.items() if other == loss]
        means = np.mean([rows.mean(axis=0) for rows in of_sets], axis=0)
        lines.append(f"| {loss} | {sum(map(len, of_sets))} | {points(means)} |")
    return lines


def errors_of_sets(found: list[dict[str, Any]]) -> list[str]:
    """The mean calibration error by data set and loss."""
    names = list(found[0]["ece"])
    lines = ["| data, loss | fits | " + " | ".join(names) + " |", "|---" * (len(names) + 2) + "|"]
    for (name, loss), rows in sorted(errors_by_set(found).items()):
        lines.append(f"| {name}, {loss} | {len(rows)} | {points(rows.mean(axis=0))} |")
    return lines


def errors_by_set(found: list[dict[str, Any]]) -> dict[tuple[str, str], np.ndarray]:
    """Calibration errors of each data set and loss: a row a fit, a column a way."""
    rows: dict[tuple[str, str], list[Any]] = {}
    for record in found:
        of = record["job"]["task"], record["job"]["loss"]
        rows.setdefault(of, []).append(list(record["ece"].values()))
    return {of: np.array(values) for of, values in rows.items()}


def points(values: np.ndarray) -> str:
    return " | ".join(f"{value:.2f}" for value in values)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("command", choices=["rules", "calibration"])
    parser.add_argument("probabilities", type=Path, nargs="?", help="folder, for calibration")
    parser.add_argument("--data", type=Path, help="folder of the data sets, for calibration")
    parser.add_argument("--repeats", type=int, default=10, help="of the simulation")
    parser.add_argument("--losses", nargs="+", default=["ce", "focal", "ce_dice", "dsc"])
    parser.add_argument("--epochs", nargs="+", type=int, default=[2, 4])
    args = parser.parse_args()
    if args.command == "rules":
        records = [
            run(scores, n, args.repeats, number)
            for number, scores in enumerate(settings())
            for n in SIZES
        ]
        file, made = RULES, {"decision rules": rule_table(records)}
    else:
        if not (args.probabilities and args.data):
            raise SystemExit("calibration needs the folder of probabilities and --data")
        records = [*calibrated(args)]
        file, made = CALIBRATION, error_tables(records)
    file.write_text(json.dumps(records, indent=1))
    for page in PAGES:
        text = page.read_text()
        for name, lines in made.items():
            text = replaced(text, name, "\n".join(lines), "decisions.py")
        page.write_text(text)
    print("\n".join(line for lines in made.values() for line in lines))


def calibrated(args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """The errors of each run at its usual rate."""
    for file in sorted(args.probabilities.glob("*.npz")):
        job, parts = parts_of(file, args.data)
        usual = job["lr"] == SETTINGS[job["task"]]["lr"]
        if usual and job["loss"] in args.losses and job["max_epochs"] in args.epochs:
            yield {"job": job, "ece": errors(parts["dev"], parts["test"])}


if __name__ == "__main__":
    main()
