"""Windows of questions and contexts, and the best spans in them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skdice.backbones import load_tokenizer
from skdice.tags.spans import flat_spans
from skdice.text.best_answers import best_answers, tune_null_threshold
from skdice.text.question_windows import encode_questions
from tests.estimators.readers import reader


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
        ids = window.input_ids[window.positions[1:]].tolist()
        pieces = [context[a:b].lower() for a, b in window.offsets[1:]]
        for piece, i in zip(pieces, ids, strict=True):
            token = tokenizer.convert_ids_to_tokens(i).removeprefix("##")
            assert token == "[UNK]" or token == piece.replace("ü", "u")
        covered |= set(window.words.tolist())
        target = estimator.task.target(estimator, window, [(start, text)])
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


@given(st.lists(st.tuples(st.just("A"), st.integers(0, 9), st.integers(10, 15)), max_size=8))
def test_flat_spans_keep_the_first_of_those_that_overlap(spans):
    spans = [(kind, a, a + b - 9) for kind, a, b in spans]
    kept = []
    for span in spans:
        if all(span[2] <= other[1] or span[1] >= other[2] for other in kept):
            kept.append(span)
    assert flat_spans(spans) == sorted(kept, key=lambda span: span[1])
    spans = [("B", 1, 2, 0.9), ("A", 0, 4, 0.5), ("A", 2, 3, 0.4), ("C", 5, 6, 0.1)]
    assert flat_spans(spans) == [("B", 1, 2, 0.9), ("A", 2, 3, 0.4), ("C", 5, 6, 0.1)]


def test_a_stride_longer_than_a_window_makes_no_window_for_each_token(tiny_backbones):
    tokenizer = load_tokenizer(tiny_backbones["bert"])
    rows = [("the", "the river " * 100)]
    for max_length in range(8, 40):
        windows = encode_questions(tokenizer, rows, max_length, stride=128, max_question_length=1)
        kept = [window.words[1:] for window in windows]
        n = 1 + max(words.max() for words in kept)
        assert n >= 200
        assert len(kept) <= 2 * n / max(map(len, kept)) + 1
        assert set(np.concatenate(kept)) == set(range(n))
