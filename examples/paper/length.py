"""How many passes over clean and over noisy rows a fit should make.

    python length.py run --data FOLDER --workers 2 --hours 8 --out results/length.jsonl
    python length.py show                           # the table into the appendix

A cell is a data set with 100, 400 or 2,000 training rows. Of texts some labels are flipped, and of
tagged sentences some entities are not labelled. Each fit of `PASSES`, and that of the rule, trains
on all of them. Test rows are as they are.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import tasks
from pages import replaced
from run import (
    HERE,
    add_common,
    add_runs,
    common_of,
    core_hours,
    described,
    environment,
    finish_or_exit,
    key,
    read,
)

from skdice.engine.recipe import RATE_OF_LEAST, choose_epochs
from skdice.tags.schemes import get_spans

RESULTS = HERE / "results" / "length.jsonl"
CELLS = {
    "sms": "SMS",
    "clinc_rare": "CLINC, one intent",
    "mrpc": "MRPC",
    "wnut17_person": "WNUT17, a person",
    "wnut17_product": "WNUT17, a product",
    "wnut17": "WNUT17, tags",
    "bc5cdr": "BC5CDR, tags",
}
TAGS = ("wnut17", "bc5cdr")
# Shares of flipped labels, or of entities without one; those of WNUT17 are hard as they are.
FLIPPED = {"sms": (0.0, 0.05, 0.1), "clinc_rare": (0.0, 0.05, 0.1), "mrpc": (0.0, 0.1)}
FLIPPED |= dict.fromkeys(TAGS, (0.0, 0.05))
# The last is that of `choose_epochs` without a look at the classes.
PASSES = {100: (3, 10, 30), 400: (3, 10, 30), 2000: (3, 8)}
TEST_ROWS = 2000
# What a job of the grid of `recipe.py` says; others have further ingredients.
OF_RECIPE = {
    *("task", "seed", "precision", "train_rows", "dev_rows", "test_rows", "batch_size", "keep"),
    *("loss", "start", "lr", "max_epochs"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("command", choices=["run", "list", "show"])
    parser.add_argument("--data", type=Path, help="folder of the data sets")
    parser.add_argument("--cells", nargs="+", choices=CELLS, default=list(CELLS))
    parser.add_argument("--flipped", nargs="+", type=float, default=[0.0, 0.05, 0.1])
    parser.add_argument("--sizes", nargs="+", type=int, default=list(PASSES))
    parser.add_argument(
        "--passes", nargs="+", type=int, help="some of the grid's only; 0: the rule"
    )
    parser.add_argument("--losses", nargs="+", default=["ce_dice"])
    add_runs(parser, seeds=2)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--page", type=Path, default=HERE.parent.parent / "docs" / "experiments.md")
    add_common(parser)
    args = parser.parse_args()
    args.probabilities = None
    if args.command == "show":
        show(args)
        return
    if args.command == "list":
        jobs = list(missing_jobs(args, read(args.out)))
        print(*map(key, jobs), f"{len(jobs)} fits", sep="\n")
        return
    finish_or_exit(partial(missing_jobs, args), args, run)


# ---- what to run


def missing_jobs(args: Any, records: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """What has not run yet, seed by seed."""
    done = {key(record["job"]) for record in records}
    for seed in range(args.first_seed, args.first_seed + args.seeds):
        for size in args.sizes:
            for cell in args.cells:
                for job in jobs_of(args, cell, size, seed):
                    if key(job) not in done:
                        yield job


def jobs_of(args: Any, cell: str, size: int, seed: int) -> Iterator[dict[str, Any]]:
    """The fits of a cell."""
    for share in FLIPPED.get(cell, (0.0,)):
        if share in args.flipped:
            for loss in args.losses:
                job = {"task": cell, "seed": seed, **common_of(vars(args)), "loss": loss}
                job |= {"train_rows": size, "test_rows": TEST_ROWS, "flipped": share}
                for passes in (*PASSES[size], 0):
                    if not args.passes or passes in args.passes:
                        yield {**job, "max_epochs": passes or of_rule(args.data, job)}


def of_rule(folder: Path, job: dict[str, Any], rate: float = RATE_OF_LEAST) -> int:
    """The passes that `fit` chooses."""
    n_rare = rare_rows(folder, job["task"], job["seed"], job["train_rows"], job.get("flipped", 0.0))
    return choose_epochs(job["train_rows"], 32, n_rare, rate)


@cache  # a run asks again after each fit
def rare_rows(folder: Path, name: str, seed: int, n_rows: int, share: float) -> int | None:
    """Training rows of the rarer class of a cell; None of tags."""
    job = {"task": name, "seed": seed, "train_rows": n_rows, "test_rows": 1, "flipped": share}
    task = prepared(folder, job)
    return None if task.kind == "tags" else min(Counter(task.train[1]).values())


# ---- one run


def run(job: dict[str, Any], folder: Path, threads: int, _: Any = None) -> dict[str, Any]:
    """Fit one model and say what test rows say of it."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    import torch
    from transformers.utils import logging

    import skdice

    logging.disable_progress_bar()
    warnings.simplefilter("ignore")
    torch.set_num_threads(threads)
    task = prepared(folder, job)
    of_fit = ("loss", "lr", "max_epochs", "precision", "backbone")
    params = {name: job[name] for name in of_fit if name in job}
    model: Any
    if task.kind == "tags":
        model = skdice.DiceTokenClassifier(random_state=job["seed"], **params)
    else:
        params["pos_label"] = task.pos_label
        model = skdice.DiceSequenceClassifier(random_state=job["seed"], **params)
    started, of_cpu = time.perf_counter(), time.process_time()
    model.fit(*task.train)
    record = {"job": job, "loss": described(job)}
    record |= {"seconds": round(time.perf_counter() - started, 1)}
    record |= {"cpu_seconds": round(time.process_time() - of_cpu, 1), **environment()}
    record["history"] = [{"train_loss": epoch["train_loss"]} for epoch in model.history_]
    record["lr"] = model.history_[-1]["peak_lr"]
    if task.pos_label is not None:
        record["positives"] = {
            part: getattr(task, part)[1].count(task.pos_label) for part in ("train", "test")
        }
    return record | {"test": figures(task, model, *task.test)}


def prepared(folder: Path, job: dict[str, Any]) -> tasks.Task:
    """The rows of a cell, of which some have another label."""
    loaded = tasks.load(job["task"], folder, job["seed"])
    task = tasks.cell(loaded, {**job, "dev_rows": 1})
    share = job.get("flipped", 0.0)
    change = unlabelled if task.kind == "tags" else flipped
    return replace(task, train=change(task.train, share, job["seed"]) if share else task.train)


def flipped(
    part: tuple[list[Any], list[Any]], share: float, seed: int
) -> tuple[list[Any], list[Any]]:
    """Rows of two classes, a share of whose labels are the other one."""
    X, y = part
    one, other = sorted(set(y))
    hit = np.random.default_rng([seed, 7]).random(len(y)) < share
    swapped = {one: other, other: one}
    return X, [swapped[label] if h else label for label, h in zip(y, hit, strict=True)]


def unlabelled(
    part: tuple[list[Any], list[Any]], share: float, seed: int
) -> tuple[list[Any], list[Any]]:
    """Tagged sentences, a share of whose entities are background."""
    draw = np.random.default_rng([seed, 7])
    X, y = part
    tags = [list(row) for row in y]
    for row in tags:
        for _, start, end in get_spans(row):
            if draw.random() < share:
                row[start:end] = ["O"] * (end - start)
    return X, tags


def figures(task: tasks.Task, model: Any, X: list[Any], y: list[Any]) -> dict[str, float]:
    """What is measured of a task's test rows, between 0 and 1 but for losses."""
    if task.pos_label is not None:
        found = of_two_classes(task, model, X, y)
    elif task.name in TAGS:  # entities
        found = {"f1": model.score(X, y)}
    else:
        found = of_many_classes(model, X, y)
    return {name: round(float(value), 5) for name, value in found.items()}


def of_many_classes(model: Any, X: list[Any], y: list[Any]) -> dict[str, float]:
    """Accuracy and macro F1, of texts or of words."""
    from sklearn.metrics import accuracy_score, f1_score

    predicted = model.predict(X)
    if isinstance(y[0], list):
        y, predicted = (list(chain.from_iterable(rows)) for rows in (y, predicted))
    macro = f1_score(y, predicted, average="macro", zero_division=0)
    return {"accuracy": accuracy_score(y, predicted), "f1": macro}


def of_two_classes(task: tasks.Task, model: Any, X: list[Any], y: list[Any]) -> dict[str, float]:
    """F1 at one half and at the best threshold, average precision, and three log-losses."""
    from sklearn.metrics import average_precision_score, f1_score, precision_recall_curve

    truth = np.array([label == task.pos_label for label in y])
    proba = model.predict_proba(X)[:, list(model.classes_).index(task.pos_label)]
    precision, recall, _ = precision_recall_curve(truth, proba)
    best = np.max(2 * precision * recall / np.maximum(precision + recall, 1e-12))
    margins = np.log(np.clip(proba, 1e-7, 1)) - np.log(np.clip(1 - proba, 1e-7, 1))
    return {
        "f1": f1_score(truth, proba > 0.5, zero_division=0),
        "best_f1": best,
        "average_precision": average_precision_score(truth, proba),
        "log_loss": log_loss(margins, truth),
        "calibrated_log_loss": calibrated(margins, truth),
    }


def log_loss(margins: np.ndarray, truth: np.ndarray) -> float:
    return float(np.mean(np.logaddexp(0, np.where(truth, -margins, margins))))


def calibrated(margins: np.ndarray, truth: np.ndarray) -> float:
    """The log-loss with the best temperature and bias."""
    from scipy.optimize import minimize

    def of(params: np.ndarray) -> float:
        return log_loss(np.exp(params[0]) * margins + params[1], truth)

    return float(minimize(of, np.zeros(2), method="Nelder-Mead").fun)


# ---- what they say


def show(args: Any) -> None:
    """Print the tables, and write them into the page."""
    records = read(args.out)
    page, machines = args.page.read_text(), Counter(record["device"] for record in records)
    print(f"{len(records)} fits, {core_hours(records):.1f} core-hours: {dict(machines)}")
    of_recipe = read(HERE / "results" / "recipe.jsonl")
    for name, made in (("length", lines(records)), ("clean labels", clean_lines(of_recipe))):
        text = "\n".join(made)
        print(text, end="\n\n")
        page = replaced(page, f"{name} of fits", text, "length.py")
    args.page.write_text(page)


def lines(records: list[dict[str, Any]]) -> Iterator[str]:
    """For each cell: the figures of the longest fit, of that of the rule, and of the best."""
    yield (
        "| data | noise | rows | of the rarer class | seeds | passes: longest, rule | "
        "F1: longest | rule | best length | average precision: longest | rule | best length |"
    )
    yield "|---|---:|---:|---:|---:|---:" + "|---:" * 6 + "|"
    rows: dict[bool, list[np.ndarray]] = {False: [], True: []}
    for (cell, share, size), seeds in sorted(by_cell(records).items(), key=place):
        grid = PASSES[size]
        whole = [each for each in seeds.values() if {each.rule, grid[-1]} <= each.figures.keys()]
        if not whole:
            continue
        means = [
            np.mean([each.figures[passes] for each in whole], axis=0)
            for passes in grid
            if all(passes in each.figures for each in whole)
        ]
        ours = np.mean([each.figures[each.rule] for each in whole], axis=0)
        table = np.array([means[-1], ours, np.max([*means, ours], axis=0)])
        if cell not in TAGS:
            rows[share > 0].append(table)
        compared = {each.precision[n] for each in whole for n in (each.rule, grid[-1])}
        title = CELLS[cell] + " *" * (len(compared) > 1)  # two machines
        rare, rule = ({getattr(each, name) for each in whole} for name in ("rare", "rule"))
        yield (
            f"| {title} | {share:.0%} | {size:,} | {joined(rare)} | {len(whole)} | "
            f"{grid[-1]}, {joined(rule)} | {numbers(table.T.ravel())} |"
        )
    for noisy, tables in rows.items():
        if tables:
            what = "flipped labels" if noisy else "labels as they are"
            means = numbers(np.mean(tables, axis=0).T.ravel())
            yield f"| mean of texts, {what} | | | | | | {means} |"
    lost = np.array([table[2] - table[:2] for tables in rows.values() for table in tables])
    if len(lost):
        for what, of in (("mean", np.mean), ("most", np.max)):
            values = [f"{value:.1f}" for value in of(lost, axis=0).T.ravel()]
            cells = " | ".join([*values[:2], "", *values[2:], ""])
            yield f"| {what} behind the best, texts | | | | | | {cells} |"


def clean_lines(records: list[dict[str, Any]]) -> Iterator[str]:
    """Test F1 by the number of passes, of the grid of `recipe.py`."""
    found: dict[Any, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for record in records:
        job = record["job"]
        wanted = {"loss": "ce_dice", "lr": 1e-4, "batch_size": 32, "start": "zero"}
        of_texts = job["task"] in FLIPPED and job["task"] not in TAGS
        if of_texts and wanted.items() <= job.items() and set(job) == OF_RECIPE:
            passes = 10 if job["max_epochs"] == 8 else job["max_epochs"]
            f1 = 100 * record["plain"]["test"]["f1"]
            found[job["task"], job["train_rows"]][passes].append(f1)
    yield "| texts | rows | 3 passes | 8 or 10 | 30 |"
    yield "|---|---:|---:|---:|---:|"
    for (cell, size), by_passes in sorted(found.items(), key=by_name):
        cells = [f"{np.mean(by_passes[n]):.1f}" if n in by_passes else "" for n in (3, 10, 30)]
        yield f"| {CELLS[cell]} | {size:,} | {' | '.join(cells)} |"


def joined(values: set[Any]) -> str:
    return " or ".join(f"{value:.0f}" for value in sorted(values - {None}))


def numbers(values: Any) -> str:
    return " | ".join([*(f"{value:.1f}" for value in values), "", "", ""][:6])


@dataclass
class Fits:
    """The fits of one cell with one seed."""

    rule: int  # passes
    rare: int | None  # training rows of the rarer class
    figures: dict[int, np.ndarray] = field(default_factory=dict)  # by passes
    precision: dict[int, str] = field(default_factory=dict)


def by_cell(records: list[dict[str, Any]]) -> dict[Any, dict[int, Fits]]:
    """The fits of each cell, by seed.

    Where the same fit was made in fp32 on a CPU and in bf16 on a GPU, it is the latter's.
    """
    cells: dict[Any, dict[int, Fits]] = defaultdict(dict)
    for record in sorted(records, key=lambda record: record["job"]["precision"] == "bf16"):
        job, test = record["job"], record["test"]
        if job["loss"] != "ce_dice":
            continue
        size, rare = job["train_rows"], None
        if "positives" in record:
            rare = min(record["positives"]["train"], size - record["positives"]["train"])
        values = [100 * test[name] for name in ("f1", "average_precision") if name in test]
        seeds = cells[job["task"], job["flipped"], size]
        fits = seeds.setdefault(job["seed"], Fits(choose_epochs(size, 32, rare), rare))
        fits.figures[job["max_epochs"]] = np.array(values)
        fits.precision[job["max_epochs"]] = job["precision"]
    return cells


def by_name(cell: Any) -> tuple[int, int]:
    (name, size), _ = cell
    return list(CELLS).index(name), size


def place(cell: Any) -> tuple[bool, int, float, int]:
    """The order of the table: labels as they are first."""
    (name, share, size), _ = cell
    return share > 0, list(CELLS).index(name), share, size


if __name__ == "__main__":
    main()
