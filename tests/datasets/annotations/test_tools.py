"""Files as the tools write them, in made-up samples: read right, or refused by name."""

from __future__ import annotations

import json

import pytest

from skdice.datasets import read_annotations, read_dataset, write_annotations
from skdice.datasets.dataset import Learned, read_inputs
from skdice.datasets.source import Source


def put(folder, name, *values, lines=True, end="\n", begin=""):
    """A file of JSON lines, or of one array."""
    text = end.join(map(json.dumps, values)) if lines else json.dumps(values, indent=1)
    (folder / name).write_bytes((begin + text).encode())
    return folder / name


def texts_of(path):
    """What `skdice predict` reads of a file."""
    return [row.x for row in read_inputs(Source(path), "entities", {}, Learned())]


EMOJI = "👍🏽 Ann lives in Rome"  # Ann is at 3 in code points, at 5 in UTF-16
ANN = {"codepoints": (3, 6), "utf16": (5, 8)}


# ---- Doccano


def test_doccano_with_and_without_relations(tmp_path):
    plain = {"id": 1, "text": "Ann sings.", "label": [[0, 3, "PER"]], "Comments": [], "source": "x"}
    none = {"id": 2, "text": "No.", "label": []}
    path = put(tmp_path, "a.jsonl", plain, none, end="\r\n", begin="\ufeff")
    texts, entities, metadata = read_annotations(path)
    assert (texts, entities) == (["Ann sings.", "No."], [[(0, 3, "PER")], []])
    assert metadata == [{"id": 1, "Comments": [], "source": "x"}, {"id": 2}]
    entity = {"id": 70, "label": "PER", "start_offset": 0, "end_offset": 3}
    relations = [{"id": 1, "from_id": 70, "to_id": 70, "type": "self"}]
    related = {"id": 1, "text": "Ann", "entities": [entity], "relations": relations}
    path = put(tmp_path, "b.jsonl", related)
    found = read_annotations(path)
    assert found == (["Ann"], [[(0, 3, "PER")]], [{"id": 1, "relations": relations}])
    write_annotations(tmp_path / "c.jsonl", *found[:2], "doccano", found.metadata)
    assert read_annotations(tmp_path / "c.jsonl") == found


OFFSETS = {"label": "PER", "start_offset": 0, "end_offset": 3}


@pytest.mark.parametrize(
    "record",
    [
        {"text": "Ann", "labels": [[0, 3, "PER"]]},
        {"data": "Ann", "label": [[0, 3, "PER"]]},  # versions 1.0 to 1.5
        {"text": "Ann", "entities": [[0, 3, "PER"]], "cats": ["x"]},  # with intents
        {"text": "Ann", "annotations": [{**OFFSETS, "user": 1}]},
        {"text": "Ann", "label": None, "entities": [OFFSETS]},
        {"text": "Ann", "label": [[0.0, 3.0, "PER"]]},  # by way of pandas
        {"text": "Ann", "annotations": [{**OFFSETS, "label": 2, "label_name": "PER"}], "meta": {}},
    ],
)
def test_doccano_of_other_versions(tmp_path, record):
    found = read_annotations(put(tmp_path, "a.jsonl", {"text": "x", "label": []}, record))
    assert found[:2] == (["x", "Ann"], [[], [(0, 3, "PER")]])


@pytest.mark.parametrize("unit", ["codepoints", "utf16"])
def test_doccano_is_asked_what_it_counts_where_that_matters(tmp_path, unit):
    one = {"text": EMOJI, "label": [[*ANN[unit], "PER"]]}
    path = put(tmp_path, "a.jsonl", one)
    assert read_annotations(path, offsets=unit).entities == [[(3, 6, "PER")]]
    chinese = {"text": "😀我爱北京很多", "label": [[3, 5, "LOC"]]}
    path = put(tmp_path, "b.jsonl", {"text": "plain", "label": []}, chinese)
    message = r"line 2: .*after emoji .*offsets='utf16' or offsets='codepoints'"
    with pytest.raises(ValueError, match=message):
        read_annotations(path)
    place = {"codepoints": (3, 5, "LOC"), "utf16": (2, 4, "LOC")}[unit]
    assert read_annotations(path, offsets=unit).entities == [[], [place]]
    # Where code points would end behind the text, and before an emoji, it is clear.
    path = put(tmp_path, "c.jsonl", {"text": "😀 Ann", "label": [[3, 6, "PER"]]})
    assert read_annotations(path).entities == [[(2, 5, "PER")]]
    path = put(tmp_path, "d.jsonl", {"text": "北京 is big 😀", "label": [[0, 2, "LOC"]]})
    assert read_annotations(path).entities == [[(0, 2, "LOC")]]


# ---- Label Studio


def region(start, end, text=None, label="PER", **more):
    value = {"start": start, "end": end, "labels": [label], **({"text": text} if text else {})}
    tags = {"from_name": "label", "to_name": "text", "type": "labels", "origin": "manual"}
    return {"id": "r1", **tags, "value": value, **more}


def task(*annotations, text="Ann sings.", **more):
    held = {"text": text, "source": "x"}
    return {"id": 5, "data": held, "annotations": list(annotations), **more}


def studio(folder, *tasks):
    """A file of Label Studio."""
    return put(folder, "a.json", *tasks, lines=False)


def test_label_studio(tmp_path):
    choice = {"id": "c", "type": "choices", "value": {"choices": ["good"]}, "to_name": "text"}
    both = [region(0, 9, "Ann sings", "S"), region(0, 3, "Ann")]
    first = {"id": 9, "completed_by": {"id": 1}, "result": [region(0, 3, "Ann"), choice]}
    second = {"id": 10, "completed_by": 2, "result": both}
    cancelled = {"id": 11, "was_cancelled": True, "result": [region(4, 5)]}
    path = studio(tmp_path, task(first, second, cancelled), task())
    with pytest.warns(UserWarning, match=r"left out 1 cancelled, 1 not annotated; 2 texts"):
        texts, entities, metadata = read_annotations(path)
    assert texts == ["Ann sings."] * 2
    assert entities == [[(0, 3, "PER")], [(0, 9, "S"), (0, 3, "PER")]]
    known = {"id": 5, "source": "x", "annotation_id": 9, "annotator": {"id": 1}}
    assert metadata[0] == {**known, "result": [choice]}
    path = studio(tmp_path, task(first, {**second, "ground_truth": True}))
    assert read_annotations(path).entities == [[(0, 9, "S"), (0, 3, "PER")]]
    predicted = [{"model_version": "m", "result": [region(0, 3, "Ann", score=0.5)]}]
    path = studio(tmp_path, task(predictions=predicted))
    assert read_annotations(path).entities == [[(0, 3, "PER")]]
    path = studio(tmp_path, task(), task(cancelled))
    assert len(texts_of(path)) == 2
    told = r"no annotated text; left out: 1 not annotated, 1 cancelled"
    with pytest.raises(ValueError, match=told):
        read_annotations(path)


def test_label_studio_min(tmp_path):
    entry = {"start": 0, "end": 3, "text": "Ann", "labels": ["PER", "SINGER"]}
    more = {"id": 5, "annotator": 1, "annotation_id": 3, "lead_time": 2.5, "q": "good"}
    path = studio(
        tmp_path, {"text": "Ann sings.", "label": [entry], **more}, {"text": "No", **more}
    )
    texts, entities, metadata = read_annotations(path)
    assert (texts, entities) == (["Ann sings.", "No"], [[(0, 3, "PER"), (0, 3, "SINGER")], []])
    assert metadata == [more, more]


def test_label_studio_takes_the_text_from_the_tag_of_the_regions(tmp_path):
    def of(data, **how):
        result = [{**region(0, 3, "Ann"), "to_name": "body"}]
        path = studio(tmp_path, {"data": data, "annotations": [{"result": result}]})
        return read_annotations(path, **how)

    found = of({"body": "Ann sings.", "title": "A"})
    assert found == (["Ann sings."], [[(0, 3, "PER")]], [{"title": "A"}])
    assert of({"note": "Ann sings.", "n": 3}).texts == ["Ann sings."]
    assert of({"note": "Ann sings.", "n": "3"}, text_column="note").texts == ["Ann sings."]
    told = r"no text under 'text', but \['note', 'n'\]: .*text_column"
    with pytest.raises(ValueError, match=told):
        of({"note": "Ann sings.", "n": "3"})


def test_label_studio_of_odd_regions(tmp_path):
    none = {**region(0, 3, "Ann"), "value": {"start": 0, "end": 3, "labels": []}}
    paths = {"start": "/p[1]", "end": "/p[1]", "startOffset": 0, "text": "Ann"}
    value = {**paths, "hypertextlabels": ["B"], "globalOffsets": {"start": 0, "end": 3}}
    hyper = {**region(0, 3), "type": "hypertextlabels", "value": value}
    unlabelled = {**none, "value": {"start": 0, "end": 3}}
    for regions, found in (([none, hyper], [(0, 3, "B")]), ([unlabelled], [])):
        path = studio(tmp_path, task({"result": regions}))
        with pytest.warns(UserWarning, match=r"left out 1 regions without a label"):
            assert read_annotations(path).entities == [found]
    assert read_annotations(studio(tmp_path, task({"result": None}))).entities == [[]]
    with pytest.raises(ValueError, match=r"record 1: the annotation 17 is an id"):
        read_annotations(studio(tmp_path, task(17)))
    other = {**region(0, 3), "to_name": "b"}
    with pytest.raises(ValueError, match=r"regions of several texts, \['b', 'text'\]"):
        read_annotations(studio(tmp_path, task({"result": [region(0, 3), other]})))


def test_label_studio_writes_line_breaks_as_two_characters(tmp_path):
    result = [region(0, 11, "Ann\\n\\n sings")]
    path = studio(tmp_path, task({"result": result}, text="Ann\r\n sings\nloud"))
    assert read_annotations(path).entities == [[(0, 11, "PER")]]


# ---- texts beside offsets show what is counted, and what is wrong


@pytest.mark.parametrize("unit", ["codepoints", "utf16"])
def test_the_text_of_a_region_tells_what_offsets_count(tmp_path, unit):
    path = studio(tmp_path, task({"result": [region(*ANN[unit], "Ann")]}, text=EMOJI))
    assert read_annotations(path).entities == [[(3, 6, "PER")]]
    tokens = [{"text": "Ann", "start": ANN[unit][0], "end": ANN[unit][1], "id": 0}]
    spans = [{"start": ANN[unit][0], "end": ANN[unit][1], "label": "PER"}]
    path = put(tmp_path, "b.jsonl", {"text": EMOJI, "tokens": tokens, "spans": spans})
    assert read_annotations(path).entities == [[(3, 6, "PER")]]


@pytest.mark.parametrize("format", ["label-studio", "prodigy", "jsonl"])
def test_a_text_that_contradicts_its_offsets(tmp_path, format):
    def write(text, start, end, held="Ann"):
        span = {"start": start, "end": end, "text": held, "label": "PER"}
        record = {"id": 5, "text": text, "spans" if format == "prodigy" else "entities": [span]}
        if format == "label-studio":
            record = task({"result": [region(start, end, held)]}, text=text)
        return put(tmp_path, "a.jsonl", record)

    path = write("So Ann sings.", 4, 7)
    told = r"a.jsonl', line 1 \(id 5\): the entity 'PER' from 4 to 7: its offsets hold 'nn '"
    with pytest.raises(ValueError, match=told):
        read_annotations(path)
    with pytest.warns(UserWarning, match=r"1 of 1 entities are misaligned; 0 .* The first: line 1"):
        assert read_annotations(path, on_misaligned="drop").entities == [[]]
    with pytest.warns(UserWarning, match=r"1 of 1 entities are misaligned; 1 of them were moved"):
        assert read_annotations(path, on_misaligned="expand").entities == [[(3, 6, "PER")]]
    decomposed = write("Zu\u0308rich, Ann", 0, 7, "Z\u00fcrich")
    assert read_annotations(decomposed).entities == [[(0, 7, "PER")]]


@pytest.mark.parametrize(
    ("span", "problem"),
    [
        ([0, 99, "X"], "it lies outside the text, which has 10 code points"),
        ([-3, 2, "X"], "it lies outside the text"),
        ([3, 3, "X"], "it is empty"),
        ([5, 3, "X"], "it ends before it begins"),
        (["0", 3, "X"], "its start is '0', not a whole number"),
        ([0, True, "X"], "its end is True"),
        ([None, 3, "X"], "its start is None"),
        ([0, 3, ""], "its label is '', not a name"),
        ([0, 3, [1]], r"its label is \[1\]"),
        ({"start": 0, "end": 3, "category": "PER"}, "its label is '', not a name: mend the file"),
    ],
)
def test_spans_that_cannot_be_right(tmp_path, span, problem):
    record = {"id": "n7", "text": "Ann sings.", "entities": [[0, 3, "PER"], span]}
    path = put(tmp_path, "a.jsonl", record)
    with pytest.raises(ValueError, match=rf"a.jsonl', line 1 \(id 'n7'\): .*{problem}"):
        read_annotations(path)
    with pytest.warns(UserWarning, match=r"1 of 2 entities are misaligned"):
        assert read_annotations(path, on_misaligned="drop").entities == [[(0, 3, "PER")]]


def test_a_character_cut_in_half(tmp_path):
    path = put(tmp_path, "a.jsonl", {"text": EMOJI, "entities": [[1, 8, "PER"]]})
    with pytest.raises(ValueError, match="1 is inside a character of several UTF-16 code units"):
        read_annotations(path, offsets="utf16")
    (tmp_path / "b.jsonl").write_text('{"text": "half \\ud83d", "entities": []}')
    with pytest.raises(ValueError, match=r"line 1: the text holds half of a surrogate pair"):
        read_annotations(tmp_path / "b.jsonl")
    record = {"text": EMOJI, "entities": [[5, 8, "PER"]], "offsets": "utf16"}
    marked = put(tmp_path, "c.jsonl", record)
    assert read_annotations(marked).entities == [[(3, 6, "PER")]]
    with pytest.raises(ValueError, match="its offsets count 'utf16', but offsets='codepoints'"):
        read_annotations(marked, offsets="codepoints")


# ---- Prodigy


def test_prodigy(tmp_path):
    tokens = [{"text": "Ann", "start": 0, "end": 3, "id": 0, "ws": True}]
    span = {"start": 0, "end": 3, "token_start": 0, "token_end": 0, "label": "PER"}
    beside = {"_input_hash": -1, "_task_hash": 2, "tokens": tokens, "meta": {"n": 1}}
    record = {"text": "Ann sings.", **beside}
    answered = [({"spans": [span]}, "accept"), ({"spans": [span]}, "reject"), ({}, "ignore"),
                ({"spans": None}, "accept"), ({}, "reject")]  # fmt: skip
    rows = [{**record, **more, "answer": answer} for more, answer in answered]
    path = put(tmp_path, "a.jsonl", *rows)
    told = r"left out 2 whose answer is reject, 1 .* ignore; 2 texts read"
    with pytest.warns(UserWarning, match=told):
        texts, entities, metadata = read_annotations(path)
    assert (texts, entities) == (["Ann sings."] * 2, [[(0, 3, "PER")], []])
    assert metadata == [{**beside, "answer": "accept"}] * 2
    assert len(texts_of(path)) == 5
    moved = {**record, "text": "So Ann sings.", "spans": [], "answer": "accept"}
    with pytest.raises(ValueError, match=r"line 1: the token from 0 to 3: its offsets hold 'So '"):
        read_annotations(put(tmp_path, "b.jsonl", moved))
    with pytest.raises(ValueError, match=r"'spans' is 3, not a list"):
        read_annotations(put(tmp_path, "b.jsonl", {**moved, "spans": 3}), "prodigy")


# ---- spaCy


def test_spacy_pairs_and_documents(tmp_path):
    pair = ["Ann sings.", {"entities": [[0, 3, "PER"]]}]
    expected = (["Ann sings."], [[(0, 3, "PER")]])
    assert read_annotations(put(tmp_path, "a.json", pair, lines=False))[:2] == expected
    annotator = {"classes": ["PER"], "annotations": [pair, None]}
    assert read_annotations(put(tmp_path, "a.json", annotator))[:2] == expected
    ents = [{"start": 0, "end": 3, "label": "PER"}]
    tokens = [{"id": 0, "start": 0, "end": 3}]
    group = {"sc": [*ents, {"start": 0, "end": 9, "label": "S", "kb_id": ""}]}
    document = {"text": "Ann sings.", "ents": ents, "tokens": tokens, "spans": group}
    path = put(tmp_path, "a.json", document, lines=False)
    assert read_annotations(path).entities == [[(0, 3, "PER"), (0, 9, "S")]]
    path = put(tmp_path, "a.jsonl", pair, pair)
    assert read_annotations(path).entities == [[(0, 3, "PER")]] * 2


# ---- brat


def brat(folder, text, ann, name="d"):
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.txt").write_bytes(text.encode())
    if ann is not None:
        (folder / f"{name}.ann").write_bytes(ann.encode())
    return folder


def test_brat(tmp_path):
    ann = (
        "T1\tPER 0 3\tAnn\nE1\tSing:T2 Agent:T1\nT2\tSing 4 9\tsings\nA1\tNegation E1\n"
        "M1\tNegated T2\nR1\tKnows Arg1:T1 Arg2:T1\t\n*\tEquiv T1 T2\n"
        "N1\tReference T1 Wikipedia:1\tAnn\n#1\tAnnotatorNotes T1\tsure?\n"
    )
    folder = brat(tmp_path / "a", "Ann sings.", ann)
    brat(folder, "", "", "empty")
    (folder / "annotation.conf").write_text("[entities]\n")
    (folder / "sub").mkdir()
    brat(folder / "sub", "Rome", "T1\tLOC 0 4\tRome\r\n")
    assert read_annotations(folder) == (
        ["Ann sings.", "", "Rome"],
        [[(0, 3, "PER"), (4, 9, "Sing")], [], [(0, 4, "LOC")]],
        [{"id": "d"}, {"id": "empty"}, {"id": "sub/d"}],
    )
    brat(folder, "not annotated", None, "new")
    with pytest.warns(UserWarning, match=r"left out 1 without a file .ann; 3 texts"):
        read_annotations(folder)
    assert len(texts_of(folder)) == 4


def test_brat_of_several_parts(tmp_path):
    lines = brat(tmp_path / "a", "New\n York, and Rome", "T1\tLOC 0 3;5 9\tNew York\n")
    assert read_annotations(lines).entities == [[(0, 9, "LOC")]]  # cut at the end of a line
    # One part lies inside the other.
    inside = brat(tmp_path / "c", "New York", "T1\tLOC 0 8;4 6\tNew York Yo\n")
    assert [e[:3] for e in read_annotations(inside, "brat").entities[0]] == [(0, 8, "LOC")]
    apart = brat(tmp_path / "b", "North and South America", "T7\tLOC 0 5;16 23\tNorth America\n")
    told = r"d.ann \(id 'd'\): the entity 'LOC' from 0 to 5;16 to 23: it is discontinuous"
    with pytest.raises(ValueError, match=told):
        read_annotations(apart)
    with pytest.warns(UserWarning, match=r"1 of them were moved or joined"):
        assert read_annotations(apart, on_misaligned="expand").entities == [[(0, 23, "LOC")]]
    with pytest.warns(UserWarning, match=r"misaligned"):
        assert read_annotations(apart, on_misaligned="drop").entities == [[]]


def test_brat_cuts_an_entity_at_the_end_of_a_line(tmp_path):
    path = write_annotations(tmp_path / "a", ["New\nYork"], [[(0, 8, "LOC")]], "brat")
    assert (path / "text-0.ann").read_text() == "T1\tLOC 0 3;4 8\tNew York\n"


@pytest.mark.parametrize("bom", ["", "\ufeff"])
@pytest.mark.parametrize("counts_bom", [False, True])
@pytest.mark.parametrize("counts_both", [False, True])
def test_brat_finds_what_line_ends_and_marks_count(tmp_path, bom, counts_bom, counts_both):
    start = 4 + counts_both + (counts_bom and bom != "")
    folder = brat(tmp_path / "a", f"{bom}Ann\r\nRome", f"T1\tLOC {start} {start + 4}\tRome\n")
    (text,), ((entity,),), _ = read_annotations(folder)
    assert text[entity[0] : entity[1]] == "Rome"
    assert entity[0] == start


@pytest.mark.parametrize(
    ("ann", "problem"),
    [
        ("T1\tLOC 1 4\tRome\n", "its offsets hold 'ome'"),
        ("T1 LOC 0 4 Rome\n", "d.ann', line 1: .* is not 'T1<tab>TYPE START END"),
        ("T1\tLOC 0 4\tRome\n\nX9\tfoo\n", "d.ann', line 3"),
        ("T1\tLOC 0 9\tRome\n", "outside the text, which has 4"),
    ],
)
def test_brat_that_cannot_be_right(tmp_path, ann, problem):
    with pytest.raises(ValueError, match=problem):
        read_annotations(brat(tmp_path / "a", "Rome", ann))


def test_brat_without_its_text(tmp_path):
    folder = brat(tmp_path / "a", "Rome", "T1\tLOC 0 4\tRome\n")
    (folder / "d.txt").unlink()
    with pytest.raises(FileNotFoundError, match=r"there is no file '.*d.txt'"):
        read_annotations(folder)
    with pytest.raises(FileNotFoundError, match=r"no file .*below .*d.ann': give a folder"):
        read_annotations(folder / "d.ann")


# ---- tokens


def test_tokens_and_tags(tmp_path):
    tagged = {"tokens": ["Ann", "in", "New", "York"], "tags": ["B-PER", "O", "B-LOC", "I-LOC"]}
    expected = (["Ann in New York"], [[(0, 3, "PER"), (7, 15, "LOC")]])
    for name, values in (("ner_tags", tagged["tags"]), ("tags", ["U-PER", "O", "B-LOC", "L-LOC"])):
        record = {"id": 1, "tokens": tagged["tokens"], name: values}
        assert read_annotations(put(tmp_path, "a.jsonl", record)) == (*expected, [{"id": 1}])
    record = {"tokens": tagged["tokens"], "tags": ["B-PER", None, None, "O"]}
    path = put(tmp_path, "a.jsonl", record)
    unknown = [(0, 3, "PER"), (4, 6, None), (7, 10, None)]
    assert read_annotations(path).entities == [unknown]
    assert read_dataset(path).y == [record["tags"]]
    spans = [["PER", 0, 1, 0.5], ["LOC", 2, 4], ["X", 0, 4]]
    both = [(0, 3, "PER"), (7, 15, "LOC"), (0, 15, "X")]
    path = put(tmp_path, "a.jsonl", {"tokens": tagged["tokens"], "spans": spans})
    assert read_annotations(path).entities == [both]
    named = [{"type": kind, "start": a, "end": b, "text": "x"} for kind, a, b, *_ in spans]
    path = put(tmp_path, "a.jsonl", {"tokens": tagged["tokens"], "spans": named})
    assert read_annotations(path).entities == [both]


@pytest.mark.parametrize(
    ("record", "problem"),
    [
        ({"tokens": ["a", "b"], "tags": ["O"]}, "line 1: 2 tokens, but 1 tags"),
        ({"tokens": ["a"], "tags": [1]}, "write names of tags, and no ids"),
        ({"tokens": ["a"], "tags": ["NOUN"]}, "tags without B- and I-, such as 'NOUN'"),
        ({"tokens": ["a"], "spans": [["X", 0, 2]]}, "outside 1 tokens"),
        ({"tokens": ["a"], "spans": [["X", 0]]}, "and no ids, or spans"),
    ],
)
def test_tokens_that_cannot_be_right(tmp_path, record, problem):
    with pytest.raises(ValueError, match=problem):
        read_annotations(put(tmp_path, "a.jsonl", record))


def test_conll_words_are_joined(tmp_path):
    path = tmp_path / "a.conll"
    path.write_text(
        "-DOCSTART- -X- O\n\nAnn -X- _ B-PER\n👍🏽 -X- _ O\nNew -X- _ B-LOC\nYork -X- _ I-LOC\n\n"
        "No -X- _ O\n"
    )
    entities = [[(0, 3, "PER"), (7, 15, "LOC")], []]
    assert read_annotations(path) == (["Ann 👍🏽 New York", "No"], entities, [{}, {}])


# ---- plain JSON lines, and what is none of them


@pytest.mark.parametrize(
    "entity",
    [
        [0, 3, "PER"],
        ["PER", 0, 3],
        [0, 3, "PER", "Ann"],
        [0, 3, "PER", 0.9, "Ann"],
        {"start": 0, "end": 3, "label": "PER", "score": 0.9, "text": "Ann"},
        {"start_offset": 0, "end_offset": 3, "label": "PER"},
        {"entity_group": "PER", "score": 0.9, "word": "ann", "start": 0, "end": 3},  # uncased
    ],
)
def test_lines_of_texts_and_entities(tmp_path, entity):
    record = {"doc": 4, "text": "Ann sings.", "entities": [entity]}
    scores = {"entity_scores": [0.9]} if "0.9" in str(entity) else {}
    found = (["Ann sings."], [[(0, 3, "PER")]], [{"doc": 4, **scores}])
    assert read_annotations(put(tmp_path, "a.jsonl", record)) == found
    assert read_annotations(put(tmp_path, "a.json", record, lines=False)) == found
    record["body"] = record.pop("text")
    assert read_annotations(put(tmp_path, "a.jsonl", record), text_column="body") == found


QUESTION = {"question": "Who?", "context": "Ann", "answers": []}


@pytest.mark.parametrize("record", [QUESTION, ["Ann", "spam"], 3])
def test_what_is_no_annotation(tmp_path, record):
    told = "of no format that is known: it has .*format of read_annotations"
    with pytest.raises(ValueError, match=told):
        read_annotations(put(tmp_path, "a.jsonl", record, record))


def test_files_that_are_none(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no file"):
        read_annotations(tmp_path / "a.jsonl")
    (tmp_path / "a.jsonl").write_text("")
    with pytest.raises(ValueError, match=r"is empty"):
        read_annotations(tmp_path / "a.jsonl")
    (tmp_path / "a.txt").write_text("Just some text.\nAnd more.\n")
    with pytest.raises(ValueError, match=r"that is known: it has the line 'Just some text\.'"):
        read_annotations(tmp_path / "a.txt")
    with pytest.raises(ValueError, match=r"holds no annotated text"):
        read_annotations(tmp_path, "brat")
    with pytest.raises(ValueError, match=r"line 1: .* is not a JSON object"):
        read_annotations(put(tmp_path, "b.jsonl", 3), "doccano")
    with pytest.raises(ValueError, match=r"line 1: .* is no entity"):
        read_annotations(put(tmp_path, "b.jsonl", {"text": "Ann", "label": ["a"]}), "doccano")


def test_texts_in_which_nobody_marked_anything(tmp_path):
    for record in ({"text": "Ann", "label": []}, {"text": "Ann", "entities": None}):
        assert read_annotations(put(tmp_path, "a.jsonl", record, record)).entities == [[], []]


def test_a_format_that_would_lose_the_entities(tmp_path):
    path = put(tmp_path, "a.jsonl", {"text": "Ann", "entities": [[0, 3, "PER"]]})
    for format in ("label-studio", "prodigy"):
        with pytest.raises(ValueError, match=f"'{format}' finds no entity; .* like 'jsonl'"):
            read_annotations(path, format)


def test_an_object_on_many_lines(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"text": "Ann", "label": [[0, 3, "PER"]]}, indent=1))
    assert read_annotations(path).entities == [[(0, 3, "PER")]]


def test_pictures_are_no_texts(tmp_path):
    box = {"type": "rectanglelabels", "value": {"x": 1, "y": 2, "rectanglelabels": ["A"]}}
    boxes = {"data": {"image": "x.jpg"}, "annotations": [{"result": [box]}]}
    with pytest.raises(ValueError, match=r"a region of 'rectanglelabels' is no stretch of a text"):
        read_annotations(put(tmp_path, "a.json", boxes, lines=False))


# ---- labels that are none, and names beside ids


@pytest.mark.parametrize("label", [None, "", " ", False, 1.5, ["a"], {"a": 1}, "a\x00", "\ud83d"])
def test_a_move_mends_no_label(tmp_path, label):
    held = {"start": 4, "end": 7, "text": "Ann"}  # at another place, too
    for format, record in (
        ("prodigy", {"text": "So Ann.", "answer": "accept", "spans": [{**held, "label": label}]}),
        ("doccano", {"text": "So Ann.", "label": [[3, 6, label]]}),
    ):
        path = put(tmp_path, "a.jsonl", record)
        with pytest.raises(ValueError, match=r"a.jsonl', line 1: .*its label is .*, not a name"):
            read_annotations(path, format)
        for how in ("expand", "drop"):
            with pytest.warns(UserWarning, match=r"misaligned; 0 of them were moved"):
                assert read_annotations(path, format, on_misaligned=how).entities == [[]]
