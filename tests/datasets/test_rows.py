"""Every file becomes rows of one kind, whatever its format and its task."""

from __future__ import annotations

import json

import pytest

from skdice.datasets import read_dataset, read_table, read_texts
from skdice.datasets.dataset import READERS, Learned, read_inputs, task_of
from skdice.datasets.row import Row
from skdice.datasets.source import Source
from skdice.exceptions import SkippedRowsWarning

ENTITIES = [(0, 3, "PER")]
QUESTION = {"id": "q", "question": "Who?", "answers": [{"text": "Ann", "answer_start": 0}]}
SQUAD = {"data": [{"title": "t", "paragraphs": [{"context": "Ann sings", "qas": [QUESTION]}]}]}
QUERY = {"query": "find people", "entity_label": "PER", "context": "Ann sings"}
CONLLU = "\t".join(["1", "Ann", "Ann", "PROPN", *"_____", "_"]) + "\n"
# A file's name and text, its task, and place, x, y and meta of its first row.
FILES = [
    ("a.csv", "text,label\nhi,ham\nbuy,spam\n", "classification", (2, "hi", "ham", {})),
    ("a.jsonl", '{"text": "hi", "label": "ham"}\n', "classification", ("line 1", "hi", "ham", {})),
    ("b.csv", "text,label\nhi,\"['ham', 'ad']\"\nbuy,['ad']\n", "classification",
     (2, "hi", ["ham", "ad"], {})),
    ("a.conll", "Ann\tB-PER\nsings\tO\n", "tagging", (1, ["Ann", "sings"], ["B-PER", "O"], {})),
    ("a.conllu", CONLLU, "tagging", (1, ["Ann"], ["PROPN"], {})),
    ("c.csv", "Sentence #,Word,Tag\n1,Ann,B-PER\n,sings,O\n", "tagging",
     (2, ["Ann", "sings"], ["B-PER", "O"], {})),
    ("b.jsonl", '{"id": 7, "tokens": ["Ann", "sings"], "tags": ["B-PER", "O"]}\n', "tagging",
     ("line 1", ["Ann", "sings"], ["B-PER", "O"], {"id": 7})),
    ("c.jsonl", '{"id": 7, "text": "Ann sings", "label": [[0, 3, "PER"]]}\n', "entities",
     ("line 1", "Ann sings", ENTITIES, {"id": 7})),
    ("a.txt", "7|t|Ann\n7|a|sings\n7\t0\t3\tAnn\tPER\n", "entities",
     ("line 1", "Ann\nsings", ENTITIES, {"id": "7"})),
    ("a.json", json.dumps(SQUAD), "qa",
     ("question 'q'", ("Who?", "Ann sings"), [(0, "Ann")], {"id": "q"})),
    ("b.json", json.dumps([QUERY | {"start_position": [0], "end_position": [0]}]), "mrc-ner",
     ("Ann sings", ["Ann", "sings"], [("PER", 0, 1)], {})),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "task", "row"), FILES, ids=[f[0] for f in FILES])
def test_a_file_becomes_rows(tmp_path, name, text, task, row):
    path = tmp_path / name
    path.write_text(text)
    source = Source(path)
    assert task_of(source) == task
    rows = READERS[task].read(source, {}).rows
    assert all(type(each) is Row for each in rows)
    assert rows[0] == row
    data = read_dataset(path)
    assert data.task == task
    assert list(data.X) == [each.x for each in rows]
    assert list(data.y) == [each.y for each in rows]
    assert data.meta == [each.meta for each in rows]

    rows = read_inputs(Source(path), task, {}, Learned())  # to be predicted
    assert all(type(each) is Row and each.y is None for each in rows)
    assert rows[0].x == row[1]
    if task == "classification":  # a table is written as it came, with two columns more
        assert rows[0].meta["text"] == "hi"
    else:
        assert rows[0].meta == row[3]


def test_a_tab_in_a_later_line_of_texts(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("see you\nwin\tnow\n")
    assert read_texts(path) == ["see you", "win\tnow"]


def test_a_note_is_told_once(tmp_path):
    rows = [{"text": "a", "label": "x", "answer": a} for a in ("accept", "reject")]
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps({**row, "kind": "z"}) + "\n" for row in rows))
    with pytest.warns(SkippedRowsWarning) as told:
        read_dataset(path, label_column="kind", text_columns="text")
    assert str(told[0].message).count("kept without") == 1


def test_sentences_are_numbered_anew_in_each_document(tmp_path):
    lines = ["1,0,Ann,B-PER", "1,0,sings,O", "2,0,Rome,B-LOC", ",,rains,O", "2,1,Oslo,B-LOC"]
    path = tmp_path / "s.csv"
    path.write_text("\n".join(["doc_id,sentence_id,word,tag", *lines]))
    assert read_dataset(path).X == [["Ann", "sings"], ["Rome", "rains"], ["Oslo"]]


def test_a_number_in_each_row_is_no_document(tmp_path):
    path = tmp_path / "s.csv"
    lines = ["0,1,Ann,B-PER", "0,2,sings,O", "1,3,Rome,B-LOC", "1,4,is,O"]
    path.write_text("\n".join(["Sentence #,Doc,Word,Tag", *lines]))
    assert read_dataset(path).X == [["Ann", "sings"], ["Rome", "is"]]
    lines = ["0,Ann,B-PER", "0,sings,O", "1,Rome,B-LOC"]
    path.write_text("\n".join(["sentence_id,document,ner", *lines]))
    assert read_dataset(path, token_column="document").X == [["Ann", "sings"], ["Rome"]]


def test_one_of_two_columns_of_a_name_is_not_taken(tmp_path):
    path = tmp_path / "d.csv"
    path.write_text("text,label,text\nwin,spam,one\nhi,ham,two\n")
    with pytest.raises(ValueError, match=r"has two columns 'text': rename one"):
        read_table(path, text_columns="text", label_column="label")
