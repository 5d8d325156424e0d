"""What users do on a GPU, in float32: the same numbers as on the CPU, and the way back to one.

Both round each result to 6e-8 of it. Sums of at most some hundred terms in another order, through
two layers, leave differences of about 1e-6. A wrong mask or weight, bf16 (4e-3) or TF32 (5e-4),
which torch leaves off, gives far more than what is allowed here.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
import torch
from sklearn.base import clone

from skdice import DiceClassifier, DiceSequenceClassifier, TransformerFeatures
from skdice.engine.devices import resolve_device
from skdice.engine.graphs import Graphs
from skdice.engine.net import FineTuningNet
from skdice.losses import LOSSES, for_trainer
from skdice.losses.span_ends import SpanEndsLoss
from skdice.model_selection.heads.training import fit_heads
from tests.data import LABEL_SETS, UNEVEN_TEXTS
from tests.fits import UNEVEN_TASKS, assert_same_weights, numbers_of

CLOSE = {"rtol": 1e-4, "atol": 1e-5}
TASKS = {**UNEVEN_TASKS, "labels": (DiceSequenceClassifier, UNEVEN_TEXTS, LABEL_SETS[:5])}
ROWS = np.random.default_rng(0).normal(size=(60, 5))
CLASSES = (ROWS[:, 0] > 0.5).astype(int)


@pytest.fixture
def make(calm_backbone):  # dropout draws other numbers on a GPU
    def estimator(name, **params):
        cls, X, y = TASKS[name]
        settings = {"max_epochs": 2, "batch_size": 4, "dropout": 0.0, "precision": "fp32"}
        return cls(backbone=calm_backbone, random_state=0, **settings | params), X, y

    return estimator


def assert_same(found, expected):
    """Equal predictions, whose scores are close."""
    if isinstance(expected, (float, np.floating)):
        assert found == pytest.approx(expected, rel=1e-4, abs=1e-5)
    elif isinstance(expected, (list, tuple)):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_same(one, other)
    else:
        assert np.array_equal(found, expected)


@pytest.mark.skipif("SKDICE_TESTS_ON_GPU" in os.environ, reason="all tests run on the GPU")
def test_other_tests_run_on_the_cpu():
    assert resolve_device("auto") == "cpu"
    assert os.environ["CUDA_VISIBLE_DEVICES"] == ""  # so do the processes that they start


@pytest.mark.gpu
def test_these_tests_run_on_the_gpu():
    assert resolve_device("auto").startswith("cuda")


@pytest.mark.gpu
@pytest.mark.parametrize("name", TASKS)
def test_a_fitted_model_gives_the_same_on_the_cpu(name, make):
    model, X, y = make(name)
    model.fit(X, y)
    here = torch.device(resolve_device("auto")).type
    assert {p.device.type for p in model.net_.module_.parameters()} == {here}
    numbers, predicted = numbers_of(model, X), list(model.predict(X))
    read = pickle.loads(pickle.dumps(model))
    np.testing.assert_allclose(numbers_of(read, X), numbers, **CLOSE)
    model.set_params(device="cpu")
    np.testing.assert_allclose(numbers_of(model, X), numbers, **CLOSE)
    assert_same(list(model.predict(X)), predicted)
    model.fit(X, y)  # and trains there


@pytest.mark.gpu
@pytest.mark.parametrize("name", TASKS)
def test_training_is_that_of_the_cpu(name, make):
    """The second epoch's loss is that of the first update's weights."""
    histories = []
    for device in ("auto", "cpu"):
        model, X, y = make(name, device=device)
        histories.append([epoch["train_loss"] for epoch in model.fit(X, y).history_])
    np.testing.assert_allclose(*histories, rtol=1e-3)


@pytest.mark.gpu
@pytest.mark.parametrize("name", TASKS)
def test_packed_batches_train_as_padded_ones(name, make):
    histories = []
    for pack in (True, False):
        model, X, y = make(name, net_params={"pack": pack}, gradient_accumulation=2, batch_size=2)
        histories.append([epoch["train_loss"] for epoch in model.fit(X, y).history_])
    np.testing.assert_allclose(*histories, rtol=1e-3)


@pytest.mark.gpu
@pytest.mark.parametrize("name", TASKS)
def test_what_is_recorded_gives_the_same(name, make):
    histories, tables = [], []
    for recorded in (True, False):
        params = {"max_epochs": 6, "net_params": {"cuda_graphs": recorded}}
        model, X, y = make(name, **params)
        history = model.fit(X, y).history_
        assert history[-1].get("eager") == (None if recorded else "cuda_graphs is False")
        histories.append([epoch["train_loss"] for epoch in history])
        tables += [numbers_of(model, X) for _ in range(5)]
    np.testing.assert_allclose(*histories, rtol=1e-4)
    for table in tables[1:]:
        np.testing.assert_allclose(table, tables[0], **CLOSE)


@pytest.mark.gpu
def test_a_recording_that_fails_leaves_the_gpu_as_it_was():
    device = resolve_device("auto")

    def waits(given):
        if torch.cuda.is_current_stream_capturing():
            given["x"].sum().item()
        return (torch.nn.functional.dropout(given["x"]),)

    graphs = Graphs(waits, device)
    for _ in range(6):
        (found,) = graphs({"x": torch.ones(1000)})
        assert set(found.tolist()) == {0.0, 2.0}
    assert graphs.reason.startswith("no graph could be recorded")
    assert torch.cuda.current_stream() == torch.cuda.default_stream()
    torch.manual_seed(0)
    torch.rand(3, device=device)


@pytest.mark.gpu
def test_numbers_and_features(calm_backbone):
    classifier = DiceClassifier(hidden_layer_sizes=(4,), dropout=0.0, max_epochs=2, random_state=0)
    features = TransformerFeatures(backbone=calm_backbone, precision="fp32")
    tables = [
        (
            clone(classifier).set_params(device=device).fit(ROWS, CLASSES).predict_proba(ROWS),
            clone(features).set_params(device=device).fit_transform(UNEVEN_TEXTS),
        )
        for device in ("auto", "cpu")
    ]
    for found, expected in zip(*tables, strict=True):
        np.testing.assert_allclose(found, expected, **CLOSE)


@pytest.mark.gpu
def test_a_machine_without_a_gpu_reads_a_pickle(make, tmp_path):
    texts, X, y = make("texts")
    features = TransformerFeatures(backbone=texts.backbone, precision="fp32").fit(X)
    expected = texts.fit(X, y).predict_proba(X), features.transform(X)
    (tmp_path / "models").write_bytes(pickle.dumps((texts, features, X)))
    code = (
        "import pickle, sys, numpy as np, torch; assert not torch.cuda.is_available(); "
        "texts, features, X = pickle.load(open(sys.argv[1] + '/models', 'rb')); "
        "np.savez(sys.argv[1] + '/found.npz', texts.predict_proba(X), features.transform(X))"
    )
    env = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], env=env, check=True)
    with np.load(tmp_path / "found.npz") as found:
        for name, table in zip(found.files, expected, strict=True):
            np.testing.assert_allclose(found[name], table, **CLOSE)


@pytest.mark.gpu
def test_the_same_seed_gives_the_same_reader(make):
    model, X, y = make("reader")
    assert_same_weights(clone(model).fit(X, y), model.fit(X, y))


@pytest.mark.gpu
@pytest.mark.parametrize("loss", LOSSES)
def test_a_readers_loss_adds_up_in_one_order(loss):
    device = resolve_device("auto")
    criterion = SpanEndsLoss(LOSSES[loss]().prepare([980.0, 20.0], 0)).to(device)
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(20_000, 2, generator=generator).to(device).requires_grad_()
    target = torch.zeros(20_000, 3, dtype=torch.long)
    target[::500] = 1  # where a window begins, its first token is the answer
    slopes = [torch.autograd.grad(criterion(logits, target.to(device)), logits) for _ in range(5)]
    assert all(torch.equal(slope, slopes[0][0]) for (slope,) in slopes)


@pytest.mark.gpu
@pytest.mark.parametrize("loss", LOSSES)
def test_heads_of_a_search_are_those_of_the_cpu(loss):
    tables = []
    for device in ("auto", "cpu"):
        models = [DiceClassifier(loss=loss, device=device, max_epochs=3, random_state=0)]
        models.append(clone(models[0]).set_params(lr=0.03))
        folds = [np.arange(30), np.arange(15, 60)]
        tables += [[fold.logits(ROWS) for fold in fit_heads(models, ROWS, CLASSES, folds)]]
    np.testing.assert_allclose(*tables, **CLOSE)


@pytest.mark.gpu
@pytest.mark.parametrize("loss", LOSSES)
def test_the_trainers_loss_is_that_of_the_cpu(loss):
    values = []
    for device in (resolve_device("auto"), "cpu"):
        generator = torch.Generator().manual_seed(0)
        logits = torch.randn(64, 3, generator=generator).to(device)
        labels = torch.randint(3, (64,), generator=generator).to(device)
        of_trainer = for_trainer(loss, background=0, class_counts=[50, 10, 4])
        values.append(of_trainer({"logits": logits}, labels).item())
    assert values[0] == pytest.approx(values[1], rel=1e-4)


@pytest.mark.gpu
def test_bad_numbers_stop_a_fit(monkeypatch):
    step = FineTuningNet.infer
    monkeypatch.setattr(FineTuningNet, "infer", lambda *args: step(*args) * torch.nan)
    with pytest.raises(ValueError, match="updates were skipped"):
        DiceClassifier(batch_size=10, max_epochs=4, random_state=0).fit(ROWS, CLASSES)
