"""F1 and seconds of training in float32 and in bfloat16 on a CPU, over seeds; speed of prediction.

    python examples/benchmarks/precision.py DATA --out results/precision.jsonl
    python examples/benchmarks/precision.py DATA --predict 5

DATA holds `wnut17/`. Each run fine-tunes all weights of the default backbone on 1,500 sentences for
three epochs and scores the test set. The two precisions run in turn with the same seed. With
`--predict` one model predicts 640 sentences of the test set so many times in each, in turns; the
processor's time counts, which other programs disturb less.
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


def predict(X: list[list[str]], y: list[list[str]], test: list[list[str]], rounds: int) -> None:
    """Print words a second of processor time in each precision, and how many tags differ."""
    tagger = DiceTokenClassifier(max_epochs=1, frozen="encoder", random_state=0).fit(X, y)
    n_words = sum(map(len, test))
    seconds: dict[str, list[float]] = {name: [] for name in PRECISIONS}
    tags: dict[str, list[str]] = {}
    for _ in range(rounds + 1):  # the first compiles kernels and does not count
        for name in PRECISIONS:
            tagger.set_params(precision=name)
            start = time.process_time()
            tags[name] = [tag for row in tagger.predict(test) for tag in row]
            seconds[name].append(time.process_time() - start)
    speed = {name: n_words / statistics.median(seconds[name][1:]) for name in PRECISIONS}
    ratios = [a / b for a, b in zip(*(seconds[name][1:] for name in PRECISIONS), strict=True)]
    differ = sum(a != b for a, b in zip(*tags.values(), strict=True))
    print("  ".join(f"{name} {speed[name]:,.0f} words a second" for name in PRECISIONS))
    print(f"median ratio {statistics.median(ratios):.2f}; {differ} of {n_words} tags differ")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--out", type=Path, default=Path("precision.jsonl"))
    parser.add_argument("--predict", type=int, default=0, help="rounds; 0 trains")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    X, y = read_conll(args.data / "wnut17" / "wnut17train.conll")
    test = read_conll(args.data / "wnut17" / "emerging.test.annotated")
    if args.predict:
        predict(X[:64], y[:64], test[0][:640], args.predict)
        return
    for loss in ("ce", "ce_dice", "dsc"):
        scores: dict[str, list[float]] = {name: [] for name in PRECISIONS}
        seconds: dict[str, list[float]] = {name: [] for name in PRECISIONS}
        for seed in range(args.seeds):
            for precision in PRECISIONS:
                model = DiceTokenClassifier(
                    loss=loss, lr=3e-4, max_epochs=3, precision=precision, random_state=seed
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
