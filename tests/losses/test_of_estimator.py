"""What a loss given to an estimator may not set, and factors that do not fit the classes."""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType

import numpy as np
import pytest
import torch
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import skdice
from skdice import (
    BiasTunedClassifier,
    DiceClassifier,
    DiceMRCTagger,
    DiceQuestionAnswerer,
    DiceSequenceClassifier,
    DiceTokenClassifier,
)
from skdice.losses import (
    CompoundLoss,
    CrossEntropyLoss,
    DiceLoss,
    DSCLoss,
    FocalLoss,
    TverskyLoss,
)
from skdice.model_selection import LossSearchCV, compare_losses
from tests.data import ANSWERS, QUESTIONS
from tests.fits import ROWS_OF

X = np.random.default_rng(0).normal(size=(40, 3))
Y = np.arange(40) % 4 == 0
ROWS = {DiceClassifier: (X, Y), **ROWS_OF}
SETS = {
    "ignore_index": (CrossEntropyLoss(ignore_index=0), "None marks what has no label"),
    "multilabel": (DiceLoss(multilabel=True), "0/1 rows"),
    "background": (FocalLoss(background=1), "tag O"),
    "reduction": (CrossEntropyLoss(reduction="sum"), "mean"),
    "a part's background": (CompoundLoss("ce", DSCLoss(background=None)), "background=None"),
    "a part's reduction": (FocalLoss(reduction="none"), "reduction='none'"),
    "both parts' ignore_index": (CompoundLoss(ignore_index=-1), "ignore_index=-1"),
    "0, which equals False": (FocalLoss(background=0), "background=0"),
}


def estimator_of(cls, loss, **params):
    """Its backbone cannot be found, so that a refusal comes before anything is loaded."""
    if cls is not DiceClassifier:
        params["backbone"] = "no/such-backbone"
    return cls(loss=loss, random_state=0, **params)


@pytest.mark.parametrize("cls", ROWS)
@pytest.mark.parametrize("name", SETS)
def test_what_the_estimator_knows_is_refused_before_anything_is_loaded(cls, name):
    loss, way_out = SETS[name]
    with pytest.raises(ValueError, match=r"loss=.* sets \w+=.*, which the estimator") as error:
        estimator_of(cls, loss).fit(*ROWS[cls])
    assert name.split()[-1] in str(error.value) or "background=0" in str(error.value)
    assert way_out in str(error.value)


def test_further_training_refuses_it_too(tiny_backbone):
    texts, labels = ROWS[DiceSequenceClassifier]
    model = DiceSequenceClassifier(backbone=tiny_backbone, max_epochs=1).fit(texts, labels)
    with pytest.raises(ValueError, match="sets ignore_index=0"):
        model.set_params(loss=DiceLoss(ignore_index=0)).partial_fit(texts, labels)
    with pytest.raises(ValueError, match="sets ignore_index=1"):
        model.set_params(loss__ignore_index=1, warm_start=True).fit(texts, labels)


@pytest.mark.parametrize(
    "space",
    [
        {"loss__ignore_index": [-100, 0]},
        {"loss": ["ce", DiceLoss(background=0)]},
        {"loss": ["ce", "dice"], "loss__reduction": ["sum"]},
    ],
    ids=str,
)
def test_a_search_refuses_it_before_a_trial(space):
    search = LossSearchCV(DiceClassifier(max_epochs=1), space, n_trials=2, cv=2)
    with pytest.raises(ValueError, match="which the estimator sets by itself"):
        search.fit(X, Y)
    assert not hasattr(search, "study_")
    inner = {f"diceclassifier__{name}": values for name, values in space.items()}
    pipeline = make_pipeline(StandardScaler(), DiceClassifier(max_epochs=1))
    with pytest.raises(ValueError, match="which the estimator sets by itself"):
        LossSearchCV(pipeline, inner, n_trials=2, cv=2).fit(X, Y)


def test_a_comparison_refuses_it_before_a_fit(monkeypatch):
    monkeypatch.setattr(DiceClassifier, "fit", lambda *_, **__: pytest.fail("a fit began"))
    for loss in (DiceLoss(ignore_index=0), CrossEntropyLoss(class_weight=[1.0, 2.0, 3.0])):
        how = dict(X_test=X, y_test=Y, losses=["ce", loss], seeds=1)
        with pytest.raises(ValueError, match=r"ignore_index=0|has 3 factors"):
            compare_losses(DiceClassifier(max_epochs=1), X, Y, **how)


def test_tuned_wrappers_refuse_it():
    with pytest.raises(ValueError, match="sets multilabel=True"):
        BiasTunedClassifier(DiceClassifier(loss=DiceLoss(multilabel=True)), cv=2).fit(X, Y)


WRONG = [
    (CrossEntropyLoss(class_weight=[1.0, 2.0, 3.0, 4.0, 5.0]), "has 5 factors, and there are"),
    (FocalLoss(alpha=[0.5]), "has 1 factors, and there are"),
    (DiceLoss(class_weight=np.ones(7)), "has 7 factors"),
    (CompoundLoss("ce", TverskyLoss(class_weight=torch.ones(7))), "has 7 factors"),
    (DSCLoss(class_weight={"nobody": 2.0}), "names .'nobody'., and the labels"),
]


@pytest.mark.parametrize(
    "cls", [DiceClassifier, DiceSequenceClassifier, DiceTokenClassifier, DiceMRCTagger]
)
@pytest.mark.parametrize(("loss", "message"), WRONG, ids=str)
def test_factors_that_do_not_fit_are_refused_before_weights_are_loaded(
    cls, loss, message, tiny_backbone, monkeypatch
):
    model = cls(loss=loss, max_epochs=1)
    if cls is not DiceClassifier:
        model.set_params(backbone=tiny_backbone)
    monkeypatch.setattr(type(model.task), "build", lambda *_, **__: pytest.fail("it was loaded"))
    with pytest.raises(ValueError, match=message) as error:
        model.fit(*ROWS[cls])
    assert str(error.value).startswith("loss=")


def test_factors_that_fit_train(tiny_backbone):
    for loss in (
        CrossEntropyLoss(class_weight={True: 3.0}),
        FocalLoss(alpha=[0.5, 2.0]),
        CompoundLoss("ce", DiceLoss(class_weight=(1.0, 2.0))),
        CrossEntropyLoss(class_weight="balanced"),
    ):
        assert DiceClassifier(loss=loss, max_epochs=1).fit(X, Y).n_iter_ == 1
    loss = DiceLoss(class_weight=[1.0, 2.0])  # of no and yes
    model = DiceQuestionAnswerer(loss=loss, backbone=tiny_backbone, max_epochs=1)
    assert model.fit(QUESTIONS, ANSWERS).n_iter_ == 1
    with pytest.raises(ValueError, match="has 3 factors, and there are 2 classes"):
        model.set_params(loss=DiceLoss(class_weight=[1.0, 2.0, 3.0])).fit(QUESTIONS, ANSWERS)
    one_label = CrossEntropyLoss(class_weight=[1.0, 2.0]).prepare([4], multilabel=True, n_samples=9)
    assert one_label(torch.zeros(3, 1), torch.ones(3, 1).long()).isfinite()


@pytest.mark.parametrize(
    ("loss", "way_out"),
    [
        (torch.nn.CrossEntropyLoss(), 'loss="ce", or an object of skdice.losses.CrossEntropyLoss'),
        (torch.nn.MSELoss(), "a subclass of skdice.losses.Loss"),
        (DiceLoss, r"a class: give DiceLoss\(\)"),
        (torch.nn.CrossEntropyLoss, "skdice.losses.CrossEntropyLoss"),
        (lambda logits, y: 0.0, "or a loss object of skdice.losses"),
        (None, "loss=None must be one of"),
    ],
)
@pytest.mark.parametrize("cls", ROWS)
def test_what_is_no_loss_of_skdice_is_named_with_the_way_out(cls, loss, way_out):
    with pytest.raises(TypeError, match=way_out):
        estimator_of(cls, loss).fit(*ROWS[cls])


def test_every_module_is_found_by_its_import():
    for found in pkgutil.walk_packages(skdice.__path__, "skdice."):
        if "." not in found.name or found.name.rpartition(".")[2].startswith("__"):
            continue
        try:
            module = importlib.import_module(found.name)
        except ImportError:  # of an extra that is not installed
            continue
        package, _, name = found.name.rpartition(".")
        assert isinstance(getattr(importlib.import_module(package), name), ModuleType), found.name
        assert getattr(importlib.import_module(package), name) is module
