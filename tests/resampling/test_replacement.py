"""EntityReplacement: mentions swapped for others of their type."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skdice.datasets import load_town_notes
from skdice.resampling import (
    EntityReplacement,
    TagOverSampler,
)
from skdice.tags.schemes import SCHEMES, get_spans, infer_scheme, to_tags
from tests.resampling.corpus import X_TAGS, Y_TAGS, count_tokens, mentions


@st.composite
def tagged(draw):
    words = st.text("abcde", min_size=1, max_size=3)
    rows = []
    for _ in range(draw(st.integers(2, 6))):
        tokens, spans = [], []
        for _ in range(draw(st.integers(1, 4))):
            kind = draw(st.sampled_from([None, "PER", "LOC"]))
            piece = draw(st.lists(words, min_size=1, max_size=3))
            if kind is not None:
                spans.append((kind, len(tokens), len(tokens) + len(piece)))
            tokens += [*piece, "."]
        rows.append((tokens, spans))
    return rows


@settings(max_examples=60, deadline=None)
@given(tagged(), st.sampled_from([s for s in SCHEMES if s != "plain"]), st.integers(0, 99))
def test_replacement_keeps_the_template(rows, scheme, seed):
    X = [tokens for tokens, _ in rows]
    y = [to_tags(spans, len(tokens), scheme) for tokens, spans in rows]
    gazetteer = {"PER": ["x1", "x2 x3", "x4 x5 x6"], "LOC": [["y1"], ["y2", "y3"]]}
    if len(mentions(y)) < 2:
        return
    sampler = EntityReplacement(gazetteer=gazetteer, random_state=seed)
    X_new, y_new = sampler.fit_resample(X, y)
    read = infer_scheme(y)
    allowed = {"PER": {"x1", "x2 x3", "x4 x5 x6"}, "LOC": {"y1", "y2 y3"}}
    for i, tokens, tags in zip(sampler.sample_indices_, X_new, y_new, strict=True):
        assert len(tokens) == len(tags)
        old, new = get_spans(y[i], read), get_spans(tags, read)
        assert [s[0] for s in old] == [s[0] for s in new]
        outside = [t for t, tag in zip(tokens, tags, strict=True) if tag == "O"]
        assert outside == [t for t, tag in zip(X[i], y[i], strict=True) if tag == "O"]
    for tokens, tags in zip(X_new[len(X) :], y_new[len(X) :], strict=True):
        for kind, start, end in get_spans(tags, read):
            assert " ".join(tokens[start:end]) in allowed[kind]


@pytest.mark.parametrize("ratio", [0.5, 0.7])
def test_replacement_reaches_a_ratio_of_tokens(ratio):
    # "bob" could take anna's place; for "rome" there is no other.
    X = [["anna", "ran"], ["rome", "x"], ["it", "was", "a", "long", "rainy", "day"]]
    y = [["B-PER", "O"], ["B-LOC", "O"], ["O"] * 6]
    sampler = EntityReplacement(
        gazetteer={"PER": ["bob", "anna"]}, sampling_strategy=ratio, random_state=0
    )
    X_new, y_new = sampler.fit_resample(X, y)
    assert all(row == ["bob", "ran"] for row in X_new[3:])
    positive, negative = count_tokens(y_new)
    assert positive >= ratio * negative - 1e-9


def test_replacement_from_the_training_tags():
    sampler = EntityReplacement(sampling_strategy={"PER": 10}, random_state=0)
    X, y = sampler.fit_resample(X_TAGS, Y_TAGS)
    assert (X[:6], y[:6]) == (X_TAGS, Y_TAGS)
    assert sampler.gazetteer_["PER"] == [("anna",), ("bob",), ("carla",)]
    new = X[6:]
    assert len(new) >= 3
    assert all(row not in X_TAGS for row in new)
    assert mentions(y)["PER"] >= 10
    with pytest.raises(ValueError, match="no sentence can be drawn for the type 'ORG'"):
        EntityReplacement(sampling_strategy={"ORG": 3}).fit_resample(
            [["acme"], ["bob"], ["dan"]], [["B-ORG"], ["B-PER"], ["B-PER"]]
        )


def test_replacement_in_pairs_and_texts():
    cities = {"CITY": ["Rome", "New York", "Oslo"]}
    X = [("Is rome far from Oslo?", "How far is Rome, from OSLO?"), ("Yes.", "No."), ("A", "B")]
    swap = EntityReplacement(gazetteer=cities, random_state=0, sampling_strategy={1: 30})
    X_new, y_new = swap.fit_resample(X, [1, 0, 0])
    assert Counter(y_new) == {1: 30, 0: 2}
    for left, right in X_new[3:]:
        a, b = re.fullmatch(r"Is (.+) far from (.+)\?", left).groups()
        c, d = re.fullmatch(r"How far is (.+), from (.+)\?", right).groups()
        assert (a, b) == (c, d)
        assert a.lower() != "rome"
        assert b.lower() != "oslo"
    texts = pd.Series(["to Oslo", "to nowhere", "home"])
    X_new, y_new = EntityReplacement(gazetteer=cities, random_state=0).fit_resample(
        texts, pd.Series(["a", "b", "b"])
    )
    assert X_new.iloc[3] in ("to Rome", "to New York")
    assert y_new.tolist() == ["a", "b", "b", "a"]
    frame = pd.DataFrame({"q": ["to Oslo", "no", "home"], "r": ["Oslo!", "no", "home"]})
    X_new, _ = EntityReplacement(gazetteer=cities, random_state=0).fit_resample(frame, [1, 0, 0])
    assert X_new.iloc[3].tolist() in (["to Rome", "Rome!"], ["to New York", "New York!"])
    with pytest.raises(ValueError, match="no text of class 1 holds a mention"):
        EntityReplacement(gazetteer=cities).fit_resample(["a", "b Rome", "c"], [1, 0, 0])
    with pytest.raises(ValueError, match="gazetteer='tags' needs y to hold tags"):
        EntityReplacement().fit_resample(["a", "b", "c"], [1, 0, 0])
    with pytest.raises(ValueError, match=r"gazetteer\['CITY'\]='Rome'"):
        EntityReplacement(gazetteer={"CITY": "Rome"}).fit_resample(["a", "b", "c"], [1, 0, 0])


def test_replacement_with_a_fitted_tagger(sentences):
    class Capitals:
        """Stands for a fitted tagger: every capitalised word is a name."""

        scheme_ = "iob2"

        def predict(self, X):
            return [["B-PER" if t[0].isupper() else "O" for t in row] for row in X]

    swap = EntityReplacement(gazetteer=Capitals(), random_state=0)
    X, _ = swap.fit_resample(["met Ann", "met Bob", "met Cy", "rain"], [0, 0, 0, 1][::-1])
    assert swap.gazetteer_ == {"PER": [("Ann",), ("Bob",), ("Cy",)]}
    assert set(X[4:]) <= {"met Bob", "met Cy"}
    assert (
        X_TAGS[0]
        not in EntityReplacement(
            gazetteer=Capitals(), random_state=0, sampling_strategy={"PER": 8}
        ).fit_resample([[t.title() for t in row] for row in X_TAGS], Y_TAGS)[0]
    )


def test_names_with_punctuation_stay_as_they_are_spelt():
    names = ["Bob", "O'Neill", "Jean-Luc", "U.S.", ["St.", "John"]]
    swap = EntityReplacement(gazetteer={"X": names}, random_state=0, sampling_strategy={1: 40})
    X, _ = swap.fit_resample(["Is Bob old?", "Did O'Neill, or Jean-Luc, go?", "No"], [1, 1, 0])
    spelt = ["Bob", "O'Neill", "Jean-Luc", "U.S.", "St. John"]
    some = "|".join(map(re.escape, spelt))
    found = {
        name
        for text in X[3:]
        for name in re.fullmatch(
            rf"Is ({some}) old\?|Did ({some}), or ({some}), go\?", text
        ).groups()
    }
    assert found == {None, *spelt}
    assert swap.gazetteer_["X"][1:] == [
        ("O", "'", "Neill"),
        ("Jean", "-", "Luc"),
        ("U", ".", "S", "."),
        ("St", ".", "John"),
    ]

    class Hyphens:
        """Stands for a fitted tagger: what a hyphen joins is a name."""

        scheme_ = "iob2"

        def predict(self, X):
            return [["B-P", "I-P", "I-P", "O"] if "-" in row else ["O"] * len(row) for row in X]

    swap = EntityReplacement(gazetteer=Hyphens(), random_state=0, sampling_strategy={1: 9})
    X, _ = swap.fit_resample(["Jean-Luc ran", "Ann-Marie ran", "no"], [1, 1, 0])
    assert set(X[3:]) == {"Jean-Luc ran", "Ann-Marie ran"}
    assert swap.gazetteer_ == {"P": [("Jean", "-", "Luc"), ("Ann", "-", "Marie")]}
    for empty in ("", " ", []):
        with pytest.raises(ValueError, match="non-empty mentions"):
            EntityReplacement(gazetteer={"X": ["Bob", empty]}).fit_resample(["Bob", "a"], [0, 1])


def test_the_background_is_no_type_of_plain_tags():
    X = [["Ann", "never", "sleeps"], ["Rome", "is", "old"]]
    y = [["PER", "O", "O"], ["LOC", "O", "O"]]
    assert TagOverSampler(random_state=0).fit_resample(X, y) == (X, y)
    gazetteer = {"PER": ["Bob"], "LOC": ["New York"], "O": ["always"]}
    swap = EntityReplacement(
        gazetteer=gazetteer, random_state=0, sampling_strategy={"PER": 3, "LOC": 3}
    )
    X_new, y_new = swap.fit_resample(X, y)
    expected = [(["New", "York", "is", "old"], ["LOC", "LOC", "O", "O"])] * 2
    expected += [(["Bob", "never", "sleeps"], ["PER", "O", "O"])] * 2
    assert list(zip(X_new[2:], y_new[2:], strict=True)) == expected


def test_gazetteer_of_the_shipped_corpus():
    X, y = load_town_notes(subset="train")
    sampler = EntityReplacement(random_state=0)
    _, y_new = sampler.fit_resample(X, y)
    assert sum(map(len, sampler.gazetteer_.values())) > 50
    counts = mentions(y_new)
    assert min(counts.values()) >= max(mentions(y).values())


@pytest.mark.parametrize("dtype", ["object", "str", "category"])
def test_replacement_in_frames_of_every_kind(dtype):
    texts, labels = ["anna sings", "it rains", "the bus"], ["a", "b", "b"]
    sampler = EntityReplacement(gazetteer={"P": ["anna", "bob"]}, random_state=0)
    for X in (
        pd.Series(texts, dtype=dtype, name="text", index=[5, 6, 7]),
        pd.DataFrame({"text": pd.Series(texts, dtype=dtype)}),
    ):
        X_new, y_new = sampler.fit_resample(X, labels)
        assert type(X_new) is type(X)
        rows = X_new.to_numpy().ravel().tolist()
        assert rows == [*texts, "bob sings"]
        assert list(y_new) == [*labels, "a"]
        assert X_new.index.tolist() == [0, 1, 2, 3]


def test_other_containers_grow_into_lists():
    gazetteer = {"PER": ["Ann", "Bo"]}
    X, y = ["Ann rests", "it rains", "it is late"], [1, 0, 0]
    expected = EntityReplacement(gazetteer=gazetteer, random_state=0).fit_resample(X, y)
    for kind in (pl.Series, pa.array):
        rows, labels = EntityReplacement(gazetteer=gazetteer, random_state=0).fit_resample(
            kind(X), kind(y)
        )
        assert rows == expected[0]
        assert np.array(labels).tolist() == expected[1]


@pytest.mark.parametrize("odd", [memoryview(b"abc"), b"abc", "abc", {"a", "b", "c"}, iter("abc")])
def test_rows_that_are_none_are_refused(odd):
    for X, y in ((odd, ["a", "b", "a"]), (["x", "y", "z"], odd)):
        with pytest.raises((TypeError, ValueError)):
            EntityReplacement().fit_resample(X, y)
