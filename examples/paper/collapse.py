r"""Does any default loss end up predicting only negatives? A grid over batch sizes and rates.

    python collapse.py --data FOLDER --out results/collapse.json
    python collapse.py --data FOLDER --full --negatives 200 --tested 500 --epochs 10 --seeds 1 \
        --precision bf16 --out results/collapse-full.json

The training rows hold ten spam messages among many others. Every named loss runs with batches of 8,
32 and 128 and three learning rates. A cell with F1 = 0 on the remaining messages is a collapse. The
runs train heads on the frozen default backbone, or fine-tune all of it with --full. Without --full
the steps from the formula of dice to its default run too. Losses of other packages run on request;
`rival_losses.py` lists what they need. Cells that --out holds are not run again.
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
from experiments import IMPLEMENTATIONS
from run import environment, loss_of
from sklearn.metrics import f1_score

from skdice import DiceClassifier, DiceSequenceClassifier, TransformerFeatures
from skdice.datasets.files import write_text
from skdice.losses import DiceLoss

NAMES = ("ce", "weighted_ce", "focal", "dice", "tversky", "dsc", "ce_dice")
LOSSES = {
    **{name: name for name in NAMES},
    "dice, formula": DiceLoss(smooth=1.0, surrogate="none"),
    "smooth 0.01": DiceLoss(surrogate="none"),
    "and surrogate": DiceLoss(),
    **{f"and ema {decay}": DiceLoss(ema_decay=decay) for decay in (0.3, 0.7, 0.9)},
}
RATES = {"features": (1e-3, 1e-2, 1e-1), "full": (1e-5, 1e-4, 1e-3)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument(
        "--losses", nargs="+", choices=[*LOSSES, *IMPLEMENTATIONS], help="default: skdice's"
    )
    parser.add_argument("--batches", nargs="+", type=int, default=[8, 32, 128])
    parser.add_argument("--full", action="store_true", help="fine-tune the backbone too")
    parser.add_argument("--positives", type=int, default=10)
    parser.add_argument("--negatives", type=int, default=1000)
    parser.add_argument("--tested", type=int, help="messages to score on; default: all others")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--precision", default="auto", help="of full fine-tuning")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    names = ("full", "positives", "negatives", "tested", "epochs", "precision")
    settings = {name: getattr(args, name) for name in names}
    cells: dict[str, list[float]] = {}
    if args.out is not None and args.out.exists():
        before = json.loads(args.out.read_text())
        if {name: before.get(name) for name in names} != settings:
            raise SystemExit(f"{args.out} has other settings: give another --out, or remove it")
        cells = before["f1"]
    if args.out is not None:
        args.out.parent.mkdir(parents=True, exist_ok=True)
    chosen = args.losses or (NAMES if args.full else LOSSES)
    losses = {name: LOSSES.get(name) or loss_of({"loss": name}) for name in chosen}
    columns = list(product(args.batches, RATES["full" if args.full else "features"]))
    texts, labels = tasks._sms_rows(args.data)
    y = np.array(labels)
    X = np.array(texts, dtype=object) if args.full else TransformerFeatures().fit_transform(texts)
    started = time.perf_counter()
    for seed in range(args.seeds):
        train, test = rows_of(y, seed, args)
        for loss, (batch_size, lr) in product(losses, columns):
            scores = cells.setdefault(f"{loss} {batch_size} {lr:g}", [])
            if len(scores) > seed:
                continue
            model = estimator(args).set_params(
                loss=losses[loss],
                batch_size=batch_size,
                lr=lr,
                max_epochs=args.epochs,
                pos_label="spam",
                random_state=seed,
            )
            predicted = model.fit(X[train], y[train]).predict(X[test])
            score = f1_score(y[test], predicted, pos_label="spam", zero_division=0)
            scores.append(round(float(score), 4))
            if args.out is not None:
                record = {**settings, **environment(), "f1": cells}
                write_text(args.out, json.dumps(record, indent=1) + "\n")
    print(
        f"{args.positives} positives, {args.negatives} negatives, {args.epochs} epochs, lowest F1 "
        f"of {args.seeds} seeds, and the mean over cells and seeds"
    )
    print(f"{'loss':26}" + "".join(f"{f'{b} {lr:g}':>12}" for b, lr in columns) + f"{'mean':>12}")
    for loss in losses:
        rows = [cells[f"{loss} {batch_size} {lr:g}"] for batch_size, lr in columns]
        values = [100 * min(row) for row in rows] + [100 * np.mean(rows)]
        print(f"{loss:26}" + "".join(f"{value:12.1f}" for value in values))
    dead = [name for name, scores in cells.items() if min(scores) == 0]
    print(f"collapsed: {dead or 'none'} ({time.perf_counter() - started:.0f} s)")


def rows_of(y: np.ndarray, seed: int, args: argparse.Namespace) -> tuple[np.ndarray, np.ndarray]:
    """Messages to train on, and those to score on."""
    generator = np.random.default_rng(seed)
    spam, ham = (generator.permutation(np.flatnonzero(y == c)) for c in ("spam", "ham"))
    train = np.concatenate([spam[: args.positives], ham[: args.negatives]])
    others = np.setdiff1d(np.arange(len(y)), train)
    if args.tested is None:
        return train, others
    return train, np.sort(generator.permutation(others)[: args.tested])


def estimator(args: argparse.Namespace) -> Any:
    return DiceSequenceClassifier(precision=args.precision) if args.full else DiceClassifier()


if __name__ == "__main__":
    main()
