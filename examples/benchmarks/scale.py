"""Time and memory of fits and predictions as the data grow.

    python examples/benchmarks/scale.py --out results/scale.json
    python examples/benchmarks/scale.py --rows 1000000 --out results/scale.json

Texts are generated words. The encoder is small and random (one layer of 32), so it does not hide
the cost of skdice itself. Every point is one run in a process of its own. Its memory is the peak
above a process that has only loaded the model.
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

from skdice import DiceSequenceClassifier, DiceTokenClassifier, __version__
from skdice.backbones import DEFAULT_BACKBONE, find_backbone

WORDS = np.array(["the", "bus", "late", "green", "river", "anna", "rome", "sees", "old", "is"])


def peak() -> float:
    """MiB that this process has needed at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def point(kind: str, size: int, backbone: str) -> dict[str, float]:
    """Fit and predict one size."""
    draw = np.random.default_rng(0)
    n, length = {"sentences": (size, 20), "tokens": (max(2**18 // size, 8), size)}.get(
        kind, (4000, 20)
    )
    X = [WORDS[draw.integers(len(WORDS), size=length)].tolist() for _ in range(n)]
    common = {"backbone": backbone, "max_epochs": 1, "batch_size": 32, "random_state": 0}
    if kind == "classes":
        X = [" ".join(row) for row in X]
        y: Any = draw.permutation(np.arange(n) % size)
        model: Any = DiceSequenceClassifier(**common)
    else:
        y = [["B-X" if p < 0.05 else "O" for p in draw.random(length)] for _ in range(n)]
        model = DiceTokenClassifier(**common)
    few = size if kind == "classes" else 8
    model.fit(X[:few], y[:few])
    before = peak()
    start = time.perf_counter()
    model.fit(X, y)
    fitted, of_fit = time.perf_counter() - start, peak() - before
    start = time.perf_counter()
    model.predict(X)
    return {
        "size": size,
        "rows": n,
        "fit, s": fitted,
        "predict, s": time.perf_counter() - start,
        "fit, MiB": of_fit,
        "fit and predict, MiB": peak() - before,
        # Ids and labels of subwords, of eight bytes each.
        "tokenised, MiB": 2 * 8 * n * (length + 2) / 2**20,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--rows", type=int, default=100_000, help="sentences of the largest point")
    parser.add_argument("--point", nargs=3, metavar=("KIND", "SIZE", "BACKBONE"))
    args = parser.parse_args()
    torch.set_num_threads(1)
    if args.point:
        kind, size, backbone = args.point
        print(json.dumps(point(kind, int(size), backbone)))
        return
    report: dict[str, Any] = {
        "date": time.strftime("%Y-%m-%d"),
        "skdice": __version__,
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "processor": platform.processor() or platform.machine(),
    }
    rows = [n for n in (1000, 10_000, 100_000, 1_000_000) if n <= args.rows]
    sizes = {"sentences": rows, "tokens": [16, 64, 256, 1024, 4096], "classes": [2, 10, 100, 1000]}
    with tempfile.TemporaryDirectory() as folder:
        tokenizer = transformers.AutoTokenizer.from_pretrained(find_backbone(DEFAULT_BACKBONE))
        config = transformers.BertConfig(
            vocab_size=len(tokenizer), hidden_size=32, num_hidden_layers=1,
            num_attention_heads=2, intermediate_size=64,
        )  # fmt: skip
        transformers.BertModel(config).save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        for kind, values in sizes.items():
            print(kind)
            for size in values:
                command = [sys.executable, __file__, "--point", kind, str(size), folder]
                done = subprocess.run(command, capture_output=True, text=True, check=True)
                found = json.loads(done.stdout.strip().splitlines()[-1])
                report.setdefault(kind, []).append(found)
                shown = "  ".join(f"{name} {value:,.1f}" for name, value in found.items())
                print(f"  {shown}", flush=True)
    if args.out is not None:
        args.out.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
