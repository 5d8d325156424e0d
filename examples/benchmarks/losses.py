"""The time of the losses as a share of an update.

    python examples/benchmarks/losses.py --out results/losses.json

The time of each loss, forward and backward, over that of an update of MiniLM on 32 sentences: for a
logit of each tag of each word, and for 1,000 classes of each sentence and of each word. Losses take
turns in each round. Prints medians of the processor's time, so that other work beside it counts
little.

Wanted: at most 1 % of an update, and 3 % with 1,000 classes.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch

from skdice import __version__
from skdice.losses import LOSS_NAMES
from skdice.losses.base import resolve_loss


def backward(loss: Callable[[], torch.Tensor], logits: torch.Tensor) -> float:
    logits.grad = None
    start = time.process_time()
    loss().backward()
    return time.process_time() - start


def alone(n_rows: int, n_classes: int, rounds: int) -> dict[str, float]:
    """Median seconds of each loss of so many logits, forward and backward."""
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(n_rows, n_classes, generator=generator, requires_grad=True)
    others = torch.randint(n_classes, (n_rows,), generator=generator)
    target = torch.where(torch.rand(n_rows, generator=generator) < 0.9, 0, others)
    counts = torch.bincount(target, minlength=n_classes).numpy()
    losses: dict[str, Callable[[], torch.Tensor]] = {}
    for name in LOSS_NAMES:
        for background in (0, None):
            loss = resolve_loss(name).prepare(counts, background=background)
            if background == 0 or loss.excludes_background or name == "ce_dice":
                losses[f"{name}, background {background}"] = partial(loss, logits, target)
    seconds: dict[str, list[float]] = {}
    for _ in range(rounds):
        for name, call in losses.items():
            seconds.setdefault(name, []).append(backward(call, logits))
    return {name: statistics.median(values) for name, values in seconds.items()}


def shares_of_update(rounds: int) -> dict[str, dict[str, float]]:
    """The time of each loss over that of an update of MiniLM, whole fits of ten."""
    from skdice import DiceTokenClassifier
    from skdice.datasets import load_town_notes

    X, y = load_town_notes(subset="train")
    X, y = list(X[:320]), list(y[:320])
    model = DiceTokenClassifier(max_epochs=1, batch_size=32, random_state=0, precision="fp32")
    updates = []
    for _ in range(3):
        start = time.process_time()
        model.fit(X, y)
        updates.append((time.process_time() - start) / 10)
    n_words, update = sum(map(len, X)) // 10, statistics.median(updates)
    sizes = ((n_words, len(model.classes_)), (32, 1000), (n_words, 1000))
    return {
        f"{n_rows} x {n_classes}": {
            name: seconds / update for name, seconds in alone(n_rows, n_classes, rounds).items()
        }
        for n_rows, n_classes in sizes
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    report: dict[str, Any] = {
        "skdice": __version__,
        "torch": torch.__version__,
        "threads": args.threads,
        "rounds": args.rounds,
    }

    report["share of an update of MiniLM"] = shares_of_update(args.rounds)
    for size, shares in report["share of an update of MiniLM"].items():
        print(f"share of an update of MiniLM on 32 sentences, {size} logits")
        for name, share in shares.items():
            print(f"  {name:26} {share:8.2%}")
    args.out.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
