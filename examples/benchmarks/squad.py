"""Question answering with unanswerable questions: losses against AutoModelForQuestionAnswering.

    python squad.py dev-v2.0.json --out results/squad.jsonl

The file is SQuAD 2.0's JSON. The first --train articles are for training, and the last of these
tunes the null threshold. The rest are for testing. Each finished run is one JSON line in --out.
Runs that --out holds are not repeated.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections import defaultdict
from pathlib import Path

import numpy as np
import plain_reader
import torch
import transformers

from skdice import DiceQuestionAnswerer, __version__
from skdice.backbones import DEFAULT_BACKBONE, find_backbone
from skdice.datasets import read_squad
from skdice.metrics import answer_exact_match_score, answer_f1_score
from skdice.text.best_answers import tune_null_threshold

ROWS = ["plain torch ce", "ce", "focal", "dice", "dsc"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--rows", nargs="+", default=ROWS)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--train", type=int, default=12, help="articles to train on")
    parser.add_argument("--limit", type=int, help="train on this many questions, drawn at random")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--lr", type=float, default=1e-4)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
    args = parser.parse_args()
    titles = [a["title"] for a in json.loads(args.file.read_text())["data"]]
    train = read_squad(args.file, articles=titles[: args.train - 1])
    dev = read_squad(args.file, articles=[titles[args.train - 1]])
    test = read_squad(args.file, articles=titles[args.train :])
    if args.limit is not None:
        chosen = np.random.default_rng(0).permutation(len(train[0]))[: args.limit]
        train = [train[0][i] for i in chosen], [train[1][i] for i in chosen]
    settings = {
        "epochs": args.epochs,
        "lr": args.lr,
        "batch_size": args.batch_size,
        "precision": args.precision,
        "n_train": len(train[0]),
        "n_dev": len(dev[0]),
        "n_test": len(test[0]),
    }
    machine = {
        "skdice": __version__,
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "python": platform.python_version(),
        "threads": torch.get_num_threads(),
        "device": "cuda" if torch.cuda.is_available() else "cpu",
        "date": time.strftime("%Y-%m-%d"),
    }
    print(settings)
    for seed in range(args.seeds):
        for row in args.rows:
            done = read(args.out)
            if any((r["row"], r["seed"], r["settings"]) == (row, seed, settings) for r in done):
                continue
            started = time.perf_counter()
            options = {name: settings[name] for name in ("lr", "batch_size", "precision")}
            if row == "plain torch ce":
                backbone = find_backbone(DEFAULT_BACKBONE)
                model, tokenizer = plain_reader.fit(
                    backbone, *train, epochs=args.epochs, seed=seed, **options
                )
                ranked = [
                    plain_reader.rank(model, tokenizer, X, args.precision)
                    for X in (dev[0], test[0])
                ]
            else:
                reader = DiceQuestionAnswerer(
                    loss=row,
                    max_epochs=args.epochs,
                    random_state=seed,
                    null_threshold=0.0,
                    max_length=plain_reader.MAX_LENGTH,
                    stride=plain_reader.STRIDE,
                    **options,
                ).fit(*train)
                ranked = [ranks_of(reader, X) for X in (dev[0], test[0])]
            seconds = time.perf_counter() - started
            record = {"row": row, "seed": seed, "settings": settings, "seconds": seconds}
            record.update(figures(*ranked, dev[1], test[1]), **machine)
            args.out.parent.mkdir(parents=True, exist_ok=True)
            with args.out.open("a") as file:
                file.write(json.dumps(record) + "\n")
            print(row, seed, {k: round(100 * record[k], 2) for k in NAMES}, f"{seconds:.0f} s")
    table(read(args.out), settings)


NAMES = ("em", "f1", "em_tuned", "f1_tuned", "f1_answerable", "f1_unanswerable")


def ranks_of(reader: DiceQuestionAnswerer, X: list) -> list:
    """Best answer, its score and that of no answer, as the plain reader gives them."""
    found = []
    for (_, context), (answers, null) in zip(X, reader._rank(X, 1), strict=True):
        best = answers[0]
        found.append((context[best.start : best.end], best.score, null))
    return found


def figures(dev_ranks: list, test_ranks: list, dev_y: list, test_y: list) -> dict[str, float]:
    """Exact match and F1 with the null threshold at 0, and tuned on the development article."""
    gaps = np.array([null - score for _, score, null in dev_ranks])
    values = np.array(
        [answer_f1_score([y], [t]) for y, (t, _, _) in zip(dev_y, dev_ranks, strict=True)]
    )
    nulls = np.array([float(not y) for y in dev_y])
    tuned = tune_null_threshold(gaps, values, nulls)
    found: dict[str, float] = {"threshold": tuned}
    for suffix, threshold in (("", 0.0), ("_tuned", tuned)):
        texts = [t if null - s <= threshold else "" for t, s, null in test_ranks]
        found[f"em{suffix}"] = answer_exact_match_score(test_y, texts)
        found[f"f1{suffix}"] = answer_f1_score(test_y, texts)
    for name, wanted in (("answerable", True), ("unanswerable", False)):
        part = [(y, t) for y, t in zip(test_y, texts, strict=True) if bool(y) == wanted]
        found[f"f1_{name}"] = answer_f1_score([y for y, _ in part], [t for _, t in part])
    return found


def read(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.open()] if path.exists() else []


def table(records: list[dict], settings: dict) -> None:
    groups = defaultdict(list)
    for record in records:
        if record["settings"] == settings:
            groups[record["row"]].append(record)
    print(f"\n{'row':15} " + " ".join(f"{name:>15}" for name in NAMES) + "  runs  median s")
    for row, runs in groups.items():
        cells = " ".join(f"{100 * np.mean([r[k] for r in runs]):15.2f}" for k in NAMES)
        print(f"{row:15} {cells}  {len(runs):4}  {np.median([r['seconds'] for r in runs]):8.0f}")


if __name__ == "__main__":
    main()
