"""Comparing and searching losses."""

from skdice.losses import OneMinus
from skdice.model_selection.comparison import Comparison, compare_losses
from skdice.model_selection.search import LossSearchCV
from skdice.model_selection.spaces import loss_space

__all__ = ["Comparison", "LossSearchCV", "OneMinus", "compare_losses", "loss_space"]
