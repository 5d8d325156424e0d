"""
A labelling loop: what to label next
====================================

Where positives are rare, rows that are labelled at random are hardly ever positive. This loop
starts with 30 labelled messages and adds ten in each of ten rounds: those that ``next_to_label``
chooses, or random ones. After each round a head is trained on vectors of the frozen encoder, and
scored on messages that take no part.

The messages ship with skdice; two of three spam messages are left out of the pool, so that one in
twenty is spam. Their labels are looked up. In your work a person writes them.
"""

from importlib.resources import files

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.model_selection import train_test_split

from skdice import TransformerFeatures
from skdice.datasets import read_table
from skdice.inspection import next_to_label

texts, labels = read_table(
    files("skdice.datasets") / "data/town_messages.csv"
)
vectors = TransformerFeatures().fit_transform(texts)
spam = np.array(labels) == "spam"


def chosen(model, X, left, rng):
    """Ten rows that are worth a label."""
    found = next_to_label(model, X[left], n=10)
    return left[np.array(found["row"])]


def at_random(model, X, left, rng):
    """Ten rows of the pool."""
    return rng.choice(left, 10, replace=False)


def loop(choose, seed):
    """F1 after each of ten rounds, and how many positives were labelled."""
    rng = np.random.default_rng(seed)
    X, X_test, y, y_test = train_test_split(
        vectors, spam, test_size=0.4, stratify=spam, random_state=seed
    )
    rare = np.flatnonzero(y)[: y.sum() // 3]
    kept = np.append(np.flatnonzero(~y), rare)
    X, y = X[kept], y[kept]
    known = rng.permutation(len(X))[:30]
    known[0] = np.flatnonzero(y)[0]  # one positive to begin with
    scores = []
    for round_ in range(11):
        head = LogisticRegression(C=10, class_weight="balanced")
        head.fit(X[known], y[known])
        scores.append(100 * f1_score(y_test, head.predict(X_test)))
        if round_ < 10:
            left = np.setdiff1d(np.arange(len(X)), known)
            known = np.append(known, choose(head, X, left, rng))
    return scores, y[known].sum()


# %%
# F1 by round: the mean of five starts, and a band from the lowest to the highest.
fig, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
for name, choose in (("next_to_label", chosen), ("at random", at_random)):
    runs = [loop(choose, seed) for seed in range(5)]
    scores = np.array([scores for scores, _ in runs])
    n_spam = np.mean([n for _, n in runs])
    by_round = scores.mean(axis=0)[[0, 3, 6, 10]].round()
    print(f"{name}: F1 {by_round} after 0, 3, 6 and 10 rounds")
    print(f"    {n_spam:.0f} of the labelled are spam")
    ax.plot(30 + 10 * np.arange(11), scores.mean(axis=0), "o-", label=name)
    ax.fill_between(
        30 + 10 * np.arange(11),
        scores.min(axis=0),
        scores.max(axis=0),
        alpha=0.15,
    )
ax.set(xlabel="labelled messages", ylabel="F1 on other messages")
ax.legend()
plt.show()

# %%
# Rows that a model chose are no sample of what comes in. Use them to train, and label other rows at
# random to tune a decision on and to test: see :doc:`What to label next </guide/labels>`.
