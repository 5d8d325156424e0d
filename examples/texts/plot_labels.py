"""
Several labels a text
=====================

A customer writes: *the parcel came late and the cup is broken*. That is two things at once. This
example goes from a file of messages with any number of labels to a decision for each label.

The first block writes ``messages.jsonl``: on each line a text and a list of labels, which may be
empty. One message in 25 is about a refund. With a file of your own, skip the block.
"""

import json
import random
from pathlib import Path

rng = random.Random(1)
shares = {"late": 0.2, "broken": 0.12, "praise": 0.15, "refund": 0.04}
says = {
    "late": """the parcel is a week late
where is my order""",
    "broken": """the cup is cracked
the lamp does not work
the leg of a chair is broken""",
    "praise": """I am very happy with it
friendly service as always""",
    "refund": """I want my money back
send the money to my card""",
}
other = """my number is 4711
it was for my sister
please reply
I ordered in May
thank you
the money is on its way
it arrived on time
nothing is broken so far""".splitlines()
lines = []
for _ in range(1400):
    labels = [
        name for name, share in shares.items() if rng.random() < share
    ]
    parts = [rng.choice(says[label].splitlines()) for label in labels]
    parts += rng.sample(other, rng.choice([1, 2]))
    rng.shuffle(parts)
    text = ", ".join(parts).capitalize() + "."
    lines.append(json.dumps({"text": text, "labels": labels}))
Path("messages.jsonl").write_text("\n".join(lines))
print(*lines[:4], sep="\n")

# %%
# ``read_table`` reads JSON lines, CSV and TSV. A column of lists gives a text several labels; so do
# columns of 0 and 1, named by ``label_columns=``. The rows are cut into three parts: to train on,
# to tune the decision on, and to look at once, at the end.
#
# ``DiceSequenceClassifier`` sees lists of names and makes a yes or no for each label. The loss is
# cross-entropy, as the decision is tuned afterwards. ``max_epochs=2`` keeps this page short.
from skdice import DiceSequenceClassifier
from skdice.datasets import read_table

texts, labels = read_table("messages.jsonl")
train, dev, test = slice(0, 400), slice(400, 900), slice(900, None)
classifier = DiceSequenceClassifier(loss="ce", max_epochs=2, random_state=0)
classifier.fit(texts[train], labels[train])

# %%
# A decision for each label
# -------------------------
#
# ``score`` is micro F1, which counts all labels of all texts together. A rare label hardly changes
# it. Macro F1 is the mean over the labels, and ``evaluate`` gives it with the F1 of each label.
#
# A label that is rare in training seldom has a probability above 0.5, so its threshold has to be
# lower than that of a frequent label. ``BiasTunedClassifier`` with ``scoring="f1"`` tunes each
# label for its own F1 on the dev messages.
import pandas as pd

from skdice import BiasTunedClassifier

tuned = BiasTunedClassifier(
    classifier, scoring="f1", cv="prefit", random_state=0
)
tuned.fit(texts[dev], labels[dev])
scores = {
    "plain": classifier.evaluate(texts[test], labels[test]),
    "tuned": tuned.evaluate(texts[test], labels[test]),
}
print(pd.DataFrame(scores).round(3).to_string())
print(pd.Series(tuned.bias_.round(2), tuned.classes_, name="bias"))

# %%
# A positive bias means that the label is given more often than before. Each bias is the mean of the
# best ones of twenty draws of the dev messages. A label with few positives among them mostly takes
# a bias that all labels share, since its own would follow chance.
#
# Other wishes are other objectives: ``Fbeta(2)`` if a missed label is worse than a wrong one,
# ``RecallAtPrecision(0.9, each=True)`` if nine of ten messages in each queue have to belong there,
# and ``Cost`` if you know what the mistakes cost.
#
# The picture shows the rarest label. On the left is its F1 against its bias: 0 is the plain
# decision, the ring is the tuned one, and the band holds the best biases of the draws. A wide band
# says that these do not tell which bias is best.
import matplotlib.pyplot as plt

from skdice.inspection import DecisionDisplay

DecisionDisplay.from_estimator(
    tuned, texts[test], labels[test], label="refund"
)
plt.show()

# %%
# ``predict`` gives rows of 0 and 1 in the order of ``classes_``; ``predict_labels`` gives names.
tuned.save_pretrained("message-labels")
loaded = DiceSequenceClassifier.from_pretrained("message-labels")
new = ["The chair is broken, I want my money back.", "Please reply."]
for text, row in zip(new, loaded.predict_labels(new), strict=True):
    print(row, "|", text)

# %%
# If each text has exactly one label of several, pass one label for each text and not a list.
