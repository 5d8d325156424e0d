"""
Labels that a model wrote, and how to clean them
================================================

A model that is not good enough, such as a prompt, can write the labels of many texts in minutes.
Some are wrong, and not at random: the model errs where texts are hard. ``suspect_labels`` lists
labels that a second model doubts, so that a person looks at these first.

Here the first model is a logistic regression on 60 labelled messages. It stands for the prompt, so
that the page needs no network. Put your model's labels in its place.
"""

from importlib.resources import files

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.model_selection import train_test_split

from skdice import DiceClassifier, TransformerFeatures
from skdice.datasets import read_table
from skdice.inspection import suspect_labels

texts, labels = read_table(
    files("skdice.datasets") / "data/town_messages.csv"
)
X = TransformerFeatures().fit_transform(texts)
y = np.array(labels)
X, X_test, y, y_test = train_test_split(
    X, y, test_size=0.3, stratify=y, random_state=0
)
writer = LogisticRegression(class_weight="balanced").fit(X[:60], y[:60])
written = writer.predict(X)
print(f"{np.sum(written != y)} of {len(y)} labels are wrong")

# %%
# A person looks at the first labels of the list, and corrects those that are wrong. The picture
# shows how many are found by looking at so many rows, beside rows at random.
suspects = suspect_labels(DiceClassifier(random_state=0), X, written)
rows = np.array(suspects["row"], dtype=int)
found = np.cumsum((written != y)[rows])
looked = np.arange(1, len(rows) + 1)
fig, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
ax.plot(looked, found, label="suspect_labels")
ax.plot(looked, looked * np.mean(written != y), ":", label="at random")
ax.set(xlabel="labels looked at", ylabel="wrong labels found")
ax.legend()
plt.show()


# %%
# What the correction is worth, as F1 on messages whose labels are right:
def score(given):
    """F1 of a head that was trained on these labels."""
    head = DiceClassifier(loss="ce", random_state=0).fit(X, given)
    return f1_score(y_test, head.predict(X_test), pos_label="spam")


corrected = written.copy()
corrected[rows] = y[rows]
print(
    f"{len(rows)} labels looked at, {found[-1] if len(rows) else 0} wrong"
)
for name, given in (
    ("as written", written),
    ("suspects corrected", corrected),
    ("all right", y),
):
    print(f"F1 {score(given):.2f}  {name}")

# %%
# Never tune or test on labels that a model wrote: a promise on them is a promise about that model.
