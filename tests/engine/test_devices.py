"""``device="auto"``: which GPU a process takes where there are several."""

from __future__ import annotations

import pickle
import time
import warnings

import pytest
import torch

from skdice import DiceClassifier
from skdice.engine import devices
from skdice.engine.devices import resolve_device


@pytest.mark.parametrize("n", [1, 4])
def test_torch_chooses_among_gpus(gpus, n):
    gpus(n)
    assert resolve_device("auto") == "cuda"


def test_the_launcher_decides(gpus, monkeypatch):
    gpus(4)
    monkeypatch.setenv("LOCAL_RANK", "2")
    assert resolve_device("auto") == "cuda:2"
    gpus(2)  # fewer than processes
    assert resolve_device("auto") == "cuda:0"
    assert resolve_device("cuda:1") == "cuda:1"


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


class Processor:
    """Clocks of a machine on which a product takes some time, and others may take turns."""

    def __init__(self, monkeypatch, seconds, taken_away=0.0):
        self.own = self.wall = 0.0
        product = torch.Tensor.__matmul__

        def timed(a, b):
            self.own += seconds[a.dtype]
            self.wall += seconds[a.dtype] + (taken_away if a.dtype is torch.float32 else 0.0)
            return product(a, b)

        monkeypatch.setattr(torch.Tensor, "__matmul__", timed)
        for name in ("thread_time", "process_time"):
            monkeypatch.setattr(devices.time, name, lambda: self.own)
        for name in ("perf_counter", "monotonic", "time"):
            monkeypatch.setattr(devices.time, name, lambda: self.wall)


@pytest.fixture
def measured_anew():
    devices.bf16_gain.cache_clear()
    yield
    devices.bf16_gain.cache_clear()


@pytest.mark.parametrize(("fp32", "bf16", "gain"), [(4.0, 1.0, 4.0), (1.0, 4.0, 0.25)])
def test_the_gain_is_the_ratio_of_the_best_times(monkeypatch, measured_anew, fp32, bf16, gain):
    Processor(monkeypatch, {torch.float32: fp32, torch.bfloat16: bf16})
    assert devices.bf16_gain() == gain


def test_work_of_others_does_not_count_as_time_of_a_product(monkeypatch, measured_anew):
    seconds = {torch.float32: 0.001, torch.bfloat16: 0.002}
    processor = Processor(monkeypatch, seconds, taken_away=0.05)
    assert devices.bf16_gain() == pytest.approx(0.5)
    assert processor.own < 0.02


def test_a_clock_that_stands_still_gains_nothing(monkeypatch, measured_anew):
    Processor(monkeypatch, {torch.float32: 0.0, torch.bfloat16: 0.0})
    assert devices.bf16_gain() == 1.0
