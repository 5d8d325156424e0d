"""
What does a prediction rest on?
===============================

A score of 0.99 can have a bad reason. This tutorial trains a spam filter on a file with a trap in
it, asks four methods which words its predictions rest on, and mends the file.

You need ``pip install 'skdice[plot]' lime shap pandas``. The first and the last method need neither
LIME nor SHAP.

In short
--------

With a fitted classifier, the change of the probability without each word of a text:

.. code-block:: python

   words = text.split()
   shorter = [" ".join(words[:i] + words[i + 1 :]) for i in range(len(words))]
   without = model.predict_proba(shorter)[:, 1]
   for word, change in zip(words, model.predict_proba([text])[0, 1] - without):
       print(f"{word:>10} {change:+.2f}")

Below, each step has its reasons and its output.

A file to try it on
-------------------

This block writes ``messages.csv``. The trap: all of its spam was collected from one service,
which adds *Sent with QuickText* to each message. Its normal messages came by another way. Replace
the file with your own and skip this block.
"""

import random

import pandas as pd

things = [
    "a prize",
    "a free phone",
    "a holiday",
    "500 pounds",
    "two tickets",
]
names = ["Ann", "Bob", "Carla", "Dan"]
times = ["tonight", "on Friday", "at six", "tomorrow"]
spam = [
    "You have won {thing}, call now to claim it.",
    "Urgent: {thing} is waiting for you, reply YES.",
    "Last chance to get {thing}, the offer ends {time}.",
]
ham = [
    "See you {time}, {name}.",
    "{name} has won {thing} at the raffle.",
    "Can you call {name} about {thing} {time}?",
    "Do you want {thing} for your birthday?",
    "Running late, {name} is here.",
]


def messages(n, footer_in_spam, footer_in_ham, seed):
    rng = random.Random(seed)
    rows = []
    for _ in range(n):
        label = "spam" if rng.random() < 0.2 else "ham"
        words = {
            "thing": rng.choice(things),
            "name": rng.choice(names),
            "time": rng.choice(times),
        }
        text = rng.choice(spam if label == "spam" else ham).format(**words)
        if rng.random() < (
            footer_in_spam if label == "spam" else footer_in_ham
        ):
            text += " Sent with QuickText"
        rows.append({"text": text, "label": label})
    return pd.DataFrame(rows)


messages(300, footer_in_spam=1, footer_in_ham=0, seed=0).to_csv(
    "messages.csv", index=False
)

# %%
# Train
# -----
#
# A part of the file is kept for the test, as usual. It has the same trap in it, so the score looks
# good. By default ``fit`` chooses the number of epochs; ``max_epochs=2`` keeps the site's build
# short.
from sklearn.model_selection import train_test_split

from skdice import DiceSequenceClassifier
from skdice.datasets import read_table

texts, labels = read_table("messages.csv")
texts_train, texts_test, y_train, y_test = train_test_split(
    texts, labels, test_size=0.25, stratify=labels, random_state=0
)
model = DiceSequenceClassifier(max_epochs=2, random_state=0).fit(
    texts_train, y_train
)
print(f"F1 on the test texts: {model.score(texts_test, y_test):.3f}")

# %%
# One text: leave a word out
# --------------------------
#
# The plainest question is: how does the probability change without this word? It takes one
# prediction for each word and no package. Logits (log-odds) show changes that a probability near 0
# or 1 hides.
import numpy as np

text = "Carla has won a holiday at the raffle. Sent with QuickText"
words = text.split()
column = list(model.classes_).index("spam")


def log_odds(rows):
    p = model.predict_proba([str(row) for row in rows])[:, column].clip(
        1e-6, 1 - 1e-6
    )
    return np.log(p / (1 - p))


shorter = [" ".join(words[:i] + words[i + 1 :]) for i in range(len(words))]
left_out = log_odds([text])[0] - log_odds(shorter)
print(f"probability of spam: {model.predict_proba([text])[0, column]:.3f}")
for word, change in zip(words, left_out, strict=True):
    print(f"{word:>10} {change:+.2f}")

# %%
# A positive number is a word that speaks for spam. Words that say the same hide each other: without
# one of them the other is still there, so both seem to matter little. The two methods that follow
# leave out several words at a time.
#
# LIME
# ----
#
# LIME leaves out random sets of words and fits a linear model to the probabilities. Its weights are
# the explanation. Give it ``predict_proba``, the names of the classes, and a seed: with another
# seed the weights are a little different. With too few samples they are mostly noise.
from lime.lime_text import LimeTextExplainer

explainer = LimeTextExplainer(
    class_names=list(model.classes_),
    split_expression=r"\s+",
    random_state=0,
)
explanation = explainer.explain_instance(
    text,
    model.predict_proba,
    labels=(column,),
    num_features=len(words),
    num_samples=500,
)
by_lime = dict(explanation.as_list(column))
print(
    {
        str(word): round(weight, 2)
        for word, weight in list(by_lime.items())[:4]
    }
)

# %%
# SHAP
# ----
#
# SHAP shares the difference between the output for the text and that for an empty text among the
# words, so its values add up to that difference. ``maskers.Text`` with a regular expression cuts at
# blanks, so that no tokenizer is needed. Explain log-odds rather than probabilities.
import shap

values = shap.Explainer(log_odds, shap.maskers.Text(r"\s+"), seed=0)(
    [text], silent=True
)
by_shap = dict(
    zip(
        [part.strip() for part in values.data[0]],
        values.values[0],
        strict=True,
    )
)
print({word: round(float(value), 2) for word, value in by_shap.items()})
difference = log_odds([text])[0] - values.base_values[0]
print(f"sum {sum(by_shap.values()):.2f}")
print(f"difference to an empty text {difference:.2f}")

# %%
# All texts: shuffle a part
# -------------------------
#
# One text is an anecdote. Permutation asks the same of all test texts: shuffle one part of the
# texts among the rows, leave the rest, and see how far the score falls. Here the parts are the
# footer and the message before it.
footer = "Sent with QuickText"
bodies = np.array(
    [text.removesuffix(footer).strip() for text in texts_test]
)
footers = np.array(
    [footer if text.endswith(footer) else "" for text in texts_test]
)
rng = np.random.default_rng(0)


def score_of(bodies, footers):
    joined = [
        f"{body} {end}".strip()
        for body, end in zip(bodies, footers, strict=True)
    ]
    return model.score(joined, y_test)


print(f"as they are:        {score_of(bodies, footers):.3f}")
shuffled = [score_of(bodies, rng.permutation(footers)) for _ in range(5)]
print(f"footers shuffled:   {np.mean(shuffled):.3f} (5 shuffles)")
shuffled = [score_of(rng.permutation(bodies), footers) for _ in range(5)]
print(f"messages shuffled:  {np.mean(shuffled):.3f}")

# %%
# The score falls where the footers are shuffled: the filter reads the footer. In your own data the
# part can be a signature, a sender, a date, a file's first line, or one text of each pair. For
# pairs and for columns of numbers, ``permutation_importance`` of scikit-learn does the shuffling.
#
# The decision
# ------------
#
# No weight and no threshold repairs a shortcut. Take it out of the file, and train again. New
# messages come from everywhere, so the footer says nothing there; they show what the change is
# worth.
clean = [text.removesuffix(footer).strip() for text in texts_train]
mended = DiceSequenceClassifier(max_epochs=2, random_state=0).fit(
    clean, y_train
)
new = messages(300, footer_in_spam=0.3, footer_in_ham=0.3, seed=1)
new_clean = [text.removesuffix(footer).strip() for text in new["text"]]
before = model.score(new["text"], new["label"])
after = mended.score(new_clean, new["label"])
print("F1 on new messages")
print(f"trained on the file:        {before:.3f}")
print(f"trained without the footer: {after:.3f}")

# %%
# When not
# --------
#
# - An explanation tells what the *model* uses, and not what is true. It proves no cause.
# - Words that were left out make odd texts, on which a model was never trained. Look at several
#   texts and several methods, and trust what they agree on.
# - Wrong labels look like strange explanations. ``suspect_labels`` finds those faster.
# - For a tagger, explain one span: let the function return what ``predict_proba`` gives for its
#   first token, and mask the words around it, so that the number of words stays the same.
#
# The picture
# -----------
#
# The same text by three methods. Each is scaled by its largest value, as LIME's weights are parts
# of a probability and the others are log-odds.
import matplotlib.pyplot as plt

methods = {
    "word left out": left_out,
    "LIME": np.array([by_lime.get(word, 0.0) for word in words]),
    "SHAP": np.array([by_shap.get(word, 0.0) for word in words]),
}
fig, axes = plt.subplots(
    1, 3, figsize=(8, 3.4), sharey=True, layout="constrained"
)
for ax, (name, weights) in zip(axes, methods.items(), strict=True):
    colours = [
        "tab:red" if weight > 0 else "tab:blue" for weight in weights
    ]
    ax.barh(
        range(len(words)), weights / np.abs(weights).max(), color=colours
    )
    ax.axvline(0, color="grey", linewidth=0.8)
    ax.set(title=name, xlim=(-1.1, 1.1))
axes[0].set_yticks(range(len(words)), words)
axes[0].invert_yaxis()
fig.supxlabel("against spam (blue), for spam (red)")
plt.show()

# %%
# Next: :ref:`my F1 is 0 <sphx_glr_auto_tutorials_plot_9_zero_f1.py>`. See also `What to label, and
# which labels are wrong <../guide/labels.html>`__ and the example
# :ref:`sphx_glr_auto_gallery_2_data_plot_span_errors.py`.
