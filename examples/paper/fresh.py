"""What is lost by not tuning, on data sets on which no default was chosen.

    python fresh.py run --data FOLDER       # one fit after the other into results/fresh.jsonl
    python fresh.py list                    # the fits that are missing
    python fresh.py show                    # the table, also into docs/evidence.md

A cell is a data set with 100, 400 or 2,000 training rows and a seed. Three ways train on the same
rows: `fit` without settings, a grid of two rates and three lengths of which 500 other rows choose
one fit, and the Trainer of transformers with its own defaults. The regret of a way is F1 of the
chosen fit on the test rows less that of the way: micro F1 of spans, F1 of the rarer of two classes,
and macro F1 for SST-2 and for TREC's six types. `run.py` says what a record holds.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import tasks
from full import estimator
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
    scores,
)

RESULTS = HERE / "results" / "fresh.jsonl"
PAGE = HERE.parent.parent / "docs" / "evidence.md"
CELLS = {
    "ncbi": "NCBI-disease",
    "qqp_rare": "QQP, 5 % positive",
    "trec_place": "TREC, places",
    "sst2": "SST-2",
    "trec": "TREC, six types",
}
LARGE = ("ncbi", "qqp_rare")  # with 2,000 rows too
# Rows and seed, in an order that is balanced wherever it stops.
ORDER = [(400, 0), (100, 0), (2000, 0), (400, 1), (100, 1)]
RATES = (1e-4, 3e-4)
PASSES = {100: (3, 10, 30), 400: (3, 10, 30), 2000: (3, 8, 20)}
WAYS = {"fit": "`fit`", "Trainer": "Trainer"}
PARTS = {"dev_rows": 500, "test_rows": 2000}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("command", choices=["run", "list", "show"])
    parser.add_argument("--data", type=Path, help="folder of the data sets")
    parser.add_argument("--cells", nargs="+", choices=CELLS, default=list(CELLS))
    parser.add_argument("--sizes", nargs="+", type=int, default=list(PASSES))
    add_runs(parser, seeds=2)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--page", type=Path, default=PAGE)
    add_common(parser)
    args = parser.parse_args()
    args.probabilities = None
    missing = partial(missing_jobs, args)
    if args.command == "show":
        show(args)
    elif args.command == "list":
        jobs = list(missing(read(args.out)))
        print(*map(key, jobs), f"{len(jobs)} fits", sep="\n")
    else:
        finish_or_exit(missing, args, run)


# ---- what to run


def cells(args: Any) -> Iterator[tuple[str, int, int]]:
    """Data set, rows and seed."""
    for size, seed in ORDER:
        for cell in args.cells:
            if size in args.sizes and seed < args.seeds and (size < 2000 or cell in LARGE):
                yield cell, size, seed


def job(args: Any, cell: str, size: int, seed: int, **settings: Any) -> dict[str, Any]:
    """All that a fit depends on; without settings it is that of `fit`."""
    of = {"task": cell, "seed": seed, **common_of(vars(args)), "train_rows": size, **PARTS}
    return of | {"loss": "ce_dice", "way": "fit", **settings}


def of_trainer(args: Any, *cell: Any) -> dict[str, Any]:
    return job(args, *cell, loss="ce", way="Trainer", precision="fp32")


def grid(args: Any, cell: str, size: int, seed: int) -> list[dict[str, Any]]:
    return [
        job(args, cell, size, seed, way="grid", lr=rate, max_epochs=passes)
        for passes in PASSES[size]
        for rate in RATES
    ]


def missing_jobs(args: Any, records: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """What has still to run, cell by cell."""
    done = runs(records)
    for cell in cells(args):
        for wanted in (job(args, *cell), of_trainer(args, *cell), *grid(args, *cell)):
            if key(wanted) not in done:
                yield wanted


def runs(records: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The records by their jobs; a fit that chose a row of the grid is that row too."""
    done = {}
    for record in records:
        done[key(record["job"])] = record
        if record["job"]["way"] == "fit":
            chosen = {"way": "grid", "lr": record["lr"], "max_epochs": record["max_epochs"]}
            done.setdefault(key(record["job"] | chosen), record)
    return done


# ---- one fit


def run(of: dict[str, Any], folder: Path, threads: int, _: Any = None) -> dict[str, Any]:
    """Fit one model and score it on the development and test rows."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    import torch
    from transformers.utils import logging

    logging.disable_progress_bar()
    logging.set_verbosity_error()
    warnings.simplefilter("ignore")
    torch.set_num_threads(threads)
    started, of_cpu = time.perf_counter(), time.process_time()
    task = tasks.cell(tasks.load(of["task"], folder, 0, of.get("limit")), of)
    record: dict[str, Any] = {"job": of, "loss": described(of)}
    if of["way"] == "Trainer":
        from plain_trainer import PlainTrainer

        model: Any = PlainTrainer(task.kind, of["seed"], of.get("backbone")).fit(*task.train)
    else:
        model = estimator(task, of, folder).fit(*task.train)
        record |= {"lr": model.lr_, "max_epochs": model.max_epochs_}
    record["plain"] = {part: scores(task, model, getattr(task, part)) for part in ("dev", "test")}
    record["seconds"] = round(time.perf_counter() - started, 1)
    record["cpu_seconds"] = round(time.process_time() - of_cpu, 1)
    return record | environment()


# ---- what the records say


def f1(record: dict[str, Any], part: str = "test") -> float:
    return 100 * float(record["plain"][part]["f1"])


def chosen(done: dict[str, dict[str, Any]], args: Any, *cell: Any) -> dict[str, Any] | None:
    """The fit of the grid that the development rows choose; None before all have run."""
    found = [done.get(key(wanted)) for wanted in grid(args, *cell)]
    if None in found:
        return None
    return max((record for record in found if record), key=lambda record: f1(record, "dev"))


def show(args: Any) -> None:
    """Print the tables, and write them into the page."""
    records = read(args.out)
    machines = Counter(record["device"] for record in records)
    print(f"{len(records)} fits, {core_hours(records):.1f} core-hours: {dict(machines)}\n")
    page = args.page.read_text()
    for name, made in (
        ("regret", regrets(args, records)),
        ("regret by cell", lines(args, records)),
    ):
        text = "\n".join(made)
        print(f"{text}\n")
        page = replaced(page, name, text, "fresh.py")
    args.page.write_text(page)


def whole_cells(
    args: Any, records: list[dict[str, Any]]
) -> Iterator[tuple[tuple[str, int, int], dict[str, Any], dict[str, dict[str, Any]]]]:
    """Each cell of which all has run: the chosen fit, and that of each way."""
    done = runs(records)
    for cell in cells(args):
        best = chosen(done, args, *cell)
        ways = {
            "fit": done.get(key(job(args, *cell))),
            "Trainer": done.get(key(of_trainer(args, *cell))),
        }
        if best and None not in ways.values():
            yield cell, best, {way: record for way, record in ways.items() if record}


def regrets(args: Any, records: list[dict[str, Any]]) -> Iterator[str]:
    """Median and range of each way's regret, by rows; a data set counts with its seeds' mean."""
    by_set: dict[Any, list[float]] = defaultdict(list)
    for (cell, size, _), best, ways in whole_cells(args, records):
        for way, record in ways.items():
            by_set[way, size, cell].append(f1(best) - f1(record))
    yield (
        "| rows | data sets | " + " | ".join(f"regret of {title}" for title in WAYS.values()) + " |"
    )
    yield "|---:|---:" + "|---:" * len(WAYS) + "|"
    sizes = sorted({size for _, size, _ in by_set})
    for title, of in [*((f"{size:,}", [size]) for size in sizes), ("all", sizes)]:
        columns, n_sets = [], 0
        for way in WAYS:
            values = [
                statistics.mean(found)
                for (w, size, _), found in by_set.items()
                if w == way and size in of
            ]
            n_sets = len(values)
            columns.append(median_and_range(values))
        if n_sets:
            yield f"| {title} | {n_sets} | {' | '.join(columns)} |"


def median_and_range(values: list[float]) -> str:
    if not values:
        return ""
    return f"{statistics.median(values):z.1f} ({min(values):z.1f} to {max(values):z.1f})"


def lines(args: Any, records: list[dict[str, Any]]) -> Iterator[str]:
    """Every score of every cell."""
    yield "| data set | rows | seed | chosen | its F1 | by `fit` | F1 of `fit` | F1 of Trainer |"
    yield "|---|---:|---:|---|---:|---|---:|---:|"
    found = sorted(
        whole_cells(args, records), key=lambda row: (list(CELLS).index(row[0][0]), row[0][1:])
    )
    for (cell, size, seed), best, ways in found:
        ours = ways["fit"]
        yield (
            f"| {CELLS[cell]} | {size:,} | {seed} | {setting(best)} | {f1(best):.1f} | "
            f"{setting(ours)} | {f1(ours):.1f} | {f1(ways['Trainer']):.1f} |"
        )


def setting(record: dict[str, Any]) -> str:
    return f"{record['lr']:g}, {record['max_epochs']} passes"


if __name__ == "__main__":
    main()
