"""Words of raw texts: long texts are tokenised piece by piece."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoTokenizer

from skdice.text import Entity, subwords, words
from tests.text.pieces import pieces_of

CHARACTERS = st.sampled_from(
    [*"abC.,-@#' \n\t", "é", "e\u0301", "東", "で", "👍🏽", "\u200b", "\x1c", "\xa0"]
)


@pytest.mark.parametrize("kind", ["bert", "roberta", "xlm-roberta"])
@given(parts=st.lists(CHARACTERS, max_size=60))
def test_pieces_change_no_word(kind, raw_text_backbones, parts):
    tokenizer = AutoTokenizer.from_pretrained(raw_text_backbones[kind])
    texts = ["a", "".join(parts), "b c"]
    whole = list(words.split_texts(tokenizer, texts))
    with pieces_of(7):
        found = list(words.split_texts(tokenizer, texts))
    for one, other in zip(whole, found, strict=True):
        for field in fields(one):
            np.testing.assert_equal(getattr(one, field.name), getattr(other, field.name))


@given(parts=st.lists(CHARACTERS, max_size=60))
def test_pieces_are_the_text(parts):
    text = "".join(parts)
    with pieces_of(7):
        ends = list(subwords.pieces(text, lambda text, i: text[i] == " "))
    assert "".join(text[start:end] for start, end in ends) == text
    for start, end in ends:
        assert end - start <= 7 or " " not in text[start + 1 : end]


def test_a_long_word_is_not_cut():
    with pieces_of(7):
        ends = list(subwords.pieces("ab cd " + "x" * 20 + " yz", lambda text, i: text[i] == " "))
        whole = list(subwords.pieces("x" * 20, lambda text, i: text[i] == " "))
    assert (ends, whole) == ([(0, 5), (5, 26), (26, 29)], [(0, 20)])


def test_an_entity_stays_if_the_one_that_overlapped_it_is_gone():
    text = "0123456789"
    row = [Entity(a, b, "X", 0.5, text[a:b]) for a, b in ((0, 2), (1, 4), (3, 7), (8, 9))]
    assert [entity[:2] for entity in words.apart(row)] == [(0, 2), (3, 7), (8, 9)]
