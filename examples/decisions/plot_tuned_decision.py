"""
What a tuned decision does
==========================

F1 against a bias of the positive class; 0 is a threshold of 0.5. Where the top of the curve lies
away from 0, tuning gains. Where it is flat, there is little to gain.

The messages ship with skdice. Each is a vector of the frozen encoder, on which a head is trained.
"""

from importlib.resources import files

import matplotlib.pyplot as plt
from sklearn.model_selection import train_test_split

from skdice import (
    BiasTunedTagger,
    DiceClassifier,
    DiceTokenClassifier,
    TransformerFeatures,
)
from skdice.datasets import load_town_notes, read_table
from skdice.inspection import DecisionDisplay

texts, labels = read_table(
    files("skdice.datasets") / "data/town_messages.csv"
)
X = TransformerFeatures().fit_transform(texts)
X_train, X_test, y_train, y_test = train_test_split(
    X, labels, train_size=0.5, stratify=labels, random_state=0
)

fig, axes = plt.subplots(
    1, 2, figsize=(9, 3.5), sharey=True, layout="constrained"
)
for loss, ax in zip(("ce", "dice"), axes, strict=True):
    model = DiceClassifier(loss=loss, random_state=0).fit(X_train, y_train)
    DecisionDisplay.from_estimator(model, X_test, y_test, axes=ax)
    ax.set_title(f"{loss}: {ax.get_title()}")
plt.show()

# %%
# A tagger has no single threshold. Its decision is tuned with a bias for each tag. Here the bias of
# all tags but ``O`` is varied, on test sentences. The ring is the bias as fitted or tuned.
train, dev, test = (
    load_town_notes(subset=name) for name in ("train", "dev", "test")
)
tagger = DiceTokenClassifier(max_epochs=4, lr=3e-4, random_state=0).fit(
    *train
)
fig, axes = plt.subplots(
    1, 2, figsize=(9, 3.5), sharey=True, layout="constrained"
)
tuned = BiasTunedTagger(tagger, cv="prefit").fit(*dev)
for model, name, ax in zip(
    (tagger, tuned), ("plain", "tuned"), axes, strict=True
):
    DecisionDisplay.from_estimator(model, *test, axes=ax)
    ax.set_title(f"{name}: {ax.get_title()}")
plt.show()
