"""`skdice predict` reads rows as training does, and what it writes can be read again."""

from __future__ import annotations

import csv
import io
import json

import pytest

from skdice import DiceEntityRecognizer, DiceQuestionAnswerer, DiceSequenceClassifier
from skdice.datasets import read_table
from tests.cli.running import run, said
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


def test_a_file_keeps_the_ids_that_standard_input_keeps(folder, tmp_path):
    rows = [{"text": text, "id": i, "more": [i]} for i, text in enumerate(TEXTS)]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (tmp_path / "a.jsonl").write_text(lines)
    piped = run("predict", folder / "c", "-", "--format", "jsonl", text=lines)
    shown = run("predict", folder / "c", tmp_path / "a.jsonl", "--format", "jsonl")
    assert [json.loads(line)["id"] for line in shown.stdout.splitlines()] == [*range(len(rows))]
    assert shown.stdout == piped.stdout
    table = "id,text\n" + "".join(f"{i},{text}\n" for i, text in enumerate(TEXTS))
    (tmp_path / "a.csv").write_text(table)
    shown = run("predict", folder / "c", tmp_path / "a.csv", "--format", "jsonl")
    found = [json.loads(line)["id"] for line in shown.stdout.splitlines()]
    assert found == [str(i) for i in range(len(rows))]
    # So does a recognizer, of tables too.
    found = [
        json.loads(line)
        for line in run("predict", folder / "r", tmp_path / "a.csv").stdout.splitlines()
    ]
    assert [(row["id"], row["text"]) for row in found] == [
        (str(i), text) for i, text in enumerate(TEXTS)
    ]


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
    for model, file, name in (("q", "q.json", "x.csv"), ("q", "q.json", "x.tsv"),
                              ("r", "a.txt", "x.csv")):  # fmt: skip
        result = run("predict", folder / model, tmp_path / file, "--out", tmp_path / name)
        assert result.exit_code == 2
        assert "table" in result.output
        assert not (tmp_path / name).exists()
    assert (
        run("predict", folder / "q", tmp_path / "q.json", "--out", tmp_path / "x.json").exit_code
        == 0
    )
    assert set(json.loads((tmp_path / "x.json").read_text())) == {"x"}
    out = tmp_path / "x.jsonl"
    assert run("predict", folder / "q", tmp_path / "q.json", "--out", out).exit_code == 0
    assert [*json.loads(out.read_text())] == ["id", "question", "answer"]
    # Labels of plain lines are a table where its name says so, and JSON lines.
    labels = DiceSequenceClassifier.from_pretrained(folder / "c").predict(["win money", "lunch"])
    assert (
        run("predict", folder / "c", tmp_path / "a.txt", "--out", tmp_path / "y.csv").exit_code == 0
    )
    rows = list(csv.DictReader(io.StringIO((tmp_path / "y.csv").read_text())))
    assert [*rows[0]] == ["text", "predicted", "probability"]
    assert [row["predicted"] for row in rows] == labels.tolist()
    assert (
        run("predict", folder / "c", tmp_path / "a.txt", "--out", tmp_path / "y.jsonl").exit_code
        == 0
    )
    found = [json.loads(line) for line in (tmp_path / "y.jsonl").read_text().splitlines()]
    assert [row["label"] for row in found] == labels.tolist()


def test_columns_of_standard_input_are_obeyed_or_refused(folder, tmp_path):
    rows = [{"title": "win", "words": "free money", "id": i} for i in range(70)]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    for model in ("c", "r"):
        args = (folder / model, "-", "--format", "jsonl", "--text-columns", "words")
        result = run("predict", *args, text=lines)
        assert result.exit_code == 0, result.output
        found = [json.loads(line) for line in result.stdout.splitlines()]
        assert [(row["text"], row["id"]) for row in found] == [("free money", i) for i in range(70)]
        result = run("predict", *args, text="win money\nlunch\n")
        assert result.exit_code == 1
        assert "is not in 'standard input'" in said(result)


@pytest.mark.parametrize(
    "text",
    [
        "win money\nlunch\n",
        "id,text\n1,lunch\n",
        "id\ttext\n1\tlunch\n",
        '{"id": 7, "text": "a"}\n',
    ],
)
def test_standard_input_is_as_a_file_of_the_same_content(folder, tmp_path, text):
    (tmp_path / "a").write_text(text)
    options = ("--text-columns", "text") if text.startswith("id,") else ()
    shown = run("predict", folder / "c", tmp_path / "a", *options)
    assert shown.exit_code == 0, shown.output
    assert shown.stdout
    assert run("predict", folder / "c", "-", *options, text=text).stdout == shown.stdout


def test_questions_without_ids_have_numbers(folder):
    record = {"question": "who", "context": "anna went to paris"}
    result = run(
        "predict", folder / "q", "-", text="".join(json.dumps(record) + "\n" for _ in range(70))
    )
    assert result.exit_code == 0, result.output
    found = [json.loads(line)["id"] for line in result.stdout.splitlines()]
    assert found == [str(i) for i in range(70)]


def test_convert_refuses_the_options_of_tables(tmp_path):
    row = {"text": "Ann sings", "entities": [[0, 3, "PER"]], "id": 7}
    (tmp_path / "a.jsonl").write_text(json.dumps(row))
    args = ("convert", tmp_path / "a.jsonl", tmp_path / "b.jsonl", "--to", "prodigy")
    assert run(*args, "--label-column", "entities").exit_code == 2
    assert run(*args).exit_code == 0
    assert json.loads((tmp_path / "b.jsonl").read_text())["id"] == 7
