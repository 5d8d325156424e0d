"""Words of raw texts: long texts are tokenised piece by piece."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoTokenizer

from skdice.text import words

CHARACTERS = st.sampled_from(
    [*"abC.,-@#' \n\t", "é", "e\u0301", "東", "で", "👍🏽", "\u200b", "\x1c", "\xa0"]
)


@pytest.mark.parametrize("kind", ["bert", "roberta", "xlm-roberta"])
@given(parts=st.lists(CHARACTERS, max_size=60))
def test_pieces_change_no_word(kind, raw_text_backbones, parts):
    tokenizer = AutoTokenizer.from_pretrained(raw_text_backbones[kind])
    texts = ["a", "".join(parts), "b c"]
    whole = list(words.split_texts(tokenizer, texts))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(words, "PIECE", 7)
        ends = [place for piece in words.pieces(texts[1]) for place in piece]
        found = list(words.split_texts(tokenizer, texts))
    assert [ends[0], ends[-1]] == [0, len(texts[1])]
    assert ends[1:-1:2] == ends[2::2]
    for one, other in zip(whole, found, strict=True):
        for field in fields(one):
            np.testing.assert_equal(getattr(one, field.name), getattr(other, field.name))


def test_a_long_word_is_not_cut(monkeypatch):
    monkeypatch.setattr(words, "PIECE", 7)
    assert list(words.pieces("ab cd " + "x" * 20 + " yz")) == [(0, 5), (5, 26), (26, 29)]
    assert list(words.pieces("x" * 20)) == [(0, 20), (20, 20)]
