"""
Pairs: is this question a duplicate?
====================================

A help desk wants to answer a new question with an old answer, if the question was asked before.
This example goes from a file of pairs of questions to a rule that says when two are the same.

The first block writes ``questions.csv``. One pair in six is a duplicate. The others share the thing
or the intention, but not both, or neither. With a file of your own, skip the block.
"""

import random

import pandas as pd

rng = random.Random(2)
things = ["bus pass", "library card", "garden plot", "parking permit"]
things += ["swimming lesson", "locker"]
asks = {
    "cancel": "How do I cancel my {}?|I no longer want my {}, what now?"
    "|Where can I end my {}?",
    "price": "How much is a {}?|What is the price of a {}?"
    "|What do I pay for a {}?",
    "renew": "How do I renew my {}?|My {} runs out, what now?"
    "|Can I have my {} for longer?",
    "lost": "I lost my {}, what now?|Someone stole my {}!"
    "|My {} is gone, how do I replace it?",
}
rows = []
for _ in range(1500):
    intention, thing = rng.choice(list(asks)), rng.choice(things)
    duplicate = rng.random() < 1 / 6
    other = rng.choice([name for name in asks if name != intention])
    another = rng.choice([name for name in things if name != thing])
    second = intention, thing
    if not duplicate:
        changes = [(other, thing), (intention, another), (other, another)]
        second = rng.choice(changes)
    pair = [
        rng.choice(asks[name].split("|")).format(of)
        for name, of in ((intention, thing), second)
    ]
    rows.append((*pair, int(duplicate)))
names = ["question1", "question2", "is_duplicate"]
frame = pd.DataFrame(rows, columns=names)
frame.to_csv("questions.csv", index=False)
print(frame.head().to_string())

# %%
# ``read_table`` finds the two texts and the label by the names of the columns. Where it cannot,
# name them: ``text_columns=["question1", "question2"], label_column="is_duplicate"``.
#
# In your own data, keep all pairs of one question on one side of the cut, for example with
# ``GroupShuffleSplit`` of scikit-learn. Otherwise the test measures memory.
#
# A baseline comes first. ``TfidfClassifier`` is a logistic regression on the words that two
# questions share and do not share. ``DiceSequenceClassifier`` reads both questions together, so
# that it can compare their words. The labels are 0 and 1, so 1 is the positive class, and ``score``
# is its F1. The loss is cross-entropy, as the decision is tuned. ``max_epochs=8`` keeps it short.
from skdice import DiceSequenceClassifier, TfidfClassifier
from skdice.datasets import read_table

X, y = read_table("questions.csv")
y = [int(label) for label in y]  # a file holds text
train, dev, test = slice(0, 500), slice(500, 1000), slice(1000, None)
baseline = TfidfClassifier().fit(X[train], y[train])
classifier = DiceSequenceClassifier(loss="ce", max_epochs=8, random_state=0)
classifier.fit(X[train], y[train])

# %%
# Decide
# ------
#
# The right decision follows from what is done with it. If a person checks each suggested duplicate,
# F1 is a good balance (``scoring="auto"``). If duplicates are closed without a person, ask for
# ``RecallAtPrecision(0.9)``: nine in ten are right on new pairs. If nobody should have to ask
# twice, ask for ``PrecisionAtRecall(0.9)``. Here a person checks.
from skdice import BiasTunedClassifier

tuned = BiasTunedClassifier(classifier, cv="prefit", random_state=0)
tuned.fit(X[dev], y[dev])
models = {"words shared": baseline, "transformer": classifier}
models["transformer, tuned"] = tuned
scores = {
    name: one.evaluate(X[test], y[test]) for name, one in models.items()
}
print(pd.DataFrame(scores).round(3).to_string())

# %%
# With few dev pairs a tuned decision may be no better than the plain one.
#
# The picture shows precision against recall on the test pairs. The baseline sees which words are
# shared, and not that "gone" and "stole" mean the same.
import matplotlib.pyplot as plt
from sklearn.metrics import PrecisionRecallDisplay

fig, ax = plt.subplots(figsize=(5, 4), layout="constrained")
for name in ("words shared", "transformer"):
    PrecisionRecallDisplay.from_estimator(
        models[name], X[test], y[test], ax=ax, name=name
    )
plt.show()

# %%
# A new question is compared with the old ones:
old = ["What do I pay for a locker?", "I lost my library card, what now?"]
candidates = [("Someone stole my library card!", one) for one in old]
probability = tuned.predict_proba(candidates)[:, 1]
for text, p, answer in zip(
    old, probability, tuned.predict(candidates), strict=True
):
    print(f"{p:.2f}", "duplicate" if answer else "-", "|", text)

# %%
# With thousands of old questions this is slow, since each pair passes through the model. Let a
# search by words or by vectors (``TransformerFeatures``) bring twenty candidates, and let the
# classifier judge those. If duplicates are one pair in a thousand, move the decision with
# ``adapt_prior``. See :doc:`Classifying texts and pairs </guide/texts>`.
