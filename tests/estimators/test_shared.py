"""What holds for every estimator alike: one text for a shared parameter, fits that are values."""

from __future__ import annotations

import dataclasses
import inspect
import pickle
import re
import sys

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict

from skdice import (
    DiceClassifier,
    DiceMRCTagger,
    DiceQuestionAnswerer,
    DiceSequenceClassifier,
    DiceTokenClassifier,
)
from skdice.engine.fit_plan import plan_fit
from skdice.estimators._documented import documented
from skdice.losses import TverskyLoss
from tests.estimators.test_no_rows import KINDS, METHODS
from tests.fits import ROWS_OF


@pytest.fixture
def tiny_backbone(tiny_backbones):
    """One of two layers, of which a fit may freeze one."""
    return tiny_backbones["bert"]


def parameter_texts(cls):
    """From each parameter in the docstring to its text, without type and default."""
    doc = inspect.getdoc(cls).split("Parameters\n")[1].split("Attributes\n")[0]
    found = re.finditer(r"^(\w+) : ([^\n]+)\n(.*?)(?=^\w|\Z)", doc, re.S | re.M)
    return {m[1]: (" ".join(m[3].split()), m[2]) for m in found}


@pytest.mark.parametrize("cls", [*ROWS_OF, DiceClassifier])
def test_docstring_lists_every_parameter_with_its_default(cls):
    texts = parameter_texts(cls)
    signature = inspect.signature(cls).parameters
    assert list(texts) == list(signature)
    for name, (text, kind) in texts.items():
        assert text, name
        default = signature[name].default
        shown = kind.rpartition("default=")[2]
        if not isinstance(default, str) and default != () and shown != "the default backbone":
            assert float(shown) == default if isinstance(default, float) else shown == repr(default)


def test_a_parameter_without_a_description_is_refused():
    with pytest.raises(TypeError, match=r"Longer: describe \['depth'\] in its docstring"):

        @documented
        @dataclasses.dataclass(kw_only=True)
        class Longer(DiceSequenceClassifier):
            __doc__ = DiceSequenceClassifier.__doc__
            depth: int = 1


def test_a_class_without_docstring_stays_as_it_is():  # as all are with `python -OO`
    bare = dataclasses.make_dataclass("Bare", [("lr", float, 0.1)])
    doc = bare.__doc__
    assert documented(bare).__doc__ == doc


def test_constructors_are_generated_and_store_what_they_get():
    for cls in (*ROWS_OF, DiceClassifier):
        assert dataclasses.is_dataclass(cls)
        names = set(inspect.signature(cls).parameters)
        assert set(vars(cls())) == names == set(cls().get_params(deep=False))
        assert {p.kind.name for p in inspect.signature(cls).parameters.values()} == {"KEYWORD_ONLY"}
    for cls in ROWS_OF:
        assert next(iter(inspect.signature(cls).parameters)) == "loss"


def fitted(kind, backbone):
    settings = dict(backbone=backbone, max_epochs=1, random_state=0)
    if kind == "tagging":
        X, y = [["anna", "in", "rome"], ["it", "rains"]], [["B-PER", "O", "B-LOC"], ["O", "O"]]
        return DiceTokenClassifier(**settings).fit(X, y), X, y, [["X-UNKNOWN", "O", "O"]]
    if kind == "classification":
        X, y = ["win money now", "see you", "lunch today", "free prize"], [1, 0, 0, 1]
        return DiceSequenceClassifier(**settings).fit(X, y), X, y, [0, 0, 0, 0]
    if kind == "mrc-ner":
        X, y = [["anna", "in", "rome"], [], ["it", "rains"]], [[("PER", 0, 1)], [], []]
        return DiceMRCTagger(**settings).fit(X, y), X, y, [[("PER", 0, 9)], [], []]
    X = [("who sings", "anna sings in rome"), ("who sleeps", "the bus is late")]
    y = [(0, "anna"), None]
    return DiceQuestionAnswerer(**settings).fit(X, y), X, y, [None, None]


@pytest.mark.parametrize("kind", ["tagging", "classification", "qa"])
@pytest.mark.parametrize("change", [{}, {"warm_start": True}, {"net_params": {"nonsense": 1}}])
def test_a_refused_fit_leaves_the_estimator_as_it_was(tiny_backbone, kind, change):
    model, X, y, bad = fitted(kind, tiny_backbone)
    model.set_params(**change)
    before, state = model.predict(X), dict(vars(model))
    if kind == "classification" and model.warm_start:
        bad = ["9", "0", "0", "1"]  # of a kind that the first fit did not see
    if change.get("net_params"):
        bad = y  # good data, and settings that skorch refuses once the net is made
    with pytest.raises((ValueError, TypeError)):
        model.fit(X, bad)
    assert vars(model) == state
    np.testing.assert_array_equal(model.predict(X), before)


def test_a_plan_trains_nothing(tiny_backbone):
    model, X, y, _ = fitted("tagging", tiny_backbone)
    weights = {name: values.clone() for name, values in model.net_.module_.state_dict().items()}
    state = dict(vars(model))
    plan = plan_fit(model, X, y, mode="fresh")
    assert vars(model) == state
    assert (plan.mode, plan.seed, len(plan.dataset)) == ("fresh", 0, len(X))
    assert plan.fitted["module_"] is not model.module_
    for name, values in model.net_.module_.state_dict().items():
        assert (values == weights[name]).all()


@pytest.mark.parametrize("frozen", [None, "embeddings", 1])
def test_gradient_checkpointing_changes_no_weight(tiny_backbone, sentences, monkeypatch, frozen):
    from torch.utils import checkpoint

    called = []
    again = checkpoint.checkpoint
    for module in list(sys.modules.values()):  # wherever transformers has imported it
        if getattr(module, "checkpoint", None) is again:
            monkeypatch.setattr(
                module, "checkpoint", lambda *args, **kw: called.append(1) or again(*args, **kw)
            )
    settings = dict(backbone=tiny_backbone, max_epochs=2, batch_size=2, random_state=0)
    settings |= dict(dropout=0.3, frozen=frozen, precision="fp32", lr=1e-2)
    plain = DiceTokenClassifier(**settings).fit(*sentences)
    assert not called
    kept = DiceTokenClassifier(gradient_checkpointing=True, **settings).fit(*sentences)
    assert called
    for one, other in zip(
        plain.net_.module_.parameters(), kept.net_.module_.parameters(), strict=True
    ):
        assert torch.equal(one, other)
    called.clear()
    kept.set_params(warm_start=True, gradient_checkpointing=False).fit(*sentences)
    assert not called


def test_gradient_checkpointing_is_refused_where_a_model_cannot(tiny_backbones, sentences):
    tagger = DiceTokenClassifier(backbone=tiny_backbones["xlnet"], gradient_checkpointing=True)
    with pytest.raises(ValueError, match="XLNetModel does not support"):
        tagger.fit(*sentences)


@pytest.mark.parametrize("kind", ["qa", "mrc-ner", "tagging"])
def test_blocks_of_rows_are_predicted_as_all_at_once(tiny_backbone, kind, monkeypatch):
    model, X, _, _ = fitted(kind, tiny_backbone)
    X, encoded = X * 3, []

    class Noted(type(model.task)):
        def encode(self, of, rows, *more):
            encoded.append(len(rows))
            return super().encode(of, rows, *more)

    predict = model.predict_proba if kind == "tagging" else model.predict_spans
    expected, model.task = predict(X), Noted()
    monkeypatch.setattr("skdice.estimators.transformer.BLOCK", 2)
    for found, row in zip(predict(X), expected, strict=True):
        if kind == "tagging":
            np.testing.assert_allclose(found, row, atol=1e-5)
        else:
            assert [str(a)[:12] for a in found] == [str(b)[:12] for b in row]
    assert max(encoded) == 2


# ---- files, searches and folds, of every text estimator

OTHERS = ("tfidf", "crf", "features", "tuned")
TRAINED = [kind for kind in KINDS if not kind.startswith(OTHERS)]


@pytest.mark.parametrize("kind", TRAINED)
def test_pickles_and_folders_predict_the_same(kind, tiny_backbone, tmp_path):
    make, X, y = KINDS[kind]
    model = make(tiny_backbone).set_params(lr=1e-2, loss=TverskyLoss(alpha=0.4, beta=0.6))
    with pytest.raises(NotFittedError):
        model.save_pretrained(tmp_path / "never")
    model.fit(X, y)
    for _ in range(2):  # the second time over itself
        folder = model.save_pretrained(tmp_path / "m")
    read = type(model).from_pretrained(folder)
    assert read.get_params() == {**model.get_params(), "device": "auto"}
    for other in (read, pickle.loads(pickle.dumps(model))):
        for name in METHODS:
            if hasattr(model, name):
                for a, b in zip(getattr(other, name)(X), getattr(model, name)(X), strict=True):
                    assert_alike(a, b)
        assert other.score(X, y) == model.score(X, y)
        assert (getattr(other, "partial_fit", None) or other.fit)(X, y).n_iter_ in (1, 2)


def assert_alike(found, expected):
    """Equal, but for the rounding of floats in any nesting."""
    if isinstance(expected, dict):
        found, expected = list(found.values()), list(expected.values())
    if isinstance(expected, list | tuple):
        assert len(found) == len(expected)
        for a, b in zip(found, expected, strict=True):
            assert_alike(a, b)
    elif expected is None or isinstance(expected, str):
        assert found == expected
    else:
        np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("kind", [kind for kind in TRAINED if kind != "several labels"])
def test_searches_and_folds(kind, tiny_backbone):
    make, X, y = KINDS[kind]
    model = make(tiny_backbone).set_params(lr=1e-2)
    search = GridSearchCV(model, {"loss": ["ce", "dsc"]}, cv=KFold(2), error_score="raise")
    scores = search.fit(X, y).cv_results_["mean_test_score"]
    assert np.isfinite(scores).all()
    predicted = cross_val_predict(model, X, y, cv=KFold(2))
    assert len(search.predict(X)) == len(predicted) == len(X)
    half = clone(model).fit(X[6:], y[6:])
    for row, expected in zip(predicted[:6], half.predict(X[:6]), strict=True):
        assert_alike(row, expected)
