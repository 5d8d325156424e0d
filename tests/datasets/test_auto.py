"""Files whose kind is found by looking at them."""

from __future__ import annotations

import json

import pytest

from skdice.datasets import read_dataset, read_table
from skdice.datasets.dataset import task_of
from skdice.datasets.source import Source
from tests.datasets.files import put


def test_json_lines_are_no_tags(tmp_path):
    path = put(tmp_path, '{"text": "a", "label": 1}\n', "a.jsonl")
    for task in ("tagging", "mrc-ner"):
        with pytest.raises(ValueError, match=r"no lists of tokens and tags: .*task='entities'"):
            read_dataset(path, task=task)
    assert read_table(put(tmp_path, '[{"text": "a", "label": 1}]', "a.json")) == (["a"], ["1"])


def test_the_kind_of_a_file_is_seen(tmp_path):
    assert read_dataset(put(tmp_path, "Ann\tB-PER\n\nRome\tB-LOC\n", "a.tsv")).task == "tagging"
    data = read_dataset(put(tmp_path, "label\ttext\nham\tsee you\nspam\twin now\n", "b"))
    assert (data.task, len(data)) == ("classification", 2)
    assert read_dataset(put(tmp_path, "the O\n\nbus O\n", "a.txt")).y == [["O"], ["O"]]
    assert read_dataset(put(tmp_path, "Ann B-PER\nin O\n", "a.conll")).y == [["B-PER", "O"]]
    gaps = put(tmp_path, "text,label\nsee you,ham\n\nwin now,spam\n", "c.csv")
    assert read_dataset(gaps).task == "classification"
    with pytest.raises(ValueError, match="task='ner'"):
        read_dataset(gaps, task="ner")


@pytest.mark.parametrize(
    "text",
    [
        "see you\n\nwin now\n",  # texts of equal length
        "vitamin B\n\nvitamin C\n",
        "to the O\nBob O\n\nsee O\n",  # tags after texts of other lengths
        "Ann B-PER\nsleeps O\nRome B-LOC\n",  # no blank line
        "see O\tham\n\nwin O\tspam\n",
        "see you,ham\n\nwin now,spam\n",
    ],
)
def test_texts_are_not_taken_for_columns(tmp_path, text):
    assert task_of(Source(put(tmp_path, text, "a.txt"))) == "classification"


def test_words_beside_one_text_make_no_file_of_tags(tmp_path):
    span = {"start": 0, "end": 3, "label": "PER"}
    rows = [{"text": "Ann naps", "spans": [span]}, {"text": "Ann", "spans": [span], "tokens": []}]
    path = put(tmp_path, "".join(json.dumps(row) + "\n" for row in rows), "a.jsonl")
    data = read_dataset(path)
    assert (data.task, data.y) == ("entities", [[(0, 3, "PER")]] * 2)


OBEYED = {
    "tokenized_text": {"tokenized_text": ["a"], "body_text": "see you", "kind": "ham"},
    "start_pos": {"start_pos": 3, "body_text": "see you", "kind": "ham"},
    "header": {"header": {"x": 1}, "body_text": "see you", "kind": "ham"},
    "entities": {"body_text": "see you", "kind": "ham", "entities": [[0, 3, "X"]]},
    "questions": {"question": "why?", "context": "so", "body_text": "see you", "kind": "ham"},
    "tokens": {"tokens": ["a"], "tags": ["O"], "body_text": "see you", "kind": "ham"},
}


@pytest.mark.parametrize("name", OBEYED)
def test_columns_that_are_named_are_read_whatever_stands_beside_them(tmp_path, name):
    path = put(tmp_path, json.dumps(OBEYED[name]) + "\n", "a.jsonl")
    named = {"text_columns": "body_text", "label_column": "kind"}
    assert read_table(path, **named) == (["see you"], ["ham"])
    assert read_dataset(path, **named).y == ["ham"]
    assert read_dataset(path, **named, task="classification").X == ["see you"]


def test_question_context_and_label_are_a_pair(tmp_path):
    rows = [{"question": f"is it {x}?", "context": f"it is {x}", "label": x} for x in "ab"]
    path = put(tmp_path, "".join(json.dumps(row) + "\n" for row in rows), "a.jsonl")
    data = read_dataset(path)
    assert (data.task, data.y) == ("classification", ["a", "b"])
    assert data.X == [("is it a?", "it is a"), ("is it b?", "it is b")]


def test_columns_of_tokens_and_tags_are_obeyed_in_every_form(tmp_path):
    how = {"token_column": "piece", "tag_column": "kind"}
    table = "id,piece,kind,sentence_id\n1,Ann,B-PER,1\n2,sings,O,1\n3,Oslo,B-LOC,2\n"
    lines = "piece\tkind\nAnn\tB-PER\nsings\tO\n\nOslo\tB-LOC\n"
    values = [{"piece": ["Ann", "sings"], "kind": ["B-PER", "O"]},
              {"piece": ["Oslo"], "kind": ["B-LOC"]}]  # fmt: skip
    for name, text in (("a.csv", table), ("a.tsv", lines), ("a.json", json.dumps(values))):
        data = read_dataset(put(tmp_path, text, name), **how)
        assert (data.X, data.y) == ([["Ann", "sings"], ["Oslo"]], [["B-PER", "O"], ["B-LOC"]])
