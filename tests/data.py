"""Rows that tests of several files fit: short, of words that the tiny backbones know."""

from __future__ import annotations

import numpy as np

# ---- twelve rows of each task

TEXTS = ["win free money", "lunch today", "free prize call now", "the bus was late"] * 3
LABELS = np.array(["spam", "ham", "spam", "ham"] * 3)
PAIRS = [("free money", "money is free"), ("lunch", "the bus"), ("rome", "paris")] * 4
SENTENCES = [["anna", "went", "to", "paris"], ["rain"], ["bob", "works"], ["acme", "is", "old"]] * 3
TAGS = [["B-PER", "O", "O", "B-LOC"], ["O"], ["B-PER", "O"], ["B-ORG", "O", "O"]] * 3
SPANS = [[("PER", 0, 1), ("LOC", 3, 4)], [], [("PER", 0, 1)], [("ORG", 0, 1), ("X", 0, 2)]] * 3
JOINED = [" ".join(row) for row in SENTENCES]
ENTITIES = [[(0, 4, "PER"), (13, 18, "LOC")], [], [(0, 3, "PER")], [(0, 4, "ORG")]] * 3
QUESTIONS = [("who went", "today anna went to paris"), ("where to", "the bus to rome is old")] * 6
ANSWERS = [[(6, "anna")], [(11, "rome")]] * 6
LABEL_SETS = [["spam", "money"], [], ["spam"], ["travel"]] * 3

# ---- the prefixes of tags by scheme

PREFIXES = {"iob1": "BI", "iob2": "BI", "ioe1": "IE", "ioe2": "IE", "bioes": "BIES"}
PREFIXES |= {"bmes": "BMES", "bilou": "BILU"}


def tags_of(scheme: str, types: str = "XY") -> list[str]:
    """O, and the other tags that spans of these types can have; in "plain", only the types."""
    plain = list(types) if scheme == "plain" else []
    return ["O", *plain, *(f"{p}-{t}" for p in PREFIXES.get(scheme, "") for t in types)]


# ---- five sentences of one to ten words, for batches of unequal rows

UNEVEN = [
    ["anna", "met", "bob", "in", "paris"],
    ["rain"],
    ["the", "old", "bank", "near", "the", "river", "is", "now", "a", "school"],
    ["carla", "went", "to", "oslo"],
    ["the", "sun"],
]
UNEVEN_TAGS = [["B-PER" if w in ("anna", "bob", "carla") else "O" for w in row] for row in UNEVEN]
UNEVEN_ENTITIES = [[(0, 4, "PER"), (9, 12, "PER")], [], [], [(0, 5, "PER")], []]
UNEVEN_TEXTS, UNEVEN_LABELS = [" ".join(row) for row in UNEVEN], [1, 0, 0, 1, 0]
# The first word answers each question.
UNEVEN_QUESTIONS = [("who", text) for text in UNEVEN_TEXTS]
UNEVEN_ANSWERS = [[(0, text.split()[0])] for text in UNEVEN_TEXTS]

# ---- sixteen messages, of which six are spam

SPAM = ["win free money", "free prize call now", "win a free prize"]
HAM = ["lunch today", "the bus was late", "meeting at the bank", "good team", "see the road"]
MESSAGES = (SPAM + HAM) * 2
KINDS_OF_MESSAGES = np.array((["spam"] * 3 + ["ham"] * 5) * 2)

# ---- sixteen tagged sentences, new for each test, which may change them


def tagged_sentences() -> tuple[list[list[str]], list[list[str]]]:
    """Words and IOB2 tags of sentences of unequal length."""
    rows = [
        "anna|B-PER went to paris|B-LOC .",
        "the bus was old",
        "bob|B-PER dan|I-PER works at acme|B-ORG",
        "rain today",
        "carla|B-PER met bob|B-PER near the river",
        "the market in oslo|B-LOC is new .",
        "a good lunch",
        "globex|B-ORG saw the report",
    ]
    pieces = [[word.split("|") for word in row.split()] for row in rows] * 2
    X = [[word[0] for word in row] for row in pieces]
    return X, [[word[1] if len(word) > 1 else "O" for word in row] for row in pieces]
