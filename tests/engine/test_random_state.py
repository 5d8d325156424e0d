"""Random numbers of a fit: the seed decides, and the caller's stay."""

from __future__ import annotations

import random
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from skorch.callbacks import Callback
from transformers.utils import logging

from skdice import DiceClassifier, backbones
from skdice._digest import digest
from skdice.engine.devices import random_states, seed_generators, seeded, set_random_states
from tests.fits import UNEVEN_TASKS, tensors_of

ROWS = np.random.default_rng(0).normal(size=(60, 3))
CLASSES = (ROWS[:, 0] > 0.8).astype(int)
FITS = {
    "tagger": ("tagger", "bert", {}),
    "accumulated": ("tagger", "bert", {"gradient_accumulation": 2}),
    "native head": ("texts", "bert", {"pooling": "native"}),
    "reader": ("reader", "bert", {}),
    "numbers": ("numbers", None, {"hidden_layer_sizes": (9,)}),
    "deberta": ("tagger", "deberta-v2", {}),
    "xlnet": ("texts", "xlnet", {}),
    "padded": ("tagger", "bert", {"net_params": {"pack": False}}),
    "inputs of layers": ("tagger", "bert", {"gradient_checkpointing": True}),
}


def fit_of(name, backbones_of_test):
    """A function from a seed and more parameters to a fitted model."""
    task, kind, own = FITS[name]
    cls, X, y = {**UNEVEN_TASKS, "numbers": (DiceClassifier, ROWS, CLASSES)}[task]
    if kind is not None:
        own = {**own, "backbone": backbones_of_test[kind]}
    own |= {"max_epochs": 1, "batch_size": 4, "lr": 1e-2, "dropout": 0.3}
    return lambda seed, **more: cls(random_state=seed, **own, **more).fit(X, y)


def state_of_process():
    return (
        torch.get_rng_state().tolist(),
        np.random.get_state()[1].tolist(),
        random.getstate(),
        torch.get_num_threads(),
        logging.get_verbosity(),
        logging.is_progress_bar_enabled(),
        torch.get_default_dtype(),
        torch.is_autocast_enabled("cpu"),
        torch.is_grad_enabled(),
        torch.get_float32_matmul_precision(),
    )


@pytest.fixture
def unchanged():
    """The state of the process after the test is that before it."""
    before = state_of_process()
    yield
    assert state_of_process() == before


@pytest.mark.parametrize("name", FITS)
def test_the_seed_decides_and_the_process_stays_as_it_was(name, tiny_backbones, unchanged):
    fit = fit_of(name, tiny_backbones)
    found = [digest(tensors_of(fit(seed))) for seed in (0, 1, 0)]
    state = torch.get_rng_state()
    assert digest(tensors_of(fit(0))) == found[0] == found[2] != found[1]
    assert torch.equal(torch.get_rng_state(), state)


class Failing(Callback):
    def on_grad_computed(self, net, **kwargs):
        raise ZeroDivisionError("of a callback")


@pytest.mark.parametrize("name", ["tagger", "deberta", "numbers"])
def test_a_fit_that_raises_leaves_the_process_alone(name, tiny_backbones, unchanged):
    with pytest.raises(ZeroDivisionError):
        fit_of(name, tiny_backbones)(0, callbacks=[Failing()])


def test_verbosity_comes_back_when_loads_overlap():
    level = logging.get_verbosity()
    inside, leave = threading.Event(), threading.Event()

    def hold():
        with backbones.quiet_transformers():
            inside.set()
            leave.wait(30)

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(hold)
        inside.wait(30)
        second = pool.submit(hold)
        leave.set()
        first.result(), second.result()
    assert logging.get_verbosity() == level


def test_states_go_back_to_where_they_were():
    before = random_states("cpu")
    with seeded(3, "cpu"):
        start = random_states("cpu")
        first = torch.rand(3)
        set_random_states(start, "cpu")
        assert torch.equal(torch.rand(3), first)
        seed_generators(3, "cpu")
        assert torch.equal(torch.rand(3), first)
    assert torch.equal(random_states("cpu")[0], before[0])
    with pytest.raises(ZeroDivisionError), seeded(3, "cpu"):
        raise ZeroDivisionError
    assert torch.equal(random_states("cpu")[0], before[0])


@pytest.mark.gpu
def test_the_generator_of_a_gpu():
    before = torch.cuda.get_rng_state()
    found = []
    for _ in range(2):
        with seeded(3, "cuda"):
            found.append(torch.rand(3, device="cuda"))
        assert torch.equal(torch.cuda.get_rng_state(), before)
    assert torch.equal(*found)


@pytest.mark.parametrize("kind", ["cuda", "mps"])
def test_the_generator_of_a_device_that_is_not_here(kind, monkeypatch):
    """Its state is swapped as that of the CPU is; Apple's takes no number of a device."""
    place = {"state": torch.tensor([7])}

    class Module:
        @staticmethod
        def get_rng_state(*device):
            assert len(device) == (kind == "cuda")
            return place["state"].clone()

        @staticmethod
        def set_rng_state(state, *device):
            assert len(device) == (kind == "cuda")
            place["state"] = state.clone()

    class Generator:
        def __init__(self, device):
            assert torch.device(device).type == kind

        def manual_seed(self, seed):
            self.state = torch.tensor([seed])
            return self

        def get_state(self):
            return self.state.clone()

    real = torch.Generator
    monkeypatch.setattr(
        torch, "Generator", lambda d: real() if torch.device(d).type == "cpu" else Generator(d)
    )
    monkeypatch.setattr(torch, kind, Module)
    with seeded(3, f"{kind}:0"):
        assert place["state"].item() == 3
        Module.set_rng_state(torch.tensor([4]), *(["0"] if kind == "cuda" else []))
        assert random_states(f"{kind}:0")[1].item() == 4
    assert place["state"].item() == 7
