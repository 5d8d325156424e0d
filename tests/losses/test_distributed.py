"""Losses over two processes: the gradient of one batch with all rows."""

from __future__ import annotations

import copy
import os
import socket
import tempfile
from pathlib import Path

import pytest
import torch
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel

from skdice.losses import LOSSES, CompoundLoss, DiceLoss, TverskyLoss, for_trainer
from skdice.losses.base import resolve_loss
from tests.processes import forkserver

COUNTS = [60, 25, 10, 5]
PARTS = slice(0, 9), slice(9, 24)  # of unequal size


def losses():
    """Every loss, by the ways in which it can count."""
    found = {}
    for name in LOSSES:
        for background in (0, None):
            found[f"{name}, background {background}"] = resolve_loss(name).prepare(
                COUNTS, background=background
            )
    found["ratio, micro"] = DiceLoss(surrogate="none", average="micro", background=0)
    found["ratio, macro"] = TverskyLoss(surrogate="none", average="macro")
    found["ratio, samples"] = DiceLoss.literal(background=0)
    found["class weights"] = DiceLoss(class_weight=[1.0, 2.0, 1.0, 0.5], background=0)
    found["compound of ratios"] = CompoundLoss("ce", DiceLoss(surrogate="none", background=0))
    return found


def rows():
    generator = torch.Generator().manual_seed(0)
    X = torch.randn(24, 6, generator=generator)
    y = torch.randint(4, (24,), generator=generator)
    y[:2] = -100
    return X, y, torch.rand(24, generator=generator) + 0.5


def gradient(module, loss, X, y, weight):
    module.zero_grad()
    loss(module(X), y, sample_weight=weight).backward()
    return next(module.parameters()).grad.clone()


def halves(part):
    middle = (part.start + part.stop) // 2
    return slice(part.start, middle), slice(middle, part.stop)


def work(rank, port, folder):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", rank=rank, world_size=2)
    torch.manual_seed(0)
    linear = torch.nn.Linear(6, 4)
    module = DistributedDataParallel(linear)
    X, y, weight = rows()
    part = PARTS[rank]
    found = {}
    for name, loss in losses().items():
        for weighed in (False, True):
            w = weight[part] if weighed else None
            found[name, weighed] = gradient(module, copy.deepcopy(loss), X[part], y[part], w)
    # The Trainer gives the number of targets on all devices, and multiplies by that of devices.
    n = int((y != -100).sum())
    for name in ("ce", "dice", "ce_dice"):
        compute = for_trainer(name, background=0)
        module.zero_grad()
        (2 * compute({"logits": module(X[part])}, y[part], n)).backward()
        found["Trainer", name] = linear.weight.grad.clone()
    # Of two micro-batches, as the Trainer hands them over one after the other.
    for name in ("ce", "dice"):
        compute = for_trainer(name, background=0)
        module.zero_grad()
        for half in halves(part):
            (2 * compute({"logits": module(X[half])}, y[half], n)).backward()
        found["Trainer, accumulated", name] = linear.weight.grad.clone()
    alone = DiceLoss(background=0)
    alone.all_ranks = False
    found["alone"] = gradient(module, alone, X[part], y[part], None)
    if rank == 0:
        with torch.no_grad():  # a process that evaluates by itself waits for nobody
            found["evaluated"] = DiceLoss(background=0)(linear(X), y)
    torch.save(found, Path(folder) / f"{rank}.pt")
    torch.distributed.barrier()  # gloo's threads abort a process whose other one is gone
    torch.distributed.destroy_process_group()


@pytest.mark.slow
def test_two_processes_have_the_gradient_of_the_whole_batch():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        forkserver()
        mp.start_processes(work, args=(port, folder), nprocs=2, start_method="forkserver")
        one, other = (torch.load(Path(folder) / f"{rank}.pt") for rank in (0, 1))
    torch.manual_seed(0)
    module = torch.nn.Linear(6, 4)
    X, y, weight = rows()
    for name, loss in losses().items():
        for weighed in (False, True):
            expected = gradient(module, copy.deepcopy(loss), X, y, weight if weighed else None)
            for found in (one, other):
                torch.testing.assert_close(found[name, weighed], expected, atol=1e-6, rtol=1e-5)
    for name in ("ce", "dice", "ce_dice"):
        expected = gradient(module, resolve_loss(name).prepare(COUNTS, background=0), X, y, None)
        torch.testing.assert_close(one["Trainer", name], expected, atol=1e-6, rtol=1e-5)
    whole = gradient(module, resolve_loss("ce"), X, y, None)
    torch.testing.assert_close(one["Trainer, accumulated", "ce"], whole, atol=1e-6, rtol=1e-5)
    batches = [torch.cat([X[a], X[b]]) for a, b in zip(*map(halves, PARTS), strict=True)]
    targets = [torch.cat([y[a], y[b]]) for a, b in zip(*map(halves, PARTS), strict=True)]
    by_targets = sum(
        gradient(module, resolve_loss("dice").prepare(COUNTS, background=0), *both, None)
        * (both[1] != -100).sum()
        / (y != -100).sum()
        for both in zip(batches, targets, strict=True)
    )
    torch.testing.assert_close(
        one["Trainer, accumulated", "dice"], by_targets, atol=1e-6, rtol=1e-5
    )
    whole = gradient(module, DiceLoss(background=0), X, y, None)
    assert (one["alone"] - whole).abs().max() > 1e-3
    assert one["evaluated"] == DiceLoss(background=0)(module(X), y)
