"""The JSON of SQuAD and of BERT-MRC."""

from __future__ import annotations

import json

import pytest

from skdice.datasets import read_mrc_ner, read_squad, write_squad_predictions
from tests.estimators.readers import NESTED, SENTENCES


def squad(*questions, context="anna went to paris ."):
    return {"data": [{"title": "t", "paragraphs": [{"context": context, "qas": list(questions)}]}]}


def test_squad_files(tmp_path):
    path = tmp_path / "s.json"
    good = {"id": "a", "question": "who", "answers": [{"text": "anna", "answer_start": 0}]}
    none = {"id": "b", "question": "why", "answers": [], "is_impossible": True}
    off = {"id": "c", "question": "where", "answers": [{"text": "paris", "answer_start": 12}]}
    gone = {"id": "d", "question": "what", "answers": [{"text": "rome", "answer_start": 0}]}
    path.write_text(json.dumps(squad(good, none)))
    pairs, answers, ids = read_squad(path, return_ids=True)
    assert pairs == [("who", "anna went to paris ."), ("why", "anna went to paris .")]
    assert (answers, ids) == ([[(0, "anna")], []], ["a", "b"])
    path.write_text(json.dumps(squad(good, off, gone)))
    with pytest.raises(ValueError, match=r"question 'c': the answer 'paris' .* holds ' pari'"):
        read_squad(path)
    assert read_squad(path, on_misaligned="fix", return_ids=True)[1:] == (
        [[(0, "anna")], [(13, "paris")]],
        ["a", "c"],
    )
    assert read_squad(path, on_misaligned="drop", return_ids=True)[2] == ["a"]
    assert read_squad(path, with_answers=False, return_ids=True)[1:] == ([[]] * 3, ["a", "c", "d"])
    path.write_text(json.dumps(squad(good, good)))
    with pytest.raises(ValueError, match="question id 'a' twice"):
        read_squad(path)
    path.write_text(json.dumps(squad(good, context=" ")))
    with pytest.raises(ValueError, match="question 'a' has an empty context"):
        read_squad(path)
    path.write_text(json.dumps({"version": "1"}))
    with pytest.raises(ValueError, match="not a SQuAD file"):
        read_squad(path)
    for data, name in (
        ([{"title": "t"}], "paragraphs"),
        (["t"], "paragraphs"),
        ([{"paragraphs": [{"context": "a"}]}], "qas"),
        ([{"paragraphs": [{"qas": [good]}]}], "context"),
        ([{"paragraphs": [{"context": "a", "qas": [{"id": "q"}]}]}], "question"),
        ([{"paragraphs": [{"context": "a", "qas": [{"question": "q"}]}]}], "id"),
    ):
        path.write_text(json.dumps({"data": data}))
        with pytest.raises(ValueError, match=f"is not a SQuAD file: .* has no '{name}'"):
            read_squad(path)
    path.write_text(json.dumps(squad(good)))
    with pytest.raises(ValueError, match=r"articles=\['x'\]"):
        read_squad(path, articles=["x"])
    out = write_squad_predictions(tmp_path / "p.json", ["a", "b"], ["anna", ""])
    assert json.loads(out.read_text()) == {"a": "anna", "b": ""}
    with pytest.raises(ValueError, match="twice"):
        write_squad_predictions(out, ["a", "a"], ["x", "y"])


def test_bert_mrc_files(tmp_path):
    records = [
        {
            "qas_id": f"{i}.{j}",
            "context": " ".join(tokens),
            "query": f"find {kind}",
            "entity_label": kind,
            "start_position": [s for k, s, _ in spans if k == kind],
            "end_position": [e - 1 for k, _, e in spans if k == kind],
        }
        for i, (tokens, spans) in enumerate(zip(SENTENCES, NESTED, strict=True))
        if tokens
        for j, kind in enumerate(["LOC", "ORG", "PER"])
    ]
    path = tmp_path / "m.json"
    path.write_text(json.dumps(records))
    sentences, spans, queries = read_mrc_ner(path)
    assert sentences == [tokens for tokens in SENTENCES if tokens]
    assert [set(row) for row in spans] == [
        set(r) for r, t in zip(NESTED, SENTENCES, strict=True) if t
    ]
    assert queries == {"LOC": "find LOC", "ORG": "find ORG", "PER": "find PER"}
    records[0]["start_position"], records[0]["end_position"] = [4], [9]
    path.write_text(json.dumps(records))
    with pytest.raises(ValueError, match="record 0: the span 4 to 9"):
        read_mrc_ner(path)
    records[0]["start_position"], records[0]["end_position"] = [1, 2], [2]
    path.write_text(json.dumps(records))
    with pytest.raises(ValueError, match="record 0 has 2 values of 'start_position' and 1 of"):
        read_mrc_ner(path)
    path.write_text(json.dumps({}))
    with pytest.raises(ValueError, match="not a BERT-MRC file"):
        read_mrc_ner(path)
