"""
How imbalanced is my data?
==========================

Count the tokens inside and outside entities before you train anything. Below ten negatives to a
positive, cross-entropy is usually enough.
"""

import matplotlib.pyplot as plt

from skdice.datasets import load_town_notes
from skdice.inspection import ImbalanceDisplay

_, y = load_town_notes(subset="train")
ImbalanceDisplay.from_labels(y)
plt.show()
