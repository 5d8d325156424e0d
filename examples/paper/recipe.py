"""What the rate and the number of epochs that `fit` chooses are worth beside a tuned grid.

    python recipe.py run --data FOLDER --workers 2 --hours 8 --out results/recipe.jsonl
    python recipe.py run --data FOLDER --sizes 100 400 --losses ce_dice   # a part of it
    python recipe.py list --sizes 100               # what is missing of a part, and its row-epochs
    python recipe.py show                           # tables into the appendix, and the picture

A cell is a data set with 100, 400 or 2,000 training rows. Its grid is `RATES` x `EPOCHS` as far as
rows x epochs stay under `MOST`. The highest rate is left out with 2,000 rows, because no cell with
fewer chose it. 300 development rows choose a row of the grid, and its F1 on the test rows minus
that of the default is the default's regret. Each setting is one fit, whose last weights are kept.
Training and development rows are drawn with the seed, test rows are fixed; at least 8 training
rows, 10 development rows and 100 test rows are positive where a data set has so many. `run.py`
says what a record holds.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from pages import replaced
from run import HERE, add_common, add_runs, common_of, core_hours, finish_or_exit, key, read

from skdice.engine.recipe import choose_epochs, choose_rate

RESULTS = HERE / "results" / "recipe.jsonl"
DOCS = HERE.parent.parent / "docs"
CELLS = {
    "wnut17": "WNUT17",
    "bc5cdr": "BC5CDR",
    "ud_en": "UD-EWT",
    "sms": "SMS",
    "clinc_rare": "CLINC, one intent",
    "mrpc": "MRPC",
}
TAGS = ("wnut17", "bc5cdr", "ud_en")
SIZES = (100, 400, 2000)
RATES = (1e-4, 3e-4, 1e-3)
EPOCHS = (3, 10, 30)
MOST = 20_000  # rows x epochs of a fit in the grid
ROWS_OF_HIGHEST = 400  # up to which the highest rate is in the grid
BATCH = 32
WIDTH = 384  # of the default backbone
LOSSES = ("ce_dice", "ce")
# Where the bias of the head begins, unless `--start` says otherwise.
START = {"ce": "log_prior"}
# Cross-entropy as other packages train it, from a bias of 0: their numbers in our engine.
OTHERS: dict[str, dict[str, Any]] = {
    "Trainer": {"lr": 5e-5, "max_epochs": 3, "batch_size": 8, "warmup": 0.0, "weight_decay": 0.0},
    "simpletransformers": {
        **{"lr": 4e-5, "max_epochs": 1, "batch_size": 8, "warmup": 0.06, "weight_decay": 0.0}
    },
}
OLD = {"lr": 1e-4, "max_epochs": 3}  # the numbers that `fit` had before it chose


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("command", choices=["run", "list", "show"])
    parser.add_argument("--data", type=Path, help="folder of the data sets")
    parser.add_argument("--cells", nargs="+", choices=CELLS, default=list(CELLS))
    parser.add_argument("--sizes", nargs="+", type=int, default=list(SIZES))
    parser.add_argument("--losses", nargs="+", default=list(LOSSES))
    parser.add_argument("--rates", nargs="+", type=float, default=list(RATES))
    parser.add_argument("--epochs", nargs="+", type=int, default=list(EPOCHS))
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=list(ROWS))
    parser.add_argument("--batch-size", type=int, default=BATCH, help="of grid and default")
    parser.add_argument("--start", choices=["zero", "log_prior"], help="of all losses alike")
    parser.add_argument("--dev-rows", type=int, default=300)
    parser.add_argument("--test-rows", type=int, default=2000)
    add_runs(parser, seeds=1)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--page", type=Path, default=DOCS / "experiments.md")
    parser.add_argument("--picture", type=Path, default=DOCS / "images" / "recipe.svg")
    add_common(parser)
    args = parser.parse_args()
    args.probabilities = None
    if args.command == "show":
        show(args)
        return
    missing = partial(missing_jobs, args)
    if args.command == "list":
        jobs = list(missing(read(args.out)))
        work = sum(job["train_rows"] * job["max_epochs"] for job in jobs)
        print("\n".join(map(key, jobs)), f"{len(jobs)} fits, {work:,} row-epochs", sep="\n")
        return
    finish_or_exit(missing, args)


# ---- what to run

ROWS = ("grid", "auto", *OTHERS)


def job(args: Any, cell: str, size: int, loss: str, seed: int, **settings: Any) -> dict[str, Any]:
    """All that a run depends on."""
    return {
        "task": cell,
        "seed": seed,
        **common_of(vars(args)),
        **{"train_rows": size, "dev_rows": args.dev_rows, "test_rows": args.test_rows},
        **{"batch_size": args.batch_size, "keep": "last"},
        **{"loss": loss, "start": args.start or START.get(loss, "zero")},
        **settings,
    }


def grid_of(size: int, args: Any) -> list[dict[str, Any]]:
    """Rates and epochs of the grid."""
    return [
        {"lr": lr, "max_epochs": epochs}
        for epochs in args.epochs
        for lr in args.rates
        if size * epochs <= MOST and (lr < max(RATES) or size <= ROWS_OF_HIGHEST)
    ]


def jobs_of(
    row: str, args: Any, cell: str, size: int, loss: str, seed: int
) -> list[dict[str, Any]]:
    """The jobs of a row: one, or those of the grid."""
    if row in OTHERS:
        return [job(args, cell, size, "ce", seed, **{"start": "zero", **OTHERS[row]})]
    if row == "grid":
        return [job(args, cell, size, loss, seed, **settings) for settings in grid_of(size, args)]
    # What the package would choose.
    rate = choose_rate(WIDTH, two_classes=cell not in TAGS)
    epochs = choose_epochs(size, args.batch_size)
    return [job(args, cell, size, loss, seed, lr=rate, max_epochs=epochs)]


def missing_jobs(args: Any, records: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """What has still to run, small cells first; rows with the same settings share a run."""
    done = {key(record["job"]) for record in records}
    for seed in seeds(args):
        for size in args.sizes:
            for loss in args.losses:
                for row in args.rows:
                    for cell in args.cells:
                        for wanted in jobs_of(row, args, cell, size, loss, seed):
                            if key(wanted) not in done:
                                done.add(key(wanted))
                                yield wanted


def seeds(args: Any) -> range:
    return range(args.first_seed, args.first_seed + args.seeds)


# ---- what the records say


def runs(records: Iterable[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {key(record["job"]): record for record in records}


def f1(record: dict[str, Any], part: str = "test") -> float:
    return 100 * float(record["plain"][part]["f1"])


def chosen(done: dict[str, Any], args: Any, *cell: Any) -> dict[str, Any] | None:
    """The record of the grid that the development rows choose; None before all have run."""
    grid = [done.get(key(wanted)) for wanted in jobs_of("grid", args, *cell)]
    if not grid or None in grid:
        return None
    return max((record for record in grid if record), key=lambda record: f1(record, "dev"))


def regrets(
    done: dict[str, Any], args: Any, row: str, loss: str
) -> dict[tuple[str, int], list[tuple[float, float]]]:
    """By cell, for each seed: the regret, and the ratio of the passes, which is that of the times.

    Both rows have batches of one size. Times themselves are of different machines.
    """
    found: dict[tuple[str, int], list[tuple[float, float]]] = {}
    for cell in args.cells:
        for size in args.sizes:
            for seed in seeds(args):
                best = chosen(done, args, cell, size, loss, seed)
                ours = done.get(key(jobs_of(row, args, cell, size, loss, seed)[0]))
                if best and ours:
                    ratio = ours["job"]["max_epochs"] / best["job"]["max_epochs"]
                    found.setdefault((cell, size), []).append((f1(best) - f1(ours), ratio))
    return found


def show(args: Any) -> None:
    """Print the tables, write them into the page, and draw the picture."""
    records = read(args.out)
    done, page = runs(records), args.page.read_text()
    machines = Counter(record["device"] for record in records)
    print(f"{len(records)} fits, {core_hours(records):.1f} core-hours: {dict(machines)}")
    for loss in args.losses:
        text = "\n".join(regret_lines(done, args, loss))
        print(f"\n{loss}\n\n{text}")
        page = replaced(page, f"regrets of {loss}", text, "recipe.py")
    args.page.write_text(page)
    picture(records, args, args.picture)


def regret_lines(done: dict[str, Any], args: Any, loss: str) -> Iterator[str]:
    """For each cell: what development rows choose in the grid, and the regrets."""
    found = {row: regrets(done, args, row, loss) for row in ROWS if row != "grid"}
    titles = {"auto": "regret of the default", **{name: f"of {name}" for name in OTHERS}}
    yield (
        "| data set | rows | seeds | chosen | its F1 | "
        + " | ".join(titles[row] for row in found)
        + " | passes of the default / chosen |"
    )
    yield "|---|---:|---:|---|---:" + "|---:" * (len(found) + 1) + "|"
    of_default = found["auto"]
    for cell, size in of_default:
        tuned = [
            record for seed in seeds(args) if (record := chosen(done, args, cell, size, loss, seed))
        ]
        row = [CELLS[cell], f"{size:,}", str(len(of_default[cell, size]))]
        row += ["; ".join(dict.fromkeys(setting(record["job"]) for record in tuned))]
        row += [f"{np.mean([f1(record) for record in tuned]):.1f}"]
        row += [mean(found[name].get((cell, size)), 0) for name in found]
        yield "| " + " | ".join([*row, mean(of_default[cell, size], 1)]) + " |"
    for title, summary in (("mean", np.mean), ("worst", np.max)):
        figures = []
        for name in found:
            values = [np.mean([regret for regret, _ in pairs]) for pairs in found[name].values()]
            figures.append(f"**{summary(values):.1f}**" if values else "")
        yield "| " + " | ".join([title, "", "", "", "", *figures, ""]) + " |"


def setting(job: dict[str, Any]) -> str:
    return f"{job['lr']:g}, {job['max_epochs']} passes"


def mean(pairs: list[tuple[float, float]] | None, which: int) -> str:
    return "" if not pairs else f"{np.mean([pair[which] for pair in pairs]):z.1f}"


# ---- the picture

LINES = {
    "best": ("the grid's row that development rows choose", "#444444", "o", "-"),
    "auto": ("the default", "#d55e00", "D", "-"),
    "old": ("fixed: 1e-4, 3 epochs", "#0072b2", "s", "--"),
    "Trainer": ("Trainer's defaults", "#009e73", "^", ":"),
    "simpletransformers": ("simpletransformers' defaults", "#cc79a7", "v", ":"),
}


def picture(records: list[dict[str, Any]], args: Any, file: Path) -> None:
    """F1 against training rows: a panel for each data set, a row of panels for each loss."""
    import matplotlib.pyplot as plt
    from report import save

    done, n_rows = runs(records), len(args.losses)
    figure, axes = plt.subplots(
        n_rows, len(args.cells), figsize=(2.2 * len(args.cells), 2.4 * n_rows + 0.6), squeeze=False
    )
    handles: dict[str, Any] = {}
    for loss, panels in zip(args.losses, axes, strict=True):
        for cell, ax in zip(args.cells, panels, strict=True):
            for name, (label, color, marker, line) in LINES.items():
                curve = dict(points(done, args, name, cell, loss))
                if curve:
                    style = {"color": color, "marker": marker, "linestyle": line, "markersize": 4}
                    (handles[label],) = ax.plot(list(curve), list(curve.values()), **style)
            ax.set_xscale("log")
            ax.set_xticks(args.sizes, [f"{size:,}" for size in args.sizes], fontsize=7)
            ax.minorticks_off()
            ax.tick_params(axis="y", labelsize=7)
            ax.grid(alpha=0.3)
            ax.set_title(f"{CELLS[cell]}, {loss}", fontsize=8)
        panels[0].set_ylabel("F1 on test")
    for ax in axes[-1]:
        ax.set_xlabel("training rows", fontsize=8)
    figure.legend(handles.values(), handles, loc="lower center", ncols=3, fontsize=8, frameon=False)
    figure.tight_layout(rect=(0, 0.14 / n_rows, 1, 1))
    save(figure, file)
    print(f"\n{file}")


def points(
    done: dict[str, Any], args: Any, name: str, cell: str, loss: str
) -> Iterator[tuple[int, float]]:
    """Rows and the mean F1 over seeds."""
    for size in args.sizes:
        found = []
        for seed in seeds(args):
            if name == "best":
                record = chosen(done, args, cell, size, loss, seed)
            elif name == "old":
                record = done.get(key(job(args, cell, size, loss, seed, **OLD)))
            else:
                record = done.get(key(jobs_of(name, args, cell, size, loss, seed)[0]))
            if record:
                found.append(f1(record))
        if found:
            yield size, float(np.mean(found))


if __name__ == "__main__":
    main()
