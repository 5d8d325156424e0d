"""Make the tables and charts from the finished runs.

    python report.py                     # every table that has runs, to results/tables.md
    python report.py --tables rivals table10
    python report.py --data FOLDER       # Table 1 as well, which counts labels and needs no run

No figure is typed here: ours come from results/runs.jsonl, the paper's from reported.json.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import tasks
from experiments import EXPERIMENTS, Experiment, Row
from run import RESULTS, candidates, choice, key, narrowed, read
from scipy.stats import wilcoxon

from skdice.inspection import LossGradientDisplay, TverskySweepDisplay, imbalance, reading_imbalance

HERE = Path(__file__).parent
MEASURES = {
    "tags": ("precision", "recall", "f1"),
    "labels": ("precision", "recall", "f1", "accuracy"),
    "answers": ("exact_match", "f1"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", nargs="+", choices=EXPERIMENTS, default=list(EXPERIMENTS))
    parser.add_argument("--data", type=Path, help="folder of the data sets, for Table 1")
    parser.add_argument("--runs", type=Path, default=RESULTS)
    parser.add_argument("--precision", default="bf16", help="of the runs to show")
    parser.add_argument("--limit", type=int, help="of the runs to show")
    parser.add_argument("--out", type=Path, help="folder of tables.md and the charts")
    args = parser.parse_args()
    out = args.out or args.runs.parent
    out.mkdir(parents=True, exist_ok=True)
    records = read(args.runs)
    reported = json.loads((HERE / "reported.json").read_text())
    sections = []
    if args.data is not None:
        sections.append(table1(args.data, reported))
    common: dict[str, Any] = {"precision": args.precision}
    if args.limit is not None:
        common["limit"] = args.limit
    for name in args.tables:
        text = "\n".join(section(name, records, reported, common, out))
        if text:
            sections.append(text)
    display = LossGradientDisplay.from_losses()
    save(display, out / "figure1.svg")
    machine = sorted({f"{r['device']}, torch {r['torch']}, {r['date']}" for r in records})
    intro = (
        "# Tables\n\nMade by report.py from runs.jsonl. Scores in points, mean ± standard "
        f"deviation over seeds. Runs on: {'; '.join(machine)}. Figures of the paper are marked as "
        f"reported: {reported['source']}.\n"
    )
    (out / "tables.md").write_text("\n".join([intro, *sections]))
    print(out / "tables.md")


def save(display: Any, file: Path) -> None:
    """A chart, the same file for the same figures."""
    import matplotlib

    with matplotlib.rc_context({"svg.hashsalt": "skdice"}):
        display.figure_.savefig(file, metadata={"Date": None})


def section(name: str, records: list[Any], reported: Any, common: Any, out: Path) -> Iterator[str]:
    """One table, over its data sets; nothing without a finished run."""
    experiment = EXPERIMENTS[name]
    done = {key(record["job"]): record for record in records}
    shown = []
    for task in experiment.tasks:
        only = narrowed(experiment, [task], None)
        runs = {row.label: runs_of(only, done, task, row, common) for row in only.rows}
        runs = {label: found for label, found in runs.items() if found}
        if runs:
            shown.append((task, runs))
    if not shown:
        return
    yield f"## {experiment.title}\n"
    for task, runs in shown:
        yield from table(experiment, task, runs)
    if name == "rivals":
        yield from paired(experiment, dict(shown), "dsc")
    if name == "table10":
        yield from sweeps(shown, out)
    yield from as_reported(reported.get(name))
    for what, why in experiment.missing.items():
        yield f"- Not run: {what} ({why})."
    yield ""


def runs_of(
    experiment: Experiment, done: dict[str, Any], task: str, row: Row, common: Any
) -> list[dict[str, Any]]:
    """The finished runs of the row's chosen setting, by seed."""
    best = choice(experiment, done, task, row, common)
    if best is None:
        return []
    jobs = [{**best, "seed": seed} for seed in range(100)]
    found = [done[key(job)] for job in jobs if key(job) in done]
    budget = len(candidates(experiment, done, task, row, common) or [])
    return [
        {
            "seed": record["job"]["seed"],
            "job": record["job"],
            "budget": budget,
            "seconds": record["seconds"],
            **record[row.decision]["test"],
        }
        for record in found
        if row.decision in record
    ]


def table(experiment: Experiment, task: str, runs: dict[str, Any]) -> Iterator[str]:
    measures = [
        m for m in next(iter(runs.values()))[0] if m in MEASURES["labels"] + ("exact_match",)
    ]
    first = next(iter(runs.values()))[0]["job"]
    rows = f"{first['train_rows']:,} training rows, " if "train_rows" in first else ""
    yield (
        f"### {task}\n\n{rows}{first['max_epochs']} epochs, batch {first['batch_size']}, "
        f"{first['precision']}.\n"
    )
    others = [m for m in measures if m != experiment.measure]
    columns = [*others, experiment.measure, "setting", "dev fits", "seeds", "median s"]
    yield "| row | " + " | ".join(columns) + " |"
    yield "|---" * (len(columns) + 1) + "|"
    for label, found in runs.items():
        means = [f"{100 * np.mean([run[m] for run in found]):.1f}" for m in others]
        scores = 100 * np.array([run[experiment.measure] for run in found])
        spread = f" ± {scores.std(ddof=1):.1f}" if len(scores) > 1 else ""
        cells = [
            *means,
            f"{scores.mean():.1f}{spread}",
            setting(found[0]["job"]),
            str(found[0]["budget"]),
            str(len(found)),
            f"{np.median([run['seconds'] for run in found]):.0f}",
        ]
        yield f"| {label} | " + " | ".join(cells) + " |"
    yield ""


def setting(job: dict[str, Any]) -> str:
    """What the development rows chose, or the default."""
    own = [
        f"{name.removeprefix('loss__')} {value:g}" for name, value in job.items() if "__" in name
    ]
    return ", ".join([f"lr {job['lr']:g}", *own])


def paired(experiment: Experiment, shown: dict[str, Any], ours: str) -> Iterator[str]:
    """Differences of one row to every other, on the same data set and seed."""
    if not any(runs.get(ours) for runs in shown.values()):
        return
    yield f"### `{ours}` less each other row, paired by data set and seed\n"
    yield "| row | pairs | mean difference | by data set | Wilcoxon p |"
    yield "|---|---|---|---|---|"
    for row in experiment.rows:
        if row.label == ours:
            continue
        by_task = {}
        for task, runs in shown.items():
            mine = {run["seed"]: run[experiment.measure] for run in runs.get(ours, [])}
            other = {run["seed"]: run[experiment.measure] for run in runs.get(row.label, [])}
            both = sorted(set(mine) & set(other))
            if both:
                by_task[task] = [100 * (mine[s] - other[s]) for s in both]
        gaps = [gap for values in by_task.values() for gap in values]
        if not gaps:
            continue
        enough = len(gaps) >= 6 and any(gaps)
        p = f"{wilcoxon(gaps).pvalue:.3f}" if enough else "too few"
        each = ", ".join(f"{task} {np.mean(values):+.1f}" for task, values in by_task.items())
        yield f"| {row.label} | {len(gaps)} | {np.mean(gaps):+.2f} | {each} | {p} |"
    yield ""


def sweeps(shown: list[Any], out: Path) -> Iterator[str]:
    """Precision, recall and F1 over alpha as a chart for each data set."""
    for task, runs in shown:
        seeds = set.intersection(*({run["seed"] for run in found} for found in runs.values()))
        if not seeds:
            continue
        values = {
            m: [[run[m] for run in found if run["seed"] in seeds] for found in runs.values()]
            for m in ("precision", "recall", "f1")
        }
        display = TverskySweepDisplay([float(label) for label in runs], values, task).plot()
        file = out / f"table10-{task}.svg"
        save(display, file)
        yield f"![alpha on {task}]({file.name})\n"


def as_reported(found: Any) -> Iterator[str]:
    """The paper's own figures."""
    if found is None:
        return
    backbone = f", {found['backbone']}" if "backbone" in found else ""
    yield f"As reported in the paper{backbone}:\n"
    yield "| | " + " | ".join(found["columns"]) + " |"
    yield "|---" * (len(found["columns"]) + 1) + "|"
    for label, values in found["rows"].items():
        cells = ["-" if value is None else str(value) for value in values]
        yield f"| {label} | " + " | ".join(cells) + " |"
    yield ""


def table1(folder: Path, reported: Any) -> str:
    """Negatives and positives in the training rows of every data set at hand."""
    lines = ["## Table 1: imbalance\n", "| data set | unit | negatives | positives | ratio |"]
    lines.append("|---|---|---|---|---|")
    for name in tasks.TASKS:
        if name in ("ud_en", "ud_zh", "clinc_intents"):
            continue  # no class of these is a background
        task = tasks.load(name, folder)
        X, y = task.train
        if task.kind == "answers":
            counted = reading_imbalance(X, y)
        elif task.pos_label is not None:
            counted = imbalance(y, background=next(label for label in y if label != task.pos_label))
        else:
            counted = imbalance(y)
        figures = f"{counted.n_negative:,} | {counted.n_positive:,} | {counted.ratio:.2f}"
        lines.append(f"| {name} | {counted.unit} | {figures} |")
        if task.kind == "tags":
            counted = reading_imbalance(X, y)
            figures = f"{counted.n_negative:,} | {counted.n_positive:,} | {counted.ratio:.2f}"
            lines.append(f"| {name}, asked for every type | {counted.unit} | {figures} |")
    return "\n".join([*lines, "", *as_reported(reported["table1"])])


if __name__ == "__main__":
    main()
