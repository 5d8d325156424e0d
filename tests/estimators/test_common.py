"""Checks over every estimator: scikit-learn's, imbalanced-learn's, and ours for text.

Estimators that take tables of numbers pass all checks of scikit-learn; samplers of tables all of
imbalanced-learn's too. Of the estimators that take text, scikit-learn checks what needs no data;
the rest of its checks feed numbers, and stand below again for text. No failure is expected.
"""

from __future__ import annotations

import inspect
import pickle
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
import sklearn.utils.estimator_checks as sklearn_checks
import torch
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.exceptions import NotFittedError, UnsetMetadataPassedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import skdice
import skdice.resampling
from skdice import (
    BiasTunedClassifier,
    DiceClassifier,
)
from skdice.model_selection import LossSearchCV
from skdice.resampling import (
    BackgroundUnderSampler,
    EntityReplacement,
    TagOverSampler,
)
from skdice.text import Entity
from tests.data import (
    PAIRS,
    SENTENCES,
    TAGS,
)
from tests.estimators.every import TEXT_ESTIMATORS

# By name of the check, with the reason; empty, and to be kept so.
EXPECTED_FAILURES: dict[str, dict[str, str]] = {}

# One loss that is a mean over examples, and one that counts over the batch. What differs by loss is
# tested at the loss, in tests/losses.
LOSSES = ("ce", "dsc")

TABLES = [
    # As few epochs as the checks of accuracy allow.
    *(DiceClassifier(loss=loss, max_epochs=4, lr=0.1) for loss in LOSSES),
    BiasTunedClassifier(LogisticRegression(), cv=2),
    BiasTunedClassifier(LogisticRegression(), cv=0.3, random_state=0),
]


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(
    TABLES,
    expected_failed_checks=lambda estimator: EXPECTED_FAILURES.get(type(estimator).__name__, {}),
)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


# ---- text


# Rows that differ, so that another draw is another result.
MANY = [[*tokens, f"word{i}"] for i, tokens in enumerate(SENTENCES)]
MANY_TAGS = [[*tags, "O"] for tags in TAGS]
MANY_PAIRS = [(f"{a} rome {i}", f"{b} rome") for i, (a, b) in enumerate(PAIRS)]
MANY_LABELS = [1, 0, 0] * 4
PEOPLE = {"LOC": ["x", "y"], "ORG": ["z w"], "PER": ["v"]}
PLACES = {"P": ["rome", "paris", "oslo"]}
SENTENCE_SAMPLERS: dict[str, tuple[Any, Any, Any]] = {
    "TagOverSampler": (TagOverSampler(random_state=0), MANY, MANY_TAGS),
    "BackgroundUnderSampler": (
        BackgroundUnderSampler(sampling_strategy=0.45, random_state=0),
        MANY,
        MANY_TAGS,
    ),
    "EntityReplacement": (EntityReplacement(gazetteer=PEOPLE, random_state=0), MANY, MANY_TAGS),
    "EntityReplacement texts": (
        EntityReplacement(gazetteer=PLACES, random_state=0),
        MANY_PAIRS,
        MANY_LABELS,
    ),
}
# Checks of scikit-learn that need no data, or whose data an estimator of text may refuse.
WITHOUT_DATA = [
    "check_do_not_raise_errors_in_init_or_set_params",
    "check_estimator_cloneable",
    "check_estimator_repr",
    "check_estimator_sparse_array",
    "check_estimator_sparse_matrix",
    "check_estimator_sparse_tag",
    "check_estimator_tags_renamed",
    "check_estimators_unfitted",
    "check_get_params_invariance",
    "check_mixin_order",
    "check_no_attributes_set_in_init",
    "check_param_validation",
    "check_parameters_default_constructible",
    "check_set_params",
    "check_transformers_unfitted",
    "check_valid_tag_types",
]


def test_no_estimator_is_left_out():
    here = {type(e).__name__ for e in TABLES}
    here |= {type(make("x")).__name__ for make, _, _ in TEXT_ESTIMATORS.values()}
    here |= {type(sampler).__name__ for sampler, _, _ in SENTENCE_SAMPLERS.values()}
    public = {
        name
        for module in (skdice, skdice.resampling)
        for name in module.__all__
        if inspect.isclass(getattr(module, name)) and hasattr(getattr(module, name), "fit")
    }
    assert public == here & public


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("check", WITHOUT_DATA)
@pytest.mark.parametrize(
    "name",
    [
        *("sequence", "token", "reader", "mrc tagger", "features", "tuned token"),
        *list(SENTENCE_SAMPLERS)[:3],
    ],
)
def test_scikit_learns_checks_without_data(name, check, tiny_backbone):
    if name in SENTENCE_SAMPLERS:
        estimator = SENTENCE_SAMPLERS[name][0]
    else:
        estimator = TEXT_ESTIMATORS[name][0](tiny_backbone)
    getattr(sklearn_checks, check)(type(estimator).__name__, clone(estimator))


@pytest.fixture(params=TEXT_ESTIMATORS)
def case(request, tiny_backbone):
    make, X, y = TEXT_ESTIMATORS[request.param]
    return make(tiny_backbone), X, y


def outputs(estimator, X):
    """Every output of a fitted estimator, as flat rows."""
    methods = ("predict", "predict_proba", "decision_function", "transform")
    found = {}
    for method in methods:
        if hasattr(estimator, method):
            rows = getattr(estimator, method)(X)
            found[method] = [np.asarray(_without_score(row)) for row in rows]
    return found


def _without_score(row):
    """Entities without their probabilities, which differ in the last digits."""
    has_entities = isinstance(row, list) and row and isinstance(row[0], Entity)
    return [e[:3] + e[4:] for e in row] if has_entities else row


def assert_equal_outputs(a, b, atol=0.0):
    assert a.keys() == b.keys()
    for method in a:
        assert len(a[method]) == len(b[method])
        for left, right in zip(a[method], b[method], strict=True):
            if left.dtype.kind == "f":
                np.testing.assert_allclose(left, right, rtol=0, atol=atol)
            else:
                np.testing.assert_array_equal(left, right)


def test_fit_returns_self_and_sets_attributes_only_then(case):
    estimator, X, y = case
    params = estimator.get_params()
    assert set(vars(estimator)) == set(inspect.signature(type(estimator)).parameters)
    for method in ("predict", "predict_proba", "decision_function", "transform"):
        if hasattr(estimator, method):
            with pytest.raises(NotFittedError):
                getattr(estimator, method)(X)
    assert estimator.fit(X, y) is estimator
    after = estimator.get_params()
    assert all(after[name] is value for name, value in params.items())
    new = set(vars(estimator)) - set(inspect.signature(type(estimator)).parameters)
    assert all(name.endswith("_") or name.startswith("_") for name in new)


def test_fit_is_idempotent_and_a_clone_gives_the_same(case):
    estimator, X, y = case
    first = outputs(estimator.fit(X, y), X)
    assert_equal_outputs(first, outputs(estimator.fit(X, y), X))
    copy = clone(estimator)
    assert not any(name.endswith("_") for name in vars(copy))
    assert_equal_outputs(first, outputs(copy.fit(X, y), X))


@pytest.fixture(scope="module", params=TEXT_ESTIMATORS)
def fitted(request, tiny_backbone):
    """A fitted estimator, X and its outputs for X."""
    make, X, y = TEXT_ESTIMATORS[request.param]
    estimator = make(tiny_backbone).fit(X, y)
    return estimator, X, outputs(estimator, X)


def test_pickle_keeps_outputs(fitted):
    estimator, X, expected = fitted
    assert_equal_outputs(expected, outputs(pickle.loads(pickle.dumps(estimator)), X))


def test_the_callers_data_and_generators_stay_as_they_were(case):
    estimator, X, y = case
    before = pickle.dumps((X, y))
    np.random.seed(7)
    torch.manual_seed(7)
    expected = np.random.RandomState(7).rand(), torch.rand(1)
    torch.manual_seed(7)
    outputs(estimator.fit(X, y), X)
    assert (np.random.rand(), torch.rand(1)) == expected
    assert pickle.dumps((X, y)) == before


def test_subsets_and_order_make_no_difference(fitted):
    estimator, X, whole = fitted
    order = np.random.default_rng(0).permutation(len(X))
    shuffled = outputs(estimator, [X[i] for i in order])
    assert_equal_outputs({m: [rows[i] for i in order] for m, rows in whole.items()}, shuffled, 1e-5)
    alone = [outputs(estimator, [row]) for row in X[:4]]
    joined = {method: [part[method][0] for part in alone] for method in whole}
    assert_equal_outputs({m: rows[:4] for m, rows in whole.items()}, joined, 1e-5)


def test_input_kinds_make_no_difference(case):
    estimator, X, y = case
    ragged = isinstance(X[0], list)
    objects = np.empty(len(X), dtype=object)
    objects[:] = X
    kinds = [X, objects, pd.Series(X), tuple(X)]
    if not isinstance(X[0], tuple):
        kinds += [pl.Series(X), pa.array(X), pa.chunked_array([X[:1], X[1:]])]
    if not ragged:
        kinds += [np.array(X), np.array(X, dtype=object).reshape(len(X), -1), pd.DataFrame(X)]
        kinds += [pl.DataFrame(pd.DataFrame(X))]
    if "BiasTuned" in type(estimator).__name__:  # which hands X on
        kinds = kinds[:3]
    expected = outputs(clone(estimator).fit(X, y), X)
    for kind in kinds[1:]:
        labels = y
        if y is not None and isinstance(kind, (pd.Series, pd.DataFrame)):
            labels = pd.Series(list(y))
        elif y is not None and isinstance(kind, (pl.Series, pa.Array)) and isinstance(y[0], str):
            labels = pl.Series(y) if isinstance(kind, pl.Series) else pa.array(y)
        assert_equal_outputs(expected, outputs(clone(estimator).fit(kind, labels), kind))


def test_methods_leave_the_fitted_state_alone(fitted):
    estimator, X, _ = fitted
    names = set(vars(estimator))
    outputs(estimator, X)
    assert set(vars(estimator)) == names


def test_y_is_required_where_it_is_used_and_x_always(case):
    estimator, X, y = case
    if hasattr(estimator, "predict"):
        with pytest.raises(ValueError, match="requires y to be passed"):
            estimator.fit(X, None)
    with pytest.raises(TypeError, match=r"X( is |=)None"):
        estimator.fit(None, y)


@pytest.fixture(params=SENTENCE_SAMPLERS)
def sampler_case(request):
    return SENTENCE_SAMPLERS[request.param]


def test_samplers_repeat_themselves_and_change_nothing(sampler_case):
    sampler, X, y = sampler_case
    before = pickle.dumps((X, y))
    np.random.seed(7)
    first = sampler.fit_resample(X, y)
    rows = sampler.sample_indices_.copy()
    assert np.random.rand() == np.random.RandomState(7).rand()
    assert pickle.dumps((X, y)) == before
    assert clone(sampler).fit_resample(X, y) == first
    assert sampler.fit_resample(X, y) == first
    np.testing.assert_array_equal(sampler.sample_indices_, rows)
    assert sampler.fit(X, y) is sampler
    assert len(first[0]) == len(first[1]) == len(rows)
    assert pickle.loads(pickle.dumps(sampler)).fit_resample(X, y) == first
    others = [clone(sampler).set_params(random_state=i).fit_resample(X, y) for i in range(1, 6)]
    assert any(other != first for other in others)
    with pytest.raises(ValueError, match=r"12\D+11"):
        sampler.fit_resample(X, y[:-1])
    with pytest.raises((ValueError, TypeError), match="requires y to be passed"):
        sampler.fit_resample(X, None)


class Recorded(LogisticRegression):
    """Says in `seen` which weights came."""

    seen: ClassVar[list[Any]] = []

    def fit(self, X, y, sample_weight=None):
        Recorded.seen.append(None if sample_weight is None else float(np.sum(sample_weight)))
        return super().fit(X, y, sample_weight)


def test_weights_are_routed_to_the_inner_estimator():
    X, y = make_classification(60, random_state=0)
    weights = np.full(60, 2.0)

    def make(inner):
        return BiasTunedClassifier(inner, cv=2)

    with sklearn.config_context(enable_metadata_routing=True):
        Recorded.seen = []
        inner = Recorded().set_fit_request(sample_weight=True)
        asked = make(inner.set_score_request(sample_weight=False))
        asked.fit(X, y, sample_weight=weights)
        assert sorted(Recorded.seen) == [60.0, 60.0, 120.0]
        Recorded.seen = []
        steps = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), asked)
        steps.fit(X, y, sample_weight=weights)
        assert sorted(Recorded.seen) == [60.0, 60.0, 120.0]
        Recorded.seen = []
        make(Recorded().set_fit_request(sample_weight=False)).fit(X, y)
        assert set(Recorded.seen) == {None}
        with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
            make(Recorded()).fit(X, y, sample_weight=weights)
    search = LossSearchCV(Recorded(), {"C": [0.1, 1.0]}, n_trials=1, cv=2, random_state=0)
    for model in (make(Recorded()), search):
        Recorded.seen = []
        model.fit(X, y, sample_weight=weights)
        assert sorted(Recorded.seen) == [60.0, 60.0, 120.0]


def test_groups_go_to_the_splitter():
    X, y = make_classification(60, random_state=0)
    groups = np.repeat(np.arange(6), 10)
    search = LossSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, n_trials=1, cv=GroupKFold(3))
    assert search.fit(X, y, groups=groups).n_splits_ == 3
