"""Files as they come: cut short, in other encodings, damaged. Read whole, or refused."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skdice.datasets import (
    read_annotations,
    read_conll,
    read_dataset,
    read_squad,
    read_table,
    read_texts,
)

READERS = (read_conll, read_dataset, read_squad, read_table, read_texts)

CONLL = "Zoë\tB-PER\nlives\tO\n\nit\tO\nrains\tO\n\n"
CONLLU = "1\tIt\tit\tPRON\t_\t_\t2\tnsubj\t_\t_\n2\trains\train\tVERB\t_\t_\t0\troot\t_\t_\n\n"
QUESTIONS = [
    {"id": "1", "question": "Who?", "answers": [{"text": "Zoë", "answer_start": 0}]},
    {"id": "2", "question": "When?", "answers": [], "is_impossible": True},
]
PARAGRAPH = {"context": "Zoë sings in Rome.", "qas": QUESTIONS}
SQUAD = {"data": [{"title": "a", "paragraphs": [PARAGRAPH]}]}
FILES = {
    "a.conll": CONLL,
    "a.conllu": CONLLU,
    "a.tsv": "text\tlabel\nZoë wins\tspam\nlunch?\tham\n",
    "a.csv": "text,label\nZoë wins,spam\nlunch?,ham\n",
    "a.jsonl": '{"text": "Zoë wins", "label": "spam"}\n{"text": "lunch?", "label": "ham"}\n',
    "a.json": json.dumps(SQUAD, ensure_ascii=False),
}


def rows_of(path, **options):
    found = read_dataset(path, **options)
    return list(map(repr, found.X)), list(map(repr, found.y))


@pytest.mark.parametrize("name", FILES)
def test_marked_and_windows_files_are_read(tmp_path, name):
    plain = tmp_path / name
    plain.write_text(FILES[name], encoding="utf-8")
    expected = rows_of(plain)
    data = FILES[name].encode()
    for other in (
        ("marked/" + name, b"\xef\xbb\xbf" + data),
        ("windows/" + name, data.replace(b"\n", b"\r\n")),
    ):
        path = tmp_path / other[0]
        path.parent.mkdir()
        path.write_bytes(other[1])
        assert rows_of(path) == expected, other[0]
    if name != "a.json":  # JSON is UTF-8 by its standard
        path = tmp_path / "latin" / name
        path.parent.mkdir()
        path.write_bytes(FILES[name].encode("latin-1"))
        if "ë" in FILES[name]:
            with pytest.raises(ValueError, match="encoding='latin-1'"):
                read_dataset(path)
        assert rows_of(path, encoding="latin-1") == expected


def test_what_is_no_file_is_refused_by_name(tmp_path):
    with pytest.raises(FileNotFoundError, match="no file"):
        read_dataset(tmp_path)
    with pytest.raises(FileNotFoundError, match="no file"):
        read_squad(tmp_path)
    path = tmp_path / "a.conll"
    path.write_text(CONLL)
    with pytest.raises(ValueError, match="encoding='nope' is unknown"):
        read_dataset(path, encoding="nope")
    path = tmp_path / "a.json"
    path.write_bytes(b'{"data": "\xff"}')
    with pytest.raises(ValueError, match="utf-8"):
        read_dataset(path)


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("name", ["a.json", "a.jsonl", "a.txt"])
def test_json_that_is_nested_deep_or_huge_is_refused(tmp_path, reader, name):
    deep = 100_000
    for text in ("[" * deep, '{"a":' * deep, '{"a":' * deep + "1" + "}" * deep, "1" * 5000):
        path = tmp_path / name
        path.write_text(text + "\n")
        if reader is read_texts and name == "a.txt":
            assert len(reader(path)) == 1  # a line of text
            continue
        with pytest.raises(ValueError, match=r"a\.(json|txt)"):
            reader(path)


# A row whose label is lost has none: it is left out, and the warning says so.
@pytest.mark.filterwarnings("ignore:.* whose label is empty:skdice.exceptions.SkippedRowsWarning")
@pytest.mark.parametrize("name", FILES)
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_damaged_files_are_read_or_refused(tmp_path, name, data):
    content = bytearray(FILES[name].encode())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(content)))
        kind = data.draw(st.sampled_from(["cut", "drop", "insert", "swap"]))
        if kind == "cut":
            del content[at:]
        elif kind == "drop":
            del content[at : at + 4]
        elif kind == "insert":
            content[at:at] = data.draw(
                st.sampled_from([b"\x00", b"\t", b"\n\n", b'"', b"\xff", b"{", b"\xe2\x80\xa8"])
            )
        else:
            content[at : at + 1] = b"x"
    path = tmp_path / name
    path.write_bytes(bytes(content))
    message = ""
    try:
        found = read_dataset(path)
    except ValueError as error:
        message = str(error)
    else:
        assert len(found.X) == len(found.y) > 0
    assert not message or any(word in message for word in (name, "line", "question"))


NESTED = {
    "no list of ents": {"text": "Ann", "ents": 5, "spans": {}},
    "no ent": {"text": "Ann", "ents": [5]},
    "no groups": {"text": "Ann", "ents": [], "spans": 5},
    "no group": {"text": "Ann", "ents": [], "spans": {"sc": 5}},
    "no entities of a pair": ["Ann", {"entities": 5}],
    "no pair": {"annotations": [["Ann", {"entities": []}], 5]},
    "no annotations": {"data": {"text": "Ann"}, "annotations": 5},
    "an annotation that is none": {"data": {"text": "Ann"}, "annotations": [{"result": 5}]},
    "columns of entities": {"text": "Ann", "entities": {"start": [0], "end": [1]}},
    "half of a surrogate": {"text": "Ann", "entities": [[0, 3, "\ud83d"]]},
    "no passages": {"documents": [{"passages": [5]}]},
    "no location": {"documents": [{"passages": [{"annotations": [{"locations": [5]}]}]}]},
}


@pytest.mark.parametrize("name", NESTED)
def test_nested_values_of_another_kind_are_refused_by_their_file(tmp_path, name):
    path = tmp_path / "a.json"
    path.write_text(json.dumps([NESTED[name]]))
    for read in (read_annotations, lambda p: read_dataset(p, task="entities")):
        with pytest.raises(ValueError, match=r"a\.json'"):
            read(path)
