"""Errors of spans: kinds by hand, and against a slow search over all pairs."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skdice.inspection import SpanConfusionDisplay, show_tags, span_errors
from skdice.tags.schemes import get_spans


@pytest.mark.parametrize(
    ("true", "pred", "kinds"),
    [
        ("B-A I-A O", "B-A I-A O", []),
        ("B-A I-A O", "B-B I-B O", ["type"]),
        ("B-A I-A O", "B-A O O", ["boundary"]),
        ("B-A I-A O", "O B-B I-B", ["both"]),
        ("B-A I-A O", "O O O", ["missed"]),
        ("O O O", "O B-A O", ["spurious"]),
        # The span with the same words comes first, then the type, then the larger overlap.
        ("B-A I-A I-A", "B-A B-A I-A", ["boundary", "spurious"]),
        ("B-A B-B I-B", "B-A I-A O", ["boundary", "missed"]),
        ("B-A O B-A", "B-A O B-B", ["type"]),
    ],
)
def test_kinds_of_errors(true, pred, kinds):
    found = span_errors([true.split()], [pred.split()])
    assert list(found.kind) == kinds


def test_columns_of_errors():
    X = [["the", "Bank", "of", "Oslo"], ["it", "rains"]]
    true = [["O", "B-ORG", "I-ORG", "I-ORG"], ["O", "O"]]
    pred = [["O", "O", "O", "B-LOC"], ["O", "B-LOC"]]
    found = span_errors(true, pred, X)
    assert found.astype(object).where(found.notna(), None).to_dict("records") == [
        {
            "row": 0, "kind": "both", "true_type": "ORG", "true_start": 1, "true_end": 4,
            "pred_type": "LOC", "pred_start": 3, "pred_end": 4, "text": "Oslo",
            "sentence": "the Bank of Oslo",
        },
        {
            "row": 1, "kind": "spurious", "true_type": None, "true_start": None,
            "true_end": None, "pred_type": "LOC", "pred_start": 1, "pred_end": 2,
            "text": "rains", "sentence": "it rains",
        },
    ]  # fmt: skip
    assert len(span_errors(true, true)) == 0
    with pytest.raises(ValueError, match="X and y_true differ"):
        span_errors(true, pred, X[:1])


def test_errors_without_pandas(without):
    without("pandas")
    assert span_errors([["B-A"]], [["O"]]) == [
        {
            "row": 0, "kind": "missed", "true_type": "A", "true_start": 0, "true_end": 1,
            "pred_type": None, "pred_start": None, "pred_end": None,
        }
    ]  # fmt: skip


tags = st.lists(st.sampled_from(["O", "B-A", "I-A", "B-B", "I-B"]), min_size=6, max_size=6)


@settings(max_examples=60, deadline=None)
@given(st.lists(tags, min_size=1, max_size=3), st.data())
def test_every_span_is_right_or_in_one_error(true, data):
    pred = data.draw(st.lists(tags, min_size=len(true), max_size=len(true)))
    found = span_errors(true, pred, scheme="iob2")
    for i, (a, b) in enumerate(zip(true, pred, strict=True)):
        there, guessed = set(get_spans(a, "iob2")), set(get_spans(b, "iob2"))
        rows = found[found.row == i]
        mine = {
            side: [
                (r[f"{side}_type"], r[f"{side}_start"], r[f"{side}_end"])
                for _, r in rows.iterrows()
                if pd.notna(r[f"{side}_start"])
            ]
            for side in ("true", "pred")
        }
        assert Counter(mine["true"]) == Counter(there - guessed)
        assert Counter(mine["pred"]) == Counter(guessed - there)
    plot = SpanConfusionDisplay.from_predictions(true, pred, scheme="iob2")
    n_true = sum(len(get_spans(row, "iob2")) for row in true)
    n_pred = sum(len(get_spans(row, "iob2")) for row in pred)
    assert plot.counts[:-1].sum() == n_true
    assert plot.counts[:, :-1].sum() == n_pred
    hits = sum(
        len(set(get_spans(a, "iob2")) & set(get_spans(b, "iob2")))
        for a, b in zip(true, pred, strict=True)
    )
    boundary = (found.kind == "boundary").sum() if len(found) else 0
    assert np.trace(plot.counts[:-1, :-1]) == hits + boundary
    pytest.importorskip("matplotlib").pyplot.close(plot.figure_)


def test_tags_are_shown(capsys, terminal):
    X, y = [["<b>", "Lee", "in", "Rome"], []], [["B-PER", "I-PER", "O", "B-LOC"], []]
    shown = show_tags(X, y)
    assert str(shown) == repr(shown) == "[<b> Lee PER] in [Rome LOC]\n"
    page = shown._repr_html_()
    assert "<b> Lee" not in page
    assert "&lt;b&gt; Lee" in page
    assert page.count("<mark") == 2
    terminal()
    assert str(shown).count("\x1b[0m") == 2
    assert str(show_tags(X[0], y[0])).endswith("LOC]\x1b[0m")
    with pytest.raises(ValueError, match="one tag for each token"):
        show_tags(X, [["O"], []])
    with pytest.raises(TypeError, match=r"^tags\[0\]\[1\] is 1"):
        show_tags(X[:1], [["O", 1, "O", "O"]])


def test_printed_errors_show_what_is_wrong_in_80_columns():
    pd = pytest.importorskip("pandas")
    X = [
        ("The quick brown fox and a long sentence of many words about " + "Ann Lee of Rome").split()
    ]
    true = [["O"] * 12 + ["B-PER", "I-PER", "O", "B-LOC"]]
    found = [["O"] * 12 + ["B-LOC", "I-LOC", "O", "O"]]
    with pd.option_context("display.width", 80, "display.max_columns", 0):
        shown = str(span_errors(true, found, X).head())
    top = shown.splitlines()[:3]
    assert max(map(len, top)) <= 80
    for word in ("kind", "text"):
        assert word in top[0]
    assert "Ann Lee" in top[1]
    assert "type" in top[1]
    assert "missed" in top[2]
