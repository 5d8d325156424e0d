"""Speed on a GPU, in about three minutes: `make bench-gpu`.

    python examples/benchmarks/gpu.py --out gpu.json
    python examples/benchmarks/gpu.py --small --out gpu.json   # a trial, a minute on a CPU

The model has the shape of BERT-base and random weights. Texts are generated words, in bf16. The
script prints and writes, the quick ones first, and keeps what it has if it is stopped:

- the measured limits of the card: matrix products and memory bandwidth;
- dice's forward and backward pass over a large batch, as a share of the memory bandwidth;
- a training step of 16,384 subwords at length 128, as a share of the matrix products' peak;
- words a second in training, with packed and with padded batches, compared with the Trainer, with
  and without grouping by length;
- a search of Tversky's alpha and beta and of weighted cross-entropy's K, on GPU and CPU;
- the results of the CUDA tests.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from sklearn.datasets import make_classification
from trainer import BACKBONE, ours, theirs
from transformers import AutoTokenizer, BertConfig, BertModel

from skdice import DiceClassifier, DiceTokenClassifier, __version__
from skdice.losses import TverskyLoss
from skdice.model_selection import LossSearchCV, loss_space

GPU = torch.cuda.is_available()
DEVICE = "cuda" if GPU else "cpu"
ROOT = Path(__file__).parents[2]


def seconds(program: Callable[[], Any], name: str = "") -> float:
    """One run, until the device is done; with a name it is printed."""
    start = time.perf_counter()
    program()
    if GPU:
        torch.cuda.synchronize()
    taken = time.perf_counter() - start
    if name:
        print(f"  {name}: {taken:.1f} s", flush=True)
    return taken


def median(program: Callable[[], Any], rounds: int = 5) -> float:
    program()  # what is compiled or allocated once
    return statistics.median(seconds(program) for _ in range(rounds))


def limits(size: int) -> dict[str, float]:
    """Matrix products a second, in TFLOP, and memory, in GB a second."""
    a, b = (torch.randn(size, size, device=DEVICE, dtype=torch.bfloat16) for _ in range(2))
    many = torch.randn(size * size * 4, device=DEVICE)
    times = 10 if GPU else 1

    def products() -> None:
        for _ in range(times):
            a @ b

    return {
        "matrix products, TFLOP/s": 2 * size**3 * times / median(products) / 1e12,
        "memory, GB/s": 2 * many.nbytes / median(many.clone) / 1e9,
    }


def words(n: int, longest: int, seed: int = 0) -> tuple[list[list[str]], list[list[str]]]:
    """Sentences of short words, most of them short; one tag in ten is an entity."""
    draw = np.random.default_rng(seed)
    vocabulary = np.array(["the", "bus", "late", "green", "river", "Anna", "Rome", "sees", "old"])
    sizes = np.clip(draw.lognormal(2.7, 0.5, n).astype(int), 3, longest)
    X = [vocabulary[draw.integers(len(vocabulary), size=size)].tolist() for size in sizes]
    return X, [["B-X" if draw.random() < 0.1 else "O" for _ in row] for row in X]


def training(backbone: str, n: int, rounds: int, precision: str) -> dict[str, list[float]]:
    X, y = words(n, longest=60)
    count = sum(map(len, X))
    programs = {
        "skdice": partial(ours, "tagging", X, y, precision, backbone),
        "skdice, padded groups": partial(ours, "tagging", X, y, precision, backbone, False),
        "Trainer": partial(theirs, "tagging", X, y, precision, False, backbone),
        "Trainer grouped by length": partial(theirs, "tagging", X, y, precision, True, backbone),
    }
    found: dict[str, list[float]] = {name: [] for name in programs}
    for i in range(rounds + 1):
        for name, program in programs.items():
            found[name].append(count / seconds(program, f"{name}, round {i}"))
    return {name: values[1:] for name, values in found.items()}  # the first warms up


def step(backbone: str, batch_size: int, length: int, n_steps: int, precision: str) -> float:
    """TFLOP a second of updates of `batch_size` sentences of `length` subwords."""
    sentence = ["the"] * (length - 2)
    tags = ["B-X", *["O"] * (length - 3)]

    def fit(n: int) -> float:
        tagger = DiceTokenClassifier(
            loss="dsc", backbone=backbone, max_epochs=1, batch_size=batch_size,
            precision=precision, max_length=length, random_state=0,
        )  # fmt: skip
        run = partial(tagger.fit, [sentence] * n * batch_size, [tags] * n * batch_size)
        return seconds(run, f"{n} steps")

    fit(2)
    once = (fit(2 + n_steps) - fit(2)) / n_steps  # what is not a step goes out
    config = BertConfig.from_pretrained(backbone)
    hidden, layers = config.hidden_size, config.num_hidden_layers
    weights = layers * (4 * hidden**2 + 2 * hidden * config.intermediate_size)
    # Two for a product and a sum; the backward pass is two more of the forward pass.
    flops = 6 * batch_size * length * (weights + layers * 2 * length * hidden)
    return flops / once / 1e12


def loss_bandwidth(n: int, n_classes: int) -> float:
    """GB a second of what a loss must move: the logits read, their gradient written."""
    logits = torch.randn(n, n_classes, device=DEVICE, requires_grad=True)
    target = torch.randint(n_classes, (n,), device=DEVICE)
    loss = TverskyLoss(background=0)

    def run() -> None:
        logits.grad = None
        loss(logits, target).backward()

    return (2 * logits.numel() * 4 + n * 8) / median(run) / 1e9


def search(device: str, n: int, n_trials: int) -> float:
    X, y = make_classification(n, 256, n_informative=32, weights=[0.95], random_state=0)
    found = LossSearchCV(
        DiceClassifier(max_epochs=10, device=device, random_state=0),
        [loss_space("tversky"), loss_space("weighted_ce")],
        n_trials=n_trials,
        cv=3,
        random_state=0,
    )
    return seconds(partial(found.fit, X.astype(np.float32), y), f"search on {device}")


def tests() -> str:
    """The last line of pytest's on the tests that run on a GPU; what failed is printed."""
    # A test file whose packages are not installed is no reason to run no test.
    options = ["-p", "no:cacheprovider", "--continue-on-collection-errors", "--tb=short"]
    command = [sys.executable, "-m", "pytest", *options, "-v", "-m", "gpu", "tests"]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if found.returncode:
        print(found.stdout, flush=True)
    return found.stdout.strip().splitlines()[-1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--small", action="store_true", help="small sizes, to try the script")
    parser.add_argument("--no-tests", action="store_true")
    args = parser.parse_args()
    if not GPU and not args.small:
        raise SystemExit("there is no GPU here: give --small to try the script on the CPU")
    warnings.filterwarnings("ignore")
    transformers.logging.set_verbosity_error()
    small, precision = args.small, "bf16" if GPU else "fp32"
    report: dict[str, Any] = {
        "date": time.strftime("%Y-%m-%d"),
        "device": torch.cuda.get_device_name() if GPU else platform.machine(),
        "skdice": __version__,
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "precision": precision,
        "small": small,
    }

    def note(name: str, value: Any) -> None:
        report[name] = value
        print(f"{name}: {json.dumps(value)}", flush=True)
        args.out.write_text(json.dumps(report, indent=1) + "\n")  # what is measured is kept

    with tempfile.TemporaryDirectory() as folder:
        sizes = dict(hidden_size=32, num_hidden_layers=1, num_attention_heads=2) if small else {}
        tokenizer = AutoTokenizer.from_pretrained(BACKBONE)
        BertModel(BertConfig(vocab_size=len(tokenizer), **sizes)).save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        found = limits(256 if small else 8192)
        note("limits", found)
        moved = loss_bandwidth(4096 if small else 2**22, 32)
        note("Tversky, GB/s", moved)
        note("Tversky, share of the bandwidth", moved / found["memory, GB/s"])
        speed = step(folder, 4 if small else 128, 128, 2 if small else 30, precision)
        note("step, TFLOP/s", speed)
        note("step, share of the peak", speed / found["matrix products, TFLOP/s"])
        rows = training(folder, 64 if small else 2048, args.rounds, precision)
        note("training, words/s", rows)
        note("training, ratio of medians", {
            name: statistics.median(rows["skdice"]) / statistics.median(values)
            for name, values in rows.items()
        })  # fmt: skip
    n, trials = (300, 4) if small else (20_000, 32)
    note("search, seconds", {device: search(device, n, trials) for device in {DEVICE, "cpu"}})
    if not args.no_tests:
        note("tests", tests())


if __name__ == "__main__":
    main()
