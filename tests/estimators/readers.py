"""Small data for the two estimators that read, and how the tests make them."""

from __future__ import annotations

from skdice import DiceMRCTagger, DiceQuestionAnswerer

CONTEXTS = [
    "anna went to paris .",
    "the old bus was late today .",
    "bob works at acme near the river .",
    "carla saw the new school in oslo .",
]


QUESTIONS = ["who went to paris", "what was late", "where is the team", "who saw the school"]


ANSWERS = [[(0, "anna")], [(4, "old bus")], [], [(0, "carla"), (0, "carla"), (10, "the new")]]


X = list(zip(QUESTIONS, CONTEXTS, strict=True)) * 3


Y = ANSWERS * 3


def reader(backbone, **params):
    settings = dict(max_epochs=1, lr=5e-3, batch_size=4, random_state=0)
    return DiceQuestionAnswerer(backbone=backbone, **{**settings, **params})


SENTENCES = [
    ["anna", "met", "bob", "in", "rome"],
    ["the", "bank", "of", "oslo", "is", "old"],
    ["rain", "today"],
    [],
    ["carla", "saw", "the", "school", "of", "paris"],
]


NESTED = [
    [("PER", 0, 1), ("PER", 2, 3), ("LOC", 4, 5)],
    [("ORG", 0, 4), ("LOC", 3, 4)],
    [],
    [],
    [("PER", 0, 1), ("ORG", 2, 6), ("LOC", 5, 6)],
]


TAGS = [
    ["B-PER", "O", "B-PER", "O", "B-LOC"],
    ["O", "O", "O", "B-LOC", "O", "O"],
    ["O", "O"],
    [],
    ["B-PER", "O", "O", "O", "O", "B-LOC"],
]


def tagger(backbone, **params):
    settings = dict(max_epochs=1, lr=5e-3, batch_size=8, random_state=0)
    return DiceMRCTagger(backbone=backbone, **{**settings, **params})
