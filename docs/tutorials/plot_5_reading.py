"""
Reading, with questions that have no answer
===========================================

A reader finds the answer to a question in a text. Many questions have none, and a reader that
answers all the same is worse than none. This tutorial goes from a file of questions to a reader
that knows when to be silent.

You need ``pip install 'skdice[plot]' pandas``.

In short
--------

With your own files in the format of SQuAD 2.0:

.. code-block:: python

   from skdice import DiceQuestionAnswerer
   from skdice.datasets import read_squad

   X, y = read_squad("train.json")
   X_dev, y_dev = read_squad("dev.json")
   reader = DiceQuestionAnswerer().fit(X, y, X_val=X_dev, y_val=y_dev)
   reader.predict([("Who leads the choir?", "Eve Lind leads the choir.")])

Below, each step has its reasons and its output.

A file to try it on
-------------------

This block writes ``train.json``, ``dev.json`` and ``test.json`` in the format of SQuAD 2.0: a
text, the questions about it, and for each answer its first character and its words. Two questions
in five have no answer in their text. Replace the files with your own and skip this block.
"""

import json
import random
from pathlib import Path

rng = random.Random(3)
people = [
    "Ann Lee",
    "Bob Marsh",
    "Carla Diaz",
    "Dan Okoro",
    "Eve Lind",
    "Femi Ade",
    "Gus Bell",
    "Hana Ito",
]
places = [
    "the town hall",
    "the old mill",
    "the library",
    "the school",
    "the boat house",
    "the church",
]
times = [
    "on Monday",
    "on Friday",
    "at noon",
    "in May",
    "at six",
    "next week",
]
events = [
    "choir",
    "market",
    "chess club",
    "book fair",
    "flower show",
    "rowing course",
]
asks = {
    "who": "Who leads the {}?",
    "where": "Where is the {}?",
    "when": "When does the {} begin?",
}


def write_questions(name, n_texts):
    paragraphs = []
    for i in range(n_texts):
        event, other = rng.sample(events, 2)
        facts = {
            "who": rng.choice(people),
            "where": rng.choice(places),
            "when": rng.choice(times),
        }
        text = f"The {event} meets in {facts['where']}. "
        text += f"It begins {facts['when']}. "
        text += f"{facts['who']} leads it. The {other} is full."
        qas = []
        for kind in asks:
            answerable = rng.random() < 0.6
            start = text.index(facts[kind])
            answers = (
                [{"text": facts[kind], "answer_start": start}]
                if answerable
                else []
            )
            question = asks[kind].format(event if answerable else other)
            qas.append(
                {
                    "id": f"{i}-{kind}",
                    "question": question,
                    "answers": answers,
                    "is_impossible": not answerable,
                }
            )
        paragraphs.append({"context": text, "qas": qas})
    content = {
        "version": "v2.0",
        "data": [{"title": "notes", "paragraphs": paragraphs}],
    }
    Path(name).write_text(json.dumps(content))


for name, n_texts in (
    ("train.json", 130),
    ("dev.json", 50),
    ("test.json", 50),
):
    write_questions(name, n_texts)

# %%
# Read it
# -------
#
# ``read_squad`` gives pairs of question and text, and for each question a list of answers: the
# first character and the words. The list is empty where there is no answer. The file is checked: an
# answer that its text does not hold at that place is refused by its question's id.
from skdice.datasets import read_squad

X_train, y_train = read_squad("train.json")
X_dev, y_dev = read_squad("dev.json")
X_test, y_test, ids = read_squad("test.json", return_ids=True)
print(X_train[0], y_train[0], sep="\n")
unanswered = sum(not answers for answers in y_train)
print(f"{unanswered} of {len(y_train)} questions have no answer")

# %%
# Train
# -----
#
# ``DiceQuestionAnswerer`` learns the first and the last word of the answer. Of the hundred words of
# a text only two are right, so the loss is ``"dsc"``, the self-adjusting dice loss, by default.
# ``fit`` chooses the learning rate and the number of epochs. ``max_epochs=2`` keeps the site's
# build short: leave it out for your own data.
#
# Questions without an answer must be in the training data, in about the share in which they will be
# asked: a reader that never saw one always answers. The dev questions, as ``X_val`` and ``y_val``,
# tune the threshold between an answer and silence.
from skdice import DiceQuestionAnswerer

reader = DiceQuestionAnswerer(max_epochs=2, random_state=0)
reader.fit(X_train, y_train, X_val=X_dev, y_val=y_dev)
scores = reader.evaluate(X_test, y_test)
print({name: round(value, 3) for name, value in scores.items()})
print(f"threshold: {reader.null_threshold_:.2f}")

# %%
# ``exact_match`` is the share of questions answered word for word, or rightly left without an
# answer. ``f1`` gives part of the credit for part of the words. A reader that never answers gets
# the share of questions without an answer in both, so compare with that:
silent = sum(not answers for answers in y_test) / len(y_test)
print(f"a reader that is always silent: {silent:.3f}")

# %%
# Decide when to be silent
# ------------------------
#
# For each question the reader has a score for its best answer and one for no answer. It is silent
# where no answer leads by more than ``null_threshold_``. ``fit`` chose the threshold with the best
# F1 on the dev questions. You may set it: a lower one makes the reader more careful. Count both
# kinds of mistakes before you do.
import pandas as pd


def mistakes(reader, X, y):
    predicted = reader.predict(X)
    has_answer = pd.Series([bool(answers) for answers in y])
    answered = pd.Series([bool(text) for text in predicted])
    return {
        "answered, has no answer": int((answered & ~has_answer).sum()),
        "silent, has an answer": int((~answered & has_answer).sum()),
    }


tuned_threshold, rows = reader.null_threshold_, {}
for change in (-6, -3, 0, 3, 6):
    reader.null_threshold_ = tuned_threshold + change
    rows[f"{change:+d}"] = mistakes(reader, X_test, y_test)
reader.null_threshold_ = tuned_threshold
print(pd.DataFrame(rows).T.to_string())

# %%
# Choose by what a wrong answer costs. In a search page, a wrong answer is looked past; in a letter
# to a customer, it is not. Change the threshold on the dev questions, not on the test questions as
# in this table.
#
# Use it
# ------
#
# ``predict`` gives the words of the answer, and an empty text for silence. ``predict_spans`` gives
# the best places with their probabilities.
text = "The choir meets in the old mill. It begins at noon. "
text += "Eve Lind leads it. The market is full."
questions = [
    ("Who leads the choir?", text),
    ("When does the market begin?", text),
]
for (question, _), answers in zip(
    questions, reader.predict_spans(questions, n_best=2), strict=True
):
    print(
        question,
        [
            (answer["text"], round(answer["probability"], 2))
            for answer in answers
        ],
    )

# %%
# The folder that ``save_pretrained`` writes is an ordinary transformers model with its threshold,
# and ``write_squad_predictions`` writes what SQuAD's own script scores.
from skdice.datasets import write_squad_predictions

reader.save_pretrained("reader")
write_squad_predictions(
    "predictions.json", ids, list(reader.predict(X_test))
)

# %%
# When not
# --------
#
# - An answer must stand in the text, word for word. For answers in other words, or from several
#   texts, use a model that writes.
# - If you always ask the same few questions, such as *who* and *where*, mark the answers as
#   entities: a recognizer reads each text once. See
#   :ref:`sphx_glr_auto_tutorials_plot_2_entities.py`.
# - ``backbone=`` matters more here than elsewhere. A model that was trained on SQuAD before learns
#   from far fewer questions.
#
# The picture
# -----------
#
# Test questions with their texts, and the answers that the reader marks. Where nothing is marked,
# it is silent.
# sphinx_gallery_thumbnail_path = "images/answer.svg"
from skdice.inspection import show_entities

texts, marks = [], []
for (question, text), (best, *_) in zip(
    X_test[:8], reader.predict_spans(X_test[:8]), strict=True
):
    shift = len(question) + 1
    texts.append(f"{question} {text}")
    marks.append(
        [(best["start"] + shift, best["end"] + shift, "answer")]
        if best["text"]
        else []
    )
show_entities(texts, marks)

# %%
# Next: :ref:`a served model <sphx_glr_auto_tutorials_plot_6_serving.py>`. See also
# `Reading: answers and nested entities <../guide/reading.html>`__.
