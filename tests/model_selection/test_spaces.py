"""What a search refuses before a trial: values, functions and folds that some trial would meet."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from optuna.distributions import CategoricalDistribution, FloatDistribution
from sklearn.datasets import make_classification
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from skdice import DiceClassifier
from skdice.losses import CompoundLoss, Loss
from skdice.losses.search_ranges import OneMinus
from skdice.model_selection import LossSearchCV, loss_space
from skdice.model_selection.checks import check_classes
from skdice.model_selection.heads.head_fits import why_no_heads
from skdice.model_selection.trials import FullFits
from tests.fits import never_fitted

X, Y = make_classification(60, weights=[0.8], random_state=0)
BASE = DiceClassifier(max_epochs=2, random_state=0)
NEVER = never_fitted(DiceClassifier)(max_epochs=2, random_state=0)
STEPS = Pipeline([("scale", StandardScaler()), ("clf", BASE)])
ALPHA = FloatDistribution(0.1, 0.9)
NOT_TO_SET = "sets background=None, which the estimator sets by itself"


@pytest.mark.parametrize("strategy", ["auto", "full"])
@pytest.mark.parametrize(
    ("space", "message"),
    [
        ({"loss": ["ce"], "loss__alpha": ALPHA}, "Invalid parameter 'alpha' for .*CrossEntropy"),
        ({"loss__nope": [1]}, "Invalid parameter 'nope'"),
        ({"nope": [1, 2]}, "Invalid parameter 'nope'"),
        ({"loss": ["focal"], "loss__gamma": [-1.0]}, "gamma=-1.0"),
        (
            {"loss": ["tversky"], "loss__alpha": ALPHA, "loss__beta": OneMinus("alpha")},
            r"\['loss__beta'\]=OneMinus\(name='alpha'\) .* must be a dict that holds 'alpha'"
            r".* by their full names",
        ),
        (
            {
                "loss": ["tversky"],
                "loss__beta": OneMinus("loss__alpha"),
                "loss__alpha": lambda params: 10 * params["lr"],
                "lr": FloatDistribution(0.01, 0.09),
            },
            r"\['loss__beta'\].*functions before it",
        ),
    ],
)
def test_a_parameter_that_is_not_there_ends_the_search(space, message, strategy):
    with pytest.raises(ValueError, match=message):
        LossSearchCV(NEVER, space, n_trials=3, cv=2, strategy=strategy).fit(X, Y)


@pytest.mark.filterwarnings("ignore::skdice.exceptions.TrialWarning")
@pytest.mark.parametrize("strategy", ["auto", "full"])
@pytest.mark.parametrize(
    ("good", "bad"),
    [
        ({"loss": ["ce"]}, {"loss": ["tverski"]}),
        ({"lr": [0.1]}, {"lr": [-1.0]}),
    ],
)
def test_a_value_that_a_fit_refuses_costs_its_trials(good, bad, strategy):
    search = LossSearchCV(BASE, [good, bad], n_trials=8, cv=2, strategy=strategy, random_state=0)
    found = search.fit(X, Y)
    assert {str(p) for p in found.cv_results_["params"]} == {str(grid(s)) for s in (good, bad)}
    failed = [params == grid(bad) for params in found.cv_results_["params"]]
    assert [state == "FAIL" for state in found.cv_results_["state"]] == failed
    assert found.best_params_ == grid(good)
    with pytest.raises(ValueError, match=r"tverski' is unknown|'lr' parameter"):
        search.set_params(param_distributions=bad, n_trials=2).fit(X, Y)


def grid(space):
    return {name: values[0] for name, values in space.items()}


def test_labels_and_folds_without_a_class():
    halves = [(np.arange(4), np.arange(4, 8)), (np.arange(4, 8), np.arange(4))]
    labels = np.array([0, 1, 1, 0, 1, 1, 1, 1])
    for y, message in (
        (np.zeros(8, int), r"y holds one class only \[0\]"),
        (np.full((8, 1), "ham", dtype=object), r"one class only \['ham'\]"),
        (labels, "class 0 out of the training rows of fold 1"),
        (labels[:, None], "class 0 out of the training rows of fold 1"),
        (
            np.c_[[0, 1] * 4, labels],
            "value 0 of column 1 of y out .* fold 1.*MultilabelStrat",
        ),
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

    def forward(self, logits, target, sample_weight=None, mask=None):
        self.n_calls += 1
        return self.k * self.n_calls * torch.nn.functional.cross_entropy(logits, target)


@pytest.mark.parametrize(
    ("space", "why"),
    [
        ({"loss": ["ce", CompoundLoss()]}, None),
        ({"lr": [0.1]}, "'lr' is searched, which heads have in common"),
        ({"loss": ["ce", Counts()]}, "Counts has no functional form, which heads need"),
        ({"loss": [CompoundLoss()], "loss__second": [Counts()]}, "Counts has no functional form"),
        ({"loss": lambda params: Counts()}, "a function gives the loss"),
    ],
)
def test_losses_that_cannot_share(space, why):
    full = FullFits(BASE, [loss_space("tversky"), space], X, Y, [], {}, None, {}, np.nan)
    assert (why_no_heads(full) or "").startswith(why or "nothing") == (why is not None)
    with pytest.warns(UserWarning, match="Choices for a categorical distribution"):
        full.spaces = [{"loss": CategoricalDistribution(["ce", Counts()])}]
    assert "Counts has no functional form" in why_no_heads(full)
    full.spaces, full.estimator = [loss_space("tversky")], DiceClassifier(loss=Counts())
    assert why_no_heads(full)
