"""Long texts are tokenised in pieces: their subwords are those of the whole text."""

from __future__ import annotations

import json
from dataclasses import fields

import numpy as np
import pytest
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, Regex, normalizers, pre_tokenizers

from skdice.backbones import load_tokenizer
from skdice.text import subwords
from skdice.text.long_texts import Cuts, encode_texts
from skdice.text.question_windows import encode_questions
from tests.text.pieces import pieces_of

PARTS = st.sampled_from(
    [
        *("anna", "rome", "a", "b", "ab", "7", "Ab", "COVID", "\u00e9", "e\u0301", "\ud55c"),
        *(" ", " ", " ", " ", "  ", "\n", "\t", "\r\n", "\xa0", "\u200b", "\u3000", "\x1c"),
        *(".", "'s", "``", "''", "-", "@", "#", "[MASK]", "<mask>", "</s>", "\u2581", "\u0120"),
        *("\u6771", "\u3067", "\U0001f44d\U0001f3fd", "\u0301", "\u00a8", "\ufc5e", "\u0e33"),
        "\u0d4e",
    ]
)
TEXTS = st.lists(PARTS, max_size=40).map("".join)


def vocabulary_of(folder):
    model = json.loads(load_tokenizer(folder).backend_tokenizer.to_str())["model"]
    return model["vocab"], [tuple(pair) for pair in model.get("merges", [])]


KINDS = [
    *("bert", "roberta", "roberta without a prefix", "gpt2", "deberta", "gpt-neox", "modernbert"),
    *("xlm-roberta", "xlnet", "albert", "deberta-v2", "deberta-v2 by punctuation", "rembert"),
]


@pytest.fixture(scope="module", params=KINDS)
def tokenizer(request, raw_text_backbones):
    """A tokenizer of each kind, as transformers and skdice set it up."""
    vocab, merges = vocabulary_of(raw_text_backbones["roberta"])
    bpe = {"vocab": vocab, "merges": merges}
    unigram = [tuple(entry) for entry in vocabulary_of(raw_text_backbones["xlm-roberta"])[0]]
    names = ("[CLS]", "[SEP]", "[PAD]", "[UNK]", "[MASK]", "<sep>", "<cls>")
    pieces = {"vocab": unigram + [(token, 0.0) for token in names]}
    match request.param:
        case "bert" | "roberta" | "xlm-roberta" as kind:
            made = load_tokenizer(raw_text_backbones[kind])
        case "roberta without a prefix":
            made = transformers.RobertaTokenizer(**bpe, add_prefix_space=False)
        case "gpt2":
            made = transformers.GPT2Tokenizer(**bpe)
        case "deberta":
            made = transformers.DebertaTokenizer(**bpe, add_prefix_space=True)
        case "gpt-neox":
            made = transformers.GPTNeoXTokenizer(**bpe)
        case "modernbert":  # as skdice.backbones sets up the one of OLMo and ModernBERT
            made, steps = transformers.GPTNeoXTokenizer(**bpe), pre_tokenizers
            nested = [steps.Digits(True), steps.ByteLevel(add_prefix_space=False)]
            backend = made.backend_tokenizer
            backend.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Prepend(" ")])
            backend.pre_tokenizer = pre_tokenizers.Sequence(nested)
            made.add_tokens([AddedToken("  "), AddedToken("   ", normalized=False)])
        case "xlnet":
            made = transformers.XLNetTokenizer(**pieces)
        case "albert":
            made = transformers.AlbertTokenizer(**pieces)
        case "deberta-v2":
            made = transformers.DebertaV2Tokenizer(**pieces, unk_id=3)
        case "deberta-v2 by punctuation":
            made = transformers.DebertaV2Tokenizer(**pieces, unk_id=3, split_by_punct=True)
        case "rembert":
            made = transformers.RemBertTokenizer(**pieces)
    made.add_tokens([AddedToken("COVID", normalized=False, rstrip=True), AddedToken("7")])
    return made


def fields_of(windows):
    return [{f.name: getattr(w, f.name) for f in fields(w)} for w in windows]


@settings(max_examples=15)
@given(first=TEXTS, second=TEXTS)
def test_pieces_have_the_subwords_of_the_whole_text(tokenizer, first, second):
    texts, pairs = [first, "a", second], [(first, second), ("a", second), (second, "a"), ("a", "b")]
    cases = [(X, how) for X in (texts, pairs) for how in ("windows", "truncate")]
    whole = tokenizer(texts, add_special_tokens=False).encodings
    of_whole = [fields_of(encode_texts(tokenizer, X, 9, how)) for X, how in cases]
    with pieces_of(7):
        in_pieces = list(subwords.subwords_of_texts(tokenizer, texts))
        of_pieces = [fields_of(encode_texts(tokenizer, X, 9, how)) for X, how in cases]
    for encoding, (ids, offsets) in zip(whole, in_pieces, strict=True):
        assert ids.tolist() == encoding.ids
        assert offsets.tolist() == [list(place) for place in encoding.offsets]
    np.testing.assert_equal(of_pieces, of_whole)


def test_each_kind_is_cut(tokenizer):
    may_cut = subwords.cutting_rule(tokenizer)
    with pieces_of(7):
        assert list(subwords.pieces("anna is in rome " + "x" * 20 + " now", may_cut)) == [
            *((0, 7), (7, 10), (10, 15), (15, 36), (36, 40))
        ]
        assert list(subwords.pieces("x" * 20, may_cut)) == [(0, 20)]


def custom(backend):
    class Whole:
        def pre_tokenize(self, text):
            pass

    backend.pre_tokenizer = pre_tokenizers.PreTokenizer.custom(Whole())


@pytest.mark.parametrize(
    "unusual",
    [
        custom,
        lambda b: setattr(b, "pre_tokenizer", None),
        lambda b: setattr(b, "pre_tokenizer", pre_tokenizers.Metaspace(split=False)),
        lambda b: setattr(b, "pre_tokenizer", pre_tokenizers.ByteLevel(use_regex=False)),
        lambda b: setattr(b, "pre_tokenizer", pre_tokenizers.Split(Regex("."), "isolated")),
        lambda b: setattr(b, "normalizer", normalizers.Replace(Regex("a b"), "c")),
        lambda b: b.add_tokens([AddedToken("anna is")]),
    ],
)
def test_what_is_not_known_is_tokenised_whole(unusual, raw_text_backbones):
    tokenizer = load_tokenizer(raw_text_backbones["xlm-roberta"])
    assert subwords.cutting_rule(tokenizer) is not None
    unusual(tokenizer.backend_tokenizer)
    assert subwords.cutting_rule(tokenizer) is None
    with pieces_of(7):
        assert list(subwords.pieces("anna is in rome", None)) == [(0, 15)]


def test_no_more_than_a_piece_is_tokenised_at_a_time(tiny_backbone):
    tokenizer, lengths = load_tokenizer(tiny_backbone), []

    class Noting(type(tokenizer)):
        def __call__(self, texts, *pairs, **how):
            if isinstance(texts, list):  # and no probe for the place of special tokens
                lengths.extend(map(len, texts))
            return super().__call__(texts, *pairs, **how)

    tokenizer.__class__ = Noting
    text = "rain " * 30_000
    windows = encode_texts(tokenizer, [("anna", text)], 64, "windows")
    assert (windows[0].start, windows[len(windows) - 1].end) == (0, len(text))
    assert len(lengths) == 4
    assert max(lengths) <= subwords.PIECE + 1
    assert sum(lengths) == len("anna" + text) + 2  # two pieces have the character before them


def test_the_context_of_a_reader_is_read_in_pieces(tiny_backbone):
    tokenizer = load_tokenizer(tiny_backbone)
    pairs = [("anna ?", "rain sun, bob met carla " * 9), ("anna ?", "a"), ("bob", "old bus")]
    settings = {"stride": 4, "max_question_length": 3}
    whole = fields_of(encode_questions(tokenizer, pairs, 16, **settings))
    with pieces_of(7):
        in_pieces = fields_of(encode_questions(tokenizer, pairs, 16, **settings))
    np.testing.assert_equal(in_pieces, whole)


def test_windows_of_a_pair_are_those_of_an_empty_second_text(tiny_backbone):
    cuts = Cuts()
    tokenizer = load_tokenizer(tiny_backbone)
    (window,) = encode_texts(tokenizer, [("rain " * 30, " ")], 13, "windows", cuts)
    assert (len(window), window.start, window.end) == (13, 0, 1)
    assert (cuts.n_cut, cuts.subwords, cuts.left_out) == (1, 30, 20)
