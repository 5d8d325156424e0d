"""Reading with several answers: tags of the context's words, and Quoref's scores."""

from __future__ import annotations

import json
import warnings
from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from skdice import DiceMultiSpanAnswerer
from skdice.datasets import read_squad
from skdice.exceptions import MisalignedWarning
from skdice.tasks.multi_span_qa import match_answers
from tests.cli.running import run

X = [
    ("who sings ?", "anna and bob went to paris ."),
    ("where ?", "bob went to paris ."),
    ("who sleeps ?", "bob went to paris ."),
]
Y = [[(0, "anna"), (9, "bob")], [(12, "paris")], []]
WORDS = st.lists(st.sampled_from(["ann", "bob", "the cat", "7", "7.0", "a", "bob-ann"]), max_size=4)


def reader(tiny_backbone, **params):
    params = {"max_epochs": 40, "lr": 3e-3, "dropout": 0.0, **params}
    return DiceMultiSpanAnswerer(backbone=tiny_backbone, random_state=0, **params)


@pytest.fixture(scope="module")
def fitted(tiny_backbone):
    return reader(tiny_backbone).fit(X * 4, Y * 4)


def test_all_answers_are_found(fitted):
    assert fitted.predict(X).tolist() == [["anna", "bob"], ["paris"], []]
    assert fitted.evaluate(X, Y) == {"exact_match": 1.0, "f1": 1.0}
    for (_, context), spans, texts in zip(
        X, fitted.predict_spans(X), fitted.predict(X), strict=True
    ):
        assert [context[span.start : span.end] for span in spans] == texts
        assert all(0 < span.score <= 1 for span in spans)


def test_a_long_context_is_read_in_windows(fitted):
    filler = "it rains today . " * 12
    pairs = [(question, filler + context) for question, context in X]
    short = clone(fitted).set_params(max_length=24, max_epochs=1)
    answers = [[(start + len(filler), text) for start, text in row] for row in Y]
    short.fit(pairs, answers)
    proba = short.predict_proba(pairs)
    for (_, context), table in zip(pairs, proba, strict=True):
        assert table.shape == (len(context.split()), 3)  # each word is predicted once
        np.testing.assert_allclose(table.sum(axis=1), 1)


def test_misaligned_answers_and_none_at_all(tiny_backbone):
    with pytest.raises(ValueError, match="is not in the context at character 3"):
        reader(tiny_backbone).fit(X, [[(3, "anna")], [], []])
    with pytest.raises(ValueError, match="no answer at all"):
        reader(tiny_backbone).fit(X, [[], None, []])
    mended = reader(tiny_backbone, on_misaligned="expand", max_epochs=1).fit(
        X, [[(3, "anna")], *Y[1:]]
    )
    assert mended.class_counts_.sum() == sum(len(context.split()) for _, context in X)


def test_answers_that_the_tags_do_not_hold_are_told(tiny_backbone):
    context = "anna lee and bob went to paris ."
    rows = [
        [(0, "anna lee"), (5, "lee and")],  # overlap
        [(13, "bob"), (13, "bob")],
        [(14, "ob"), (25, "paris")],
        [(4, " lee")],
    ]
    X = [("who ?", context), ("gone ?", "it rains"), *[("who ?", context)] * 3]
    model = reader(tiny_backbone, max_epochs=1, on_misaligned="drop")
    with pytest.warns(MisalignedWarning) as told:
        model.fit(X, [rows[0], [(0, "snow")], *rows[1:]])
    (message,) = [str(w.message) for w in told if "answers do not fit" in str(w.message)]
    assert message.startswith("4 of 7 answers do not fit the words of their texts, or each other:")
    for reason in ("overlaps another (1)", "is there twice (1)", "begins inside a word (1)"):
        assert reason in message
    assert "begins in white space (1)" in message
    first = "First: y[0], the answer 'lee and' at character 5, which overlaps another: dropped"
    assert message.endswith(first)
    with pytest.warns(MisalignedWarning) as told:
        clone(model).fit(X[1:4], [[(0, "snow")], rows[2], rows[2][1:]])
    messages = [str(w.message) for w in told]
    assert any("First: y[1], the answer 'ob' at character 14" in m for m in messages)


def test_answers_that_fit_are_not_told_of(tiny_backbone):
    with warnings.catch_warnings():
        warnings.simplefilter("error", MisalignedWarning)
        reader(tiny_backbone, max_epochs=1).fit(X, Y)


def test_files_of_squad_on_the_command_line(tiny_backbone, tmp_path):
    def asked(i, question, context, answers):
        found = [{"text": text, "answer_start": start} for start, text in answers]
        qas = [{"id": str(i), "question": question, "answers": found}]
        return {"title": str(i), "paragraphs": [{"context": context, "qas": qas}]}

    questions = [asked(i, *pair, Y[i]) for i, pair in enumerate(X)]
    file, model, out = tmp_path / "q.json", tmp_path / "m", tmp_path / "p.json"
    file.write_text(json.dumps({"data": questions}))
    assert read_squad(file)[1] == Y
    settings = f"--task multi-span-qa --backbone {tiny_backbone} --max-epochs 1"
    for call in (
        f"train {file} {settings} --out {model}",
        f"predict {model} {file} --out {out}",
        f"evaluate {model} {file} --json",
    ):
        result = run(*call.split())
        assert result.exit_code == 0, result.output
    assert set(json.loads(out.read_text())) == {"0", "1", "2"}
    assert {"exact match", "f1"} <= set(json.loads(result.stdout))


def bag(text):
    """Words as DROP's evaluation has them, for the few that are drawn here."""
    words = set()
    for part in text.replace("-", " ").split():
        if part not in ("a", "the"):
            words.add(str(float(part)) if part[0].isdigit() else part)
    return words


def naive(true, found):
    """The mean F1 of the best of all matchings, by trying each."""
    true, found = true or [""], found or [""]

    def f1(gold, guess):
        gold, guess = bag(gold), bag(guess)
        numbers = {word for word in gold if word[0].isdigit()}
        if numbers and not numbers & guess:
            return 0.0
        precision = len(gold & guess) / len(guess) if guess else 1.0
        recall = len(gold & guess) / len(gold) if gold else 1.0
        return 2 * precision * recall / (precision + recall) if precision + recall else 0.0

    short, long = sorted((true, found), key=len)
    swap = short is not true
    best = max(
        sum(f1(b, a) if swap else f1(a, b) for a, b in zip(short, order, strict=True))
        for order in permutations(long, len(short))
    )
    return best / len(long)


@given(WORDS, WORDS)
def test_scores_are_those_of_the_best_matching(true, found):
    exact, f1 = match_answers(true, found)
    assert f1 == pytest.approx(naive(true, found))
    assert exact in (0, 1)
    assert match_answers(true, true[::-1]) == (1.0, 1.0)


@pytest.mark.parametrize(
    ("true", "found", "wanted"),
    [
        (["Ann", "Bob"], ["bob", "the Ann"], (1, 1)),
        (["Ann", "Bob"], ["Ann"], (0, 0.5)),
        (["John Smith"], ["Smith"], (0, 2 / 3)),
        (["7 cats"], ["8 cats"], (0, 0)),
        ([], [], (1, 1)),
        ([], ["Ann"], (0, 0)),
    ],
)
def test_scores_by_hand(true, found, wanted):
    assert match_answers(true, found) == pytest.approx(wanted)


def test_windows_of_a_row_do_not_depend_on_other_rows(fitted):
    short = clone(fitted).set_params(max_length=24, max_epochs=1).fit(X * 4, Y * 4)
    long = ("who ?", "it rains today . " * 12 + "bob went to paris .")
    other = ("who went to paris and who sings today ?", "bob went to paris .")
    (alone,) = short.predict_proba([long])
    beside, _ = short.predict_proba([long, other])
    np.testing.assert_allclose(beside, alone, atol=1e-6)


def test_an_answer_is_no_empty_text_and_shares_no_character(raw_text_backbones):
    backbone = raw_text_backbones["roberta"]
    model = reader(backbone, max_epochs=1).fit(X * 4, Y * 4)
    sources = model.task.sources(model, [("who ?", "東京 Bob 🎉 café rain")])
    begins = next(i for i, tag in enumerate(model.classes_) if tag.startswith("B-"))
    n_words = next(iter(model.task.n_words(sources)))
    table = np.full((n_words, len(model.classes_)), -9.0)
    table[:, begins] = 0.0
    (spans,) = model.task.spans(model, sources, [table])
    assert all(span.start < span.end for span in spans)
    assert all(a.end <= b.start for a, b in pairwise(spans))


def test_a_right_text_counts_wherever_y_says_that_it_is(tiny_backbone):
    model = reader(tiny_backbone, max_epochs=1, on_misaligned="drop").fit(X * 4, Y * 4)
    model.predict = lambda X: [["snow"]]
    found = model.evaluate([("gone ?", "it rains")], [[(0, "snow")]])
    assert found == {"exact_match": 1.0, "f1": 1.0}
