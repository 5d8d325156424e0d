"""The columns of training are the model's: later files are read by them, or refused."""

from __future__ import annotations

import csv
import io
import json

import pandas as pd
import pytest

from skdice import DiceSequenceClassifier
from tests.cli.running import run, said

BODIES = ["win free money", "lunch today", "free prize call", "the bus was late"] * 3
MOODS = ["spam", "ham"] * 6
PAIRS = [("free money", "money is free"), ("lunch", "the bus was late")] * 6


def table(path, names, rows, separator=",", encoding="utf-8"):
    file = io.StringIO()
    writer = csv.writer(file, delimiter=separator, lineterminator="\n")
    writer.writerows([names, *rows] if names else rows)
    path.write_bytes(file.getvalue().encode(encoding))
    return path


def train(path, out, backbone, *options):
    how = ("--backbone", backbone, "--max-epochs", 1)
    result = run("train", path, "--out", out, *how, *options)
    assert result.exit_code == 0, result.output
    return out


def texts_of(model, path, *options, text=None):
    """The texts that are predicted, or those before and after of pairs."""
    result = run("predict", model, path, "--format", "jsonl", *options, text=text)
    assert result.exit_code == 0, result.output
    rows = map(json.loads, result.output.splitlines())
    return [(row["text"], row["text_pair"]) if "text_pair" in row else row["text"] for row in rows]


@pytest.fixture(scope="module")
def models(tmp_path_factory, tiny_backbone):
    """A model of `body` and `mood` b, of pairs p, and of columns without names n."""
    folder = tmp_path_factory.mktemp("columns")
    rows = [(f"no {i}", a, b) for i, (a, b) in enumerate(zip(BODIES, MOODS, strict=True))]
    named = table(folder / "b.csv", ("title", "body", "mood"), rows)
    train(named, folder / "b", tiny_backbone, "--text-columns", "body", "--label-column", "mood")
    pairs = table(folder / "p.csv", ("question", "sentence", "label"),
                  [(*pair, i % 2) for i, pair in enumerate(PAIRS)])  # fmt: skip
    train(pairs, folder / "p", tiny_backbone, "--text-columns", "question,sentence")
    bare = table(folder / "n.tsv", None, [(b, a) for _, a, b in rows], "\t")
    how = ("--text-columns", 1, "--label-column", 0, "--no-header")
    train(bare, folder / "n", tiny_backbone, *how)
    return folder


def test_a_model_of_body_does_not_score_title(models, tmp_path):
    other = table(tmp_path / "t.csv", ("title", "mood"), zip(BODIES, MOODS, strict=True))
    for command in ("predict", "evaluate"):
        result = run(command, models / "b", other)
        assert result.exit_code == 1
        assert "text_columns='body' is not in" in said(result)
        assert "the model learned from it: give text_columns" in said(result)
    assert texts_of(models / "b", other, "--text-columns", "title") == BODIES
    # Beside another column, it is the one of training.
    both = table(tmp_path / "u.csv", ("mood", "body", "title"), [("ham", "lunch", "win")])
    assert texts_of(models / "b", both) == ["lunch"]
    assert json.loads(run("evaluate", models / "b", both, "--json").output)["ham"]["support"] == 1
    labelled = table(tmp_path / "v.csv", ("body", "label"), [("lunch", "ham")])
    result = run("evaluate", models / "b", labelled)
    assert "label_column='mood' is not in" in said(result)
    assert run("evaluate", models / "b", labelled, "--label-column", "label").exit_code == 0


def test_pairs_are_read_in_the_order_of_training(models, tmp_path):
    rows = [(b, i % 2, a) for i, (a, b) in enumerate(PAIRS)]
    swapped = table(tmp_path / "s.csv", ("sentence", "label", "question"), rows)
    assert texts_of(models / "p", swapped) == PAIRS
    loaded = DiceSequenceClassifier.from_pretrained(models / "p")
    report = json.loads(run("evaluate", models / "p", swapped, "--json").output)
    right = loaded.predict(PAIRS) == [str(i % 2) for i in range(12)]
    assert report["accuracy"] == pytest.approx(right.mean())
    dev = ("--dev", swapped, "--backbone", loaded.backbone, "--max-epochs", 1)
    args = ("train", models / "p.csv", "--text-columns", "question,sentence", *dev)
    result = run(*args, "--out", tmp_path / "m")
    assert result.exit_code == 0, result.output
    other = table(tmp_path / "o.csv", ("question", "answer", "label"), [("a", "b", 0)])
    result = run(*args[:5], other, *args[6:], "--out", tmp_path / "n")
    assert "is not in" in said(result)


KINDS = [
    *("a.csv", "a.tsv", "a.jsonl", "a.txt", "a", "a.parquet"),
    *("a.json", "array.txt"),  # an array on many lines and on one
]


@pytest.mark.parametrize("name", KINDS)
def test_other_kinds_of_tables_have_the_same_columns(models, tmp_path, name):
    path, rows = tmp_path / name, list(zip(MOODS, BODIES, BODIES[::-1], strict=True))
    names = ("mood", "body", "title")
    records = [dict(zip(names, row, strict=True)) for row in rows]
    if name == "a.jsonl":
        path.write_text("\n".join(map(json.dumps, records)))
    elif name in ("a.json", "array.txt"):
        path.write_text(json.dumps(records, indent=1 if name == "a.json" else None))
    elif name == "a.parquet":
        pytest.importorskip("pyarrow")
        pd.DataFrame(records).to_parquet(path)
    else:
        table(path, names, rows, "\t" if name == "a.tsv" else ",", "utf-8-sig")
    assert texts_of(models / "b", path) == BODIES
    assert texts_of(models / "b", "-", text=path.read_bytes()) == BODIES
    assert run("evaluate", models / "b", path).exit_code == 0
    table(tmp_path / "semi.csv", names, rows, ";")
    assert texts_of(models / "b", tmp_path / "semi.csv") == BODIES


def test_a_header_tells_a_table_whatever_separated_that_of_training(tmp_path, tiny_backbone):
    rows = list(zip(BODIES, MOODS, strict=True))
    records = "".join(json.dumps({"body": a, "mood": b}) + "\n" for a, b in rows)
    (tmp_path / "a.jsonl").write_text(records)
    table(tmp_path / "a.tsv", ("body", "mood"), rows, "\t")
    text = table(tmp_path / "new", ("mood", "body"), [("ham", "lunch")]).read_text()
    for name in ("a.jsonl", "a.tsv"):
        how = ("--text-columns", "body", "--label-column", "mood")
        model = train(tmp_path / name, tmp_path / f"m{name}", tiny_backbone, *how)
        assert texts_of(model, "-", text=text) == texts_of(model, tmp_path / "new") == ["lunch"]
        assert texts_of(model, "-", text="no body, no mood\n") == ["no body, no mood"]


def test_texts_on_lines_and_standard_input_need_no_columns(models, tmp_path):
    lines = "win, free money\nlunch\n"
    for name in ("a.txt", "a"):
        (tmp_path / name).write_text(lines)
        assert texts_of(models / "b", tmp_path / name) == ["win, free money", "lunch"]
    assert texts_of(models / "b", tmp_path / "a.txt") == texts_of(models / "n", tmp_path / "a.txt")
    result = run("predict", models / "b", "-", "--format", "jsonl", text=lines)
    assert [json.loads(x)["text"] for x in result.output.splitlines()] == lines.splitlines()
    records = '{"title": "win", "body": "lunch"}\n'
    result = run("predict", models / "b", "-", "--format", "jsonl", text=records)
    assert json.loads(result.output)["text"] == "lunch"
    result = run("predict", models / "b", "-", text='{"title": "win", "text": "lunch"}\n')
    assert (result.exit_code, "text_columns='body' is not in" in said(result)) == (1, True)


def test_columns_without_names(models, tmp_path):
    rows = [("ham", "lunch"), ("spam", "win")]
    bare = table(tmp_path / "a.tsv", None, rows, "\t")
    assert texts_of(models / "n", bare) == ["lunch", "win"]
    piped = run("predict", models / "n", "-", text=bare.read_text())
    assert piped.output == run("predict", models / "n", bare).output  # with all its columns
    assert json.loads(run("evaluate", models / "n", bare, "--json").output)["ham"]["support"] == 1
    # A table without names is no table of a model that knows names, until an option says so.
    result = run("predict", models / "b", bare)
    assert "text_columns='body' is not in" in said(result)
    how = ("--text-columns", 1, "--no-header")
    assert texts_of(models / "b", bare, *how) == ["lunch", "win"]
    # Nor one with names of a model that knows none.
    named = table(tmp_path / "b.tsv", ("label", "text"), rows, "\t")
    result = run("predict", models / "n", named)
    told = "names its columns, and the table that the model learned from did not"
    assert told in said(result)
    assert told in said(run("evaluate", models / "n", named))  # whose header is no row
    how = ("--text-columns", "text", "--label-column", "label", "--json")
    report = json.loads(run("evaluate", models / "n", named, *how).output)
    assert report["weighted avg"]["support"] == 2
    assert texts_of(models / "n", named, "--text-columns", "text") == ["lunch", "win"]


def test_an_encoding_of_training_does_not_misread_utf_8(tmp_path, tiny_backbone):
    rows = [("win caf\u00e9", "spam"), ("lunch", "ham")] * 4
    latin = table(tmp_path / "a.csv", ("text", "label"), rows, encoding="latin-1")
    model = train(latin, tmp_path / "m", tiny_backbone, "--encoding", "latin-1")
    expected = [text for text, _ in rows]
    assert texts_of(model, latin) == expected
    path = table(tmp_path / "b.csv", ("text",), [(x,) for x in expected])
    assert texts_of(model, path) == expected
    result = run("predict", model, "-", "--format", "jsonl", text="win caf\u00e9\n")
    assert json.loads(result.output)["text"] == "win caf\u00e9"


def test_a_column_named_by_a_number(tmp_path, tiny_backbone):
    rows = [(1, text, label) for text, label in zip(BODIES, MOODS, strict=True)]
    path = table(tmp_path / "a.csv", ("id", "text", "2020"), rows)
    model = train(path, tmp_path / "m", tiny_backbone, "--label-column", 2020)
    assert json.loads(run("evaluate", model, path, "--json").output)["ham"]["support"] == 6
    named = table(tmp_path / "b.csv", ("id", "1999"), [(1, "lunch")])
    assert texts_of(model, named, "--text-columns", "1999", "--header") == ["lunch"]


def test_a_new_fit_forgets_the_columns(models, tmp_path):
    model = DiceSequenceClassifier.from_pretrained(models / "b")
    assert model.table_["text_columns"] == ["body"]
    model.fit(BODIES, MOODS).save_pretrained(tmp_path / "m")
    path = table(tmp_path / "t.csv", ("id", "title"), [(1, "lunch")])
    assert texts_of(tmp_path / "m", path) == ["lunch"]
