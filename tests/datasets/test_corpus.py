"""The shipped corpus is what its docstring says."""

from __future__ import annotations

from collections import Counter

import pytest

from skdice.datasets import load_town_notes

SUBSETS = ("train", "dev", "test")
TYPES = {"PER", "LOC", "ORG", "EVENT"}


def background_ratio(y: list[list[str]]) -> float:
    counts = Counter(tag == "O" for tags in y for tag in tags)
    return counts[True] / counts[False]


def test_sentences_are_whole_and_distinct() -> None:
    X, y = load_town_notes()
    assert len(X) == len(y) >= 400
    assert [len(tokens) for tokens in X] == [len(tags) for tags in y]
    assert all(token and not any(map(str.isspace, token)) for tokens in X for token in tokens)
    assert len({" ".join(tokens).lower() for tokens in X}) == len(X)


def test_tags_are_well_formed_iob2() -> None:
    for tags in load_town_notes()[1]:
        for before, tag in zip(["O", *tags], tags, strict=False):
            if tag == "O":
                continue
            prefix, _, kind = tag.partition("-")
            assert prefix in {"B", "I"}
            assert kind in TYPES
            assert prefix == "B" or before in {f"B-{kind}", f"I-{kind}"}, tags


def test_subsets_part_the_corpus() -> None:
    X, y = load_town_notes()
    parts = [load_town_notes(subset=name) for name in SUBSETS]
    rows = [set(map(tuple, tokens)) for tokens, _ in parts]
    assert sum(map(len, rows)) == len(set.union(*rows)) == len(X)  # disjoint, and all of it
    tagged = Counter((*tokens, *tags) for part in parts for tokens, tags in zip(*part, strict=True))
    assert tagged == Counter((*tokens, *tags) for tokens, tags in zip(X, y, strict=True))


@pytest.mark.parametrize("subset", SUBSETS)
def test_every_subset_has_every_type_and_few_entities(subset: str) -> None:
    _, y = load_town_notes(subset=subset)
    assert {tag[2:] for tags in y for tag in tags if tag != "O"} == TYPES
    assert background_ratio(y) > 8


def test_callers_do_not_share_lists() -> None:
    X, y = load_town_notes(subset="dev")
    X[0].append("changed")
    y.clear()
    again = load_town_notes(subset="dev")
    assert again[0][0][-1] != "changed"
    assert again[1]


def test_an_unknown_subset_is_named() -> None:
    with pytest.raises(ValueError, match=r"subset='valid' must be one of .*'dev'"):
        load_town_notes(subset="valid")
