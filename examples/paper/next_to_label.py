"""How many labels does a rare class need? Rows chosen by `next_to_label` against random ones.

    python next_to_label.py --data FOLDER          # runs what is missing, and draws the curves

A run starts from a few labelled rows, of which three are positive, and labels more of the training
rows round by round. `DiceClassifier` on frozen features is fitted in each round and scored on the
test rows. "margin" is plain uncertainty, as there are two classes. Of each strategy the table shows
the number of labels at which its mean F1 over the seeds stays at 95 % of that with all labels.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import tasks
from sklearn.metrics import f1_score

from skdice import DiceClassifier, TransformerFeatures
from skdice.inspection import next_to_label

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "next-to-label.json"
IMAGE = HERE.parents[1] / "docs" / "images" / "next_to_label.svg"
SIZES = (30, 50, 80, 130, 200, 330, 500, 800, 1300, 2000, 3200)
LONGEST = {"sms_rare": 800, "clinc_rare": 2000}  # of all strategies but random rows
START, POSITIVES = SIZES[0], 3
STRATEGIES = ("random", "margin", "positives", "mixed", "spread")
DATA = ("sms_rare", "clinc_rare")
TITLES = {"sms_rare": "SMS, 2.5 % spam", "clinc_rare": "CLINC, one intent of 150, 1 %"}


def head() -> DiceClassifier:
    """What is fitted in each round."""
    return DiceClassifier(max_epochs=20, batch_size=512, random_state=0)


def f1(model: Any, task: tasks.Task) -> float:
    """F1 of the positive class on the test rows."""
    X, y = task.test
    return float(f1_score(y, model.predict(X), pos_label=task.pos_label))


def chosen(
    strategy: str, model: Any, X: np.ndarray, left: np.ndarray, n: int, random: Any
) -> np.ndarray:
    """The next rows of those that are left."""
    if strategy == "random":
        return random.permutation(left)[:n]
    return left[next_to_label(model, X[left], n, strategy=strategy).row]


def curve(task: tasks.Task, strategy: str, seed: int) -> list[float]:
    """F1 at the first of `SIZES`."""
    X, y = task.train[0], np.array(task.train[1])
    random = np.random.default_rng(seed)
    order = random.permutation(len(y))
    rare = y[order] == task.pos_label
    known = np.concatenate([order[rare][:POSITIVES], order[~rare][: START - POSITIVES]])
    most = len(y) if strategy == "random" else LONGEST[task.name]
    sizes = [n for n in SIZES if n <= most]
    scores = []
    for n, following in zip(sizes, (*sizes[1:], None), strict=True):
        assert len(known) == n
        model = head().fit(X[known], y[known])
        scores.append(f1(model, task))
        if following is not None:
            left = np.setdiff1d(np.arange(len(y)), known)
            more = chosen(strategy, model, X, left, following - n, random)
            known = np.concatenate([known, more])
    return scores


def with_vectors(task: tasks.Task, cache: str) -> tasks.Task:
    """The same rows as vectors, each text once in the training rows."""
    once = list({text: i for i, text in reversed([*enumerate(task.train[0])])}.values())
    train = [task.train[0][i] for i in once], [task.train[1][i] for i in once]
    parts = {}
    for name, (X, y) in (("train", train), ("test", task.test)):
        file = Path(cache) / f"{task.name}-{name}.npy"
        if not file.exists():
            np.save(file, TransformerFeatures().fit(X).transform(X))
        parts[name] = np.load(file), y
    return tasks.replace(task, **parts)


def needed(scores: list[float], target: float) -> float:
    """Labels at which a curve reaches a score and stays above it; infinite if it does not."""
    below = [i for i, score in enumerate(scores) if score < target]
    if not below:
        return SIZES[0]
    last = below[-1]
    if last == len(scores) - 1:
        return float("inf")
    share = (target - scores[last]) / (scores[last + 1] - scores[last])
    ends = np.log(SIZES[last]), np.log(SIZES[last + 1])
    return float(np.exp(ends[0] + share * (ends[1] - ends[0])))


def mean_curve(found: dict[str, Any], name: str, strategy: str) -> list[float]:
    """The mean over the seeds that all strategies but the spread have; empty without them."""
    runs = [found[name].get(other, {}) for other in STRATEGIES[:-1]]
    seeds = set.intersection(*map(set, runs))
    ours = found[name].get(strategy, {})
    if not seeds or not seeds <= set(ours):
        return []
    return list(np.mean([ours[seed] for seed in sorted(seeds)], axis=0).tolist())


def report(found: dict[str, Any]) -> str:
    """A table in Markdown."""
    shown = [s for s in STRATEGIES if all(mean_curve(found, name, s) for name in DATA)]
    lines = [
        "| | full F1 | " + " | ".join(shown) + " |",
        "|---|---|" + "---|" * len(shown),
    ]
    for name in DATA:
        full = float(np.mean(found[name]["full"]))
        cells = []
        for strategy in shown:
            mean = mean_curve(found, name, strategy)
            n = needed(mean, 0.95 * full)
            cells.append(f"{n:,.0f}" if np.isfinite(n) else f"over {SIZES[len(mean) - 1]:,}")
        lines.append(f"| {TITLES[name]} | {100 * full:.1f} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def draw(found: dict[str, Any]) -> None:
    """The curves as a picture of the guide."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for ax, name in zip(axes, DATA, strict=True):
        for strategy in STRATEGIES:
            if mean := mean_curve(found, name, strategy):
                wide = 2.4 if strategy == "mixed" else 1.2
                ax.plot(SIZES[: len(mean)], 100 * np.array(mean), label=strategy, lw=wide)
        full = 100 * np.mean(found[name]["full"])
        ax.axhline(0.95 * full, color="0.6", ls="--", lw=1)
        ax.text(SIZES[0], 0.95 * full + 1, "95 % of the F1 with all labels", fontsize=8)
        ax.set(xscale="log", xlabel="labelled rows", ylabel="test F1", title=TITLES[name])
        ticks = (30, 100, 300, 1000, 3000)
        ax.set_xticks(ticks, [f"{n:,}" for n in ticks])
        ax.minorticks_off()
    lines = [line for line in axes[0].get_lines() if not line.get_label().startswith("_")]
    axes[-1].legend(handles=lines, fontsize=8, loc="lower right")
    with plt.rc_context({"svg.hashsalt": "skdice", "svg.fonttype": "none"}):
        figure.savefig(IMAGE, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--cache", default="/tmp", help="Folder for vectors.")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=RESULTS)
    args = parser.parse_args()
    found: dict[str, Any] = json.loads(args.out.read_text()) if args.out.exists() else {}
    data = {name: with_vectors(tasks.load(name, args.data, 0), args.cache) for name in DATA}
    for name, task in data.items():
        if name not in found:
            found[name] = {"full": [f1(head().fit(*task.train), task)]}
    jobs = [(s, seed, name) for seed in range(args.seeds) for s in STRATEGIES for name in DATA]
    # The spread comes last: it is the slowest by far, and the worst.
    for strategy, seed, name in sorted(jobs, key=lambda job: job[0] == "spread"):
        runs = found[name].setdefault(strategy, {})
        if str(seed) not in runs:
            runs[str(seed)] = [round(x, 4) for x in curve(data[name], strategy, seed)]
            print(name, strategy, seed, runs[str(seed)], flush=True)
            args.out.write_text(json.dumps(found, indent=1) + "\n")
    print(report(found))
    draw(found)


if __name__ == "__main__":
    main()
