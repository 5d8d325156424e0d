"""Files of the shapes that tools and public sets have, on the command line; see `tests/datasets`.

Each is counted, or refused with a way out.
"""

from __future__ import annotations

import json

import pytest

from tests.datasets.annotations.test_columns_and_passages import PUBTATOR, webanno


def lines(*values):
    return "\n".join(map(json.dumps, values))


def chosen(answer, *labels):
    return {
        "text": "a b",
        "options": [{"id": "A"}, {"id": "B"}],
        "accept": labels,
        "answer": answer,
    }


def task(text, *moods):
    result = {"from_name": "mood", "type": "choices", "value": {"choices": moods}}
    return {"data": {"text": text}, "annotations": [{"result": [result]}]}


TIN = {"infons": {"type": "Metal"}, "locations": [{"offset": 12, "length": 3}]}
PASSAGES = [{"offset": 0, "text": "Iron helps.", "annotations": []},
            {"offset": 12, "text": "Tin too.", "annotations": [TIN]}]  # fmt: skip
WEBANNO = webanno("#Text=Bo Lee rains\n"
                  "1-1\t0-2\tBo\t*[1]\tPER[1]\t\n1-2\t3-6\tLee\t*[1]\tPER[1]\t\n"
                  "1-3\t7-12\trains\t_\t_\t\n1-3.1\t8-12\tains\t*\tMISC\t\n")  # fmt: skip
UBIAI = {"document": "Ann sings", "tokens": [{"text": "Ann", "start": 0, "end": 3}],
         "annotation": [{"start": 0, "end": 3, "label": "PER", "text": "Ann"}]}  # fmt: skip
CELLS = 'text,label\nwin it,"spam, ad"\nhi you,ham\nbuy it,ad\nsell,spam\n'

# The file, its content, options, and the counts of the classes.
READ = {
    "Prodigy, choices": ("a.jsonl", lines(
        chosen("accept", "A"), chosen("accept", "A", "B"), chosen("reject", "B"),
        chosen("ignore", "B")), (), {"A": 2, "B": 1, "(no label)": 1}),
    "several choices": ("a.json", json.dumps([task("a", "x", "y"), task("b", "y")]), (),
                        {"y": 2, "x": 1, "(no label)": 0}),
    "cells": ("a.csv", CELLS, ("--label-separator", ","),
              {"ad": 2, "spam": 2, "ham": 1, "(no label)": 0}),
    "ids": ("a.tsv", "text\tlabel\nwin it\t0,15\nhi\t27\nthanks\t15\nhm\t0,27\nno\t0\n",
            ("--label-separator", ","), {"0": 3, "15": 2, "27": 2, "(no label)": 0}),
    "columns of labels": ("a.csv", "id,body,p,q\n1,a b,1,0\n2,c d,0,0\n3,e f,1,0\n",
                          ("--label-columns", "p,q"), {"p": 2, "(no label)": 1, "q": 0}),
    "WebAnno": ("a.tsv", WEBANNO, (), {"O": 1, "B-PER": 1, "I-PER": 1, "B-MISC": 1}),
    "PubTator": ("a.txt", PUBTATOR, (), {"O": 9, "B-Chemical": 2}),
    "BioC": ("a.json", json.dumps({"documents": [{"id": "1", "passages": PASSAGES}]}), (),
             {"O": 5, "B-Metal": 1}),
    "UBIAI": ("a.json", json.dumps([UBIAI]), (), {"O": 1, "B-PER": 1}),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", READ)
def test_what_is_read(tmp_path, read, name):
    file, content, options, expected = READ[name]
    (tmp_path / file).write_text(content)
    assert read(tmp_path / file, *options) == expected


HTML = {"data": {"html": "<p>Hi <b>Ann</b></p>"}, "annotations": [{"result": [{
    "type": "hypertextlabels", "to_name": "text", "value": {
        "start": "/p[1]", "end": "/p[1]", "hypertextlabels": ["PER"], "text": "Ann",
        "globalOffsets": {"start": 3, "end": 6}}}]}]}  # fmt: skip
WIDE = {"data": [{"title": "t", "context": "x y", "qas": [
    {"question": "?", "id": "1", "answer": {"text": "y", "answer_start": 2}}]}]}  # fmt: skip
REFUSED = {
    "HTML": (json.dumps([HTML]), (), "its text is HTML"),
    "KorQuAD 2": (json.dumps(WIDE), (), "'context' and 'qas'"),
    "another column": (json.dumps([task("a", "x"), task("b", "y")]), ("--label-column", "tone"),
                       "label_column='tone' is not in"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(tmp_path, read, name):
    content, options, message = REFUSED[name]
    (tmp_path / "a.json").write_text(content)
    assert message in read(tmp_path / "a.json", *options)
