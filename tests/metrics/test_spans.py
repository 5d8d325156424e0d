"""Span metrics against seqeval, on random tags."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
import seqeval.metrics
import seqeval.scheme
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator
from sklearn.metrics import f1_score
from sklearn.model_selection import GridSearchCV, cross_val_score

from skdice.metrics import (
    Fbeta,
    span_f1_score,
    span_f1_scorer,
    span_precision_recall_fscore_support,
    span_precision_score,
    span_recall_score,
    span_report,
)
from skdice.metrics.decisions.span_counter import SpanCounter
from skdice.tags import convert_scheme
from skdice.tags.schemes import SCHEMES, get_spans, strict_spans
from tests.data import PREFIXES, tags_of


@st.composite
def pairs(draw, prefixes):
    tags = ["O", *(f"{p}-{t}" for p in prefixes for t in ("A", "B", "C-D"))]
    lengths = draw(st.lists(st.integers(0, 8), min_size=1, max_size=6))
    rows = [
        [draw(st.lists(st.sampled_from(tags), min_size=n, max_size=n)) for n in lengths]
        for _ in range(2)
    ]
    return rows[0], rows[1]


@pytest.mark.parametrize("scheme", ["iob1", "iob2", "ioe1", "ioe2", "bioes"])
@settings(deadline=None, max_examples=40)
@given(st.data())
def test_equals_seqeval(scheme, data):
    y_true, y_pred = data.draw(pairs(PREFIXES[scheme]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for average in ("micro", "macro", "weighted"):
            for ours, theirs in (
                (span_precision_score, seqeval.metrics.precision_score),
                (span_recall_score, seqeval.metrics.recall_score),
                (span_f1_score, seqeval.metrics.f1_score),
            ):
                expected = theirs(y_true, y_pred, average=average, zero_division=0)
                if np.isnan(expected):  # seqeval's mean over no type at all
                    expected = 0.0
                got = ours(y_true, y_pred, average=average, scheme=scheme)
                assert got == pytest.approx(expected), (average, ours)
        spans = {
            e[0]
            for rows in (y_true, y_pred)
            for e in seqeval.metrics.sequence_labeling.get_entities(rows)
        }
        if spans:
            expected = seqeval.metrics.f1_score(y_true, y_pred, average=None, zero_division=0)
            values = span_precision_recall_fscore_support(y_true, y_pred, scheme=scheme)
            assert values[2].tolist() == pytest.approx(expected.tolist())


@settings(deadline=None, max_examples=100)
@given(st.data())
def test_plain_tags_score_as_scikit_learn(data):
    y_true, y_pred = data.draw(pairs("BI"))
    flat_true, flat_pred = ([t for row in rows for t in row] for rows in (y_true, y_pred))
    labels = sorted({*flat_true, *flat_pred} - {"O"})
    if labels:
        for average in ("micro", "macro"):
            expected = f1_score(
                flat_true, flat_pred, labels=labels, average=average, zero_division=0
            )
            found = span_f1_score(y_true, y_pred, scheme="plain", average=average)
            assert found == pytest.approx(expected)


def test_zero_division_and_types():
    y_true, y_pred = [["B-A", "O", "B-B"]], [["B-A", "B-C", "O"]]
    assert span_precision_score([["O"]], [["O"]], scheme="iob2") == 0
    assert span_f1_score([["O"]], [["O"]], scheme="iob2", average="macro") == 0
    *scores, support = span_precision_recall_fscore_support(y_true, y_pred)
    assert [values.tolist() for values in scores] == [[1, 0, 0]] * 3
    assert support.tolist() == [1, 1, 0]


def test_report():
    y_true, y_pred = [["B-A", "O", "B-B"]], [["B-A", "B-B", "O"]]
    table = span_report(y_true, y_pred, output_dict=True)
    assert table["A"] == {"precision": 1.0, "recall": 1.0, "f1": 1.0, "support": 1}
    assert table["micro avg"]["f1"] == 0.5
    text = span_report(y_true, y_pred)
    assert "weighted avg" in text
    assert len(text.splitlines()) == 6
    table = span_report([["PER", "O"], ["O"]], [["PER", "O"], ["O"]], output_dict=True)
    assert list(table) == ["PER", "micro avg", "macro avg", "weighted avg"]
    assert table["PER"]["support"] == 1


def test_errors_name_the_sentence():
    with pytest.raises(ValueError, match="2 sentences and y_pred 1"):
        span_f1_score([["O"], ["O"]], [["O"]])
    with pytest.raises(ValueError, match=r"y_true\[1\] has 2 tags, but y_pred\[1\] has 1"):
        span_f1_score([["O"], ["O", "O"]], [["O"], ["O"]])
    with pytest.raises(ValueError, match="average='samples'"):
        span_f1_score([["O"]], [["O"]], average="samples")
    with pytest.raises(ValueError, match="scheme='io'"):
        span_f1_score([["O"]], [["O"]], scheme="io")


@pytest.mark.parametrize(
    "score", [span_f1_score, span_precision_recall_fscore_support, span_report]
)
def test_what_is_no_list_of_tags_is_named(score):
    flat, rows = ["B-PER", "I-PER", "O"], [["B-PER", "I-PER", "O"]]
    for pair, message in (
        ((flat, flat), r"y_true\[0\] is 'B-PER'.*\[y_true\]"),
        ((rows, flat), r"y_pred\[0\] is 'B-PER'.*\[y_pred\]"),
        (([3, 4], [3, 4]), r"y_true\[0\] is 3"),
        (([["O"], ["O"]], [["O"], [4]]), r"y_pred\[1\]\[0\] is 4, not a string"),
    ):
        with pytest.raises(TypeError, match=message):
            score(*pair)
    arrays = [np.array(row) for row in rows]  # whose tags are numpy's strings
    assert score(arrays, arrays) == score(rows, rows)


class Echo(BaseEstimator):
    """Tags a token with itself, or everything with O."""

    def __init__(self, echo=True):
        self.echo = echo

    def fit(self, X, y):
        self.fitted_ = True
        return self

    def predict(self, X):
        rows = np.empty(len(X), dtype=object)
        for i, row in enumerate(X):
            rows[i] = list(row) if self.echo else ["O"] * len(row)
        return rows


def test_a_scorer_works_on_ragged_lists():
    X = [["B-A", "O"], ["B-B"], ["O", "B-A", "I-A"], ["B-A", "B-B"]]
    assert cross_val_score(Echo(), X, X, cv=2, scoring=span_f1_scorer).tolist() == [1, 1]
    grid = GridSearchCV(Echo(), {"echo": [False, True]}, cv=2, scoring=span_f1_scorer).fit(X, X)
    assert grid.best_params_ == {"echo": True}
    assert grid.cv_results_["mean_test_score"].tolist() == [0, 1]


NAMES = {
    "iob1": "IOB1",
    "iob2": "IOB2",
    "ioe1": "IOE1",
    "ioe2": "IOE2",
    "bioes": "IOBES",
    "bilou": "BILOU",
}


def in_reach_of_seqeval(row):
    """Whether each E that begins a span of IOE1 follows an E of its type, as seqeval wants it."""
    return all(
        tag[0] != "E" or before[1:] == tag[1:] for before, tag in itertools.pairwise(["O", *row])
    )


@pytest.mark.parametrize("scheme", NAMES)
def test_strict_mode_equals_that_of_seqeval_on_every_short_sentence(scheme):
    tags = tags_of(scheme, "AC")
    how = getattr(seqeval.scheme, NAMES[scheme])
    for row in itertools.product(tags, repeat=4 if len(tags) == 5 else 3):
        if scheme == "ioe1" and not in_reach_of_seqeval(row):
            continue
        expected = [e.to_tuple()[1:] for e in seqeval.scheme.Tokens(list(row), how).entities]
        assert strict_spans(row, scheme) == expected, row


def test_strict_mode_leaves_out_what_breaks_the_scheme():
    true, pred = [["B-A", "I-A", "O"]], [["I-A", "I-A", "O"]]
    assert span_f1_score(true, pred) == 1.0
    assert span_f1_score(true, pred, mode="strict") == 0.0
    assert span_f1_score([["B-A", "E-A"]], [["B-A", "E-A"]], scheme="bmes", mode="strict") == 1.0
    with pytest.raises(ValueError, match="mode='nope'"):
        span_f1_score(true, pred, mode="nope")


@pytest.mark.parametrize("score", [span_f1_score, span_report])
def test_what_has_no_order_is_no_row_of_tags(score):
    rows = [["B-A", "O"]]
    for row in ({"B-A", "O"}, frozenset({"B-A", "O"}), {"B-A": 1, "O": 2}):
        with pytest.raises(TypeError, match=r"y_true\[0\] is .*must be a list"):
            score([row], rows)
        with pytest.raises(TypeError, match=r"y_pred\[0\] is .*must be a list"):
            score(rows, [row])
    with pytest.raises(TypeError, match=r"y_true is .*must be a list"):
        score({("B-A", "O")}, rows)


def test_a_stray_tag_is_refused_with_its_place():
    rows = [["B-A", "O"], ["I-B", "O"]]
    for stray in ("0", "o", "-", "", "B_A"):
        odd = [["B-A", "O"], ["I-B", stray]]
        with pytest.raises(ValueError, match=rf"y(_true)?\[1\]\[1\] is {stray!r}"):
            span_f1_score(odd, rows)
        with pytest.raises(ValueError, match=rf"y_pred\[1\]\[1\] is {stray!r}"):
            span_f1_score(rows, odd)
        assert 0 < span_f1_score(rows, odd, scheme="plain") < 1
    # Without an entity among the true tags, the predicted ones decide.
    assert span_f1_score([["O", "O"]], [["NOUN", "VERB"]]) == 0


@pytest.mark.parametrize(
    "span",
    [
        *(("A", 0.5, 2), ("A", 0, 1.5), ("A", 0, float("nan")), ("A", float("inf"), 2)),
        *(("A", "0", 1), ("A", 0, 1, 0.9), ("A", 0), (1, 0, 2), "A01", None),
        {"A": 1, "B": 0, "C": 2},
    ],
)
def test_what_is_no_span_is_refused(span):
    right = [[("A", 0, 1)]]
    message = r"y_true\[0\] holds .*\(type, start, end\)|not a string: write"
    with pytest.raises(TypeError, match=message):
        span_f1_score([[span]], right)  # what is no tuple is a tag
    with pytest.raises(TypeError, match=r"y_pred\[0\] holds .*\(type, start, end\)"):
        span_f1_score(right, [[span]])


def test_spans_may_be_any_whole_numbers_in_any_collection():
    right = [[("A", 0, 1), ("B", 1, 2)]]
    for rows in ([{("B", 1, 2), ("A", 0, 1)}], [[["A", np.int64(0), 1.0], ("B", 1, np.uint8(2))]]):
        assert span_f1_score(right, rows) == 1.0
    with pytest.raises(TypeError, match=r"y_pred\[0\] is 'A'.*a list of spans"):
        span_f1_score(right, ["A"])


def masked_by_hand(y_true, y_pred):
    """Each run of annotated tokens as a sentence of its own: no span goes beyond one."""
    parts = [[], []]
    for true, pred in zip(y_true, y_pred, strict=True):
        for known, run in itertools.groupby(
            zip(true, pred, strict=True), key=lambda pair: pair[0] is not None
        ):
            if known:
                a, b = zip(*run, strict=True)
                parts[0].append(list(a))
                parts[1].append(list(b))
    return parts


@pytest.mark.parametrize("mode", ["lenient", "strict"])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_tokens_that_nobody_annotated_do_not_count(scheme, mode):
    draw = np.random.default_rng(0)
    tags = (
        ["O", "A", "B"] if scheme == "plain" else ["O", *(f"{p}-{t}" for p in "BIES" for t in "AB")]
    )
    tags = (
        [tag.replace("E-", "L-").replace("S-", "U-") for tag in tags] if scheme == "bilou" else tags
    )
    for _ in range(30):
        y_true, y_pred = ([list(draw.choice(tags, n)) for n in (0, 3, 9, 20)] for _ in range(2))
        y_true = [[None if draw.random() < 0.3 else str(t) for t in row] for row in y_true]
        y_pred = [[str(tag) for tag in row] for row in y_pred]
        scores = [
            span_precision_recall_fscore_support(*pair, scheme=scheme, mode=mode, average="micro")
            for pair in ((y_true, y_pred), masked_by_hand(y_true, y_pred))
        ]
        assert scores[0] == scores[1]
        classes = sorted({tag for row in y_pred for tag in row})
        flat = np.array([classes.index(tag) for row in y_pred for tag in row])
        if mode == "lenient":
            counts = SpanCounter(y_true, classes, scheme).counts(flat)
            assert Fbeta(average="micro")._value(counts) == scores[0][2]


@pytest.mark.parametrize("mode", ["lenient", "strict"])
@pytest.mark.parametrize("scheme", PREFIXES)
def test_a_report_and_an_f1_agree_on_ill_formed_tags(scheme, mode):
    draw = np.random.default_rng(0)
    tags = tags_of(scheme)
    for _ in range(20):
        pair = [[draw.choice(tags, n).tolist() for n in (3, 9)] for _ in range(2)]
        report = span_report(*pair, scheme=scheme, mode=mode, output_dict=True)
        how = {"scheme": scheme, "mode": mode, "average": "micro"}
        scores = span_precision_recall_fscore_support(*pair, **how)
        assert tuple(report["micro avg"].values()) == pytest.approx(scores)
    assert span_report([["I-A"]], [["I-A"]], scheme="iob2", mode="strict").count("0.000") == 9


def test_a_prediction_is_compared_by_its_annotated_tokens():
    y_true = [["B-PER", None, "O", None, None]]
    assert span_f1_score(y_true, [["B-PER", "I-PER", "O", "B-LOC", "I-LOC"]]) == 1
    precision, recall, *_ = span_precision_recall_fscore_support(
        y_true, [["B-PER", "O", "B-LOC", "I-LOC", "I-LOC"]], average="micro"
    )
    assert (precision, recall) == (0.5, 1)
    assert span_report(y_true, y_true, output_dict=True).keys() >= {"PER"}
    converted = convert_scheme([["S-PER", None, "B-X", "E-X", None]])
    assert converted == [["B-PER", None, "B-X", "I-X", None]]
    with pytest.raises(TypeError, match=r"y_pred\[0\] holds None"):
        span_f1_score([["O", "O"]], [["O", None]])


@pytest.mark.parametrize("scheme", ["iob2", "bioes", "plain"])
def test_counts_of_some_types_are_those_of_their_spans(scheme):
    """Alerts, too, are sentences with a span of these types."""
    draw = np.random.default_rng(0)
    tags = tags_of(scheme, "XYZ")
    for _ in range(10):
        y_true, y_pred = ([draw.choice(tags, n).tolist() for n in (1, 2, 4, 7)] for _ in range(2))
        counter = SpanCounter(y_true, tags, scheme)
        flat = np.array([tags.index(tag) for row in y_pred for tag in row])
        true, found = ([get_spans(row, scheme) for row in rows] for rows in (y_true, y_pred))
        for kinds in ([0], [2], [0, 2]):
            names = [counter.types[kind] for kind in kinds]
            counts = counter.counts(flat, kinds)
            assert counts.alerts == sum(any(s[0] in names for s in row) for row in found)
            for i, name in enumerate(names):
                a, b = (
                    [{s for s in row if s[0] == name} for row in rows] for rows in (true, found)
                )
                assert counts.hits[i] == sum(len(x & y) for x, y in zip(a, b, strict=True))
                assert counts.predicted[i] == sum(map(len, b))
                assert counts.true[i] == sum(map(len, a))
            assert counts.n_rows == len(y_true)
