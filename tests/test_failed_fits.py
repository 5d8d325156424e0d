"""A fit that fails leaves an estimator as it was: what was fitted stays, what was not stays so.

Every public estimator and sampler is found by introspection.
"""

from __future__ import annotations

import inspect
import sys
import warnings
from pathlib import Path

import joblib
import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import FeatureUnion

import skdice
import skdice.model_selection
import skdice.resampling
from skdice import DiceClassifier, DiceTokenClassifier
from skdice.resampling.tags import TagSampler
from tests.data import ANSWERS, ENTITIES, JOINED, QUESTIONS, SENTENCES, TAGS, TEXTS
from tests.fits import never_fitted

PACKAGE = str(Path(skdice.__file__).parent)
CLASSES = {
    name: found
    for module in (skdice, skdice.model_selection, skdice.resampling)
    for name in module.__all__
    if inspect.isclass(found := getattr(module, name)) and hasattr(found, "fit")
}

NUMBERS = np.random.default_rng(0).normal(size=(12, 3))
Y = np.array([1, 0, 0, 0] * 3)


class BoomError(Exception):
    """An error in the middle of a fit."""


def make(name, backbone):
    """A small unfitted estimator of the class, X and y."""
    cls = CLASSES[name]
    small = {"backbone": backbone, "max_epochs": 2, "batch_size": 4, "random_state": 0, "cv": 2}
    small |= {
        "n_trials": 2,
        "param_distributions": {"loss": ["ce", "dice"]},
        "error_score": "raise",
    }
    small |= {"gazetteer": {"P": ["win", "lunch", "bus"]}} if name == "EntityReplacement" else {}
    inner = DiceClassifier(max_epochs=2, random_state=0)
    if "Tagger" in name:
        small["cv"] = 0.5
        inner = DiceTokenClassifier(backbone=backbone, max_epochs=1, random_state=0)
    names = inspect.signature(cls).parameters
    given = {key: value for key, value in small.items() if key in names}
    model = cls(inner, **given) if "estimator" in names else cls(**given)
    task = getattr(getattr(model, "task", None), "name", "")
    if isinstance(model, TagSampler) and name != "EntityReplacement":
        return model, SENTENCES, TAGS
    if task in ("qa", "multi-span-qa"):
        return model, QUESTIONS, ANSWERS
    if task == "entities":
        return model, JOINED, ENTITIES
    if task in ("tagging", "mrc-ner"):
        return model, SENTENCES, TAGS
    texts = "backbone" in names or name.startswith(("Text", "Tfidf")) or name == "EntityReplacement"
    return model, TEXTS if texts else NUMBERS, Y


def methods(model):
    return [name for name in ("fit", "fit_resample") if hasattr(model, name)]


def state(model):
    """Everything that `model` holds but its parameters: the objects, and the weights in them."""
    names = inspect.signature(type(model)).parameters
    fitted = {key: value for key, value in vars(model).items() if key not in names}
    net = fitted.get("net_")
    weights = {} if net is None else net.module_.state_dict()
    kinds = (np.ndarray, dict, LogisticRegression, FeatureUnion)
    arrays = {key: value for key, value in fitted.items() if isinstance(value, kinds)}
    fingerprint = joblib.hash([{k: v.numpy() for k, v in weights.items()}, list(arrays.items())])
    return fitted, fingerprint


def assert_same(before, model):
    after = state(model)
    assert after[0].keys() == before[0].keys()
    assert all(after[0][key] is value for key, value in before[0].items())
    assert after[1] == before[1]


def call(model, method, *data):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return getattr(model, method)(*data)


@pytest.fixture(params=["fresh", "fitted"])
def history(request):
    return request.param


def prepared(name, backbone, history):
    model, X, y = make(name, backbone)
    if history == "fitted":
        call(model, methods(model)[-1], X, y)
    return model, X, y


@pytest.mark.parametrize("name", CLASSES)
def test_bad_data(name, history, tiny_backbone):
    model, X, y = prepared(name, tiny_backbone, history)
    before = state(model)
    shorter = [(X, list(y)[:-1]), (list(X)[:-1], y)] if name != "TransformerFeatures" else []
    mixed = [X[0], 5, *X[2:]]
    for method in methods(model):
        for data in [(object(), y), (None, y), ([], []), (mixed, y), *shorter]:
            with pytest.raises((ValueError, TypeError)):
                call(model, method, *data)
            assert_same(before, model)


@pytest.mark.parametrize("name", CLASSES)
def test_bad_parameters(name, tiny_backbone):
    model, X, y = prepared(name, tiny_backbone, "fitted")
    before, refused = state(model), []
    good = model.get_params(deep=False)
    for key, value in good.items():
        model.set_params(**{key: object()})
        for method in methods(model):
            try:
                call(model, method, X, y)
            except (ValueError, TypeError):
                refused.append(key)
                assert_same(before, model)
            else:  # this value is allowed
                before = state(model)
        model.set_params(**{key: value})
    assert len(set(refused)) >= len(good) - 2


def calls_of_ours(run, stop_at=None):
    """Run a function and count its calls of functions of skdice; raise in one of them."""
    n_calls, ours = 0, {}

    def profile(frame, event, argument):
        nonlocal n_calls
        if event != "call":
            return
        code = frame.f_code
        if id(code) not in ours:
            # An error in a generator expression may be raised while it is deleted.
            ours[id(code)] = code.co_filename.startswith(PACKAGE) and code.co_name[0] != "<"
        if ours[id(code)]:
            n_calls += 1
            if n_calls == stop_at:
                raise BoomError

    sys.setprofile(profile)
    try:
        run()
    finally:
        sys.setprofile(None)
    return n_calls


@pytest.mark.parametrize("name", CLASSES)
def test_an_error_in_the_middle(name, tiny_backbone):
    blank, X, y = make(name, tiny_backbone)
    if "max_epochs" in blank.get_params(deep=False):
        blank.set_params(max_epochs=1)
    for method in methods(blank):
        model, stopped = clone(blank), 0
        # The first is counted, and what it fits is there when the others are stopped.
        n_calls = calls_of_ours(lambda: call(model, method, X, y))  # noqa: B023
        assert n_calls > 3
        stops = np.unique(np.linspace(2, 0.95 * n_calls, 4).astype(int))  # not the very last
        for stopped_one, stop_at in [*((model, n) for n in stops), (clone(blank), n_calls // 2)]:
            before = state(stopped_one)
            try:
                calls_of_ours(lambda: call(stopped_one, method, X, y), stop_at)  # noqa: B023
            except (BoomError, ValueError) as error:
                # An error while a backbone is read has become the cause of one that explains it.
                stopped += isinstance(error.__cause__ or error, BoomError)
                assert_same(before, stopped_one)
        assert stopped > 1


@pytest.mark.parametrize("name", [name for name in CLASSES if "BiasTuned" in name])
def test_a_tuned_decision_is_refused_before_anything_is_fitted(name, tiny_backbone):
    model, X, y = make(name, tiny_backbone)
    inner = model.estimator
    model.set_params(estimator=never_fitted(type(inner))(**inner.get_params(deep=False)))
    cases = [
        ({}, {"X_val": X[:4]}),
        ({}, {"y_val": y[:4]}),
        ({}, {"X_val": X[:4], "y_val": y[:3]}),
        ({}, {"X_val": X[:4], "y_val": [None] * 4}),
        ({"cv": 1}, {}),
        ({"cv": object()}, {}),
        ({"cv": [([0], [1])]}, {}),
        ({"bias": "both"}, {}),
    ]
    if name == "BiasTunedClassifier":
        cases += [
            ({}, {"X_val": X[:4, :2], "y_val": y[:4]}),
            ({}, {"X_val": X[:4], "y_val": ["0", "1", "0", "1"]}),
            ({"pos_label": 7}, {}),
            ({"pos_label": "1"}, {}),
            ({"scoring": "f2"}, {}),
        ]
        with pytest.raises(ValueError, match="two classes"):
            clone(model).set_params(scoring="f1").fit(X, [0, 1, 2] * 4)
    for params, held in cases:
        with pytest.raises((ValueError, TypeError)):
            clone(model).set_params(**params).fit(X, y, **held)


def test_an_interrupted_tuning_leaves_the_old_decision(tiny_backbone):
    model, X, y = make("BiasTunedClassifier", tiny_backbone)
    model.fit(X, y)
    before = state(model)

    def interrupted(truth, predicted):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        model.set_params(scoring=interrupted).fit(X, y)
    assert_same(before, model)
    assert torch.is_tensor(next(model.estimator_.net_.module_.parameters()))
