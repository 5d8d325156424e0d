"""The subwords of raw texts; those of a long text piece by piece, which takes less memory."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any

import numpy as np

from skdice.text.encoding import BLOCK

CHARACTERS = 1_000_000  # of texts tokenised at a time
PIECE = 2**16  # characters of a text that are tokenised at a time, up to a blank
_DROP_BLANKS = {"BertPreTokenizer", "Whitespace", "WhitespaceSplit"}
_CHARACTERWISE = {"Digits", "Punctuation"}  # steps that leave letters beside a blank alone
_NORMALIZERS = {
    *("BertNormalizer", "Lowercase", "Nmt", "NFC", "NFD", "NFKC", "NFKD", "Precompiled"),
    *("Prepend", "Replace", "Strip", "StripAccents"),
}
# What tokenizers of transformers replace: quotes, and blanks in a row.
_REPLACED = {"``", "''", " {2,}", r"\s+", r"\s{2,}|[\n\r\t]"}


def text_blocks(
    texts: Sequence[Any], most: int = BLOCK, characters: int = CHARACTERS
) -> Iterator[slice]:
    """Slices that cover all texts or pairs: at most so many, and not many more characters."""
    start = size = 0
    for i, text in enumerate(texts):
        size += len(text) if isinstance(text, str) else sum(map(len, text))
        if i + 1 - start == most or size >= characters:
            yield slice(start, i + 1)
            start, size = i + 1, 0
    if start < len(texts):
        yield slice(start, len(texts))


def subwords_of_texts(
    tokenizer: Any, texts: Sequence[str]
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Ids of each text, shape (n,), and their first and last characters, (n, 2), ends exclusive.

    They have no special tokens. Those of a long text are the same as if it were tokenised whole.
    """
    for some in text_blocks(texts):
        for is_long, block in groupby(texts[some], lambda text: len(text) > PIECE):
            if is_long:
                yield from (_in_pieces(tokenizer, text) for text in block)
            else:
                yield from _tokenised(tokenizer, list(block))


def _tokenised(tokenizer: Any, texts: list[str]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    # Not verbose: it would warn of long texts, which are cut into windows.
    for encoding in tokenizer(texts, add_special_tokens=False, verbose=False).encodings:
        ids = np.array(encoding.ids, dtype=np.int32)
        yield ids, np.array(encoding.offsets, dtype=np.int32).reshape(-1, 2)


def _in_pieces(tokenizer: Any, text: str) -> tuple[np.ndarray, np.ndarray]:
    every: list[tuple[np.ndarray, np.ndarray]] = []
    for start, end in pieces(text, cutting_rule(tokenizer)):
        # Behind the first character of a text a tokenizer may see a word where it has none. So
        # each piece gets the character before it, whose subwords are then dropped.
        before = min(start, 1)
        ((ids, offsets),) = _tokenised(tokenizer, [text[start - before : end]])
        offsets += start - before
        every.append((ids[offsets[:, 0] >= start], offsets[offsets[:, 0] >= start]))
    ids, offsets = map(np.concatenate, zip(*every, strict=True))
    return ids, offsets


def pieces(text: str, may_cut: Callable[[str, int], bool] | None) -> Iterator[tuple[int, int]]:
    """Stretches of a text of about `PIECE` characters, each but the first from a blank on."""
    start = 0
    while len(text) - start > PIECE and may_cut is not None:
        near, far = range(start + PIECE, start, -1), range(start + PIECE + 1, len(text))
        end = next((i for places in (near, far) for i in places if may_cut(text, i)), None)
        if end is None:
            break
        yield start, end
        start = end
    yield start, len(text)


def cutting_rule(tokenizer: Any) -> Callable[[str, int], bool] | None:
    """Tell if a text has the same subwords when it is cut before a character; None if unknown.

    That is known of tokenizers that see one word at a time: of BERT's kind, of byte-level BPE with
    the pattern of GPT-2, and of SentencePiece's kind with a ``▁`` in front of each word.
    """
    backend = tokenizer.backend_tokenizer
    for step in _steps(backend.normalizer, "normalizers"):
        known = _REPLACED.issuperset(step.get("pattern", {}).values())
        if step["type"] not in _NORMALIZERS or not known:
            return None
    added = [token.content for token in backend.get_added_tokens_decoder().values()]
    # Behind an added token, such as [MASK], a new text begins for the steps of some tokenizers.
    last = {content[-1].lower() for content in added}
    spaced = [content for content in added if content.split() != [content]]
    steps = _steps(backend.pre_tokenizer, "pretokenizers")
    first = next((step for step in steps if step["type"] not in _CHARACTERWISE), {"type": None})
    if first["type"] in _DROP_BLANKS and not spaced:
        return lambda text, i: _behind_a_word(text, i) and text[i - 1].lower() not in last
    by_words = (first["type"] == "ByteLevel" and first["use_regex"]) or (
        first["type"] == "Metaspace" and first["split"]
    )
    if by_words and all(len(content) > 1 and content.isspace() for content in spaced):
        return lambda text, i: _between_letters(text, i) and text[i - 1].lower() not in last
    return None


def _steps(component: Any, key: str) -> list[dict[str, Any]]:
    """The settings of a normalizer or pre-tokenizer, of a sequence those of its parts."""
    if component is None:
        return []
    try:
        left = [json.loads(component.__getstate__())]
    except Exception:  # one that is written in Python
        return [{"type": None}]
    steps = []
    while left:
        state = left.pop(0)
        if state["type"] == "Sequence":
            left = [*state[key], *left]
        else:
            steps.append(state)
    return steps


def _behind_a_word(text: str, place: int) -> bool:
    """Return True if a blank stands here that follows something else."""
    return text[place] in " \n" and not text[place - 1].isspace()


def _between_letters(text: str, place: int) -> bool:
    """Tell if a single blank stands here, between letters or digits that no normalizer splits."""
    return text[place] == " " and all(
        letter.isalnum() and unicodedata.normalize("NFKC", letter) == letter
        for letter in (text[place - 1], text[place + 1 : place + 2])
    )
