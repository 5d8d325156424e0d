"""The Hugging Face Trainer takes skdice's losses and accumulates them rightly."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import pickle
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch

from skdice.losses import CrossEntropyLoss, DiceLoss, FocalLoss, WeightedCrossEntropyLoss
from skdice.losses import for_trainer as wrap


@pytest.fixture(scope="module")
def example() -> ModuleType:
    pytest.importorskip("accelerate")
    pytest.importorskip("matplotlib").use("Agg")
    path = Path(__file__).parents[2] / "examples" / "other_tools" / "plot_trainer.py"
    spec = importlib.util.spec_from_file_location("trainer_example", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with contextlib.redirect_stdout(io.StringIO()) as shown:
        spec.loader.exec_module(module)
    module.shown = shown.getvalue()  # type: ignore[attr-defined]
    return module


def test_the_example_says_what_it_needs(example):
    assert "pip install accelerate" in example.__doc__


@pytest.mark.parametrize("loss", ["ce", "focal", "dice", "tversky", "dsc"])
def test_losses_train(example, loss):
    values = example.train(loss, per_device_train_batch_size=64, max_steps=6)
    assert len(values) == 6
    assert np.isfinite(values).all()
    assert values[-1] < values[0]


@pytest.mark.parametrize(
    "loss",
    [
        CrossEntropyLoss(),
        FocalLoss(),
        WeightedCrossEntropyLoss(class_weight=[0.1, 1.0]),
        DiceLoss.literal(background=0),
    ],
    ids=repr,
)
def test_accumulation_is_one_big_batch(example, loss):
    whole = example.train(loss)
    parts = example.train(loss, per_device_train_batch_size=4, gradient_accumulation_steps=4)
    assert parts == pytest.approx(whole, rel=2e-3)  # four digits are logged


def test_micro_batches_of_a_set_level_loss_count_by_their_targets():
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(8, 3, generator=generator)
    target = torch.tensor([0, 1, 2, 0, 1, 2, 0, -100])
    loss = DiceLoss(background=0)
    parts = [slice(0, 3), slice(3, 8)]
    got = sum(wrap(loss)((logits[s],), target[s], num_items_in_batch=7) for s in parts)
    want = sum(loss(logits[s], target[s]) * n / 7 for s, n in zip(parts, (3, 4), strict=True))
    torch.testing.assert_close(got, want)
    torch.testing.assert_close(wrap(loss)((logits,), target, 7), loss(logits, target))


@pytest.mark.parametrize("multilabel", [False, True])
def test_rows_of_targets(multilabel):
    """The Trainer counts each entry of a row."""
    logits = torch.randn(6, 3, generator=torch.Generator().manual_seed(0))
    target = (logits.flip(0) > 0).float() if multilabel else torch.softmax(logits.flip(0), -1)
    for cls in (CrossEntropyLoss, DiceLoss.literal):
        loss = cls(multilabel=multilabel)
        torch.testing.assert_close(
            wrap(loss, background=None)({"logits": logits}, target, target.numel()),
            loss(logits, target),
        )


def test_the_wrapper_as_an_object():
    wrapped = pickle.loads(pickle.dumps(wrap(DiceLoss(background=0))))
    assert repr(wrapped) == "for_trainer(DiceLoss(background=0))"
    with pytest.raises(ValueError, match="reduction='mean'"):
        wrap(DiceLoss(reduction="none", surrogate="none"))
    with pytest.raises(ValueError, match="labels=None"):
        wrapped({"logits": torch.zeros(2, 2)}, None)
    with pytest.raises(ValueError, match="'dise'"):
        wrap("dise")


@pytest.mark.slow
def test_losses_import_no_transformers():
    code = "import sys, skdice.losses; sys.exit('transformers' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_example_says_what_is_true(example):
    assert example.train("ce") == pytest.approx(example.train(None), abs=1e-4)  # BERT's own loss
    lines = example.shown.splitlines()
    assert [line.split(":")[0] for line in lines] == ["ce", "dsc"]
