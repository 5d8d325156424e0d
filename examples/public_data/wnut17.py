"""Entities in tweets: which types are rare, and what near misses are worth.

WNUT17 (Derczynski et al., 2017): six types, and test entities that training has not seen.

    python wnut17.py                       # from the hub, with `pip install datasets`
    SKDICE_DATA=folder python wnut17.py    # from folder/wnut17/wnut17train.conll and two more
"""

import os
from pathlib import Path
from typing import Any

from skdice import DiceTokenClassifier
from skdice.datasets import from_hf, read_conll
from skdice.inspection import imbalance, span_errors
from skdice.metrics import span_report

FILES = {"train": "wnut17train.conll", "test": "emerging.test.annotated"}


def load(part: str) -> tuple[list[Any], list[Any]]:
    """Tokens and tags of a part."""
    if folder := os.environ.get("SKDICE_DATA"):
        return read_conll(Path(folder) / "wnut17" / FILES[part])
    from datasets import load_dataset

    # Published as a script, which `datasets` no longer runs: the hub's own copy.
    rows = load_dataset(
        "leondz/wnut_17", revision="refs/convert/parquet", split=part
    )
    rows = rows.filter(lambda row: len(row["tokens"]) > 0)
    return from_hf(rows, text_columns="tokens", label_column="ner_tags")


def main() -> None:
    """Print what the page shows."""
    X, y = load("train")
    X, y = X[:1000], y[:1000]
    X_test, y_test = load("test")
    ratio = imbalance(y).ratio
    print(f"{ratio:.0f} tokens outside entities for one inside")

    tagger = DiceTokenClassifier(random_state=0).fit(X, y)
    predicted = tagger.predict(X_test)
    print(span_report(y_test, predicted))

    for mode in ("strict", "partial"):
        scores = span_report(
            y_test, predicted, mode=mode, output_dict=True
        )["micro avg"]
        print(f"F1 {scores['f1']:.3f} of all types, mode {mode!r}")

    errors = span_errors(y_test, predicted, X_test)
    print(errors["kind"].value_counts().to_string())


if __name__ == "__main__":
    main()
