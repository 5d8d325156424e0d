"""The JSON of SQuAD and of BERT-MRC."""

from __future__ import annotations

import json

import pytest

from skdice.datasets import read_dataset, read_squad
from tests.estimators.readers import NESTED, SENTENCES


def squad(*questions, context="anna went to paris ."):
    return {"data": [{"title": "t", "paragraphs": [{"context": context, "qas": list(questions)}]}]}


def ids_of(path, **options):
    return [row["id"] for row in read_dataset(path, **options).meta]


def test_squad_files(tmp_path):
    path = tmp_path / "s.json"
    good = {"id": "a", "question": "who", "answers": [{"text": "anna", "answer_start": 0}]}
    none = {"id": "b", "question": "why", "answers": good["answers"], "is_impossible": True}
    off = {"id": "c", "question": "where", "answers": [{"text": "paris", "answer_start": 12}]}
    gone = {"id": "d", "question": "what", "answers": [{"text": "rome", "answer_start": 0}]}
    path.write_text(json.dumps(squad(good, none)))
    pairs, answers = read_squad(path)
    assert pairs == [("who", "anna went to paris ."), ("why", "anna went to paris .")]
    assert answers == [[(0, "anna")], []]
    assert ids_of(path) == ["a", "b"]
    path.write_text(json.dumps(squad(good, off, gone)))
    with pytest.raises(ValueError, match=r"question 'c': the answer 'paris' .* holds ' pari'"):
        read_squad(path)
    assert read_squad(path, on_misaligned="expand")[1] == [[(0, "anna")], [(13, "paris")]]
    assert ids_of(path, on_misaligned="expand") == ["a", "c"]
    assert ids_of(path, on_misaligned="drop") == ["a"]
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
    ):
        path.write_text(json.dumps({"data": data}))
        with pytest.raises(ValueError, match=f"is not a SQuAD file: .* has no '{name}'"):
            read_squad(path)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "question 'q': there is no list 'answers'"),
        ({"answers": None}, "question 'q': there is no list 'answers'"),
        ({"answers": [], "is_impossible": "false"}, "question 'q': 'is_impossible' is 'false'"),
        ({"answers": [], "is_impossible": 1}, "question 'q': 'is_impossible' is 1"),
        ({"answers": [{"text": "anna", "answer_start": 0.5}]}, r"question 'q' holds \(0.5, 'anna'"),
        ({"answers": [{"text": "anna", "answer_start": "0"}]}, r"question 'q' holds \('0', 'anna'"),
        ({"answers": {"text": ["anna"], "answer_start": [0, 1]}}, "lists of one length"),
        ({"answers": [5]}, "question 'q' holds 5"),
    ],
)
def test_questions_say_what_they_are(tmp_path, fields, message):
    path = tmp_path / "s.json"
    path.write_text(json.dumps(squad({"id": "q", "question": "who", **fields})))
    with pytest.raises(ValueError, match=message):
        read_squad(path)


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
    data = read_dataset(path)
    sentences, spans, queries = data.X, data.y, data.queries
    assert sentences == [tokens for tokens in SENTENCES if tokens]
    expected = [set(row) for row, text in zip(NESTED, SENTENCES, strict=True) if text]
    assert [set(row) for row in spans] == expected
    assert queries == {"LOC": "find LOC", "ORG": "find ORG", "PER": "find PER"}
    n = len(records[0]["context"].split())
    for starts, ends, problem in (
        *(([a], [b], f"the span {a} to {b} ") for a, b in ((4, 9), (0, n), (-1, 0), (2, 1))),
        ([0.5], [1], "the span 0.5 to 1"),
        ([1, 2], [2], "2 values of 'start_position' and 1 of"),
    ):
        records[0] |= {"start_position": starts, "end_position": ends}
        path.write_text(json.dumps(records))
        with pytest.raises(ValueError, match=f"record 1: {problem}"):
            read_dataset(path, task="mrc-ner")
    path.write_text(json.dumps([{"query": "who?"}]))
    with pytest.raises(ValueError, match="not a BERT-MRC file"):
        read_dataset(path, task="mrc-ner")


def test_tokens_with_tags_or_spans_are_read_for_queries_from_json_as_from_lines(tmp_path):
    rows = [
        {"tokens": ["Ann", "sings"], "tags": ["B-PER", "O"]},
        {"tokens": ["Oslo", "Times"], "spans": [["LOC", 0, 1], ["ORG", 0, 2]]},
    ]
    (tmp_path / "a.json").write_text(json.dumps(rows))
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for name in ("a.json", "a.jsonl"):
        data = read_dataset(tmp_path / name, task="mrc-ner")
        assert data.X == [["Ann", "sings"], ["Oslo", "Times"]]
        assert data.y == [["B-PER", "O"], [("LOC", 0, 1), ("ORG", 0, 2)]]


def test_questions_without_ids_and_paragraphs_without_articles(tmp_path):
    question = {"question": "Where?", "answers": [{"text": "Oslo", "answer_start": 13}]}
    paragraph = {"context": "Ada sings in Oslo.", "qas": [question, question]}
    pairs, answers = [("Where?", "Ada sings in Oslo.")] * 2, [[(13, "Oslo")]] * 2
    for value in ({"data": [{"title": "t", "paragraphs": [paragraph]}]}, [paragraph]):
        path = tmp_path / "s.json"
        path.write_text(json.dumps(value))
        data = read_dataset(path)
        assert (data.task, data.X, data.y) == ("qa", pairs, answers)
        assert data.meta == [{"id": "0"}, {"id": "1"}]
    path = tmp_path / "s.csv"
    cell = "\"{'text': ['Oslo'], 'answer_start': [13]}\""
    path.write_text(f"id,context,question,answers\n1,Ada sings in Oslo.,Where?,{cell}\n")
    data = read_dataset(path)
    assert (data.task, data.X, data.y) == ("qa", pairs[:1], answers[:1])


def test_several_objects_of_squad_are_all_read(tmp_path):
    def of(name, context):
        question = {"id": name, "question": "Who?", "answers": [{"text": "Ann", "answer_start": 0}]}
        return {"data": [{"paragraphs": [{"context": context, "qas": [question]}]}]}

    values = [of("1", "Ann sings."), of("2", "Ann sleeps.")]
    for text in ("\n".join(map(json.dumps, values)), json.dumps(values)):
        (tmp_path / "s.json").write_text(text)
        X, _ = read_squad(tmp_path / "s.json")[:2]
        assert [context for _, context in X] == ["Ann sings.", "Ann sleeps."]


def test_ids_of_queries_may_begin_anew(tmp_path):
    names = ("context", "entity_label", "start_position", "end_position")
    rows = [("Ann sings in Rome", "PER", [0], [0]), ("It rains in Oslo", "LOC", [3], [3])]
    records = [dict(zip(names, row, strict=True), query="q", qas_id="0.1") for row in rows]
    (tmp_path / "m.json").write_text(json.dumps(records))
    found = read_dataset(tmp_path / "m.json")
    assert [" ".join(row) for row in found.X] == [row[0] for row in rows]
    assert [list(row) for row in found.y] == [[("PER", 0, 1)], [("LOC", 3, 4)]]


def test_a_flat_record_may_have_a_field_of_data(tmp_path):
    record = {"question": "Who?", "context": "Ann sings.", "answers": []}
    records = [record, record | {"data": []}, record | {"data": [{"x": 1}]}]
    (tmp_path / "s.jsonl").write_text("\n".join(map(json.dumps, records)))
    assert len(read_squad(tmp_path / "s.jsonl")[0]) == 3
