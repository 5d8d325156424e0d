"""Time and memory of the losses, alone and in a step of a model, against torch's cross-entropy.

    python examples/benchmarks/losses.py --out results/losses.json

First, forward and backward over N x C logits with nine tenths of the targets in class 0; losses
take turns in each round. Memory is the most that a call and its gradient hold at a time. Second,
the share of a loss in an update of MiniLM on 32 sentences. Third, a training step of a linear model
on 30 features, in a bare torch loop, in `DiceClassifier` and in scikit-learn's `MLPClassifier` (the
time of a whole fit). Prints medians and ratios to torch.

Wanted: at most 2 times torch at 16k x 9 and 4 times at 4k x 1,000, memory at most 4 times, and at
most 1 % of an update.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier

from skdice import DiceClassifier, __version__
from skdice.losses import COMPARED, resolve_loss

EPOCHS = 5  # of the small model
SIZES = ((16_384, 9), (4096, 1000), (256, 2))


def backward(loss: Callable[[], torch.Tensor], logits: torch.Tensor) -> float:
    logits.grad = None
    start = time.perf_counter()
    loss().backward()
    return time.perf_counter() - start


def made(n_rows: int, n_classes: int) -> tuple[torch.Tensor, dict[str, Callable[[], torch.Tensor]]]:
    """Logits, and every loss of them."""
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(n_rows, n_classes, generator=generator, requires_grad=True)
    others = torch.randint(n_classes, (n_rows,), generator=generator)
    target = torch.where(torch.rand(n_rows, generator=generator) < 0.9, 0, others)
    counts = torch.bincount(target, minlength=n_classes).numpy()
    losses: dict[str, Any] = {"F.cross_entropy": partial(F.cross_entropy, logits, target)}
    for name in COMPARED:
        for background in (0, None):
            loss = resolve_loss(name).prepare(counts, background=background)
            if background == 0 or loss.excludes_background or name == "ce_dice":
                losses[f"{name}, background {background}"] = partial(loss, logits, target)
    return logits, losses


def alone(n_rows: int, n_classes: int, rounds: int) -> dict[str, list[float]]:
    logits, losses = made(n_rows, n_classes)
    seconds: dict[str, list[float]] = {}
    for _ in range(rounds):
        for name, loss in losses.items():
            seconds.setdefault(name, []).append(backward(loss, logits))
    return seconds


def peak_memory(n_rows: int, n_classes: int) -> dict[str, float]:
    """MiB that a loss and its gradient hold at most, by the profiler's record of allocations."""
    logits, losses = made(n_rows, n_classes)
    peaks = {}
    for name, loss in losses.items():
        backward(loss, logits)
        logits.grad = None
        with torch.autograd.profiler.profile(profile_memory=True) as profiler:
            loss().backward()
        changes = [e for e in profiler.kineto_results.events() if e.name() == "[memory]"]
        changes.sort(key=lambda event: event.start_ns())
        peaks[name] = max(np.cumsum([event.nbytes() for event in changes])) / 2**20
    return peaks


def share_of_update(rounds: int) -> dict[str, float]:
    """The time of a loss over that of an update of MiniLM on 32 sentences, whole fits of ten."""
    from skdice import DiceTokenClassifier
    from skdice.datasets import load_town_notes

    X, y = load_town_notes(subset="train")
    X, y = list(X[:320]), list(y[:320])
    model = DiceTokenClassifier(max_epochs=1, batch_size=32, random_state=0, precision="fp32")
    updates = []
    for _ in range(3):
        start = time.perf_counter()
        model.fit(X, y)
        updates.append((time.perf_counter() - start) / 10)
    n_words = sum(map(len, X)) // 10
    seconds = alone(n_words, len(model.classes_), rounds)
    update = statistics.median(updates)
    return {name: statistics.median(values) / update for name, values in seconds.items()}


def bare_steps(X: np.ndarray, y: np.ndarray, batch_size: int, n_steps: int) -> float:
    """Seconds a step of a loop that a user would write."""
    model = torch.nn.Linear(X.shape[1], 2)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
    rows, labels = torch.from_numpy(X), torch.from_numpy(y)
    start = time.perf_counter()
    for _ in range(EPOCHS):
        order = torch.randperm(batch_size * n_steps)
        for i in range(n_steps):
            batch = order[i * batch_size : (i + 1) * batch_size]
            optimizer.zero_grad()
            F.cross_entropy(model(rows[batch]), labels[batch]).backward()
            optimizer.step()
    return (time.perf_counter() - start) / n_steps / EPOCHS


def our_steps(X: np.ndarray, y: np.ndarray, batch_size: int, n_steps: int, loss: str) -> float:
    n = batch_size * n_steps
    model = DiceClassifier(loss=loss, max_epochs=EPOCHS, batch_size=batch_size, random_state=0)
    start = time.perf_counter()
    model.fit(X[:n], y[:n])
    return (time.perf_counter() - start) / n_steps / EPOCHS


def steps_of_sklearn(X: np.ndarray, y: np.ndarray, batch_size: int, n_steps: int) -> float:
    """Of the same linear model: a perceptron without hidden layers."""
    n = batch_size * n_steps
    model = MLPClassifier(
        (), batch_size=batch_size, max_iter=EPOCHS, n_iter_no_change=EPOCHS + 1, random_state=0
    )
    start = time.perf_counter()
    model.fit(X[:n], y[:n])
    return (time.perf_counter() - start) / n_steps / EPOCHS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)  # of MLPClassifier, after so few epochs
    torch.set_num_threads(args.threads)
    report: dict[str, Any] = {
        "skdice": __version__,
        "torch": torch.__version__,
        "threads": args.threads,
        "rounds": args.rounds,
        "seconds": {},
    }

    def show(title: str, seconds: dict[str, list[float]], first: str) -> None:
        report["seconds"][title] = seconds
        medians = {name: statistics.median(values) for name, values in seconds.items()}
        print(title)
        for name, median in medians.items():
            print(f"  {name:26} {1e3 * median:8.3f} ms   {median / medians[first]:6.2f} x")

    for n_rows, n_classes in SIZES:
        show(f"{n_rows} x {n_classes}", alone(n_rows, n_classes, args.rounds), "F.cross_entropy")
    for n_rows, n_classes in SIZES[:2]:
        title = f"memory, {n_rows} x {n_classes}"
        report.setdefault("memory", {})[title] = peaks = peak_memory(n_rows, n_classes)
        print(title)
        for name, peak in peaks.items():
            print(f"  {name:26} {peak:8.1f} MiB  {peak / peaks['F.cross_entropy']:6.2f} x")
    report["share of an update of MiniLM"] = shares = share_of_update(args.rounds)
    print("share of an update of MiniLM, 32 sentences")
    for name, share in shares.items():
        print(f"  {name:26} {share:8.2%}")
    X, y = make_classification(40_000, 30, weights=[0.9], random_state=0)
    X = X.astype(np.float32)
    for batch_size in (8, 32, 512):
        n_steps = min(400, len(X) // batch_size)
        programs = {"torch loop": partial(bare_steps, X, y, batch_size, n_steps)}
        for loss in ("ce", "dsc"):
            programs[f"DiceClassifier, {loss}"] = partial(
                our_steps, X, y, batch_size, n_steps, loss
            )
        programs["MLPClassifier"] = partial(steps_of_sklearn, X, y, batch_size, n_steps)
        seconds: dict[str, list[float]] = {}
        for _ in range(max(5, args.rounds // 3)):
            for name, program in programs.items():
                seconds.setdefault(name, []).append(program())
        show(f"a step, batch {batch_size}", seconds, "torch loop")
    args.out.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
