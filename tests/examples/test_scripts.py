"""The short scripts of examples/ run, on tiny backbones."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "examples"


def script(name):
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_script_is_listed():
    text = (FOLDER / "README.md").read_text()
    assert all(f"({path.name})" in text for path in FOLDER.glob("*.py"))


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("tag_entities", "loss='dsc': F1"),
        ("rare_texts", "cross-entropy, tuned decision: F1"),
        ("answer_questions", "F1 on the training questions"),
    ],
)
def test_scripts_on_text_run(tiny_backbone, capsys, name, shown):
    settings = {"frozen": 1} if name == "tag_entities" else {}
    script(name).main(backbone=tiny_backbone, max_epochs=1, **settings)
    assert shown in capsys.readouterr().out


def test_the_search_draws_a_picture(tmp_path, capsys):
    script("search_tversky").main(n_trials=4, picture=tmp_path / "alpha.png")
    assert "best F1" in capsys.readouterr().out
    assert (tmp_path / "alpha.png").stat().st_size > 1000
