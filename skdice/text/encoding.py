"""Words and texts -> subword ids, and where each word's prediction is to be read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import wraps
from itertools import islice, pairwise
from typing import Any, Generic, ParamSpec, TypeVar

import numpy as np

from skdice._warn import warn
from skdice.exceptions import TruncationWarning

BLOCK = 1024  # texts tokenised at a time: the tokenizer's output takes much memory
CHARACTERS = 1_000_000  # of texts tokenised at a time


@dataclass(slots=True)
class Window:
    """One input of the encoder."""

    input_ids: Sequence[int] | np.ndarray  # subwords, and the tokenizer's special tokens
    token_type_ids: Sequence[int] | np.ndarray | None
    positions: np.ndarray  # where the head predicts (empty for text classification)
    words: np.ndarray  # for each prediction, the index of its word in the sentence
    row: int  # the sentence or text that the window comes from

    def __len__(self) -> int:
        return len(self.input_ids)

    @property
    def n_predictions(self) -> int:
        """Rows that the head's output has for this window."""
        return len(self.positions)


@dataclass
class Ragged(Sequence[np.ndarray]):
    """Arrays of several lengths, end to end in one."""

    values: np.ndarray  # integers in the smallest type; whoever reads them need not mind
    sizes: np.ndarray

    def __post_init__(self) -> None:
        self.ends: np.ndarray = np.cumsum(self.sizes)

    def __len__(self) -> int:
        return len(self.sizes)

    def __getitem__(self, i: Any) -> Any:
        end = self.ends[i]
        found = self.values[end - self.sizes[i] : end]
        return found if found.dtype.kind == "f" else found.astype(np.int32)


P = ParamSpec("P")
W = TypeVar("W", bound=Window)


@dataclass
class Windows(Sequence[W], Generic[W]):
    """Windows of one kind, by field: as objects they would take five times the memory."""

    kind: Any
    columns: dict[str, Any]  # of arrays `Ragged`, of ints an array, and None where all are None

    @classmethod
    def of(cls, windows: Iterable[W]) -> Windows[W]:
        """Take in windows as they are made."""
        source, kind, parts = iter(windows), None, defaultdict(list)
        while block := list(islice(source, BLOCK)):
            kind = type(block[0])
            for field in fields(kind):
                parts[field.name].append(_column([getattr(w, field.name) for w in block]))
        return cls(kind, {name: _joined(parts.pop(name)) for name in list(parts)})

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, i: Any) -> Any:
        i = range(len(self))[i]  # also of no windows, which have no columns
        return self.kind(*(None if c is None else c[i] for c in self.columns.values()))

    @property
    def rows(self) -> np.ndarray:
        """The sentence or text of each window."""
        return self.columns.get("row", np.empty(0, dtype=np.int64))

    @property
    def lengths(self) -> np.ndarray:
        """Subwords of each window."""
        return self.columns["input_ids"].sizes if self.columns else self.rows


def compact(make: Callable[P, Iterator[W]]) -> Callable[P, Windows[W]]:
    """Let a generator of windows return them as `Windows`."""

    @wraps(make)
    def made(*args: P.args, **kwargs: P.kwargs) -> Windows[W]:
        return Windows.of(make(*args, **kwargs))

    return made


def _column(values: list[Any]) -> Any:
    """The values of one field as a column."""
    if values[0] is None:
        return None
    if np.ndim(values[0]) == 0:
        return np.array(values)
    # Without empty lists, which numpy takes for floats.
    flat = np.concatenate([value for value in values if len(value)] or [np.empty(0, dtype=int)])
    if flat.dtype.kind == "i":
        ends = int(flat.min(initial=0)), int(flat.max(initial=0))
        flat = flat.astype(np.result_type(*map(np.min_scalar_type, ends)))
    return Ragged(flat, np.array([len(value) for value in values], dtype=np.int32))


def _joined(parts: list[Any]) -> Any:
    """One column of several."""
    if not isinstance(parts[0], Ragged):
        return None if parts[0] is None else np.concatenate(parts)
    return Ragged(*(np.concatenate([getattr(p, f.name) for p in parts]) for f in fields(Ragged)))


@dataclass(frozen=True, slots=True)
class Template:
    """The special tokens that a tokenizer puts around one or two texts."""

    special: list[list[int]]  # token ids before, between and after the texts
    special_segments: list[list[int]]  # their segment ids
    text_segments: list[int]  # the segment id of each text
    with_segments: bool  # whether the tokenizer gives segment ids at all
    summary: int | None  # the id of [CLS]

    @property
    def size(self) -> int:
        """The number of special tokens."""
        return sum(map(len, self.special))

    def build(self, *texts: list[int]) -> tuple[list[int], list[int] | None, int]:
        """Input ids, segment ids, and where the last text starts."""
        ids, segments, start = [*self.special[0]], [*self.special_segments[0]], 0
        for i, text in enumerate(texts):
            start = len(ids)
            ids += [*text, *self.special[i + 1]]
            segments += [self.text_segments[i]] * len(text) + self.special_segments[i + 1]
        return ids, segments if self.with_segments else None, start

    def summary_position(self, ids: list[int]) -> int:
        """The place of the summary token: first for BERT, last for XLNet."""
        return ids.index(self.summary) if self.summary in ids else 0


def template(tokenizer: Any, n_texts: int = 1) -> Template:
    """Read the special tokens off an encoded probe, so that any backbone's order is right.

    BERT has ``[CLS] text [SEP]``; XLNet has ``text <sep> <cls>`` with a segment of its own for
    ``<cls>``.
    """
    probes = ["a", "b"][:n_texts]
    full = tokenizer(*probes)
    ids, segments = full["input_ids"], full.get("token_type_ids")
    kinds = [*(segments or [0] * len(ids)), 0]
    borders = [0]
    for probe in probes:
        bare = tokenizer(probe, add_special_tokens=False)["input_ids"]
        places = range(borders[-1], len(ids) + 1)
        start = next(i for i in places if ids[i : i + len(bare)] == bare)
        borders += [start, start + len(bare)]
    special = [slice(*ends) for ends in pairwise([*borders, len(ids)])][::2]
    return Template(
        special=[ids[part] for part in special],
        special_segments=[kinds[part] for part in special],
        text_segments=[kinds[start] for start in borders[1::2]],
        with_segments=segments is not None,
        summary=tokenizer.cls_token_id,
    )


@compact
def encode_sentences(
    tokenizer: Any,
    sentences: Sequence[Sequence[str]],
    max_length: int,
    *,
    stride: int | None = None,
) -> Iterator[Window]:
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

    Returns
    -------
    Windows
        In the order of the sentences; an empty sentence has none.
    """
    rows = _subwords_of_words(tokenizer, sentences)
    yield from windows_of_words(tokenizer, rows, max_length, stride)


def windows_of_words(
    tokenizer: Any,
    rows: Iterable[list[list[int]]],
    max_length: int,
    stride: int | None,
    queries: Sequence[list[int]] | None = None,
) -> Iterator[Window]:
    """The windows of `encode_sentences`, from the subword ids of the words of each row.

    With `queries` each window begins with that of its row.
    """
    around = template(tokenizer, 1 if queries is None else 2)
    rooms = [max_length - around.size - len(query) for query in queries or [[]]]
    least = min(rooms)
    if least < 1:
        beside = f"{around.size} special tokens{'' if queries is None else ' and a question'}"
        raise ValueError(f"max_length={max_length} leaves no room beside {beside}: raise it")
    if (stride or 0) >= least:
        raise ValueError(
            f"stride={stride} must be below {least}, the subwords that fit beside the special "
            f"tokens in max_length={max_length}"
        )
    n_cut = 0
    for row, every in enumerate(rows):
        room = rooms[0 if queries is None else row]
        overlap = room // 4 if stride is None else stride
        words = whole_words(every, room)
        n_cut += words is not every
        sizes = np.array([len(ids) for ids in words], dtype=np.int64)
        for first, last, keep_first, keep_last in _cut(sizes, room, overlap):
            subwords = [i for word in words[first:last] for i in word]
            before = [] if queries is None else [queries[row]]
            ids, segments, start = around.build(*before, subwords)
            starts = np.cumsum(sizes[first:last]) - sizes[first:last] + start
            inside = slice(keep_first - first, keep_last - first)
            kept_words = np.arange(keep_first, keep_last)
            yield Window(ids, segments, starts[inside], kept_words, row)
    tell_of_words(n_cut, max_length)


def whole_words(words: list[list[int]], room: int) -> list[list[int]]:
    """The same words; one that is longer than a window keeps its head, where it is predicted."""
    if all(len(word) <= room for word in words):
        return words
    return [word[:room] for word in words]


def tell_of_words(n_rows: int, max_length: int) -> None:
    """Warn of words longer than a window."""
    if n_rows:
        warn(
            f"{n_rows} rows hold a word of more subwords than fit in max_length={max_length}: only "
            "its beginning is read; raise max_length, or look whether it is one word",
            TruncationWarning,
        )


def _subwords_of_words(
    tokenizer: Any, sentences: Sequence[Sequence[str]]
) -> Iterator[list[list[int]]]:
    """Subword ids of every word; a word that yields none becomes the unknown token."""
    unknown = tokenizer.unk_token_id
    if unknown is None:
        unknown = tokenizer.mask_token_id or tokenizer.pad_token_id or 0
    # Not verbose: it would warn of long sentences, which are cut into windows.
    options = {"is_split_into_words": True, "add_special_tokens": False, "verbose": False}
    for start in range(0, len(sentences), BLOCK):
        block = sentences[start : start + BLOCK]
        filled = [list(sentence) for sentence in block if len(sentence)]
        encoded = iter(tokenizer(filled, **options).encodings if filled else [])
        for sentence in block:
            words: list[list[int]] = [[] for _ in sentence]
            if words:
                encoding = next(encoded)
                for subword, word in zip(encoding.ids, encoding.word_ids, strict=True):
                    if word is not None:
                        words[word].append(subword)
            yield [word or [unknown] for word in words]


def _cut(sizes: np.ndarray, room: int, overlap: int) -> list[tuple[int, int, int, int]]:
    """Windows of words as (first, last, first predicted, last predicted), ends exclusive."""
    n, first = len(sizes), 0
    if n == 0:
        return []
    spans: list[tuple[int, int]] = []
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
    borders = [0, *((later[0] + earlier[1]) // 2 for earlier, later in pairwise(spans)), n]
    return [(*span, *kept) for span, kept in zip(spans, pairwise(borders), strict=True)]


# ---- raw texts


def text_blocks(
    texts: Sequence[str] | Sequence[tuple[str, str]],
    most: int = BLOCK,
    characters: int = CHARACTERS,
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

    They have no special tokens.
    """
    for some in text_blocks(texts):
        # Not verbose: it would warn of long texts, which are cut into windows.
        encoded = tokenizer(list(texts[some]), add_special_tokens=False, verbose=False)
        for encoding in encoded.encodings:
            ids = np.array(encoding.ids, dtype=np.int32)
            yield ids, np.array(encoding.offsets, dtype=np.int32).reshape(-1, 2)
