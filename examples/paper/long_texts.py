"""One positive sentence in a long document: all windows of it, or the first one only.

    python long_texts.py frozen --data FOLDER --set sms
    python long_texts.py frozen --data FOLDER --set sms --words 500 --max-length 128
    python long_texts.py fine-tuned --data FOLDER --set sms --max-length 512 128 64

A document joins negative rows of a data set, drawn at random, to 2,000 words, or `--words`. A
positive one has a positive row at a random place. Test documents are made of test rows: 25 positive
and 75 negative ones, which are weighted so that 2 % of the documents are positive.

Models learn from the short rows themselves and predict documents ("short"), or from 80 documents,
of which 15 are positive ("documents"). ``fine-tuned`` trains all weights on short rows, tunes the
threshold on documents of training rows, and has 100 positive and 200 negative test documents.
``frozen`` trains linear heads on vectors of windows from the frozen encoder, pooled as in training,
with three seeds.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.metrics import average_precision_score, f1_score, precision_recall_fscore_support

from skdice import DiceSequenceClassifier
from skdice.engine.window_pooling import POOLINGS, WindowPooling
from skdice.losses import resolve_loss

if __package__:
    from .tasks import cell, load
else:
    from tasks import cell, load

HERE = Path(__file__).parent
SETS = {"sms": "sms", "clinc": "clinc_rare"}
N_TEST, N_TRAIN, N_TUNED, SHARE = (25, 75), (15, 65), (100, 200), 0.02
SHORT = {"seed": 0, "train_rows": 1000, "dev_rows": 10, "test_rows": 600}
STEPS, SEEDS = 400, range(3)
Part = tuple[list[torch.Tensor], np.ndarray]  # windows of each text, and whether it is positive


def documents(
    rows: tuple[list[str], list[Any]], positive: Any, sizes: tuple[int, int], words: int, seed: int
) -> tuple[list[str], np.ndarray]:
    """So many positive and negative documents, in this order."""
    draw = np.random.default_rng(seed)
    rare = [text for text, label in zip(*rows, strict=True) if label == positive]
    others = [text for text, label in zip(*rows, strict=True) if label != positive]
    y, texts = np.repeat([1, 0], sizes), []
    for label in y:
        parts: list[str] = []
        length = 0
        while length < words:
            parts.append(others[draw.integers(len(others))])
            length += len(parts[-1].split())
        if label:
            parts[draw.integers(len(parts))] = rare[draw.integers(len(rare))]
        texts.append(". ".join(parts))
    return texts, y


def weights_of(y: np.ndarray) -> np.ndarray:
    """Weights of documents, by which `SHARE` of them are positive."""
    return np.where(y == 1, SHARE / y.sum(), (1 - SHARE) / (y == 0).sum())


def scores(y: np.ndarray, margins: np.ndarray) -> dict[str, float]:
    """Scores of the decision and of the ranking; `best_f1` is that of the best threshold."""
    weights = weights_of(y)
    p, r, f, _ = precision_recall_fscore_support(
        y, margins > 0, average="binary", sample_weight=weights, zero_division=0
    )
    ap = average_precision_score(y, margins, sample_weight=weights)
    best = max(f1_score(y, margins >= cut, sample_weight=weights) for cut in np.unique(margins))
    values = {"precision": p, "recall": r, "f1": f, "best_f1": best, "average_precision": ap}
    return {name: round(100 * float(value), 1) for name, value in values.items()}


def padded(windows: list[torch.Tensor], how: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Windows of each text in one table, and where it holds some; to truncate is to take one."""
    kept = [rows[:1] if how == "truncate" else rows for rows in windows]
    values = torch.nn.utils.rnn.pad_sequence(kept, batch_first=True)
    return values, torch.arange(values.shape[1]) < torch.tensor([len(rows) for rows in kept])[
        :, None
    ]


def fitted_head(train: Part, how: str, seed: int) -> torch.nn.Linear:
    """A linear head whose logits of windows are pooled in training."""
    windows, target = train
    torch.manual_seed(seed)
    head, draw = torch.nn.Linear(windows[0].shape[1], 2), np.random.default_rng(seed)
    loss = resolve_loss("ce_dice").prepare(np.bincount(target), background=0)
    optimizer = torch.optim.AdamW(head.parameters(), lr=1e-2, weight_decay=0.01)
    pool = WindowPooling("max" if how == "truncate" else how, positive=1)
    values, inside = padded(windows, how)
    for _ in range(STEPS):
        some = draw.choice(len(target), 32, replace=False)
        optimizer.zero_grad()
        loss(pool(head(values[some]), inside[some]), torch.from_numpy(target[some])).backward()
        optimizer.step()
    return head


@torch.no_grad()
def margins(logits: Callable[[torch.Tensor], torch.Tensor], test: Part, how: str) -> np.ndarray:
    """Log-odds of documents."""
    values, inside = padded(test[0], how)
    z = WindowPooling("max" if how == "truncate" else how, positive=1)(logits(values), inside)
    return (z[:, 1] - z[:, 0]).numpy()


def frozen(whole: Any, words: int, sizes: list[int]) -> list[dict[str, Any]]:
    """Heads on the vectors of windows."""
    task = cell(whole, SHORT)
    clf = DiceSequenceClassifier(max_length=sizes[0], precision="bf16", batch_size=16)
    clf._build(2, seed=0)

    def vectors(texts: list[str], y: np.ndarray) -> Part:
        windows = clf._windows(texts)
        table = torch.from_numpy(np.stack(clf._frozen(windows, "mean")))
        return list((table / 0.3).split(np.bincount(windows.rows).tolist())), y

    made = [
        documents(rows, whole.pos_label, n, words, seed)
        for rows, n, seed in ((whole.train, N_TRAIN, 1), (whole.test, N_TEST, 0))
    ]
    of_documents, test = (vectors(*each) for each in made)
    X, labels = task.train
    rows = vectors(X, np.array([int(label == task.pos_label) for label in labels]))
    results: list[dict[str, Any]] = []
    for name, train in {"short": rows, "documents": of_documents}.items():
        for how in ("truncate", *POOLINGS):
            heads = [fitted_head(train, how, seed) for seed in SEEDS]
            each = [scores(test[1], margins(head, test, how)) for head in heads]
            mean = {key: round(float(np.mean([s[key] for s in each])), 1) for key in each[0]}
            results.append({"train": name, "long_texts": how, **mean})
            print(results[-1], flush=True)
    return results


def fine_tuned(whole: Any, words: int, sizes: list[int]) -> list[dict[str, Any]]:
    """All weights, trained on short rows as `fit` chooses, predict documents.

    The threshold is tuned on documents of training rows; windows of each size are tried, and the
    beginning that fits into the largest.
    """
    task = cell(whole, SHORT)
    train, test = (
        (rows[0], [int(label == task.pos_label) for label in rows[1]])
        for rows in (task.train, task.test)
    )
    clf = DiceSequenceClassifier(random_state=0).fit(*train)
    f1, epochs = clf.score(*test), clf.max_epochs_
    results: list[dict[str, Any]] = [{"test": "rows", "f1": round(100 * f1, 1), "epochs": epochs}]
    made = [
        documents(rows, whole.pos_label, N_TUNED, words, seed)
        for rows, seed in ((whole.train, 1), (whole.test, 0))
    ]
    clf.set_params(precision="bf16", batch_size=16)
    for size in sorted(sizes, reverse=True):
        clf.set_params(max_length=size)
        logits = [
            [torch.from_numpy(np.stack([z for _, z in text])) for text in clf._predicted(texts)]
            for texts, _ in made
        ]
        parts = [(windows, y) for windows, (_, y) in zip(logits, made, strict=True)]
        for how in ("truncate", *POOLINGS) if size == max(sizes) else POOLINGS:
            tuning, tested = (margins(lambda z: z, part, how) for part in parts)
            shift = -best_cut(made[0][1], tuning)
            row = {"windows": size, "long_texts": how, "plain": scores(made[1][1], tested)}
            results.append(row | {"tuned": scores(made[1][1], tested + shift)})
            print(results[-1], flush=True)
    return results


def best_cut(y: np.ndarray, margins: np.ndarray) -> float:
    """The threshold of the best F1, half-way to the next margin below it."""
    cuts = np.unique(margins)
    weights = weights_of(y)
    found = [f1_score(y, margins >= cut, sample_weight=weights) for cut in cuts]
    best = int(np.argmax(found))
    return float(cuts[best] - 1e-6 if best == 0 else (cuts[best] + cuts[best - 1]) / 2)


RUNS = {"frozen": frozen, "fine-tuned": fine_tuned}


def main() -> None:
    """Run one data set and write its records."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=RUNS)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--set", choices=SETS, default="sms")
    parser.add_argument("--words", type=int, default=2000)
    parser.add_argument("--max-length", type=int, nargs="+", default=[512])
    parser.add_argument("--out", type=Path, default=HERE / "results" / "long_texts.json")
    args = parser.parse_args()
    started = time.process_time()
    whole = load(SETS[args.set], args.data)
    rows = RUNS[args.what](whole, args.words, args.max_length)
    seconds = round(time.process_time() - started)
    key = f"{args.what}, {args.set}, {args.words} words in windows of "
    key += ", ".join(map(str, args.max_length))
    records = json.loads(args.out.read_text()) if args.out.exists() else {}
    records[key] = {"core_seconds": seconds, "rows": rows}
    args.out.write_text(json.dumps(records, indent=1) + "\n")


if __name__ == "__main__":
    main()
