"""Words and texts -> subword ids, and where each word's prediction is to be read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

__all__ = ["Window", "encode_sentences", "encode_texts", "template"]


BLOCK = 1024  # texts given to the tokenizer at a time, whose answer takes much memory


class Shared:
    """Arrays of small numbers, each held once however many windows have the same."""

    def __init__(self) -> None:
        self.known: dict[bytes, np.ndarray] = {}

    def __call__(self, numbers: Sequence[int]) -> np.ndarray:
        array = np.array(numbers, dtype=np.int32)
        array.flags.writeable = False
        return self.known.setdefault(array.tobytes(), array)


@dataclass(slots=True)
class Window:
    """One input of the encoder.

    Attributes
    ----------
    input_ids, token_type_ids : sequence of int
        Subwords with the tokenizer's special tokens. Windows may share their token types.
    positions : ndarray of int, shape (n_predictions,)
        The subwords at which the head predicts (empty for text classification).
    words : ndarray of int, shape (n_predictions,)
        The index, in the sentence, of the word that each prediction belongs to.
    row : int
        The sentence or text that the window comes from.
    """

    input_ids: Sequence[int] | np.ndarray
    token_type_ids: Sequence[int] | np.ndarray | None
    positions: np.ndarray
    words: np.ndarray
    row: int

    def __len__(self) -> int:
        return len(self.input_ids)

    @property
    def n_predictions(self) -> int:
        """Rows that the head's output has for this window."""
        return len(self.positions)


@dataclass(frozen=True, slots=True)
class Template:
    """The special tokens that a tokenizer puts around one text, and their segment ids."""

    before: list[int]
    after: list[int]
    segment: int
    segments_before: list[int]
    segments_after: list[int]
    with_segments: bool

    @property
    def size(self) -> int:
        return len(self.before) + len(self.after)


def template(tokenizer: Any) -> Template:
    """Read the special tokens off an encoded probe, so that any backbone's order is right.

    BERT has ``[CLS] text [SEP]``; XLNet has ``text <sep> <cls>`` with a segment of its own for
    ``<cls>``.
    """
    text = "a"
    bare = tokenizer(text, add_special_tokens=False)["input_ids"]
    full = tokenizer(text)
    ids, n = full["input_ids"], len(bare)
    start = next(i for i in range(len(ids) - n + 1) if ids[i : i + n] == bare)
    segments = full.get("token_type_ids")
    with_segments = segments is not None
    segments = segments if with_segments else [0] * len(ids)
    return Template(
        before=ids[:start],
        after=ids[start + n :],
        segment=segments[start] if n else 0,
        segments_before=segments[:start],
        segments_after=segments[start + n :],
        with_segments=with_segments,
    )


def encode_texts(
    tokenizer: Any, texts: Sequence[str] | Sequence[tuple[str, str]], max_length: int
) -> list[Window]:
    """Encode texts or pairs, cut to `max_length` subwords (the longer text of a pair first)."""
    if isinstance(texts[0], str):
        args: tuple[list[Any], ...] = (list(texts),)
    else:
        args = ([pair[0] for pair in texts], [pair[1] for pair in texts])
    none = np.empty(0, dtype=np.int64)
    shared = Shared()
    windows: list[Window] = []
    for start in range(0, len(texts), BLOCK):
        block = [side[start : start + BLOCK] for side in args]
        encoded = tokenizer(
            *block, truncation="longest_first", max_length=max_length, padding=False
        )
        segments = encoded.get("token_type_ids")
        for i, ids in enumerate(encoded["input_ids"]):
            kinds = None if segments is None else shared(segments[i])
            windows.append(Window(np.array(ids, dtype=np.int32), kinds, none, none, start + i))
    return windows


def encode_sentences(
    tokenizer: Any,
    sentences: Sequence[Sequence[str]],
    max_length: int,
    *,
    stride: int | None = None,
    all_subwords: bool = False,
) -> list[Window]:
    """Encode sentences of words as windows that together predict every word exactly once.

    A sentence that does not fit in `max_length` is cut at word boundaries into windows which
    overlap by about `stride` subwords. A word in two windows is predicted in the one where it has
    more context on its poorer side.

    Parameters
    ----------
    tokenizer : fast tokenizer
    sentences : list of lists of str
    max_length : int
        Longest window, in subwords, special tokens included.
    stride : int, default=None
        Overlap of neighbouring windows in subwords; None is a quarter of the room for words.
    all_subwords : bool, default=False
        Predict at every subword of a word instead of at the first.

    Returns
    -------
    list of Window
        In the order of the sentences; an empty sentence has none.

    Raises
    ------
    ValueError
        If `max_length` leaves no room for words, or `stride` is not below that room.
    """
    around = template(tokenizer)
    room = max_length - around.size
    if room < 1:
        raise ValueError(
            f"max_length={max_length} leaves no room beside {around.size} special tokens: raise it"
        )
    overlap = room // 4 if stride is None else stride
    if overlap >= room:
        raise ValueError(
            f"stride={stride} must be below {room}, the subwords that fit beside the special "
            f"tokens in max_length={max_length}"
        )
    windows: list[Window] = []
    shared = Shared()
    subwords = _subwords_of_words(tokenizer, sentences, room)
    for row, words in enumerate(subwords):
        sizes = np.array([len(ids) for ids in words], dtype=np.int64)
        for first, last, keep_first, keep_last in _cut(sizes, room, overlap):
            ids = [i for word in words[first:last] for i in word]
            starts = np.cumsum(sizes[first:last]) - sizes[first:last] + len(around.before)
            inside = slice(keep_first - first, keep_last - first)
            kept_words = shared(range(keep_first, keep_last))
            positions = starts[inside]
            if all_subwords:
                lengths = sizes[keep_first:keep_last]
                kept_words = np.repeat(kept_words, lengths)
                positions = np.concatenate(
                    [np.arange(s, s + n) for s, n in zip(positions, lengths, strict=True)]
                )
            segments = None
            if around.with_segments:
                segments = shared(
                    around.segments_before + [around.segment] * len(ids) + around.segments_after
                )
            subwords_of = np.array(around.before + ids + around.after, dtype=np.int32)
            windows.append(
                Window(subwords_of, segments, positions.astype(np.int32), kept_words, row)
            )
    return windows


def _subwords_of_words(
    tokenizer: Any, sentences: Sequence[Sequence[str]], room: int
) -> Iterator[list[list[int]]]:
    """Subword ids of every word; a word that yields none becomes the unknown token."""
    for start in range(0, len(sentences), BLOCK):
        yield from _subwords_of_block(tokenizer, sentences[start : start + BLOCK], room)


def _subwords_of_block(
    tokenizer: Any, sentences: Sequence[Sequence[str]], room: int
) -> list[list[list[int]]]:
    filled = [list(s) for s in sentences if len(s)]
    if not filled:
        return [[] for _ in sentences]
    # Not verbose: it would warn of long sentences, which are cut into windows.
    encoded = tokenizer(filled, is_split_into_words=True, add_special_tokens=False, verbose=False)
    unknown = tokenizer.unk_token_id
    if unknown is None:
        unknown = tokenizer.mask_token_id or tokenizer.pad_token_id or 0
    per_sentence: list[list[list[int]]] = []
    index = 0
    for sentence in sentences:
        words: list[list[int]] = [[] for _ in sentence]
        if len(sentence):
            ids = encoded["input_ids"][index]
            for subword, word in zip(ids, encoded.word_ids(index), strict=True):
                if word is not None:
                    words[word].append(subword)
            index += 1
        # A single word longer than a window keeps its head, which is where it is predicted.
        per_sentence.append([word[:room] or [unknown] for word in words])
    return per_sentence


def _cut(sizes: np.ndarray, room: int, overlap: int) -> list[tuple[int, int, int, int]]:
    """Windows of words as (first, last, first predicted, last predicted), ends exclusive."""
    n = len(sizes)
    if n == 0:
        return []
    spans: list[tuple[int, int]] = []
    first = 0
    while True:
        last, used = first, 0
        while last < n and used + sizes[last] <= room:
            used += sizes[last]
            last += 1
        spans.append((first, last))
        if last == n:
            break
        # The overlap must leave room for the next word, or the next window would add nothing.
        back, kept, most = last, 0, min(overlap, room - sizes[last])
        while back - 1 > first and kept + sizes[back - 1] <= most:
            back -= 1
            kept += sizes[back]
        first = back
    # Inside an overlap, the middle is where the left and right contexts are equally long.
    borders = [0]
    borders += [(later[0] + earlier[1]) // 2 for earlier, later in pairwise(spans)]
    borders.append(n)
    return [(*span, borders[i], borders[i + 1]) for i, span in enumerate(spans)]
