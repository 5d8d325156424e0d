"""
Reading, with questions that have no answer
===========================================

A reader finds the answer to a question in a text. Many questions have none, and a reader that
answers all the same is worse than none. This example goes from a file of questions to a reader that
knows when to be silent.

The first block writes three files in the format of SQuAD 2.0: a text, the questions about it, and
for each answer its first character and its words. Two questions in five have no answer in their
text. With files of your own, skip the block.
"""

import json
import random
from pathlib import Path

rng = random.Random(3)
people = ["Ann Lee", "Bob Marsh", "Carla Diaz", "Dan Okoro", "Eve Lind"]
places = ["the town hall", "the old mill", "the library", "the school"]
times = ["on Monday", "on Friday", "at noon", "in May", "next week"]
events = ["choir", "market", "chess club", "book fair", "rowing course"]
asks = {
    "who": "Who leads the {}?",
    "where": "Where is the {}?",
    "when": "When does the {} begin?",
}


def write_questions(name, n_texts):
    paragraphs = []
    for i in range(n_texts):
        event, other = rng.sample(events, 2)
        facts = map(rng.choice, (people, places, times))
        facts = dict(zip(asks, facts, strict=True))
        text = f"The {event} meets in {facts['where']}. It begins "
        text += f"{facts['when']}. {facts['who']} leads it. "
        text += f"The {other} is full."
        questions = []
        for kind, fact in facts.items():
            known = rng.random() < 0.6
            answer = {"text": fact, "answer_start": text.index(fact)}
            about = asks[kind].format(event if known else other)
            question = {"id": f"{i}-{kind}", "question": about}
            question["answers"] = [answer] if known else []
            questions.append({**question, "is_impossible": not known})
        paragraphs.append({"context": text, "qas": questions})
    data = [{"title": "notes", "paragraphs": paragraphs}]
    Path(name).write_text(json.dumps({"version": "v2.0", "data": data}))


for name, n_texts in (("train", 130), ("dev", 50), ("test", 50)):
    write_questions(f"{name}.json", n_texts)

# %%
# ``read_squad`` gives pairs of question and text, and for each question a list of answers, which is
# empty where there is none. An answer that its text does not hold at that place is refused by its
# question's id.
#
# Of the hundred words of a text only two begin or end the answer, so the default loss is ``"dsc"``,
# the self-adjusting dice loss. ``max_epochs=5`` keeps this page short: leave it out, and ``fit``
# chooses. Questions without an answer must be in the training data, in about the share in which
# they will be asked: a reader that never saw one always answers. The dev questions tune the
# threshold between an answer and silence.
from skdice import DiceQuestionAnswerer
from skdice.datasets import read_squad

X_train, y_train = read_squad("train.json")
X_dev, y_dev = read_squad("dev.json")
X_test, y_test = read_squad("test.json")
reader = DiceQuestionAnswerer(max_epochs=5, random_state=0)
reader.fit(X_train, y_train, X_val=X_dev, y_val=y_dev)
scores = reader.evaluate(X_test, y_test)
print({name: round(value, 3) for name, value in scores.items()})
silent = sum(not answers for answers in y_test) / len(y_test)
print(f"exact match of a reader that is always silent: {silent:.3f}")

# %%
# Decide when to be silent
# ------------------------
#
# The reader is silent where the score of no answer leads that of its best answer by more than
# ``null_threshold_``. ``fit`` chose the threshold with the best F1 on the dev questions. A lower
# one makes the reader more careful. Choose by the cost of a wrong answer, on the dev questions.
import pandas as pd

threshold, rows = reader.null_threshold_, {}
known = pd.Series([bool(answers) for answers in y_dev])
for change in (-8, -4, 0, 4, 8):
    reader.null_threshold_ = threshold + change
    answered = pd.Series(reader.predict(X_dev)).astype(bool)
    rows[f"{change:+d}"] = {
        "answered, has no answer": int((answered & ~known).sum()),
        "silent, has an answer": int((~answered & known).sum()),
    }
reader.null_threshold_ = threshold
print(pd.DataFrame(rows).T.to_string())

# %%
# ``predict`` gives the words of the answer, and an empty text for silence. ``predict_spans`` gives
# the best places with their probabilities. The picture marks the answers in test texts. Where
# nothing is marked, the reader is silent.
# sphinx_gallery_thumbnail_path = "images/answer.svg"
from skdice.inspection import show_entities

texts, marks = [], []
for (question, text), (best, *_) in zip(
    X_test[:8], reader.predict_spans(X_test[:8]), strict=True
):
    texts.append(f"{question} {text}")
    marks.append([])
    if best["text"]:
        shift = len(question) + 1
        marks[-1] = [(best["start"] + shift, best["end"] + shift, "answer")]
show_entities(texts, marks)

# %%
# For answers in other words than those of the text, use a model that writes. See :doc:`Reading:
# answers and nested entities </guide/reading>`.
