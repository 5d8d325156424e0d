"""What small and large batches need: a rate that follows them, and positives in each.

    python small_batches.py run --data FOLDER --minutes 60    # fills results/small_batches.jsonl
    python small_batches.py show                              # the tables into the pages

"rate": fits of texts and of tagged sentences at batches of 8 to 128, each with several rates.
"numbers": losses on rows of numbers and on vectors of texts, in batches of 32, 256 and "auto".
"shares": the same sets of numbers with other settings of the overlap losses. A record is one fit.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import tasks
from pages import replaced
from sklearn import datasets
from sklearn.metrics import average_precision_score, f1_score, precision_recall_curve
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

import skdice
from skdice.losses import CompoundLoss, DiceLoss, TverskyLoss
from skdice.metrics import span_f1_score
from skdice.tags.schemes import get_spans

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "small_batches.jsonl"
PAGE = HERE.parent.parent / "docs" / "experiments.md"
TEXTS = {"clinc_rare": "CLINC, one intent", "sms": "SMS", "anger": "GoEmotions, anger"}
LABELS = ("anger", "joy", "sadness")  # of GoEmotions
TAGS = {"wnut17": "WNUT17", "gmb": "GMB"}
# With the share of wrong labels, in the order of the runs.
CELLS = [("anger", 0), ("wnut17", 0), ("anger", 0.1), ("gmb", 0), ("gmb", 0.1), ("wnut17", 0.1)]
CELLS += [("clinc_rare", 0), ("clinc_rare", 0.1), ("sms", 0), ("sms", 0.1)]
# Times the rate at a batch of 32: unchanged, in proportion, and its square root.
MANY = 1500
FACTORS = {32: (1,), 8: (1, 1 / 4, 1 / 2), 16: (1, 1 / 2, 0.707), 64: (1, 2, 1.414), 128: (1, 4, 2)}
LOSSES = ("ce", "ce_dice", "dice", "dsc", "tversky")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("command", choices=["run", "list", "show"])
    parser.add_argument("--data", type=Path, help="folder of the data sets")
    parser.add_argument("--parts", nargs="+", default=list(PARTS), choices=list(PARTS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1])
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no fit later")
    args = parser.parse_args()
    started, done = time.monotonic(), {key(record["job"]) for record in records()}
    if args.command == "show":
        show()
        return
    for seed, part in product(args.seeds, args.parts):
        for job in PARTS[part][0]():
            job = {"part": part, "seed": seed, **job}
            if key(job) in done or time.monotonic() - started > 60 * args.minutes:
                continue
            if args.command == "run":
                record = {"job": job, **run(job, args.data)}
                with RESULTS.open("a") as file:
                    file.write(json.dumps(record) + "\n")
                print(record, flush=True)
            else:
                print(job)


def key(job: dict[str, Any]) -> str:
    return json.dumps(job, sort_keys=True)


def records() -> list[dict[str, Any]]:
    return [json.loads(line) for line in RESULTS.open()] if RESULTS.exists() else []


def run(job: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Fit one model, and say what test rows say of it."""
    warnings.simplefilter("ignore")
    started = time.process_time()
    found = PARTS[job["part"]][1](job, folder)
    how = {"seconds": round(time.process_time() - started, 1), "date": time.strftime("%Y-%m-%d")}
    return {name: round(float(value), 4) for name, value in found.items()} | how


# ---- rates


def jobs_of_rate() -> Iterator[dict[str, Any]]:
    for (name, noise), size in product(CELLS, FACTORS):
        for factor in FACTORS[size]:
            yield {"data": name, "noise": noise, "batch": size, "factor": factor}
    for size in (8, 32):
        for factor in FACTORS[size]:
            yield {"data": "anger", "noise": 0.1, "batch": size, "factor": factor, "rows": MANY}


def run_rate(job: dict[str, Any], folder: Path) -> dict[str, float]:
    """Passes of a text follow the rate: as much of it as of 40 updates of 32 rows at 1e-4."""
    is_text, size = job["data"] in TEXTS, job["batch"]
    how = {"n_rows": 400, "n_rare": 40} if is_text else {"n_rows": 80}
    how = {"n_rows": MANY, "n_rare": 80} if job.get("rows") == MANY else how
    task = rows_of(job["data"], folder, job["seed"], job["noise"], **how)
    updates = -(-len(task.train[0]) // size)
    passes = max(3, round(40 / job["factor"] / updates)) if is_text else 15
    rate = (1e-4 if is_text else 3e-4) * job["factor"]
    return fitted(task, job, lr=rate, max_epochs=passes) | {"passes": passes}


def fitted(
    task: tasks.Task, job: dict[str, Any], share: float | None = None, **params: Any
) -> dict[str, float]:
    """The scores of a fit of MiniLM on test rows; `share` as in `scores`."""
    params |= {"random_state": job["seed"], "batch_size": job["batch"]}
    if task.kind == "tags":
        X, y = task.test  # which may hold tags that these few sentences lack
        tagger = skdice.DiceTokenClassifier(**params).fit(*task.train)
        return {"f1": span_f1_score(y, tagger.predict(X))}
    model = skdice.DiceSequenceClassifier(pos_label=task.pos_label, **params).fit(*task.train)
    proba = model.predict_proba(task.test[0])[:, model.classes_.tolist().index(task.pos_label)]
    return scores(np.array(task.test[1]) == task.pos_label, proba, share)


def scores(truth: Any, proba: np.ndarray, share: float | None = None) -> dict[str, float]:
    """F1 at one half and at the best threshold, and average precision.

    With `share`, as if so many of the rows were positive.
    """
    weight = np.ones(len(truth))
    if share is not None:
        weight = np.where(truth, share / np.mean(truth), (1 - share) / (1 - np.mean(truth)))
    precision, recall, _ = precision_recall_curve(truth, proba, sample_weight=weight)
    best = np.max(2 * precision * recall / np.maximum(precision + recall, 1e-12))
    f1 = f1_score(truth, proba > 0.5, sample_weight=weight, zero_division=0)
    ap = average_precision_score(truth, proba, sample_weight=weight)
    return {"f1": f1, "best_f1": best, "ap": ap}


@cache
def loaded(name: str, folder: Path, seed: int) -> tasks.Task:
    if name not in LABELS:
        return tasks.load(name, folder, seed)
    task = tasks.load("goemotions", folder, seed)
    parts = [
        (X, ["yes" if name in labels else "no" for labels in y])
        for X, y in (task.train, task.dev, task.test)
    ]
    return tasks.Task(name, "labels", *parts, "yes")


def rows_of(
    name: str, folder: Path, seed: int, noise: float, n_rows: int, n_rare: int | None = None
) -> tasks.Task:
    """Some rows of a data set, of which so many are of the rare class, with some wrong labels."""
    task, draw = loaded(name, folder, seed), np.random.default_rng(seed)
    X, y = task.train
    order = draw.permutation(len(y))
    if n_rare is not None:
        rare = np.array([y[i] == task.pos_label for i in order])
        order = np.concatenate([order[rare][:n_rare], order[~rare][: n_rows - n_rare]])
    chosen = draw.permutation(order[:n_rows])
    y = [y[i] for i in chosen]
    change = entities_moved if task.kind == "tags" else labels_swapped
    train = [X[i] for i in chosen], change(y, noise, draw, task.pos_label)
    n_test = 300 if task.kind == "tags" else 500
    how = {"seed": 0, "train_rows": 1, "dev_rows": 1, "test_rows": n_test}
    test = tasks.cell(task, how).test
    return tasks.Task(name, task.kind, train, test, test, task.pos_label)


def labels_swapped(y: list[Any], share: float, draw: Any, pos_label: Any) -> list[Any]:
    """A share of the positives is wrong, and as many negatives are called positive."""
    y, truth = list(y), np.array(y) == pos_label
    other = next(label for label in y if label != pos_label)
    n_wrong = round(share * truth.sum())
    for rows, label in ((np.flatnonzero(truth), other), (np.flatnonzero(~truth), pos_label)):
        for i in draw.choice(rows, n_wrong, replace=False):
            y[i] = label
    return y


def entities_moved(y: list[Any], share: float, draw: Any, _: Any) -> list[Any]:
    """A share of the entities is background, and as many words of it are entities."""
    y = [list(tags) for tags in y]
    spans = [(i, *span) for i, tags in enumerate(y) for span in get_spans(tags)]
    words = [(i, j) for i, tags in enumerate(y) for j, tag in enumerate(tags) if tag == "O"]
    wrong = draw.choice(len(spans), round(share * len(spans)), replace=False)
    for (i, kind, start, end), place in zip(
        [spans[k] for k in wrong], draw.choice(len(words), len(wrong), replace=False), strict=True
    ):
        y[i][start:end] = ["O"] * (end - start)
        row, word = words[place]
        y[row][word] = f"B-{kind}"
    return y


# ---- numbers


def clusters(n_rows: int, n_features: int, share: float, seed: int, **more: Any) -> Any:
    how = {"n_informative": n_features // 3, "weights": [1 - share], "flip_y": 0.01, **more}
    return datasets.make_classification(n_rows, n_features, random_state=seed, **how)


def rare(X: Any, y: Any, n_rare: int) -> Any:
    """All negatives and so many positives."""
    kept = np.flatnonzero((y == 0) | (np.cumsum(y) <= n_rare))
    return X[kept], y[kept]


def digits(n_rare: int) -> Any:
    X, y = datasets.load_digits(return_X_y=True)
    return rare(X, (y == 8).astype(int), n_rare)


def several_digits() -> Any:
    """All noughts and fewer of each digit, down to five."""
    X, y = datasets.load_digits(n_class=5, return_X_y=True)
    kept = [np.flatnonzero(y == digit)[:n] for digit, n in enumerate((178, 60, 20, 10, 5))]
    return X[np.concatenate(kept)], y[np.concatenate(kept)]


def cancer() -> Any:
    X, y = datasets.load_breast_cancer(return_X_y=True)
    return rare(X, 1 - y, 20)


def diabetes() -> Any:
    X, y = datasets.load_diabetes(return_X_y=True)
    return X, (y > np.quantile(y, 0.93)).astype(int)


NUMBERS: dict[str, Any] = {
    "30 columns, 3 %": lambda: clusters(1600, 30, 0.03, 3, n_informative=10, class_sep=1.2),
    "60 columns, 5 %": lambda: clusters(1600, 60, 0.05, 11, flip_y=0.02),
    "10 columns, 2 %": lambda: clusters(1600, 10, 0.02, 12, class_sep=1.5),
    "digits, an eight": lambda: digits(50),
    "breast cancer": cancer,
    "diabetes, the highest 7 %": diabetes,
    "five digits": several_digits,
}
VECTORS = {name: f"{title}, vectors" for name, title in TEXTS.items()}
VECTORS |= {"joy": "GoEmotions, joy, vectors", "sadness": "GoEmotions, sadness, vectors"}
# The set on which the fault of small batches was found: 4,000 rows to train on.
HOW_FOUND = dict(n_informative=10, weights=[0.97], flip_y=0.01, class_sep=1.2, random_state=3)
FOUND = "30 columns, 4 %, 4,000 rows"
EIGHT = {FOUND: lambda: datasets.make_classification(6000, 30, **HOW_FOUND), **NUMBERS}
# Settings of an overlap loss that may suit numbers better than its defaults.
SETTINGS: dict[str, Any] = {
    "`ce`": "ce",
    "`dice`": "dice",
    "`dsc`": "dsc",
    "share 0.9 of dice, the default": "ce_dice",
    "share 0.75": CompoundLoss(weight=0.75),
    "share 0.5": CompoundLoss(weight=0.5),
    "share 0.25": CompoundLoss(weight=0.25),
    "share 0.5 of the formula": CompoundLoss("ce", DiceLoss(surrogate="none"), weight=0.5),
    "share 0.5 of `dsc`": CompoundLoss("ce", "dsc", weight=0.5),
    "`dice`, the formula": DiceLoss(surrogate="none"),
    "`dice`, smooth 10": DiceLoss(smooth=10),
    "`dice`, smooth 100": DiceLoss(smooth=100),
    "`tversky`, alpha 0.7": TverskyLoss(alpha=0.7, beta=0.3),
}


def jobs_of_numbers() -> Iterator[dict[str, Any]]:
    for name, loss, size in product((*EIGHT, *VECTORS), LOSSES, (256, "auto")):
        yield {"data": name, "loss": loss, "batch": size}
    for name, loss in product(EIGHT, ("ce", "dice")):
        yield {"data": name, "loss": loss, "batch": 32}


def jobs_of_shares() -> Iterator[dict[str, Any]]:
    for name, setting in product(EIGHT, SETTINGS):
        yield {"data": name, "setting": setting, "batch": "auto"}


def run_numbers(job: dict[str, Any], folder: Path) -> dict[str, float]:
    """A third of the rows are to test on; rate and passes are the defaults."""
    name, seed = job["data"], job["seed"]
    if name in VECTORS:
        X, X_test, y, y_test = vectors(name, folder, seed)
    else:
        X, y = EIGHT[name]()
        split = {"stratify": y, "random_state": seed} if name != FOUND else {"shuffle": False}
        X, X_test, y, y_test = train_test_split(X, y, test_size=1 / 3, **split)
        if name != FOUND:
            scaler = StandardScaler().fit(X)
            X, X_test = scaler.transform(X), scaler.transform(X_test)
    loss = SETTINGS[job["setting"]] if "setting" in job else job["loss"]
    model = skdice.DiceClassifier(loss=loss, batch_size=job["batch"], random_state=seed)
    proba = model.fit(X, y).predict_proba(X_test)
    size = {"rows": model.batch_size_}
    if proba.shape[1] > 2:
        return {"f1": f1_score(y_test, proba.argmax(1), average="macro")} | size
    # Test texts hold more positives than training texts do.
    share = float(np.mean(y)) if name in VECTORS else None
    return scores(y_test, proba[:, 1], share) | size


@cache
def vectors(name: str, folder: Path, seed: int) -> Any:
    """Vectors of 1,000 texts of the frozen encoder with 50 positives, and of test rows."""
    task = rows_of(name, folder, seed, 0, 1000, 50)
    encoder = skdice.TransformerFeatures()
    X, X_test = (encoder.fit_transform(part[0]) for part in (task.train, task.test))
    y, y_test = (
        np.array([label == task.pos_label for label in part[1]]).astype(int)
        for part in (task.train, task.test)
    )
    return X, X_test, y, y_test


PARTS: dict[str, Any] = {
    "rate": (jobs_of_rate, run_rate),
    "numbers": (jobs_of_numbers, run_numbers),
    "shares": (jobs_of_shares, run_numbers),
}


# ---- what they say


def show() -> None:
    """Print the tables, and write them into the page."""
    page = PAGE.read_text()
    tables = {"batches and rates": lines_of_rates(), "batches of numbers": lines_of_numbers()}
    tables["shares of numbers"] = lines_of_shares()
    for name, made in tables.items():
        text = "\n".join(made)
        print(text, end="\n\n")
        page = replaced(page, name, text, "small_batches.py")
    PAGE.write_text(page)


FIGURES = ("f1", "ap")


def shown(found: dict[str, Any] | None) -> str:
    """F1, and average precision where it was measured."""
    if found is None:
        return ""
    return " / ".join(f"{found[name]:.1f}" for name in FIGURES if name in found)


def lines_of_rates() -> Iterator[str]:
    """Of each batch and rate the means over clean and noisy rows and seeds."""
    fits: dict[Any, dict[Any, Any]] = defaultdict(lambda: defaultdict(list))
    for record in records():
        job = record["job"]
        if job["part"] == "rate":
            fits[job["batch"], job["factor"]][job.get("rows", job["data"])].append(record)
    names = {**TEXTS, **TAGS, MANY: f"anger, {MANY:,} rows"}
    yield f"| batch | rate | fits | mean F1 of five | {' | '.join(names.values())} |"
    yield "|---:|---:|---:|---:" + "|---:" * len(names) + "|"
    for size, factor in sorted(fits, key=lambda way: (way[0], -way[1])):
        groups = fits[size, factor]
        five = np.mean(
            [found["f1"] for name in names if name != MANY if (found := mean(groups[name]))]
        )
        n_fits, rate = sum(map(len, groups.values())), "" if factor == 1 else f"x {factor:.3g}"
        columns = [shown(mean(groups[name])) for name in names]
        yield f"| {size} | {rate} | {n_fits} | {five:.1f} | {' | '.join(columns)} |"


def lines_of_numbers() -> Iterator[str]:
    """Of each set and batch the means over seeds, and over the sets of a kind."""
    fits: dict[Any, list[Any]] = defaultdict(list)
    for record in records():
        job = record["job"]
        if job["part"] == "numbers":
            kind = "vectors" if job["data"] in VECTORS else "numbers"
            for name in (job["data"], kind):
                fits[name, job["batch"], job["loss"]].append(record)
    yield f"| data | batch | rows in it | {' | '.join(f'`{loss}`' for loss in LOSSES)} |"
    yield "|---|---:|---:" + "|---:" * len(LOSSES) + "|"
    of_numbers, of_vectors = "**mean of the eight**", "**mean of the five**"
    names = {**{name: name for name in EIGHT}, "numbers": of_numbers}
    names |= {**VECTORS, "vectors": of_vectors}
    for (name, title), size in product(names.items(), (32, 256, "auto")):
        found = [fits.get((name, size, loss), []) for loss in LOSSES]
        if not any(found):
            continue
        rows = {int(record["rows"]) for group in found for record in group}
        rows = f"{rows.pop():,}" if len(rows) == 1 else ""
        columns = [shown(mean(group)) for group in found]
        yield f"| {title} | {size} | {rows} | {' | '.join(columns)} |"


def lines_of_shares() -> Iterator[str]:
    """Of each setting its F1 and average precision, less those of `ce`: mean and worst set."""
    fits: dict[Any, dict[Any, list[Any]]] = defaultdict(lambda: defaultdict(list))
    for record in records():
        job = record["job"]
        if job["part"] == "shares":
            fits[job["setting"]][job["data"]].append(record)
    yield f"| setting | mean | worst | {' | '.join(EIGHT)} |"
    yield "|---|---:|---:" + "|---:" * len(EIGHT) + "|"
    of_ce = {name: mean(group) for name, group in fits["`ce`"].items()}
    for setting, sets in fits.items():
        found = {name: mean(group) for name, group in sets.items()}
        gains = {
            figure: [found[n][figure] - of_ce[n][figure] for n in EIGHT if figure in found[n]]
            for figure in FIGURES
        }
        both = [
            " / ".join(f"{f(gains[figure]):+.1f}" for figure in FIGURES) for f in (np.mean, min)
        ]
        columns = [shown(found[name]) for name in EIGHT]
        yield f"| {setting} | {' | '.join(both)} | {' | '.join(columns)} |"


def mean(group: list[Any]) -> dict[str, float] | None:
    known = {name: [each[name] for each in group if name in each] for name in FIGURES}
    return {name: 100 * np.mean(values) for name, values in known.items() if values} or None


if __name__ == "__main__":
    main()
