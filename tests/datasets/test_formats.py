"""The layouts of public files, in made-up samples: read right, or refused by name."""

from __future__ import annotations

import json

import pytest

from skdice.datasets import read_conll, read_dataset, read_table, read_texts
from tests.datasets.files import put

TAGGED = ([["Ann", "sings", "loud"], ["Rome", "is"]], [["B-PER", "O", "O"], ["B-LOC", "O"]])


def blocks(*layout, between="\n", separator="\t"):
    """The two sentences of `TAGGED` in columns; {0} is the token, {1} its tag, {2} its number."""
    line = separator.join(layout) + "\n"
    rows = [enumerate(zip(*pair, strict=True), 1) for pair in zip(*TAGGED, strict=True)]
    return between.join("".join(line.format(*pair, i) for i, pair in row) for row in rows)


EMPTY_FIRST = """\
# sent_id = 1
0.1\t_\t_\t_\t_\t_\t_\t_\t0:root\t_
1-2\tAnnsings\t_\t_\t_\t_\t_\t_\t_\t_
1\tAnn\tAnn\tPROPN\t_\t_\t0\troot\t_\t_
2\tsings\tsing\tVERB\t_\t_\t1\tdep\t_\t_

"""


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        (blocks("{0}", "NN", "{1}", separator=" "), (0, 2)),  # CoNLL-2002
        ("-DOCSTART- -X- -X- O\n\n" + blocks("{0}", "NN", "B-NP", "{1}", separator=" "), (0, 3)),
        (blocks("{2}", "{0}", "{1}"), (1, 2)),  # numbered
        (blocks("{2}", "{0}", "{1}", separator=" "), (1, 2)),
        (blocks("T{2}", "{0}", "_", "{1}"), (1, 3)),
        (blocks("doc7", "{2}", "{0}", "{1}"), (2, 3)),  # an id, a number, and the token
        (blocks("{1}", "{0}"), (1, 0)),  # the tag comes first
        (blocks("{1}", "{0}", separator=" "), (1, 0)),
        ("#begin document (x); part 000\n" + blocks("{0}", "{1}", separator=" "), (0, 1)),
        (blocks("{0}", "{1}", separator=" ") + "\n#end document\n", (0, 1)),
        ("## one\n" + blocks("{0}", "{1}", separator=" ", between="\n## two\n"), (0, 1)),
        ("## 1 of 2\n" + blocks("{0}", "{1}", between="\n##\n"), (0, 1)),
        ("#\thttp://a\n" + blocks("{0}", "{1}", between="\n#\thttp://b\n"), (0, 1)),
        ("token\tner_tag\n" + blocks("{0}", "{1}"), (0, 1)),
    ],
)
def test_columns_are_decided_from_the_rows(tmp_path, text, columns):
    data = read_dataset(put(tmp_path, text, "a.txt"))
    assert (data.X, data.y) == TAGGED
    assert data.task == "tagging"
    assert data.columns == {"token": columns[0], "tag": columns[1]}


def test_conllu_whose_first_line_is_an_empty_node(tmp_path):
    path = put(tmp_path, EMPTY_FIRST, "a.conll")
    data = read_dataset(path)
    assert (data.X, data.y) == ([["Ann", "sings"]], [["PROPN", "VERB"]])
    assert data.columns == {"token": "form", "tag": "upos"}
    assert read_dataset(path, tag_column=7).y == [["root", "dep"]]
    with pytest.raises(ValueError, match="CoNLL-U: read it with read_dataset"):
        read_conll(path)
    with pytest.raises(ValueError, match="only _ in the column 'xpos'"):
        read_dataset(path, tag_column="xpos")
    hidden = EMPTY_FIRST.replace("\tAnn\t", "\t_\t").replace("\tsings\t", "\t_\t")
    with pytest.raises(ValueError, match=r"only _ in the column 'form': .* without its words"):
        read_dataset(put(tmp_path, hidden))
    # CoNLL-U Plus has more columns.
    plus = EMPTY_FIRST.replace("_\n", "_\t*\n").replace("_\n", "_\t1:VID\n", 1)
    assert read_conll(put(tmp_path, plus), tag_column=3) == (data.X, data.y)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (blocks("{2}", "{1}"), r"column 0 \(1, 2, 3\): counters, not tokens: give token_"),
        (blocks("{2}", "{0}"), "counters, not tokens"),
        (blocks("_", "{1}"), r"column 0 .* not tokens"),
        (blocks("{0}", "_"), r"column 1 \(_, _, _\): no tags: give tag_column"),
        (blocks("{0}", "{2}"), r"column 1 \(1, 2, 3\): no tags"),
        ("DT\tthe\nNN\tdog\nVB\tran\n\nDT\tthe\nNN\tcat\nVB\tate\nDT\ta\nNN\tmouse\n", "column 0"),
    ],
)
def test_ids_and_tags_are_no_tokens(tmp_path, text, message):
    path = put(tmp_path, text)
    with pytest.raises(ValueError, match=message):
        read_conll(path)
    assert len(read_conll(path, token_column=0, tag_column=1)[0]) == 2  # if so it was meant


def test_comments_of_any_kind(tmp_path):
    text = "%% x\n" + blocks("{0}", "{1}", between="\n%% y\tz\n")
    assert read_conll(put(tmp_path, text), comment="%%") == TAGGED
    text = "#id\tone\n" + blocks("{0}", "{1}")
    assert read_conll(put(tmp_path, text), comment="#") == TAGGED
    assert read_conll(put(tmp_path, text), comment=None)[0][0][0] == "#id"


KAGGLE = (
    "Sentence #,Word,POS,Tag\nSentence: 1,Ann,NNP,B-PER\n,sings,VBZ,O\n,loud,RB,O\n"
    "Sentence: 2,Rome,NNP,B-LOC\n,is,VBZ,O\n"
)


@pytest.mark.parametrize(
    "text",
    [
        KAGGLE,
        "Word,Tag,Sentence #\nAnn,B-PER,1\nsings,O,1\nloud,O,1\nRome,B-LOC,2\nis,O,2\n",
        ",shape,word,sent_id,ner\n" + "".join(
            f"0,x,{row}\n"
            for row in ("Ann,4,B-PER", "sings,4,O", "loud,4,O", "Rome,5,B-LOC", "is,5,O")
        ),
    ],
)  # fmt: skip
def test_a_table_of_tokens_is_tagging(tmp_path, text):
    data = read_dataset(put(tmp_path, text, "a.csv"))
    assert ((data.X, data.y), data.task) == (TAGGED, "tagging")
    assert set(data.columns) == {"token", "tag", "sentence"}


def test_tokens_without_sentences_are_refused(tmp_path):
    rows = "Word,Tag\nAnn,B-PER\nsings,O\n"
    with pytest.raises(ValueError, match="no column says where a sentence begins"):
        read_dataset(put(tmp_path, rows, "a.csv"))
    words = "word,label,sentence\nbank,money,I went to the bank\nbank,river,the bank of it\n"
    path = put(tmp_path, words, "d.csv")
    assert read_dataset(path, text_columns="sentence").y == ["money", "river"]
    with pytest.raises(ValueError, match="line 3: no token in"):
        read_dataset(put(tmp_path, "Word,Tag,Sentence #\nAnn,O,1\n,O,1\n", "c.csv"))


# ---- texts

TEXTS = ["you are all so wrong", "what a lovely day, then", "go home and stay there", "I like it"]


def table(header, *columns, separator="\t"):
    rows = [header.split(","), *zip(*columns, strict=True)]
    return "".join(separator.join(map(str, row)) + "\n" for row in rows)


ABAB, NUMBERS = ["OFF", "NOT", "OFF", "NOT"], [1, 0, 1, 0]
OLID = table("id,tweet,subtask_a,subtask_b", range(86, 90), TEXTS, ABAB, ["UNT", "NULL"] * 2)


@pytest.mark.parametrize(
    ("text", "label"),
    [
        (OLID, 2),
        (OLID, "subtask_a"),
        (table("utterance,act", TEXTS, ABAB), 1),
        (table("label,Text,lable_num", ABAB, TEXTS, NUMBERS), None),
        (table("text,label,label_text", TEXTS, ABAB, ["is so", "is not"] * 2), None),
        (table("comment_text,toxic,obscene", TEXTS, ABAB, NUMBERS), "toxic"),
        (table("Text,when,who,label", TEXTS, ["2015-02-24 11:35:52"] * 4, "abcd", ABAB), None),
    ],
)
def test_neither_a_header_nor_a_leftover_column_is_a_text(tmp_path, text, label):
    for name in ("a.tsv", "b"):
        path = put(tmp_path, text, name)
        assert read_table(path, label_column=label) == (TEXTS, ABAB)
        columns = read_dataset(path, task="classification", label_column=label).columns
        assert set(columns) == {"text", "label"}
        assert len(columns["text"]) == 1
    one = "".join(text.splitlines(keepends=True)[:2])
    if text.startswith(("id", "label,", "comment")):
        assert read_texts(put(tmp_path, one, "c.tsv")) == TEXTS[:1]


def test_pairs_are_those_with_two_texts(tmp_path):
    other = [text[::-1] for text in TEXTS]
    pairs = list(zip(TEXTS, other, strict=True))
    qqp = table("id,qid1,qid2,question1,question2,is_duplicate", "0123", "1357", "2468", TEXTS,
                other, NUMBERS)  # fmt: skip
    mrpc = "\ufeff" + table("Quality,#1 ID,#2 ID,#1 String,#2 String", NUMBERS, "1357", "2468",
                            TEXTS, other)  # fmt: skip
    for text in (qqp, mrpc):
        assert read_table(put(tmp_path, text, "a.tsv")) == (pairs, ["1", "0", "1", "0"])
    # By name, whatever it holds.
    text = table("text,label,kind", TEXTS, ABAB, NUMBERS)
    found = read_table(put(tmp_path, text, "b.tsv"), text_columns=["text", "kind"])
    assert found[0][0] == (TEXTS[0], "1")
    # Two columns may hold the label: neither is taken.
    text = table("text,label,class", TEXTS, ABAB, NUMBERS)
    with pytest.raises(ValueError, match=r"which column .* holds the label"):
        read_table(put(tmp_path, text, "c.tsv"))


def test_rows_without_a_header_lose_none(tmp_path):
    rows = "".join(f"{label}\t{text}\n" for label, text in zip(ABAB, TEXTS, strict=True))
    assert read_table(put(tmp_path, rows), label_column=0) == (TEXTS, ABAB)
    v1 = table("v1,v2,,", ABAB, TEXTS, [""] * 4, [""] * 4)  # names that nobody knows
    assert read_table(put(tmp_path, v1, "b.tsv"), label_column="v1") == (TEXTS, ABAB)
    with pytest.raises(ValueError, match=r"3 columns that may be text .*text_columns"):
        read_table(tmp_path / "b.tsv", label_column=0)
    with pytest.raises(ValueError, match=r"line 1: does the first line, .*'v1'.* header=False"):
        read_table(tmp_path / "b.tsv", label_column=0, text_columns=1)
    found = read_table(tmp_path / "b.tsv", label_column=0, text_columns=1, header=True)
    assert found == (TEXTS, ABAB)


# ---- JSON, and what is neither text nor JSON


def test_json_records_and_numbers(tmp_path):
    records = [{"text": "a", "label": 1}, {"text": "b", "label": 1.0}, {"text": "c", "label": 2.5}]
    expected = ["a", "b", "c"], ["1", "1", "2.5"]
    for indent in (None, 1):
        path = put(tmp_path, json.dumps(records, indent=indent), "a.json")
        data = read_dataset(path)
        assert (data.X, data.y) == read_table(path) == expected
        assert data.task == "classification"
    with pytest.raises(ValueError, match="record 2: 5 is not a JSON object"):
        read_table(put(tmp_path, '[{"text": "a", "label": 1}, 5]', "a.json"))


def test_flat_squad(tmp_path):
    who, none = {"text": ["Ann"], "answer_start": [0]}, {"text": [], "answer_start": []}
    records = [
        {"id": "a", "question": "Who?", "context": "Ann sings.", "answers": who},
        {"id": "b", "question": "Why?", "context": "Ann sings.", "answers": none},
    ]
    lines = "".join(json.dumps(record) + "\n" for record in records)
    for name, text in (
        ("a.json", json.dumps(records)),
        ("b.json", json.dumps({"version": "1", "data": records})),
        ("c.jsonl", lines),
        ("d.json", lines),
    ):
        data = read_dataset(put(tmp_path, text, name))
        assert data.X == [("Who?", "Ann sings."), ("Why?", "Ann sings.")]
        assert (data.y, data.task) == ([[(0, "Ann")], []], "qa")
        assert data.meta == [{"id": "a"}, {"id": "b"}]


def test_encodings(tmp_path):
    text = "text,label\ncaf\u00e9,a\ntea,b\n"
    for encoding in ("utf-16", "utf-8-sig"):
        path = put(tmp_path, text, "a.csv", encoding)
        for asked in ("utf-8", "utf_8", "UTF8", "u8", "utf-8-sig"):
            assert read_table(path, encoding=asked) == (["caf\u00e9", "tea"], ["a", "b"])


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.parquet", b"PAR1\x15\x04", "a Parquet file: read it with pandas"),
        ("a.xlsx", b"PK\x03\x04\x14\x00", "a spreadsheet: .*save it as CSV"),
        ("a.csv.gz", b"\x1f\x8b\x08\x00", "packed by gzip: unpack it"),
        ("a.spacy", b"\x78\x9c\xed\x00", "read it with spacy.tokens.DocBin"),
    ],
)
def test_other_files_name_the_way_out(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        read_dataset(path)
