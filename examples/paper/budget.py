"""F1 against the length of training: the charts and tables in docs.

    python run.py budget --data FOLDER --seeds 3 --out results/budget.jsonl
    python run.py starts --data FOLDER --seeds 3 --out results/budget.jsonl
    python budget.py                     # write charts and tables from the records into docs

Each budget is a separate fit with its own schedule, scored at its end. No figure is typed here.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from experiments import BUDGETS, CURVES
from pages import replaced
from run import core_hours, job_of, read

HERE = Path(__file__).parent
PAGES = [HERE.parents[1] / "docs" / name for name in ("evidence.md", "experiments.md")]
TITLES = {
    "wnut17": "WNUT17",
    "wnut17_all": "WNUT17, all rows",
    "sms_rare": "SMS",
    "clinc_oos": "CLINC",
    "bc5cdr": "BC5CDR",
}
WHOLE = "wnut17_all"  # in the tables only
FASTER = "ce, twice the rate"
FROM_PRIOR = "{}, log-prior start"
STRONGER = "ce, the better start"  # at each budget, by the development rows
PRIOR = FROM_PRIOR.format("ce")
LABELS = {
    "ce": "cross-entropy",
    PRIOR: "cross-entropy, bias starts at the log-prior",
    FASTER: "cross-entropy, twice the learning rate",
}
STYLES = {
    "ce": ("#444444", "o", "-"),
    PRIOR: ("#e6ab02", "P", "-"),
    FASTER: ("#999999", "v", ":"),
    "focal": ("#0072b2", "s", "--"),
    "ce_dice": ("#d55e00", "D", "-"),
    "dsc": ("#009e73", "^", "-."),
}
DECISIONS = {"plain": "as it is", "tuned": "tuned"}
STARTED = [FROM_PRIOR.format(name) for name in ("ce", "focal", "ce_dice", "dsc")]
Curve = dict[int, dict[int, float]]  # updates: seed: F1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=Path, default=HERE / "results" / "budget.jsonl")
    parser.add_argument("--pages", type=Path, nargs="+", default=PAGES)
    args = parser.parse_args()
    records = read(args.runs)
    curves = {how: curves_of(records, how) for how in ("plain", "tuned")}
    for how, tasks in curves.items():
        add_stronger(tasks, curves_of(records, how, "dev"))
    picture(curves, args.runs.with_name("budget.svg"))
    parts = {"leads": leads(curves), "curves": lines(curves, records)}
    for page in args.pages:
        text = page.read_text()
        for name, made in parts.items():
            text = replaced(text, name, "\n".join(made), "budget.py")
        page.write_text(text)
        print(page)


# ---- the records


def label_of(job: dict[str, Any]) -> str | None:
    """The row of a run at a budget; None for what belongs to another table."""
    own = {name: value for name, value in job.items() if name.startswith("loss__")}
    if own or "keep" not in job:
        return None
    if job.get("start") == "log_prior":
        return FROM_PRIOR.format(job["loss"])
    rate = job_of(job["task"], CURVES[0], {"loss": "ce", "keep": "last"}, 0, {})["lr"]
    return FASTER if job["lr"] != rate else str(job["loss"])


def curves_of(
    records: list[dict[str, Any]], how: str, part: str = "test"
) -> dict[str, dict[str, Curve]]:
    """F1 on the rows of a part in points, by data set, row, epochs and seed."""
    found: dict[str, dict[str, Curve]] = {}
    for record in records:
        job = record["job"]
        label = label_of(job)
        if label is not None:
            curve = found.setdefault(job["task"], {}).setdefault(label, {})
            score = 100 * record[how][part]["f1"]
            curve.setdefault(job["max_epochs"], {})[job["seed"]] = score
    order = [task for task in TITLES if task in found]
    return {task: found[task] for task in order}


def add_stronger(tasks: dict[str, dict[str, Curve]], dev: dict[str, dict[str, Curve]]) -> None:
    """The row of cross-entropy at its best: at each budget the start that is better on dev."""
    for task, rows in tasks.items():
        starts = [label for label in ("ce", PRIOR) if label in rows]
        rows[STRONGER] = {}
        for budget in sorted({e for label in starts for e in rows[label]}):
            score = {
                label: np.mean(list(dev[task][label][budget].values()))
                for label in starts
                if budget in rows[label]
            }
            rows[STRONGER][budget] = rows[max(score, key=lambda label: score[label])][budget]


def means(curve: Curve) -> tuple[np.ndarray, np.ndarray]:
    """Epochs, and the mean F1 there."""
    epochs = sorted(curve)
    return np.array(epochs), np.array([np.mean(list(curve[e].values())) for e in epochs])


# ---- tables


def lines(curves: dict[str, Any], records: list[dict[str, Any]]) -> list[str]:
    """F1 at each budget."""
    hours = core_hours(records)
    dates = sorted({r["date"] for r in records})
    torch = ", ".join(sorted({r["torch"] for r in records}))
    made = [
        f"F1 on the test rows, mean ± standard deviation over seeds, in points; *n* seeds. "
        f"{len(records)} fits, {hours:.1f} core-hours, {dates[0]} to {dates[-1]}, torch {torch}.\n"
    ]
    for how, title in (("plain", "As it is"), ("tuned", "With a tuned decision")):
        epochs = [
            e for e in BUDGETS if any(e in c for t in curves[how].values() for c in t.values())
        ]
        made += [
            f"**{title}**\n",
            "| data set | row | " + " | ".join(f"{e} ep." for e in epochs) + " | *n* |",
        ]
        made.append("|---" * (len(epochs) + 3) + "|")
        for task, rows in curves[how].items():
            shown_rows = dict.fromkeys((*STYLES, *STARTED))
            for label in [label for label in shown_rows if label in rows]:
                cells = [cell(rows[label].get(e)) for e in epochs]
                counts = sorted({len(found) for found in rows[label].values()})
                n = "-".join(map(str, {counts[0]: 0, counts[-1]: 0}))
                made.append(
                    f"| {TITLES[task]} | {name_of(label)} | " + " | ".join(cells) + f" | {n} |"
                )
        made.append("")
    return made


def name_of(label: str) -> str:
    name, comma, rest = label.partition(",")
    return f"`{name}`{comma}{rest}"


def cell(found: dict[int, float] | None) -> str:
    if not found:
        return ""
    scores = np.array(list(found.values()))
    return f"{scores.mean():.1f}" + (f" ± {scores.std(ddof=1):.1f}" if len(scores) > 1 else "")


def leads(curves: dict[str, Any], rows: tuple[str, ...] = ("ce_dice", "dsc")) -> list[str]:
    """F1 of the overlap losses minus that of the stronger cross-entropy, in points."""
    tasks = [task for task in curves["plain"] if task != WHOLE]
    made = ["| decision | epochs | row | " + " | ".join(TITLES[t] for t in tasks) + " | mean |"]
    made.append("|---|---|---" + "|---:" * (len(tasks) + 1) + "|")
    for how in DECISIONS:
        for budget in BUDGETS[:4]:
            for label in rows:
                pairs = [
                    (curves[how][task].get(label, {}).get(budget), goal)
                    for task in tasks
                    if budget in curves[how][task].get(PRIOR, {})
                    and (goal := curves[how][task][STRONGER].get(budget))
                ]
                if len(pairs) == len(tasks) and all(ours for ours, _ in pairs):
                    scores = [[np.array(list(c.values())) for c in pair] for pair in pairs]
                    cells = [f"{ours.mean() - goal.mean():+.1f}" for ours, goal in scores]
                    made.append(
                        f"| {DECISIONS[how]} | {budget} | {name_of(label)} | "
                        + " | ".join([*cells, mean_lead(scores)])
                        + " |"
                    )
    return made


def mean_lead(scores: list[list[np.ndarray]]) -> str:
    """The mean over data sets, and its interval over draws of data sets and of seeds."""
    random = np.random.default_rng(0)

    def drawn_lead(pair: list[np.ndarray]) -> float:
        ours, goal = (random.choice(seeds, len(seeds)).mean() for seeds in pair)
        return float(ours - goal)

    mean = np.mean([ours.mean() - goal.mean() for ours, goal in scores])
    n = len(scores)
    draws = [
        np.mean([drawn_lead(scores[i]) for i in random.integers(n, size=n)]) for _ in range(1000)
    ]
    low, high = np.quantile(draws, [0.05, 0.95])
    return f"{mean:+.1f} ({low:+.1f} to {high:+.1f})"


# ---- pictures


def picture(curves: dict[str, Any], file: Path) -> None:
    """F1 against updates, a panel for each data set, plain above and tuned below."""
    import matplotlib.pyplot as plt
    from report import save

    tasks = [task for task in curves["plain"] if task != WHOLE]
    figure, axes = plt.subplots(
        2, len(tasks), figsize=(2.3 * len(tasks), 4.0), squeeze=False, sharex="col", sharey="col"
    )
    for row, (how, title) in enumerate((("plain", "as it is"), ("tuned", "tuned decision"))):
        for column, task in enumerate(tasks):
            ax = axes[row, column]
            for label, (color, marker, line) in STYLES.items():
                curve = curves[how][task].get(label)
                if curve:
                    epochs, scores = means(curve)
                    low, high = ([f(list(curve[e].values())) for e in epochs] for f in (min, max))
                    ax.fill_between(epochs, low, high, color=color, alpha=0.12, linewidth=0)
                    ax.plot(
                        epochs,
                        scores,
                        color=color,
                        marker=marker,
                        linestyle=line,
                        markersize=4,
                        label=LABELS.get(label, label),
                    )
            ax.set_xscale("log", base=2)
            ax.set_xticks(BUDGETS, [str(e) for e in BUDGETS])
            ax.grid(alpha=0.3)
            ax.set_title(f"{TITLES[task]}, {title}", fontsize=9)
            if row:
                ax.set_xlabel("epochs (each a fit of its own)", fontsize=8)
        axes[row, 0].set_ylabel("F1 on test")
    handles = {}
    for ax in axes.flat:
        handles |= {text: line for line, text in zip(*ax.get_legend_handles_labels(), strict=True)}
    figure.legend(handles.values(), handles, loc="lower center", ncols=3, fontsize=8, frameon=False)
    figure.tight_layout(rect=(0, 0.13, 1, 1))
    save(figure, file)


if __name__ == "__main__":
    main()
