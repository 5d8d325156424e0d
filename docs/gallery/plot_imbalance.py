"""
How imbalanced is my data?
==========================

Count tokens inside and outside of entities before anything is trained. Below ten to one, cross-
entropy is usually enough.
"""

import matplotlib.pyplot as plt

from skdice.datasets import load_town_notes
from skdice.inspection import ImbalanceDisplay

_, y = load_town_notes(subset="train")
ImbalanceDisplay.from_labels(y)
plt.show()
