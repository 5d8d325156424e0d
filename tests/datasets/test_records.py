"""TSV, CSV and JSON-lines files."""

from __future__ import annotations

import json

import pytest

from skdice.datasets import read_dataset, read_table, read_texts
from tests.datasets.files import put


def test_tables(tmp_path):
    csv = put(tmp_path, 'text,label\n"a, ""b""\nc",x\nd,y\n', "a.csv")
    assert read_table(csv) == (['a, "b"\nc', "d"], ["x", "y"])
    tsv = put(tmp_path, '\ufeffQuality\tid\tone\ttwo\n1\t7\tsay "hi\tb\n0\t8\tc\t"d\n', "b.tsv")
    pairs = [('say "hi', "b"), ("c", '"d')]
    assert read_table(tsv, text_columns=["one", "two"]) == (pairs, ["1", "0"])
    assert read_table(tsv, text_columns=[2, 3], header=True) == (pairs, ["1", "0"])
    assert read_table(tsv, text_columns="one", label_column="Quality")[0] == ['say "hi', "c"]
    sms = put(tmp_path, "ham\tsee you\nspam\twin, now\nham\tok\n", "sms")
    found = (["see you", "win, now", "ok"], ["ham", "spam", "ham"])
    assert read_table(sms, label_column=0) == read_table(sms, text_columns=1) == found
    headed = put(tmp_path, "a,b\nc,d\n", "h.csv")
    assert read_table(headed, header=True, label_column="b") == (["c"], ["d"])


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("a,b\nc\n", {}, "line 2: 1 column"),
        ("a\nb\n", {}, "one column only"),
        ("text,label\n", {}, "header only"),
        ("a,b,c,d\n1,2,3,4\n", {"label_column": 3}, "say which hold the text"),
        ("ham\tsee you\nspam\twin\n", {}, r"which column .* has \['0: ham', '1: see you'\]: give"),
        ("a,b,intent\n1,2,x\n", {"header": True}, r"which column .* has \['a', 'b', 'intent'\]"),
        ("a,b\n1,2\n", {"separator": "||"}, "separator='||' must be one character"),
        ("a,b\n1,2\n", {"text_columns": "nope"}, "text_columns='nope'"),
        ("a,b\n1,2\n", {"label_column": 5}, "label_column=5"),
        ("a,b\n1,2\n", {"text_columns": [0, 1, 2]}, "more than two"),
        ('a,b\n"1,2\n', {}, "line 2: unexpected end of data"),
    ],
)
def test_bad_tables_name_the_line(tmp_path, text, options, message):
    with pytest.raises(ValueError, match=message):
        read_table(put(tmp_path, text, "a.csv"), **options)


@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.txt"])
def test_json_lines_are_tables(tmp_path, name):
    text = """{"id": 1, "text": "win, \\"now\\"", "label": "spam"}

{"label": 0, "id": 2, "text": "lunch\\u2028?"}
"""
    path = put(tmp_path, text, name)
    expected = ['win, "now"', "lunch\u2028?"], ["spam", "0"]
    assert read_table(path) == expected
    data = read_dataset(path)
    assert (data.task, data.X, data.y) == ("classification", *expected)
    assert read_table(path, text_columns="text", label_column="id") == (expected[0], ["1", "2"])
    rows = [{"a": f"a{i}", "b": "b", "gold": i % 2} for i in range(4)]
    pairs = put(tmp_path, "\n".join(map(json.dumps, rows)), name)
    X, y = read_table(pairs, text_columns=["b", "a"])
    assert (X, y) == ([("b", f"a{i}") for i in range(4)], ["0", "1"] * 2)


@pytest.mark.parametrize(
    ("lines", "options", "message"),
    [
        (['{"text": "a", "label": "b"}', '{"text": '], {}, "line 2: Expecting value at char"),
        (['{"text": "a", "label": "b"}', "", "[1]"], {}, r"line 3: \[1\] is not a JSON object"),
        (['{"text": "a", "label": 1}', '{"text": 3, "label": 1}'], {}, "line 2: 'text' is 3, not"),
        (['{"text": "a", "label": 1}', '{"label": 1}'], {}, "line 2: 'text' is missing, not a str"),
        (['{"text": "a", "label": [["b"]]}'], {}, r"is \[\['b'\]\], not a list of names"),
        (['{"tokens": ["a"], "tag": ["O"]}'], {}, r"line 1: 'tokens' is \['a'\], not a string"),
        (['{"tokens": "a", "tag": ["O"]}'], {}, r"line 1: 'tag' is \['O'\], not a label"),
        (['{"text": "a"}'], {}, "one column only"),
        (["{}"], {}, "empty JSON objects"),
        (['{"text": "a", "label": 1}'], {"label_column": "y"}, "label_column='y' is not in"),
    ],
)
def test_bad_json_lines_are_named(tmp_path, lines, options, message):
    with pytest.raises(ValueError, match=message):
        read_table(put(tmp_path, "\n".join(lines) + "\n", "a.jsonl"), **options)


def test_semicolons_in_a_csv_file_whose_first_line_has_no_comma(tmp_path):
    text = 'text;label\n"Hi; there, you";ham\nfree money;spam\n'
    assert read_texts(put(tmp_path, text, "a.csv")) == ["Hi; there, you", "free money"]
    # Elsewhere they are part of the text.
    assert read_texts(put(tmp_path, "so; it goes\nwell\n", "a.txt")) == ["so; it goes", "well"]
    assert read_texts(put(tmp_path, "text\nso; it goes\n", "a.csv")) == ["so; it goes"]


@pytest.mark.parametrize("name", ["id", "IDX", "index", "guid", "uid", ""])
def test_ids_are_no_text(tmp_path, name):
    table = put(tmp_path, f"{name},text,label\n1,a,x\n1,b,y\n", "a.csv")
    assert read_table(table) == (["a", "b"], ["x", "y"])
    assert read_table(table, text_columns=[0, 1])[0] == [("1", "a"), ("1", "b")]
    # Nor the label, whose name is not a usual one.
    table = put(tmp_path, f"{name},text,stars\n1,a,4\n1,b,5\n1,c,5\n", "a.csv")
    assert read_table(table, text_columns="text") == (["a", "b", "c"], ["4", "5", "5"])
    table = put(tmp_path, f"{name},label\n1,x\n", "a.csv")
    with pytest.raises(ValueError, match=r"has 0 columns that may be text .*: say which"):
        read_table(table)


def test_usual_names_of_texts_make_a_header(tmp_path):
    table = put(tmp_path, "review,sentiment\nfine,good\nno,bad\nwell,good\n", "a.csv")
    wanted = ["fine", "no", "well"], ["good", "bad", "good"]
    assert read_table(table, text_columns="review") == wanted
    assert read_table(table, label_column=1) == wanted
    # Not the word itself in front of a label.
    rows = put(tmp_path, "ham\tmessage\nspam\twin\nham\tlunch\n", "sms")
    wanted = ["message", "win", "lunch"], ["ham", "spam", "ham"]
    assert read_table(rows, label_column=0) == wanted
    with pytest.raises(ValueError, match=r"holds the label\? It has \[\]"):
        read_table(put(tmp_path, "a,b\nc,d\n", "a.csv"), text_columns=[0, 1])
    with pytest.raises(ValueError, match="empty cells only"):
        read_table(put(tmp_path, ",\n,\n", "a.csv"))


TWO = ["win, now", "lunch"]


@pytest.mark.parametrize(
    ("name", "text", "options", "expected"),
    [
        ("a", "win, now\n\nlunch\n", {}, TWO),
        ("a", "text\nlunch\n", {}, ["text", "lunch"]),
        ("a", "text\nwin, now\nlunch\n", {"header": True}, TWO),
        ("a", "text\nwin, now\nlunch\n", {"text_columns": "text"}, TWO),
        ("a", 'text,id\n"win, now",1\nlunch,2\n', {"text_columns": "text"}, TWO),
        ("a", "text\tid\nwin, now\t1\nlunch\t2\n", {}, TWO),
        ("a.csv", '"win, now"\nlunch\n', {}, TWO),
        ("a.csv", 'text\n"win, now"\nlunch\n', {}, TWO),
        ("a.csv", 'text\n""\n\nlunch\n', {}, ["", "lunch"]),
        ("a.tsv", "Sentence\nwin, now\nlunch\n", {}, TWO),
        ("a.csv", 'text,label\n"win, now",\nlunch,\n', {}, TWO),
        ("a.csv", "id,text\n1,win\n2,ok\n3,ok\n", {}, ["win", "ok", "ok"]),
        ("a.csv", ",title\n0,win\n1,ok\n2,ok\n", {}, ["win", "ok", "ok"]),
        ("a.csv", "text,stars\nwin,5\nok,4\n", {"label_column": "stars"}, ["win", "ok"]),
        ("a.csv", "win,5\nok,4\n", {"label_column": -1}, ["win", "ok"]),
        ("a.jsonl", '{"id": 1, "text": "win, now"}\n{"text": "lunch", "label": null}', {}, TWO),
        ("a.csv", "a,b\na,c\n", {"n_texts": 2}, [("a", "b"), ("a", "c")]),
        ("a.csv", "question1,question2\na,b\n", {"n_texts": 2}, [("a", "b")]),
        ("a.csv", "id,b,c\n1,b,c\n", {"text_columns": ["c", "b"]}, [("c", "b")]),
        ("a.csv", "text,label\na,x\n", {"n_texts": 2}, ["a"]),
    ],
)  # fmt: skip
def test_texts_without_labels(tmp_path, name, text, options, expected):
    assert read_texts(put(tmp_path, text, name), **options) == expected


@pytest.mark.parametrize(
    ("name", "text", "options", "message"),
    [
        ("a.csv", "one,two\na,b\n", {}, r"2 columns .* text \['0: one', '1: two'\], not 1:"),
        ("a.csv", "text,title\na,b\n", {}, r"\['text', 'title'\], not 1: .*text_columns"),
        ("a.csv", "1,0\n0,1\n", {}, "2 columns that may be text"),
        ("a.tsv", "a\tb\t1\na\tc\t0\n", {"n_texts": 2}, "3 columns that may be text"),
        ("a.csv", "id,text,title,body\n1,a,b,c\n", {"n_texts": 2}, r"'body'\], not 2"),
        ("a.csv", "id,label\n1,a\n", {}, "has 0 columns that may be text"),
        ("a.csv", "a,b\n1,2\n", {"text_columns": "c"}, "text_columns='c' is not in"),
        ("a.jsonl", '{"text": "a"}\n{"text": 1}\n', {}, "line 2: 'text' is 1, not a string"),
        ("a", "win\n", {"n_texts": 3}, "n_texts=3"),
    ],
)  # fmt: skip
def test_what_is_no_text_is_named(tmp_path, name, text, options, message):
    with pytest.raises(ValueError, match=message):
        read_texts(put(tmp_path, text, name), **options)
