"""
What did the tagger get wrong?
==============================

``span_errors`` lists every wrong span with the kind of error. ``SpanConfusionDisplay`` plots true
types against predicted types.
"""

import matplotlib.pyplot as plt

from skdice import DiceTokenClassifier
from skdice.datasets import load_town_notes
from skdice.inspection import SpanConfusionDisplay, show_tags, span_errors

X, y = load_town_notes(subset="train")
X_test, y_test = load_town_notes(subset="test")
tagger = DiceTokenClassifier(
    loss="ce_dice",  # finds rare types after fewer updates than "ce"
    max_epochs=3,
    lr=5e-4,
    batch_size=16,
    frozen=4,
    random_state=0,
)
predicted = tagger.fit(X, y).predict(X_test)

errors = span_errors(y_test, predicted, X_test)
print(errors.kind.value_counts())
print(errors[["kind", "true_type", "pred_type", "text"]].head())

# %%
SpanConfusionDisplay.from_predictions(y_test, predicted)
plt.show()

# %%
# Sentences with errors, and what the tagger predicted in them:
wrong = errors.row.unique()[:4]
show_tags([X_test[i] for i in wrong], [predicted[i] for i in wrong])
