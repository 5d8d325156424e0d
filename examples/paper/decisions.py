"""Compare ways to tune a decision on few positives, on saved probabilities.

    python run.py budget --data FOLDER --probabilities /tmp/probabilities ...
    python decisions.py /tmp/probabilities --data FOLDER

Each way is tuned on the development rows of a run and scored on its test rows. No model is fitted.
The same rows show how far the probabilities are off, before and after a temperature.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import Pool
from pathlib import Path
from typing import Any

import numpy as np
import tasks
from decision_rules import gains_of
from experiments import SETTINGS

from skdice.metrics import Fbeta, expected_calibration_error
from skdice.metrics.calibration import calibrate
from skdice.metrics.decisions.held_out_rows import BinaryRows, SpanRows
from skdice.metrics.decisions.span_counts import SpanCounter
from skdice.metrics.decisions.tuning import tune, tune_bias

HERE = Path(__file__).parent
DRAWS = 10
BEFORE = float(np.exp(-0.5))  # a draw leaves out exp(-1) of the rows: see `tune`


@dataclass
class Part:
    """The development or the test rows of a run.

    Attributes
    ----------
    log_p : ndarray of shape (n, n_classes)
    truth : ndarray of int, shape (n,)
    groups : list of ndarray
        Rows that are drawn together: a sentence's tokens, or one text.
    tags : list of lists of str, or None
    classes : list of str
    positive : int or None
        Of two classes.
    """

    log_p: np.ndarray
    truth: np.ndarray
    groups: list[np.ndarray]
    tags: list[list[str]] | None
    classes: list[str]
    positive: int | None

    def drawn(self, chosen: np.ndarray) -> Part:
        """Some groups, perhaps twice."""
        rows = np.concatenate([self.groups[i] for i in chosen])
        tags = None if self.tags is None else [self.tags[i] for i in chosen]
        return Part(self.log_p[rows], self.truth[rows], [], tags, self.classes, self.positive)

    def score(self) -> Callable[[np.ndarray], float]:
        """F1 of predicted class indices."""
        if self.tags is not None:
            return SpanCounter(self.tags, self.classes, "iob2").f1
        right = self.truth == self.positive

        def f1(predicted: np.ndarray) -> float:
            found = predicted == self.positive
            total = right.sum() + found.sum()
            return float(2 * (right & found).sum() / total) if total else 0.0

        return f1

    def tuning(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """What the package makes of these rows: a bias, those of twenty draws, and their gains."""
        if self.tags is not None:
            rows: Any = SpanRows(self.log_p, self.truth, self.tags, self.classes, "iob2")
            found = tune(rows, objective := Fbeta(average="micro"))
            return found.bias, found.biases, gains_of(rows, objective, found.biases)
        of = [1 - self.positive, self.positive]
        margins = self.log_p[:, of[1:]] - self.log_p[:, of[:1]]
        truth = self.truth == self.positive
        rows = BinaryRows(margins, truth[:, None], truth, np.array([0, 1]))
        found = tune(rows, Fbeta())
        gains, columns = gains_of(rows, Fbeta(), found.biases), np.eye(2)[self.positive]
        return found.bias * columns, found.biases * columns, gains

    @property
    def n_positives(self) -> int:
        if self.tags is None:
            return int((self.truth == self.positive).sum())
        return sum(tag.startswith("B-") for row in self.tags for tag in row)


def plain(part: Part, seed: int) -> np.ndarray:
    return np.zeros(len(part.classes))


def per_class(part: Part, seed: int) -> np.ndarray:
    return tune_bias(part.log_p, part.truth, part.score())


def prior(part: Part, seed: int) -> np.ndarray:
    return tune_bias(part.log_p, part.truth, part.score(), per_class=False)


def averaged(tune: Callable[[Part, int], np.ndarray]) -> Callable[[Part, int], np.ndarray]:
    """The mean of the best biases of draws of the rows."""

    def mean(part: Part, seed: int) -> np.ndarray:
        random = np.random.default_rng(seed)
        n = len(part.groups)
        draws = [tune(part.drawn(random.integers(n, size=n)), seed) for _ in range(DRAWS)]
        # Only differences count: each draw's are to the most frequent class.
        return np.mean([b - b[frequent(part)] for b in draws], axis=0)

    return mean


def shrunk(
    tune: Callable[[Part, int], np.ndarray], strength: float
) -> Callable[[Part, int], np.ndarray]:
    """The best bias, the nearer to none the fewer positives there are."""

    def shrink(part: Part, seed: int) -> np.ndarray:
        bias = tune(part, seed)
        bias = bias - bias[frequent(part)]
        return bias * part.n_positives / (part.n_positives + strength)

    return shrink


def frequent(part: Part) -> int:
    return int(np.bincount(part.truth[part.truth >= 0]).argmax())


TUNED: dict[
    int, tuple[np.ndarray, np.ndarray, np.ndarray]
] = {}  # by the development rows of the run at hand


def kept(deviations: float, strength: float = 0.0) -> Callable[[Part, int], np.ndarray]:
    """The mean of draws, perhaps shrunk, if it gains enough on the rows outside the draws."""

    def way(part: Part, seed: int) -> np.ndarray:
        if id(part) not in TUNED:
            TUNED.clear()
            TUNED[id(part)] = part.tuning()
        _, biases, gained = TUNED[id(part)]
        first = gained[:DRAWS]
        gains = first.mean() > max(deviations * first.std(), 1e-12)
        share = part.n_positives / (part.n_positives + strength)
        return biases[:DRAWS].mean(axis=0) * share * gains

    return way


def shipped(part: Part, seed: int) -> np.ndarray:
    """What `fit` of a tuned estimator does."""
    kept(0)(part, seed)
    return TUNED[id(part)][0]


def errors(dev: Part, test: Part) -> dict[str, float]:
    """Expected calibration error, in points, that a test row is positive or a token tagged."""
    from scipy.special import softmax

    at = frequent(dev) if dev.positive is None else 1 - dev.positive
    event = test.truth != at
    found = {}
    for name, (temperature, bias) in {
        "as it is": (1.0, np.zeros(len(dev.classes))),
        "temperature": calibrate(dev.log_p, dev.truth, biases=False),
        "neg_log_loss": calibrate(dev.log_p, dev.truth, biases=True),
    }.items():
        p = 1 - softmax((test.log_p + bias) / temperature, axis=1)[:, at]
        found[name] = 100 * expected_calibration_error(event, np.clip(p, 0, 1))
    return found


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


def plug_in(part: Part, seed: int) -> np.ndarray:
    """A positive where its probability is above half of the best F1, after a temperature.

    The temperature makes the development rows likeliest (Guo et al. 2017); the rule is that of
    Lipton et al. 2014. For tags: against the background, for all types alike.
    """
    from scipy.optimize import minimize_scalar
    from scipy.special import log_softmax

    known = part.truth >= 0

    def loss(log_t: float) -> float:
        scaled = log_softmax(part.log_p[known] * np.exp(-log_t), axis=1)
        return -float(scaled[np.arange(known.sum()), part.truth[known]].mean())

    temperature = np.exp(minimize_scalar(loss, bounds=(-2, 2), method="bounded").x)
    bias = np.zeros(len(part.classes))
    background = frequent(part)
    positive = np.arange(len(bias)) != background
    cooled = log_softmax(part.log_p / temperature, axis=1)
    p = np.sort(1 - np.exp(cooled[:, background]))[::-1]
    # The best F1 that these probabilities expect, over all numbers of rows to call positive.
    expected = 2 * np.cumsum(p) / (np.arange(1, len(p) + 1) + p.sum())
    threshold = expected.max() / 2
    bias[positive] = temperature * np.log((1 - threshold) / threshold)
    return bias


WAYS: dict[str, Callable[[Part, int], np.ndarray]] = {
    "plain": plain,
    "per_class": per_class,
    "prior": prior,
    "per_class, mean of draws": averaged(per_class),
    "prior, mean of draws": averaged(prior),
    "per_class, shrunk (50)": shrunk(per_class, 50),
    "prior, shrunk (50)": shrunk(prior, 50),
    "mean of draws, shrunk (50)": shrunk(averaged(per_class), 50),
    "plug-in": plug_in,
    "mean of 20 draws (default)": shipped,
    "mean of draws, kept above 0": kept(0),
    "mean of draws, kept above 0.6 sd": kept(BEFORE),
    "mean of draws, kept above 1 sd": kept(1),
    "mean of draws, kept above 2 sd": kept(2),
    "mean of draws, shrunk (25), kept above 1 sd": kept(1, 25),
}


def parts_of(file: Path, data: Path) -> tuple[dict[str, Any], dict[str, Part]]:
    with np.load(file, allow_pickle=True) as saved:
        job = json.loads(str(saved["job"]))
        job = dict(job) if isinstance(job, list) else job
        classes = [str(name) for name in saved["classes"]]
        tables = {part: saved[part].astype(float) for part in ("dev", "test")}
    task = tasks.load(job["task"], data, job["seed"], job.get("limit"))
    index = {name: i for i, name in enumerate(classes)}
    made = {}
    for part, p in tables.items():
        y = getattr(task, part)[1]
        tagged = task.kind == "tags"
        flat = [tag for row in y for tag in row] if tagged else y
        sizes = [len(row) for row in y] if tagged else [1] * len(y)
        ends = np.cumsum(sizes)
        made[part] = Part(
            np.log(np.maximum(p, 1e-30)),
            np.array([index.get(str(name), -1) for name in flat]),
            [np.arange(end - size, end) for end, size in zip(ends, sizes, strict=True)],
            [[str(tag) for tag in row] for row in y] if tagged else None,
            classes,
            None if tagged else index[str(task.pos_label)],
        )
    return job, made


def tried(given: tuple[Path, Path]) -> dict[str, Any]:
    """F1 on the test rows with each way."""
    job, parts = parts_of(*given)
    test = parts["test"]
    score = test.score()
    return {
        "job": job,
        "n_positives": parts["dev"].n_positives,
        "ece": errors(parts["dev"], test),
        "f1": {
            name: 100 * score((test.log_p + way(parts["dev"], job["seed"])).argmax(axis=1))
            for name, way in WAYS.items()
        },
    }


def table(found: list[dict[str, Any]]) -> list[str]:
    """The gain over the plain decision, by data set."""
    names = list(dict.fromkeys(record["job"]["task"] for record in found))
    groups = {name: [r for r in found if r["job"]["task"] == name] for name in names}
    heads = [
        f"{name} ({len(rows)} fits, {np.median([r['n_positives'] for r in rows]):.0f} positives)"
        for name, rows in groups.items()
    ]
    lines = [
        "| decision | " + " | ".join(heads) + " | mean | share of fits that lose over 0.5 |",
        "|---" * (len(heads) + 3) + "|",
    ]
    for way in found[0]["f1"]:
        gains = [[r["f1"][way] - r["f1"]["plain"] for r in rows] for rows in groups.values()]
        losing = np.mean([gain < -0.5 for rows in gains for gain in rows])
        means = [np.mean(rows) for rows in gains]
        lines.append(
            f"| {way} | "
            + " | ".join(f"{mean:+.1f}" for mean in means)
            + f" | {np.mean(means):+.1f} | {100 * losing:.0f} % |"
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("probabilities", type=Path)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--ways", nargs="+", choices=WAYS, help="plain, and some of the others")
    parser.add_argument("--losses", nargs="+", default=["ce", "focal", "ce_dice", "dsc"])
    parser.add_argument("--epochs", nargs="+", type=int, default=[2, 4])
    parser.add_argument("--out", type=Path, default=HERE / "results" / "decisions.json")
    args = parser.parse_args()
    for way in set(WAYS) - {"plain", *(args.ways or WAYS)}:
        del WAYS[way]
    chosen = []
    for file in sorted(args.probabilities.glob("*.npz")):
        with np.load(file, allow_pickle=True) as saved:
            job = dict(json.loads(str(saved["job"])))
        usual = job["lr"] == SETTINGS[job["task"]]["lr"]
        if usual and job["loss"] in args.losses and job["max_epochs"] in args.epochs:
            chosen.append((file, args.data))
    with Pool(args.workers) as pool:
        found = []
        for record in pool.imap(tried, chosen):
            found.append(record)
            gains = ", ".join(f"{k} {v:.1f}" for k, v in record["f1"].items())
            print(record["job"]["task"], record["job"]["loss"], gains, flush=True)
    args.out.write_text(json.dumps(found, indent=1))
    print("\n".join([*table(found), "", *error_table(found)]))


if __name__ == "__main__":
    main()
