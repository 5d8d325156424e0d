"""Parameters by the names of other libraries and of earlier versions."""

import inspect
import pickle

import numpy as np
import pytest
from sklearn.base import clone

from skdice import (
    DiceClassifier,
    DiceEntityRecognizer,
    DiceMultiSpanAnswerer,
    DiceSequenceClassifier,
    DiceTokenClassifier,
)
from skdice.estimators.old_names import PARAMETERS, as_now


@pytest.mark.parametrize("cls", [DiceClassifier, DiceTokenClassifier, DiceEntityRecognizer])
@pytest.mark.parametrize("name", PARAMETERS)
def test_a_name_of_others_is_told(cls, name):
    for call in (lambda: cls(**{name: 1}), lambda: cls().set_params(**{name: 1})):
        with pytest.raises(TypeError, match=name) as told:
            call()
        assert str(told.value) == f"{cls.__name__} has no {name!r}: {PARAMETERS[name]}"
        assert len(str(told.value).split()) <= 40


def test_every_other_name_is_python_s_and_scikit_learn_s_affair():
    with pytest.raises(TypeError, match="unexpected keyword argument 'rate'"):
        DiceTokenClassifier(rate=1)
    with pytest.raises(ValueError, match="Invalid parameter 'rate'"):
        DiceTokenClassifier().set_params(rate=1)


def test_the_signature_and_copies_are_as_before():
    model = DiceTokenClassifier(lr=1e-3)
    assert inspect.signature(DiceTokenClassifier).parameters.keys() == model.get_params().keys()
    for same in (clone(model), pickle.loads(pickle.dumps(model))):
        assert same.get_params() == model.get_params()


@pytest.mark.parametrize(
    ("cls", "old", "now"),
    [
        (DiceSequenceClassifier, {"frozen": "none"}, "frozen=None"),
        (DiceEntityRecognizer, {"on_misaligned": "error"}, "on_misaligned='raise'"),
        (DiceEntityRecognizer, {"overlapping": "error"}, "overlapping='raise'"),
        (DiceMultiSpanAnswerer, {"on_misaligned": "fix"}, "on_misaligned='expand'"),
    ],
)
def test_an_old_value_is_told(cls, old, now):
    with pytest.raises(ValueError, match=f"is {now} now"):
        cls(**old).fit(["a"], [0])


def test_parameters_of_folders_of_before():
    old = {"frozen": "none", "misaligned": "error", "label_all_subwords": False, "resume": "auto"}
    assert as_now(old) == {"frozen": None, "on_misaligned": "raise"}
    assert as_now({"on_misaligned": "fix", "frozen": 4}) == {"on_misaligned": "expand", "frozen": 4}
    with pytest.raises(ValueError, match="label_all_subwords=True, which is gone"):
        as_now({"label_all_subwords": True})


def test_set_params_refuses_nothing_before_it_is_used(tiny_backbone):
    """A bad rate acts in `fit` alone, and a bad size of a batch in the next prediction."""
    X, y = np.eye(2)[[0, 1] * 10], [0, 1] * 10
    model = DiceClassifier(max_epochs=1, random_state=0).fit(X, y)
    before = model.predict_proba(X)
    np.testing.assert_array_equal(model.set_params(lr=-1).predict_proba(X), before)
    with pytest.raises(ValueError, match="'lr' parameter"):
        model.fit(X, y)
    np.testing.assert_array_equal(model.set_params(batch_size=5).predict_proba(X), before)
