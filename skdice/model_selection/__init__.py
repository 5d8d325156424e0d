"""Comparing and searching losses, and predictions by cross-validation."""

from typing import Any

from skdice.estimators.tuned.prior import adapt_prior
from skdice.model_selection.comparison import compare_losses
from skdice.model_selection.folds import out_of_fold
from skdice.model_selection.search import LossSearchCV
from skdice.model_selection.spaces import loss_space
from skdice.resampling.stratification import MultilabelStratifiedKFold

__all__ = [
    "LossSearchCV",
    "MultilabelStratifiedKFold",
    "adapt_prior",
    "compare_losses",
    "loss_space",
    "out_of_fold",
]

_GONE = {
    "Comparison": "call compare_losses, which gives one",
    "OutOfFold": "call out_of_fold, which gives one",
    "OneMinus": "give a function of the other parameters, as in "
    '{"loss__beta": lambda params: 1 - params["loss__alpha"]}',
}


def __getattr__(name: str) -> Any:
    """Tell the new way in place of an old name."""
    if name in _GONE:
        raise ImportError(f"skdice.model_selection has no {name}: {_GONE[name]}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
