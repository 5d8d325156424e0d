"""``device="auto"``: which GPU a process takes where there are several."""

from __future__ import annotations

import multiprocessing
import pickle
import sys
import time
import warnings

import pytest
import torch

from skdice import DiceClassifier
from skdice.engine import devices
from skdice.engine.devices import resolve_device


def tell(queue, done):
    queue.put((resolve_device("auto"), resolve_device("auto")))
    done.wait(60)


def in_another_process(context):
    """A process that took a GPU, which GPU, and how to end the process."""
    queue, done = context.Queue(), context.Event()
    process = context.Process(target=tell, args=(queue, done))
    process.start()
    first, second = queue.get(timeout=60)
    assert first == second

    def end():
        done.set()
        process.join()

    return first, end


def test_one_gpu_needs_no_number(gpus, tmp_path):
    gpus(1)
    assert resolve_device("auto") == "cuda"
    assert not list(tmp_path.iterdir())


def test_the_launcher_decides(gpus, monkeypatch):
    gpus(4)
    monkeypatch.setenv("LOCAL_RANK", "2")
    assert resolve_device("auto") == "cuda:2"
    gpus(2)  # fewer than processes
    assert resolve_device("auto") == "cuda:0"
    assert resolve_device("cuda:1") == "cuda:1"


@pytest.mark.skipif(sys.platform == "win32", reason="no fork")
def test_each_process_has_a_gpu_of_its_own(gpus):
    gpus(3)
    context = multiprocessing.get_context("fork")
    one, end_one = in_another_process(context)
    two, end_two = in_another_process(context)
    assert (one, two, resolve_device("auto")) == ("cuda:0", "cuda:1", "cuda:2")
    second_on_the_first, end = in_another_process(context)
    assert second_on_the_first == "cuda:0"
    end_two()
    again, end_again = in_another_process(context)
    assert again == "cuda:1"
    for finish in (end_one, end, end_again):
        finish()


def test_without_locks_the_number_of_the_process_decides(gpus, without, monkeypatch):
    gpus(3)
    without("fcntl")
    for process in (7, 8):
        monkeypatch.setattr(devices.os, "getpid", lambda process=process: process)
        assert resolve_device("auto") == f"cuda:{process % 3}"


def test_a_model_that_chose_its_gpu_chooses_anew_where_it_is_read():
    X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1]
    model = DiceClassifier(max_epochs=1).fit(X, y)
    model.net_.device = "cuda:3"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert pickle.loads(pickle.dumps(model)).net_.device == "cpu"
    given = DiceClassifier(max_epochs=1, device="cpu").fit(X, y)
    given.net_.device = "cuda:3"  # as if it had been asked for
    assert given.net_.__getstate__()["device"] == "cuda:3"


def test_the_gain_of_bfloat16_is_measured_once_and_fast(monkeypatch):
    devices.bf16_gain.cache_clear()
    started = time.perf_counter()
    gain = devices.bf16_gain()
    assert time.perf_counter() - started < 2  # 10 ms where nothing else runs
    assert gain > 0
    monkeypatch.setattr(torch, "ones", lambda *args, **how: pytest.fail("measured twice"))
    assert devices.bf16_gain() == gain


@pytest.mark.parametrize(("slower", "gain"), [(torch.float32, 4.0), (torch.bfloat16, 0.25)])
def test_the_gain_is_the_ratio_of_the_best_times(monkeypatch, slower, gain):
    clock, product = [0.0], torch.Tensor.__matmul__

    def timed(a, b):
        clock[0] += 4.0 if a.dtype is slower else 1.0
        return product(a, b)

    monkeypatch.setattr(devices.time, "perf_counter", lambda: clock[0])
    monkeypatch.setattr(torch.Tensor, "__matmul__", timed)
    devices.bf16_gain.cache_clear()
    assert devices.bf16_gain() == gain
    devices.bf16_gain.cache_clear()
