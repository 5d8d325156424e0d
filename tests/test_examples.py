"""The examples run, and say what is true."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from skdice.losses import DSCLoss

EXAMPLES = Path(__file__).parents[1] / "examples"


def load(name):
    spec = importlib.util.spec_from_file_location(name.replace("/", "_"), EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.filterwarnings("ignore")
def test_hugging_face_trainer(capsys):
    example = load("hf_trainer")
    own = example.train(None)
    assert example.train("ce") == pytest.approx(own, abs=1e-4)
    # Four batches of 4 in one update, with the Trainer's count of labels: still the same mean.
    small = {"per_device_train_batch_size": 4, "gradient_accumulation_steps": 4}
    assert example.train("ce", **small) == pytest.approx(own, abs=2e-2)
    whole = {"per_device_train_batch_size": 64, "max_steps": 15}
    values = example.train(DSCLoss(background=0), **whole)
    assert values[-1] < 0.75 * values[0]
    example.main()
    assert capsys.readouterr().out.splitlines()[1].startswith("DSCLoss(background=0)")
