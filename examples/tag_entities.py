"""Tag entities with a loss for rare tags, and compare it with cross-entropy.

    python examples/tag_entities.py

The town notes ship with skdice. They are short sentences in which few tokens belong to an entity.
"""

from skdice import DiceTokenClassifier
from skdice.datasets import load_town_notes
from skdice.metrics import span_report


def main(**settings):
    """Train with two losses, and print the scores and the tags of one sentence."""
    X_train, y_train = load_town_notes(subset="train")
    X_test, y_test = load_town_notes(subset="test")
    settings = {"max_epochs": 3, "lr": 5e-4, "batch_size": 16, "frozen": 4, **settings}
    for loss in ("ce", "dsc"):
        tagger = DiceTokenClassifier(loss=loss, random_state=0, **settings)
        tagger.fit(X_train, y_train)
        print(f"loss={loss!r}: F1 {tagger.score(X_test, y_test):.3f}")
    print(span_report(y_test, tagger.predict(X_test)))
    sentence = next(x for x, tags in zip(X_test, y_test, strict=True) if set(tags) != {"O"})
    for token, tag in zip(sentence, tagger.predict([sentence])[0], strict=True):
        print(f"{token:>15}  {tag}")


if __name__ == "__main__":
    main()
