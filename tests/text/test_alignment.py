"""Entities by characters and the words that they cover, against a loop over characters."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoTokenizer

from skdice import DiceEntityRecognizer, DiceTokenClassifier
from skdice.backbones import load_tokenizer
from skdice.inputs.entities import Entity, read_entities
from skdice.inputs.texts import as_single_texts
from skdice.inspection import alignment_report
from skdice.text.alignment import align, tags_of_texts
from skdice.text.words import apart, plain_words, split_texts, with_words

TEXT = "Joanna's in  Paris."


@pytest.fixture(scope="module")
def tokenizer(tiny_backbone):
    return load_tokenizer(tiny_backbone)


def aligned(text, spans, tokenizer, **how):
    rows = read_entities([spans], [text])
    tags, misfits = align(with_words(tokenizer, [text]), rows, **how)
    return list(tags[0]), [(m.entity, m.reason, m.action) for m in misfits]


@pytest.mark.parametrize(
    ("span", "reason", "used"),
    [
        ((0, 6), None, ["Joanna"]),
        ((0, 8), None, ["Joanna", "'", "s"]),
        ((2, 6), "begins inside a word", ["Joanna"]),
        ((0, 3), "ends inside a word", ["Joanna"]),
        ((2, 4), "begins inside a word and ends inside a word", ["Joanna"]),
        ((11, 18), "begins in white space", ["Paris"]),
        ((9, 12), "ends in white space", ["in"]),
        ((5, 5), "is empty", None),
        ((11, 13), "covers no word", None),
    ],
)
def test_an_entity_that_does_not_fit(span, reason, used, tokenizer):
    words = [TEXT[a:b] for a, b in plain_words(TEXT)]
    tags, misfits = aligned(TEXT, [(*span, "X")], tokenizer)
    assert [w for w, tag in zip(words, tags, strict=True) if tag != "O"] == (used or [])
    action = "dropped" if used is None else f"expanded to {' '.join(used)!r}".replace("s .", "s.")
    assert misfits == ([] if reason is None else [(0, reason, action)])
    dropped, misfits = aligned(TEXT, [(*span, "X")], tokenizer, on_misaligned="drop")
    assert dropped == (tags if reason is None else ["O"] * len(words))
    assert [m[2] for m in misfits] == ([] if reason is None else ["dropped"])
    if reason is not None:
        with pytest.raises(ValueError, match=rf"y\[0\]\[0\].*{reason}.*on_misaligned='expand'"):
            aligned(TEXT, [(*span, "X")], tokenizer, on_misaligned="raise")


def test_overlaps(tokenizer):
    spans = [(0, 6, "A"), (0, 8, "B"), (9, 11, "C"), (9, 11, "C"), (9, 11, "D"), (13, 15, "E")]
    spans += [(15, 18, "F")]
    tags, misfits = aligned(TEXT, spans, tokenizer)
    assert tags == ["B-B", "I-B", "I-B", "B-C", "B-F", "O"]
    assert misfits == [
        (0, "overlaps another", "dropped"),
        (3, "is there twice", "dropped"),
        (4, "overlaps another", "dropped"),
        (5, "ends inside a word", "expanded to 'Paris'"),
        (5, "overlaps another", "dropped"),
        (6, "begins inside a word", "expanded to 'Paris'"),
    ]


def test_a_region_that_nobody_annotated(tokenizer):
    tags, misfits = aligned(TEXT, [(0, 6, "A"), (0, 10, None), (19, 19, None)], tokenizer)
    assert tags == ["B-A", None, None, None, "O", "O"]
    assert misfits == []


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_tags_against_a_loop_over_characters(data, tokenizer):
    text = data.draw(st.text(alphabet="ab., \n-éx", max_size=30))
    ends = st.integers(0, len(text))
    spans = data.draw(st.lists(st.tuples(ends, ends, st.sampled_from("PQ")), max_size=5))
    spans = [(min(a, b), max(a, b), label) for a, b, label in spans]
    words = plain_words(text)
    expected = ["O"] * len(words)
    for start, end, label in sorted(spans, key=lambda s: (s[0] - s[1], s[0])):
        inside = [k for k, (a, b) in enumerate(words) if any(start <= c < end for c in range(a, b))]
        if inside and all(expected[k] == "O" for k in inside):
            for k in inside:
                expected[k] = ("B-" if k == inside[0] else "I-") + label
    tags, misfits = aligned(text, spans, tokenizer)
    assert tags == expected
    bad = {m[0] for m in misfits}
    for j, (start, end, _) in enumerate(spans):
        whole = any(start == a for a, _ in words) and any(end == b for _, b in words)
        if not (whole and start < end):
            assert j in bad


def test_plain_words_and_the_tokenizers_words(tokenizer, raw_text_backbones):
    text = "Zoë's (café) a_b  x🎉👍🏽 東京タワー กำ 3.5%\n"
    words = [text[a:b] for a, b in plain_words(text)]
    assert words == [
        *("Zoë", "'", "s", "(", "café", ")", "a", "_", "b", "x", "🎉", "👍🏽"),
        *("東", "京", "タ", "ワ", "ー", "ก", "ำ", "3", ".", "5", "%"),
    ]
    of_bert = next(split_texts(tokenizer, ["Zoe\u0301 \u200bin 東京です"]))
    spans = list(zip(of_bert.starts.tolist(), of_bert.ends.tolist(), strict=True))
    assert spans == [(0, 4), (6, 8), (9, 10), (10, 11), (11, 13)]
    other = load_tokenizer(raw_text_backbones["roberta"])
    units = next(split_texts(other, ["東 x"]))
    assert set(zip(units.first.tolist(), units.last.tolist(), strict=True)) == {(0, 1), (2, 3)}
    assert (
        sum(map(len, units.ids)) == len(other(["東", "x"], is_split_into_words=True).input_ids) - 2
    )


def test_the_subwords_are_those_of_the_text(tiny_backbone):
    text = "Anna's at acme, in paris!"
    tokenizer = AutoTokenizer.from_pretrained(tiny_backbone)
    ids = [i for word in next(split_texts(tokenizer, [text])).ids for i in word]
    assert ids == tokenizer(text, add_special_tokens=False).input_ids


@pytest.mark.parametrize(
    "entity",
    [
        (0, 3, "PER"),
        [0, 3, "PER"],
        np.array([0, 3, "PER"], dtype=object),
        (np.int64(0), 3.0, np.str_("PER")),
        {"start": 0, "end": 3, "label": "PER"},
        {"id": 7, "start_offset": 0, "end_offset": 3, "label": "PER"},
        {"entity_group": "PER", "score": 0.9, "word": "ann", "start": 0, "end": 3},
        {"start": 0, "end": 3, "token_start": 9, "token_end": 9, "label": "PER"},
        SimpleNamespace(start=7, end=9, start_char=0, end_char=3, label=42, label_="PER"),
        SimpleNamespace(start_position=0, end_position=3, tag="PER", score=0.5, text="Ann"),
        {"start_offset": 0, "end_offset": 3, "label": 4, "label_name": "PER"},
        (0, 3, "PER", 0.5, "Ann"),
        SimpleNamespace(entity_type="PER", start=0, end=3, score=1.0),
    ],
)
def test_entities_of_other_tools(entity):
    ((found,),) = read_entities([[entity]], ["Ann"])
    assert found[:3] == (0, 3, "PER")


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (["PER"], r"y\[0\] is 'PER': it must be a list of entities, as in \[\(0, 3, 'PER'\)\]"),
        ([(0, 3, "PER")], r"y\[0\]\[0\] is 0, which has no start"),
        ([[("PER", 0, 3)]], r"whose start is 'PER'"),
        ([[(0, 3)]], r"an entity is \(start, end, label\)"),
        ([[(-1, 3, "PER")]], r"y\[0\]\[0\].*count characters from 0"),
        ([[(3, 1, "PER")]], r"the end is not before the start"),
        ([[(0, 2.5, "PER")]], r"whose end is 2.5"),
        (
            [[(0, 9, "PER")]],
            r"y\[0\]\[0\] is \(0, 9, 'PER'\), outside X\[0\], which has 3 characters",
        ),
        ([[(0, 3, "a\ud83d")]], r"halves of a surrogate pair"),
        ([[(0, 3, "PER", float("nan"))]], r"y\[0\]\[0\] has the score nan"),
        ([[{"start": 0, "end": 3}]], r"has no label.*entity_group"),
        ([[SimpleNamespace(start=0, end=3, kind="PER")]], r"has no label"),
        ([[(True, 2, "PER")]], r"whose start is True"),
        ([[(0, float("nan"), "PER")]], r"whose end is nan"),
        ([[(0, 3, 5)]], r"the label of y\[0\]\[0\] is 5, not a string"),
        ([[(0, 3, " PER")]], r"white space"),
        ([[{"start": 0, "label": "X"}]], r"has no end.*end_offset"),
        ([[{"entity": "B-PER", "start": 0, "end": 3}]], r"aggregation_strategy"),
        ([[], []], r"X holds 1 text and y 2|texts holds 1|X.*1.*y.*2"),
        (None, r"y"),
    ],
)
def test_what_is_no_entity_is_refused_by_name(y, message, tiny_backbone):
    model = DiceEntityRecognizer(backbone=tiny_backbone, max_epochs=1)
    with pytest.raises((TypeError, ValueError), match=message):
        model.fit(["Ann"], y)
    assert not hasattr(model, "tokenizer_")


def test_a_pair_is_no_single_text():
    with pytest.raises(ValueError, match=r"one text a row.*DiceTokenClassifier"):
        as_single_texts([["a", "b"]])


def test_an_entity_stays_if_the_one_that_overlapped_it_is_gone():
    text = "0123456789"
    row = [Entity(a, b, "X", 0.5, text[a:b]) for a, b in ((0, 2), (1, 4), (3, 7), (8, 9))]
    assert [entity[:2] for entity in apart(row)] == [(0, 2), (3, 7), (8, 9)]


def test_a_tagger_points_to_the_recognizer():
    with pytest.raises(TypeError, match="DiceEntityRecognizer"):
        DiceTokenClassifier().fit(["Ann lives in Rome"], [["O"]])


def test_the_report_lists_what_the_warning_counts(tiny_backbone, tokenizer):
    texts, entities = [TEXT, "Bob"], [[(2, 6, "PER"), (9, 11, "X")], [(0, 3, "PER"), (0, 3, "PER")]]
    report = alignment_report(texts, entities, tiny_backbone)
    assert report.to_dict("records") == [
        dict(row=0, entity=0, start=2, end=6, label="PER", text="anna",
             reason="begins inside a word", action="expanded to 'Joanna'"),
        dict(row=1, entity=1, start=0, end=3, label="PER", text="Bob",
             reason="is there twice", action="dropped"),
    ]  # fmt: skip
    model = DiceEntityRecognizer(backbone=tiny_backbone, max_epochs=1, on_misaligned="drop")
    for words_of in (tokenizer, model):
        assert alignment_report(texts, entities, words_of).equals(report)
    with pytest.warns(UserWarning, match="do not fit") as caught:
        model.fit(texts, entities)
    (told,) = [str(w.message) for w in caught if "alignment_report" in str(w.message)]
    assert told.startswith("2 of 4 entities do not fit")
    assert "begins inside a word (1), is there twice (1)" in told
    assert "First: y[0][0] is (2, 6, 'PER') 'anna', which begins inside a word: dropped" in told
    assert len(alignment_report(texts, [[], []], tokenizer)) == 0


def test_what_the_words_cannot_hold_counts_as_missed(tiny_backbone):
    texts, entities = ["anna met bob"] * 4, [[(0, 4, "PER"), (9, 12, "PER")]] * 4
    settings = dict(backbone=tiny_backbone, max_epochs=15, lr=1e-2, loss="ce", dropout=0.0)
    model = DiceEntityRecognizer(random_state=0, **settings).fit(texts, entities)
    assert model.score(texts, entities) == 1
    odd = [(0, 4, "PER")] * 2 + [(0, 3, "PER"), (5, 5, "PER"), (9, 12, "PER")]
    scores = model.evaluate(texts[:1], [odd])
    assert scores == {"precision": 1, "recall": 2 / 5, "f1": 2 * 2 / (2 + 5)}
    unknown = model.evaluate(texts[:1], [[(0, 4, "PER"), (5, 12, None)]])
    assert unknown == {"precision": 1, "recall": 1, "f1": 1}


def test_tags_for_samplers():
    assert tags_of_texts(["in Rome, now"], [[(3, 7, "LOC")]]) == [["O", "B-LOC", "O", "O"]]


def test_regions_without_annotation_are_read_again():
    rows = read_entities([[(0, 4, "PER"), (5, 9, None)]], ["anna runs"])
    assert read_entities(rows, ["anna runs"]) == rows
    with pytest.raises(TypeError, match="start"):
        read_entities([[Entity("0", 4, "PER")]], ["anna runs"])
