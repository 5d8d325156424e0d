"""Feelings in comments: several labels a text, and a decision for each.

GoEmotions (Demszky et al., 2020): 28 labels, the rarest of 77 comments in 43,410.

    python goemotions.py                       # from the hub, with `pip install datasets`
    SKDICE_DATA=folder python goemotions.py    # from folder/goemotions/train.tsv and two more
"""

import os
from collections import Counter
from pathlib import Path

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MultiLabelBinarizer

from skdice import BiasTunedClassifier, DiceSequenceClassifier
from skdice.datasets import from_hf


def load(part: str) -> tuple[list[str], list[list[str]]]:
    """Texts, and the names of the labels of each."""
    if folder := os.environ.get("SKDICE_DATA"):
        return read(Path(folder) / "goemotions", part)
    from datasets import load_dataset

    rows = load_dataset(
        "google-research-datasets/go_emotions",
        "simplified",
        split="validation" if part == "dev" else part,
    )
    X, Y = from_hf(rows, text_columns="text", label_column="labels")
    names = rows.features["labels"].feature.names
    return X, [[names[i] for i in np.flatnonzero(row)] for row in Y]


def read(folder: Path, part: str) -> tuple[list[str], list[list[str]]]:
    """The same from its authors' files."""
    names = (folder / "labels.txt").read_text("utf-8").split()
    lines = (folder / f"{part}.tsv").read_text("utf-8").strip("\n")
    X, Y = [], []
    for line in lines.split("\n"):
        text, numbers, _ = line.split("\t")
        X.append(text)
        Y.append([names[int(number)] for number in numbers.split(",")])
    return X, Y


def main() -> None:
    """Print what the page shows."""
    sizes = {"train": 3000, "dev": 1500, "test": 1500}
    (X, Y), (X_dev, Y_dev), (X_test, Y_test) = (
        tuple(rows[:n] for rows in load(part)) for part, n in sizes.items()
    )
    counts = Counter(label for row in Y for label in row)
    print("rarest in training:", counts.most_common()[-3:])

    rows = MultiLabelBinarizer()
    baseline = make_pipeline(
        TfidfVectorizer(sublinear_tf=True),
        OneVsRestClassifier(
            LogisticRegression(C=10, class_weight="balanced")
        ),
    ).fit(X, rows.fit_transform(Y))
    true, found = rows.transform(Y_test), baseline.predict(X_test)
    micro, macro = (
        f1_score(true, found, average=how) for how in ("micro", "macro")
    )
    print(f"TF-IDF: micro F1 {micro:.3f}, macro F1 {macro:.3f}")

    model = DiceSequenceClassifier(random_state=0).fit(X, Y)
    tuned = BiasTunedClassifier(
        model, scoring="f1", cv="prefit", random_state=0
    )
    tuned.fit(X_dev, Y_dev)
    for name, fitted in (("skdice", model), ("skdice, tuned", tuned)):
        scores = fitted.evaluate(X_test, Y_test)
        micro, macro = scores["f1"], scores["f1_macro"]
        print(f"{name}: micro F1 {micro:.3f}, macro F1 {macro:.3f}")
    for label in ("gratitude", "anger", "surprise"):
        threshold = tuned.thresholds_[label]
        print(f"{label} above a probability of {threshold:.2f}")


if __name__ == "__main__":
    main()
