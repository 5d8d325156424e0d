"""
Find at least 90 % of the spam
==============================

A filter makes a promise: *it finds at least nine of ten spam messages, with as few false alarms as
it can*. This example goes from a file of messages to a filter that keeps the promise on messages
that it has not seen.

The first block writes ``messages.csv``, in which one message in ten is spam. Some are hard: "call
me on this number" is written by friends and by spammers. With a file of your own, skip the block.
"""

import random

import pandas as pd

rng = random.Random(0)
words = {
    "thing": "a prize|a free phone|a holiday|500 pounds|two tickets",
    "name": "Ann|Bob|Carla|Dan|Eve|Femi|Gus|Hana",
    "time": "at six|tonight|on Friday|after lunch|tomorrow|next week",
}
spam = """You have won {thing}! Call now to claim
Urgent: {thing} is waiting for you, reply YES
Last chance to get {thing}, offer ends {time}
Hi, it's {name}, please call me on this number {time}"""
ham = """See you {time}, {name}
{name} has won {thing} at the school raffle!
Can you call {name} about {thing} {time}?
Running late, start without me, {name} is here
Do you want {thing} for your birthday?
{name} and I are at the river {time}
Hi, it's {name}, please call me on this number {time}"""
rows = []
for _ in range(1600):
    label = "spam" if rng.random() < 0.1 else "ham"
    weights = [9, 9, 9, 6] if label == "spam" else [9, 3, 3, 9, 3, 9, 1]
    lines = (spam if label == "spam" else ham).splitlines()
    chosen = {key: rng.choice(of.split("|")) for key, of in words.items()}
    sent = f"{rng.randrange(24):02}:{rng.randrange(60):02}"
    text = rng.choices(lines, weights)[0].format(**chosen)
    rows.append({"text": f"{sent} {text}", "label": label})
pd.DataFrame(rows).to_csv("messages.csv", index=False)

# %%
# ``read_table`` finds the columns by their names; ``text_columns=`` and ``label_column=`` name them
# where it cannot. The messages are cut into three parts: one to train on, one to tune the decision
# on, and one that is looked at once, at the end.
#
# A promise has a price. A recall of 0.9 on new messages, with a confidence of 95 %, needs at least
# 39 spam messages in the part that tunes. With fewer, ``fit`` warns, and takes the threshold of the
# best recall that can be promised.
from sklearn.model_selection import train_test_split

from skdice.datasets import read_table

texts, labels = read_table("messages.csv")
texts_train, texts_rest, y_train, y_rest = train_test_split(
    texts, labels, train_size=400, stratify=labels, random_state=0
)
texts_dev, texts_test, y_dev, y_test = train_test_split(
    texts_rest, y_rest, test_size=0.5, stratify=y_rest, random_state=0
)
print("spam to train on:", list(y_train).count("spam"))
print("spam to tune on:", list(y_dev).count("spam"))

# %%
# Train and tune
# --------------
#
# Of two labels the rarer one is the positive class, here ``"spam"``; ``pos_label=`` says otherwise.
# The loss is cross-entropy, because the decision is tuned afterwards and cross-entropy ranks
# messages well. ``max_epochs=2`` keeps this page short: leave it out, and ``fit`` chooses.
#
# The classifier calls a message spam when its probability passes 0.5. ``BiasTunedClassifier`` moves
# that threshold. ``PrecisionAtRecall(0.9)`` asks for the highest precision among the thresholds
# whose recall is at least 0.9 on new messages. ``cv="prefit"`` tunes without another training.
from skdice import BiasTunedClassifier, DiceSequenceClassifier
from skdice.metrics import PrecisionAtRecall

classifier = DiceSequenceClassifier(loss="ce", max_epochs=2, random_state=0)
classifier.fit(texts_train, y_train)
tuned = BiasTunedClassifier(
    classifier, scoring=PrecisionAtRecall(0.9), cv="prefit", random_state=0
)
tuned.fit(texts_dev, y_dev)
scores = {
    "as trained": classifier.evaluate(texts_test, y_test),
    "tuned": tuned.evaluate(texts_test, y_test),
}
print(pd.DataFrame(scores).round(3).to_string())

# %%
# Accuracy would be 0.9 for a filter that finds no spam at all, so look at precision, recall and F1.
# Here the classifier finds enough without tuning, but nobody could know that before the test. The
# tuned filter finds more than it promises on most samples, because its threshold keeps a distance.
# With more spam in the part that tunes, the distance is smaller and the precision higher.
#
# The picture shows the decision on the test messages. On the left is precision for each bias: the
# ring is the chosen one, 0 is the classifier as trained, and the curve is dotted where recall is
# below 0.9. On the right is precision against recall.
import matplotlib.pyplot as plt

from skdice.inspection import DecisionDisplay

DecisionDisplay.from_estimator(tuned, texts_test, y_test)
plt.show()

# %%
# The folder that ``save_pretrained`` writes holds the tuned decision.
tuned.save_pretrained("spam-filter")
filter_ = DiceSequenceClassifier.from_pretrained("spam-filter")
new = ["Claim a free holiday, reply YES", "Carla is late, see you at six"]
for text, label in zip(new, filter_.predict(new), strict=True):
    print(label, "|", text)

# %%
# If a false alarm is worse than missed spam, ask for ``RecallAtPrecision``; for a fixed number of
# alarms a day, ``AlertBudget``; with the price of each mistake, ``Cost``. If spam changes, tune
# again: see :doc:`Tuned decisions </guide/decisions>`.
