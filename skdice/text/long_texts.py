"""Texts and pairs for classification: one input each, or overlapping windows of a long text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from skdice._warn import TruncationWarning, warn
from skdice.text.encoding import BLOCK, Window, compact

CHARACTERS = 1_000_000  # of texts tokenised at a time
_REMEDY = {
    "truncate": "set long_texts='windows' to read them whole, or raise max_length",
    "windows": "only the second text of a pair is read in windows, and the first has at most half "
    "of each: put the longer text second, or raise max_length",
}


@dataclass(slots=True)
class TextWindow(Window):
    """A text or pair, or a part of one; the head makes one prediction for it."""

    start: int  # first and last character in the text, of a pair in the second; end exclusive
    end: int


class DecisiveWindow(NamedTuple):
    """The window of a text that decided, and where it stands.

    Attributes
    ----------
    window : int
        Its number among the windows of the text, from 0.
    start, end : int
        Its first and last character in the text, of a pair in the second text; end exclusive.
    probability : float
        The probability of the class by this window alone.

    Examples
    --------
    >>> from skdice.text import DecisiveWindow
    >>> best = DecisiveWindow(window=1, start=6, end=11, probability=0.9)
    >>> "hello money"[best.start : best.end]
    'money'
    """

    window: int
    start: int
    end: int
    probability: float


@dataclass
class Cuts:
    """How many texts were encoded, how many of them were cut, and how much was left out."""

    n_texts: int = 0
    n_cut: int = 0
    subwords: int = 0  # of the texts that were cut
    left_out: int = 0

    def note(self, subwords: int, left_out: int) -> None:
        """Count a text or pair, if something of it was left out."""
        if left_out:
            self.n_cut, self.subwords = self.n_cut + 1, self.subwords + subwords
            self.left_out += left_out

    def tell(self, max_length: int, long_texts: str) -> None:
        """Warn if something was left out."""
        if self.n_cut:
            warn(
                f"{self.n_cut} of {self.n_texts} texts do not fit in max_length={max_length} "
                f"subwords, and {self.left_out / self.subwords:.0%} of their {self.subwords} "
                f"subwords were left out: {_REMEDY[long_texts]}",
                TruncationWarning,
            )


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


@compact
def encode_texts(
    tokenizer: Any,
    texts: Sequence[str] | Sequence[tuple[str, str]],
    max_length: int,
    long_texts: str = "truncate",
    cuts: Cuts | None = None,
) -> Iterator[TextWindow]:
    """Encode texts or pairs.

    Parameters
    ----------
    tokenizer : fast tokenizer
    texts : list of str or of pairs
    max_length : int
        Longest window, in subwords, special tokens included.
    long_texts : {"truncate", "windows"}, default="truncate"
        Cut a longer text (of a pair the longer text first) or make windows of it (of a pair's
        second text), which overlap by a quarter. The first text of a pair is in each of its
        windows, with at most half of the room where both are long.
    cuts : Cuts or None, default=None
        Counts what is left out.

    Returns
    -------
    Windows
        In the order of the texts, one of each at least.
    """
    none, left = np.empty(0, dtype=np.int64), tokenizer.truncation_side == "left"
    cuts = Cuts() if cuts is None else cuts
    for some in text_blocks(texts):
        block = texts[some]
        sides = [block] if isinstance(block[0], str) else list(zip(*block, strict=True))
        # Whole, and not verbose, which would warn of it: of two long texts tokenizers keep each
        # left-out part of one with each of the other.
        encoded = tokenizer(*map(list, sides), verbose=False)
        segments = encoded.get("token_type_ids")
        cuts.n_texts += len(block)
        for i, ids in enumerate(encoded["input_ids"]):
            row, of_row = some.start + i, None if segments is None else segments[i]
            length = len(sides[-1][i])
            if len(ids) <= max_length:
                yield TextWindow(ids, of_row, none, none, row, 0, length)
                continue
            encoding = encoded.encodings[i]
            places, offsets = _places(encoding.sequence_ids), encoding.offsets
            parts = _parts(list(map(len, places)), len(ids), max_length, long_texts, left, cuts)
            whole = np.array(ids), None if of_row is None else np.array(of_row)
            for part in parts:
                index = _index(places, part, len(ids))
                inputs = whole[0][index], None if whole[1] is None else whole[1][index]
                shift, read = places[-1].start, part[-1]
                start = offsets[shift + read.start][0] if read.start else 0
                to_the_end = read.stop == len(places[-1])
                end = length if to_the_end else offsets[shift + read.stop - 1][1]
                yield TextWindow(*inputs, none, none, row, start, end)


def _places(sides: list[int | None]) -> list[range]:
    """The subwords of each text among those of a text or pair."""
    side_of = np.array([-1 if side is None else side for side in sides])
    places, stop = [], 0
    for side in range(max(side_of.max(), 0) + 1):
        here = np.flatnonzero(side_of == side)
        start = here[0] if len(here) else stop
        stop = start + len(here)
        places.append(range(int(start), int(stop)))
    return places


def _index(places: list[range], part: list[range], length: int) -> np.ndarray:
    """The subwords of a part among all, with the special tokens around them."""
    pieces, stop = [], 0
    for place, read in zip(places, part, strict=True):
        pieces += [np.arange(stop, place.start), place.start + np.array(read, dtype=int)]
        stop = place.stop
    return np.concatenate([*pieces, np.arange(stop, length)])


def _parts(
    sizes: list[int], length: int, max_length: int, long_texts: str, left: bool, cuts: Cuts
) -> list[list[range]]:
    """What each window reads of each text; `length` includes special tokens."""
    room = max_length - length + sum(sizes)
    if room < 1:
        raise ValueError(
            f"max_length={max_length} leaves no room beside {max_length - room} special tokens: "
            "raise it"
        )
    if long_texts == "windows":
        first = [min(size, max(room // 2, room - sizes[-1])) for size in sizes[:-1]]
        before, room = [range(size) for size in first], room - sum(first)
        parts = [[*before, read] for read in _overlapping(sizes[-1], room)]
    else:
        kept = _longest_first(sizes, room)
        starts = [size - n if left else 0 for size, n in zip(sizes, kept, strict=True)]
        parts = [[range(start, start + n) for start, n in zip(starts, kept, strict=True)]]
    n_read = sum(last.stop - first.start for first, last in zip(parts[0], parts[-1], strict=True))
    cuts.note(sum(sizes), sum(sizes) - n_read)
    return parts


def _overlapping(size: int, room: int) -> list[range]:
    """Windows of `room` subwords that overlap by a quarter of it, or by more at the end."""
    if size <= room:
        return [range(size)]
    starts = [*range(0, size - room, room - room // 4), size - room]
    return [range(start, start + room) for start in starts]


def _longest_first(sizes: list[int], room: int) -> list[int]:
    """How much of each text is kept, as tokenizers do it: the longer one is cut first."""
    if len(sizes) == 1:
        return [room]
    shorter, longer = sorted(sizes)
    if shorter + max(shorter, room - shorter) > room:
        shorter, longer = room // 2, room - room // 2
    else:
        longer = room - shorter
    return [longer, shorter] if sizes[0] > sizes[1] else [shorter, longer]
