"""
Find at least 90 % of the spam
==============================

A filter is asked for a promise: *find at least nine of ten spam messages, and raise as few false
alarms as you can*. This tutorial goes from a file of messages to a filter that keeps the promise on
messages that it has not seen.

You need ``pip install 'skdice[plot]' pandas``.

In short
--------

With your own ``messages.csv``, which has a column ``text`` and a column ``label``:

.. code-block:: python

   from skdice import BiasTunedClassifier, DiceSequenceClassifier
   from skdice.datasets import read_table
   from skdice.metrics import PrecisionAtRecall

   texts, labels = read_table("messages.csv")
   classifier = DiceSequenceClassifier(loss="ce")
   aim = PrecisionAtRecall(0.9)
   spam_filter = BiasTunedClassifier(classifier, scoring=aim)
   spam_filter.fit(texts, labels).save_pretrained("spam-filter")

Below, each step has its reasons and its output.

A file to try it on
-------------------

This block writes ``messages.csv``, with a column for the text and one for the label. One
message in ten is spam, and each begins with the time when it was sent. Some messages are hard:
"call me on this number" is written by friends and by spammers. Replace the file with your own and
skip this block.
"""

import random

import pandas as pd

rng = random.Random(0)
things = [
    "a prize",
    "a free phone",
    "a holiday",
    "a ring tone",
    "500 pounds",
    "two tickets",
]
names = ["Ann", "Bob", "Carla", "Dan", "Eve", "Femi", "Gus", "Hana"]
times = [
    "at six",
    "tonight",
    "on Friday",
    "after lunch",
    "tomorrow",
    "next week",
]
spam = [
    "You have won {thing}! Call now to claim",
    "Urgent: {thing} is waiting for you, reply YES",
    "Last chance to get {thing}, offer ends {time}",
    "Hi, it's {name}, please call me on this number {time}",
]
ham = [
    "See you {time}, {name}",
    "{name} has won {thing} at the school raffle!",
    "Can you call {name} about {thing} {time}?",
    "Running late, start without me, {name} is here",
    "Do you want {thing} for your birthday?",
    "{name} and I are at the river {time}",
    "Hi, it's {name}, please call me on this number {time}",
]
rows = []
for _ in range(1600):
    label = "spam" if rng.random() < 0.1 else "ham"
    weights = [9, 9, 9, 2] if label == "spam" else [9, 3, 3, 9, 3, 9, 1]
    template = rng.choices(spam if label == "spam" else ham, weights)[0]
    words = {
        "thing": rng.choice(things),
        "name": rng.choice(names),
        "time": rng.choice(times),
    }
    sent = f"{rng.randrange(24):02}:{rng.randrange(60):02}"
    rows.append(
        {"text": f"{sent} {template.format(**words)}", "label": label}
    )
pd.DataFrame(rows).to_csv("messages.csv", index=False)

# %%
# Read it
# -------
#
# ``read_table`` finds the columns by their names. ``text_columns=`` and ``label_column=`` name them
# where it cannot. The messages are cut into three parts: one to train on, one to tune the decision
# on, and one that is looked at once, at the end.
from sklearn.model_selection import train_test_split

from skdice.datasets import read_table
from skdice.inspection import imbalance

texts, labels = read_table("messages.csv")
texts_train, texts_rest, y_train, y_rest = train_test_split(
    texts, labels, train_size=400, stratify=labels, random_state=0
)
texts_dev, texts_test, y_dev, y_test = train_test_split(
    texts_rest, y_rest, test_size=0.5, stratify=y_rest, random_state=0
)
ratio = imbalance(y_train).ratio
print(f"{ratio:.1f} messages that are no spam for each that is")
print("spam to train on:", list(y_train).count("spam"))
print("spam to tune on:", list(y_dev).count("spam"))

# %%
# A promise has a price: a recall of 0.9 that holds for new messages, with 95 % confidence, needs at
# least 39 spam messages in the part that tunes. With fewer, no threshold can be shown to be good
# enough: ``fit`` warns, and takes the threshold of the best recall that can be promised.
#
# Train
# -----
#
# ``DiceSequenceClassifier`` fine-tunes a small transformer. Of two labels the rarer one is the
# positive class, here ``"spam"``; ``pos_label=`` says otherwise. The loss is cross-entropy, because
# the decision is tuned afterwards and cross-entropy ranks messages well. By default ``fit`` chooses
# the learning rate and the number of epochs. Here ``max_epochs=2`` keeps the site's build short:
# leave it out for your own data.
from skdice import DiceSequenceClassifier

classifier = DiceSequenceClassifier(loss="ce", max_epochs=2, random_state=0)
classifier.fit(texts_train, y_train)
pd.Series(classifier.evaluate(texts_test, y_test)).round(3)

# %%
# ``score`` and ``evaluate`` know which class is positive. Accuracy would be 0.9 for a filter that
# finds no spam at all, so look at precision, recall and F1.
#
# Tune the decision
# -----------------
#
# The classifier calls a message spam when its probability passes 0.5. ``BiasTunedClassifier`` moves
# that threshold. ``PrecisionAtRecall(0.9)`` says what for: the highest precision among the
# thresholds whose recall is at least 0.9 on new messages. ``cv="prefit"`` tunes the classifier as
# it is, without another training.
from skdice import BiasTunedClassifier
from skdice.metrics import PrecisionAtRecall

tuned = BiasTunedClassifier(
    classifier, scoring=PrecisionAtRecall(0.9), cv="prefit", random_state=0
)
tuned.fit(texts_dev, y_dev)
pd.DataFrame(
    {
        "as trained": classifier.evaluate(texts_test, y_test),
        "tuned": tuned.evaluate(texts_test, y_test),
    }
).round(3)

# %%
# The tuned filter finds more spam than it promises on most samples: the promise has to hold for new
# messages too, so the threshold keeps a distance. More spam in the tuning part makes the distance
# smaller, and so the precision higher.
#
# Use it
# ------
#
# ``save_pretrained`` writes a folder with the tuned decision in it. ``from_pretrained`` reads it
# back.
tuned.save_pretrained("spam-filter")
filter_ = DiceSequenceClassifier.from_pretrained("spam-filter")
new = [
    "Claim a free holiday now, reply YES",
    "Carla is late, see you at six",
]
for text, label in zip(new, filter_.predict(new), strict=True):
    print(label, "|", text)

# %%
# When not
# --------
#
# - If a false alarm is worse than missed spam, ask for ``RecallAtPrecision``.
# - If people look at a fixed number of alarms a day, ask for ``AlertBudget``.
# - If you know what each mistake costs, give a ``Cost``.
# - The promise holds for messages of the same kind. If spam changes, tune again on newer messages;
#   if only its share changes, see ``adapt_prior`` in `Tuned decisions <../guide/decisions.html>`__.
#
# The picture
# -----------
#
# ``DecisionDisplay`` shows the decision on the test messages. On the left is precision for each
# bias: the ring is the chosen one, 0 is the classifier as trained, and the dotted part of the curve
# is where recall falls below 0.9. On the right is precision against recall. The ring should lie to
# the right of the bound.
import matplotlib.pyplot as plt

from skdice.inspection import DecisionDisplay

DecisionDisplay.from_estimator(tuned, texts_test, y_test)
plt.show()

# %%
# Next: :ref:`entities in raw text <sphx_glr_auto_tutorials_plot_2_entities.py>`. See also the
# examples :ref:`sphx_glr_auto_gallery_1_tasks_plot_tuned_decision.py` and
# :ref:`sphx_glr_auto_gallery_2_data_plot_calibration.py`.
