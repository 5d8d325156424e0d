"""What is written is read again: no entity lost, no offset shifted, in every format."""

from __future__ import annotations

import json
import re
import warnings
from collections import Counter

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from skdice._names import NOT_WRITTEN
from skdice.datasets import read_annotations, read_dataset, write_annotations
from skdice.datasets.annotations import Annotations

NAMES = {
    "doccano": "a.jsonl",
    "label-studio": "a.json",
    "prodigy": "a.jsonl",
    "brat": "a",
    "jsonl": "a.jsonl",
    "conll": "a.conll",
}
TEXTS = [
    "👍🏽 Ann lives in New York.\r\nShe sings.",
    "nothing here",
    "e\u0301te\u0301 à Zürich 👨\u200d👩\u200d👧 Wien\u200b, zero width",
    "\ttabs, a \\n of two letters\nand lines \u2028 of every kind\x85 end",
]


def at(text, part, label="LOC"):
    start = text.index(part)
    return start, start + len(part), label


ENTITIES = [
    [
        at(TEXTS[0], "Ann", "PER"),
        at(TEXTS[0], "New York"),
        at(TEXTS[0], "York", "NESTED"),
        at(TEXTS[0], "in New", "OVERLAPPING"),
        at(TEXTS[0], "York.\r\nShe", "TWO-LINES"),
        at(TEXTS[0], "👍🏽", "EMOJI"),
        at(TEXTS[0], "🏽", "HALF-OF-IT"),
    ],
    [],
    [
        at(TEXTS[2], "e\u0301te\u0301", "TIME"),
        at(TEXTS[2], "👨\u200d👩\u200d👧", "X"),
        at(TEXTS[2], "Wien"),
    ],
    [at(TEXTS[3], "lines \u2028 of"), at(TEXTS[3], "kind\x85 end"), at(TEXTS[3], "letters\nand")],
]
METADATA = [{"id": 3, "source": "a"}, {"id": "b/c"}, {"more": {"x": [1, None]}}, {}]


def held(found):
    """The characters of entities, without white space, and their labels."""
    return [
        [("".join(text[a:b].split()), label) for a, b, label in row]
        for text, row in zip(found.texts, found.entities, strict=True)
    ]


def there_and_back(path, format, texts, entities, metadata=None, **how):
    """What is read from what was written; the format is found, but for a file without entities."""
    write_annotations(path, texts, entities, format, metadata, **how)
    found = format if not any(entities) else "auto"
    return read_annotations(path, found)


@pytest.mark.filterwarnings("ignore:.* no place for the metadata")
@pytest.mark.parametrize("format", NAMES)
def test_a_hand_made_set(tmp_path, format):
    path = tmp_path / NAMES[format]
    if format == "conll":
        told = r"3 of 13 entities .* overlap .*'York' NESTED in texts\[0\]"
        with pytest.warns(UserWarning, match=told):
            back = there_and_back(path, format, TEXTS, ENTITIES, METADATA)
        lost = {ENTITIES[0][i] for i in (1, 2, 6)}
        kept = [sorted({*row} - lost) for row in ENTITIES]
        assert held(back) == held(Annotations(TEXTS, kept, []))
        return
    back = there_and_back(path, format, TEXTS, ENTITIES, METADATA)
    assert (back.texts, back.entities) == (TEXTS, ENTITIES)
    if format == "brat":  # where the name of the file is the id
        assert [row["id"] for row in back.metadata] == ["3", "b/c", "text-2", "text-3"]
    else:
        assert back.metadata == METADATA


LETTERS = st.sampled_from("aB é,.\n\r\t-#\\😀👍🏽𝒳中")
ANY = st.characters(codec="utf-8") | LETTERS


@st.composite
def annotated(draw):
    """Texts of any characters with any entities, which may overlap, nest and come twice."""
    texts, entities = [], []
    for _ in range(draw(st.integers(1, 3))):
        text = draw(st.text(ANY, max_size=12)).lstrip("\ufeff")
        texts.append(text)
        places = st.tuples(st.integers(0, len(text)), st.integers(0, len(text)))
        spans = draw(st.lists(places, max_size=4)) if text else []
        label = st.sampled_from(["PER", "LOC", "a-b", "_"])
        entities.append([(min(s), max(s), draw(label)) for s in spans if s[0] != s[1]])
    return texts, entities


@pytest.mark.parametrize("format", sorted({*NAMES} - {"conll"}))
@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=annotated(), ids=st.booleans())
def test_any_texts_and_entities(tmp_path_factory, format, data, ids):
    texts, entities = data
    path = tmp_path_factory.mktemp("a") / NAMES[format]
    more = {} if format == "brat" else {"x": "y"}
    metadata = [{"id": f"t{i}", **more} for i in range(len(texts))] if ids else None
    back = there_and_back(path, format, texts, entities, metadata)
    assert (back.texts, back.entities) == (texts, entities)
    assert not ids or back.metadata == metadata


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=annotated())
@example(data=(["#0"], [[(0, 1, "_")]]))
def test_conll_names_what_it_cannot_hold(tmp_path_factory, data):
    texts, entities = data
    path = tmp_path_factory.mktemp("a") / "a.conll"
    if not all(text.strip() for text in texts):
        with pytest.raises(ValueError, match=r"no text without words"):
            write_annotations(path, texts, entities, "conll")
        assert not path.exists()
        return
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            back, refusal = there_and_back(path, "conll", texts, entities), ""
        except ValueError as error:
            back, refusal = None, str(error)
    if back is None:  # a line that starts with # is a comment, and numbers may count the tokens
        comment = re.search(r"X\[\d+\] would not be read again: .*# ", refusal)
        assert "#" in "".join(texts) if comment else "counters, not tokens" in refusal
        assert comment or "".join("".join(texts).split()).isdigit()
        assert not (comment and path.exists())
        return
    lost = sum(map(len, entities)) - sum(map(len, back.entities))
    assert ["".join(text.split()) for text in back.texts] == ["".join(t.split()) for t in texts]
    assert [str(w.message).split(" of ")[0] for w in caught] == ([str(lost)] if lost else [])
    # What is lost overlaps, or is ragged.
    whole = held(Annotations(texts, entities, []))
    for text, row, there, kept in zip(texts, entities, whole, held(back), strict=True):
        assert not Counter(kept) - Counter(there)
        free = [e for e in row if text[e[0] : e[1]] == text[e[0] : e[1]].strip()]
        alone = [e for e in free if sum(e[0] < b and a < e[1] for a, b, _ in row) == 1]
        assert {("".join(text[a:b].split()), label) for a, b, label in alone} <= {*kept}


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=annotated())
def test_doccano_counts_utf16(tmp_path_factory, data):
    texts, entities = data
    path = write_annotations(tmp_path_factory.mktemp("a") / "a.jsonl", texts, entities, "doccano")
    for line, text, row in zip(path.read_text().splitlines(), texts, entities, strict=False):
        for (a, b, _), (start, end, _) in zip(json.loads(line)["label"], row, strict=True):
            held = text.encode("utf-16-le")[2 * a : 2 * b]
            assert held.decode("utf-16-le") == text[start:end]
    assert read_annotations(path, "doccano")[:2] == (texts, entities)


def test_label_studio_keeps_predictions_apart_from_annotations(tmp_path):
    rows = [[(0, 3, "PER", 0.75)], []]
    path = write_annotations(tmp_path / "a.json", ["Ann sings.", "No."], rows, "label-studio")
    first, second = json.loads(path.read_text())
    prediction = first["predictions"][0]
    assert prediction["score"] == prediction["result"][0]["score"] == 0.75
    assert second["predictions"][0]["result"] == []
    assert "annotations" not in first


def test_regions_that_nobody_annotated_are_written(tmp_path):
    path = write_annotations(tmp_path / "a.jsonl", ["Ann"], [[(0, 3, None)]], "jsonl")
    assert read_annotations(path).entities == [[(0, 3, None)]]


@pytest.mark.parametrize("source", sorted({*NAMES} - {"brat", "conll"}))
@pytest.mark.parametrize("target", sorted({*NAMES} - {"brat", "conll"}))
def test_scores_of_predictions_go_from_tool_to_tool(tmp_path, source, target):
    found = [(0, 3, "PER", 0.875), (13, 21, "LOC", 0.5)]
    texts, metadata = ["Ann lives in New York.", "Bob sings."], [{"id": "a"}, {"id": "b"}]
    first, second = tmp_path / NAMES[source], tmp_path / f"to-{NAMES[target]}"
    write_annotations(first, texts, [found, []], source, metadata)
    back = read_annotations(first, source)
    assert back.entities == [[entity[:3] for entity in found], []]
    assert [row.get("entity_scores") for row in back.metadata] == [[0.875, 0.5], None]
    write_annotations(second, *back[:2], target, back.metadata)
    again = read_annotations(second, target)
    assert again.entities == back.entities
    assert [row.get("entity_scores") for row in again.metadata] == [[0.875, 0.5], None]
    assert [row["id"] for row in again.metadata] == ["a", "b"]


def test_what_a_person_accepted_is_no_prediction(tmp_path):
    text, tags = "Ann lives.", {"from_name": "label", "to_name": "text", "type": "labels"}
    region = {"value": {"start": 0, "end": 3, "labels": ["PER"]}, "score": 0.9, **tags}
    task = {"data": {"text": text}, "annotations": [{"result": [region]}]}
    (tmp_path / "a.json").write_text(json.dumps([task]))
    span = {"start": 0, "end": 3, "label": "PER", "score": 0.9}
    record = {"text": text, "spans": [span], "answer": "accept"}
    (tmp_path / "a.jsonl").write_text(json.dumps(record) + "\n")
    for file in ("a.json", "a.jsonl"):
        back = read_annotations(tmp_path / file)
        assert back.entities == [[(0, 3, "PER")]]
        assert "entity_scores" not in back.metadata[0]


@pytest.mark.parametrize(
    ("texts", "entities", "format", "problem"),
    [
        (["Ann"], [[(0, 4, "X")]], "jsonl", r"entities\[0\]\[0\] .* outside texts\[0\], which has"),
        (["Ann"], [[(2, 2, "X")]], "jsonl", r"entities\[0\]\[0\] is \(2, 2, 'X'\), which is empt"),
        (["Ann"], [[(0, 1)]], "jsonl", r"which has no label: an entity is \(start, end, label\)"),
        (["Ann"], [[(0, 1, "")]], "doccano", "the label of .* is ''"),
        (["Ann"], [[(0, 1, None)]], "prodigy", "has the label None"),
        (["Ann"], [[{"start": 0, "end": 1, "label": "X", "score": "a"}]], "jsonl", "the score 'a'"),
        (["Ann"], [], "jsonl", "texts holds 1 text and entities 0"),
        ([3], [[]], "jsonl", r"texts\[0\] is 3, not a string"),
        (["x\ud83d"], [[]], "jsonl", r"texts\[0\] holds half of a surrogate pair"),
        (["Ann"], [[(0, 1, "a b")]], "brat", "white space"),
        (["Ann"], [[(0, 1, "a\tb")]], "conll", "without tabs"),
        (["\ufeffAnn"], [[]], "brat", "byte order mark"),
        (["Ann"], [[]], "bratt", "format='bratt' must be one of"),
        ("Ann", [[]], "jsonl", "texts is a single string"),
    ],
)
def test_bad_input_is_named_and_nothing_is_written(tmp_path, texts, entities, format, problem):
    path = tmp_path / "a"
    with pytest.raises((TypeError, ValueError), match=problem):
        write_annotations(path, texts, entities, format)
    assert list(tmp_path.iterdir()) == []


def test_an_earlier_file_stays_if_the_new_one_fails(tmp_path):
    path = write_annotations(tmp_path / "a", ["Ann"], [[(0, 3, "PER")]], "brat", [{"id": "one"}])
    (path / "annotation.conf").write_text("[entities]\nPER\n")
    with pytest.raises(ValueError, match=r"white space"):
        write_annotations(path, ["Ann"], [[(0, 3, "a b")]], "brat", [{"id": "one"}])
    assert read_annotations(path).entities == [[(0, 3, "PER")]]
    write_annotations(path, ["Rome"], [[(0, 4, "LOC")]], "brat", [{"id": "../one"}])
    assert (path / "annotation.conf").is_file()
    assert not (tmp_path / "one.txt").exists()
    assert read_annotations(path).texts == ["Ann", "Rome"]


# ---- metadata of any name

KEYS = (
    *("id", "source", "ents", "spans", "label", "labels", "regions", "entities", "annotations"),
    *("answer", "text", "data", "meta", "result", "tokens", "tags", "skdice", "offsets", "cats"),
    *("relations", "annotation_id", "lead_time", "paragraphs", "accept", "documents", "passages"),
    *("identifiers", "entity_ids", "infons", "a b", "x = y", "predictions", "drafts", "metadata"),
)
VALUES = (
    *(1, "x", None, True, [], {}, 2.5, "", "reject", "ignore", "utf16", ["t"], {"a": [1]}),
    *([[0, 1, "Q"]], [{"start": 0, "end": 1, "label": "Z"}], {"choices": ["a"]}),
    [{"start": 0, "end": 1, "labels": ["L"], "text": "q"}],
    [["t", {"entities": [[0, 1, "A"]]}]],
    {"format": "jsonl", "metadata": {}},
)


@pytest.mark.parametrize("name", sorted({*NAMES.values()} - {"a.conll", "a"}))
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=annotated(), draw=st.data())
def test_any_metadata_come_back_and_change_no_format(tmp_path_factory, name, data, draw):
    texts, entities = data
    format = draw.draw(st.sampled_from([f for f, file in NAMES.items() if file == name]))
    one = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES), max_size=5)
    metadata = [draw.draw(one) for _ in texts]
    path = tmp_path_factory.mktemp("a") / name
    write_annotations(path, texts, entities, format, metadata)
    back = read_annotations(path)
    assert (back.texts, back.entities) == (texts, entities)
    assert read_dataset(path).task == "entities"
    assert back.metadata == metadata


@pytest.mark.parametrize("format", ["brat", "conll"])
def test_metadata_without_a_place_are_named(tmp_path, format):
    metadata = [{"id": "a", "year": 1, "x": 2}, {"year": 3}]
    what = "'year', 'x'" if format == "brat" else "'id', 'year', 'x'"
    with pytest.warns(UserWarning, match=f"no place for the metadata {what}: they are not"):
        write_annotations(tmp_path / "a", ["Ann", "b c"], [[], []], format, metadata)


@pytest.mark.parametrize("target", ["doccano", "prodigy", "jsonl", "label-studio"])
def test_what_label_studio_added_changes_no_format(tmp_path, target):
    entry = {"start": 0, "end": 3, "text": "Ann", "labels": ["PER"]}
    more = {"id": 5, "annotator": 1, "annotation_id": 3, "lead_time": 2.5, "regions": [entry]}
    task = {"text": "Ann sings.", "label": [entry], **more}
    (tmp_path / "min.json").write_text(json.dumps([task]))
    first = read_annotations(tmp_path / "min.json")
    path = write_annotations(tmp_path / NAMES[target], *first[:2], target, first.metadata)
    assert read_annotations(path) == first


def test_documents_of_one_name(tmp_path):
    ids = ["a-2", "a", "a", "A", "b/c", "", "x" * 300, "\u4e2d" * 90]
    texts = [f"text {i}" for i in range(len(ids))]
    metadata = [{"id": name} for name in ids]
    path = write_annotations(tmp_path / "a", texts, [[] for _ in texts], "brat", metadata)
    back = read_annotations(path)
    assert sorted(back.texts) == texts
    assert len({str(row["id"]).casefold() for row in back.metadata}) == len(ids)
    assert {"a-2", "a", "b/c"} < {row["id"] for row in back.metadata}


@pytest.mark.parametrize("form", ["doccano", "prodigy", "jsonl", "label-studio"])
def test_a_file_named_json_holds_one_value(tmp_path, form):
    texts, entities = ["Ann sings.", "it rains"], [[(0, 3, "PER")], []]
    path = write_annotations(tmp_path / "a.json", texts, entities, form)
    assert len(json.loads(path.read_text())) == 2
    found = read_annotations(path, form)
    assert (found.texts, found.entities) == (texts, entities)


# ---- formats that are read alone


@pytest.mark.parametrize("format", NOT_WRITTEN)
def test_a_format_that_is_read_alone_says_what_makes_its_files(tmp_path, format):
    told = f"format='{format}' is read, and not written: .* (bioc|'conll')"
    with pytest.raises(ValueError, match=told):
        write_annotations(tmp_path / "a", ["Ann"], [[]], format)
    assert not [*tmp_path.iterdir()]


def test_columns_are_words_and_tags(tmp_path):
    """As spaCy and INCEpTION read them, between blanks or tabs."""
    texts, entities = ["Ann lives in New York.", "# so"], [[(13, 21, "LOC")], []]
    plain = write_annotations(tmp_path / "a.conll", texts, entities, "conll").read_text()
    blocks = [[line.split() for line in block.split("\n") if line] for block in plain.split("\n\n")]
    words, tags = zip(*(zip(*block, strict=True) for block in blocks), strict=True)
    assert words == (("Ann", "lives", "in", "New", "York", "."), ("#", "so"))
    assert tags == (("O", "O", "O", "B-LOC", "I-LOC", "O"), ("O", "O"))


def units(text):
    """How many code units of UTF-16 a text has."""
    return len(text.encode("utf-16-le")) // 2


def of_webanno(text, entities):
    """One sentence, cut wherever an entity or a letter begins or ends."""
    lines = ["#FORMAT=WebAnno TSV 3.3", "#T_SP=a.b.NamedEntity|value", "", ""]
    escapes = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}
    lines.append("#Text=" + "".join(escapes.get(c, c) for c in text))
    for i, character in enumerate(text):
        numbered = ((f"{e[2]}[{n}]", e) for n, e in enumerate(entities, 1))
        held = [name.replace("_", "\\_") for name, e in numbered if e[0] <= i < e[1]]
        if held or not character.isspace():
            place = f"1-{i + 1}\t{units(text[:i])}-{units(text[: i + 1])}"
            lines.append(f"{place}\t{escapes.get(character, character)}\t{'|'.join(held) or '_'}\t")
    return "\n".join(lines) + "\n"


def of_pubtator(text, entities):
    lines = [f"7\t{a}\t{b}\t{text[a:b]}\t{label}" for a, b, label in entities]
    return "\n".join([f"7|t|{text}", "7|a|", *lines]) + "\n"


def of_bioc(text, entities):
    annotations = [
        {"infons": {"type": label}, "locations": [{"offset": 9 + a, "length": b - a}]}
        for a, b, label in entities
    ]
    passage = {"offset": 9, "text": text, "annotations": annotations}
    return json.dumps({"documents": [{"id": "1", "passages": [passage]}]})


def of_spacy(text, entities):
    return json.dumps([[text, {"entities": entities}]])


OTHERS = {
    "webanno": ("a.tsv", of_webanno),
    "pubtator": ("a.pubtator", of_pubtator),
    "bioc": ("a.json", of_bioc),
    "spacy": ("a.json", of_spacy),
}


@pytest.mark.parametrize("format", OTHERS)
@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=annotated())
def test_any_texts_as_other_tools_write_them(tmp_path_factory, format, data):
    name, file_of = OTHERS[format]
    path = tmp_path_factory.mktemp("a") / name
    for text, entities in zip(*data, strict=True):
        if format == "pubtator":  # which has no line ends and tabs
            text = "".join("." if c in "\n\r\t" else c for c in text)
        if not text.strip("\n\r") or (format == "webanno" and text[:1].isspace()):
            continue
        path.write_bytes(file_of(text, entities).encode())
        found = read_annotations(path, format)
        kept = found.entities[0]
        if format == "webanno":  # which has them in the order of their tokens
            kept, entities = sorted(kept), sorted(entities)
        assert (found.texts, kept) == ([text], entities)
