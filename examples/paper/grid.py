"""Compare settings of the losses on frozen features, to choose the defaults.

    python grid.py --data FOLDER --out results/grid.json

Linear heads are trained on the vectors of the frozen default backbone. Every setting runs at three
learning rates and three batch sizes. The score is F1 on the development rows without a tuned
decision. Seeds draw the order of the rows and the split of the SMS messages. `run.py rivals`
checks the choice by full fine-tuning. Settings that --out holds are not run again.
"""

from __future__ import annotations

import argparse
import json
import time
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import tasks
from experiments import SETTINGS
from run import environment
from sklearn.base import clone
from sklearn.metrics import f1_score
from tried_losses import Tempered

from skdice import DiceSequenceClassifier, DiceTokenClassifier
from skdice.datasets.files import write_text
from skdice.losses import (
    CompoundLoss,
    CrossEntropyLoss,
    DiceLoss,
    DSCLoss,
    TverskyLoss,
    resolve_loss,
)
from skdice.metrics import span_f1_score
from skdice.model_selection.heads.data import HeadData

FORMULA: dict[str, Any] = {"smooth": 1.0, "surrogate": "none"}
LOSSES = {
    **{
        name: resolve_loss(name)
        for name in ("ce", "weighted_ce", "focal", "dice", "tversky", "dsc", "ce_dice")
    },
    "ce, log-prior 0.5": CrossEntropyLoss(tau=0.5),
    "formula": DiceLoss(**FORMULA),
    "formula, not squared": DiceLoss(**FORMULA, squared=False),
    "formula, smooth 0.01": DiceLoss(surrogate="none"),
    "formula, each class": DiceLoss(**FORMULA, average="macro"),
    "formula, each class, absent ignored": DiceLoss(**FORMULA, average="macro", absent="ignore"),
    "formula, each example": DiceLoss.literal(),
    "formula, background in": DiceLoss(**FORMULA, background=None, average="macro"),
    "formula, memory 0.9": DiceLoss(**FORMULA, ema_decay=0.9),
    "half ce, half formula": CompoundLoss("ce", DiceLoss(**FORMULA), weight=0.5),
    **{f"dice, smooth {v:g}": DiceLoss(smooth=v) for v in (0.001, 0.1, 1.0)},
    "dice, each class": DiceLoss(average="macro"),
    "dice, each class, absent ignored": DiceLoss(average="macro", absent="ignore"),
    "dice, background in": DiceLoss(background=None, average="macro"),
    **{f"dice, memory {v:g}": DiceLoss(ema_decay=v) for v in (0.5, 0.9, 0.99)},
    **{f"dsc, exponent {v:g}": DSCLoss(exponent=v) for v in (0.01, 0.5, 1.0)},
    **{f"tversky, alpha {v:g}": TverskyLoss(alpha=v, beta=1 - v) for v in (0.1, 0.7, 0.9)},
    **{f"ce_dice, {v:g} dice": CompoundLoss(weight=v) for v in (0.25, 0.5, 0.75)},
    **{f"dice, temperature {v:g}": Tempered("dice", v) for v in (0.5, 2.0)},
    "ce, temperature 2": Tempered("ce", 2.0),
}
# Words for taggers, texts for classifiers: a batch of 8 texts, or of 8 sentences.
BATCHES = {"tags": (128, 512, 2048), "labels": (8, 32, 128)}
RATES = (1e-3, 1e-2, 1e-1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--tasks", nargs="+", default=["wnut17", "clinc_oos", "sms_rare"])
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--limit", type=int, help="rows of each part, to try the machinery")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    record: dict[str, Any] = {"epochs": args.epochs, "limit": args.limit, "f1": {}}
    if args.out is not None and args.out.exists():
        before = json.loads(args.out.read_text())
        if any(before[name] != record[name] for name in ("epochs", "limit")):
            raise SystemExit(f"{args.out} has other settings: give another --out, or remove it")
        record["f1"] = before["f1"]
    for name, seed in product(args.tasks, range(args.seeds)):
        cells = record["f1"].setdefault(name, {})
        found = cells.setdefault(f"seed {seed}", {})
        losses = {loss: made for loss, made in LOSSES.items() if loss not in found}
        if not losses:
            continue
        started = time.perf_counter()
        task = tasks.load(name, args.data, seed, args.limit)
        found |= run(task, losses, seed, args.epochs)
        print(f"{name}, seed {seed}: {time.perf_counter() - started:.0f} s", flush=True)
        if args.out is not None:
            args.out.parent.mkdir(parents=True, exist_ok=True)
            write_text(args.out, json.dumps({**environment(), **record}, indent=1) + "\n")
    show(record["f1"])


def run(task: tasks.Task, losses: dict[str, Any], seed: int, epochs: int) -> dict[str, list[float]]:
    """F1 of each loss in each cell, the batches in the outer loop and the rates in the inner."""
    X, y = tasks.sample(task.train, SETTINGS[task.name].get("train_rows"))
    X_dev, y_dev = task.dev
    if task.kind == "tags":
        estimator: Any = DiceTokenClassifier(max_epochs=epochs, random_state=seed)
    else:
        estimator = DiceSequenceClassifier(
            max_epochs=epochs, random_state=seed, pos_label=task.pos_label
        )
    train, dev = np.arange(len(X)), np.arange(len(X), len(X) + len(X_dev))
    data = HeadData(estimator, [*X, *X_dev], [*y, *y_dev])
    models = [clone(estimator).set_params(loss=loss) for loss in losses.values()]
    scores: dict[str, list[float]] = {loss: [] for loss in losses}
    for batch_size, lr in product(BATCHES[task.kind], RATES):
        (heads,) = data.fit(models, [train], lr=lr, batch_size=batch_size)
        for loss, head in zip(losses, data.predict(heads, dev), strict=True):
            found = head.predict(X_dev)
            if task.kind == "tags":
                score = span_f1_score(y_dev, found)
            else:
                score = f1_score(y_dev, found, pos_label=task.pos_label, zero_division=0)
            scores[loss].append(round(float(score), 4))
    return scores


def show(f1: dict[str, Any]) -> None:
    """For each loss and data set the lowest, the mean and the best cell, means over seeds."""
    print(f"\n{'loss':38}" + "".join(f"{name + ' lowest/mean/best':>32}" for name in f1))
    for loss in LOSSES:
        row = ""
        for cells in f1.values():
            if any(loss not in scores for scores in cells.values()):
                row += f"{'-':>32}"
                continue
            table = 100 * np.array([scores[loss] for scores in cells.values()])
            best = table.mean(axis=0).max()
            row += f"{f'{table.min():.1f} / {table.mean():.1f} / {best:.1f}':>32}"
        print(f"{loss:38}{row}")


if __name__ == "__main__":
    main()
