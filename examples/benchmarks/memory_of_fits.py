"""Does the memory of one process grow with the number of its fits?

    python memory_of_fits.py                 # 100 fits of MiniLM in bf16, one process
    python memory_of_fits.py --fits 20 --precision fp32

Each fit trains on another draw of sentences, so that its batches have shapes of their own, and is
then deleted. Kernels are compiled for a shape and kept: where shapes never recur, memory grows.
Prints resident memory after some of the fits, and by how much it grew after the fifth; above 20 %
it fails.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import sys
import time
from pathlib import Path

import numpy as np
import torch

MOST = 0.2


def resident() -> float:
    """Memory of this process, MiB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 2**20


def curve(n_fits: int, n_sentences: int, precision: str) -> tuple[list[float], list[float]]:
    """Memory after each fit, MiB, and seconds of each fit."""
    from skdice import DiceTokenClassifier
    from skdice.datasets import load_town_notes

    X, y = load_town_notes(subset="train")
    memory, seconds = [], []
    for seed in range(n_fits):
        rows = np.random.default_rng(seed).choice(len(X), n_sentences)
        model = DiceTokenClassifier(max_epochs=1, precision=precision, random_state=seed)
        start = time.perf_counter()
        model.fit([X[i] for i in rows], [y[i] for i in rows])
        seconds.append(time.perf_counter() - start)
        del model
        gc.collect()
        memory.append(resident())
    return memory, seconds


def growth(memory: list[float]) -> float:
    """The share by which memory grew after the fifth fit; of the last five the median counts."""
    return statistics.median(memory[-5:]) / memory[4] - 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fits", type=int, default=100)
    parser.add_argument("--sentences", type=int, default=160)
    parser.add_argument("--precision", default="bf16")
    args = parser.parse_args()
    if args.fits < 10:
        parser.error("--fits must be 10 or more")
    torch.set_num_threads(1)
    memory, seconds = curve(args.fits, args.sentences, args.precision)
    print("| fits | MiB | seconds a fit |\n|---:|---:|---:|")
    for n in sorted({1, 2, 5, 10, 20, 50, args.fits}):
        if n <= args.fits:
            print(f"| {n} | {memory[n - 1]:,.0f} | {statistics.median(seconds[:n]):.2f} |")
    print(f"growth after the fifth fit: {growth(memory):+.0%} (at most {MOST:.0%})", flush=True)
    sys.exit(growth(memory) > MOST)


if __name__ == "__main__":
    main()
