"""
How imbalanced is my data?
==========================

Count tokens inside and outside of entities before anything is trained. Below ten to one, cross-
entropy is usually enough.
"""

import matplotlib.pyplot as plt

from skdice.datasets import load_town_notes
from skdice.inspection import imbalance

_, y = load_town_notes(subset="train")
found = imbalance(y)
counts = dict(sorted(found.counts.items(), key=lambda item: -item[1]))

fig, ax = plt.subplots(figsize=(7, 3.5), layout="constrained")
bars = ax.bar(list(counts), list(counts.values()), color="#4a6b8a")
ax.bar_label(bars, fontsize=8)
ax.set(
    yscale="log", ylabel="tokens", title=f"{found.ratio:.1f} tokens outside entities for one inside"
)
plt.show()
