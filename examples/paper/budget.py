"""F1 against the length of training: the charts and tables in docs.

    python run.py budget --data FOLDER --seeds 3 --out results/budget.jsonl
    python run.py starts --data FOLDER --seeds 3 --out results/budget.jsonl
    python run.py control --data FOLDER --seeds 3 --out results/budget.jsonl
    python run.py modern --data FOLDER --seeds 2 --out results/budget.jsonl
    python budget.py --trace FOLDER      # recall and precision of the first updates, 12 short fits
    python budget.py                     # write charts and tables from the records into docs

Each budget is a separate fit with its own schedule, scored at its end. No figure is typed here.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import decisions
import numpy as np
from experiments import ANNEALED, BUDGETS, CURVES, MODERN
from pages import replaced
from run import core_hours, environment, estimator_for, job_of, read
from tasks import load, sample

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
    ANNEALED: ("#cc79a7", "x", ":"),
}
DECISIONS = {"plain": "as it is", "tuned": "tuned"}
CORE = ("ce", "ce_dice", "dsc")  # which a data set must have at a budget to count there
STARTED = [FROM_PRIOR.format(name) for name in ("ce", "focal", "ce_dice", "dsc")]
TRACED = (*CORE, ANNEALED)
Curve = dict[int, dict[int, float]]  # updates: seed: F1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=Path, default=HERE / "results" / "budget.jsonl")
    parser.add_argument("--trace", type=Path, metavar="FOLDER", help="make the first updates anew")
    parser.add_argument("--pages", type=Path, nargs="+", default=PAGES)
    args = parser.parse_args()
    trace = args.runs.with_name("first-updates.json")
    if args.trace is not None:
        trace.write_text(json.dumps(first_updates(args.trace)))
        return
    records = read(args.runs)
    curves = {how: curves_of(records, how) for how in ("plain", "tuned")}
    for how, tasks in curves.items():
        add_stronger(tasks, curves_of(records, how, "dev"))
    picture(curves, args.runs.with_name("budget.svg"))
    decided = args.runs.with_name("decisions.json")
    parts = {
        "leads": leads(curves),
        "all ratios": ratios(curves, *DECISIONS),
        "ratios of each set": ratios(curves, *DECISIONS, each_set=True),
        "curves": lines(curves, records),
        "later losses": modern(records),
    }
    if trace.exists():
        found = json.loads(trace.read_text())
        trace_picture(found["traces"], trace.with_suffix(".svg"))
        parts["first updates"] = trace_lines(found)
    if decided.exists():
        parts["decisions"] = decisions.table(json.loads(decided.read_text()))
    kept = args.runs.with_name("decisions-kept.json")
    if kept.exists():
        found = json.loads(kept.read_text())
        parts["calibration"] = decisions.error_table(found)
        parts["calibration of each set"] = decisions.errors_of_sets(found)
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


def means(curve: Curve, seeds: list[int] | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Epochs, and the mean F1 there: over all seeds, or over some of them, drawn perhaps twice."""
    epochs = sorted(curve)
    return np.array(epochs), np.array(
        [
            np.mean([curve[e][s] for s in seeds if s in curve[e]] or list(curve[e].values()))
            if seeds is not None
            else np.mean(list(curve[e].values()))
            for e in epochs
        ]
    )


def needed(epochs: np.ndarray, scores: np.ndarray, goal: float) -> float:
    """Epochs that a curve needs for a score, interpolated on a logarithmic axis.

    Not less than the shortest budget, and infinite where no budget reaches it.
    """
    reached = np.flatnonzero(scores >= goal)
    if not len(reached):
        return float("inf")
    at = int(reached[0])
    if at == 0:
        return float(epochs[0])
    share = (goal - scores[at - 1]) / (scores[at] - scores[at - 1])
    return float(2 ** (np.log2(epochs[at - 1]) * (1 - share) + np.log2(epochs[at]) * share))


def ratio(ours: Curve, ce: Curve, budget: int, seeds: list[int] | None = None) -> float:
    """Share of cross-entropy's updates that a row needs for what cross-entropy has after them."""
    epochs, scores = means(ce, seeds)
    goal = float(scores[epochs == budget][0])
    return needed(*means(ours, seeds), goal) / budget


def interval(values: list[float]) -> str:
    low, high = np.quantile(np.minimum(values, 99), [0.05, 0.95], method="nearest")
    return f"{shown(low)} to {shown(high)}"


def shown(value: float) -> str:
    return "never" if value >= 99 else f"{value:.2f}"


# ---- tables


def lines(curves: dict[str, Any], records: list[dict[str, Any]]) -> list[str]:
    """F1 at each budget, then the ratio of updates."""
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


def ratios(
    curves: dict[str, Any],
    *decisions: str,
    each_set: bool = False,
    budgets: tuple[int, ...] = BUDGETS[1:4],
    rows: tuple[str, ...] = ("ce", PRIOR, "focal", "ce_dice", "dsc"),
) -> list[str]:
    """Updates for the F1 that the stronger cross-entropy has at a budget, as a share of it."""
    rows = (*rows, *((*STARTED[1:], ANNEALED, FASTER) if each_set else ()))
    heads = [
        "decision",
        "goal: `ce` after",
        *(["data set", "its F1"] if each_set else ["data sets"]),
    ]
    made = ["| " + " | ".join([*heads, *map(name_of, rows)]) + " |"]
    made.append("|---" * (len(heads) + len(rows)) + "|")
    for how in decisions:
        for budget in budgets:
            able = {
                task: found
                for task, found in curves[how].items()
                if task != WHOLE and all(budget in found.get(row, {}) for row in (*CORE, PRIOR))
            }
            groups = [[task] for task in able] if each_set else [list(able)] if able else []
            for group in groups:
                chosen = {task: able[task] for task in group}
                cells = [DECISIONS[how], f"{budget} epochs"]
                if each_set:
                    goal = np.mean(list(able[group[0]][STRONGER][budget].values()))
                    cells += [TITLES[group[0]], f"{goal:.1f}"]
                else:
                    cells.append(", ".join(TITLES[task] for task in group))
                for label in rows:
                    there = all(budget in found.get(label, {}) for found in chosen.values())
                    cells.append(drawn(chosen, label, budget) if there else "")
                made.append("| " + " | ".join(cells) + " |")
    return made


def drawn(curves: dict[str, Any], label: str, budget: int) -> str:
    """The ratio, and its interval over draws of seeds, and of data sets where there are several."""
    random = np.random.default_rng(0)
    names = list(curves)

    def mean(chosen: list[str], draw: bool) -> float:
        values = []
        for task in chosen:
            goal = curves[task][STRONGER]
            seeds = sorted(goal[budget])
            some = list(random.choice(seeds, len(seeds))) if draw else seeds
            values.append(ratio(curves[task][label], goal, budget, some))
        return float(np.exp(np.mean(np.log(values))))

    once = mean(names, False)
    draws = [mean(list(random.choice(names, len(names))), True) for _ in range(1000)]
    floors = [
        ratio(c[label], c[STRONGER], budget, sorted(c[STRONGER][budget])) == min(c[label]) / budget
        for c in curves.values()
    ]
    alone = len(names) == 1 and len(curves[names[0]][STRONGER][budget]) == 1
    spread = "one seed" if alone else interval(draws)
    return f"{'≤ ' * (any(floors) and once < 99)}{shown(once)} ({spread})"


def modern(records: list[dict[str, Any]]) -> list[str]:
    """Later losses after 2 and 8 epochs, the setting chosen on the development rows."""
    found: dict[tuple[str, str], dict[int, list[dict[str, Any]]]] = {}
    tasks = [t for t in TITLES if any(r["job"]["task"] == t for r in records)]
    for row in MODERN:
        for task in tasks:
            for epochs in (2, 8):
                options = [
                    job_of(task, row, {**p, "max_epochs": epochs, "keep": "last"}, 0, {})
                    for p in row.candidates
                ]
                runs = [
                    [
                        r
                        for r in records
                        if all(r["job"].get(k) == v for k, v in o.items() if k != "seed")
                    ]
                    for o in options
                ]
                runs = [group for group in runs if group]
                if runs:
                    best = max(runs, key=lambda g: g[0]["plain"]["dev"]["f1"])
                    found.setdefault((row.label, task), {})[epochs] = best
    if not found:
        return ["Not run yet."]
    made = [
        "| data set | row | 2 epochs | 8 epochs | tuned, 2 | tuned, 8 | settings chosen |",
        "|---|---|---|---|---|---|---|",
    ]
    for task in tasks:
        for row in MODERN:
            groups = found.get((row.label, task), {})
            if groups:
                cells = [
                    cell({r["job"]["seed"]: 100 * r[how]["test"]["f1"] for r in groups.get(e, [])})
                    for how in ("plain", "tuned")
                    for e in (2, 8)
                ]
                chosen = "; ".join(
                    ", ".join(f"{k[6:]} {v:g}" for k, v in g[0]["job"].items() if k[:6] == "loss__")
                    for _, g in sorted(groups.items())
                )
                made.append(
                    f"| {TITLES[task]} | `{row.label}` | " + " | ".join(cells) + f" | {chosen} |"
                )
    return made


# ---- the first updates


def first_updates(folder: Path) -> dict[str, Any]:
    """Hits, found and true entity tokens of each batch of one epoch, before it is learnt from."""
    from tried_losses import Watched, tried_loss

    made: dict[str, Any] = {"environment": environment(), "traces": {}}
    for label in TRACED:
        for seed in range(3):
            params = {"loss": label, "max_epochs": 1, "keep": "last"}
            job = job_of("wnut17_all", CURVES[0], params, seed, {"precision": "bf16"})
            task = load("wnut17", folder, seed)
            X, y = sample(task.train, None)
            steps = -(-len(X) // job["batch_size"])
            watched = Watched(tried_loss(label, steps) if label == ANNEALED else label)
            model = estimator_for(task, {**job, "loss": "ce"}).set_params(loss=watched).fit(X, y)
            seen = model.net_.criterion_.seen
            print(label, seed, np.sum(seen, axis=0), flush=True)
            made["traces"].setdefault(label, []).append(seen)
    return made


def recall_and_precision(trace: list[list[int]], window: int = 20) -> tuple[np.ndarray, np.ndarray]:
    """Over a window of the updates up to each; precision is NaN where nothing was found."""
    sums = np.cumsum(np.vstack([np.zeros((1, 3)), np.array(trace, float)]), axis=0)
    first = np.maximum(np.arange(1, len(sums)) - window, 0)
    hits, found, there = (sums[1:] - sums[first]).T
    with np.errstate(invalid="ignore"):
        return hits / np.maximum(there, 1), hits / found


def trace_lines(made: dict[str, Any]) -> list[str]:
    lines = [
        "| updates | " + " | ".join(name_of(label) for label in made["traces"]) + " |",
        "|---" * (len(made["traces"]) + 1) + "|",
    ]
    for first, last in ((0, 25), (25, 50), (50, 100), (100, 150), (150, 200)):
        cells = []
        for traces in made["traces"].values():
            hits, found, there = np.sum([np.sum(t[first:last], axis=0) for t in traces], axis=0)
            precision = f"{100 * hits / found:.0f}" if found else "-"
            cells.append(f"{100 * hits / there:.0f} / {precision}")
        lines.append(f"| {first + 1} to {last} | " + " | ".join(cells) + " |")
    return lines


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
    save(type("Display", (), {"figure_": figure}), file)


def trace_picture(traces: dict[str, Any], file: Path) -> None:
    """Recall and precision of the batches of the first epoch."""
    import matplotlib.pyplot as plt
    from report import save

    figure, axes = plt.subplots(1, 2, figsize=(8, 3), sharey=True)
    for label, runs in traces.items():
        color, _, line = STYLES[label]
        both = [recall_and_precision(trace) for trace in runs]
        for ax, rows in zip(axes, zip(*both, strict=True), strict=True):
            length = min(map(len, rows))
            shown = np.ma.masked_invalid([r[:length] for r in rows])
            mean = shown.mean(axis=0).filled(np.nan)
            ax.plot(np.arange(1, length + 1), mean, color=color, linestyle=line, label=label)
    for ax, title in zip(axes, ("recall", "precision"), strict=True):
        ax.set(title=f"{title} of entity tokens", xlabel="update", ylim=(0, 1))
        ax.grid(alpha=0.3)
    axes[0].legend(fontsize=8, frameon=False)
    figure.tight_layout()
    save(type("Display", (), {"figure_": figure}), file)


if __name__ == "__main__":
    main()
