"""`skdice predict` reads rows as training does, and what it writes can be read again."""

from __future__ import annotations

import csv
import io
import json

import pytest

from skdice import DiceEntityRecognizer, DiceQuestionAnswerer, DiceSequenceClassifier
from skdice.datasets import read_table
from tests.cli.running import run
from tests.data import LABEL_SETS, LABELS, TEXTS


@pytest.fixture(scope="module")
def folder(tmp_path_factory, tiny_backbone):
    """A classifier c, one of several labels s, a recognizer r and a reader q."""
    folder = tmp_path_factory.mktemp("models")
    how = {"backbone": tiny_backbone, "max_epochs": 1, "random_state": 0}
    DiceSequenceClassifier(**how).fit(TEXTS, LABELS).save_pretrained(folder / "c")
    several = DiceSequenceClassifier(**{**how, "max_epochs": 20, "lr": 1e-2})
    several.fit(TEXTS, LABEL_SETS).save_pretrained(folder / "s")
    recognizer = DiceEntityRecognizer(**how)
    recognizer.fit(["anna lives in rome"] * 4, [[(0, 4, "PER")]] * 4).save_pretrained(folder / "r")
    pairs = [("who", "anna went to paris")] * 4
    DiceQuestionAnswerer(**how).fit(pairs, [[(0, "anna")]] * 4).save_pretrained(folder / "q")
    return folder


@pytest.mark.parametrize("model", ["c", "r"])
def test_ids_stay_beside_the_texts_of_a_table(folder, tmp_path, model):
    rows = [(str(i), text) for i, text in enumerate(TEXTS)]
    table = "id,text\n" + "".join(f"{i},{text}\n" for i, text in rows)
    (tmp_path / "a.csv").write_text(table)
    lines = run("predict", folder / model, tmp_path / "a.csv", "--format", "jsonl").stdout
    assert [(r["id"], r["text"]) for r in map(json.loads, lines.splitlines())] == rows


@pytest.mark.parametrize("name", ["out.csv", "out.tsv", "out.jsonl"])
def test_several_labels_are_read_again(folder, tmp_path, name):
    table = "id,text\n" + "".join(f"{i},{text}\n" for i, text in enumerate(TEXTS))
    (tmp_path / "a.csv").write_text(table)
    result = run("predict", folder / "s", tmp_path / "a.csv", "--out", tmp_path / name)
    assert result.exit_code == 0, result.output
    X, y = read_table(tmp_path / name, text_columns="text", label_column="predicted")
    expected = DiceSequenceClassifier.from_pretrained(folder / "s").predict_labels(TEXTS)
    assert (X, y) == (TEXTS, list(expected))
    assert any(len(row) > 1 for row in y)
    if name == "out.jsonl":  # a label each that is above one half, with its probability
        table = DiceSequenceClassifier.from_pretrained(folder / "s").predict_proba(TEXTS)
        for line, row in zip((tmp_path / name).read_text().splitlines(), table, strict=True):
            assert json.loads(line)["probability"] == pytest.approx(row[row > 0.5], abs=1e-5)
    # Lines of texts are, as well.
    (tmp_path / "a.txt").write_text("\n".join(TEXTS))
    assert run("predict", folder / "s", tmp_path / "a.txt", "--out", tmp_path / "b").exit_code == 0
    how = {"text_columns": 1, "label_column": 0, "header": False}
    assert read_table(tmp_path / "b", **how) == (TEXTS, list(expected))


def test_the_name_of_the_output_is_obeyed_or_refused(folder, tmp_path):
    records = [{"question": "who", "context": "anna went to paris", "id": "x"}]
    (tmp_path / "q.json").write_text(json.dumps(records))
    (tmp_path / "a.txt").write_text("win money\nlunch\n")

    def written(model, file, name, code=0):
        out = tmp_path / name
        result = run("predict", folder / model, tmp_path / file, "--out", out)
        assert result.exit_code == code
        assert out.exists() == (code == 0)
        return out.read_text() if code == 0 else result.output

    for model, file, name in (("q", "q.json", "x.csv"), ("q", "q.json", "x.tsv"),
                              ("r", "a.txt", "x.csv")):  # fmt: skip
        assert "table" in written(model, file, name, code=2)
    assert set(json.loads(written("q", "q.json", "x.json"))) == {"x"}
    assert [*json.loads(written("q", "q.json", "x.jsonl"))] == ["id", "question", "answer"]
    # Labels of plain lines are a table where its name says so, and JSON lines.
    labels = DiceSequenceClassifier.from_pretrained(folder / "c").predict(["win money", "lunch"])
    rows = list(csv.DictReader(io.StringIO(written("c", "a.txt", "y.csv"))))
    assert [*rows[0]] == ["text", "predicted", "probability"]
    assert [row["predicted"] for row in rows] == labels.tolist()
    found = map(json.loads, written("c", "a.txt", "y.jsonl").splitlines())
    assert [row["label"] for row in found] == labels.tolist()
