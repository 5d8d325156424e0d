"""Peak memory of one training step of a reader, against AutoModelForQuestionAnswering.

    python reading_memory.py --runs 5

Every measurement is a process of its own. The figure is its peak resident memory during one step
with windows of 512 tokens, minus the memory before the step. On a GPU it is the peak that torch
reports.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys

import numpy as np
import plain_reader
import torch

from skdice import DiceQuestionAnswerer
from skdice.backbones import DEFAULT_BACKBONE, find_backbone

WHO = ("plain", "skdice ce", "skdice dsc")


def measure(who: str, batch_size: int, length: int) -> float:
    """MiB that a training step needs beyond the model, its optimiser's state included."""
    context = " ".join(["word"] * (length - 12))
    pairs = [("who was it", f"{context} {i}") for i in range(batch_size)]
    answers = [(0, "word")] * batch_size
    device = "cuda" if torch.cuda.is_available() else "cpu"
    plain_reader.MAX_LENGTH = length
    if who == "plain":
        model, tokenizer = plain_reader.load(find_backbone(DEFAULT_BACKBONE))
        model.to(device)
        optimizer = plain_reader.optimizer_for(model, 1e-4)
        rows = plain_reader.encode(tokenizer, pairs)[:batch_size]
        inputs = plain_reader.collate(tokenizer, rows)
        inputs = {k: v.to(device) for k, v in inputs.items()}
        ones = torch.full((batch_size,), 5, device=device)

        def step() -> None:
            plain_reader.step(model, optimizer, None, inputs, ones, ones)
    else:
        reader = DiceQuestionAnswerer(
            loss=who.split()[1], batch_size=batch_size, max_length=length, random_state=0
        )
        # One short pair: the net, without a step of the size that is measured.
        reader.set_params(max_epochs=1).fit([("who", "a word here")], [(2, "word")])
        net = reader.net_
        windows = list(reader._windows(pairs))[:batch_size]
        targets = [reader._target(window, [answers[0]]) for window in windows]
        from skdice.engine.encoded import EncodedDataset

        dataset = EncodedDataset(windows, targets)
        (batch,) = net.batches(dataset, np.arange(batch_size), net.layout(dataset))
        net.start_schedule(10, "constant", 0.0)
        net.history.new_epoch()
        net.history.new_batch()

        def step() -> None:
            net.train_step([batch])

    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        step()
        return (torch.cuda.max_memory_allocated() - before) / 2**20
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    step()
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 2**10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--length", type=int, default=512)
    parser.add_argument("--who", choices=WHO)
    args = parser.parse_args()
    if args.who:
        print(measure(args.who, args.batch_size, args.length))
        return
    found: dict[str, list[float]] = {who: [] for who in WHO}
    for _ in range(args.runs):
        for who in WHO:
            command = [sys.executable, __file__, "--who", who]
            command += ["--batch-size", str(args.batch_size), "--length", str(args.length)]
            output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            found[who].append(float(output.split()[-1]))
    size = f"batch {args.batch_size}, {args.length} tokens"
    print(f"{args.runs} runs, {size}, torch {torch.__version__}")
    for who, values in found.items():
        ratio = np.median(values) / np.median(found["plain"])
        print(f"{who:11} median {np.median(values):7.1f} MiB  ratio {ratio:.3f}")


if __name__ == "__main__":
    main()
