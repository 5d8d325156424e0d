"""
Precision against recall with Tversky's alpha
=============================================

``alpha`` is the price of a false positive, and beta = 1 - alpha that of a missed positive. A larger
alpha raises precision and lowers recall. To search alpha, use ``LossSearchCV``.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_classification

from skdice import DiceClassifier
from skdice.inspection import TverskySweepDisplay

X, y = make_classification(
    3000, n_informative=4, weights=[0.95], flip_y=0.03, random_state=0
)
TverskySweepDisplay.from_estimator(
    DiceClassifier(loss="tversky", max_epochs=8, random_state=0), X, y
)
plt.show()
