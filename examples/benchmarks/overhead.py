"""What skdice adds to a plain torch step: the same batches, interleaved step by step.

    python examples/benchmarks/overhead.py FILE.conll --steps 60

Prints the median seconds of both and the ratio. Both train all weights with cross-entropy. Padding
is done inside the timed part on both sides, tokenising on neither.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import plain_loop
import torch
from transformers import AutoTokenizer

from skdice import DiceTokenClassifier
from skdice.backbones import DEFAULT_BACKBONE, find_backbone
from skdice.datasets import read_conll


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--batch-size", type=int, default=32)
    args = parser.parse_args()
    X, y = read_conll(args.file)
    tagger = DiceTokenClassifier(
        loss="ce", max_epochs=1, batch_size=args.batch_size, random_state=0
    )
    tagger.fit(X[: args.batch_size], y[: args.batch_size])
    net = tagger.net_
    classes = sorted({tag for row in y for tag in row})
    backbone = find_backbone(DEFAULT_BACKBONE)
    tokenizer = AutoTokenizer.from_pretrained(backbone)
    plain = plain_loop.PlainTagger(backbone, len(tagger.classes_))
    optimizer = plain_loop.optimizer_for(plain, 1e-4)
    known = set(tagger.classes_)
    y = [[t if t in known else "O" for t in row] for row in y]
    dataset = tagger._encode(X, y)
    rows = plain_loop.encode(tokenizer, X, y, {t: i for i, t in enumerate(tagger.classes_)})
    net._start_schedule(args.steps, "linear", 0.1)
    generator = np.random.default_rng(0)
    batches = [
        generator.choice(len(X), args.batch_size, replace=False) for _ in range(args.steps + 5)
    ]

    times: dict[str, list[float]] = {"skdice": [], "plain": []}
    for n, batch in enumerate(batches):

        def ours(batch=batch):
            inputs, target, weight = net.padder([dataset[int(i)] for i in batch])
            micro = [([inputs], target, weight)]  # one group: the same padding as the plain step
            net.notify("on_batch_begin", batch=micro, training=True)
            out = net.train_step(micro)
            net.notify("on_batch_end", batch=micro, training=True, **out)

        def theirs(batch=batch):
            inputs, labels = plain_loop.collate(tokenizer, [rows[i] for i in batch])
            plain_loop.step(plain, optimizer, None, inputs, labels)

        pair = [("skdice", ours), ("plain", theirs)]
        for name, run in pair if n % 2 else pair[::-1]:
            started = time.perf_counter()
            run()
            if n >= 5:
                times[name].append(time.perf_counter() - started)
    ratio = np.array(times["skdice"]) / np.array(times["plain"])
    print(
        f"{args.steps} pairs of steps, batch {args.batch_size}, {len(classes)} classes, "
        f"{torch.get_num_threads()} threads, torch {torch.__version__}"
    )
    for name, values in times.items():
        print(f"{name:7} median {1000 * np.median(values):.1f} ms")
    print(
        f"ratio   median {np.median(ratio):.4f}  (quartiles {np.quantile(ratio, 0.25):.4f} to "
        f"{np.quantile(ratio, 0.75):.4f})"
    )


if __name__ == "__main__":
    main()
