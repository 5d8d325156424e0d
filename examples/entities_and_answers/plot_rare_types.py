"""
How rare is each type, and which does a tagger miss?
====================================================

Count the tokens inside and outside entities before you train anything. Below ten negatives to a
positive, cross-entropy is usually enough.
"""

import matplotlib.pyplot as plt
import pandas as pd

from skdice import DiceTokenClassifier
from skdice.datasets import load_town_notes
from skdice.inspection import imbalance
from skdice.metrics import span_report

X, y = load_town_notes(subset="train")
X_dev, y_dev = load_town_notes(subset="dev")
counts = pd.Series(imbalance(y).counts)
counts.plot.barh(logx=True, xlabel="tokens").invert_yaxis()
plt.show()

# %%
# Precision and recall of each entity type against its frequency, for a tagger that was trained
# for a short time. Rare types are on the left. High precision with low recall is typical of a rare
# class: the tagger predicts it too seldom.
tagger = DiceTokenClassifier(
    loss="ce_dice",  # finds rare types after fewer updates than "ce"
    max_epochs=3,
    lr=5e-4,
    frozen=4,
    batch_size=16,
    random_state=0,
)
tagger.fit(X, y)
report = span_report(y_dev, tagger.predict(X_dev), output_dict=True)
types = {
    name: row for name, row in report.items() if not name.endswith("avg")
}
counts = [row["support"] for row in types.values()]
_, ax = plt.subplots(figsize=(5.5, 3.6), layout="constrained")
for measure, mark in (("recall", "o"), ("precision", "^")):
    values = [row[measure] for row in types.values()]
    ax.plot(counts, values, mark, label=measure)
for name, row in types.items():
    ax.annotate(
        name, (row["support"], row["recall"]), ha="center", va="bottom"
    )
ax.set(xscale="log", xlabel="true spans", ylim=(-0.05, 1.15))
ax.legend()
plt.show()
