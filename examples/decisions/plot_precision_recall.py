"""
Better ranking, or only another threshold?
==========================================

A precision-recall curve does not depend on the threshold. Losses whose curves coincide rank the
rows equally well: they differ only in what the threshold of 0.5 means. Then tuning the decision
is enough.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_classification
from sklearn.metrics import PrecisionRecallDisplay
from sklearn.model_selection import train_test_split

from skdice import DiceClassifier

X, y = make_classification(
    6000, n_informative=4, weights=[0.95], flip_y=0.03, random_state=2
)
X_train, X_test, y_train, y_test = train_test_split(
    X, y, stratify=y, random_state=0
)

fig, ax = plt.subplots(figsize=(5.5, 4), layout="constrained")
for loss, style in (
    ("ce", "-"),
    ("focal", ":"),
    ("dsc", "--"),
    ("ce_dice", "-."),
):
    model = DiceClassifier(loss=loss, max_epochs=8, random_state=0).fit(
        X_train, y_train
    )
    PrecisionRecallDisplay.from_estimator(
        model,
        X_test,
        y_test,
        name=loss,
        ax=ax,
        curve_kwargs={"linestyle": style},
    )
plt.show()
