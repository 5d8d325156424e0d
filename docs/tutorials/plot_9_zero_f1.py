"""
My F1 is 0
==========

The model trains without an error, and its F1 is 0. There are seven usual causes. This tutorial
makes them happen one after the other, shows how each looks, and cures it. Read it with your own
model beside it: the first step tells where to go on.

You need ``pip install 'skdice[plot]' pandas``.

In short
--------

With a fitted classifier, three numbers tell the usual causes apart:

.. code-block:: python

   from sklearn.metrics import average_precision_score

   positive = model.classes_[1]
   probability = model.predict_proba(texts)[:, 1]
   truth = [label == positive for label in labels]
   print("positives", sum(truth))
   print("predicted", (model.predict(texts) == positive).sum())
   print("average precision", average_precision_score(truth, probability))

Below, each step has its reasons and its output.

Data to try it on
-----------------

Short messages, of which one in sixteen is spam. Replace them with your own and skip this block.
"""

import random

rng = random.Random(0)
spam = [
    "win {} now",
    "claim {} today",
    "{} for you, reply YES",
    "{} is waiting",
    "call about {}",
]
ham = [
    "see you {}",
    "are you free {}?",
    "call me about {}",
    "lunch {}?",
    "I am late {}",
]
ends = [
    "a prize",
    "a phone",
    "tonight",
    "on Friday",
    "at six",
    "the tickets",
    "the book",
]


def message():
    label = "spam" if rng.random() < 1 / 16 else "ham"
    return rng.choice(spam if label == "spam" else ham).format(
        rng.choice(ends)
    ), label


texts, labels = zip(*(message() for _ in range(900)), strict=True)
train, dev, test = slice(0, 300), slice(300, 600), slice(600, None)

# %%
# Look before you change anything
# -------------------------------
#
# Five numbers tell the causes apart. *Average precision* asks whether positives have higher
# probabilities than negatives, whatever the threshold. It is 1 for a perfect ranking, and about the
# share of positives, here 0.06, for a useless one.
import pandas as pd
from sklearn.metrics import average_precision_score

from skdice import DiceSequenceClassifier


def look(model, texts, y):
    probability = model.predict_proba(texts)[:, 1]
    positive = [label == model.classes_[1] for label in y]
    return {
        "positives": sum(positive),
        "predicted": int((model.predict(texts) == model.classes_[1]).sum()),
        "F1": model.score(texts, y),
        "average precision": average_precision_score(positive, probability),
        "highest probability": probability.max(),
    }


short = DiceSequenceClassifier(
    loss="ce", max_epochs=1, batch_size=128, random_state=0
)
short.fit(texts[train], labels[train])
cases = {"one epoch": look(short, texts[test], labels[test])}
print(pd.DataFrame(cases).round(2).to_string())

# %%
# Read it like this:
#
# - ``positives`` is 0: the labels are not what you think (step 1 or 2).
# - Nothing is predicted, and average precision is high: the ranking is fine. Train longer (step 3)
#   or move the threshold (step 4).
# - Nothing is predicted, and average precision is low: the model has learned nothing (step 3), or
#   has lost what it knew (step 5), or the loss has collapsed (step 6).
# - Many are predicted, and F1 is 0: labels or tags do not match (step 2 or 7).
#
# 1. Are there positives to train on?
# -----------------------------------
#
# Files are often sorted by label. Then the first 300 rows hold negatives only. A classifier refuses
# a single class, but it cannot know that three positives are too few.
rows = sorted(zip(labels, texts, strict=True))
first = [label for label, text in rows[:300]]
print("positives in the first rows of a sorted file:", first.count("spam"))
try:
    DiceSequenceClassifier().fit(
        [text for label, text in rows[:300]], first
    )
except ValueError as error:
    print(error)

# %%
# The cure is ``train_test_split(..., stratify=labels)``. ``skdice.inspection.imbalance(y)`` counts.
#
# 2. Are the labels the same?
# ---------------------------
#
# ``"Spam"`` is not ``"spam"``, and ``1`` is not ``"1"``. ``score`` refuses labels that ``fit`` did
# not see. Functions of scikit-learn take them as more classes, and give 0:
import warnings

from sklearn.metrics import f1_score

capitals = [label.title() for label in labels[test]]
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    print(
        "F1 by scikit-learn:",
        f1_score(capitals, short.predict(texts[test]), average="macro"),
    )
try:
    short.score(texts[test], capitals)
except ValueError as error:
    print(error)

# %%
# The cure is to read both files in the same way. Of two labels the rarer one in training is the
# positive class. If yours is not the rarer one, say so: ``pos_label="spam"``.
#
# 3. Were there enough updates?
# -----------------------------
#
# 300 texts in batches of 128 are three updates an epoch. The head begins at random, so it needs
# tens of them. Count yours with ``n_iter_`` times rows over ``batch_size``. The cure is
# ``max_epochs="auto"``, the default, or more epochs, or smaller batches; ``max_epochs=5`` keeps the
# site's build short. An overlap loss such as ``"ce_dice"`` needs fewer updates than ``"ce"``.
longer = DiceSequenceClassifier(loss="ce", max_epochs=5, random_state=0)
longer.fit(texts[train], labels[train])
cases["five epochs"] = look(longer, texts[test], labels[test])

# %%
# 4. Is it only the threshold?
# ----------------------------
#
# The first model ranks well and predicts nothing, because no probability reaches 0.5. That is
# common where positives are rare. ``BiasTunedClassifier`` moves the threshold to where F1 is best
# on the development texts, without training again.
from skdice import BiasTunedClassifier

tuned = BiasTunedClassifier(short, cv="prefit", random_state=0).fit(
    texts[dev], labels[dev]
)
cases["one epoch, tuned"] = look(tuned, texts[test], labels[test])
print(pd.DataFrame(cases).round(2).to_string())

# %%
# 5. Was the learning rate too high?
# ----------------------------------
#
# With too high a rate an encoder loses what it knew, and gives each text the same probability.
# ``fit`` warns of that. The cure is ``lr="auto"``, the default, or a tenth of your rate.
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    high = DiceSequenceClassifier(
        loss="ce", max_epochs=2, lr=0.03, random_state=0
    )
    high.fit(texts[train], labels[train])
print(*(warning.message for warning in caught), sep="\n")
cases["rate 0.03"] = look(high, texts[test], labels[test])

# %%
# 6. Has the loss collapsed?
# --------------------------
#
# Some losses are small where nothing is predicted. The formula that the paper prints for DSC is
# best for a positive at a probability of one half, and often ends with negatives only. You get it
# by its own name only, ``literal()``, and with a warning. The cure is ``loss="dsc"``, or the
# default.
from skdice.losses import DSCLoss

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    printed = DiceSequenceClassifier(
        loss=DSCLoss.literal(), max_epochs=2, random_state=0
    )
    printed.fit(texts[train], labels[train])
print(caught[0].message)
cases["printed DSC"] = look(printed, texts[test], labels[test])

# %%
# A loss of your own with extreme weights does the same. Fit once with ``loss="ce"``: if that works,
# the loss is the cause. A loss that is NaN is another matter: ``fit`` counts ``skipped_updates`` in
# ``history_``, and stops after ten in a row.
#
# 7. Taggers: do tags mean the same?
# ----------------------------------
#
# A tagger is scored on whole spans: type, first and last token. One difference in writing, and no
# span is right. Here the types are written in small letters on one side:
from skdice.metrics import span_f1_score

true = [["B-PER", "I-PER", "O", "O", "B-LOC"]]
predicted = [["B-per", "I-per", "O", "O", "B-loc"]]
print("small letters:", span_f1_score(true, predicted))
mended = [[tag.upper() for tag in tags] for tags in predicted]
print("mended:       ", span_f1_score(true, mended))

# %%
# Tags without prefixes on one side, ``PER`` against ``B-PER``, score 0 as well, since each token is
# then a span of its own. So do predictions that are shifted by a token, and borders that never
# match: ``span_errors`` names the kind of each error, and ``show_tags(X, y)`` prints what a file
# holds. ``tagger.scheme_`` is the scheme that was recognised. ``convert_scheme`` writes tags in
# another.
#
# When 0 is right
# ---------------
#
# - With five positives in the test, F1 is 0 by chance now and then. Take more, or cross-validate.
# - If average precision is low after a long training with ``"ce"``, the text may not tell. Ask a
#   person to label fifty texts without seeing the labels.
#
# The picture
# -----------
#
# Probabilities of positives and negatives on the test texts, in each case. The line is the
# threshold of 0.5. At "one epoch" all positives lie above the negatives and below the line.
import matplotlib.pyplot as plt

models = {
    "one epoch": short,
    "five epochs": longer,
    "one epoch, tuned": tuned,
    "rate 0.03": high,
    "printed DSC": printed,
}
spread = random.Random(0)
fig, axes = plt.subplots(
    1, 5, figsize=(9, 3.2), sharey=True, layout="constrained"
)
for ax, (name, model) in zip(axes, models.items(), strict=True):
    probability = model.predict_proba(texts[test])[:, 1]
    for i, (label, colour) in enumerate(
        [("ham", "tab:blue"), ("spam", "tab:red")]
    ):
        heights = [
            p
            for p, y in zip(probability, labels[test], strict=True)
            if y == label
        ]
        places = [i + spread.uniform(-0.3, 0.3) for _ in heights]
        ax.scatter(places, heights, s=8, color=colour, alpha=0.6)
    ax.axhline(0.5, color="grey", linestyle="--", linewidth=0.8)
    ax.set_xticks([0, 1], ["ham", "spam"])
    ax.set_title(f"{name}\nF1 {cases[name]['F1']:.2f}", fontsize=9)
axes[0].set_ylabel("probability of spam")
plt.show()

# %%
# See also `Tuned decisions <../guide/decisions.html>`__, `How fit chooses the rate and the length
# <../guide/recipe.html>`__ and the example
# :ref:`sphx_glr_auto_gallery_1_tasks_plot_tuned_decision.py`.
