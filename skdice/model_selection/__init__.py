"""Comparing and searching losses."""

from skdice.model_selection.comparison import Comparison, compare_losses

__all__ = ["Comparison", "compare_losses"]
