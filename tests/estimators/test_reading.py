"""Question answering and NER as reading: alignment, decoding, metrics, and both estimators."""

from __future__ import annotations

import json
import logging
import math
import pickle
import string
from collections import Counter

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import GridSearchCV, cross_val_predict

from skdice import DiceMRCTagger, DiceQuestionAnswerer
from skdice.backbones import load_tokenizer
from skdice.datasets import read_mrc_ner, read_squad, write_squad_predictions
from skdice.engine.batching import EncodedDataset
from skdice.losses import (
    LOSSES,
    CompoundLoss,
    CrossEntropyLoss,
    DiceLoss,
    HeadsLoss,
    SpanEndsLoss,
    resolve_loss,
)
from skdice.metrics import (
    answer_exact_match_score,
    answer_f1_score,
    span_f1_score,
    spans_f1_score,
)
from skdice.text.qa import candidate_pairs, cut_context, encode_questions
from skdice.text.spans import best_answers, flat_spans, tune_null_threshold

CONTEXTS = [
    "anna went to paris .",
    "the old bus was late today .",
    "bob works at acme near the river .",
    "carla saw the new school in oslo .",
]
QUESTIONS = ["who went to paris", "what was late", "where is the team", "who saw the school"]
ANSWERS = [[(0, "anna")], [(4, "old bus")], [], [(0, "carla"), (0, "carla"), (10, "the new")]]
X = list(zip(QUESTIONS, CONTEXTS, strict=True)) * 3
Y = ANSWERS * 3


def reader(backbone, **params):
    settings = dict(max_epochs=1, lr=5e-3, batch_size=4, random_state=0)
    return DiceQuestionAnswerer(backbone=backbone, **{**settings, **params})


# ---- metrics


def plain_f1(gold, predicted):
    """SQuAD's evaluation, word by word."""

    def words(text):
        text = "".join(c for c in text.lower() if c not in string.punctuation)
        return [word for word in text.split() if word not in ("a", "an", "the")]

    a, b = words(gold), words(predicted)
    if not a or not b:
        return float(a == b), float(a == b)
    common = sum(min(a.count(w), b.count(w)) for w in set(a))
    if not common:
        return 0.0, 0.0
    precision, recall = common / len(b), common / len(a)
    return 2 * precision * recall / (precision + recall), float(a == b)


texts = st.lists(st.sampled_from(["the", "a", "Cat", "dog,", "dog", "(x)", "!"]), max_size=5).map(
    " ".join
)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.lists(texts, max_size=3), texts), min_size=1, max_size=4))
def test_metrics_equal_a_plain_evaluation(rows):
    y_true = [[(0, text) for text in gold] for gold, _ in rows]
    predicted = [text for _, text in rows]
    f1, exact = [], []
    for gold, text in rows:
        golds = [g for g in gold if plain_f1(g, "")[0] == 0] or [""]
        f1.append(max(plain_f1(g, text)[0] for g in golds))
        exact.append(max(plain_f1(g, text)[1] for g in golds))
    assert answer_f1_score(y_true, predicted) == pytest.approx(np.mean(f1))
    assert answer_exact_match_score(y_true, predicted) == pytest.approx(np.mean(exact))


@settings(max_examples=200, deadline=None)
@given(*[st.text("北京大学上", max_size=6)] * 2)
def test_chinese_counts_the_longest_run_that_both_hold(gold, predicted):
    runs = {gold[i:j] for i in range(len(gold)) for j in range(i + 1, len(gold) + 1)}
    longest = max((len(run) for run in runs if run in predicted), default=0)
    want = 2 * longest / (len(gold) + len(predicted)) if gold or predicted else 1.0
    assert answer_f1_score([gold], [predicted], language="zh") == pytest.approx(want)


def test_metrics_by_hand():
    # Examples of the official script's behaviour.
    assert answer_exact_match_score([(0, "the Broncos")], ["Broncos."]) == 1
    assert answer_f1_score([(0, "Denver Broncos")], ["the Broncos"]) == pytest.approx(2 / 3)
    assert answer_f1_score([None, []], ["", "x"]) == 0.5
    assert answer_f1_score([{"text": ["a b", "b c"], "answer_start": [0, 2]}], ["b c"]) == 1
    assert answer_f1_score([(0, "北京大学")], ["北京，"], language="zh") == pytest.approx(2 / 3)
    assert answer_exact_match_score([(0, "1998年《NBA》")], [" 1998年nba。"], language="zh") == 1
    assert answer_f1_score([(0, "NBA赛")], ["nba 赛。"], language="zh") == 1
    # What CMRC's script says of these.
    for gold, predicted, f1, same in (
        ("iPhone-7", "iPhone7", 1, 1),
        ("2018-05-01", "2018", 0, 0),
        ("3.14", "3.15", 0, 0),
        ("中 国", "中国", 1, 0),
        ("“中国”", "中国", 1, 1),
        ('"中国"', "中国", 2 / 3, 0),
    ):
        assert answer_f1_score([gold], [predicted], language="zh") == pytest.approx(f1)
        assert answer_exact_match_score([gold], [predicted], language="zh") == same
    with pytest.raises(ValueError, match="language='de'"):
        answer_f1_score([(0, "a")], ["a"], language="de")
    with pytest.raises(ValueError, match="1 rows and y_pred 2"):
        answer_f1_score([(0, "a")], ["a", "b"])


# ---- alignment and windows


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_every_answer_is_found_again_in_its_windows(tiny_backbones, data):
    kind = data.draw(st.sampled_from(sorted(tiny_backbones)))
    words = ["anna", "the", "Zürich", "x", "river", "-", "bus's", "2"]
    context = " ".join(data.draw(st.lists(st.sampled_from(words), min_size=1, max_size=60)))
    starts = [0] + [i + 1 for i, c in enumerate(context) if c == " "]
    start = data.draw(st.sampled_from(starts))
    length = data.draw(st.integers(1, 12))
    text = " ".join(context[start:].split(" ")[:length])
    estimator = reader(tiny_backbones[kind])
    tokenizer = load_tokenizer(tiny_backbones[kind])
    stride = data.draw(st.integers(0, 20))
    windows = encode_questions(
        tokenizer, [("who is it", context)], 40, stride=stride, max_question_length=8
    )
    covered = set()
    for window in windows:
        assert len(window) <= 40
        assert window.input_ids[window.positions[0]] == tokenizer.cls_token_id
        ids = [window.input_ids[p] for p in window.positions[1:]]
        pieces = [context[a:b].lower() for a, b in window.offsets[1:]]
        for piece, i in zip(pieces, ids, strict=True):
            token = tokenizer.convert_ids_to_tokens(i).removeprefix("##")
            assert token == "[UNK]" or token == piece.replace("ü", "u")
        covered |= set(window.words.tolist())
        target = estimator._target(window, [(start, text)])
        assert target[:, 0].sum() == target[:, 1].sum() == 1
        a, b = target[:, 0].argmax(), target[:, 1].argmax()
        inside = window.offsets[1, 0] <= start and window.offsets[-1, 1] >= start + len(text)
        assert (a > 0) == (b > 0) == bool(inside)
        if inside:
            assert context[window.offsets[a, 0] : window.offsets[b, 1]] == text
    assert covered == set(range(-1, max(covered) + 1))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 3), st.integers(1, 6), st.sampled_from([14, 14, 100]))
def test_best_answers_equal_a_search_over_all_pairs(seed, n_windows, longest, n):
    rng = np.random.default_rng(seed)
    offsets = np.stack([3 * np.arange(n), 3 * np.arange(n) + 2], axis=1)
    windows, owner = [], {}
    for w in range(n_windows):
        step = n // 3
        first, last = step * w, min(step * w + step + 2, n) if n_windows > 1 else n
        words = np.append(-1, np.arange(first, last))
        where = np.arange(last - first)
        context = np.append(0, np.minimum(where, where[::-1]) + 0.01 * (last - first))
        scores = rng.normal(size=(len(words), 2))
        windows.append((scores, words, np.vstack([[[0, 0]], offsets[first:last]]), context))
        for word, value in zip(words, context, strict=True):
            owner[word] = max(owner.get(word, -1), value)
    expected = {}
    for scores, words, places, context in windows:
        for i in range(1, len(words)):
            for j in range(i, min(i + longest, len(words))):
                if context[i] >= owner[words[i]]:
                    place = places[i, 0], places[j, 1]
                    value = scores[i, 0] + scores[j, 1]
                    expected[place] = max(expected.get(place, -np.inf), value)
    found, null = best_answers(windows, 3, longest)
    ranked = sorted(expected.items(), key=lambda item: -item[1])[:3]
    assert [(c.start, c.end) for c in found] == [place for place, _ in ranked]
    np.testing.assert_allclose([c.score for c in found], [value for _, value in ranked])
    assert null == pytest.approx(min(scores[0].sum() for scores, *_ in windows))


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 30))
def test_the_null_threshold_is_the_best_one(seed, n):
    rng = np.random.default_rng(seed)
    gaps = rng.integers(-5, 5, n).astype(float)
    answer, null = rng.uniform(size=n), rng.integers(0, 2, n).astype(float)

    def value(threshold):
        return np.where(gaps <= threshold, answer, null).mean()

    best = max(value(t) for t in np.arange(-6, 6, 0.5))
    assert value(tune_null_threshold(gaps, answer, null)) == pytest.approx(best)


def test_flat_spans_take_the_highest_scores():
    spans = [("A", 0, 4, 0.5), ("B", 1, 2, 0.9), ("A", 2, 3, 0.4), ("C", 5, 6, 0.1)]
    assert flat_spans(spans) == [("B", 1, 2, 0.9), ("A", 2, 3, 0.4), ("C", 5, 6, 0.1)]


# ---- losses


def test_cross_entropy_is_a_softmax_over_the_positions_of_a_window():
    torch.manual_seed(0)
    logits = torch.randn(9, 2, dtype=torch.float64, requires_grad=True)
    target = torch.zeros(9, 3)
    target[[0, 4], 2] = 1
    target[[2, 4], 0] = 1
    target[[3, 8], 1] = 1
    expected = 0.0
    for side, places in ((0, (2, 0)), (1, (3, 4))):
        for rows, place in zip((slice(0, 4), slice(4, 9)), places, strict=True):
            z = logits[rows, side].float()
            expected = expected + torch.nn.functional.cross_entropy(z, torch.tensor(place)) / 4
    loss = SpanEndsLoss(CrossEntropyLoss())
    torch.testing.assert_close(loss(logits, target), expected)
    weight = torch.tensor([2.0] * 4 + [0.0] * 5)
    first = loss(logits[:4], target[:4])
    torch.testing.assert_close(loss(logits, target, sample_weight=weight), first)
    smooth = SpanEndsLoss(CrossEntropyLoss(label_smoothing=0.1))(logits[:4], target[:4])
    sides = [
        torch.nn.functional.cross_entropy(
            logits[:4, side].float(), torch.tensor(place), label_smoothing=0.1
        )
        for side, place in ((0, 2), (1, 3))
    ]
    torch.testing.assert_close(smooth, sum(sides) / 2)
    with pytest.raises(ValueError, match="class_weight"):
        SpanEndsLoss(CrossEntropyLoss(class_weight=[1.0, 2.0]))
    with pytest.raises(ValueError, match=r"tau=0\.5"):
        SpanEndsLoss(CrossEntropyLoss(tau=0.5))


def test_other_losses_see_each_position_against_those_of_its_window():
    torch.manual_seed(0)
    logits, target = torch.randn(9, 2, dtype=torch.float64), torch.zeros(9, 3)
    target[[0, 4], 2] = 1
    target[[2, 4], 0] = 1
    target[[3, 8], 1] = 1
    dice = DiceLoss().prepare([7, 2])
    expected = 0.0
    for side in (0, 1):
        odds = torch.zeros(9)
        for rows in (range(4), range(4, 9)):
            for i in rows:
                rest = sum(math.exp(logits[j, side]) for j in rows if j != i)
                odds[i] = logits[i, side] - math.log(rest)
        expected = expected + dice(odds, target[:, side]) / 2
    torch.testing.assert_close(SpanEndsLoss(dice)(logits, target), expected)


def test_the_parts_of_a_compound_loss_are_what_they_are_alone():
    torch.manual_seed(0)
    logits, target = torch.randn(6, 2), torch.eye(6)[:, :3]
    target[0, 2] = 1
    both = CompoundLoss("ce", DiceLoss(), weight=0.25).prepare([4, 2])
    alone = [SpanEndsLoss(loss)(logits, target) for loss in (CrossEntropyLoss(), DiceLoss())]
    value = SpanEndsLoss(both)(logits, target)
    torch.testing.assert_close(value, 0.75 * alone[0] + 0.25 * alone[1])
    with pytest.raises(ValueError, match=r"tau=0\.5"):
        SpanEndsLoss(CompoundLoss(CrossEntropyLoss(tau=0.5), "dice"))


@pytest.mark.parametrize("loss", sorted(set(LOSSES) - {"ce"}))
@pytest.mark.parametrize("scale", [0.0, 1.0, 30.0, 1e4])
def test_sure_positions_have_finite_slopes(loss, scale):
    torch.manual_seed(0)
    target = torch.zeros(12, 3)
    target[[0, 6, 11], 2] = 1  # the last window has one position
    target[[2, 6, 11], 0] = 1
    target[[3, 9, 11], 1] = 1
    logits = (scale * torch.randn(12, 2)).requires_grad_()
    value = SpanEndsLoss(resolve_loss(loss).prepare([9, 3]))(logits, target)
    value.backward()
    assert torch.isfinite(value)
    assert torch.isfinite(logits.grad).all()
    if scale == 1.0:
        assert logits.grad.abs().sum() > 0


def test_heads_are_told_apart():
    torch.manual_seed(0)
    logits = torch.randn(8)
    heads = torch.tensor([0.0, 0, 1, 1, 3, 2, 2, 2])
    target = torch.stack([(torch.rand(8) > 0.5).float(), heads], dim=1)
    losses = [CrossEntropyLoss() for _ in range(4)]
    parts = [
        torch.nn.functional.binary_cross_entropy_with_logits(
            logits[heads == h], target[heads == h, 0]
        )
        for h in range(4)
    ]
    found = HeadsLoss(losses, [1.0, 0.5, 2.0, 0.0])(logits, target)
    torch.testing.assert_close(found, parts[0] + 0.5 * parts[1] + 2 * parts[2])


# ---- the question answerer


@pytest.mark.parametrize("loss", LOSSES)
def test_every_loss_learns_to_read(tiny_backbone, loss):
    model = reader(tiny_backbone, loss=loss, max_epochs=60, dropout=0.0).fit(X, Y)
    assert model.score(X, Y) > 0.9
    assert model.exact_match(X, Y) > 0.7
    assert np.isfinite(model.null_threshold_)


@pytest.mark.parametrize("kind", ["bert", "roberta", "deberta-v2", "modernbert", "xlnet"])
def test_backbones_and_batches(tiny_backbones, kind):
    long = [(q, " ".join([c] * 6)) for q, c in X[:4]]
    model = reader(tiny_backbones[kind], stride=10, max_epochs=30, dropout=0.0).fit(X, Y)
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
        assert sum(entry["probability"] for entry in row) == pytest.approx(1)
        assert [e["score"] for e in row] == sorted((e["score"] for e in row), reverse=True)
        assert sum(entry["start"] is None for entry in row) <= 1
        for entry in row:
            if entry["start"] is not None:
                assert context[entry["start"] : entry["end"]] == entry["text"]
                assert 1 <= len(entry["text"].split()) <= 2
    first = [row[0]["text"] for row in model.predict_spans(X)]
    assert first == list(model.predict(X))


def test_the_null_threshold(tiny_backbone):
    answerable = [(x, y) for x, y in zip(X, Y, strict=True) if y]
    always = reader(tiny_backbone).fit([x for x, _ in answerable], [y for _, y in answerable])
    assert always.null_threshold_ == float("inf")
    assert all(always.predict(X))
    never = reader(tiny_backbone, null_threshold=-1e9).fit(X, Y)
    assert not any(never.predict(X))
    tuned = reader(tiny_backbone, max_epochs=3).fit(X, Y, X_val=X, y_val=Y)
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
    (window,) = model._windows(pairs[:1])
    want = model._target(window, [(4, "old bus")])
    assert want[0, :2].tolist() == [0, 0]  # it is not "no answer"
    for answer in [(3, " old bus"), (4, "old bus "), (3, " old bus ")]:
        np.testing.assert_array_equal(model._target(window, [answer]), want)


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
    (window,) = model._windows([("who is it", context)])
    target = model._target(window, [(4, answer)])
    assert target[0, :2].tolist() == [0, 0]  # it is not "no answer"
    first, last = target[:, 0].argmax(), target[:, 1].argmax()
    found = context[window.offsets[first, 0] : window.offsets[last, 1]]
    assert found == answer.lstrip("\u200b")


def test_scores_compare_texts_wherever_they_stand(tiny_backbone, monkeypatch):
    pairs = [("what was late", "the old  bus was late today .")]
    model = reader(tiny_backbone).fit(X, Y)
    for predicted in ("old  bus", "", "late"):
        monkeypatch.setattr(DiceQuestionAnswerer, "predict", lambda *_, p=predicted: [p])
        for gold in ([[(4, "old bus")]], [{"text": ["old bus"], "answer_start": [4]}]):
            assert model.score(pairs, gold) == answer_f1_score(["old bus"], [predicted])
            assert model.exact_match(pairs, gold) == float(predicted == "old  bus")
    with pytest.raises(ValueError, match="X holds 1 rows and y 2"):
        model.score(pairs, [(4, "old bus")] * 2)


@pytest.mark.parametrize("how", ["drop", "fix"])
def test_weights_go_with_the_rows_that_are_left(tiny_backbone, how):
    answers, weights = [Y[0], [(0, "nowhere")], *Y[2:]], np.array([1, 5, 0, 2] * 3)
    rows = [i for i in range(12) if i != 1]
    with pytest.warns(UserWarning, match="1 of 12 questions are left out"):
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
        windows = EncodedDataset(a._windows(data[:4]))
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


def test_a_stride_longer_than_a_window_makes_no_window_for_each_token():
    for room in range(1, 40):
        spans = cut_context(300, room, stride=128)
        assert len(spans) <= 2 * 300 / room + 1
        assert {i for first, last in spans for i in range(first, last)} == set(range(300))
        assert max(last - first for first, last in spans) <= room


def test_model_selection(tiny_backbone):
    model = reader(tiny_backbone, max_epochs=2)
    grid = GridSearchCV(model, {"loss": ["ce", "dsc"]}, cv=2, error_score="raise").fit(X, Y)
    assert set(grid.predict(X)) <= {c[i:j] for c in CONTEXTS for i in range(40) for j in range(41)}
    predicted = cross_val_predict(model, X, Y, cv=2)
    half = reader(tiny_backbone, max_epochs=2).fit(X[6:], Y[6:])
    assert list(predicted[:6]) == list(half.predict(X[:6]))


def test_sample_weights_and_files(tiny_backbone, tmp_path):
    weights = np.array([1, 0, 1, 1] * 3)
    other = [row if w else [(0, x[1][:3])] for row, w, x in zip(Y, weights, X, strict=True)]
    a, b = (
        reader(tiny_backbone, loss="ce").fit(X, y, sample_weight=weights).predict_spans(X)
        for y in (Y, other)
    )
    assert [r[0]["score"] for r in a] == pytest.approx([r[0]["score"] for r in b])
    model = reader(tiny_backbone).fit(X, Y)
    read = DiceQuestionAnswerer.from_pretrained(model.save_pretrained(tmp_path / "m"))
    for copy in (read, pickle.loads(pickle.dumps(model))):
        assert list(copy.predict(X)) == list(model.predict(X))
        assert copy.null_threshold_ == model.null_threshold_


@pytest.mark.parametrize(
    ("pairs", "answers", "message"),
    [
        ([("q", "a b")], [(1, "a")], r"y\[0\]: the answer 'a' is not in .* which holds ' '"),
        ([("q", "a b")], ["a"], r"y\[0\] is the string 'a'"),
        ([("q", "a b"), ("q", " ")], [(0, "a"), None], r"X\[1\] has an empty context"),
        ([(" ", "a b")], [(0, "a")], r"X\[0\] has an empty question"),
        ([("q", "a b")], [(0, "a"), None], "1 rows and y 2"),
        ([("q", "a b")], [[]], "no answer at all"),
        (["a b"], [(0, "a")], "single texts"),
        ([("a long one", "a b"), ("a long one", "b")], [(0, "a"), (0, "b")], "swapped"),
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
    with pytest.warns(UserWarning, match=r"X\[0\] has a context \('hello'\) shorter"):
        reader(tiny_backbone).fit([("who said hello now", "hello"), *X], [(0, "hello"), *Y])
    with pytest.raises(
        ValueError, match=r"X\[0\]: the question takes 64 of max_length=64 .*max_question_length"
    ):
        reader(tiny_backbone).fit([("who " * 61, "x" + " bob" * 99)], [(2, "bob")])
    short = reader(tiny_backbone, max_question_length=8)
    model = short.fit([("who " * 61, "x" + " bob" * 99)], [(2, "bob")])
    assert model.predict([("who", "bob")])[0] == "bob"


@pytest.mark.parametrize("how", ["drop", "fix"])
def test_misaligned_answers(tiny_backbone, how):
    answers = [[(1, "anna")], *Y[1:]]
    answers[1] = [(0, "nowhere")]
    with pytest.warns(UserWarning, match=f"of 12 questions are left out.*'{how}'"):
        model = reader(tiny_backbone, on_misaligned=how, max_epochs=40, dropout=0.0).fit(X, answers)
    assert model.predict([X[0]])[0] == "anna"


# ---- the tagger that reads

SENTENCES = [
    ["anna", "met", "bob", "in", "rome"],
    ["the", "bank", "of", "oslo", "is", "old"],
    ["rain", "today"],
    [],
    ["carla", "saw", "the", "school", "of", "paris"],
]
NESTED = [
    [("PER", 0, 1), ("PER", 2, 3), ("LOC", 4, 5)],
    [("ORG", 0, 4), ("LOC", 3, 4)],
    [],
    [],
    [("PER", 0, 1), ("ORG", 2, 6), ("LOC", 5, 6)],
]
TAGS = [
    ["B-PER", "O", "B-PER", "O", "B-LOC"],
    ["O", "O", "O", "B-LOC", "O", "O"],
    ["O", "O"],
    [],
    ["B-PER", "O", "O", "O", "O", "B-LOC"],
]


def tagger(backbone, **params):
    settings = dict(max_epochs=1, lr=5e-3, batch_size=8, random_state=0)
    return DiceMRCTagger(backbone=backbone, **{**settings, **params})


@pytest.mark.parametrize("loss", LOSSES)
def test_nested_entities_are_read_right(tiny_backbone, loss):
    model = tagger(tiny_backbone, loss=loss, max_epochs=60, dropout=0.0)
    model.fit(SENTENCES, NESTED)
    found = [sorted(row) for row in model.predict(SENTENCES)]
    if loss == "weighted_ce":  # with K=1 the negatives of so small a text weigh next to nothing
        assert all(set(gold) <= set(row) for gold, row in zip(NESTED, found, strict=True))
    else:
        assert found == [sorted(row) for row in NESTED]
        assert model.score(SENTENCES, NESTED) == 1
    assert model.scheme_ is None


@pytest.mark.parametrize("kind", ["bert", "roberta", "deberta-v2", "modernbert", "xlnet"])
def test_tags_are_read_right_by_every_backbone(tiny_backbones, kind):
    model = tagger(
        tiny_backbones[kind],
        loss="ce",
        max_epochs=100,
        lr=1e-2,
        dropout=0.0,
        answerable_weight=0.5,
    ).fit(SENTENCES, TAGS)
    assert model.predict(SENTENCES).tolist() == TAGS
    assert model.score(SENTENCES, TAGS) == span_f1_score(TAGS, model.predict(SENTENCES)) == 1
    windows = model._windows(SENTENCES)
    together = model.net_.logits(EncodedDataset(windows))
    for window, expected in zip(windows, together, strict=True):
        alone = model.net_.logits(EncodedDataset([window]))[0]
        np.testing.assert_allclose(alone, expected, atol=1e-4)


def test_the_outputs_stand_where_they_belong(tiny_backbone):
    """Each output of a batch against the heads applied to hidden states one by one."""
    model = tagger(tiny_backbone, max_span_length=3).fit(SENTENCES, NESTED)
    module, windows = model.net_.module_, model._windows(SENTENCES)
    module.eval()
    for window, found in zip(windows, model.net_.logits(EncodedDataset(windows)), strict=True):
        with torch.no_grad():
            hidden = module.encoder(
                input_ids=torch.tensor([window.input_ids]),
                token_type_ids=torch.tensor([window.token_type_ids]),
            ).last_hidden_state[0]
            vectors = hidden[torch.from_numpy(window.positions)]
            starts = [module.head(v)[0].item() for v in vectors[1:]]
            ends = [module.head(v)[1].item() for v in vectors[1:]]
            match = []
            for i in range(window.n_words):
                for j in range(i, min(i + 3, window.n_words)):
                    u, v = module.first(vectors[i + 1]), module.last(vectors[j + 1])
                    match.append((u[:-1] @ v[:-1] / 8 + u[-1] + v[-1]).item())
            expected = [*starts, *ends, module.head(vectors[0])[2].item(), *match]
        np.testing.assert_allclose(found, expected, atol=1e-5)
    assert len(candidate_pairs(5, 3)) == 12


def test_flat_decoding_has_no_overlaps(tiny_backbone):
    model = tagger(tiny_backbone).fit(SENTENCES, TAGS)
    window = model._windows(SENTENCES[:1])[0]
    everything = model._read(window, np.full(window.n_predictions, 0.9), 0.5)
    n = sum(min(model.max_span_length_, 5 - i) for i in range(5))
    assert len(everything) == n
    assert {span[0] for span, _, _ in everything} == {"LOC"}
    assert all(value == pytest.approx(0.9) for _, *values in everything for value in values)
    p = np.full(window.n_predictions, 0.9)
    p[0] = 0.4  # no span starts at the first word
    assert not any(span[1] == 0 for span, *_ in model._read(window, p, 0.5))
    assert any(span[1] == 0 for span, *_ in model._read(window, p, 0.3))


@pytest.mark.parametrize("y", [TAGS, NESTED])
def test_a_threshold_tuned_for_f1(tiny_backbone, y):
    """Against the score with each threshold."""
    model = tagger(tiny_backbone, loss="ce", max_epochs=8).fit(SENTENCES, y)
    before = model.score(SENTENCES, y)
    assert model.threshold_ == 0.5
    assert model.tune_threshold(SENTENCES, y) is model
    chosen, tuned, found = model.threshold_, model.score(SENTENCES, y), {}
    for log_odds in np.linspace(-4, 4, 33):
        model.threshold_ = 1 / (1 + math.exp(-log_odds))
        found[model.threshold_] = model.score(SENTENCES, y)
    assert tuned == max(found.values()) > before
    best = [threshold for threshold in found if found[threshold] == tuned]
    assert chosen == pytest.approx(min(best, key=lambda threshold: abs(threshold - 0.5)))
    again = model.set_params(threshold=chosen).fit(SENTENCES, y)
    assert again.threshold_ == chosen
    assert again.score(SENTENCES, y) == tuned
    with pytest.raises(ValueError, match="no entity at all"):
        model.tune_threshold(SENTENCES, [[] for _ in SENTENCES])


def test_targets_of_a_sentence_in_several_windows(tiny_backbone):
    long = [["the"] * 70 + ["bank", "of", "oslo"] + ["old"] * 30]
    spans = [[("ORG", 70, 73), ("LOC", 72, 73)]]
    model = tagger(tiny_backbone, max_span_length=4, stride=10)
    model.fit([*long, *SENTENCES], [*spans, *NESTED])
    windows = [w for w in model._windows([*long, *SENTENCES]) if w.row == 0]
    assert len(windows) > 3
    found = Counter()
    for window in windows:
        target = model._target(window, spans[0])
        n = window.n_words
        for pair, value in zip(window.pairs, target[2 * n + 1 :, 0], strict=True):
            if value:
                found[window.words[pair[0]], window.words[pair[1]] + 1, window.query] += 1
                assert target[pair[0] - 1, 0] == target[n + pair[1] - 1, 0] == target[2 * n, 0] == 1
    labels = list(model.queries_)
    assert {(labels[q], int(a), int(b)) for a, b, q in found} == set(spans[0])


def test_queries(tiny_backbone):
    own = {"PER": "who", "LOC": "where", "ORG": "which team", "X": "more"}
    model = tagger(tiny_backbone, queries=own).fit(SENTENCES, NESTED)
    assert model.queries_ == dict(sorted(own.items()))
    with pytest.raises(ValueError, match="no question for the label 'ORG'"):
        tagger(tiny_backbone, queries={"PER": "who", "LOC": "where"}).fit(SENTENCES, NESTED)
    with pytest.raises(TypeError, match="dict from label"):
        tagger(tiny_backbone, queries={"PER": 3}).fit(SENTENCES, TAGS)
    with pytest.raises(ValueError, match="the query 'who who"):
        tagger(tiny_backbone, queries={**own, "PER": "who " * 70}).fit(SENTENCES, NESTED)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([*TAGS[:4], ["O"]], r"y\[4\] has 1 tags, but X\[4\] has 6"),
        ([[("PER", 3, 9)], [], [], [], []], r"y\[0\] holds \('PER', 3, 9\), which lies outside"),
        ([[("PER", 0)], [], [], [], []], r"y\[0\] holds \('PER', 0\): a span is"),
        ([["NOUN"] * len(s) for s in SENTENCES], "plain tags"),
        ([["O"] * len(s) for s in SENTENCES], "no entity at all"),
        (NESTED[:4], "5 sentences and y 4"),
    ],
)
def test_bad_entities_are_named(tiny_backbone, y, message):
    with pytest.raises((ValueError, TypeError), match=message):
        tagger(tiny_backbone).fit(SENTENCES, y)


@pytest.mark.parametrize("name", ["loss", "end_loss", "match_loss"])
def test_a_loss_that_is_not_reduced_is_refused(name):
    loss = DiceLoss(reduction="none", surrogate="none")
    model = tagger("nowhere/never-downloaded", **{name: loss})
    with pytest.raises(ValueError, match=rf"{name}=DiceLoss\(reduction='none', .* gives a value"):
        model.fit(SENTENCES, TAGS)


def test_validation_entities_of_unknown_types_only_are_refused(tiny_backbone):
    foreign = [[("ZZZ", 0, 1)], *([] for _ in SENTENCES[1:])]
    with pytest.raises(ValueError, match=r"none of the types of y: it has \['ZZZ'\]"):
        tagger(tiny_backbone).fit(SENTENCES, NESTED, X_val=SENTENCES, y_val=foreign)
    more = [["B-ZZZ" if tag != "O" else tag for tag in row] for row in TAGS]
    with pytest.raises(ValueError, match=r"none of the types of y: it has \['ZZZ'\]"):
        tagger(tiny_backbone).fit(SENTENCES, TAGS, X_val=SENTENCES, y_val=more)


def test_tools_around_the_mrc_tagger(tiny_backbone, tmp_path):
    X, y = SENTENCES * 2, TAGS * 2
    model = tagger(tiny_backbone)
    grid = GridSearchCV(model, {"loss": ["ce", "dsc"]}, cv=2, error_score="raise").fit(X, y)
    assert len(grid.predict(X)) == 10
    predicted = cross_val_predict(model, X, y, cv=2)
    assert list(predicted[:5]) == list(tagger(tiny_backbone).fit(X[5:], y[5:]).predict(X[:5]))
    nested = tagger(
        tiny_backbone, end_loss="ce", match_loss=DiceLoss(smooth=0.5), early_stopping=True
    )
    nested.fit(X * 2, NESTED * 4).tune_threshold(X, NESTED * 2)
    read = DiceMRCTagger.from_pretrained(nested.save_pretrained(tmp_path / "m"))
    assert (read.match_loss.smooth, read.end_loss) == (0.5, "ce")
    assert nested.threshold_ != nested.threshold
    kinds = [type(loss).__name__ for loss in nested.net_.criterion_.losses]
    assert kinds == ["DSCLoss", "CrossEntropyLoss", "DiceLoss", "DSCLoss"]
    for copy in (read, pickle.loads(pickle.dumps(nested))):
        assert copy.predict_spans(X).tolist() == nested.predict_spans(X).tolist()


def test_spans_f1():
    true, found = [[("A", 0, 2), ("B", 1, 2)], []], [[("A", 0, 2)], [("A", 0, 1)]]
    assert spans_f1_score(true, found) == pytest.approx(2 / 4)
    assert spans_f1_score([[]], [[]]) == 0


# ---- files


def squad(*questions, context="anna went to paris ."):
    return {"data": [{"title": "t", "paragraphs": [{"context": context, "qas": list(questions)}]}]}


def test_squad_files(tmp_path):
    path = tmp_path / "s.json"
    good = {"id": "a", "question": "who", "answers": [{"text": "anna", "answer_start": 0}]}
    none = {"id": "b", "question": "why", "answers": [], "is_impossible": True}
    off = {"id": "c", "question": "where", "answers": [{"text": "paris", "answer_start": 12}]}
    gone = {"id": "d", "question": "what", "answers": [{"text": "rome", "answer_start": 0}]}
    path.write_text(json.dumps(squad(good, none)))
    pairs, answers, ids = read_squad(path, return_ids=True)
    assert pairs == [("who", "anna went to paris ."), ("why", "anna went to paris .")]
    assert (answers, ids) == ([[(0, "anna")], []], ["a", "b"])
    path.write_text(json.dumps(squad(good, off, gone)))
    with pytest.raises(ValueError, match=r"question 'c': the answer 'paris' .* holds ' pari'"):
        read_squad(path)
    assert read_squad(path, on_misaligned="fix", return_ids=True)[1:] == (
        [[(0, "anna")], [(13, "paris")]],
        ["a", "c"],
    )
    assert read_squad(path, on_misaligned="drop", return_ids=True)[2] == ["a"]
    assert read_squad(path, with_answers=False, return_ids=True)[1:] == ([[]] * 3, ["a", "c", "d"])
    path.write_text(json.dumps(squad(good, good)))
    with pytest.raises(ValueError, match="question id 'a' twice"):
        read_squad(path)
    path.write_text(json.dumps(squad(good, context=" ")))
    with pytest.raises(ValueError, match="question 'a' has an empty context"):
        read_squad(path)
    path.write_text(json.dumps({"version": "1"}))
    with pytest.raises(ValueError, match="not a SQuAD file"):
        read_squad(path)
    for data, name in (
        ([{"title": "t"}], "paragraphs"),
        (["t"], "paragraphs"),
        ([{"paragraphs": [{"context": "a"}]}], "qas"),
        ([{"paragraphs": [{"qas": [good]}]}], "context"),
        ([{"paragraphs": [{"context": "a", "qas": [{"id": "q"}]}]}], "question"),
        ([{"paragraphs": [{"context": "a", "qas": [{"question": "q"}]}]}], "id"),
    ):
        path.write_text(json.dumps({"data": data}))
        with pytest.raises(ValueError, match=f"is not a SQuAD file: .* has no '{name}'"):
            read_squad(path)
    path.write_text(json.dumps(squad(good)))
    with pytest.raises(ValueError, match=r"articles=\['x'\]"):
        read_squad(path, articles=["x"])
    out = write_squad_predictions(tmp_path / "p.json", ["a", "b"], ["anna", ""])
    assert json.loads(out.read_text()) == {"a": "anna", "b": ""}
    with pytest.raises(ValueError, match="twice"):
        write_squad_predictions(out, ["a", "a"], ["x", "y"])


def test_bert_mrc_files(tmp_path):
    records = [
        {
            "qas_id": f"{i}.{j}",
            "context": " ".join(tokens),
            "query": f"find {kind}",
            "entity_label": kind,
            "start_position": [s for k, s, _ in spans if k == kind],
            "end_position": [e - 1 for k, _, e in spans if k == kind],
        }
        for i, (tokens, spans) in enumerate(zip(SENTENCES, NESTED, strict=True))
        if tokens
        for j, kind in enumerate(["LOC", "ORG", "PER"])
    ]
    path = tmp_path / "m.json"
    path.write_text(json.dumps(records))
    sentences, spans, queries = read_mrc_ner(path)
    assert sentences == [tokens for tokens in SENTENCES if tokens]
    assert [set(row) for row in spans] == [
        set(r) for r, t in zip(NESTED, SENTENCES, strict=True) if t
    ]
    assert queries == {"LOC": "find LOC", "ORG": "find ORG", "PER": "find PER"}
    records[0]["start_position"], records[0]["end_position"] = [4], [9]
    path.write_text(json.dumps(records))
    with pytest.raises(ValueError, match="record 0: the span 4 to 9"):
        read_mrc_ner(path)
    records[0]["start_position"], records[0]["end_position"] = [1, 2], [2]
    path.write_text(json.dumps(records))
    with pytest.raises(ValueError, match="record 0 has 2 values of 'start_position' and 1 of"):
        read_mrc_ner(path)
    path.write_text(json.dumps({}))
    with pytest.raises(ValueError, match="not a BERT-MRC file"):
        read_mrc_ner(path)


def test_chinese(chinese_backbone):
    """A tokenizer of characters: offsets, windows and tags of single characters."""
    pairs = [("北京大学在哪里", "北京大学在北京。"), ("上海大学在哪里", "上海大学，在上海。")] * 3
    answers = [(5, "北京"), (6, "上海")] * 3
    model = reader(chinese_backbone, loss="ce", max_epochs=60, dropout=0.0, language="zh")
    model.fit(pairs, answers)
    assert list(model.predict(pairs[:2])) == ["北京", "上海"]
    assert model.score(pairs, answers) == model.exact_match(pairs, answers) == 1
    characters = [list("北京大学在北京"), list("上海大学")]
    tags = [["B-ORG", "I-ORG", "I-ORG", "I-ORG", "O", "B-LOC", "I-LOC"],
            ["B-ORG", "I-ORG", "I-ORG", "I-ORG"]]  # fmt: skip
    asker = tagger(chinese_backbone, loss="ce", max_epochs=80, dropout=0.0)
    asker.set_params(queries={"ORG": "大学", "LOC": "哪里"})
    assert asker.fit(characters, tags).predict(characters).tolist() == tags
