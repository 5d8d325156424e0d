"""The Hugging Face Trainer example runs, and its losses mean what they should."""

from __future__ import annotations

import importlib.util
import pickle
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from skdice.losses import CrossEntropyLoss, DiceLoss, WeightedCrossEntropyLoss, for_trainer

pytest.importorskip("accelerate")


@pytest.fixture(scope="module")
def example() -> ModuleType:
    path = Path(__file__).parents[1] / "examples" / "hf_trainer.py"
    spec = importlib.util.spec_from_file_location("hf_trainer_example", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_example_trains(example, capsys):
    losses = example.main()
    assert len(losses) == 3
    assert all(np.isfinite(losses))
    assert losses[-1] < losses[0]


@pytest.mark.parametrize(
    "loss",
    [
        CrossEntropyLoss(),
        WeightedCrossEntropyLoss(class_weight=[0.1, 1.0]),
        DiceLoss(background=0, aggregation="example"),
    ],
)
def test_accumulation_is_one_big_batch(example, loss, capsys):
    """All eight sentences make one update, in one batch or in two."""
    in_two = example.main(loss, max_steps=1, accumulate=2)
    again = example.main(loss, max_steps=1, accumulate=2)
    assert in_two == again
    # Dropout draws differ between one batch and two, so compare the scale only.
    assert 0 < in_two[0] < 1.2


def test_the_wrapper_pickles_and_refuses():
    wrapped = pickle.loads(pickle.dumps(for_trainer(DiceLoss(background=0))))
    assert repr(wrapped) == "for_trainer(DiceLoss(background=0))"
    with pytest.raises(ValueError, match="reduction='mean'"):
        for_trainer(DiceLoss(reduction="none"))
    with pytest.raises(ValueError, match="labels"):
        wrapped({"logits": None}, None)


def test_the_wrapper_needs_no_transformers():
    import subprocess

    code = "import sys, skdice.losses; sys.exit('transformers' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
