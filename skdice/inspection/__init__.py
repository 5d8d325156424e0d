"""Looking at data and results."""

from skdice.inspection.comparison import ComparisonDisplay
from skdice.inspection.imbalance import Imbalance, imbalance, reading_imbalance

__all__ = ["ComparisonDisplay", "Imbalance", "imbalance", "reading_imbalance"]
