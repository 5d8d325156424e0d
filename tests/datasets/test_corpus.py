"""The shipped corpus is what its docstring says."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest

from skdice.datasets import load_town_notes

SUBSETS = ("train", "dev", "test")
TYPES = {"PER", "LOC", "ORG", "EVENT"}


def test_subsets_part_the_corpus_into_whole_and_distinct_sentences() -> None:
    X, y = load_town_notes()
    assert len(X) == len(y) >= 400
    assert [len(tokens) for tokens in X] == [len(tags) for tags in y]
    assert all(token and not any(map(str.isspace, token)) for tokens in X for token in tokens)
    assert len({" ".join(tokens).lower() for tokens in X}) == len(X)
    parts = [load_town_notes(subset=name) for name in SUBSETS]
    assert [pair for part in parts for pair in zip(*part, strict=True)] == [*zip(X, y, strict=True)]
    parts[0][0][0].append("changed")  # of a list that callers do not share
    assert load_town_notes(subset="train")[0][0] == X[0]
    with pytest.raises(ValueError, match=r"subset='valid' must be one of .*'dev'"):
        load_town_notes(subset="valid")


@pytest.mark.parametrize("subset", SUBSETS)
def test_every_subset_has_every_type_in_iob2_and_few_entities(subset: str) -> None:
    _, y = load_town_notes(subset=subset)
    for tags in y:
        for before, tag in pairwise(["O", *tags]):
            assert tag[0] in "BO" or (tag[0] == "I" and before[1:] == tag[1:]), tags
    counts = Counter(tag[2:] for tags in y for tag in tags)
    assert set(counts) == TYPES | {""}
    assert counts[""] > 8 * (counts.total() - counts[""])
