"""DiceQuestionAnswerer: answers, thresholds, and what is refused."""

from __future__ import annotations

import logging
import math
import warnings

import numpy as np
import pandas as pd
import pytest

from skdice import DiceQuestionAnswerer
from skdice.backbones import load_tokenizer
from skdice.engine.encoded import EncodedDataset
from skdice.exceptions import CollapseWarning, DataWarning, TruncationWarning
from skdice.inputs.answers import as_questions
from skdice.metrics import (
    answer_f1_score,
)
from skdice.text.question_windows import encode_questions
from tests.estimators.readers import (
    SENTENCES,
    TAGS,
    X,
    Y,
    reader,
    tagger,
)


@pytest.mark.parametrize("loss", ["ce", "dsc"])
def test_a_reader_learns(tiny_backbone, loss):
    model = reader(tiny_backbone, loss=loss, max_epochs=25, lr=1e-2, dropout=0.0).fit(X, Y)
    assert model.score(X, Y) > 0.9
    assert model.evaluate(X, Y)["exact_match"] > 0.7
    assert np.isfinite(model.null_threshold_)


@pytest.mark.parametrize("kind", ["roberta", "deberta-v2", "xlnet"])
def test_backbones_and_batches(tiny_backbones, kind):
    long = [(q, " ".join([c] * 6)) for q, c in X[:4]]
    model = reader(tiny_backbones[kind], stride=10, max_epochs=20, lr=1e-2, dropout=0.0).fit(X, Y)
    assert model.score(X, Y) > 0.8
    for pairs in (X[:4], long):
        alone = [model.predict_spans([pair], n_best=3)[0] for pair in pairs]
        together = model.predict_spans(pairs, n_best=3)
        for one, other in zip(alone, together, strict=True):
            assert [e["text"] for e in one] == [e["text"] for e in other]
            np.testing.assert_allclose(
                [e["score"] for e in one], [e["score"] for e in other], atol=1e-4
            )


def test_spans_are_places_in_the_context(tiny_backbone):
    model = reader(tiny_backbone, max_answer_length=2).fit(X, Y)
    for (_, context), row in zip(X, model.predict_spans(X, n_best=5), strict=True):
        assert 1 <= len(row) <= 5
        assert 0 < sum(entry["probability"] for entry in row) <= 1 + 1e-9
        assert [e["score"] for e in row] == sorted((e["score"] for e in row), reverse=True)
        assert sum(entry["start"] is None for entry in row) <= 1
        for entry in row:
            if entry["start"] is not None:
                assert context[entry["start"] : entry["end"]] == entry["text"]
                assert 1 <= len(entry["text"].split()) <= 2
    first = [row[0]["text"] for row in model.predict_spans(X)]
    assert first == list(model.predict(X))


def test_a_probability_does_not_depend_on_how_many_answers_are_asked_for(tiny_backbone):
    model = reader(tiny_backbone, max_answer_length=3).fit(X, Y)
    many = model.predict_spans(X, n_best=20)
    for row, three, one in zip(
        many, model.predict_spans(X, n_best=3), model.predict_spans(X), strict=True
    ):
        assert row[:3] == three
        assert row[:1] == one
        assert one[0]["probability"] < 1
        odds = [math.exp(entry["score"]) for entry in row]
        np.testing.assert_allclose(
            [entry["probability"] for entry in row], [o / sum(odds) for o in odds]
        )


def test_the_null_threshold(tiny_backbone, tmp_path):
    answerable = [(x, y) for x, y in zip(X, Y, strict=True) if y]
    always = reader(tiny_backbone).fit([x for x, _ in answerable], [y for _, y in answerable])
    assert always.null_threshold_ == float("inf")
    assert all(always.predict(X))
    never = reader(tiny_backbone, null_threshold=-1e9).fit(X, Y)
    assert not any(never.predict(X))
    tuned = reader(tiny_backbone, max_epochs=3).fit(X, Y, X_val=X, y_val=Y)
    for model in (tuned, always):
        read = DiceQuestionAnswerer.from_pretrained(model.save_pretrained(tmp_path / "m"))
        assert read.null_threshold_ == model.null_threshold_
    scores = []
    for threshold in np.linspace(-20, 20, 81):
        tuned_threshold, tuned.null_threshold_ = tuned.null_threshold_, threshold
        scores.append(tuned.score(X, Y))
        tuned.null_threshold_ = tuned_threshold
    assert tuned.score(X, Y) >= max(scores) - 1e-9
    assert tuned.history_[-1]["valid_score"] == pytest.approx(tuned.score(X, Y))


def test_forms_of_questions_and_answers(tiny_backbone):
    expected = reader(tiny_backbone).fit(X, Y).predict(X)
    kinds = [np.array(X), pd.DataFrame(X, columns=["question", "context"]), [list(p) for p in X]]
    for kind in kinds:
        assert list(reader(tiny_backbone).fit(kind, Y).predict(kind)) == list(expected)
    dicts = [{"text": [t for _, t in row], "answer_start": [s for s, _ in row]} for row in Y]
    lists = [[{"text": t, "answer_start": s} for s, t in row] for row in Y]
    bare = [row[0] if len(row) == 1 else (row or None) for row in Y]
    for answers in (dicts, lists, bare, pd.Series(Y)):
        assert list(reader(tiny_backbone).fit(X, answers).predict(X)) == list(expected)


def test_a_space_at_the_edge_of_an_answer_is_no_part_of_it(tiny_backbone):
    context = "the old bus was late today ."
    pairs = [("what was late", context)] * 3
    model = reader(tiny_backbone, loss="ce").fit(pairs, [(4, "old bus")] * 3)
    (window,) = model.task.encode(model, pairs[:1])
    want = model.task.target(model, window, [(4, "old bus")])
    assert want[0, :2].tolist() == [0, 0]  # it is not "no answer"
    for answer in [(3, " old bus"), (4, "old bus "), (3, " old bus ")]:
        np.testing.assert_array_equal(model.task.target(model, window, [answer]), want)


@pytest.mark.parametrize(
    ("answer", "behind"),
    [
        ("jose\u0301", ""),
        ("ann\u200b", ""),
        ("\u200bann", ""),
        ("bob\u00ad", " went"),
        ("team\ufe0f", ""),
    ],
)
def test_marks_that_a_tokenizer_drops_belong_to_the_answer(tiny_backbone, answer, behind):
    context = f"the {answer}{behind} in rome"
    model = reader(tiny_backbone).fit([("who is it", context)] * 2, [(4, answer)] * 2)
    (window,) = model.task.encode(model, [("who is it", context)])
    target = model.task.target(model, window, [(4, answer)])
    assert target[0, :2].tolist() == [0, 0]  # it is not "no answer"
    first, last = target[:, 0].argmax(), target[:, 1].argmax()
    found = context[window.offsets[first, 0] : window.offsets[last, 1]]
    assert found == answer.lstrip("\u200b")


def test_scores_compare_texts_wherever_they_stand(tiny_backbone):
    pairs = [("what was late", "the old  bus was late today .")]
    model = reader(tiny_backbone).fit(X, Y)

    class Says(type(model.task)):
        def decide(self, *_):
            return [predicted]

    model.task = Says()
    for predicted in ("old  bus", "", "late"):
        for gold in ([[(4, "old bus")]], [{"text": ["old bus"], "answer_start": [4]}]):
            assert model.score(pairs, gold) == answer_f1_score(["old bus"], [predicted])
            assert model.evaluate(pairs, gold)["exact_match"] == float(predicted == "old  bus")
    with pytest.raises(ValueError, match="X holds 1 row and y 2"):
        model.score(pairs, [(4, "old bus")] * 2)


@pytest.mark.parametrize("how", ["drop", "expand"])
def test_weights_go_with_the_rows_that_are_left(tiny_backbone, how):
    answers, weights = [Y[0], [(0, "nowhere")], *Y[2:]], np.array([1, 5, 0, 2] * 3)
    rows = [i for i in range(12) if i != 1]
    with pytest.warns(UserWarning, match="left out 1 of 12 questions"):
        model = reader(tiny_backbone, on_misaligned=how).fit(X, answers, sample_weight=weights)
    same = reader(tiny_backbone).fit(
        [X[i] for i in rows], [answers[i] for i in rows], sample_weight=weights[rows]
    )
    assert model.history_[0]["train_loss"] == pytest.approx(same.history_[0]["train_loss"])
    with (
        pytest.warns(UserWarning, match="left out"),
        pytest.raises(ValueError, match="sample_weight"),
    ):
        reader(tiny_backbone, on_misaligned=how).fit(X, answers, sample_weight=weights[:11])


@pytest.mark.parametrize("loss", ["weighted_ce", "dsc"])
def test_a_weight_of_two_is_the_example_twice(tiny_backbone, loss):
    """Also for what the losses make of class counts, with all in one batch."""
    settings = dict(loss=loss, frozen="encoder", batch_size=500, max_epochs=2, dropout=0.0)
    weights = np.array([2.0, 1, 0, 3])
    rows = np.repeat(np.arange(4), weights.astype(int))
    for make, data, answers in ((reader, X, Y), (tagger, SENTENCES, TAGS)):
        a = make(tiny_backbone, **settings).fit(data[:4], answers[:4], sample_weight=weights)
        b = make(tiny_backbone, **settings).fit([data[i] for i in rows], [answers[i] for i in rows])
        windows = EncodedDataset(a.task.encode(a, data[:4]))
        for one, other in zip(a.net_.logits(windows), b.net_.logits(windows), strict=True):
            # What is added to all positions of a window changes no probability, and has no slope
            # but rounding.
            shift = (one - other).mean(axis=0) if make is reader else 0.0
            np.testing.assert_allclose(one, other + shift, atol=1e-5)
        losses = [
            getattr(model.net_.criterion_, "losses", [model.net_.criterion_]) for model in (a, b)
        ]
        for one, other in zip(*losses, strict=True):
            one, other = getattr(one, "loss", one), getattr(other, "loss", other)
            np.testing.assert_allclose(one.class_counts_, other.class_counts_)


def test_a_question_of_weight_0_teaches_nothing(tiny_backbone):
    weights = np.array([1, 0, 1, 1] * 3)
    other = [row if w else [(0, x[1][:3])] for row, w, x in zip(Y, weights, X, strict=True)]
    a, b = (
        reader(tiny_backbone, loss="ce").fit(X, y, sample_weight=weights).predict_spans(X)
        for y in (Y, other)
    )
    assert [r[0]["score"] for r in a] == pytest.approx([r[0]["score"] for r in b])


@pytest.mark.parametrize(
    ("pairs", "answers", "message"),
    [
        ([("q", "a b")], [(1, "a")], r"y\[0\]: the answer 'a' is not in .* which holds ' '"),
        ([("q", "a b")], ["a"], r"y\[0\] is the string 'a'"),
        ([("q", "a b"), ("q", " ")], [(0, "a"), None], r"X\[1\] has an empty context"),
        ([(" ", "a b")], [(0, "a")], r"X\[0\] has an empty question"),
        ([("q", "a b")], [(0, "a"), None], "1 row and y 2"),
        ([("q", "a b")], [[]], "no answer at all"),
        (["a b"], [(0, "a")], "single texts"),
        ([("q", "a b")], [{"text": ["a"]}], "a dict needs 'text' and 'answer_start'"),
    ],
)
def test_bad_questions_are_named(tiny_backbone, pairs, answers, message):
    with pytest.raises((ValueError, TypeError), match=message):
        reader(tiny_backbone).fit(pairs, answers)


def test_no_warning_of_long_contexts_that_are_cut_into_windows(tiny_backbone, caplog):
    tokenizer = load_tokenizer(tiny_backbone)
    tokenizer.model_max_length = 20
    logger = logging.getLogger("transformers")
    logger.addHandler(caplog.handler)  # it does not propagate
    try:
        encode_questions(tokenizer, [("who", "paris " * 50)], 20, stride=5, max_question_length=10)
        assert "longer than" not in caplog.text
        tokenizer("paris " * 50)
        assert "longer than" in caplog.text
    finally:
        logger.removeHandler(caplog.handler)


def test_short_contexts_and_long_questions(tiny_backbone):
    with pytest.warns(DataWarning, match=r"X\[0\] .* as 2 of 2 rows: .*in that order"):
        model = reader(tiny_backbone).fit(
            [("a long one", "a b"), ("a long one", "b")], [(0, "a"), (0, "b")]
        )
    with pytest.warns(DataWarning, match="as 2 of 2 rows"):
        assert len(model.predict([("a long one", "a b"), ("a long one", "b")])) == 2
    cut = pytest.warns(TruncationWarning, match="max_question_length=64")
    with (
        cut,
        pytest.raises(
            ValueError,
            match=r"X\[0\]: the question takes 64 of max_length=64 .*max_question_length",
        ),
    ):
        reader(tiny_backbone).fit([("who " * 61, "x" + " bob" * 99)], [(2, "bob")])
    short = reader(tiny_backbone, max_question_length=8)
    with pytest.warns(TruncationWarning, match="max_question_length=8"):
        model = short.fit([("who " * 61, "x" + " bob" * 99)], [(2, "bob")])
    assert model.predict([("who", "bob")])[0] == "bob"


@pytest.mark.parametrize("how", ["drop", "expand"])
def test_misaligned_answers(tiny_backbone, how):
    answers = [[(1, "anna")], *Y[1:]]
    answers[1] = [(0, "nowhere")]
    with pytest.warns(UserWarning, match=f"of 12 questions.*'{how}'"):
        model = reader(tiny_backbone, on_misaligned=how, max_epochs=20, lr=1e-2, dropout=0.0).fit(
            X, answers
        )
    assert model.predict([X[0]])[0] == "anna"


def test_chinese(chinese_backbone):
    """A tokenizer of characters: offsets and windows of single characters."""
    pairs = [("北京大学在哪里", "北京大学在北京。"), ("上海大学在哪里", "上海大学，在上海。")] * 3
    answers = [(5, "北京"), (6, "上海")] * 3
    model = reader(chinese_backbone, loss="ce", max_epochs=30, lr=1e-2, dropout=0.0)
    model.fit(pairs, answers)
    assert list(model.predict(pairs[:2])) == ["北京", "上海"]
    assert model.score(pairs, answers) == 1


def test_a_tuned_threshold_above_all_answers_is_told(tiny_backbone, monkeypatch):
    monkeypatch.setattr("skdice.tasks.qa.tune_null_threshold", lambda *given: -1e9)
    with pytest.warns(CollapseWarning, match="answers no validation question"):
        model = reader(tiny_backbone).fit(X, Y, X_val=X, y_val=Y)
    assert not any(model.predict(X))


def test_a_swap_is_told_where_most_contexts_are_short():
    short, usual = ("who sings and who sleeps ?", "ann"), ("who ?", "ann sings in rome")
    with pytest.warns(DataWarning, match=r"X\[1\] has a context .* as 2 of 3 rows"):
        as_questions([usual, short, short])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        as_questions([usual, usual, short])
