"""
Compare losses, samplers and tuned decisions
============================================

``compare_losses`` fits each row with the same data and seeds. Here the models are small and the
data synthetic, so it takes seconds. Each dot is one seed.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split

from skdice import DiceClassifier
from skdice.inspection import ComparisonDisplay
from skdice.model_selection import compare_losses

X, y = make_classification(
    3000, n_informative=4, weights=[0.96], flip_y=0.02, random_state=0
)
X_train, X_test, y_train, y_test = train_test_split(
    X, y, stratify=y, random_state=0
)
found = compare_losses(
    DiceClassifier(max_epochs=5),
    X_train,
    y_train,
    X_test=X_test,
    y_test=y_test,
    losses=[
        "ce",
        "ce + tuned",
        "ce + RandomOverSampler",
        "ce + SMOTE",
        "focal",
        "dsc",
        "ce_dice",
    ],
    seeds=3,
)
ComparisonDisplay.from_comparison(found)
plt.show()
