"""Looking at data and results."""

from skdice.inspection.comparison import ComparisonDisplay
from skdice.inspection.imbalance import Imbalance, imbalance, reading_imbalance
from skdice.inspection.sweep import TverskySweepDisplay

__all__ = [
    "ComparisonDisplay",
    "Imbalance",
    "TverskySweepDisplay",
    "imbalance",
    "reading_imbalance",
]
