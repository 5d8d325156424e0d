"""Samplers: exact counts, and tags that stay with their tokens."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from imblearn import FunctionSampler
from imblearn.combine import SMOTEENN
from imblearn.over_sampling import SMOTE, RandomOverSampler
from imblearn.pipeline import make_pipeline
from imblearn.under_sampling import NearMiss, RandomUnderSampler
from sklearn.base import BaseEstimator
from torch.utils.data import DataLoader

from skdice import DiceSequenceClassifier, DiceTokenClassifier
from skdice.datasets import load_town_notes
from skdice.metrics.schemes import SCHEMES, get_spans, infer_scheme, to_tags
from skdice.resampling import (
    BackgroundUnderSampler,
    BalancedBatchSampler,
    EntityReplacement,
    TagOverSampler,
    TextOverSampler,
    TextUnderSampler,
    build_gazetteer,
    table8_training_sets,
)
from skdice.resampling import make_pipeline as text_pipeline

TEXTS = [f"text {i}" for i in range(10)]
Y = np.array([1, 0, 0, 0, 1, 0, 0, 0, 0, 0])


CONTAINERS = {
    "list": lambda rows: list(rows),
    "array": lambda rows: np.array(rows),
    "column": lambda rows: np.array(rows, dtype=object).reshape(len(rows), -1),
    "series": lambda rows: pd.Series(list(rows), index=range(7, 7 + len(rows)), name="text"),
    "frame": lambda rows: pd.DataFrame({"text": list(rows)}),
}


def rows_of(X):
    X = X.to_numpy() if hasattr(X, "to_numpy") else X
    return [row if isinstance(row, (str, tuple)) else row[0] for row in X]


@pytest.mark.parametrize("kind", CONTAINERS)
@pytest.mark.parametrize("cls", [TextOverSampler, TextUnderSampler])
def test_texts_in_every_container(kind, cls):
    X = CONTAINERS[kind](TEXTS)
    y = pd.Series(Y) if kind in ("series", "frame") else Y
    sampler = cls(random_state=3)
    X_new, y_new = sampler.fit_resample(X, y)
    assert type(X_new) is type(X)
    assert rows_of(X_new) == [TEXTS[i] for i in sampler.sample_indices_]
    np.testing.assert_array_equal(y_new, Y[sampler.sample_indices_])
    assert Counter(y_new) == ({0: 8, 1: 8} if cls is TextOverSampler else {0: 2, 1: 2})
    if kind == "series":
        assert X_new.index.equals(y_new.index)
        assert X_new.name == "text"
    # The very draw of imbalanced-learn's own sampler on a column.
    theirs = (RandomOverSampler if cls is TextOverSampler else RandomUnderSampler)(random_state=3)
    theirs.fit_resample(np.arange(10).reshape(-1, 1), Y)
    np.testing.assert_array_equal(sampler.sample_indices_, theirs.sample_indices_)


def test_pairs_and_exact_counts():
    pairs = [(text, text.upper()) for text in TEXTS]
    X, y = TextOverSampler(sampling_strategy={1: 5}, random_state=0).fit_resample(pairs, Y)
    assert Counter(y) == {0: 8, 1: 5}
    assert all(b == a.upper() for a, b in X)
    table = np.array(pairs)
    X, y = TextUnderSampler(sampling_strategy={0: 3}, random_state=0).fit_resample(table, Y)
    assert Counter(y) == {0: 3, 1: 2}
    assert X.shape == (5, 2)


def test_impossible_strategies_get_imbalanced_learns_words():
    with pytest.raises(ValueError, match=r"Originally, there is 2 samples and 5 .*are asked"):
        TextUnderSampler(sampling_strategy={1: 5}).fit_resample(TEXTS, Y)
    with pytest.raises(ValueError, match="should be greater or equal"):
        TextOverSampler(sampling_strategy={0: 5}).fit_resample(TEXTS, Y)
    with pytest.raises(ValueError, match="TagOverSampler"):
        TextOverSampler().fit_resample([["a"], ["b"]], [["O"], ["O"]])


# ---- tags

X_TAGS = [
    ["anna", "met", "bob"],
    ["in", "new", "york"],
    ["it", "rains"],
    ["bob", "sleeps"],
    ["no", "news", "today", "."],
    ["carla", "works", "at", "acme"],
]
Y_TAGS = [
    ["B-PER", "O", "B-PER"],
    ["O", "B-LOC", "I-LOC"],
    ["O", "O"],
    ["B-PER", "O"],
    ["O", "O", "O", "O"],
    ["B-PER", "O", "O", "B-ORG"],
]


def mentions(y):
    return Counter(s[0] for row in y for s in get_spans(row, infer_scheme(y)))


def test_tag_over_sampler_draws_by_rare_types():
    sampler = TagOverSampler(random_state=0)
    X, y = sampler.fit_resample(X_TAGS, Y_TAGS)
    assert X[:6] == X_TAGS
    assert [X_TAGS[i] for i in sampler.sample_indices_] == X
    # PER, the most frequent with 4, is the target; ORG's sentence brings a PER along.
    assert mentions(y) == {"PER": 7, "ORG": 4, "LOC": 4}
    X, y = TagOverSampler(sampling_strategy={"LOC": 9}, random_state=0).fit_resample(X_TAGS, Y_TAGS)
    assert mentions(y) == {"PER": 4, "ORG": 1, "LOC": 9}


def tokens(y):
    flat = [tag != "O" for row in y for tag in row]
    return sum(flat), len(flat) - sum(flat)


@pytest.mark.parametrize("ratio", [0.7, 0.9])
def test_tag_over_sampler_reaches_a_ratio_of_tokens(ratio):
    sampler = TagOverSampler(sampling_strategy=ratio, random_state=0)
    _, y = sampler.fit_resample(X_TAGS, Y_TAGS)
    positive, negative = tokens(y)
    assert positive >= ratio * negative - 1e-9
    positive, negative = tokens(y[:-1])
    assert positive < ratio * negative


def test_background_under_sampler():
    _, y = BackgroundUnderSampler().fit_resample(X_TAGS, Y_TAGS)
    assert y == [Y_TAGS[i] for i in (0, 1, 3, 5)]
    sampler = BackgroundUnderSampler(sampling_strategy=0.65, random_state=0)
    _, y = sampler.fit_resample(X_TAGS, Y_TAGS)
    positive, negative = tokens(y)
    assert positive >= 0.65 * negative
    assert sampler.sample_indices_.tolist() == sorted(sampler.sample_indices_)
    assert len(y) == 5


@pytest.mark.parametrize("sampler", [TagOverSampler, BackgroundUnderSampler, EntityReplacement])
def test_unaligned_tags_name_the_sentence(sampler):
    with pytest.raises(ValueError, match=r"y\[2\] has 1 tags, but X\[2\] has 2 tokens"):
        sampler().fit_resample(X_TAGS, [*Y_TAGS[:2], ["O"], *Y_TAGS[3:]])
    with pytest.raises(TypeError, match=r"X\[0\] is 'anna'"):
        sampler().fit_resample(["anna"], [["O"]])


def test_impossible_tag_strategies():
    with pytest.raises(ValueError, match="should be greater or equal"):
        TagOverSampler(sampling_strategy={"PER": 1}).fit_resample(X_TAGS, Y_TAGS)
    with pytest.raises(ValueError, match="Please increase the ratio"):
        TagOverSampler(sampling_strategy=0.1).fit_resample(X_TAGS, Y_TAGS)
    with pytest.raises(ValueError, match="Please increase the ratio"):
        BackgroundUnderSampler(sampling_strategy=0.1).fit_resample(X_TAGS, Y_TAGS)
    with pytest.raises(ValueError, match=r"dropping all 2 background sentences, which gives 1\.4"):
        BackgroundUnderSampler(sampling_strategy=3.0).fit_resample(X_TAGS, Y_TAGS)
    with pytest.raises(ValueError, match="the densest that can be has 2 positive tokens"):
        TagOverSampler(sampling_strategy=5.0).fit_resample(X_TAGS, Y_TAGS)
    with pytest.raises(ValueError, match="every tag in y is the background"):
        BackgroundUnderSampler().fit_resample([["a"]], [["O"]])


@pytest.mark.parametrize("sampler", [TagOverSampler, EntityReplacement])
def test_a_list_is_no_strategy_of_an_over_sampler(sampler):
    with pytest.raises(ValueError, match=rf"'sampling_strategy' parameter of {sampler.__name__}"):
        sampler(sampling_strategy=["PER"]).fit_resample(X_TAGS, Y_TAGS)


def test_tag_samplers_keep_containers_and_data():
    X, y = np.empty(6, dtype=object), np.empty(6, dtype=object)
    X[:], y[:] = X_TAGS, Y_TAGS
    np.random.seed(0)
    expected = np.random.RandomState(0).rand()
    X_new, y_new = TagOverSampler(random_state=1).fit_resample(X, y)
    assert X_new.ndim == y_new.ndim == 1
    assert len(X_new) == len(y_new) > 6
    assert np.random.rand() == expected
    series = pd.Series(X_TAGS)
    assert TagOverSampler(random_state=1).fit_resample(series, y)[0].tolist() == X_new.tolist()


def test_tag_samplers_in_an_imblearn_pipeline(tiny_backbone, sentences):
    tagger = DiceTokenClassifier(backbone=tiny_backbone, max_epochs=1, random_state=0)
    for sampler in (TagOverSampler(random_state=0), BackgroundUnderSampler()):
        model = make_pipeline(sampler, tagger).fit(*sentences)
        by_hand = tagger.fit(*sampler.fit_resample(*sentences)).predict(sentences[0])
        assert model.predict(sentences[0]).tolist() == by_hand.tolist()


# ---- entity replacement


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
    positive, negative = tokens(y_new)
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
    with pytest.raises(ValueError, match=r"gazetteer\['CITY'\] = 'Rome'"):
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
        with pytest.raises(ValueError, match="none of them empty"):
            EntityReplacement(gazetteer={"X": ["Bob", empty]}).fit_resample(["Bob", "a"], [0, 1])


def test_the_background_is_no_type_of_plain_tags():
    X = [["Ann", "never", "sleeps"], ["Rome", "is", "old"]]
    y = [["PER", "O", "O"], ["LOC", "O", "O"]]
    assert build_gazetteer(X[:1], y[:1]) == {"PER": [["Ann"]]}
    assert TagOverSampler(random_state=0).fit_resample(X, y) == (X, y)
    gazetteer = {"PER": ["Bob"], "LOC": ["New York"], "O": ["always"]}
    swap = EntityReplacement(
        gazetteer=gazetteer, random_state=0, sampling_strategy={"PER": 3, "LOC": 3}
    )
    X_new, y_new = swap.fit_resample(X, y)
    expected = [(["New", "York", "is", "old"], ["LOC", "LOC", "O", "O"])] * 2
    expected += [(["Bob", "never", "sleeps"], ["PER", "O", "O"])] * 2
    assert list(zip(X_new[2:], y_new[2:], strict=True)) == expected


def test_replacement_with_a_rate():
    gazetteer = {"P": [f"p{i}" for i in range(50)]}
    texts = ["p0 p1 p2 p3", *["rest"] * 401]
    swap = EntityReplacement(gazetteer=gazetteer, rate=0.5, random_state=0)
    X, _ = swap.fit_resample(texts, [1] + [0] * 401)
    kept = [sum(a == b for a, b in zip(x.split(), texts[0].split(), strict=True)) for x in X[402:]]
    assert 1.7 < np.mean(kept) < 2.1
    assert max(kept) == 3  # at least one is swapped


def test_gazetteer_of_the_shipped_corpus():
    X, y = load_town_notes(subset="train")
    gazetteer = build_gazetteer(X, y)
    assert sum(map(len, gazetteer.values())) > 50
    sampler = EntityReplacement(random_state=0)
    _, y_new = sampler.fit_resample(X, y)
    counts = mentions(y_new)
    assert min(counts.values()) >= max(mentions(y).values())


# ---- Table 8


def test_table8_sets_at_the_papers_proportions():
    X = [f"text {i}" for i in range(1000)]
    y = np.array([1] * 370 + [0] * 630)
    sets = table8_training_sets(X, y, random_state=0)
    counts = {name: Counter(labels.tolist()) for name, (_, labels) in sets.items()}
    assert counts == {
        "original": {1: 370, 0: 630},
        "+ positive": {1: 630, 0: 630},
        "+ negative": {1: 370, 0: 1392},
        "- negative": {1: 370, 0: 370},
        "+ positive & negative": {1: 630, 0: 630},
    }
    # 458,477 / 363,871 = 1.26 and 269,165 / 363,871 = 0.74 of the original, and 21 % positives.
    assert len(sets["+ positive"][0]) / 1000 == pytest.approx(458_477 / 363_871, abs=0.002)
    assert len(sets["- negative"][0]) / 1000 == pytest.approx(269_165 / 363_871, abs=0.002)
    assert counts["+ negative"][1] / len(sets["+ negative"][0]) == pytest.approx(0.21, abs=1e-3)
    label = dict(zip(X, y, strict=True))
    for texts, labels in sets.values():
        assert [label[text] for text in texts] == list(labels)


def test_table8_sets_with_entities_and_containers():
    gazetteer = {"CITY": ["rome", "oslo", "paris"]}
    X = pd.DataFrame(
        {"a": [f"to rome {i}" for i in range(20)], "b": [f"rome {i}" for i in range(20)]}
    )
    y = pd.Series([1] * 6 + [0] * 14)
    sets = table8_training_sets(X, y, gazetteer=gazetteer, random_state=0)
    for table, labels in sets.values():
        assert isinstance(table, pd.DataFrame)
        assert len(table) == len(labels)
    both, labels = sets["+ positive & negative"]
    new = both[~both["a"].str.contains("rome")]
    assert set(labels[new.index]) == {0, 1}
    with pytest.raises(ValueError, match="give pos_label=0"):
        table8_training_sets(["a", "b", "c"], [1, 1, 0])
    with pytest.raises(ValueError, match="y holds 3 classes"):
        table8_training_sets(["a", "b", "c"], [1, 2, 0])


# ---- drawn batches


def test_balanced_batches_draw_without_copying():
    y = np.array([0] * 90 + [1] * 10)
    batches = BalancedBatchSampler(RandomUnderSampler(), y, batch_size=8)
    first, second = list(batches), list(batches)
    assert len(batches) == len(first) == 3
    rows = np.concatenate(first)
    assert Counter(y[rows].tolist()) == {0: 10, 1: 10}
    assert set(rows) != set(np.concatenate(second))  # another draw in every pass
    again = list(BalancedBatchSampler(RandomUnderSampler(), y, batch_size=8))
    assert again == first
    loader = DataLoader(list(range(100)), batch_sampler=batches)
    assert sum(len(batch) for batch in loader) == 20
    tags = BalancedBatchSampler(TagOverSampler(), Y_TAGS, batch_size=2)
    assert max(i for batch in tags for i in batch) == 5


def test_the_length_of_drawn_batches_is_that_of_the_coming_pass():
    y = [["B-PER"], ["O"] * 2, ["O"] * 9, ["O"] * 5, ["O"] * 3, ["O"] * 4]
    batches = BalancedBatchSampler(
        BackgroundUnderSampler(sampling_strategy=0.1), y, batch_size=1, random_state=0
    )
    told, found = zip(*((len(batches), len(list(batches))) for _ in range(12)), strict=True)
    assert told == found
    assert len(set(found)) > 1
    again = BalancedBatchSampler(
        BackgroundUnderSampler(sampling_strategy=0.1), y, batch_size=1, random_state=0
    )
    assert tuple(len(list(again)) for _ in range(12)) == found  # asking changes nothing


@pytest.mark.parametrize("batch_size", [2.5, 2.0, True, 0, -1, "8", None])
def test_a_batch_size_is_a_positive_integer(batch_size):
    with pytest.raises(ValueError, match=rf"batch_size={batch_size!r} must be an integer"):
        BalancedBatchSampler(RandomUnderSampler(), Y, batch_size=batch_size)
    assert len(BalancedBatchSampler(RandomUnderSampler(), Y, batch_size=np.int64(2))) == 2


@pytest.mark.parametrize("sampler", [SMOTE(), SMOTEENN(), NearMiss(), EntityReplacement()])
def test_only_samplers_that_draw_rows(sampler, tiny_backbone):
    with pytest.raises(ValueError, match="here rows can only be drawn"):
        BalancedBatchSampler(sampler, Y)
    with pytest.raises(ValueError, match="here rows can only be drawn"):
        DiceSequenceClassifier(backbone=tiny_backbone, sampler=sampler).fit(TEXTS, Y)
    with pytest.raises(ValueError, match="'sampler' parameter"):
        DiceSequenceClassifier(backbone=tiny_backbone, sampler="over").fit(TEXTS, Y)


class Seen:
    """Records the texts that an estimator encodes: first to train, then to validate."""

    def __init__(self, monkeypatch, cls):
        self.calls = []
        encode = cls._encode

        def spy(estimator, rows, *args):
            self.calls.append(list(rows))
            return encode(estimator, rows, *args)

        monkeypatch.setattr(cls, "_encode", spy)


@pytest.mark.parametrize("route", ["sampler", "pipeline"])
def test_validation_never_holds_a_resampled_duplicate(route, tiny_backbone, monkeypatch):
    seen = Seen(monkeypatch, DiceSequenceClassifier)
    classifier = DiceSequenceClassifier(
        backbone=tiny_backbone,
        max_epochs=1,
        early_stopping=True,
        validation_fraction=0.4,
        random_state=0,
    )
    if route == "sampler":
        classifier.set_params(sampler=RandomOverSampler()).fit(TEXTS * 2, np.tile(Y, 2))
    else:
        make_pipeline(TextOverSampler(random_state=0), classifier).fit(TEXTS * 2, np.tile(Y, 2))
    training, validation = seen.calls[0], seen.calls[1]
    assert not set(training) & set(validation)
    assert len(validation) == len(set(validation)) == 4
    assert len(training) > len(set(training))


def test_validation_of_taggers_and_tables(tiny_backbone, sentences, monkeypatch):
    from skdice import DiceClassifier
    from skdice.estimators import classifier as module

    seen = Seen(monkeypatch, DiceTokenClassifier)
    X, y = sentences  # every sentence stands there twice
    DiceTokenClassifier(
        backbone=tiny_backbone,
        max_epochs=1,
        early_stopping=True,
        validation_fraction=0.4,
        random_state=0,
        sampler=TagOverSampler(),
    ).fit(X, y)
    training, validation = (set(map(tuple, rows)) for rows in seen.calls[:2])
    assert not training & validation
    assert len(validation) == len(seen.calls[1]) == 3

    splits = []
    split = module.split_indices
    monkeypatch.setattr(
        module, "split_indices", lambda *a, **k: splits.append(split(*a, **k)) or splits[-1]
    )
    table = np.random.default_rng(0).normal(size=(40, 3))
    labels = np.array([1] * 8 + [0] * 32)
    model = make_pipeline(RandomOverSampler(random_state=0), DiceClassifier(early_stopping=True))
    model.fit(table, labels)
    grown, _ = RandomOverSampler(random_state=0).fit_resample(table, labels)
    train, held = splits[0]
    assert not {r.tobytes() for r in grown[train]} & {r.tobytes() for r in grown[held]}


def test_a_sampler_inside_an_estimator_changes_what_it_trains_on(tiny_backbone, monkeypatch):
    from skdice.engine.net import FineTuningNet

    targets = []
    step = FineTuningNet.train_step

    def spy(self, batch, **kwargs):
        targets.append(batch[0][1].numpy())
        return step(self, batch, **kwargs)

    monkeypatch.setattr(FineTuningNet, "train_step", spy)
    classifier = DiceSequenceClassifier(
        loss="weighted_ce",
        backbone=tiny_backbone,
        max_epochs=2,
        batch_size=4,
        random_state=0,
        sampler=RandomUnderSampler(),
    ).fit(TEXTS, Y)
    assert Counter(np.concatenate(targets).tolist()) == {0: 4, 1: 4}
    assert len(targets) == 2  # an epoch of four rows is one batch
    np.testing.assert_array_equal(classifier.net_.criterion_.class_counts_, [2, 2])
    with pytest.raises(ValueError, match="are asked"):
        classifier.set_params(sampler=RandomUnderSampler(sampling_strategy={1: 5})).fit(TEXTS, Y)


def test_samplers_of_the_users_may_read_text(tiny_backbone):
    class Half(BaseEstimator):
        def fit_resample(self, X, y):
            return X[:12], y[:12]

    texts, labels = ["free money", "lunch today"] * 8, ["s", "h"] * 8
    for sampler in (
        Half(),
        FunctionSampler(func=lambda X, y: (X[:12], y[:12]), validate=False),
    ):
        model = DiceSequenceClassifier(backbone=tiny_backbone, max_epochs=1, random_state=0)
        assert set(text_pipeline(sampler, model).fit(texts, labels).predict(texts)) <= {"s", "h"}
    with pytest.raises(ValueError, match="computes with numbers"):
        text_pipeline(FunctionSampler(), model).fit(texts, labels)


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


def test_batches_of_tagged_sentences_are_not_drawn_by_one_label():
    tags = [["O"], ["B-A", "O"], ["O", "O"]]
    with pytest.raises(ValueError, match=r"RandomUnderSampler\(\).* use TagOverSampler"):
        BalancedBatchSampler(RandomUnderSampler(), tags)
