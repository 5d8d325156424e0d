"""Parameters by the names of other libraries and of earlier versions."""

import inspect
import pickle

import pytest
from sklearn.base import clone

from skdice import (
    DiceClassifier,
    DiceEntityRecognizer,
    DiceTokenClassifier,
)
from skdice.estimators._net_estimator import PARAMETERS
from skdice.estimators.storage import GONE, _loss_from_json, as_now
from skdice.losses import DiceLoss


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


def test_parameters_of_folders_of_before():
    old = {"frozen": "none", "misaligned": "error", "label_all_subwords": False, "resume": "auto"}
    old |= {"overlapping": "longest", "unlabeled": "negative", "end_loss": None}
    assert as_now(old) == {"frozen": None, "on_misaligned": "raise"}
    assert as_now({"on_misaligned": "fix", "frozen": 4}) == {"on_misaligned": "expand", "frozen": 4}
    for name, value in GONE.items():
        with pytest.raises(ValueError, match=rf"{name}=.*, which is gone"):
            as_now({name: value})
    loss = {"name": "dice", "params": {"smooth": 1.0, "ohem_ratio": 2.0, "ema_decay": 0.5}}
    assert _loss_from_json(loss) == DiceLoss(smooth=1.0)
