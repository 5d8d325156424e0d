"""F1 of all six losses and a plain torch loop on WNUT17, with full fine-tuning.

    python wnut17.py FOLDER --seeds 3 --out results/wnut17.jsonl
    python wnut17.py FOLDER --rows "reading ce" "reading dsc" --out results/wnut17.jsonl

The second command uses DiceMRCTagger, which asks one question for each of the six types; its
batches are batches of questions. Development F1 picks the epoch.

FOLDER holds wnut17train.conll, emerging.dev.conll and emerging.test.annotated. Each finished run is
one JSON line in --out. Runs that --out holds are not repeated.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections import defaultdict
from pathlib import Path

import numpy as np
import plain_loop
import sklearn
import torch
import transformers

from skdice import DiceMRCTagger, DiceTokenClassifier, __version__
from skdice.backbones import DEFAULT_BACKBONE, find_backbone
from skdice.datasets import read_conll
from skdice.metrics import span_f1_score, span_precision_score, span_recall_score

ROWS = ["plain torch ce", "ce", "weighted_ce", "focal", "dice", "tversky", "dsc"]
READING = [f"reading {loss}" for loss in ("ce", "focal", "dice", "dsc")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rows", nargs="+", default=ROWS, choices=ROWS + READING)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--lr", type=float, default=3e-4)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
    args = parser.parse_args()
    names = "wnut17train.conll", "emerging.dev.conll", "emerging.test.annotated"
    train, dev, test = (read_conll(args.folder / name) for name in names)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    settings = {"epochs": args.epochs, "lr": args.lr, "batch_size": args.batch_size}
    if args.precision != "fp32":
        settings["precision"] = args.precision
    machine = {
        "skdice": __version__,
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "sklearn": sklearn.__version__,
        "python": platform.python_version(),
        "threads": torch.get_num_threads(),
        "date": time.strftime("%Y-%m-%d"),
        "device": "cuda" if torch.cuda.is_available() else "cpu",
    }
    for seed in range(args.seeds):
        for row in args.rows:
            if any(
                r["row"] == row and r["seed"] == seed and r["settings"] == settings
                for r in read(args.out)
            ):
                continue
            started = time.perf_counter()
            if row == "plain torch ce" and args.precision != "fp32":
                raise SystemExit("the plain loop computes in fp32: leave --precision out")
            if row == "plain torch ce":
                predicted = plain_loop.fit_predict(
                    find_backbone(DEFAULT_BACKBONE),
                    train,
                    test,
                    seed=seed,
                    dev=dev,
                    score=span_f1_score,
                    epochs=args.epochs,
                    lr=args.lr,
                    batch_size=args.batch_size,
                )
            else:
                reads = row.startswith("reading ")
                tagger = (DiceMRCTagger if reads else DiceTokenClassifier)(
                    loss=row.removeprefix("reading "),
                    precision=args.precision,
                    max_epochs=args.epochs,
                    lr=args.lr,
                    batch_size=args.batch_size,
                    early_stopping=True,
                    n_iter_no_change=args.epochs,
                    random_state=seed,
                )
                predicted = tagger.fit(*train, X_val=dev[0], y_val=dev[1]).predict(test[0])
            record = {
                "row": row,
                "seed": seed,
                "settings": settings,
                "precision": span_precision_score(test[1], predicted),
                "recall": span_recall_score(test[1], predicted),
                "f1": span_f1_score(test[1], predicted),
                "seconds": time.perf_counter() - started,
                **machine,
            }
            with args.out.open("a") as file:
                file.write(json.dumps(record) + "\n")
            print(
                f"{row:15} seed {seed}  F1 {record['f1']:.4f}  {record['seconds']:.0f} s",
                flush=True,
            )
    table(read(args.out), settings)


def read(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.open()] if path.exists() else []


def table(records: list[dict], settings: dict) -> None:
    groups = defaultdict(list)
    for record in records:
        if record["settings"] == settings:
            groups[record["row"]].append(record)
    print("\nrow              precision  recall     F1 mean ± sd   runs  median s")
    for row, runs in groups.items():
        mean = {k: 100 * np.mean([r[k] for r in runs]) for k in ("precision", "recall", "f1")}
        sd = 100 * np.std([r["f1"] for r in runs], ddof=1) if len(runs) > 1 else float("nan")
        print(
            f"{row:15}  {mean['precision']:9.2f}  {mean['recall']:6.2f}  {mean['f1']:9.2f} ± "
            f"{sd:4.2f}  {len(runs):5}  {np.median([r['seconds'] for r in runs]):8.0f}"
        )


if __name__ == "__main__":
    main()
