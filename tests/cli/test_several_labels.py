"""Several labels a text on the command line."""

from __future__ import annotations

import csv
import json

import pytest

from skdice.datasets import read_table
from tests.cli.running import run, said
from tests.estimators.test_several_labels import COLUMNS, NAMES, ROWS, TEXTS

NAMED = [sorted(row) for row in NAMES]


@pytest.fixture
def files(tmp_path):
    table = zip(TEXTS, ROWS.tolist(), strict=True)
    lines = ["text," + ",".join(COLUMNS), *(f"{t}," + ",".join(map(str, r)) for t, r in table)]
    (tmp_path / "a.csv").write_text("\n".join(lines) + "\n")
    rows = zip(TEXTS, NAMES, strict=True)
    records = [json.dumps({"text": text, "labels": row}) for text, row in rows]
    (tmp_path / "a.jsonl").write_text("\n".join(records) + "\n")
    return tmp_path


def test_the_life_of_a_model(files, tiny_backbone):
    file, model, columns = files / "a.csv", files / "m", ["--label-columns", "money, spam,travel"]
    train = ["train", file, "--out", model, "--backbone", tiny_backbone, "--loss", "ce", *columns]
    result = run(*train, "--max-epochs", 40, "--lr", "1e-2", "--batch-size", 8)
    assert result.exit_code == 0, result.output
    assert "examples: spam 12, (no label) 6, money 6, travel 6; 0.3 neg" in said(result)
    result = run("evaluate", model, file, "--json", "--report", files / "page.html")
    scores = json.loads(result.stdout)
    assert [scores[name]["support"] for name in COLUMNS] == [6, 12, 6]
    assert scores["micro avg"]["f1-score"] == 1
    assert "micro average" in (files / "page.html").read_text()
    result = run("predict", model, file)
    rows = list(csv.DictReader(result.stdout.splitlines()))
    assert [json.loads(row["predicted"]) for row in rows] == NAMED
    assert [row["text"] for row in rows] == TEXTS
    out = files / "p.jsonl"
    assert run("predict", model, file, "--format", "jsonl", "--out", out).exit_code == 0
    first = json.loads(out.read_text().splitlines()[0])
    assert first["label"] == ["money", "spam"]
    assert list(first["probabilities"]) == COLUMNS
    assert read_table(out, text_columns="text", label_column="label")[1] == NAMED


def test_cells_that_are_not_known(files, tiny_backbone):
    file, model, page = files / "a.csv", files / "m", files / "page.html"
    header, *lines = file.read_text().splitlines()
    lines[3:9] = [line.rpartition(",")[0] + "," for line in lines[3:9]]
    file.write_text("\n".join([header, *lines]) + "\n")
    columns = ["--label-columns", ",".join(COLUMNS), "--backbone", tiny_backbone]
    result = run("train", file, "--out", model, *columns, "--max-epochs", 1)
    assert result.exit_code == 0, result.output
    known = sum(line.endswith(",1") for line in lines)
    assert 0 < known < 6
    assert f"travel {known};" in said(result)
    result = run("evaluate", model, file, "--json", "--report", page)
    assert json.loads(result.stdout)["travel"]["support"] == known
    assert f"<td>{known}</td>" in page.read_text()


TABLE = "text,a,b\nx,1,0\n"


@pytest.mark.parametrize(
    ("name", "text", "options", "message"),
    [
        ("a.csv", TABLE.replace("0", "2"), {"label_columns": ["a", "b"]}, "line 2: 'b' is '2'"),
        ("a.csv", TABLE, {"label_columns": ["a", "c"]}, "label_columns='c' is not"),
        ("a.csv", TABLE, {"label_columns": ["a", "a"]}, "each once"),
        ("a.csv", TABLE, {"label_columns": []}, "must name columns"),
        ("a.csv", TABLE, {"label_columns": ["a", None]}, "label_columns=None is not"),
        ("a.csv", TABLE, {"label_columns": ["a"], "label_column": "a"}, "one of them"),
        ("a.jsonl", '{"text": "a", "labels": ["b"]}\n{"text": "c", "labels": "d"}\n', {}, "line 2"),
        ("a.jsonl", '{"text": "a", "labels": ["b", 1]}\n', {}, "line 1.*not a list of names"),
    ],
)
def test_tables_of_other_labels_are_refused(tmp_path, name, text, options, message):
    (tmp_path / name).write_text(text)
    with pytest.raises((ValueError, TypeError), match=message):
        read_table(tmp_path / name, **options)


TOXIC = "text,toxic,threat,insult\n" + "anna sings,1,0,0\nbob sleeps,0,0,1\nit rains,0,0,0\n" * 3
RARE = "text,toxic,threat,insult\nanna sleeps,0,1,1\n"


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    ("text", "columns", "label", "support"),
    [(TOXIC, "toxic", "toxic", 3), (RARE, "toxic,threat,insult", "threat", 1)],
)
def test_one_label_and_one_without_a_positive_are_classes(
    tmp_path, tiny_backbone, text, columns, label, support
):
    (tmp_path / "a.csv").write_text(TOXIC)
    file = tmp_path / "b.csv"
    file.write_text(text)
    how = ("--backbone", tiny_backbone, "--max-epochs", 1, "--label-columns", columns)
    result = run("train", tmp_path / "a.csv", "--out", tmp_path / "m", *how)
    assert result.exit_code == 0, result.output
    if label == "threat":
        assert "examples: (no label) 3, insult 3, toxic 3, threat 0; 0.5 neg" in said(result)
    result = run("evaluate", tmp_path / "m", file, "--label-columns", columns, "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)[label]["support"] == support


def test_compare_keeps_the_f1_of_each_label(files, tiny_backbone):
    named = ["--label-columns", ",".join(COLUMNS), "--backbone", tiny_backbone, "--max-epochs", 1]
    out = files / "c"
    how = ("--losses", "ce, dsc", "--seeds", 1, "--out", out)
    result = run("compare", "--train", files / "a.csv", *how, *named)
    assert result.exit_code == 0, result.output
    figures = json.loads((out / "comparison.json").read_text())
    assert "f1 of travel" in figures["rows"][0]["runs"][0]
    assert (out / "comparison.png").is_file()
