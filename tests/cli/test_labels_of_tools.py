"""Files of labelled texts from annotation tools, and of several labels, on the command line."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from skdice import DiceSequenceClassifier
from skdice.cli.app import app

TOXIC = "text,toxic,threat,insult\n" + "anna sings,1,0,0\nbob sleeps,0,0,1\nit rains,0,0,0\n" * 3
COLUMNS = ("--label-columns", "toxic,threat,insult")


def run(*args):
    return CliRunner().invoke(app, [str(a) for a in args])


@pytest.fixture
def fit(tmp_path, tiny_backbone):
    return ("--out", tmp_path / "m", "--backbone", tiny_backbone, "--max-epochs", 1)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_label_without_a_positive_stays_a_class(tmp_path, fit):
    (tmp_path / "a.csv").write_text(TOXIC)
    result = run("train", tmp_path / "a.csv", *COLUMNS, *fit)
    assert result.exit_code == 0, result.output
    assert "examples: (no label) 3, insult 3, toxic 3, threat 0; 0.5 negatives" in " ".join(
        result.output.split()
    )
    model = DiceSequenceClassifier.from_pretrained(tmp_path / "m")
    assert sorted(model.classes_) == ["insult", "threat", "toxic"]
    (tmp_path / "b.csv").write_text("text,toxic,threat,insult\nanna sleeps,0,1,1\n")
    result = run("evaluate", tmp_path / "m", tmp_path / "b.csv", *COLUMNS, "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["threat"]["support"] == 1


def test_labels_of_a_tool(tmp_path, fit):
    rows = [{"text": f"{name} sings", "label": "A", "answer": answer}
            for name in ("anna", "bob") for answer in ("accept", "reject", "ignore")]  # fmt: skip
    rows = [{**row, "text": f"{row['text']} {i}"} for i, row in enumerate(rows)]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    with pytest.warns(UserWarning, match="2 whose answer is ignore, 2 rows kept"):
        result = run("train", tmp_path / "a.jsonl", *fit)
    assert result.exit_code == 0, result.output
    assert "classification, " in result.output
    assert "4 rows; examples: (no label) 2, A 2" in " ".join(result.output.split())
    out = tmp_path / "p.jsonl"
    result = run("predict", tmp_path / "m", tmp_path / "a.jsonl", "--format", "jsonl", "--out", out)
    assert result.exit_code == 0, result.output
    assert len(out.read_text().splitlines()) == 6
