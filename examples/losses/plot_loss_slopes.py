"""
The gradient of each loss
=========================

The derivative of each loss for a positive and a negative example, against the predicted
probability of the positive class, as in the paper's Figure 1. The gradient of cross-entropy is
largest where the model is most wrong. The printed formulas of dice and DSC have hardly any
gradient there.
"""

import matplotlib.pyplot as plt

from skdice.inspection import LossGradientDisplay

LossGradientDisplay.from_losses()
plt.show()
