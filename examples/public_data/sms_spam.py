"""Spam among text messages: baselines, a fit, a promise of recall, and the errors.

The SMS Spam Collection (Almeida et al., 2011): 5,574 messages, 13 % of them spam.

    python sms_spam.py                       # from the hub, with `pip install datasets`
    SKDICE_DATA=folder python sms_spam.py    # from folder/sms_spam/SMSSpamCollection
"""

import os
from pathlib import Path

from sklearn.model_selection import train_test_split

from skdice import (
    BiasTunedClassifier,
    DiceSequenceClassifier,
    TfidfClassifier,
)
from skdice.datasets import from_hf, read_table
from skdice.metrics import PrecisionAtRecall


def load() -> tuple[list[str], list[str]]:
    """Texts and labels."""
    if folder := os.environ.get("SKDICE_DATA"):
        path = Path(folder) / "sms_spam" / "SMSSpamCollection"
        X, y = read_table(
            path,
            separator="\t",
            header=False,
            text_columns=1,
            label_column=0,
        )
        return list(X), list(y)
    from datasets import load_dataset

    rows = load_dataset("ucirvine/sms_spam", split="train")
    return from_hf(rows, text_columns="sms", label_column="label")


def main() -> None:
    """Print what the page shows."""
    X, y = load()
    print(f"{len(X):,} messages, {y.count('spam'):,} of them spam")
    train, rest, y_train, y_rest = train_test_split(
        X, y, train_size=1000, stratify=y, random_state=0
    )
    dev, test, y_dev, y_test = train_test_split(
        rest, y_rest, train_size=1500, stratify=y_rest, random_state=0
    )

    baseline = TfidfClassifier(random_state=0).fit(train, y_train)
    print(f"F1 of TF-IDF: {baseline.score(test, y_test):.3f}")
    model = DiceSequenceClassifier(random_state=0).fit(train, y_train)
    print(f"F1 of skdice as it comes: {model.score(test, y_test):.3f}")

    promise = PrecisionAtRecall(0.95)
    tuned = BiasTunedClassifier(
        model, scoring=promise, cv="prefit", random_state=0
    )
    tuned.fit(dev, y_dev)
    print(tuned.bound_)
    scores = tuned.evaluate(test, y_test)
    print(
        f"on new messages: recall {scores['recall']:.3f}, precision {scores['precision']:.3f}"
    )

    said = tuned.predict(test)
    missed = [
        x
        for x, is_, was in zip(test, y_test, said, strict=True)
        if is_ == "spam" != was
    ]
    alarms = [
        x
        for x, is_, was in zip(test, y_test, said, strict=True)
        if is_ == "ham" != was
    ]
    print(
        f"{len(missed)} missed, {len(alarms)} false alarms of {len(test):,} messages"
    )
    for text in missed[:3]:
        print("missed:", text[:70])
    for text in alarms[:3]:
        print("alarm:", text[:70])


if __name__ == "__main__":
    main()
