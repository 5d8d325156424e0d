"""How many minutes the fit that `max_epochs="auto"` chooses takes, by rows and backbone.

    python examples/benchmarks/minutes.py --out results/minutes.json

A few updates on generated sentences of 20 words are timed, in processor time of one thread, which
other programs hardly change, and a whole fit is reckoned from their median: updates all take about
as long. The base shape has random weights, which take as long as trained ones.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from skorch.callbacks import Callback
from transformers import AutoTokenizer, BertConfig, BertModel

from skdice import DiceTokenClassifier
from skdice.backbones import DEFAULT_BACKBONE, find_backbone
from skdice.engine.recipe import choose_epochs

WORDS = np.array(["the", "bus", "late", "green", "river", "anna", "rome", "sees", "old", "is"])
ROWS = (100, 400, 2000, 10_000, 100_000)


class Clock(Callback):
    """The processor seconds of each update."""

    def on_train_begin(self, net: Any, **kwargs: Any) -> None:
        self.times: list[float] = []

    def on_batch_end(self, net: Any, **kwargs: Any) -> None:
        self.times.append(time.process_time())
        net.seconds_ = np.diff(self.times)


def base_shape(folder: str) -> str:
    """An encoder of BERT-base's shape with random weights, and the default backbone's tokenizer."""
    tokenizer = AutoTokenizer.from_pretrained(find_backbone(DEFAULT_BACKBONE))
    tokenizer.save_pretrained(folder)
    BertModel(BertConfig(vocab_size=len(tokenizer))).save_pretrained(folder)
    return folder


def seconds_of_update(backbone: str, n_updates: int, batch_size: int) -> float:
    """Their median, without the first two."""
    draw = np.random.default_rng(0)
    X = [WORDS[draw.integers(len(WORDS), size=20)].tolist() for _ in range(n_updates * batch_size)]
    y = [["B-X" if p < 0.05 else "O" for p in draw.random(20)] for _ in X]
    model = DiceTokenClassifier(
        backbone=backbone, max_epochs=1, batch_size=batch_size, callbacks=[Clock()], random_state=0
    )
    return float(np.median(model.fit(X, y).net_.seconds_[1:]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--updates", type=int, default=12)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    torch.set_num_threads(1)
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, backbone in (("MiniLM", DEFAULT_BACKBONE), ("BERT-base", base_shape(folder))):
            found[name] = seconds_of_update(backbone, args.updates, args.batch_size)
            print(f"{name}: {found[name]:.2f} s for an update of {args.batch_size}", flush=True)
    size = args.batch_size
    print("| rows | epochs | updates | " + " | ".join(f"{name}, minutes" for name in found) + " |")
    print("|---:" * (3 + len(found)) + "|")
    for n in ROWS:
        epochs = choose_epochs(n, size)
        updates = epochs * -(-n // size)
        minutes = [f"{updates * seconds / 60:.3g}" for seconds in found.values()]
        print(f"| {n:,} | {epochs} | {updates:,} | " + " | ".join(minutes) + " |")
    if args.out is not None:
        machine = {"processor": platform.processor() or platform.machine(), "cores": os.cpu_count()}
        machine |= {"threads": 1, "load": os.getloadavg()}
        record = {"seconds_of_update": found, "batch_size": size, "torch": torch.__version__}
        args.out.write_text(json.dumps({**record, **machine, "date": time.strftime("%Y-%m-%d")}))


if __name__ == "__main__":
    main()
