"""``device="auto"``: which GPU a process takes where there are several."""

from __future__ import annotations

import multiprocessing
import pickle
import sys
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


# ---- a load above the cores


@pytest.fixture
def crowded(monkeypatch):
    monkeypatch.setattr(devices, "_told_of_load", [])
    monkeypatch.setattr("os.getloadavg", lambda: (9.3, 1.0, 1.0), raising=False)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    monkeypatch.setattr("torch.get_num_threads", lambda: 2)
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    return DiceClassifier(max_epochs=1, random_state=0, verbose=1), ([[0.0], [1.0]] * 4, [0, 1] * 4)


def told(capsys):
    return [line for line in capsys.readouterr().out.splitlines() if "load" in line]


def test_a_fit_beside_much_other_work_tells_once_what_to_set(crowded, capsys, recwarn):
    model, data = crowded
    model.fit(*data)
    (line,) = told(capsys)
    assert "load is 9.3 on 2 cores" in line
    assert "OMP_WAIT_POLICY=passive, or OMP_NUM_THREADS=1" in line
    model.fit(*data)
    assert told(capsys) == []
    assert not recwarn


@pytest.mark.parametrize("quiet", ["verbose", "policy", "threads", "load", "no load average"])
def test_nothing_is_told_where_nothing_waits_or_nobody_asks(crowded, capsys, monkeypatch, quiet):
    model, data = crowded
    if quiet == "verbose":
        model.set_params(verbose=0)
    elif quiet == "policy":
        monkeypatch.setenv("OMP_WAIT_POLICY", "passive")
    elif quiet == "threads":
        monkeypatch.setattr("torch.get_num_threads", lambda: 1)
    elif quiet == "load":
        monkeypatch.setattr("os.getloadavg", lambda: (1.9, 9.0, 9.0), raising=False)
    else:
        monkeypatch.delattr("os.getloadavg", raising=False)
    model.fit(*data)
    assert told(capsys) == []


@pytest.mark.parametrize(("gain", "bf16"), [(0.55, False), (1.19, False), (1.2, True), (3, True)])
def test_bf16_is_chosen_by_what_was_measured(gain, bf16, monkeypatch, capsys):
    monkeypatch.setattr(devices, "bf16_gain", lambda: gain)
    assert devices.gains_by_bf16() == bf16
    devices.tell_of_precision(bf16, measured=True)
    said = capsys.readouterr().out
    assert f"trains in {'bf16' if bf16 else 'fp32'}" in said
    assert f"{gain:.2f} times" in said
    devices.tell_of_precision(not bf16, measured=True)  # a fit that goes on
    assert "the checkpoint was trained so" in capsys.readouterr().out


def test_bf16_is_measured_once_and_draws_nothing():
    state = torch.get_rng_state()
    gain = devices.bf16_gain()
    assert 0 < gain < float("inf")
    assert devices.bf16_gain() is gain
    assert torch.equal(torch.get_rng_state(), state)
