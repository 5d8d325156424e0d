"""Random numbers of a fit: the seed decides, whatever runs beside it, and the caller's stay."""

from __future__ import annotations

import multiprocessing
import random
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pytest
import torch
from sklearn.model_selection import cross_val_score
from skorch.callbacks import Callback
from torch import nn
from transformers.utils import logging

from skdice import (
    DiceClassifier,
    DiceQuestionAnswerer,
    DiceSequenceClassifier,
    DiceTokenClassifier,
    TransformerFeatures,
    backbones,
)
from skdice.engine import devices
from skdice.engine.checkpoints import digest
from skdice.engine.devices import FitRandomState, generator_of_fit, seeded
from skdice.model_selection import LossSearchCV
from tests.data import (
    UNEVEN,
    UNEVEN_ANSWERS,
    UNEVEN_LABELS,
    UNEVEN_QUESTIONS,
    UNEVEN_TAGS,
    UNEVEN_TEXTS,
)

ROWS = np.random.default_rng(0).normal(size=(60, 3))
CLASSES = (ROWS[:, 0] > 0.8).astype(int)


def with_dropout(n_features, n_classes):
    return nn.Sequential(nn.Linear(n_features, 8), nn.Dropout(0.4), nn.Linear(8, n_classes))


# The first draw dropout from a generator of their own; the others need torch's.
FITS = {
    "tagger": ("bert", DiceTokenClassifier, {}, UNEVEN, UNEVEN_TAGS),
    "accumulated": ("bert", DiceTokenClassifier, {"gradient_accumulation": 2}, UNEVEN, UNEVEN_TAGS),
    "native head": (
        "bert",
        DiceSequenceClassifier,
        {"pooling": "native"},
        UNEVEN_TEXTS,
        UNEVEN_LABELS,
    ),
    "reader": ("bert", DiceQuestionAnswerer, {}, UNEVEN_QUESTIONS, UNEVEN_ANSWERS),
    "numbers": (None, DiceClassifier, {"hidden_layer_sizes": (9,)}, ROWS, CLASSES),
    "module": (None, DiceClassifier, {"module": with_dropout}, ROWS, CLASSES),
    "deberta": ("deberta-v2", DiceTokenClassifier, {}, UNEVEN, UNEVEN_TAGS),
    "xlnet": ("xlnet", DiceSequenceClassifier, {}, UNEVEN_TEXTS, UNEVEN_LABELS),
    "padded": ("bert", DiceTokenClassifier, {"net_params": {"pack": False}}, UNEVEN, UNEVEN_TAGS),
    "inputs of layers": (
        *(
            "bert",
            DiceSequenceClassifier,
            {"gradient_checkpointing": True},
            UNEVEN_TEXTS,
            UNEVEN_LABELS,
        ),
    ),
}


def fit_of(name, backbones_of_test):
    """A function from a seed to a digest of the weights after training."""
    kind, cls, params, X, y = FITS[name]
    if kind is not None:
        params = {**params, "backbone": backbones_of_test[kind]}

    def fit(seed):
        model = cls(max_epochs=1, batch_size=4, lr=1e-2, dropout=0.3, random_state=seed, **params)
        return digest(model.fit(X, y).net_.module_.state_dict())

    return fit


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
        generator_of_fit(),
    )


@pytest.fixture
def unchanged():
    """The state of the process after the test is that before it."""
    before = state_of_process()
    yield
    assert state_of_process() == before


@pytest.mark.parametrize("name", FITS)
def test_fits_in_threads_end_with_the_weights_of_fits_alone(name, tiny_backbones, unchanged):
    fit = fit_of(name, tiny_backbones)
    alone = [fit(seed) for seed in range(4)]
    assert len(set(alone)) == 4
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(fit, range(4))) == alone


def test_different_fits_in_threads_do_not_meet(tiny_backbones, unchanged):
    fits = [fit_of(name, tiny_backbones) for name in FITS]
    alone = [fit(0) for fit in fits]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda fit: fit(0), fits)) == alone


def test_what_another_thread_draws_does_not_change_a_fit(tiny_backbones):
    """Of the models that draw from a generator of their own: torch's is read when they begin."""
    fit = fit_of("tagger", tiny_backbones)
    alone, started, done = fit(1), threading.Event(), threading.Event()
    kept = devices.FitRandomState.used

    def draw():
        started.wait(30)
        while not done.is_set():
            torch.rand(3)

    def used(self, *, torch_draws):
        if not torch_draws:
            started.set()
        return kept(self, torch_draws=torch_draws)

    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(1) as pool:
        patch.setattr(devices.FitRandomState, "used", used)
        other = pool.submit(draw)
        try:
            assert fit(1) == alone
        finally:
            started.set(), done.set()
        other.result()


class Failing(Callback):
    def on_grad_computed(self, net, **kwargs):
        raise ZeroDivisionError("of a callback")


@pytest.mark.parametrize("name", ["tagger", "deberta", "numbers", "module"])
def test_a_fit_that_raises_leaves_the_others_and_the_process_alone(name, tiny_backbones, unchanged):
    fit = fit_of(name, tiny_backbones)
    kind, cls, params, X, y = FITS[name]
    params = params if kind is None else {**params, "backbone": tiny_backbones[kind]}
    failing = [cls(callbacks=[Failing()], random_state=0, **params) for _ in range(2)]
    alone = [fit(seed) for seed in range(2)]
    with ThreadPoolExecutor(3) as pool:
        raised = [pool.submit(model.fit, X, y) for model in failing]
        assert list(pool.map(fit, range(2))) == alone
        for future in raised:
            with pytest.raises(ZeroDivisionError):
                future.result()
    with ThreadPoolExecutor(1) as pool:  # another thread finds the lock free
        assert pool.submit(fit, 0).result(timeout=60) == alone[0]


class FitsAnother(Callback):
    """Fits in threads, and waits for them, as a search in a callback does."""

    def __init__(self, fit, note):
        self.fit = fit
        self.note = note

    def on_epoch_end(self, net, **kwargs):
        with ThreadPoolExecutor(2) as pool:
            for weights in pool.map(self.fit, range(2)):
                self.note(weights)
        self.note(self.fit(0))

    on_grad_computed = on_epoch_end


@pytest.mark.parametrize("name", ["tagger", "deberta", "module"])
def test_a_fit_within_a_fit(name, tiny_backbones, unchanged):
    fit = fit_of("numbers" if name == "tagger" else name, tiny_backbones)
    kind, cls, params, X, y = FITS[name]
    params = params if kind is None else {**params, "backbone": tiny_backbones[kind]}
    found: list[str] = []
    model = cls(max_epochs=1, batch_size=len(X), random_state=5, **params)
    alone = digest(model.fit(X, y).net_.module_.state_dict())
    expected = [fit(0), fit(1), fit(0)]
    model.set_params(callbacks=[FitsAnother(fit, lambda weights: found.append(weights))])
    assert digest(model.fit(X, y).net_.module_.state_dict()) == alone
    assert found == expected * 2


def test_a_module_that_fits_while_it_runs(unchanged):
    class Nesting(nn.Module):
        def __init__(self, nests):
            super().__init__()
            self.layer, self.dropout, self.nests = nn.Linear(3, 2), nn.Dropout(0.5), nests

        def forward(self, X):
            if self.training and self.nests:
                DiceClassifier(max_epochs=1, random_state=9, module=with_dropout).fit(ROWS, CLASSES)
            return self.layer(self.dropout(X))

    weights = []
    for nests in (False, True):
        model = DiceClassifier(module=lambda *_, n=nests: Nesting(n), max_epochs=2, random_state=0)
        model.fit(ROWS, CLASSES)
        weights.append(digest(model.net_.module_.state_dict()))
    assert weights[0] == weights[1]


@pytest.mark.parametrize("name", ["tagger", "deberta", "module"])
def test_cross_validation_in_threads(name, tiny_backbones, unchanged):
    kind, cls, params, X, y = FITS[name]
    params = params if kind is None else {**params, "backbone": tiny_backbones[kind]}
    model = cls(max_epochs=2, batch_size=4, lr=1e-2, random_state=0, **params)
    alone = cross_val_score(model, X, y, cv=2)
    with joblib.parallel_backend("threading", n_jobs=2):
        np.testing.assert_array_equal(cross_val_score(model, X, y, cv=2), alone)


@pytest.mark.parametrize("strategy", ["full", "shared"])
def test_a_search_in_threads(strategy, unchanged):
    pytest.importorskip("optuna")
    found = []
    for n_jobs in (1, 4):
        model = DiceClassifier(max_epochs=3, lr=0.1, random_state=0)
        search = LossSearchCV(
            model, n_trials=4, cv=2, strategy=strategy, n_jobs=n_jobs, random_state=0
        )
        with joblib.parallel_backend("threading", n_jobs=n_jobs):
            search.fit(ROWS, CLASSES)
        found.append((search.cv_results_["mean_test_score"], search.best_params_))
    if strategy == "shared":
        assert found[0][1] == found[1][1]
    np.testing.assert_array_equal(found[0][0], found[1][0])


def test_loading_in_threads_leaves_verbosity_and_weights(tiny_backbones, unchanged):
    """Transformers patches torch while it makes a model, and starts new layers at random."""

    def load(seed):
        with seeded(seed, "cpu"):
            model = backbones.load_with_head(tiny_backbones["roberta"], "SequenceClassification", 3)
        return digest(model.state_dict())

    alone = [load(seed) for seed in range(4)]
    assert len(set(alone)) == 4
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(load, range(4))) == alone
        features = TransformerFeatures(backbone=tiny_backbones["bert"])
        vectors = list(
            pool.map(lambda _: features.fit(UNEVEN_TEXTS).transform(UNEVEN_TEXTS), range(4))
        )
    for found in vectors:
        np.testing.assert_array_equal(found, vectors[0])


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


@pytest.mark.skipif(sys.platform == "win32", reason="no fork")
def test_a_fork_beside_a_fit_does_not_wait_for_ever(tiny_backbones):
    fit = fit_of("deberta", tiny_backbones)
    alone, done = fit(0), threading.Event()
    before = torch.get_rng_state()

    def train():
        while not done.is_set():
            fit(1)

    with warnings.catch_warnings(), ThreadPoolExecutor(1) as pool:
        warnings.simplefilter("ignore")  # Python warns of any fork of a process with threads
        other = pool.submit(train)
        try:
            for _ in range(5):
                with multiprocessing.get_context("fork").Pool(1) as children:
                    state = children.apply_async(torch.get_rng_state).get(timeout=60)
                    assert torch.equal(state, before)  # not that of the fit
                    assert children.apply_async(take_lock).get(timeout=60)
        finally:
            done.set()
        other.result()
    assert fit(0) == alone


def take_lock():
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(lambda: seeded(0, "cpu").__enter__() is None).result(timeout=30)


def test_states_go_back_to_where_they_were():
    for torch_draws in (False, True):
        draws = FitRandomState(3, "cpu")
        with draws.used(torch_draws=torch_draws):
            start = draws.states()
            first = torch.rand(3, generator=generator_of_fit())
            draws.set_states(start)
            assert torch.equal(torch.rand(3, generator=generator_of_fit()), first)
        after = draws.states()
        assert not torch.equal(after[0], start[0])
        assert draws.live is draws.of_fit


@pytest.mark.gpu
def test_the_generator_of_a_gpu():
    before = torch.cuda.get_rng_state()
    draws = FitRandomState(3, "cuda")
    found = []
    for _ in range(2):
        with draws.used(torch_draws=True):
            found.append(torch.rand(3, device="cuda"))
        assert torch.equal(torch.cuda.get_rng_state(), before)
    with seeded(3, "cuda"):
        assert torch.equal(torch.rand(3, device="cuda"), found[0])
        assert torch.equal(torch.rand(3, device="cuda"), found[1])


@pytest.mark.parametrize("kind", ["cuda", "mps"])
def test_the_generator_of_a_device_that_is_not_here(kind, monkeypatch):
    """Its state is swapped as that of the CPU is: the device's module is asked for it by name."""
    place = {"state": torch.tensor([7])}

    class Module:
        @staticmethod
        def device_count():
            return 1

        @staticmethod
        def get_rng_state(device=None):
            return place["state"].clone()

        @staticmethod
        def set_rng_state(state, device=None):
            place["state"] = state.clone()

    class Generator:
        def __init__(self, device):
            assert torch.device(device).type == kind

        def manual_seed(self, seed):
            self.state = torch.tensor([seed])

        def get_state(self):
            return self.state.clone()

        def set_state(self, state):
            self.state = state.clone()

    real = torch.Generator
    monkeypatch.setattr(
        torch, "Generator", lambda d: real() if torch.device(d).type == "cpu" else Generator(d)
    )
    monkeypatch.setattr(torch, "get_device_module", lambda device: Module)
    monkeypatch.setattr(torch, kind, Module)
    draws = FitRandomState(3, f"{kind}:0")
    with draws.used(torch_draws=True):
        assert place["state"].item() == 3
        Module.set_rng_state(torch.tensor([4]))  # something was drawn
        assert draws.states()[1].item() == 4
    assert place["state"].item() == 7
    assert draws.states()[1].item() == 4
