"""Texts and pairs that do not fit in one input: cut as tokenizers do it, or in windows."""

from __future__ import annotations

import random
from itertools import pairwise

import numpy as np
import pytest

from skdice.backbones import load_tokenizer
from skdice.exceptions import TruncationWarning
from skdice.text.encoding import text_blocks
from skdice.text.long_texts import Cuts, encode_texts
from tests.conftest import WORDS


def some_text(rng, most):
    return " ".join(rng.choice([*WORDS, "xyzzy", "Qq!"]) for _ in range(rng.randint(0, most)))


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("kind", ["bert", "roberta", "xlnet"])
def test_cut_texts_are_those_of_the_tokenizer(build_backbone, tmp_path, kind, side):
    tokenizer, rng = load_tokenizer(build_backbone(str(tmp_path), kind)), random.Random(0)
    tokenizer.truncation_side = side
    for _ in range(15):
        longest = rng.randint(5, 20)
        pairs = [(some_text(rng, 15), some_text(rng, 15)) for _ in range(4)]
        for X in (pairs, [second for _, second in pairs]):
            sides = map(list, zip(*pairs, strict=True)) if X is pairs else [X]
            wanted = tokenizer(*sides, truncation="longest_first", max_length=longest)
            windows = encode_texts(tokenizer, X, longest)
            assert [list(w.input_ids) for w in windows] == wanted["input_ids"]
            if "token_type_ids" in wanted:
                assert [list(w.token_type_ids) for w in windows] == wanted["token_type_ids"]


@pytest.mark.parametrize("as_pairs", [False, True])
@pytest.mark.parametrize("kind", ["bert", "roberta", "xlnet"])
def test_windows_cover_a_text(build_backbone, tmp_path, kind, as_pairs):
    tokenizer, rng = load_tokenizer(build_backbone(str(tmp_path), kind)), random.Random(1)
    for _ in range(15):
        longest = rng.randint(8, 20)
        second = some_text(rng, 60)
        row = (some_text(rng, 10), second) if as_pairs else second
        (whole,) = tokenizer(*([text] for text in (row if as_pairs else [row])))["input_ids"]
        windows = list(encode_texts(tokenizer, [row], longest, "windows"))
        if len(whole) <= longest:
            (window,) = windows
            assert list(window.input_ids) == whole
        assert all(len(window) <= longest for window in windows)
        assert windows[0].start == 0
        assert windows[-1].end == len(second)
        assert all(b.start <= a.end + 1 for a, b in pairwise(windows))
        # Each window has the subwords of its characters, behind those of the first text.
        bare = {"add_special_tokens": False}
        for window in windows:
            ids = tokenizer(second[window.start : window.end], **bare)["input_ids"]
            text = " ".join(map(str, window.input_ids))
            inside_a_word = window.start and second[window.start - 1] != " "
            assert " ".join(map(str, ids)) in text or inside_a_word


def test_windows_of_a_pair_hold_the_first_text(tiny_backbone):
    tokenizer = load_tokenizer(tiny_backbone)
    windows = list(encode_texts(tokenizer, [("anna bob", "rain " * 30)], 10, "windows"))
    anna, bob, rain = tokenizer("anna bob rain", add_special_tokens=False)["input_ids"]
    assert all(list(w.input_ids).count(anna) == 1 for w in windows)
    assert [list(w.token_type_ids).count(1) for w in windows] == [6] * len(windows)
    # A long first text has half of the room, and what is left out is counted.
    cuts = Cuts()
    windows = list(encode_texts(tokenizer, [("bob " * 30, "rain " * 30)], 11, "windows", cuts))
    assert {list(w.input_ids).count(bob) for w in windows} == {4}
    assert {list(w.input_ids).count(rain) for w in windows} == {4}
    assert (cuts.n_texts, cuts.n_cut, cuts.subwords, cuts.left_out) == (1, 1, 60, 26)
    with pytest.warns(TruncationWarning, match=r"1 of 1 texts .* 43% of their 60 subwords"):
        cuts.tell(11, "windows")
    # Beside a short second text it has more.
    (window,) = encode_texts(tokenizer, [("bob " * 30, "rain")], 11, "windows")
    assert list(window.input_ids).count(bob) == 7
    with pytest.raises(ValueError, match="max_length=3 leaves no room beside 3 special tokens"):
        encode_texts(tokenizer, [("bob " * 30, "rain")], 3, "windows")


def test_blocks_of_texts_end_by_number_and_by_size():
    assert [(s.start, s.stop) for s in text_blocks(["ab"] * 5, 2)] == [(0, 2), (2, 4), (4, 5)]
    texts = ["a" * 10, "b", ("c" * 5, "d" * 5), ["e", "f"]]
    assert [(s.start, s.stop) for s in text_blocks(texts, 9, 10)] == [(0, 1), (1, 3), (3, 4)]
    assert list(text_blocks([])) == []


def test_two_long_texts_take_memory_for_their_subwords_only(tiny_backbone):
    tokenizer = load_tokenizer(tiny_backbone)
    pair = ("rain " * 20_000, "sun " * 20_000)  # tokenizers itself would keep 1e5 parts of 60
    (window,) = encode_texts(tokenizer, [pair], 64)
    assert len(window) == 64
    assert np.max([len(w) for w in encode_texts(tokenizer, [pair], 64, "windows")]) == 64


def test_windows_of_a_pair_are_those_of_an_empty_second_text(tiny_backbone):
    cuts = Cuts()
    tokenizer = load_tokenizer(tiny_backbone)
    (window,) = encode_texts(tokenizer, [("rain " * 30, " ")], 13, "windows", cuts)
    assert (len(window), window.start, window.end) == (13, 0, 1)
    assert (cuts.n_cut, cuts.subwords, cuts.left_out) == (1, 30, 20)
