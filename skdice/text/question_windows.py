"""Question and context -> windows of subwords, and where each prediction is to be read."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from skdice._warn import warn
from skdice.exceptions import TruncationWarning
from skdice.text.encoding import (
    Window,
    _cut,
    _subwords_of_words,
    compact,
    subwords_of_texts,
    tell_of_words,
    template,
    whole_words,
)


@dataclass(slots=True)
class ReadingWindow(Window):
    """A question with a part of its context.

    `positions` are the summary token (``[CLS]``), where "no answer" is read, and then the context
    tokens; `words` numbers them in the whole context, with -1 for the summary token.
    """

    # First and last character of each token, ends exclusive; (0, 0) for the summary token.
    offsets: np.ndarray
    # How much context a token has on its poorer side: the window with the highest score decides.
    context_score: np.ndarray


@compact
def encode_questions(
    tokenizer: Any,
    pairs: Sequence[tuple[str, str]],
    max_length: int,
    *,
    stride: int,
    max_question_length: int,
) -> Iterator[ReadingWindow]:
    """Windows of question and context; every context is tokenised once."""
    shape = template(tokenizer, 2)
    questions, contexts = (list(dict.fromkeys(texts)) for texts in zip(*pairs, strict=True))
    # Not verbose: it would warn of long questions, which are cut below.
    asked_ids = tokenizer(questions, add_special_tokens=False, verbose=False)["input_ids"]
    if n_cut := sum(len(ids) > max_question_length for ids in asked_ids):
        warn(
            f"{n_cut} of {len(questions)} questions are cut to max_question_length="
            f"{max_question_length} subwords: raise it, so that they are read whole",
            TruncationWarning,
        )
    ids_of = dict(zip(questions, asked_ids, strict=True))
    tokens_of = dict(zip(contexts, subwords_of_texts(tokenizer, contexts), strict=True))
    for row, (question, context) in enumerate(pairs):
        asked = ids_of[question][:max_question_length]
        room = max_length - shape.size - len(asked)
        if room < 1:
            raise ValueError(
                f"X[{row}]: the question takes {len(asked)} of max_length={max_length} subwords "
                "and leaves no room for the context: raise max_length or lower "
                "max_question_length"
            )
        ids, offsets = tokens_of[context]
        if not len(ids):
            raise ValueError(f"X[{row}] has a context without any subword: {context[:40]!r}")
        sizes = np.ones(len(ids), dtype=np.int64)
        # With more overlap a long context would be cut into too many windows.
        for first, last, *_ in _cut(sizes, room, min(stride, room // 2)):
            inputs, segments, start = shape.build(asked, ids[first:last].tolist())
            where = np.arange(last - first)
            yield ReadingWindow(
                inputs,
                segments,
                np.append(shape.summary_position(inputs), where + start),
                np.append(-1, where + first),
                row,
                np.vstack([[[0, 0]], _trimmed(context, offsets[first:last])]),
                np.append(0, np.minimum(where, where[::-1]) + 0.01 * (last - first)),
            )


def _trimmed(context: str, offsets: np.ndarray) -> np.ndarray:
    """Offsets without the white space before a word, which byte-level tokenizers count to it.

    They include the accents and invisible characters after a token, which other tokenizers drop
    and which an answer ends with.
    """
    trimmed = offsets.copy()
    for i, (start, end) in enumerate(offsets):
        while start < end and context[start].isspace():
            start += 1
        while end < len(context) and is_mark(context[end]):
            end += 1
        trimmed[i] = start, end
    return trimmed


def is_mark(character: str) -> bool:
    """Tell if a character is a combining mark or invisible, so that no word begins with it."""
    return character > "\x7f" and unicodedata.category(character) in ("Mn", "Me", "Cf")


@dataclass(slots=True)
class QueryWindow(Window):
    """A query with a part of a sentence.

    `positions` are the summary token and then the first subword of each word; `words` numbers
    them in the sentence, with -1 for the summary token. The outputs of a window are its starts
    and its ends (one a word), then whether there is an answer at all, then its candidate spans.
    """

    query: int  # index of the query
    longest: int  # words of a candidate

    @property
    def n_words(self) -> int:
        """Words of the sentence in this window."""
        return len(self.positions) - 1

    @property
    def pairs(self) -> np.ndarray:
        """First and last word of each candidate, as indices into `positions`."""
        return candidate_pairs(self.n_words, self.longest)

    @property
    def n_predictions(self) -> int:
        """Rows that the heads' output has for this window."""
        return 2 * self.n_words + 1 + len(self.pairs)


@lru_cache(maxsize=64)  # most windows have one of a few sizes
def candidate_pairs(n_words: int, longest: int) -> np.ndarray:
    """Every span of 1 to `longest` words, first and last as positions, where word 0 is at 1.

    Examples
    --------
    >>> from skdice.text.question_windows import candidate_pairs
    >>> candidate_pairs(3, 2).tolist()
    [[1, 1], [1, 2], [2, 2], [2, 3], [3, 3]]
    """
    first = np.repeat(np.arange(n_words), longest)
    last = first + np.tile(np.arange(longest), n_words)
    inside = last < n_words
    return np.stack([first[inside], last[inside]], axis=1) + 1


@compact
def encode_queries(
    tokenizer: Any,
    sentences: Sequence[Sequence[str]],
    queries: Sequence[str],
    max_length: int,
    *,
    stride: int,
    longest: int,
) -> Iterator[QueryWindow]:
    """Every sentence with every query; an empty sentence has no window."""
    shape = template(tokenizer, 2)
    asked = tokenizer(list(queries), add_special_tokens=False)["input_ids"]
    room = max_length - shape.size - max(map(len, asked))
    if room < 2:
        i = int(np.argmax([len(ids) for ids in asked]))
        raise ValueError(
            f"the query {queries[i]!r} takes {len(asked[i])} of max_length={max_length} subwords "
            "and leaves no room for a sentence: shorten it, or raise max_length"
        )
    n_cut = 0
    for row, every in enumerate(_subwords_of_words(tokenizer, sentences)):
        words = whole_words(every, room)
        n_cut += words is not every
        sizes = np.array([len(word) for word in words], dtype=np.int64)
        for first, last, *_ in _cut(sizes, room, min(stride, room // 2)):
            subwords = [subword for word in words[first:last] for subword in word]
            begins = np.cumsum(sizes[first:last]) - sizes[first:last]
            for query, ids in enumerate(asked):
                inputs, segments, start = shape.build(ids, subwords)
                yield QueryWindow(
                    inputs,
                    segments,
                    np.append(shape.summary_position(inputs), begins + start),
                    np.append(-1, np.arange(first, last)),
                    row,
                    query,
                    longest,
                )
    tell_of_words(n_cut, max_length)
