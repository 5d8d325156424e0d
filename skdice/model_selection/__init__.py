"""Comparing and searching losses, and predictions by cross-validation."""

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
