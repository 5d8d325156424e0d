"""What readers do not guess: each error's advice is followed on the file that caused it."""

from __future__ import annotations

import json
import os
import time
import tracemalloc
from pathlib import Path

import pytest

from skdice.datasets import (
    read_annotations,
    read_conll,
    read_dataset,
    read_table,
    write_annotations,
)
from tests.datasets.annotations.test_columns_and_passages import put
from tests.datasets.files import lines


def test_a_line_is_counted_in_the_file_also_behind_a_text_of_several(tmp_path):
    path = put(tmp_path, "a.csv", 'text,label\n"one\ntwo\nthree",x\nfour,y\nfive,six,z\n')
    with pytest.raises(ValueError, match=r"line 6: 3 column\(s\), but 2 in the first line"):
        read_table(path)


@pytest.mark.parametrize(
    ("text", "how", "expected"),
    [
        ("ham,see you\nspam,win\nham,ok\n", {"label_column": 0}, ["ham", "spam", "ham"]),
        ('"Hallo, du";spam\nBis bald;ham\nSo;spam\n', {"label_column": 1}, ["spam", "ham", "spam"]),
        ("sep=;\ntext;label\nso;x\n", {}, ["x"]),
        ("\nsep=\t\ntext\tlabel\nso\tx\n", {}, ["x"]),
        ('"text, cleaned";label\n"Hallo, du";x\n', {}, ["x"]),
    ],
)
def test_separators_are_those_outside_quotes(tmp_path, text, how, expected):
    assert read_table(put(tmp_path, "a.csv", text), **how)[1] == expected


def test_a_header_that_nothing_shows_is_asked_for(tmp_path):
    path = put(tmp_path, "a.csv", "utterance_x,act\nhello,greet\nbye,leave\n")
    with pytest.raises(ValueError, match="header=True or header=False"):
        read_table(path, text_columns=0, label_column=1)
    assert read_table(path, text_columns=0, label_column=1, header=True)[1] == ["greet", "leave"]
    with pytest.raises(ValueError, match="label_column by index with header=False, or header=True"):
        read_table(path)
    assert read_table(path, label_column="act")[0] == ["hello", "bye"]


# ---- labels


@pytest.mark.parametrize("background", ["None", "none", "-", "nan", "NaN", "NULL", "null", "N/A"])
@pytest.mark.parametrize("column", [None, "label"])
def test_the_background_is_a_class(tmp_path, background, column):
    path = put(tmp_path, "a.csv", f"text,label\na b,{background}\nc d,Hate\n")
    assert read_table(path, label_column=column)[1] == [background, "Hate"]
    rows = {"text": "a b", "label": background}, {"text": "c d", "label": "Hate"}
    path = put(tmp_path, "a.jsonl", lines(*rows))
    assert read_table(path, label_column=column)[1] == [background, "Hate"]


def test_empty_cells_alone_are_unlabelled(tmp_path):
    csv = put(tmp_path, "a.csv", "text,label\na b,x\nc d,\ne f, \ng h,y\n")
    with pytest.warns(UserWarning, match="left out 2 whose label is empty; 2 texts read"):
        assert read_table(csv) == (["a b", "g h"], ["x", "y"])
    rows = [{"text": "a", "label": value} for value in ("x", None, float("nan"), "", "y")]
    with pytest.warns(UserWarning, match="left out 3 whose label is empty; 2 texts read"):
        assert read_table(put(tmp_path, "a.jsonl", lines(*rows)))[1] == ["x", "y"]
    nothing = put(tmp_path, "b.csv", "text,label\na,\n")
    with pytest.raises(ValueError, match="no labelled row; left out: 1 whose label is empty"):
        read_table(nothing)


def test_a_word_among_flags_is_no_empty_cell(tmp_path):
    path = put(tmp_path, "a.csv", "text,p,q\na,1,0\nb,nan,1\n")
    with pytest.raises(ValueError, match="line 3: 'p' is 'nan', and a column of a label holds 0"):
        read_table(path, label_columns=["p", "q"])


def test_a_slice_of_rows_knows_the_columns(tmp_path):
    path = put(tmp_path, "a.csv", "text,p,q\na,1,0\nb,1,0\nc,0,1\n")
    y = read_table(path, label_columns=["p", "q"])[1]
    assert (y[:2], y[:2].columns, y[0]) == ([["p"], ["p"]], ["p", "q"], ["p"])


def test_labels_are_the_same_from_json_and_csv(tmp_path):
    values = [True, False, 1.0, 2.5, 3]
    rows = [{"text": f"t{i}", "label": value} for i, value in enumerate(values)]
    found = read_table(put(tmp_path, "a.jsonl", lines(*rows)))
    csv = "text,label\n" + "".join(f"t{i},{value}\n" for i, value in enumerate(values))
    assert read_table(put(tmp_path, "a.csv", csv)) == found
    assert found[1] == ["True", "False", "1", "2.5", "3"]


@pytest.mark.parametrize("label", [{"choices": ["a"]}, [[0, 3]], "http://x.example"])
def test_structures_and_links_are_no_classes(tmp_path, label):
    rows = {"text": "Ann", "label": "x"}, {"text": "b", "label": label}
    path = put(tmp_path, "a.jsonl", lines(*rows))
    with pytest.raises(ValueError, match=r"line [12]"):
        read_dataset(path)


def test_lists_of_one_label_and_of_numbers(tmp_path):
    one = lines({"text": "a", "label": ["x"]}, {"text": "b", "label": ["y"]})
    assert read_dataset(put(tmp_path, "a.jsonl", one)).y == ["x", "y"]
    ids = lines({"text": "a", "labels": [2, 27]}, {"text": "b", "labels": [5]})
    assert read_dataset(put(tmp_path, "a.jsonl", ids)).y == [["2", "27"], ["5"]]
    flags = lines({"text": "a", "labels": [1, 0]}, {"text": "b", "labels": [0, 0]})
    with pytest.raises(ValueError, match=r"holds 0 and 1 for labels without names"):
        read_dataset(put(tmp_path, "a.jsonl", flags))


def test_cells_of_any_length(tmp_path):
    import csv

    path = put(tmp_path, "a.csv", f'text,label\n"{"long, " * 30_000}",x\nshort,y\n')
    before = csv.field_size_limit()
    assert len(read_table(path)[0][0]) == 180_000
    assert csv.field_size_limit() == before


# ---- JSON


def test_labels_beside_fields_of_other_formats(tmp_path):
    for more in ({"tokens": ["a", "b"]}, {"entities": None}, {"data": {"x": 1}}):
        rows = [{"text": "a b", "label": "spam", **more}, {"text": "c d", "label": "ham", **more}]
        data = read_dataset(put(tmp_path, "a.jsonl", lines(*rows)))
        assert (data.task, data.X, data.y) == ("classification", ["a b", "c d"], ["spam", "ham"])


def test_a_pair_alone_in_a_file_of_lines(tmp_path):
    path = put(tmp_path, "a.jsonl", '["Ann sings", {"entities": [[0, 3, "PER"]]}]\n')
    assert read_annotations(path).entities == [[(0, 3, "PER")]]


def test_argilla(tmp_path):
    record = {"text": "Ada sings", "tokens": ["Ada", "sings"], "annotation": [["PER", 0, 3]]}
    path = put(tmp_path, "a.jsonl", lines(record, {**record, "annotation": []}))
    assert read_dataset(path).y == [[(0, 3, "PER")], []]


def test_shapes_of_pandas(tmp_path):
    rows = [{"text": "win", "label": "spam"}, {"text": "see you", "label": "ham"}]
    table = {"schema": {"fields": []}, "data": rows}
    for value in (table, {"data": rows}):
        path = put(tmp_path, "a.json", json.dumps(value))
        assert read_dataset(path).y == ["spam", "ham"]
    columns = {"text": {"0": "win", "1": "see you"}, "label": {"0": "spam", "1": "ham"}}
    path = put(tmp_path, "b.json", json.dumps(columns))
    with pytest.raises(ValueError, match=r"to_json\(orient='records', lines=True\)"):
        read_dataset(path)
    pd = pytest.importorskip("pandas")
    pd.read_json(path).to_json(tmp_path / "c.jsonl", orient="records", lines=True)
    assert read_dataset(tmp_path / "c.jsonl").y == ["spam", "ham"]


def test_half_a_surrogate_pair_names_its_line(tmp_path):
    rows = {"text": "x \ud83d", "label": "y"}, {"text": "b", "label": "z"}
    path = put(tmp_path, "a.jsonl", lines(*rows))
    with pytest.raises(ValueError, match="line 1: the text holds half of a surrogate pair"):
        read_dataset(path)


# ---- tagging


WORDS = [("Ada sings", "B-PER O"), ("It rains", "O O")]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "token,label\nAda,B-PER\nsings,O\n\nIt,O\nrains,O\n"),
        ("a.csv", 'sentence,labels\nAda sings,"B-PER,O"\nIt rains,"O,O"\n'),
        ("a.csv", "text,labels\nAda sings,B-PER O\nIt rains,O O\n"),
        ("a.jsonl", lines(*({"tokens": t, "tags": y} for t, y in WORDS))),
        (
            "a.json",
            json.dumps({"data": [{"words": t.split(), "labels": y.split()} for t, y in WORDS]}),
        ),
    ],
)
def test_as_many_tags_as_words_are_tagging(tmp_path, name, text):
    data = read_dataset(put(tmp_path, name, text))
    assert (data.task, data.X) == ("tagging", [["Ada", "sings"], ["It", "rains"]])
    assert data.y == [["B-PER", "O"], ["O", "O"]]


# ---- speed and size


def test_moving_many_entities_takes_time_in_proportion(tmp_path):
    n = 6000
    spans = [{"start": 4 * i + 1, "end": 4 * i + 4, "text": "Ann", "label": "P"} for i in range(n)]
    path = put(tmp_path, "a.jsonl", lines({"text": "Ann " * n, "entities": spans}))
    begin = time.process_time()
    with pytest.warns(UserWarning, match=f"{n} of them were moved"):
        found = read_annotations(path, on_misaligned="expand").entities[0]
    assert found == [(4 * i, 4 * i + 3, "P") for i in range(n)]
    assert time.process_time() - begin < 3  # 6000 searches of the whole text take 10 times as long


def test_a_folder_of_files_is_put_on_the_disk_once(tmp_path, monkeypatch):
    n = []
    monkeypatch.setattr(os, "fsync", lambda handle: n.append(handle))
    write_annotations(tmp_path / "a", ["Ann"] * 50, [[(0, 3, "PER")]] * 50, "brat")
    assert len(n) <= 4  # the folder, and its parent


def test_a_file_of_columns_takes_little_memory(tmp_path):
    rows = "".join(f"w{i * 7919 % 10_007}x\tO\n" + "\n" * (i % 16 == 15) for i in range(200_000))
    path = put(tmp_path, "a.conll", rows)
    tracemalloc.start()
    try:
        read_conll(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 12 * len(rows)


ONCE = {
    "labels.jsonl": lines(*({"text": f"row {i}", "label": "ab"[i % 2]} for i in range(6))),
    "entities.jsonl": lines(*({"text": f"row {i}", "label": [[0, 3, "X"]]} for i in range(6))),
    "tags.jsonl": lines(*({"tokens": ["row", f"{i}"], "tags": ["B-X", "O"]} for i in range(6))),
    "a.conll": "row B-X\n1 O\n\n" * 6,
    "a.csv": "text,label\n" + "row one,a\nrow two,b\n" * 3,
}


@pytest.mark.parametrize("name", ONCE)
def test_a_file_is_opened_once_and_each_row_parsed_once(tmp_path, monkeypatch, name):
    path, read, parsed = put(tmp_path, name, ONCE[name]), [], []
    read_bytes, loads = Path.read_bytes, json.loads

    def reading(self):
        read.append(self)
        return read_bytes(self)

    def parsing(text, *args, **kwargs):
        parsed.append(text)
        return loads(text, *args, **kwargs)

    monkeypatch.setattr(Path, "read_bytes", reading)
    monkeypatch.setattr(json, "loads", parsing)
    assert len(read_dataset(path)) == 6
    assert read == [path]
    assert len(parsed) == 6 * name.endswith("jsonl")
