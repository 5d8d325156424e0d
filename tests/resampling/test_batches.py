"""Samplers inside estimators."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from imblearn import FunctionSampler
from imblearn.combine import SMOTEENN
from imblearn.over_sampling import SMOTE, RandomOverSampler
from imblearn.pipeline import make_pipeline
from imblearn.under_sampling import NearMiss, RandomUnderSampler
from sklearn.base import BaseEstimator

from skdice import DiceSequenceClassifier, DiceTokenClassifier
from skdice.resampling import EntityReplacement, TagOverSampler
from skdice.resampling.drawing import draw_rows
from tests.fits import Tells
from tests.resampling.corpus import TEXTS, Y

HELD = dict(max_epochs=1, early_stopping=True, validation_fraction=0.4, random_state=0)


@pytest.mark.parametrize("sampler", [SMOTE(), SMOTEENN(), NearMiss(), EntityReplacement()])
def test_only_samplers_that_draw_rows(sampler, tiny_backbone):
    with pytest.raises(ValueError, match="here rows can only be drawn"):
        DiceSequenceClassifier(backbone=tiny_backbone, sampler=sampler).fit(TEXTS, Y)
    with pytest.raises(ValueError, match="'sampler' parameter"):
        DiceSequenceClassifier(backbone=tiny_backbone, sampler="over").fit(TEXTS, Y)


class Seen:
    """The rows of each call of `encode`: those of the training, then those of the validation."""

    def __init__(self, model):
        self.calls = calls = []

        class Noted(type(model.task)):
            def encode(self, estimator, rows, *args):
                calls.append(list(rows))
                return super().encode(estimator, rows, *args)

        model.task = Noted()


@pytest.mark.parametrize("route", ["sampler", "pipeline"])
def test_validation_never_holds_a_resampled_duplicate(route, tiny_backbone):
    classifier = DiceSequenceClassifier(backbone=tiny_backbone, **HELD)
    seen = Seen(classifier)
    if route == "sampler":
        classifier.set_params(sampler=RandomOverSampler()).fit(TEXTS * 2, np.tile(Y, 2))
    else:
        column = np.reshape(TEXTS * 2, (-1, 1))
        make_pipeline(RandomOverSampler(random_state=0), classifier).fit(column, np.tile(Y, 2))
    training, validation = seen.calls[0], seen.calls[1]
    assert not set(training) & set(validation)
    assert len(validation) == len(set(validation)) == 4
    assert len(training) > len(set(training))


def test_validation_of_taggers_and_tables(tiny_backbone, sentences, monkeypatch):
    from skdice import DiceClassifier
    from skdice.engine import fit_plan as module

    X, y = sentences  # every sentence stands there twice
    tagger = DiceTokenClassifier(backbone=tiny_backbone, sampler=TagOverSampler(), **HELD)
    seen = Seen(tagger)
    tagger.fit(X, y)
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


def test_a_sampler_inside_an_estimator_changes_what_it_trains_on(tiny_backbone):
    targets = []
    tells = Tells(before=lambda net, batch: targets.append(batch.target.numpy()))
    settings = dict(loss="weighted_ce", max_epochs=2, batch_size=4, random_state=0)
    settings |= dict(sampler=RandomUnderSampler(), callbacks=[tells])
    classifier = DiceSequenceClassifier(backbone=tiny_backbone, **settings).fit(TEXTS, Y)
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
    half = FunctionSampler(func=lambda X, y: (X[:12], y[:12]), validate=False)
    for sampler in (Half(), half):
        model = DiceSequenceClassifier(backbone=tiny_backbone, max_epochs=1, random_state=0)
        assert set(make_pipeline(sampler, model).fit(texts, labels).predict(texts)) <= {"s", "h"}


def test_tagged_sentences_are_not_drawn_by_one_label():
    tags = [["O"], ["B-A", "O"], ["O", "O"]]
    with pytest.raises(ValueError, match=r"RandomUnderSampler\(\).* use TagOverSampler"):
        draw_rows(RandomUnderSampler(), tags, 0)
