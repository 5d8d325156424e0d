"""`skdice predict` gives a table back as it came, with its labels and their probabilities."""

from __future__ import annotations

import csv
import io
import json
import os
import threading
from pathlib import Path

import numpy as np
import pytest

from skdice import DiceSequenceClassifier
from skdice.datasets import read_table
from tests.cli.running import run, said
from tests.data import LABELS, TEXTS

ROWS = [
    {"id": "7", "text": 'win "free", money', "day": "2024-01-02", "price": "1.50"},
    {"id": "007", "text": "=lunch\ttoday", "day": "", "price": "-"},
    {"id": "x y", "text": "the bus\nwas late", "day": " late ", "price": "3"},
]


def table_of(text, delimiter=","):
    return list(csv.DictReader(io.StringIO(text), delimiter=delimiter))


def written(rows, delimiter=","):
    file = io.StringIO()
    writer = csv.DictWriter(file, list(rows[0]), delimiter=delimiter, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return file.getvalue()


@pytest.fixture(scope="module")
def model(tmp_path_factory, tiny_backbone):
    folder = tmp_path_factory.mktemp("classifier")
    made = DiceSequenceClassifier(backbone=tiny_backbone, max_epochs=1, random_state=0, lr=1e-2)
    made.fit(TEXTS, LABELS).save_pretrained(folder / "m")
    return folder / "m"


def check(found, rows, model):
    loaded = DiceSequenceClassifier.from_pretrained(model)
    texts = [row["text"] for row in rows]
    assert [{n: v for n, v in row.items() if n in rows[0]} for row in found] == rows
    assert [row["predicted"] for row in found] == loaded.predict(texts).tolist()
    best = loaded.predict_proba(texts).max(axis=1)
    np.testing.assert_allclose([float(row["probability"]) for row in found], best, atol=1e-5)
    assert all(list(row)[-2:] == ["predicted", "probability"] for row in found)


@pytest.mark.parametrize("delimiter", [",", ";"])
def test_a_csv_comes_back_with_two_columns_more(model, tmp_path, delimiter):
    source = tmp_path / "new.csv"
    source.write_text(written(ROWS, delimiter))
    args = (source, "--text-columns", "text", "--separator", delimiter)
    shown = run("predict", model, *args)
    assert shown.exit_code == 0, shown.output
    check(table_of(shown.stdout, delimiter), ROWS, model)
    assert run("predict", model, *args, "--out", tmp_path / "out.csv").exit_code == 0
    assert (tmp_path / "out.csv").read_text() == shown.stdout
    assert run("predict", model, *args, "--out", tmp_path / "out.jsonl").exit_code == 0
    lines = (tmp_path / "out.jsonl").read_text().splitlines()
    check([json.loads(line) for line in lines], ROWS, model)


def test_a_tsv_has_no_quotes_and_reads_back(model, tmp_path):
    rows = [{"id": str(i), "text": f'{text} 5" "now"'} for i, text in enumerate(TEXTS)]
    lines = ["id\ttext", *("\t".join(row.values()) for row in rows)]
    (tmp_path / "new.tsv").write_text("\n".join(lines) + "\n")
    result = run("predict", model, tmp_path / "new.tsv", "--out", tmp_path / "out.tsv")
    assert result.exit_code == 0, result.output
    out = [line.split("\t") for line in (tmp_path / "out.tsv").read_text().splitlines()]
    check([dict(zip(out[0], line, strict=True)) for line in out[1:]], rows, model)
    X, y = read_table(tmp_path / "out.tsv", text_columns="text", label_column="predicted")
    assert [row["text"] for row in rows] == X
    assert y == [line[2] for line in out[1:]]
    # A table with cells that a tab would cut is written with blanks in their place.
    (tmp_path / "new.csv").write_text(written(ROWS))
    args = (tmp_path / "new.csv", "--text-columns", "text", "--out", tmp_path / "b.tsv")
    assert run("predict", model, *args).exit_code == 0
    cells = [line.split("\t") for line in (tmp_path / "b.tsv").read_text().splitlines()]
    assert [len(row) for row in cells] == [6] * 4
    texts = ['win "free", money', "=lunch today", "the bus was late"]
    assert [row[1] for row in cells[1:]] == texts


def test_json_lines_keep_their_fields(model, tmp_path):
    rows = [{"text": "win money", "id": 7, "more": {"a": [1, None]}}, {"text": "lunch", "by": "é"}]
    (tmp_path / "new.jsonl").write_text("\n".join(map(json.dumps, rows)))
    result = run("predict", model, tmp_path / "new.jsonl")
    assert result.exit_code == 0, result.output
    found = [json.loads(line) for line in result.stdout.splitlines()]
    loaded = DiceSequenceClassifier.from_pretrained(model)
    expected = loaded.predict([row["text"] for row in rows])
    for row, given, label in zip(found, rows, expected, strict=True):
        assert row["predicted"] == label
        assert 0.5 <= row["probability"] <= 1
        kept = {name: row[name] for name in row if name not in ("predicted", "probability")}
        assert kept == given
    assert run("predict", model, tmp_path / "new.jsonl", "--out", tmp_path / "a.csv").exit_code == 0
    (first, second) = table_of((tmp_path / "a.csv").read_text())
    assert (first["more"], second["more"], second["by"]) == ('{"a": [1, null]}', "", "é")


def test_columns_without_names_get_numbers(model, tmp_path):
    (tmp_path / "bare.tsv").write_text("".join(f"{text}\tham\n" for text in TEXTS))
    result = run("predict", model, tmp_path / "bare.tsv")
    assert result.exit_code == 1
    assert "say which hold the text with text_columns" in said(result)
    result = run("predict", model, tmp_path / "bare.tsv", "--text-columns", "0")
    lines = [line.split("\t") for line in result.stdout.splitlines()]
    assert lines[0] == ["0", "1", "predicted", "probability"]
    assert [line[:2] for line in lines[1:]] == [[text, "ham"] for text in TEXTS]


@pytest.mark.parametrize("name", ["lines.txt", "lines", "lines.csv"])
def test_a_text_on_each_line_has_its_label_before_it(model, tmp_path, name):
    (tmp_path / name).write_text("win money\nlunch\n")
    labels = DiceSequenceClassifier.from_pretrained(model).predict(["win money", "lunch"])
    wanted = f"{labels[0]}\twin money\n{labels[1]}\tlunch\n"
    assert run("predict", model, tmp_path / name).stdout == wanted
    piped = run("predict", model, "-", text="win money\nlunch\n")
    assert piped.stdout == wanted


def test_a_column_of_that_name_is_refused_before_the_work(model, tmp_path):
    (tmp_path / "a.csv").write_text("text,predicted\nwin,ham\n")
    result = run(
        "predict", model, tmp_path / "a.csv", "--out", tmp_path / "b.csv", "--text-columns", "text"
    )
    assert result.exit_code == 1
    assert "has a column 'predicted', which its predictions would get: rename it" in said(result)
    assert not (tmp_path / "b.csv").exists()


def test_a_pipe_is_written_through(model, tmp_path):
    (tmp_path / "a.csv").write_text("id,text\n1,win money\n")
    os.mkfifo(tmp_path / "pipe")
    read = []
    reader = threading.Thread(
        target=lambda: read.append((tmp_path / "pipe").read_text()), daemon=True
    )
    reader.start()
    result = run(
        "predict", model, tmp_path / "a.csv", "--out", tmp_path / "pipe"
    )  # without --force
    assert result.exit_code == 0, result.output
    reader.join(20)
    assert read[0].startswith("id,text,predicted,probability\n1,win money,")


def test_a_file_named_json_holds_one_array(model, tmp_path):
    rows = [{"text": "win money", "id": 7}, {"text": "lunch", "id": 8}]
    (tmp_path / "new.jsonl").write_text("\n".join(map(json.dumps, rows)))
    for options in ((), ("--format", "jsonl")):
        lines, array = tmp_path / "out.jsonl", tmp_path / "out.json"
        for out in (lines, array):
            args = (tmp_path / "new.jsonl", *options, "--out", out, "--force")
            assert run("predict", model, *args).exit_code == 0
        found = json.loads(array.read_text())
        assert found == [json.loads(line) for line in lines.read_text().splitlines()]
        assert len(found) == 2


def test_a_file_to_predict_is_read_once(model, tmp_path, monkeypatch):
    (tmp_path / "new.csv").write_text("win money\nlunch\n")  # one column without a name
    read, read_bytes = [], Path.read_bytes

    def reading(self):
        read.append(self.name)
        return read_bytes(self)

    monkeypatch.setattr(Path, "read_bytes", reading)
    result = run("predict", model, tmp_path / "new.csv")
    assert [line.split("\t")[1] for line in result.output.splitlines()] == ["win money", "lunch"]
    assert read.count("new.csv") == 1
