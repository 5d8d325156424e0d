"""Words of raw texts."""

from __future__ import annotations

from skdice.text import Entity, words


def test_an_entity_stays_if_the_one_that_overlapped_it_is_gone():
    text = "0123456789"
    row = [Entity(a, b, "X", 0.5, text[a:b]) for a, b in ((0, 2), (1, 4), (3, 7), (8, 9))]
    assert [entity[:2] for entity in words.apart(row)] == [(0, 2), (3, 7), (8, 9)]
