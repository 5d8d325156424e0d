"""What a search refuses before a trial: values, functions and folds that some trial would meet."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from sklearn.base import BaseEstimator
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from skdice import DiceClassifier, DiceSequenceClassifier
from skdice.losses import CompoundLoss, Loss, TverskyLoss
from skdice.losses.search_ranges import OneMinus
from skdice.model_selection import LossSearchCV, loss_space
from skdice.model_selection.checks import check_classes
from skdice.model_selection.heads.head_fits import why_no_heads
from skdice.model_selection.spaces import as_spaces, check_space
from skdice.model_selection.trials import FullFits
from tests.fits import never_fitted

X, Y = make_classification(60, weights=[0.8], random_state=0)
BASE = DiceClassifier(max_epochs=2, random_state=0)
NEVER = never_fitted(DiceClassifier)(max_epochs=2, random_state=0)
STEPS = Pipeline([("scale", StandardScaler()), ("clf", BASE)])
ALPHA = FloatDistribution(0.1, 0.9)
STEPPED = FloatDistribution(0, 1, step=0.25)
SECONDS = [TverskyLoss(), TverskyLoss(background=None)]
NOT_TO_SET = "sets background=None, which the estimator sets by itself"


def of_losses(*losses, **params):
    return {"loss": [*losses], **{f"loss__{name}": values for name, values in params.items()}}


@pytest.mark.parametrize(
    ("space", "message"),
    [
        (
            of_losses("tversky", "ce", alpha=ALPHA),
            "'alpha' for CrossEntropyLoss.*a list of dicts, one for each loss",
        ),
        ({"loss": ["ce", "tverski"]}, "'tverski' is unknown"),
        ([loss_space("ce"), {"loss": CategoricalDistribution(["ce", "tverski"])}], "'tverski' is"),
        ({"lr": [0.1, -1]}, r"\{'lr': -1\}.*'lr' parameter"),
        ({"lr": np.array([0.1, 0.2, -1.0])}, "'lr' parameter"),
        (of_losses("ce", label_smoothing=FloatDistribution(0, 1.5)), "smoothing=1.5"),
        (of_losses("focal", gamma=FloatDistribution(-1.0, 5.0)), "gamma=-1.0"),
        ({"max_epochs": IntDistribution(0, 3)}, "'max_epochs' parameter"),
        (of_losses("tversky", background=["auto", None]), NOT_TO_SET),
        (of_losses(CompoundLoss(), second=SECONDS, second__beta=ALPHA), NOT_TO_SET),
        (  # each is well beside the other's first
            of_losses("dice", average=["macro", "samples"], surrogate=["none", "log"]),
            "surrogate='log' with average='samples'",
        ),
        (
            of_losses("tversky", alpha=ALPHA, beta=OneMinus("alpha")),
            r"\['loss__beta'\]=OneMinus\(name='alpha'\) .* must be a dict that holds 'alpha'"
            r".* by their full names",
        ),
        (
            of_losses("tversky", beta=OneMinus("loss__alpha")),
            r"\['loss__beta'\].*must be a dict that holds 'loss__alpha'",
        ),
        (
            of_losses("tversky", beta=OneMinus("loss__alpha"), alpha=lambda params: params["lr"])
            | {"lr": FloatDistribution(0.1, 0.9)},
            r"\['loss__beta'\].*functions before it",
        ),
    ],
)
def test_what_one_trial_would_fail_on_is_refused_before_all(space, message):
    with pytest.raises(ValueError, match=message):
        LossSearchCV(NEVER, space, n_trials=1, cv=2).fit(X, Y)


def test_parts_of_a_pipeline_are_looked_at():
    for space, message in (
        ({"clf__loss": ["ce", "tverski"]}, "'tverski' is unknown"),
        ({"clf__lr": FloatDistribution(0.0, 0.1)}, "'lr' parameter of DiceClassifier"),
        ({"clf__loss": ["tversky", "ce"], "clf__loss__alpha": ALPHA}, "one for each clf__loss"),
        ({"scale": [StandardScaler(), "passthrough"], "scale__with_std": [True]}, "each scale"),
    ):
        with pytest.raises(ValueError, match=message):
            check_space(STEPS, [space])
    with pytest.raises(ValueError, match="'losss'"):
        check_space(DiceClassifier(), [{"losss": ["ce"]}])


class Own(BaseEstimator):
    """Without constraints on its parameters, and with a loss of its own."""

    def __init__(self, loss="mine", alpha=1):
        self.loss = loss
        self.alpha = alpha


@pytest.mark.parametrize(
    ("estimator", "space"),
    [
        (BASE, of_losses("tversky", beta=OneMinus("loss__alpha"), alpha=STEPPED)),
        # Not both lower ends at once, which count no error and have no probability.
        (BASE, of_losses("tversky", alpha=FloatDistribution(0, 1), beta=FloatDistribution(0, 1))),
        (BASE, {**of_losses(TverskyLoss(alpha=0.2), "ce"), "lr": [1e-2, 1e9]}),
        (STEPS, {"scale": [StandardScaler(), MinMaxScaler(), "passthrough"]}),
        (STEPS, loss_space("tversky", prefix="clf__")),
        (SGDClassifier(), {"loss": ["hinge", "log_loss"], "alpha": FloatDistribution(1e-5, 1)}),
        (LogisticRegression(), {"C": [1.0, -1.0]}),  # what its fit alone refuses
        (Own(), {"loss": ["mine", "other"], "alpha": ["a", None]}),
        (DiceSequenceClassifier(), {"loss": ["ce", "dsc"], "lr": FloatDistribution(1e-5, 1e-3)}),
    ],
)
def test_other_spaces_pass(estimator, space):
    spaces = as_spaces(space)
    before = repr(spaces)
    check_space(estimator, spaces)
    assert repr(spaces) == before


def test_labels_and_folds_without_a_class():
    halves = [(np.arange(4), np.arange(4, 8)), (np.arange(4, 8), np.arange(4))]
    labels = np.array([0, 1, 1, 0, 1, 1, 1, 1])
    for y, message in (
        (np.zeros(8, int), r"y holds one class only \[0\]"),
        (np.full((8, 1), "ham", dtype=object), r"one class only \['ham'\]"),
        (labels, "class 0 out of the training rows of fold 1"),
        (labels[:, None], "class 0 out of the training rows of fold 1"),
        (np.c_[[0, 1] * 4, labels], "value 0 of column 1 of y out .* fold 1.*MultilabelStrat"),
        (np.c_[1 - labels, labels], "value 1 of column 0 of y out .* fold 1"),
    ):
        with pytest.raises(ValueError, match=message):
            check_classes(y, halves)
    check_classes(np.c_[[0, 1] * 4, np.zeros(8, int)], halves)  # no fold changes that
    check_classes(np.c_[labels, 1 - labels], list(KFold(3).split(labels)))
    check_classes(labels[:, None], list(StratifiedKFold(2).split(labels, labels)))


def test_one_class_is_refused_before_a_trial():
    for strategy in ("full", "shared"):
        search = LossSearchCV(NEVER, loss_space("ce"), n_trials=1, cv=2, strategy=strategy)
        with pytest.raises(ValueError, match="one class only"):
            search.fit(X, np.zeros(60, int))
        with pytest.raises(ValueError, match="cv leaves the class 1"):
            search.set_params(cv=KFold(2)).fit(X, np.repeat([0, 1, 0], [5, 9, 46])[:, None])


class Counts(Loss):
    """Cross-entropy that grows with its calls, which no pure function has."""

    n_calls = 0

    def __init__(self, k=1.0, ignore_index=-100, multilabel=False, reduction="mean"):
        super().__init__()
        self.k = k
        self.ignore_index = ignore_index
        self.multilabel = multilabel
        self.reduction = reduction

    def forward(self, logits, target, sample_weight=None):
        self.n_calls += 1
        return self.k * self.n_calls * torch.nn.functional.cross_entropy(logits, target)


def test_losses_that_cannot_share():
    def why_not(space, estimator=BASE):
        found = check_space(estimator, space)
        full = FullFits(estimator, space, X, Y, [], {}, None, {}, np.nan)
        return why_no_heads(full, found)

    spaces = [loss_space("tversky"), {"loss": ["ce", CompoundLoss()]}]
    assert why_not(spaces) is None
    assert why_not([*spaces, {"lr": [0.1]}]) == "'lr' is searched, which heads have in common"
    for space in (
        {"loss": ["ce", Counts()]},
        {"loss": lambda params: Counts()},
    ):
        assert "Loss has no functional form" in why_not([*spaces, space]).replace("Counts", "Loss")
    assert "Counts has" in why_not([{"loss__k": [1.0, 2.0]}], DiceClassifier(loss=Counts()))
