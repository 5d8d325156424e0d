"""`skdice suspects` and `skdice next`, on small files."""

from __future__ import annotations

import csv
import json

import pytest
from typer.testing import CliRunner

from skdice import DiceEntityRecognizer, DiceSequenceClassifier, DiceTokenClassifier
from skdice.cli._tables import write_table
from skdice.cli.app import app
from skdice.inspection import next_to_label, suspect_labels

TEXTS = ["win money now", "lunch today", "=1+1 free prize call", "the bus is late", "@bob see you"]
QUICK = ("--max-epochs", "1", "--device", "cpu")


def run(*args, code=0):
    result = CliRunner().invoke(app, [*map(str, args)])
    assert result.exit_code == code, result.output
    return result.output


def rows_of(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def messages(tmp_path):
    path = tmp_path / "messages.jsonl"
    labels = ["spam", "ham", "-rare", "ham", "ham"]
    rows = zip(TEXTS * 4, labels * 4, strict=True)
    path.write_text("".join(json.dumps({"text": t, "label": n}) + "\n" for t, n in rows))
    return path


def test_suspects_of_texts(messages, tiny_backbone, tmp_path):
    out = tmp_path / "suspects.csv"
    how = (*QUICK, "--backbone", tiny_backbone, "--cv", 2)
    said = run("suspects", messages, "--out", out, *how)
    table = rows_of(out)
    assert f"{len(table)} suspects among 20 rows" in " ".join(said.split())
    model = DiceSequenceClassifier(
        backbone=tiny_backbone, max_epochs=1, device="cpu", random_state=0
    )
    labels = ["spam", "ham", "-rare", "ham", "ham"] * 4
    expected = suspect_labels(model, TEXTS * 4, labels, 2)
    assert [int(row["row"]) for row in table] == expected.row.tolist()
    for row, text, given in zip(table, expected.text, expected.given, strict=True):
        assert row["text"] == (f"'{text}" if text[0] in "=@" else text)
        assert row["given"] == (f"'{given}" if given[0] == "-" else given)
    again = run("suspects", messages, "--out", out, *how, code=2)
    assert "exists" in " ".join(again.split())
    lines = tmp_path / "suspects.jsonl"
    run("suspects", messages, "--out", lines, "--features", *how)
    found = [json.loads(line) for line in lines.read_text().splitlines()]
    assert all(record["text"] == (TEXTS * 4)[record["row"]] for record in found)


def test_no_cell_is_a_formula(tmp_path):
    cells = ["=1+1", "+1", "-1", "@a", "\t=1", "a=1", 'a,"b"\nc', "", None, 0.25, -0.5]
    path = tmp_path / "t.csv"
    write_table(path, [{"row": i, "text": cell} for i, cell in enumerate(cells)], ("row", "text"))
    guarded = ["'=1+1", "'+1", "'-1", "'@a", "'\t=1", "a=1", 'a,"b"\nc', "", "", "0.25", "-0.5"]
    assert [row["text"] for row in rows_of(path)] == guarded
    write_table(tmp_path / "t.jsonl", [{"text": "=1"}], ("text",))
    assert json.loads((tmp_path / "t.jsonl").read_text()) == {"text": "=1"}


def test_suspects_of_spans(tiny_backbone, tmp_path, sentences):
    how = ("--max-epochs", 2, "--lr", "3e-3", "--device", "cpu", "--backbone", tiny_backbone)
    conll, notes = tmp_path / "train.conll", tmp_path / "notes.jsonl"
    pairs = zip(*sentences, strict=True)
    blocks = ["\n".join(f"{a}\t{b}" for a, b in zip(*r, strict=True)) for r in pairs]
    conll.write_text("\n\n".join(blocks) + "\n")
    records = [{"text": f"anna met bob in rome {i}", "spans": [(0, 4, "PER")]} for i in range(4)]
    notes.write_text(
        "".join(
            json.dumps({"text": r["text"], "label": [list(s) for s in r["spans"]]}) + "\n"
            for r in records
        )
    )
    files = {conll: DiceTokenClassifier, notes: DiceEntityRecognizer}
    X = {conll: sentences[0], notes: [r["text"] for r in records]}
    y = {conll: sentences[1], notes: [r["spans"] for r in records]}
    for file, estimator in files.items():
        out = tmp_path / f"{file.stem}.csv"
        run("suspects", file, "--out", out, "--cv", 2, *how)
        model = estimator(
            backbone=tiny_backbone, max_epochs=2, lr=3e-3, device="cpu", random_state=0
        )
        expected = suspect_labels(model, X[file], y[file], 2)
        assert [row["text"] for row in rows_of(out)] == expected.text.tolist()


def test_suspects_are_not_answers(tmp_path):
    file = tmp_path / "squad.json"
    asked = {"id": "q", "question": "Who?", "answers": [{"text": "Ann", "answer_start": 0}]}
    file.write_text(
        json.dumps({"data": [{"title": "t", "paragraphs": [{"context": "Ann", "qas": [asked]}]}]})
    )
    said = run("suspects", file, "--out", tmp_path / "s.csv", code=2)
    assert "suspects are labels of" in " ".join(said.split())
    assert not (tmp_path / "s.csv").exists()


def test_next_rows(tiny_backbone, tmp_path, sentences):
    how = {"backbone": tiny_backbone, "max_epochs": 1, "device": "cpu", "random_state": 0}
    rows, tags = sentences
    texts = [" ".join(row) for row in rows]
    files = {name: tmp_path / name for name in ("pool.txt", "pool.conll")}
    files["pool.txt"].write_text("\n".join(["=win money", *texts]))
    files["pool.conll"].write_text("\n\n".join("\n".join(row) for row in rows))
    entities = [[(0, len(row[0]), "X")] for row in rows]
    for model, y, file, pool in (
        (DiceSequenceClassifier(**how), ["a", "b"] * 8, "pool.txt", ["=win money", *texts]),
        (DiceEntityRecognizer(**how), entities, "pool.txt", ["=win money", *texts]),
        (DiceTokenClassifier(**how), tags, "pool.conll", rows),
    ):
        model.fit(rows if y is tags else texts, y)
        folder, out = tmp_path / type(model).__name__, tmp_path / f"{type(model).__name__}.csv"
        model.save_pretrained(folder)
        said = run("next", folder, files[file], "--n", 4, "--out", out, "--device", "cpu")
        assert f"wrote 4 of {len(pool)} rows" in " ".join(said.split())
        expected = next_to_label(model, pool, 4)
        assert [int(row["row"]) for row in rows_of(out)] == expected.row.tolist()
        guarded = [f"'{text}" if text.startswith("=") else text for text in expected.text]
        assert [row["text"] for row in rows_of(out)] == guarded
    said = run("next", folder, files["pool.conll"], "--out", out, code=2)
    assert "exists" in " ".join(said.split())
