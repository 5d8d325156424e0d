"""Small tagged data for the tests of samplers, and what they count in it."""

from __future__ import annotations

from collections import Counter

import numpy as np

from skdice.tags.schemes import get_spans, infer_scheme

TEXTS = [f"text {i}" for i in range(10)]
Y = np.array([1, 0, 0, 0, 1, 0, 0, 0, 0, 0])
X_TAGS = [
    ["anna", "met", "bob"],
    ["in", "new", "york"],
    ["it", "rains"],
    ["bob", "sleeps"],
    ["no", "news", "today", "."],
    ["carla", "works", "at", "acme"],
]

Y_TAGS = [
    ["B-PER", "O", "B-PER"],
    ["O", "B-LOC", "I-LOC"],
    ["O", "O"],
    ["B-PER", "O"],
    ["O", "O", "O", "O"],
    ["B-PER", "O", "O", "B-ORG"],
]


def mentions(y):
    return Counter(s[0] for row in y for s in get_spans(row, infer_scheme(y)))


def count_tokens(y):
    flat = [tag != "O" for row in y for tag in row]
    return sum(flat), len(flat) - sum(flat)
