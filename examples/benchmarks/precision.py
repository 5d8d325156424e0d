"""F1 and seconds of training in float32 and in bfloat16 on a CPU, over seeds.

    python examples/benchmarks/precision.py DATA --out results/precision.jsonl

DATA holds `wnut17/`. Each run fine-tunes all weights of the default backbone on 1,500 sentences for
three epochs and scores the test set. The two precisions run in turn with the same seed.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path

import torch

from skdice import DiceTokenClassifier
from skdice.datasets import read_conll

PRECISIONS = ("fp32", "bf16")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    X, y = read_conll(args.data / "wnut17" / "wnut17train.conll")
    test = read_conll(args.data / "wnut17" / "emerging.test.annotated")
    for loss in ("ce", "ce_dice", "dsc"):
        scores: dict[str, list[float]] = {name: [] for name in PRECISIONS}
        seconds: dict[str, list[float]] = {name: [] for name in PRECISIONS}
        for seed in range(args.seeds):
            for precision in PRECISIONS:
                model = DiceTokenClassifier(
                    loss=loss, lr=3e-4, precision=precision, random_state=seed
                )
                start = time.perf_counter()
                model.fit(X[:1500], y[:1500])
                seconds[precision].append(time.perf_counter() - start)
                scores[precision].append(100 * model.score(*test))
                record = {"loss": loss, "precision": precision, "seed": seed}
                record |= {"f1": scores[precision][-1], "seconds": seconds[precision][-1]}
                with args.out.open("a") as file:
                    file.write(json.dumps(record) + "\n")
        shown = []
        for name in PRECISIONS:
            took = statistics.median(seconds[name])
            shown.append(f"{name} F1 {statistics.mean(scores[name]):.1f} in {took:.0f} s")
        print(f"{loss:8}", "  ".join(shown), flush=True)


if __name__ == "__main__":
    main()
