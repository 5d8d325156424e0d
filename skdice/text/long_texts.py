"""Texts and pairs for classification: one input each, or overlapping windows of a long text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from skdice._warn import warn
from skdice.exceptions import TruncationWarning
from skdice.text.encoding import Window, compact, text_blocks

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


@dataclass
class Cuts:
    """Counts of the texts that were encoded and cut, and of what was left out."""

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
    rows = zip(texts, _encoded(tokenizer, texts), strict=True)
    for row, (text, (ids, segments, places_and_offsets)) in enumerate(rows):
        cuts.n_texts += 1
        length = len(text if isinstance(text, str) else text[-1])
        if len(ids) <= max_length:
            yield TextWindow(ids, segments, none, none, row, 0, length)
            continue
        places, offsets = places_and_offsets()
        parts = _parts(list(map(len, places)), len(ids), max_length, long_texts, left, cuts)
        whole = np.array(ids), None if segments is None else np.array(segments)
        for part in parts:
            index = _index(places, part, len(ids))
            inputs = whole[0][index], None if whole[1] is None else whole[1][index]
            read = part[-1]
            start = offsets[read.start][0] if read.start else 0
            end = length if read.stop == len(places[-1]) else offsets[read.stop - 1][1]
            yield TextWindow(*inputs, none, none, row, int(start), int(end))


# The subwords of each text among those of a text or pair; the characters of those of the last.
_Places = tuple[list[range], Sequence[tuple[int, int]]]


def _encoded(
    tokenizer: Any, texts: Sequence[Any]
) -> Iterator[tuple[list[int], list[int] | None, Callable[[], _Places]]]:
    """Ids and segments of each text or pair with special tokens, and what gives their places."""
    for some in text_blocks(texts):
        rows = list(texts[some])
        sides = [rows] if isinstance(rows[0], str) else list(zip(*rows, strict=True))
        # Whole, and not verbose, which would warn of it: of two long texts tokenizers keep
        # each left-out part of one with each of the other.
        encoded = tokenizer(*map(list, sides), verbose=False)
        segments = encoded.get("token_type_ids") or [None] * len(rows)
        columns = encoded["input_ids"], segments, encoded.encodings
        for ids, of_row, encoding in zip(*columns, strict=True):
            yield ids, of_row, partial(_places, encoding, len(sides))


def _places(encoding: Any, n_sides: int) -> _Places:
    side_of = np.array([-1 if side is None else side for side in encoding.sequence_ids])
    places, stop = [], 0
    for side in range(n_sides):
        here = np.flatnonzero(side_of == side)
        start = here[0] if len(here) else stop
        stop = start + len(here)
        places.append(range(int(start), int(stop)))
    return places, encoding.offsets[places[-1].start :]


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
    """Return what each window reads of each text; `length` includes special tokens."""
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
    """Return how much of each text is kept, as tokenizers do it: the longer one is cut first."""
    if len(sizes) == 1:
        return [room]
    shorter, longer = sorted(sizes)
    if shorter + max(shorter, room - shorter) > room:
        shorter, longer = room // 2, room - room // 2
    else:
        longer = room - shorter
    return [longer, shorter] if sizes[0] > sizes[1] else [shorter, longer]
