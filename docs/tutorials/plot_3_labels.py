"""
Several labels a text
=====================

A customer writes: *the parcel came late and the cup is broken*. That is two things at once. This
tutorial goes from a file of messages with any number of labels to a decision for each label.

You need ``pip install 'skdice[plot]' pandas``.

In short
--------

With your own ``messages.jsonl``, whose lines have a text and a list of labels:

.. code-block:: python

   from skdice import BiasTunedClassifier, DiceSequenceClassifier
   from skdice.datasets import read_table

   texts, labels = read_table("messages.jsonl")
   classifier = DiceSequenceClassifier(loss="ce")
   tuned = BiasTunedClassifier(classifier, scoring="f1")
   tuned.fit(texts, labels)
   tuned.predict_labels(["The chair is broken, I want my money back."])

Below, each step has its reasons and its output.

A file to try it on
-------------------

This block writes ``messages.jsonl``: on each line a text and a list of labels, which may be
empty. Some labels are rare: one message in fifty is about a refund. Replace the file with your own
and skip this block.
"""

import json
import random
from pathlib import Path

rng = random.Random(1)
shares = {"late": 0.2, "broken": 0.12, "praise": 0.15, "refund": 0.04}
says = {
    "late": [
        "the parcel is a week late",
        "where is my order",
        "it still has not arrived",
    ],
    "broken": [
        "the cup is cracked",
        "the lamp does not work",
        "one leg of the chair is broken",
    ],
    "praise": [
        "lovely colour",
        "I am very happy with it",
        "friendly service as always",
    ],
    "refund": [
        "I want my money back",
        "please cancel and pay it back",
        "send the money to my card",
    ],
}
other = [
    *(
        "my number is 4711",
        "it was for my sister",
        "please reply",
        "I ordered in May",
    ),
    *(
        "thank you",
        "the money is on its way",
        "it arrived on time",
        "nothing is broken so far",
    ),
]
lines = []
for _ in range(1400):
    labels = [
        label for label, share in shares.items() if rng.random() < share
    ]
    parts = [rng.choice(says[label]) for label in labels] + rng.sample(
        other, rng.choice([1, 2])
    )
    rng.shuffle(parts)
    lines.append(
        json.dumps(
            {"text": ", ".join(parts).capitalize() + ".", "labels": labels}
        )
    )
Path("messages.jsonl").write_text("\n".join(lines))
print(*lines[:4], sep="\n")

# %%
# Read it
# -------
#
# ``read_table`` reads JSON lines, CSV and TSV. A column of lists gives a text several labels; so do
# columns of 0 and 1, named by ``label_columns=``. The rows are cut into three parts: to train on,
# to tune the decision on, and to look at once, at the end.
import pandas as pd

from skdice.datasets import read_table

texts, labels = read_table("messages.jsonl")
train, dev, test = slice(0, 400), slice(400, 900), slice(900, None)
counts = pd.Series(
    [label for row in labels[train] for label in row]
).value_counts()
print(counts.to_string())

# %%
# Train
# -----
#
# ``DiceSequenceClassifier`` sees lists of names and makes a yes or no for each label. It needs no
# encoder such as ``MultiLabelBinarizer``. By default ``fit`` chooses the learning rate and the
# number of epochs. ``max_epochs=2`` keeps the site's build short: leave it out for your own data.
from skdice import DiceSequenceClassifier

classifier = DiceSequenceClassifier(loss="ce", max_epochs=2, random_state=0)
classifier.fit(texts[train], labels[train])
print(*classifier.classes_)
for text, row in zip(
    texts[test][:3], classifier.predict_labels(texts[test][:3]), strict=True
):
    print(row, "|", text)

# %%
# ``predict`` gives a row of 0 and 1 for each text, in the order of ``classes_``, as in
# scikit-learn. ``predict_labels`` gives the names.
#
# Which score?
# ------------
#
# ``score`` is micro F1, which counts all labels of all texts together. A rare label hardly changes
# it. Macro F1 is the mean over the labels, and ``evaluate`` gives it with the F1 of each label.
# Here is what the plain decision, at a probability of 0.5, is worth on the test messages:
plain = classifier.evaluate(texts[test], labels[test])
print({name: round(value, 3) for name, value in plain.items()})

# %%
# A decision for each label
# -------------------------
#
# A label that is rare in training is rarely given a probability above 0.5, so its recall is low.
# Its threshold has to be lower than that of a frequent label. ``BiasTunedClassifier`` with
# ``scoring="f1"`` tunes each label for its own F1 on the dev messages.
from skdice import BiasTunedClassifier

tuned = BiasTunedClassifier(
    classifier, scoring="f1", cv="prefit", random_state=0
)
tuned.fit(texts[dev], labels[dev])
table = pd.DataFrame(
    {"plain": plain, "tuned": tuned.evaluate(texts[test], labels[test])}
)
print(table.round(3).to_string())
print(pd.Series(tuned.bias_.round(2), tuned.classes_, name="bias"))

# %%
# A positive bias means that the label is given more often than before, and 0 that the plain
# decision was kept, because nothing better could be shown. A label with few positives among the dev
# messages mostly takes a bias that is common to all labels, since its own would follow chance.
#
# Other wishes are other objectives: ``Fbeta(2)`` if a missed label is worse than a wrong one,
# ``RecallAtPrecision(0.9, each=True)`` if nine of ten messages in each queue have to belong there,
# and ``Cost`` if you know what the mistakes cost.
#
# Use it
# ------
tuned.save_pretrained("message-labels")
loaded = DiceSequenceClassifier.from_pretrained("message-labels")
new = [
    "The chair is broken, I want my money back.",
    "Thank you, the lamp is lovely.",
    "Please reply.",
]
for text, row in zip(new, loaded.predict_labels(new), strict=True):
    print(row, "|", text)

# %%
# The same on the command line:
#
# .. code-block:: console
#
#    $ skdice imbalance messages.jsonl
#    $ skdice train messages.jsonl --out message-labels
#    $ skdice predict message-labels new.txt
#
# When not
# --------
#
# - If each text has exactly one label of several, pass one label for each text and not a list: then
#   the probabilities of a text sum to 1, and one label is always chosen.
# - If labels exclude each other or need each other, skdice does not know: it decides each label by
#   itself.
# - With hundreds of labels and few texts for each, try ``TfidfClassifier`` first.
#
# The picture
# -----------
#
# The rarest label against its bias, on the test messages. On the left is its F1: 0 is the plain
# decision, the ring is the tuned one, and the band holds the best biases of ten draws of the dev
# messages. A wide band says that the dev messages do not tell which bias is best. On the right is
# precision against recall.
import matplotlib.pyplot as plt

from skdice.inspection import DecisionDisplay

DecisionDisplay.from_estimator(
    tuned, texts[test], labels[test], label="refund"
)
plt.show()

# %%
# Next: :ref:`pairs of texts <sphx_glr_auto_tutorials_plot_4_pairs.py>`. See also `Classifying texts
# and pairs <../guide/texts.html>`__ and `Tuned decisions <../guide/decisions.html>`__.
