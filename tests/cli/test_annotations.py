"""The files of annotation tools in the commands, end to end on a tiny model."""

from __future__ import annotations

import json

import pytest

from skdice import DiceEntityRecognizer
from skdice.datasets import read_annotations, write_annotations
from tests.cli.running import run, said

ROWS = [
    ("anna lives in rome", [(0, 4, "PER"), (14, 18, "LOC")]),
    ("bob sleeps", [(0, 3, "PER")]),
    ("👍 it rains in berlin", [(14, 20, "LOC")]),
    ("nothing", []),
] * 4
TEXTS, ENTITIES = (list(part) for part in zip(*ROWS, strict=True))
IDS = [{"id": i, "source": "x"} for i in range(len(TEXTS))]


@pytest.fixture(scope="module")
def folder(tmp_path_factory, tiny_backbone):
    """A file of Doccano and the recognizer that the command makes of it."""
    folder = tmp_path_factory.mktemp("annotations")
    write_annotations(folder / "notes.jsonl", TEXTS, ENTITIES, "doccano", IDS)
    (folder / "new.txt").write_text("anna is in rome, 👍\r\n\r\nbob sings 👍 in paris\r\n")
    options = ("--backbone", tiny_backbone, "--max-epochs", 3, "--lr", 3e-3, "--loss", "ce_dice")
    result = run("train", folder / "notes.jsonl", "--out", folder / "m", *options)
    assert result.exit_code == 0, result.output
    assert "notes.jsonl: entities, 16 rows; tokens: O 32, B-LOC 8, B-PER 8; 2.0 neg" in said(result)
    return folder


@pytest.mark.parametrize("format", ["auto", "jsonl", "doccano", "label-studio", "prodigy", "brat"])
def test_predictions_are_what_the_tool_imports(folder, tmp_path, format):
    new = ["anna is in rome, 👍", "bob sings 👍 in paris"]
    recognizer = DiceEntityRecognizer.from_pretrained(folder / "m")
    expected = recognizer.predict(new)
    assert any(map(len, expected))
    out = tmp_path / "out"
    result = run("predict", folder / "m", folder / "new.txt", "--format", format, "--out", out)
    assert result.exit_code == 0, result.output
    assert f"wrote 2 predictions to {out}" in said(result).replace("\n", "")
    if format != "brat":
        out.rename(tmp_path / "out.jsonl")
        out = tmp_path / "out.jsonl"
        printed = run("predict", folder / "m", folder / "new.txt", "--format", format).output
        assert out.read_text() == printed
        score = next(e.score for row in expected for e in row)
        assert str(round(score, 6)) in out.read_text()
    back = read_annotations(out)
    assert back.texts == new
    assert back.entities == [[entity[:3] for entity in row] for row in expected]


def test_predictions_of_standard_input_and_of_tasks(folder, tmp_path):
    lines = "bob sings\n\nanna sings\n"
    result = run("predict", folder / "m", "-", "--format", "label-studio", text=lines)
    first, second = json.loads(result.output)
    assert [first["data"], second["data"]] == [{"text": "bob sings"}, {"text": "anna sings"}]
    assert "annotations" not in first
    lines = json.dumps({"text": "anna sings", "id": 7})
    result = run("predict", folder / "m", "-", "--format", "label-studio", text=lines)
    assert json.loads(result.output)[0]["id"] == 7
    tasks = [{"id": 3, "data": {"text": "anna sings", "url": "u"}}]
    (tmp_path / "tasks.json").write_text(json.dumps(tasks))
    record = json.loads(run("predict", folder / "m", tmp_path / "tasks.json").output)
    assert (record["id"], record["url"], record["text"]) == (3, "u", "anna sings")
    (tmp_path / "t.txt").write_text("anna\tsings, twice\n\nbob\n")  # no table
    records = run("predict", folder / "m", tmp_path / "t.txt").output.splitlines()
    assert [json.loads(record)["text"] for record in records] == ["anna\tsings, twice", "bob"]
    (tmp_path / "t.csv").write_text('id,text\n1,"anna, bob"\n')
    record = json.loads(run("predict", folder / "m", tmp_path / "t.csv").output)
    assert record["text"] == "anna, bob"
    assert run("predict", folder / "m", folder / "new.txt", "--format", "brat").exit_code == 2
    assert run("predict", folder / "m", folder / "new.txt", "--format", "conll").exit_code == 2
    assert run("predict", folder / "m", "-", text="\n").exit_code == 1


def test_evaluate_and_the_page(folder, tmp_path):
    notes = folder / "notes.jsonl"
    page = tmp_path / "r.html"
    result = run("evaluate", folder / "m", notes, "--json", "--report", page)
    assert result.exit_code == 0, result.output
    scores = json.loads(result.stdout)
    recognizer = DiceEntityRecognizer.from_pretrained(folder / "m")
    assert scores["micro avg"]["f1"] == pytest.approx(recognizer.score(TEXTS, ENTITIES))
    assert scores["PER"]["support"] == 8
    assert "micro avg" in run("evaluate", folder / "m", notes, "--mode", "partial").output
    text = page.read_text()
    assert "<mark" in text
    assert "berlin" in text


@pytest.mark.parametrize(
    ("name", "to"),
    [
        ("a.json", "label-studio"),
        ("a.jsonl", "prodigy"),
        ("a.jsonl", None),
    ],
)
def test_convert(folder, tmp_path, name, to):
    out = tmp_path / name
    options = () if to is None else ("--to", to)
    result = run("convert", folder / "notes.jsonl", out, *options)
    assert result.exit_code == 0, result.output
    assert "wrote 16 texts with 16 entities to" in said(result)
    back = read_annotations(out)
    assert (back.texts, back.entities, back.metadata) == (TEXTS, ENTITIES, IDS)
    assert run("convert", folder / "notes.jsonl", out, *options).exit_code == 2
    assert run("convert", folder / "notes.jsonl", out, *options, "--force").exit_code == 0
    again = run("convert", out, tmp_path / "again.jsonl", "--to", "doccano")
    assert again.exit_code == 0, again.output
    assert (tmp_path / "again.jsonl").read_text() == (folder / "notes.jsonl").read_text()


@pytest.mark.parametrize("name", ["a", "a.conll"])
@pytest.mark.filterwarnings("ignore:.* no place for the metadata")
def test_convert_to_files_of_texts_alone(folder, tmp_path, name):
    assert run("convert", folder / "notes.jsonl", tmp_path / name).exit_code == 0
    back = read_annotations(tmp_path / name)
    for text, row in zip(back.texts, back.entities, strict=True):
        at = TEXTS.index(text)  # brat has its texts in the order of their names
        assert row == ENTITIES[at]
    assert sorted(back.texts) == sorted(TEXTS)


def test_convert_names_what_it_needs(folder, tmp_path):
    result = run("convert", folder / "notes.jsonl", tmp_path / "a.json")
    assert result.exit_code == 2
    assert "give --to" in result.output
    assert "label-studio, prodigy" in said(result)
    (tmp_path / "bad.jsonl").write_text('{"text": "Ann", "entities": [[0, 9, "PER"]]}')
    result = run("convert", tmp_path / "bad.jsonl", tmp_path / "b.jsonl")
    assert result.exit_code == 1
    assert "line 1: the entity 'PER' from 0 to 9" in said(result)
    assert not (tmp_path / "b.jsonl").exists()
