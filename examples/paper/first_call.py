"""The default loss by the task, and the default rate of a base-size encoder.

    python first_call.py run losses --data FOLDER --workers 2
    python full.py fetch --data FOLDER              # all-mpnet-base-v2, 440 MB, into FOLDER
    python first_call.py run base --data FOLDER --workers 2
    python first_call.py show                       # the tables into the pages

`losses` fits cross-entropy and the default on two classes, on many, and on tags, with all else as
`fit` chooses it. `base` fits 400 rows with an encoder of width 768 at three rates, each for as many
passes as `fit` chooses.
"""

from __future__ import annotations

import argparse
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import length
import numpy as np
from full import BASE
from pages import replaced
from run import HERE, add_common, add_runs, common_of, core_hours, finish_or_exit, key, read

from skdice.engine.recipe import choose_rate

RESULTS = HERE / "results" / "first_call.jsonl"
PAGES = [HERE.parent.parent / "docs" / f"{page}.md" for page in ("experiments", "evidence")]
CELLS: dict[str, tuple[str, tuple[int, ...]]] = {  # and training rows
    "clinc_20": ("CLINC, 20 intents", (400,)),
    "clinc_20_tail": ("CLINC, 20 intents of 60 to 4 rows", (400,)),
    "clinc_150": ("CLINC, 150 intents", (3000,)),
    "clinc_150_tail": ("CLINC, 150 intents of 60 to 4 rows", (3000,)),
    "ud_en": ("UD-EWT, parts of speech", (400, 2000)),
    **{name: (title, (400, 2000)) for name, title in length.CELLS.items()},
}
LOSSES = ("ce", "ce_dice")
BASE_CELLS = ("wnut17", "bc5cdr", "sms", "mrpc")
RATES = (2e-5, 5e-5, 1e-4)
WIDTH = 768


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("command", choices=["run", "list", "show"])
    parser.add_argument("tables", nargs="*", help="losses, base; both if there is none")
    parser.add_argument("--data", type=Path, help="folder of the data sets")
    add_runs(parser, seeds=3)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--pages", type=Path, nargs="+", default=PAGES)
    add_common(parser)
    args = parser.parse_args()
    args.probabilities = None
    if args.command == "show":
        show(args)
    elif args.command == "list":
        jobs = list(missing_jobs(args, read(args.out)))
        print(*map(key, jobs), f"{len(jobs)} fits", sep="\n")
    else:
        finish_or_exit(partial(missing_jobs, args), args, run)


# ---- what to run


def missing_jobs(args: Any, records: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """What has not run yet, seed by seed."""
    done = {key(record["job"]) for record in records}
    tables = {"losses": of_losses, "base": of_base}
    for name in args.tables or tables:
        for job in tables[name](args):
            if key(job) not in done:
                yield job


def of_losses(args: Any) -> Iterator[dict[str, Any]]:
    for seed in range(args.seeds):
        for cell, (_, sizes) in CELLS.items():
            for size in sizes:
                for loss in LOSSES:
                    yield job_of(args, cell, size, loss, seed)


def of_base(args: Any) -> Iterator[dict[str, Any]]:
    for cell in BASE_CELLS:
        for loss, rate in base_settings():
            job = job_of(args, cell, 400, loss, 0)
            passes = length.of_rule(args.data, job, base_rate())
            yield job | {"backbone": BASE, "lr": rate, "max_epochs": passes}


def job_of(args: Any, cell: str, size: int, loss: str, seed: int) -> dict[str, Any]:
    job = {"task": cell, "seed": seed, **common_of(vars(args)), "loss": loss}
    return job | {"train_rows": size, "test_rows": 5000}


def base_rate() -> float:
    return choose_rate(WIDTH, kind="mpnet")


def base_settings() -> list[tuple[str, float]]:
    """Losses and rates of the base-size encoder."""
    return [*(("ce_dice", rate) for rate in RATES), ("ce", base_rate())]


def run(job: dict[str, Any], folder: Path, threads: int, _: Any = None) -> dict[str, Any]:
    """Fit one model; a backbone is a folder beside the data sets."""
    given = job if "backbone" not in job else job | {"backbone": str(folder / job["backbone"])}
    return length.run(given, folder, threads) | {"job": job}


# ---- what they say


def show(args: Any) -> None:
    """Print the tables, and write them into the pages."""
    records = [r for r in read(args.out) if r["job"]["precision"] == args.precision]
    machines = Counter(record["device"] for record in records)
    print(f"{len(records)} fits, {core_hours(records):.1f} core-hours: {dict(machines)}")
    for name, made in (("loss by task", loss_lines(records)), ("base size", base_lines(records))):
        text = "\n".join(made)
        print(text, end="\n\n")
        for page in args.pages:
            page.write_text(replaced(page.read_text(), name, text, "first_call.py"))


def loss_lines(records: list[dict[str, Any]]) -> Iterator[str]:
    """For each cell: F1 with both losses, and the difference of each seed."""
    yield (
        "| data | rows | seeds | passes | F1: `ce` | `ce_dice` | difference of each seed | "
        "accuracy: `ce` | `ce_dice` | F1 at the best threshold: `ce` | `ce_dice` | "
        "average precision: `ce` | `ce_dice` |"
    )
    yield "|---|---:|---:|---:|---:|---:|---" + "|---:" * 6 + "|"
    found: dict[Any, dict[int, dict[str, Any]]] = defaultdict(lambda: defaultdict(dict))
    for record in records:
        job = record["job"]
        if "backbone" not in job:
            of_cell = found[job["task"], job["train_rows"]]
            of_cell[job["seed"]][job["loss"]] = record["test"] | {"n": len(record["history"])}
    for cell, (title, sizes) in CELLS.items():
        for size in sizes:
            pairs = [each for each in found[cell, size].values() if each.keys() >= set(LOSSES)]
            if not pairs:
                continue
            row = [title, f"{size:,}", f"{len(pairs)}"]
            row += [length.joined({each["ce"]["n"] for each in pairs}), *figures(pairs, "f1")]
            gains = [100 * (each["ce_dice"]["f1"] - each["ce"]["f1"]) for each in pairs]
            row += [", ".join(f"{gain:+z.1f}" for gain in gains)]
            for name in ("accuracy", "best_f1", "average_precision"):
                row += figures(pairs, name)
            yield "| " + " | ".join(row) + " |"


def figures(pairs: list[dict[str, Any]], name: str) -> list[str]:
    """The mean of a figure with both losses; nothing where a task has none of this name."""
    if name not in pairs[0]["ce"]:
        return ["", ""]
    return [f"{100 * np.mean([each[loss][name] for each in pairs]):.1f}" for loss in LOSSES]


def base_lines(records: list[dict[str, Any]]) -> Iterator[str]:
    """F1 of the base-size encoder by rate, and with cross-entropy."""
    settings = base_settings()
    heads = [f"`{loss}`, {rate:g}" for loss, rate in settings]
    yield "| data | passes | " + " | ".join(heads) + " |"
    yield "|---|---:" + "|---:" * len(settings) + "|"
    found: dict[str, dict[Any, float]] = defaultdict(dict)
    passes: dict[str, int] = {}
    for record in records:
        job = record["job"]
        if job.get("backbone") == BASE:
            found[job["task"]][job["loss"], job["lr"]] = 100 * record["test"]["f1"]
            passes[job["task"]] = job["max_epochs"]
    whole = [cell for cell in BASE_CELLS if found[cell].keys() >= set(settings)]
    for cell in whole:
        values = " | ".join(f"{found[cell][setting]:.1f}" for setting in settings)
        yield f"| {length.CELLS[cell]} | {passes[cell]} | {values} |"
    if whole:
        means = (np.mean([found[cell][setting] for cell in whole]) for setting in settings)
        yield "| mean | | " + " | ".join(f"{value:.1f}" for value in means) + " |"


if __name__ == "__main__":
    main()
