"""Answer questions about a text, and say so if the text does not contain the answer.

python examples/answer_questions.py
"""

from skdice import DiceQuestionAnswerer

PEOPLE, PLACES = ["Ann", "Bob", "Eve", "Tom"], ["Rome", "Oslo", "Bern", "Kyiv"]


def make_questions():
    """Questions with contexts, and answers; every third context does not contain the answer."""
    X, y = [], []
    for i, (person, place) in enumerate((p, q) for p in PEOPLE for q in PLACES):
        context = f"In the spring {person} moved to {place} and opened a shop."
        if i % 3:
            X.append((f"Where did {person} move?", context))
            y.append((context.index(place), place))
        else:
            X.append(("Who repaired the bridge?", context))
            y.append(None)
    return X, y


def main(**settings):
    """Train on generated questions, and answer two about a new text."""
    X, y = make_questions()
    settings = {"random_state": 0, **settings}
    reader = DiceQuestionAnswerer(loss="dsc", **settings).fit(X, y)
    context = "In the autumn Ida moved to Lima and opened a school."
    for question in ("Where did Ida move?", "Who repaired the bridge?"):
        answer = reader.predict([(question, context)])[0]
        print(f"{question} {answer or '(the text does not say)'}")
    print(f"F1 on the training questions: {reader.score(X, y):.2f}")


if __name__ == "__main__":
    main()
