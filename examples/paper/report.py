"""Make the tables and charts from the finished runs.

    python report.py                     # every table, to results/tables.md
    python report.py --tables rivals table10
    python report.py --data FOLDER       # Table 1 as well, which counts labels and needs no run
    python report.py --limit 64 --runs /tmp/trial.jsonl    # a trial, to /tmp/tables.md

No figure is typed here: ours come from results/runs.jsonl, the paper's from reported.json. As in
`run.py`, --precision, --backbone and --limit select the runs. The number of other runs is printed.
"""

from __future__ import annotations

import argparse
import json
import re
import runpy
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import tasks
from experiments import EXPERIMENTS, SETTINGS, Experiment, Row
from run import (
    RESULTS,
    add_common,
    candidates,
    choice,
    common_of,
    flags,
    key,
    narrowed,
    read,
)
from scipy.stats import wilcoxon

from skdice.datasets import read_squad
from skdice.inspection import imbalance
from skdice.tags.schemes import get_spans, infer_scheme

HERE = Path(__file__).parent
SHIFTED = "clinc_oos"  # so that the means over data sets are also given without it
# The other experiments belong to budget.py.
CURVES = ("budget", "budget_all", "starts")
TABLES = [name for name in EXPERIMENTS if name not in CURVES]
MEASURES = {
    "tags": ("precision", "recall", "f1"),
    "labels": ("precision", "recall", "f1", "accuracy"),
    "answers": ("exact_match", "f1"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", nargs="+", choices=EXPERIMENTS, default=TABLES)
    parser.add_argument("--data", type=Path, help="folder of the data sets, for Table 1")
    parser.add_argument("--runs", type=Path, default=RESULTS)
    add_common(parser)
    parser.add_argument("--out", type=Path, help="folder of tables.md and the charts")
    args = parser.parse_args()
    out = args.out or args.runs.parent
    out.mkdir(parents=True, exist_ok=True)
    common = common_of(vars(args))
    records, others = divided(read(args.runs), common)
    reported = json.loads((HERE / "reported.json").read_text())
    sections = []
    if args.data is not None:
        sections.append(table1(args.data, reported))
    for name in args.tables:
        sections.append("\n".join(section(name, records, reported, common, out)))
    slopes = runpy.run_path(str(HERE.parent / "losses" / "plot_loss_slopes.py"))
    save(slopes["figure"], out / "figure1.svg")
    machine = sorted({f"{r['device']}, torch {r['torch']}, {r['date']}" for r in records})
    intro = (
        "# Tables\n\nMade by report.py from runs.jsonl. Scores in points, mean ± standard "
        "deviation over seeds; seconds by the clock, of machines that were busy, and of runs that "
        f"were paused. Runs on: {'; '.join(machine) or 'none yet'}. Figures of the paper are "
        f"marked as reported: {reported['source']}.\n"
    )
    (out / "tables.md").write_text("\n".join([intro, *sections]))
    print(out / "tables.md")
    for asked, count in others.items():
        print(f"{count} finished runs of other settings are not shown: report.py{asked}")


def divided(records: list[Any], common: Any) -> tuple[list[Any], Counter[str]]:
    """The runs of these settings, and how many there are of each other, by the options for it."""
    shown = [record for record in records if common_of(record["job"]) == common]
    settings = [common_of(record["job"]) for record in records]
    return shown, Counter(flags(other) for other in settings if other != common)


def save(figure: Any, file: Path) -> None:
    """A chart, the same file for the same figures."""
    import matplotlib

    with matplotlib.rc_context({"svg.hashsalt": "skdice"}):
        figure.savefig(file, metadata={"Date": None})


def section(name: str, records: list[Any], reported: Any, common: Any, out: Path) -> Iterator[str]:
    """One table, over its data sets, and what of it has not run."""
    experiment = EXPERIMENTS[name]
    done = {key(record["job"]): record for record in records}
    shown, without = {}, {}
    for task in experiment.tasks:
        only = narrowed(experiment, [task], None)
        runs = {row.label: runs_of(only, done, task, row, common) for row in only.rows}
        found = {label: of_row for label, of_row in runs.items() if of_row}
        if found:
            shown[task] = found
        if len(found) < len(runs):
            labels = [f"`{label}`" for label in runs if label not in found]
            without[task] = ", ".join(labels) if found else "every row"
    yield f"## {experiment.title}\n"
    if name == "rivals":
        yield from summary(experiment, shown)
    for task, runs in shown.items():
        yield from table(experiment, task, runs)
    if name == "rivals":
        for ours in ("dsc", "ce_dice", "ce_dice, tuned"):
            yield from paired(experiment, shown, ours)
    if name == "table10":
        yield from sweeps(shown, out)
    yield from as_reported(reported.get(name))
    for task, labels in without.items():
        command = f"`python run.py {name} --data FOLDER --tasks {task}{flags(common)}`"
        why = experiment.missing.get(task, command)
        yield f"- Not run yet on {task}: {labels} ({why})."
    for what, why in experiment.missing.items():
        if what not in experiment.tasks:
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


def summary(experiment: Experiment, shown: dict[str, Any]) -> Iterator[str]:
    """One line a row; a column is over the seeds that all rows with runs on the data set share."""
    seeds = {task: shared for task, runs in shown.items() if (shared := shared_seeds(runs))}
    if not seeds:
        return
    columns = {f"{task} ({named(shared)})": [task] for task, shared in seeds.items()}
    columns["mean"] = list(seeds)
    yield "### Summary\n"
    if SHIFTED in seeds and len(seeds) > 1:
        columns[f"mean without {SHIFTED}"] = [task for task in seeds if task != SHIFTED]
        yield (
            f"Means also without {SHIFTED}, which has far more positives among its test rows than "
            "in training (Table 1).\n"
        )
    yield f"Test {experiment.measure}, over the seeds that all rows of a data set share.\n"
    yield "| row | " + " | ".join(columns) + " |"
    yield "|---" * (len(columns) + 1) + "|"
    for row in experiment.rows:
        found = {}
        for task, shared in seeds.items():
            if scores := by_seed(experiment, shown[task], row.label):
                found[task] = 100 * np.mean([scores[seed] for seed in shared])
        cells = [
            f"{np.mean([found[task] for task in over]):.1f}" if set(over) <= set(found) else "-"
            for over in columns.values()
        ]
        if found:
            yield f"| {row.label} | " + " | ".join(cells) + " |"
    yield ""


def shared_seeds(runs: dict[str, Any]) -> set[int]:
    """The seeds that every row of a data set has."""
    return set.intersection(*({run["seed"] for run in found} for found in runs.values()))


def by_seed(experiment: Experiment, runs: dict[str, Any], label: str) -> dict[int, float]:
    """The row's scores on one data set."""
    return {run["seed"]: run[experiment.measure] for run in runs.get(label, [])}


def named(seeds: set[int]) -> str:
    """Such as "seed 0", "seeds 0-2" or "seeds 0, 2"."""
    found = sorted(seeds)
    if len(found) > 1 and found == list(range(found[0], found[-1] + 1)):
        return f"seeds {found[0]}-{found[-1]}"
    return f"seed{'s' * (len(found) > 1)} {', '.join(map(str, found))}"


def paired(experiment: Experiment, shown: dict[str, Any], ours: str) -> Iterator[str]:
    """Differences of one row to every other, on the same data set and seed."""
    if not any(runs.get(ours) for runs in shown.values()):
        return
    yield f"### `{ours}` less each other row, paired by data set and seed\n"
    yield (
        "p is over all pairs, as if they were independent. The seeds of one data set are not "
        "independent data sets, so the evidence is weaker than p makes it look.\n"
    )
    yield "| row | pairs | mean difference | by data set (pairs) | Wilcoxon p over all pairs |"
    yield "|---|---|---|---|---|"
    for row in experiment.rows:
        if row.label == ours:
            continue
        by_task = {}
        for task, runs in shown.items():
            mine, other = (by_seed(experiment, runs, label) for label in (ours, row.label))
            both = sorted(set(mine) & set(other))
            if both:
                by_task[task] = [100 * (mine[s] - other[s]) for s in both]
        gaps = [gap for values in by_task.values() for gap in values]
        if not gaps:
            continue
        p = "too few"
        if len(gaps) >= 6 and any(gaps):
            value = wilcoxon(gaps).pvalue
            p = "< 0.001" if value < 0.001 else f"{value:.3f}"
        each = ", ".join(
            f"{task} {np.mean(values):+.1f} ({len(values)})" for task, values in by_task.items()
        )
        yield f"| {row.label} | {len(gaps)} | {np.mean(gaps):+.2f} | {each} | {p} |"
    yield ""


def sweeps(shown: dict[str, Any], out: Path) -> Iterator[str]:
    """Precision, recall and F1 over alpha as a chart for each data set."""
    for task, runs in shown.items():
        seeds = shared_seeds(runs)
        if not seeds:
            continue
        values = {
            m: [[run[m] for run in found if run["seed"] in seeds] for found in runs.values()]
            for m in ("precision", "recall", "f1")
        }
        file = out / f"table10-{task}.svg"
        save(sweep_of([float(label) for label in runs], values, task), file)
        yield f"![alpha on {task}]({file.name})\n"


def sweep_of(alphas: list[float], values: dict[str, Any], task: str) -> Any:
    """A figure of precision, recall and F1 over alpha: the mean of the seeds, and their spread."""
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
    for name, runs in values.items():
        table = 100 * np.array(runs)
        mean, spread = table.mean(axis=1), table.std(axis=1)
        ax.plot(alphas, mean, "o-", label=name, markersize=4)
        ax.fill_between(alphas, mean - spread, mean + spread, alpha=0.15, lw=0)
    ax.set(xlabel="alpha (beta = 1 - alpha)", ylabel=f"% ({task})")
    ax.grid(alpha=0.25)
    ax.legend(frameon=False)
    return figure


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
    """How many negatives there are for one positive, in each part of every data set at hand."""
    lines = [
        "## Table 1: imbalance\n",
        "Negatives for one positive, or tokens without an entity for one in an entity, and the "
        "share of positives: in all training rows, in those that the runs use, and in those of "
        "development and test that they score. Sets without a split of their own: seed 0. No run "
        f"uses {' and '.join(tasks.COUNTED)}, of which all rows count. Parts of speech and intents "
        "have no negatives.\n",
        "| data set | unit | negatives | positives | ratio | training rows used | dev | test |",
        "|---" * 8 + "|",
    ]
    for name in tasks.TASKS:
        if name not in SETTINGS or name in ("ud_en", "ud_zh", "clinc_intents", "wnut17_all"):
            continue
        task = tasks.load(name, folder)
        used = tasks.sample(task.train, SETTINGS[name].get("train_rows"))
        ways: dict[str, Any] = {name: counted}
        if task.kind == "tags":
            ways[f"{name}, asked for every type"] = lambda _, part: asked_for_all(*part)
        for label, count in ways.items():
            full = count(task, task.train)
            cells = [
                f"{found.ratio:.2f} ({100 / (1 + found.ratio):.1f} %)"
                for found in (count(task, part) for part in (used, task.dev, task.test))
            ]
            lines.append(imbalance_line(label, full, *cells))
    for name in tasks.COUNTED:
        for path in tasks.paths(name, folder):
            found = starts_and_ends(*read_squad(path, on_misaligned="expand"))
            lines.append(imbalance_line(path.stem, found, "-", "-", "-"))
    return "\n".join([*lines, "", *as_reported(reported["table1"])])


def imbalance_line(label: str, found: Any, *others: str) -> str:
    """A line of Table 1."""
    cells = [label, found.unit, f"{found.n_negative:,}", f"{found.n_positive:,}"]
    return "| " + " | ".join([*cells, f"{found.ratio:.2f}", *others]) + " |"


def counted(task: tasks.Task, part: tuple[list[Any], list[Any]]) -> Any:
    X, y = part
    if task.kind == "answers":
        return starts_and_ends(X, y)
    if task.pos_label is None:
        return imbalance(y)
    return imbalance(y, background=next(label for label in y if label != task.pos_label))


_TOKEN = re.compile(r"[\u3400-\u9fff]|[^\W\u3400-\u9fff]+|[^\w\s]")


def starts_and_ends(pairs: list[Any], answers: list[Any]) -> Any:
    """Words and signs of the contexts; an answer is two positives, its start and its end."""
    contexts = Counter(context for _, context in pairs)
    total = sum(n * len(_TOKEN.findall(context)) for context, n in contexts.items())
    return of_positives(total, 2 * sum(map(bool, answers)))


def asked_for_all(sentences: list[list[str]], tags: list[list[str]]) -> Any:
    """Tokens of sentences that are asked for every type of span, whose starts and ends count."""
    scheme = infer_scheme(tags)
    spans = [get_spans(row, scheme) for row in tags]
    types = {kind for row in spans for kind, _, _ in row}
    positive = sum(
        len({s for k, s, _ in row if k == kind}) + len({e for k, _, e in row if k == kind})
        for row in spans
        for kind in types
    )
    return of_positives(len(types) * sum(map(len, sentences)), positive)


def of_positives(total: int, positive: int) -> Any:
    """Counts as `imbalance` gives them."""
    negative = total - positive
    ratio = negative / positive if positive else float("inf")
    return SimpleNamespace(unit="tokens", n_negative=negative, n_positive=positive, ratio=ratio)


if __name__ == "__main__":
    main()
