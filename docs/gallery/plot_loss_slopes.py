"""
How hard each loss pulls
========================

The slope of each loss in the probability of the right class, for positives and negatives: the
paper's Figure 1. Cross-entropy pulls hardest where a model is most wrong. The formulas of dice and
DSC let go there.
"""

from skdice.inspection import LossGradientDisplay

LossGradientDisplay.from_losses()
