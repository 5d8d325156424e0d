"""Readers, the corpus, and the count of imbalance."""

from __future__ import annotations

import json

import datasets as hf
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skdice.datasets import (
    from_hf,
    read_conll,
    read_conllu,
    read_dataset,
    read_table,
    read_texts,
    write_conll,
)
from skdice.datasets.auto import find_task
from skdice.inspection import imbalance

PLAIN = ([["Ann", "sleeps"], ["Rome"]], [["B-PER", "O"], ["B-LOC"]])


def put(folder, text, name="a.conll", encoding="utf-8"):
    path = folder / name
    path.write_bytes(text.encode(encoding))
    return path


@pytest.mark.parametrize(
    "text",
    [
        "Ann\tB-PER\nsleeps\tO\n\nRome\tB-LOC\n",
        "Ann B-PER\nsleeps O\n\nRome B-LOC",
        "\n\nAnn\tB-PER\nsleeps\tO\n \t \n\n\nRome\tB-LOC\n\n\n",
        "\ufeffAnn\tB-PER\r\nsleeps\tO\r\n\r\nRome\tB-LOC\r\n",
        "-DOCSTART- O\n\nAnn B-PER\nsleeps O\n\n-DOCSTART- O\n\nRome B-LOC\n",
        "# a comment of several words\nAnn\tB-PER\nsleeps\tO\n\n# id = 2\nRome\tB-LOC\n",
        "# text = Ann\n# id 1\nAnn\tB-PER\nsleeps\tO\n\n# id 2\tdomain=dev\nRome\tB-LOC\n",
        "# id 1 domain=dev\nAnn _ _ B-PER\nsleeps _ _ O\n\n# id 2 domain=dev\nRome _ _ B-LOC\n",
    ],
)
def test_conll_variants(tmp_path, text):
    assert read_conll(put(tmp_path, text)) == PLAIN


def test_conll_columns_in_any_order(tmp_path):
    path = put(tmp_path, "B-PER 1 NNP Ann\nO 2 VB sleeps\n\nB-LOC 1 NNP Rome\n")
    assert read_conll(path, token_column=3, tag_column=0) == PLAIN
    assert read_conll(path, token_column=-1, tag_column=2)[1] == [["NNP", "VB"], ["NNP"]]
    with pytest.raises(ValueError, match="tag_column=7 is beyond the 4"):
        read_conll(path, tag_column=7)


def test_conll_takes_a_hash_as_a_token(tmp_path):
    text = "Ann\tB-PER\n\n#\tO\n1\tO\n\n#tag\tO\n"
    assert read_conll(put(tmp_path, text))[0] == [["Ann"], ["#", "1"], ["#tag"]]
    assert read_conll(put(tmp_path, "#hot\tO\nnow\tO\n"))[0] == [["#hot", "now"]]
    assert read_conll(put(tmp_path, "#a b\tO\n"))[0] == [["#a b"]]
    # Beside comments of as many columns, by its tag; without comments, whatever it has.
    text = "# id 1\nAnn O\n\n# x\n# O\n1 O\n"
    assert read_conll(put(tmp_path, text))[0] == [["Ann"], ["#", "1"]]
    assert read_conll(put(tmp_path, "Ann O\n\n# B-X\n"))[1] == [["O"], ["B-X"]]


def test_conll_tokens_may_hold_odd_spaces(tmp_path):
    text = "a\u2028b\tO\n10\u00a0000\tO\n"
    assert read_conll(put(tmp_path, text))[0] == [["a\u2028b", "10\u00a0000"]]


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("Ann\tB-PER\nsleeps\n", {}, "line 2: 1 column"),
        ("Ann\tB-PER\nsleeps\tO\tx\n", {}, "line 2: 3 column"),
        ("Ann\nsleeps\n", {}, "line 1: one column only"),
        ("", {}, "is empty"),
        (" \n\n", {}, "is empty"),
        ("-DOCSTART- O\n", {}, "no tagged token"),
        ("a\tO\n\nb\tO\nc\tI-X\n", {"scheme": "iob2"}, "line 4: the tag 'I-X' cannot follow 'O'"),
    ],
)
def test_bad_conll_names_the_line(tmp_path, text, options, message):
    with pytest.raises(ValueError, match=message):
        read_conll(put(tmp_path, text), **options)


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        read_conll(tmp_path / "nowhere")
    latin = put(tmp_path, "a\tO\n\ncaf\u00e9\tO\n", encoding="latin-1")
    with pytest.raises(ValueError, match=r"line 3: byte 8 is not utf-8.*encoding="):
        read_conll(latin)
    assert read_conll(latin, encoding="latin-1")[0] == [["a"], ["caf\u00e9"]]


CONLLU = """\
# sent_id = 1
1-2\tvamonos\t_\t_\t_\t_\t_\t_\t_\t_
1\tvamos\tir\tVERB\tV\t_\t0\troot\t_\t_
2\tnos\tnos\tPRON\tP\t_\t1\tobj\t_\t_
2.1\tgone\tgo\tVERB\tV\t_\t_\t_\t_\t_

# sent_id = 2
1\t#\t#\tSYM\tS\t_\t0\troot\t_\t_
"""


def test_conllu_skips_multiword_and_empty_nodes(tmp_path):
    path = put(tmp_path, CONLLU, "a.conllu")
    assert read_conllu(path) == ([["vamos", "nos"], ["#"]], [["VERB", "PRON"], ["SYM"]])
    assert read_conllu(path, tag_column="deprel")[1] == [["root", "obj"], ["root"]]
    with pytest.raises(ValueError, match="tag_column='pos'"):
        read_conllu(path, tag_column="pos")
    with pytest.raises(ValueError, match="line 2: 3 column"):
        read_conllu(put(tmp_path, "# x\n1\ta\tb\n"))


LOST = ("-DOCSTART-", "# ", "\ufeff")  # at the start of a line
letters = st.characters(codec="utf-8", exclude_categories=("Z", "C"), include_characters=" ")
token = st.text(letters, max_size=5).map(str.strip).filter(bool) | st.sampled_from(
    ["#", "#a b", "# 1", "-DOCSTART-", "-DOC b c", "\ufeffa"]
)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.lists(st.tuples(token, st.sampled_from(["O", "B-A", "I-A"])), min_size=1, max_size=5),
        min_size=1,
        max_size=5,
    )
)
def test_what_is_written_is_read(tmp_path, rows):
    X, y = [[t for t, _ in r] for r in rows], [[t for _, t in r] for r in rows]
    try:
        path = write_conll(tmp_path / "w.conll", X, y)
    except ValueError:
        assert any(token.startswith(LOST) for row in X for token in row)
    else:
        assert read_conll(path) == (X, y)


def test_write_conll_refuses_what_it_could_not_read(tmp_path):
    for X, y, message in (
        ([["a b\tc"]], [["O"]], "has no place"),
        ([["a"]], [["O", "O"]], "1 tokens"),
        ([["a"]], [], "1 sentences"),
        ([[" "]], [["O"]], "has no place"),
        ([["# 1", "a"]], [["O", "O"]], r"X\[0\]\[0\] is '# 1'"),
        ([[], ["\ufeffa"]], [[], ["O"]], r"X\[1\]\[0\] is '\\ufeffa'"),
        ([["a"], ["b", "-DOCSTART-"]], [["O"], ["O", "O"]], r"X\[1\]\[1\] is '-DOCSTART-'"),
    ):
        with pytest.raises(ValueError, match=message):
            write_conll(tmp_path / "x.conll", X, y)
    assert not list(tmp_path.iterdir())


def test_tables(tmp_path):
    csv = put(tmp_path, 'text,label\n"a, ""b""\nc",x\nd,y\n', "a.csv")
    assert read_table(csv) == (['a, "b"\nc', "d"], ["x", "y"])
    tsv = put(tmp_path, '\ufeffQuality\tid\tone\ttwo\n1\t7\tsay "hi\tb\n0\t8\tc\t"d\n', "b.tsv")
    pairs = [('say "hi', "b"), ("c", '"d')]
    assert read_table(tsv, text_columns=["one", "two"]) == (pairs, ["1", "0"])
    assert read_table(tsv, text_columns=[2, 3], header=True) == (pairs, ["1", "0"])
    assert read_table(tsv, text_columns="one", label_column="Quality")[0] == ['say "hi', "c"]
    sms = put(tmp_path, "ham\tsee you\nspam\twin, now\nham\tok\n", "sms")
    assert read_table(sms, label_column=0) == (
        ["see you", "win, now", "ok"],
        ["ham", "spam", "ham"],
    )
    assert read_table(sms, label_column=0) == read_table(sms, text_columns=1)
    assert read_table(put(tmp_path, "a,b\nc,d\n", "h.csv"), header=True, label_column="b") == (
        ["c"],
        ["d"],
    )


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("a,b\nc\n", {}, "line 2: 1 column"),
        ("a\nb\n", {}, "one column only"),
        ("text,label\n", {}, "header only"),
        ("text,label\na,\n", {}, "line 2: the label is empty"),
        ("a,b,c,d\n1,2,3,4\n", {"label_column": 3}, "say which hold the text"),
        ("ham\tsee you\nspam\twin\n", {}, r"which column .* has \['0: ham', '1: see you'\]: give"),
        ("a,b,intent\n1,2,x\n", {"header": True}, r"which column .* has \['a', 'b', 'intent'\]"),
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
    assert read_table(pairs, text_columns=["b", "a"]) == (
        [("b", f"a{i}") for i in range(4)],
        ["0", "1", "0", "1"],
    )


@pytest.mark.parametrize(
    ("lines", "options", "message"),
    [
        (['{"text": "a", "label": "b"}', '{"text": '], {}, "line 2: Expecting value at char"),
        (['{"text": "a", "label": "b"}', "", "[1]"], {}, r"line 3: \[1\] is not a JSON object"),
        (['{"text": "a", "label": 1}', '{"text": 3, "label": 1}'], {}, "line 2: 'text' is 3, not"),
        (['{"text": "a", "label": 1}', '{"label": 1}'], {}, "line 2: 'text' is missing, not a str"),
        (['{"text": "a", "label": 1}', '{"text": "b"}'], {}, "line 2: 'label' is missing"),
        (['{"text": "a", "label": true}'], {}, "line 1: 'label' is True, not a string or a number"),
        (['{"text": "a", "label": NaN}'], {}, "line 1: 'label' is nan"),
        (['{"text": "a", "label": ["b"]}'], {}, r"line 1: 'label' is \['b'\]"),
        (['{"text": "a", "label": " "}'], {}, "line 1: the label is empty"),
        (['{"tokens": ["a"], "tag": ["O"]}'], {}, r"line 1: 'tokens' is \['a'\], not a string"),
        (['{"tokens": "a", "tag": ["O"]}'], {}, r"line 1: 'tag' is \['O'\], not a string"),
        (['{"text": "a"}'], {}, "one column only"),
        (["{}"], {}, "empty JSON objects"),
        (['{"a": "a", "b": "b", "c": "c", "label": 1}'], {}, "say which hold the text"),
        (['{"text": "a", "label": 1}'], {"text_columns": "body"}, "text_columns='body' is not in"),
        (['{"text": "a", "label": 1}'], {"label_column": "y"}, "label_column='y' is not in"),
    ],
)
def test_bad_json_lines_are_named(tmp_path, lines, options, message):
    with pytest.raises(ValueError, match=message):
        read_table(put(tmp_path, "\n".join(lines) + "\n", "a.jsonl"), **options)


def test_semicolons_in_a_csv_file_whose_first_line_has_no_comma(tmp_path):
    text = 'text;label\n"Hi; there, you";ham\nfree money;spam\n'
    X, y = ["Hi; there, you", "free money"], ["ham", "spam"]
    assert read_table(put(tmp_path, text, "a.csv")) == (X, y)
    assert read_texts(put(tmp_path, text, "a.csv")) == X
    # Elsewhere they are part of the text.
    assert read_texts(put(tmp_path, "so; it goes\nwell\n", "a.txt")) == ["so; it goes", "well"]
    assert read_texts(put(tmp_path, "text\nso; it goes\n", "a.csv")) == ["so; it goes"]


def test_json_lines_are_no_tags(tmp_path):
    path = put(tmp_path, '{"text": "a", "label": 1}\n', "a.jsonl")
    for task in ("tagging", "mrc-ner"):
        with pytest.raises(ValueError, match="tagged sentences are read from CoNLL"):
            read_dataset(path, task=task)
    with pytest.raises(ValueError, match=r"line 1: .* is not a JSON object"):
        read_table(put(tmp_path, '[{"text": "a", "label": 1}]', "a.json"))


@pytest.mark.parametrize("name", ["id", "IDX", "index", "guid", "uid", ""])
def test_ids_are_no_text(tmp_path, name):
    table = put(tmp_path, f"{name},text,label\n1,a,x\n1,b,y\n", "a.csv")
    assert read_table(table) == (["a", "b"], ["x", "y"])
    assert read_table(table, text_columns=[0, 1])[0] == [("1", "a"), ("1", "b")]
    # Nor the label, whose name is not a usual one.
    table = put(tmp_path, f"{name},text,stars\n1,a,4\n1,b,5\n1,c,5\n", "a.csv")
    assert read_table(table, text_columns="text") == (["a", "b", "c"], ["4", "5", "5"])
    table = put(tmp_path, f"{name},label\n1,x\n", "a.csv")
    with pytest.raises(ValueError, match=r"has 0 columns that may be text \[\], not 1 or 2"):
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
    with pytest.raises(ValueError, match="no column left for the label"):
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
        ("a.csv", 'text,label\n"win, now",\nlunch,x\n', {"text_columns": "text"}, TWO),
        ("a.csv", "id,text\n1,win\n2,ok\n3,ok\n", {}, ["win", "ok", "ok"]),
        ("a.csv", ",title\n0,win\n1,ok\n2,ok\n", {}, ["win", "ok", "ok"]),
        ("a.csv", "id,text\n1,win\n2,ok\n", {"text_columns": "id"}, ["1", "2"]),
        ("a.csv", "text,stars\nwin,5\nok,4\n", {"label_column": "stars"}, ["win", "ok"]),
        ("a.csv", "win,5\nok,4\n", {"label_column": -1}, ["win", "ok"]),
        ("a.csv", "win,5\nok,\n", {"classes": [4, 5]}, ["win", "ok"]),
        ("a.jsonl", '{"id": 1, "text": "win, now"}\n{"text": "lunch", "label": null}', {}, TWO),
        ("a.csv", "a,b\na,c\n", {"n_texts": 2}, [("a", "b"), ("a", "c")]),
        ("a.csv", "question1,question2\na,b\n", {"n_texts": 2}, [("a", "b")]),
        ("a.csv", "id,b,c\n1,b,c\n", {"text_columns": ["c", "b"]}, [("c", "b")]),
        ("a.tsv", "a\tb\t1\na\tc\t0\n", {"n_texts": 2, "classes": "01"}, [("a", "b"), ("a", "c")]),
        ("a.csv", "text,label\na,x\n", {"n_texts": 2}, ["a"]),
    ],
)  # fmt: skip
def test_texts_without_labels(tmp_path, name, text, options, expected):
    assert read_texts(put(tmp_path, text, name), **options) == expected


@pytest.mark.parametrize(
    ("name", "text", "options", "message"),
    [
        ("a.csv", "one,two\na,b\n", {}, r"2 columns .* text \['0: one', '1: two'\], not 1:"),
        ("a.csv", "text,title\na,b\n", {}, r"\['text', 'title'\], not 1: .*--text-column"),
        ("a.csv", "1,0\n0,1\n", {"classes": [0, 1]}, "2 columns that may be text"),
        ("a.csv", "id,text,title,body\n1,a,b,c\n", {"n_texts": 2}, r"'body'\], not 1 or 2"),
        ("a.csv", "id,label\n1,a\n", {}, "has 0 columns"),
        ("a.csv", "a,b\n1,2\n", {"text_columns": "c"}, "text_columns='c' is not in"),
        ("a.csv", "a,b\n1,2\n", {"label_column": "c"}, "label_column='c' is not in"),
        ("a", "win\nlunch\tham\n", {}, "line 2: 2 column"),
        ("a.csv", "text\n", {}, "header only"),
        ("a.jsonl", '{"text": "a"}\n{"text": 1}\n', {}, "line 2: 'text' is 1, not a string"),
        ("a", "win\n", {"n_texts": 3}, "n_texts=3"),
    ],
)  # fmt: skip
def test_what_is_no_text_is_named(tmp_path, name, text, options, message):
    with pytest.raises(ValueError, match=message):
        read_texts(put(tmp_path, text, name), **options)


def test_the_kind_of_a_file_is_seen(tmp_path):
    assert read_dataset(put(tmp_path, "Ann\tB-PER\n\nRome\tB-LOC\n", "a.tsv")).task == "tagging"
    assert read_dataset(put(tmp_path, CONLLU, "ud.conll")).y[0] == ["VERB", "PRON"]
    data = read_dataset(put(tmp_path, "label\ttext\nham\tsee you\nspam\twin now\n", "b"))
    assert (data.task, len(data)) == ("classification", 2)
    gaps = put(tmp_path, "text,label\nsee you,ham\n\nwin now,spam\n", "c.csv")
    assert read_dataset(gaps).task == "classification"
    with pytest.raises(ValueError, match="task='ner'"):
        read_dataset(gaps, task="ner")


@pytest.mark.parametrize(
    "text",
    [
        # CoNLL-2003's own layout; two columns; lines that are no tokens; no tag but O.
        "-DOCSTART- -X- O O\n\nEU NNP I-NP I-ORG\nsays VBZ I-VP O\n\nRome NNP I-NP I-LOC\n",
        "Ann B-PER\nsleeps O\n\nRome U-LOC\n",
        "# id 1 a b\nAnn B-PER\n \n# id 2 c d\nRome O\n",
        "the O\n\nbus O\n",
    ],
)
def test_columns_apart_by_spaces_are_seen(tmp_path, text):
    path = put(tmp_path, text, "a.txt")
    assert read_dataset(path).task == find_task(path) == "tagging"
    assert read_dataset(path).y == read_conll(path)[1]


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
    assert find_task(put(tmp_path, text, "a.txt")) == "classification"


def test_what_may_be_tagged_is_said_with_the_error(tmp_path):
    for name, text in (("a.conll", "Ann B-PER\nin O\n"), ("a", "the DET\n\nbus NOUN\n")):
        with pytest.raises(ValueError, match=r"one column only.*\(--task tagging\)"):
            read_dataset(put(tmp_path, text, name))
    with pytest.raises(ValueError, match="one column only") as error:
        read_dataset(put(tmp_path, "see you\n\nwin it now\n", "a"))
    assert "tagging" not in str(error.value)


def test_a_bridge_from_hugging_face():
    tags = hf.ClassLabel(names=["O", "B-PER"])
    features = hf.Features({"tokens": hf.List(hf.Value("string")), "tags": hf.List(tags)})
    rows = hf.Dataset.from_dict(
        {"tokens": [["Ann", "x"], []], "tags": [[1, 0], []]}, features=features
    )
    X, y = from_hf(rows, text_columns="tokens", label_column="tags")
    assert (X, y) == ([["Ann", "x"], []], [["B-PER", "O"], []])
    pairs = hf.Dataset.from_dict({"a": ["x"], "b": ["y"], "label": [3]})
    assert from_hf(pairs, text_columns=["a", "b"], label_column="label") == ([("x", "y")], [3])
    with pytest.raises(ValueError, match="no column 'c'"):
        from_hf(pairs, text_columns="c", label_column="label")
    with pytest.raises(TypeError, match=r"splits \['train'\]"):
        from_hf(hf.DatasetDict(train=pairs), text_columns="a", label_column="label")
    hidden = hf.Dataset.from_dict(
        {"a": ["x"], "label": [-1]},
        features=hf.Features({"a": hf.Value("string"), "label": hf.ClassLabel(names=["n", "p"])}),
    )
    with pytest.raises(ValueError, match="hidden test"):
        from_hf(hidden, text_columns="a", label_column="label")


@pytest.mark.parametrize("kind", ["numpy", "torch", "pandas"])
def test_the_bridge_takes_data_sets_in_every_format(kind):
    tags = hf.ClassLabel(names=["O", "B-PER"])
    features = hf.Features({"tokens": hf.List(hf.Value("string")), "tags": hf.List(tags)})
    rows = hf.Dataset.from_dict({"tokens": [["Ann", "x"]], "tags": [[1, 0]]}, features=features)
    found = from_hf(rows.with_format(kind), text_columns="tokens", label_column="tags")
    assert found == ([["Ann", "x"]], [["B-PER", "O"]])
    texts = hf.Dataset.from_dict({"a": ["x"], "b": ["y"], "label": [3]}).with_format(kind)
    assert from_hf(texts, text_columns=["a", "b"], label_column="label") == ([("x", "y")], [3])


def test_the_bridge_makes_rows_of_several_labels(tiny_backbone):
    from skdice import DiceSequenceClassifier

    features = hf.Features(
        {"text": hf.Value("string"), "labels": hf.List(hf.ClassLabel(names=["joy", "fear", "awe"]))}
    )
    data = {"text": ["a", "b", "c"], "labels": [[2, 0], [], [1]]}
    rows = hf.Dataset.from_dict(data, features=features)
    X, y = from_hf(rows, text_columns="text", label_column="labels")
    assert X == ["a", "b", "c"]
    assert y.dtype.kind == "i"
    np.testing.assert_array_equal(y, [[1, 0, 1], [0, 0, 0], [0, 1, 0]])
    model = DiceSequenceClassifier(backbone=tiny_backbone, max_epochs=1, random_state=0).fit(X, y)
    assert model.multilabel_
    assert model.predict(X).shape == (3, 3)


def test_imbalance():
    found = imbalance([["O", "O", "B-A"], [], ["O"]])
    assert (found.unit, found.n_negative, found.n_positive, found.ratio) == ("tokens", 3, 1, 3)
    assert imbalance(np.array([0, 1, 1, 1])).background == 0
    assert imbalance(["1", "1", "0"]).background == "0"
    assert imbalance(["ham", "ham", "spam"]).ratio == 2
    assert imbalance(["a", "b", "c"]).background is None
    assert imbalance(["a", "b", "c", "a"], background="a").counts == {"a": 2, "b": 1, "c": 1}
    assert imbalance([["NOUN", "VERB"]]).background is None
    for bad in ([], [[]]):
        with pytest.raises(ValueError, match="y"):
            imbalance(bad)
    with pytest.raises(ValueError, match="background='z'"):
        imbalance(["a", "b"], background="z")


def test_a_line_without_its_tag_is_named(tmp_path):
    path = tmp_path / "cut.conll"
    path.write_text("anna\tB-PER\nsings\tO\ntoday\t\n")
    with pytest.raises(ValueError, match=r"line 3: no tag in 'today"):
        read_conll(path)
