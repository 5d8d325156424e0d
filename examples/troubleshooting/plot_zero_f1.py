"""
My F1 is 0
==========

The model trains without an error, and its F1 is 0. There are seven usual causes. This example shows
how they look, and cures each. Read it with your own model beside it.

The data are short messages, of which one in sixteen is spam.
"""

import random

rng = random.Random(0)
spam = ["win {} now", "claim {} today", "{} for you, reply YES"]
spam += ["{} is waiting", "call about {}"]
ham = ["see you {}", "are you free {}?", "call me about {}", "lunch {}?"]
ends = ["a prize", "a phone", "tonight", "on Friday", "the tickets"]
labels = ["spam" if rng.random() < 1 / 16 else "ham" for _ in range(900)]
texts = [
    rng.choice(spam if label == "spam" else ham).format(rng.choice(ends))
    for label in labels
]
train, dev, test = slice(0, 300), slice(300, 600), slice(600, None)

# %%
# Look before you change anything
# -------------------------------
#
# Average precision asks whether positives have higher probabilities than negatives, whatever the
# threshold. It is 1 for a perfect ranking, and about the share of positives for a useless one.
#
# - ``positives`` is 0: the labels are not what you think (1 or 2).
# - Nothing is predicted, and average precision is high: train longer (3) or move the threshold (4).
# - Nothing is predicted, and average precision is low: the model has learned nothing (3), has lost
#   what it knew (5), or the loss has collapsed (6).
# - Many are predicted, and F1 is 0: labels or tags do not match (2 or 7).
import warnings

import pandas as pd
from sklearn.metrics import average_precision_score as ranking

from skdice import BiasTunedClassifier, DiceSequenceClassifier
from skdice.losses import DSCLoss


def look(model):
    probability = model.predict_proba(texts[test])[:, 1]
    positive = [label == "spam" for label in labels[test]]
    return {
        "positives": sum(positive),
        "predicted": int((model.predict(texts[test]) == "spam").sum()),
        "F1": model.score(texts[test], labels[test]),
        "average precision": ranking(positive, probability),
        "highest probability": probability.max(),
    }


def fit(**settings):
    settings = {"loss": "ce", "random_state": 0, **settings}
    model = DiceSequenceClassifier(**settings)
    return model.fit(texts[train], labels[train])


with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    models = {
        "one epoch": fit(max_epochs=1, batch_size=128),
        "five epochs": fit(max_epochs=5),
        "rate 0.03": fit(max_epochs=2, lr=0.03),
        "printed DSC": fit(max_epochs=2, loss=DSCLoss.literal()),
    }
print(*(warning.message for warning in caught), sep="\n")
tuned = BiasTunedClassifier(models["one epoch"], cv="prefit")
models["one epoch, tuned"] = tuned.fit(texts[dev], labels[dev])
cases = {name: look(model) for name, model in models.items()}
print(pd.DataFrame(cases).T.round(2).to_string())

# %%
# The causes, and the cure of each:
#
# 1. **No positives to train on.** Files are often sorted by label. ``imbalance(y)`` counts, and
#    ``train_test_split(..., stratify=labels)`` mixes.
# 2. **Other labels.** ``"Spam"`` is not ``"spam"``, and ``1`` is not ``"1"``. Read both files in
#    the same way. Of two labels the rarer one is positive; ``pos_label="spam"`` says otherwise.
# 3. **Too few updates.** 300 texts in batches of 128 are three updates an epoch, and a head needs
#    tens of them. ``fit`` warns, above, if its last epoch named one class only, and has the number
#    of updates. Leave ``max_epochs`` out, or take more epochs or smaller batches.
# 4. **Only the threshold.** The model of one epoch ranks well, but no probability reaches 0.5.
#    ``BiasTunedClassifier`` moves it without training again: :doc:`Tuned decisions
#    </guide/decisions>`.
# 5. **Too high a rate.** The encoder loses what it knew and gives each text the same probability.
#    ``fit`` warns as for 3, and has the rate. Leave ``lr`` out, or take a tenth.
# 6. **A collapsed loss.** The printed formula of DSC is best for a positive at a probability of one
#    half. Use ``"dsc"``. A fit with ``"ce"`` tells whether a loss of your own is the cause.
# 7. **Other tags.** A tagger is scored on whole spans. One difference, and all are wrong:
from skdice.metrics import span_f1_score

true, small = [["B-PER", "I-PER", "O"]], [["B-per", "I-per", "O"]]
upper = [[tag.upper() for tag in tags] for tags in small]
print(span_f1_score(true, small), span_f1_score(true, upper))

# %%
# The picture shows the probabilities of the test texts. The line is the threshold of 0.5. At "one
# epoch" almost all positives lie above the negatives and below the line.
import matplotlib.pyplot as plt

fig, axes = plt.subplots(
    1, 5, figsize=(9, 3), sharey=True, layout="constrained"
)
for ax, (name, model) in zip(axes, models.items(), strict=True):
    probability = model.predict_proba(texts[test])[:, 1]
    places = [(y == "spam") + rng.uniform(-0.3, 0.3) for y in labels[test]]
    ax.scatter(places, probability, s=8, alpha=0.6)
    ax.axhline(0.5, color="grey", linestyle="--", linewidth=0.8)
    ax.set_xticks([0, 1], ["ham", "spam"])
    ax.set_title(f"{name}\nF1 {cases[name]['F1']:.2f}", fontsize=9)
axes[0].set_ylabel("probability of spam")
plt.show()
