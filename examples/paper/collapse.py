"""Does any default end with every example called negative? A grid on frozen features.

    python collapse.py --data FOLDER --out results/collapse.json

Ten spam messages among a thousand others, encoded once by the frozen default backbone; every loss
by name, batches of 8, 32 and 128, rates from 1e-3 to 1e-1, three seeds. A cell that scores F1 = 0
on the rest of the messages is a collapse. Below the names stand the steps from the formula of dice
to its default.
"""

from __future__ import annotations

import argparse
import json
import time
from itertools import product
from pathlib import Path

import numpy as np
import tasks
from run import environment
from sklearn.metrics import f1_score

from skdice import DiceClassifier, TransformerFeatures
from skdice.losses import DiceLoss

NAMES = ("ce", "weighted_ce", "focal", "dice", "tversky", "dsc", "ce_dice")
LOSSES = {
    **{name: name for name in NAMES},
    "dice, formula": DiceLoss(),
    "smooth 0.01": DiceLoss(smooth=0.01),
    "and surrogate": DiceLoss(smooth=0.01, surrogate="log"),
    **{
        f"and ema {decay}": DiceLoss(smooth=0.01, surrogate="log", ema_decay=decay)
        for decay in (0.3, 0.7, 0.9)
    },
}
BATCHES = (8, 32, 128)
RATES = (1e-3, 1e-2, 1e-1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--positives", type=int, default=10)
    parser.add_argument("--negatives", type=int, default=1000)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    texts, labels = tasks._sms_rows(args.data)
    X, y = TransformerFeatures().fit_transform(texts), np.array(labels)
    started = time.perf_counter()
    cells: dict[str, list[float]] = {}
    for seed in range(args.seeds):
        generator = np.random.default_rng(seed)
        spam, ham = (generator.permutation(np.flatnonzero(y == c)) for c in ("spam", "ham"))
        train = np.concatenate([spam[: args.positives], ham[: args.negatives]])
        test = np.setdiff1d(np.arange(len(y)), train)
        for loss, batch_size, lr in product(LOSSES, BATCHES, RATES):
            model = DiceClassifier(
                loss=LOSSES[loss],
                batch_size=batch_size,
                lr=lr,
                max_epochs=args.epochs,
                pos_label="spam",
                random_state=seed,
            ).fit(X[train], y[train])
            score = f1_score(y[test], model.predict(X[test]), pos_label="spam", zero_division=0)
            cells.setdefault(f"{loss} {batch_size} {lr:g}", []).append(round(float(score), 4))
    columns = [f"{b} {lr:g}" for b, lr in product(BATCHES, RATES)]
    print(
        f"{args.positives} positives, {args.negatives} negatives, {args.epochs} epochs, lowest F1 "
        f"of {args.seeds} seeds, and the mean over cells and seeds"
    )
    print(f"{'loss':14}" + "".join(f"{column:>10}" for column in columns) + f"{'mean':>10}")
    for loss in LOSSES:
        rows = [cells[f"{loss} {column}"] for column in columns]
        values = [100 * min(row) for row in rows] + [100 * np.mean(rows)]
        print(f"{loss:14}" + "".join(f"{value:10.1f}" for value in values))
    dead = [name for name, scores in cells.items() if min(scores) == 0]
    print(f"collapsed: {dead or 'none'} ({time.perf_counter() - started:.0f} s)")
    if args.out is not None:
        settings = {"positives": args.positives, "negatives": args.negatives, "epochs": args.epochs}
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text(json.dumps({**settings, **environment(), "f1": cells}, indent=1) + "\n")


if __name__ == "__main__":
    main()
