"""
Compare losses, samplers and tuned decisions
============================================

``compare_losses`` fits each row with the same data and seeds. Here heads are trained on vectors of
the messages that ship with skdice, so it takes seconds. Each dot is one seed. On texts,
``DiceSequenceClassifier`` takes the place of the head.
"""

from importlib.resources import files

import matplotlib.pyplot as plt
from sklearn.model_selection import train_test_split

from skdice import DiceClassifier, TransformerFeatures
from skdice.datasets import read_table
from skdice.inspection import ComparisonDisplay
from skdice.model_selection import compare_losses

texts, labels = read_table(
    files("skdice.datasets") / "data/town_messages.csv"
)
X = TransformerFeatures().fit_transform(texts)
X_train, X_test, y_train, y_test = train_test_split(
    X, labels, train_size=0.5, stratify=labels, random_state=0
)
found = compare_losses(
    DiceClassifier(),
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
print(found)
ComparisonDisplay.from_comparison(found)
plt.show()
