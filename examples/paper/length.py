"""How many passes over clean and over noisy rows a fit should make.

    python length.py run --data FOLDER --workers 2 --hours 8 --out results/length.jsonl
    python length.py show                           # the table into the appendix

A cell is a data set with 100, 400 or 2,000 training rows, or 200 or 3,000 with as many positives
as `MADE` says. Of texts a tenth of the positives and as
many negatives have each other's label, and of tagged sentences some entities are not labelled. Test
rows are as they are.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cache, partial
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

from skdice.engine.recipe import (
    LEAST_EPOCHS,
    LEAST_UPDATES,
    MOST_EPOCHS,
    RARE_ROWS,
    RATE_OF_LEAST,
    UPDATES,
    choose_epochs,
)
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
# Shares of wrong positives, or of entities without a label.
WRONG = {cell: (0.0, 0.05) if cell in TAGS else (0.0, 0.1) for cell in CELLS}
# The last is that of `choose_epochs` without a look at the classes.
PASSES = {100: (3, 10, 30), 200: (3, 10, 20), 400: (3, 10, 30), 2000: (3, 8), 3000: (3, 9)}
# Of these sizes, the cells that are made, with their number of positives.
MADE = {200: {"sms": 100}, 3000: {"clinc_rare": 58}}
TEST_ROWS = 2000
# A fit of three passes at least ends after so many rows of the rarer class, and so many updates.
# The first is what `fit` does.
RULES: dict[str, tuple[float, int]] = {
    f"{RARE_ROWS} of the rarer class, {LEAST_UPDATES} updates": (RARE_ROWS, LEAST_UPDATES),
    "100 of the rarer class, 100 updates": (100, 100),
    "300 of the rarer class, 40 updates": (300, 40),
    "100 updates": (0, 100),
    "3 passes": (0, 0),
}
RULE = next(iter(RULES))
ENOUGH = 30  # rows of the rarer class, from which the worst regret counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("command", choices=["run", "list", "show"])
    parser.add_argument("--data", type=Path, help="folder of the data sets")
    parser.add_argument("--cells", nargs="+", choices=CELLS, default=list(CELLS))
    parser.add_argument("--wrong", nargs="+", type=float, default=[0.0, 0.05, 0.1])
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
    if size in MADE and cell not in MADE[size]:
        return
    for share in WRONG[cell]:
        if share in args.wrong:
            for loss in args.losses:
                job = {"task": cell, "seed": seed, **common_of(vars(args)), "loss": loss}
                job |= {"train_rows": size, "test_rows": TEST_ROWS, "wrong": share}
                for passes in (*PASSES[size], 0):
                    if not args.passes or passes in args.passes:
                        yield {**job, "max_epochs": passes or of_rule(args.data, job)}


def of_rule(folder: Path, job: dict[str, Any], rate: float = RATE_OF_LEAST) -> int:
    """The passes that `fit` chooses."""
    n_rare = rare_rows(folder, job["task"], job["seed"], job["train_rows"], job.get("wrong", 0.0))
    return choose_epochs(job["train_rows"], 32, n_rare, rate)


@cache  # a run asks again after each fit
def rare_rows(folder: Path, name: str, seed: int, n_rows: int, share: float) -> int | None:
    """Training rows of the rarer class of a cell; None of tags."""
    job = {"task": name, "seed": seed, "train_rows": n_rows, "test_rows": 1, "wrong": share}
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
    record["lr"] = model.lr_
    if task.pos_label is not None:
        record["positives"] = {
            part: getattr(task, part)[1].count(task.pos_label) for part in ("train", "test")
        }
    return record | {"test": figures(task, model, *task.test)}


def prepared(folder: Path, job: dict[str, Any]) -> tasks.Task:
    """The rows of a cell, of which some have another label."""
    loaded = tasks.load(job["task"], folder, job["seed"])
    if made := MADE.get(job["train_rows"]):
        X, y = loaded.train
        order = np.random.default_rng(job["seed"]).permutation(len(y))
        rare, n_rare = np.array([y[i] == loaded.pos_label for i in order]), made[job["task"]]
        order = np.concatenate([order[rare][:n_rare], order[~rare][: job["train_rows"] - n_rare]])
        loaded = replace(loaded, train=([X[i] for i in order], [y[i] for i in order]))
    task = tasks.cell(loaded, {**job, "dev_rows": 1})
    share = job.get("wrong", 0.0)
    if not share:
        return task
    if task.kind == "tags":
        return replace(task, train=unlabelled(task.train, share, job["seed"]))
    return replace(task, train=exchanged(task.train, share, task.pos_label, job["seed"]))


def exchanged(
    part: tuple[list[Any], list[Any]], share: float, pos_label: Any, seed: int
) -> tuple[list[Any], list[Any]]:
    """Rows of two classes; a share of the positives and as many negatives change their labels."""
    X, y = part
    draw, positive = np.random.default_rng([seed, 7]), np.array([label == pos_label for label in y])
    n_wrong, changed = max(round(share * positive.sum()), 1), list(y)
    hit = [draw.permutation(np.flatnonzero(rows))[:n_wrong] for rows in (positive, ~positive)]
    for here, there in zip(*hit, strict=True):
        changed[here], changed[there] = y[there], y[here]
    return X, changed


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
    found = {"f1": model.score(X, y)} if task.name in TAGS else of_two_classes(task, model, X, y)
    return {name: round(float(value), 5) for name, value in found.items()}


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
    cells = by_cell(records)
    for name, made in (("length", lines(cells)), ("rules for the length", rule_lines(cells))):
        text = "\n".join(made)
        print(text, end="\n\n")
        page = replaced(page, f"{name} of fits", text, "length.py")
    args.page.write_text(page)


@dataclass
class Cell:
    """The fits of one data set, number of rows and share of wrong labels."""

    task: str
    wrong: float
    size: int
    rare: list[int] = field(default_factory=list)  # training rows of the rarer class, by fit
    scores: dict[int, dict[int, np.ndarray]] = field(default_factory=dict)  # by passes and seed

    def means(self) -> dict[int, np.ndarray]:
        """F1 and, of texts, average precision by passes: means over the seeds that all have."""
        n_seeds = max(map(len, self.scores.values()))
        kept = {n: each for n, each in self.scores.items() if len(each) == n_seeds}
        return {n: np.mean(list(each.values()), axis=0) for n, each in sorted(kept.items())}

    def regret(self, rule: tuple[float, int]) -> np.ndarray | None:
        """What the fit nearest to a rule's loses to the best; None if none that is near has run."""
        means, wanted = self.means(), passes_of(rule, self.size, self.rare)
        nearest = min(means, key=lambda n: abs(np.log(n / wanted)))
        if not 0.5 < nearest / wanted < 2:
            return None
        return np.max(list(means.values()), axis=0) - means[nearest]


def passes_of(rule: tuple[float, int], size: int, rare: list[int]) -> float:
    """The passes that a rule makes; see `choose_epochs`."""
    updates = -(-size // 32)
    many = UPDATES / updates
    if rare:
        many = min(many, max(rule[0] / np.mean(rare), rule[1] / updates))
    return min(max(many, LEAST_EPOCHS), MOST_EPOCHS)


def by_cell(records: list[dict[str, Any]]) -> list[Cell]:
    """The fits of each cell, cells without wrong labels first.

    Where the same fit was made in fp32 on a CPU and in bf16, it is the latter.
    """
    cells: dict[Any, Cell] = {}
    for record in sorted(records, key=lambda record: record["job"]["precision"] == "bf16"):
        job, test = record["job"], record["test"]
        if job["loss"] != "ce_dice":
            continue
        of = job["task"], job["wrong"], job["train_rows"]
        cell = cells.setdefault(of, Cell(*of))
        if "positives" in record:
            positives = record["positives"]["train"]
            cell.rare.append(min(positives, cell.size - positives))
        values = [100 * test[name] for name in ("f1", "average_precision") if name in test]
        cell.scores.setdefault(job["max_epochs"], {})[job["seed"]] = np.array(values)
    return sorted(cells.values(), key=place)


def lines(cells: list[Cell]) -> Iterator[str]:
    """F1 and average precision of each cell by the number of passes."""
    yield (
        "| data | wrong | rows | of the rarer class | seeds | passes of `fit` | "
        "F1 (average precision) by the number of passes |"
    )
    yield "|---|---:|---:|---:|---:|---:|---|"
    for cell in cells:
        rare = " or ".join(str(n) for n in sorted(set(cell.rare)))
        n_seeds, found = max(map(len, cell.scores.values())), []
        for passes, (f1, *others) in cell.means().items():
            precision = "".join(f" ({value:.1f})" for value in others)
            found.append(f"{passes}: {f1:.1f}{precision}")
        yield (
            f"| {CELLS[cell.task]} | {cell.wrong:.0%} | {cell.size:,} | {rare} | {n_seeds} | "
            f"{passes_of(RULES[RULE], cell.size, cell.rare):.0f} | "
            f"{', '.join(found)} |"
        )


def rule_lines(cells: list[Cell]) -> Iterator[str]:
    """What each rule loses to the best length of a cell, in texts."""
    regrets: dict[int, list[Any]] = {}
    for cell in cells:
        found = [cell.regret(rule) for rule in RULES.values()]
        if cell.rare and all(regret is not None for regret in found):
            regrets[id(cell)] = found
    cells = [cell for cell in cells if id(cell) in regrets]
    groups = {
        "right labels": [cell for cell in cells if not cell.wrong],
        "wrong labels": [cell for cell in cells if cell.wrong],
    }
    groups = {f"{what} ({len(found)} cells)": found for what, found in groups.items() if found}
    enough = [cell for cell in cells if np.mean(cell.rare) >= ENOUGH]
    heads = [*groups, f"worst, {ENOUGH} of the rarer class or more ({len(enough)} cells)"]
    yield f"| a fit ends after | {' | '.join(heads)} |"
    yield "|---" + "|---:" * len(heads) + "|"
    for i, name in enumerate(RULES):
        values = [np.mean([regrets[id(c)][i] for c in of], axis=0) for of in groups.values()]
        values.append(np.max([regrets[id(c)][i] for c in enough], axis=0))
        texts = [f"{f1:.1f} ({precision:.1f})" for f1, precision in values]
        title = f"**{name}** (`fit`)" if name == RULE else name
        yield f"| {title} | {' | '.join(texts)} |"


def place(cell: Cell) -> tuple[bool, int, float, int]:
    """The order of the table: labels as they are first."""
    return cell.wrong > 0, list(CELLS).index(cell.task), cell.wrong, cell.size


if __name__ == "__main__":
    main()
