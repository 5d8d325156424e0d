"""Samplers of tagged sentences."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from imblearn.pipeline import make_pipeline

from skdice import DiceTokenClassifier
from skdice.resampling import (
    BackgroundUnderSampler,
    EntityReplacement,
    TagOverSampler,
)
from tests.resampling.corpus import X_TAGS, Y_TAGS, count_tokens, mentions


def test_tag_over_sampler_draws_by_rare_types():
    sampler = TagOverSampler(random_state=0)
    X, y = sampler.fit_resample(X_TAGS, Y_TAGS)
    assert X[:6] == X_TAGS
    assert [X_TAGS[i] for i in sampler.sample_indices_] == X
    # PER, the most frequent with 4, is the target; ORG's sentence brings a PER along.
    assert mentions(y) == {"PER": 7, "ORG": 4, "LOC": 4}
    X, y = TagOverSampler(sampling_strategy={"LOC": 9}, random_state=0).fit_resample(X_TAGS, Y_TAGS)
    assert mentions(y) == {"PER": 4, "ORG": 1, "LOC": 9}


@pytest.mark.parametrize("ratio", [0.7, 0.9])
def test_tag_over_sampler_reaches_a_ratio_of_tokens(ratio):
    sampler = TagOverSampler(sampling_strategy=ratio, random_state=0)
    _, y = sampler.fit_resample(X_TAGS, Y_TAGS)
    positive, negative = count_tokens(y)
    assert positive >= ratio * negative - 1e-9
    positive, negative = count_tokens(y[:-1])
    assert positive < ratio * negative


def test_background_under_sampler():
    _, y = BackgroundUnderSampler().fit_resample(X_TAGS, Y_TAGS)
    assert y == [Y_TAGS[i] for i in (0, 1, 3, 5)]
    sampler = BackgroundUnderSampler(sampling_strategy=0.65, random_state=0)
    _, y = sampler.fit_resample(X_TAGS, Y_TAGS)
    positive, negative = count_tokens(y)
    assert positive >= 0.65 * negative
    assert sampler.sample_indices_.tolist() == sorted(sampler.sample_indices_)
    assert len(y) == 5


@pytest.mark.parametrize("sampler", [TagOverSampler, BackgroundUnderSampler, EntityReplacement])
def test_unaligned_tags_name_the_sentence(sampler):
    with pytest.raises(ValueError, match=r"y\[2\] has 1 tag, but X\[2\] has 2 tokens"):
        sampler().fit_resample(X_TAGS, [*Y_TAGS[:2], ["O"], *Y_TAGS[3:]])
    with pytest.raises(TypeError, match=r"X\[0\] is 'anna'|y\[0\]\[0\] is 'O', which has no"):
        sampler().fit_resample(["anna"], [["O"]])


def test_impossible_tag_strategies():
    for sampler, strategy, message in (
        (TagOverSampler, {"PER": 1}, "should be greater or equal"),
        (TagOverSampler, 0.1, "Please increase the ratio"),
        (TagOverSampler, 5.0, "the densest that can be has 2 positive tokens"),
        (BackgroundUnderSampler, 0.1, "Please increase the ratio"),
        (BackgroundUnderSampler, 3.0, r"dropping all 2 background sentences, which gives 1\.4"),
    ):
        with pytest.raises(ValueError, match=message):
            sampler(sampling_strategy=strategy).fit_resample(X_TAGS, Y_TAGS)
    with pytest.raises(ValueError, match="every tag in y is 'O'"):
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
