"""
What does a prediction rest on?
===============================

A score of 0.99 can have a bad reason. This example trains a spam filter on a file with a trap in
it, asks which words its predictions rest on, and mends the file. It needs
``pip install lime shap``.

The trap: all spam was collected from one service, which adds *Sent with QuickText* to each message.
The normal messages came by another way.
"""

import random

things = ["a prize", "a free phone", "a holiday", "500 pounds"]
spam = ["You have won {}, call now.", "Urgent: {} is waiting, reply YES."]
ham = ["See you at six, Ann.", "Carla has won {} at the raffle."]
ham += ["Can you call Bob about {}?", "Do you want {} for your birthday?"]
ham += ["Running late, Dan is here."]
footer = "Sent with QuickText"


def messages(n, footer_in_spam, footer_in_ham, seed):
    rng = random.Random(seed)
    labels = ["spam" if rng.random() < 0.2 else "ham" for _ in range(n)]
    texts = []
    for label in labels:
        text = rng.choice(spam if label == "spam" else ham)
        share = footer_in_spam if label == "spam" else footer_in_ham
        end = f" {footer}" if rng.random() < share else ""
        texts.append(text.format(rng.choice(things)) + end)
    return texts, labels


# %%
# A part of the messages is kept for the test, as usual. It has the same trap in it, so the score
# looks good. ``max_epochs=2`` keeps this page short: leave it out, and ``fit`` chooses.
from skdice import DiceSequenceClassifier

texts, labels = messages(300, footer_in_spam=1, footer_in_ham=0, seed=0)
train, test = slice(0, 225), slice(225, None)
model = DiceSequenceClassifier(max_epochs=2, random_state=0)
model.fit(texts[train], labels[train])
print(f"F1 on the test texts: {model.score(texts[test], labels[test]):.3f}")

# %%
# One text, three methods
# -----------------------
#
# - **Leave a word out.** How does the output change without it? It takes one prediction for each
#   word and no package. Words that say the same hide each other: without one of them the other is
#   still there. Log-odds show changes that a probability near 0 or 1 hides.
# - **LIME** leaves out random sets of words and fits a linear model to the probabilities. Give it a
#   seed. With too few samples its weights are mostly noise.
# - **SHAP** shares the difference between the output for the text and that for an empty text among
#   the words. ``maskers.Text`` with a regular expression cuts at blanks, without a tokenizer.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import shap
from lime.lime_text import LimeTextExplainer

text = f"Carla has won a holiday at the raffle. {footer}"
words = text.split()


def log_odds(rows):
    p = model.predict_proba([str(row) for row in rows])[:, 1]
    return np.log(p.clip(1e-6) / (1 - p).clip(1e-6))


shorter = [" ".join(words[:i] + words[i + 1 :]) for i in range(len(words))]
left_out = log_odds([text])[0] - log_odds(shorter)

explainer = LimeTextExplainer(split_expression=r"\s+", random_state=0)
explanation = explainer.explain_instance(
    text, model.predict_proba, num_features=len(words), num_samples=500
)
by_lime = dict(explanation.as_list())
explainer = shap.Explainer(log_odds, shap.maskers.Text(r"\s+"), seed=0)
by_shap = explainer([text], silent=True)
methods = {
    "word left out": left_out,
    "LIME": [by_lime.get(word, 0.0) for word in words],
    "SHAP": by_shap.values[0],
}
table = pd.DataFrame(methods, words)
print(table.round(2).to_string())
(table / table.abs().max()).plot.barh(
    subplots=True, layout=(1, 3), sharey=True, legend=False
)
plt.show()

# %%
# A positive number is a word that speaks for spam. Each method is scaled by its largest value in
# the picture. An explanation tells what the *model* uses, and not what is true. Look at several
# texts and several methods, and trust what they agree on.
#
# All texts: shuffle a part
# -------------------------
#
# One text is an anecdote. Permutation asks all test texts: shuffle one part among the rows, here
# the footer, and see how far the score falls. For pairs and for columns of numbers,
# ``permutation_importance`` of scikit-learn does the shuffling.
bodies = [text.removesuffix(footer) for text in texts[test]]
ends = [footer if text.endswith(footer) else "" for text in texts[test]]
random.Random(0).shuffle(ends)
shuffled = list(map(str.__add__, bodies, ends))
print(f"with shuffled footers: {model.score(shuffled, labels[test]):.3f}")

# %%
# The filter reads the footer. No weight and no threshold repairs that: take the footer out of the
# file, and train again. New messages come from everywhere, and show what the change is worth.
clean = [text.removesuffix(footer).strip() for text in texts[train]]
mended = DiceSequenceClassifier(max_epochs=2, random_state=0)
mended.fit(clean, labels[train])
new, y_new = messages(300, footer_in_spam=0.3, footer_in_ham=0.3, seed=1)
new_clean = [text.removesuffix(footer).strip() for text in new]
print(f"new messages, trained on the file: {model.score(new, y_new):.3f}")
print(f"trained without the footer: {mended.score(new_clean, y_new):.3f}")
