"""
Pairs: is this question a duplicate?
====================================

A help desk wants to answer a new question with an old answer, if the question was asked before.
This tutorial goes from a file of pairs of questions to a rule that says when two questions are the
same.

You need ``pip install 'skdice[plot]' pandas``.

In short
--------

With your own ``questions.csv``, which has two columns of questions and one of 0 and 1:

.. code-block:: python

   from skdice import BiasTunedClassifier, DiceSequenceClassifier
   from skdice.datasets import read_table

   X, y = read_table("questions.csv")
   y = [int(label) for label in y]
   tuned = BiasTunedClassifier(DiceSequenceClassifier(loss="ce"))
   tuned.fit(X, y)
   tuned.predict([("Someone stole my card!", "I lost my card, what now?")])

Below, each step has its reasons and its output.

A file to try it on
-------------------

This block writes ``questions.csv``: two questions and whether they are duplicates. One pair in
six is. Some of the others are hard: they share the object or the intention, but not both. Replace
the file with your own and skip this block.
"""

import random

import pandas as pd

rng = random.Random(2)
things = [
    "bus pass",
    "library card",
    "garden plot",
    "parking permit",
    "swimming lesson",
    "locker",
]
intentions = {
    "cancel": [
        "How do I cancel my {}?",
        "I no longer want my {}, what now?",
        "Where can I end my {}?",
    ],
    "price": [
        "How much is a {}?",
        "What is the price of a {}?",
        "What do I pay for a {}?",
    ],
    "renew": [
        "How do I renew my {}?",
        "My {} runs out, what now?",
        "Can I have my {} for longer?",
    ],
    "lost": [
        "I lost my {}, what now?",
        "Someone stole my {}!",
        "My {} is gone, how do I replace it?",
    ],
}


def question(intention, thing):
    return rng.choice(intentions[intention]).format(thing)


rows = []
for _ in range(1500):
    intention, thing = rng.choice(list(intentions)), rng.choice(things)
    first = question(intention, thing)
    duplicate = rng.random() < 1 / 6
    if not duplicate:
        other_intention = rng.choice(
            [name for name in intentions if name != intention]
        )
        other_thing = rng.choice([name for name in things if name != thing])
        changes = [
            (other_intention, thing),
            (intention, other_thing),
            (other_intention, other_thing),
        ]
        intention, thing = rng.choice(changes)
    rows.append((first, question(intention, thing), int(duplicate)))
frame = pd.DataFrame(
    rows, columns=["question1", "question2", "is_duplicate"]
)
frame.to_csv("questions.csv", index=False)
print(frame.head().to_string())

# %%
# Read it
# -------
#
# ``read_table`` finds the two texts and the label by the names of the columns. Where it cannot,
# name them: ``text_columns=["question1", "question2"], label_column="is_duplicate"``. ``X`` holds
# pairs of texts.
#
# In your own data, keep all pairs of one question on one side of the cut, for example with
# ``GroupShuffleSplit`` of scikit-learn. Otherwise the test measures memory.
from skdice.datasets import read_table
from skdice.inspection import imbalance

X, y = read_table("questions.csv")
y = [int(label) for label in y]  # a file holds text
train, dev, test = slice(0, 500), slice(500, 1000), slice(1000, None)
print(X[0], y[0])
ratio = imbalance(y[train]).ratio
print(f"{ratio:.1f} pairs that are no duplicates for each that is")

# %%
# A baseline first
# ----------------
#
# Ask what a simple method does before you train a transformer. ``TfidfClassifier`` is a logistic
# regression on the words that two questions share and do not share. It is fitted in a second, and
# it takes pairs.
from skdice import TfidfClassifier

baseline = TfidfClassifier().fit(X[train], y[train])
print(f"F1 of the baseline: {baseline.score(X[test], y[test]):.3f}")

# %%
# Train
# -----
#
# ``DiceSequenceClassifier`` reads both questions together, so that it can compare their words. The
# labels are 0 and 1, so 1 is the positive class, and ``score`` is its F1. By default ``fit``
# chooses the learning rate and the number of epochs, here 30. ``max_epochs=3`` keeps the site's
# build short: leave it out for your own data.
from skdice import DiceSequenceClassifier

classifier = DiceSequenceClassifier(loss="ce", max_epochs=3, random_state=0)
classifier.fit(X[train], y[train])
print(f"F1 of the classifier: {classifier.score(X[test], y[test]):.3f}")

# %%
# Decide
# ------
#
# The right decision follows from what is done with it:
#
# - If a person checks each suggested duplicate, a good balance is enough: ``scoring="auto"`` is F1.
# - If duplicates are closed without a person, a wrong one annoys somebody. Ask for
#   ``RecallAtPrecision(0.9)``: as many duplicates as possible, of which nine in ten are right on
#   new pairs.
# - If nobody should have to ask twice, ask for ``PrecisionAtRecall(0.9)``.
#
# Here a person checks. The threshold is tuned on the dev pairs; the training is not repeated.
from skdice import BiasTunedClassifier

tuned = BiasTunedClassifier(classifier, cv="prefit", random_state=0).fit(
    X[dev], y[dev]
)
scores = {
    "as trained": classifier.evaluate(X[test], y[test]),
    "tuned": tuned.evaluate(X[test], y[test]),
}
print(pd.DataFrame(scores).round(3).to_string())

# %%
# If both columns are the same, the bias was not shown to gain on the dev pairs, and the plain
# decision was kept.
#
# Use it
# ------
#
# A new question is compared with the old ones, and the likeliest duplicate is suggested if its
# probability passes the tuned threshold, which ``predict`` knows.
old = [
    "How do I cancel my bus pass?",
    "What is the price of a locker?",
    "I lost my library card, what now?",
]
new = "Someone stole my library card!"
candidates = [(new, question) for question in old]
probability = tuned.predict_proba(candidates)[:, 1]
for text, p, answer in zip(
    old, probability, tuned.predict(candidates), strict=True
):
    print(f"{p:.2f}", "duplicate" if answer else "-", "|", text)
tuned.save_pretrained("duplicates")

# %%
# With thousands of old questions this is slow, since each pair passes through the model. Let a
# search by words or by vectors (``TransformerFeatures``) bring twenty candidates, and let the
# classifier judge those. Train it on pairs that such a search brings: they are the hard ones.
#
# The same on the command line:
#
# .. code-block:: console
#
#    $ skdice train questions.csv --label-column is_duplicate --out duplicates
#    $ skdice predict duplicates new.csv
#
# When not
# --------
#
# - If the order of the two texts matters (does this text follow from that?), nothing changes here,
#   but never add swapped copies to the training pairs. For duplicates swapped copies do no harm.
# - If duplicates are one pair in a thousand, training pairs are not like that. Tune on pairs as
#   they come in, or move the decision with ``adapt_prior``.
#
# The picture
# -----------
#
# Precision against recall of both models on the test pairs, with the tuned decision. The
# baseline sees which words are shared, and not that "gone" and "stole" mean the same.
import matplotlib.pyplot as plt
from sklearn.metrics import (
    PrecisionRecallDisplay,
    precision_score,
    recall_score,
)

fig, ax = plt.subplots(figsize=(5, 4), layout="constrained")
PrecisionRecallDisplay.from_estimator(
    baseline, X[test], y[test], ax=ax, name="words shared"
)
PrecisionRecallDisplay.from_estimator(
    classifier, X[test], y[test], ax=ax, name="transformer"
)
predicted = tuned.predict(X[test])
point = (
    recall_score(y[test], predicted),
    precision_score(y[test], predicted, zero_division=0),
)
ax.plot(
    *point, "ko", fillstyle="none", markersize=9, label="tuned decision"
)
ax.legend(loc="lower left")
plt.show()

# %%
# Next: :ref:`reading with unanswerable questions <sphx_glr_auto_tutorials_plot_5_reading.py>`. See
# also `Classifying texts and pairs <../guide/texts.html>`__ and the example
# :ref:`sphx_glr_auto_gallery_2_data_plot_precision_recall.py`.
