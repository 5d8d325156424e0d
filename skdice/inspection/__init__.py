"""Looking at data and results."""

from skdice.inspection.comparison import ComparisonDisplay
from skdice.inspection.gradients import LossGradientDisplay
from skdice.inspection.imbalance import Imbalance, imbalance, reading_imbalance
from skdice.inspection.sweep import TverskySweepDisplay

__all__ = [
    "ComparisonDisplay",
    "Imbalance",
    "LossGradientDisplay",
    "TverskySweepDisplay",
    "imbalance",
    "reading_imbalance",
]
