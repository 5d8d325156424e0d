"""Texts and pairs of texts, checked."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy import sparse

from skdice.inputs.rows import as_row_list, is_ordered, plain_values

_HALF = re.compile("[\ud800-\udfff]")  # of a surrogate pair
_CONVERT = "convert it with str(); if it is missing, drop the row or fill it with ''"


def input_rows(X: Any, may_be_empty: bool = False) -> list[Any]:
    """The rows of X, which are texts or sentences."""
    if sparse.issparse(X):
        raise TypeError(
            "X is a sparse matrix, and a text estimator reads text: pass strings, or use "
            "DiceClassifier for numbers"
        )
    rows = as_row_list("X", X, may_be_empty=may_be_empty)
    if rows and isinstance(rows[0], Mapping):  # a datasets.Dataset, or a list of records
        raise TypeError(
            f"X[0] is a dict with {list(rows[0])}: pass one column, as in dataset['text'], or read "
            "the data set with skdice.datasets.from_hf"
        )
    return rows


def string_of(value: Any, where: str, remedy: str = _CONVERT) -> str:
    """A string, with characters alone."""
    if isinstance(value, str):
        check_characters(value, where)
        return str(value)
    raise TypeError(f"{where} is {value!r}, not a string: {remedy}")


def is_whole_number(value: Any) -> bool:
    """Return True if a number has no fraction, such as 3, 3.0 or numpy's."""
    if isinstance(value, Integral):
        return True
    return isinstance(value, Real) and math.isfinite(value) and value == math.floor(value)


def nearest_place(text: str, part: str, start: int) -> int | None:
    """The place nearest to `start` with `part`; None without any."""
    start = min(max(start, 0), len(text))
    both = text.rfind(part, 0, start + len(part)), text.find(part, start)
    places = [place for place in both if place >= 0]
    return min(places, key=lambda place: abs(place - start), default=None)


def as_texts(X: Any, *, may_be_empty: bool = False) -> list[str] | list[tuple[str, str]]:
    """Texts, or pairs of texts, from any container that holds them.

    Parameters
    ----------
    X : list of str, list of pairs, array of shape (n,), (n, 1) or (n, 2), Series or frame
        One text a row, or two.
    may_be_empty : bool, default=False
        Whether there may be no row, as in what is to be predicted.

    Returns
    -------
    list of str or list of (str, str)

    Examples
    --------
    >>> import numpy as np
    >>> from skdice.inputs.texts import as_texts
    >>> as_texts(np.array([["a"], ["b"]], dtype=object))
    ['a', 'b']
    >>> as_texts([["a", "b"], ("c", "d")])
    [('a', 'b'), ('c', 'd')]
    """
    rows = input_rows(X, may_be_empty)
    if not rows or isinstance(rows[0], (str, bytes)) or not hasattr(rows[0], "__len__"):
        return [string_of(row, f"X[{i}]") for i, row in enumerate(rows)]
    width = len(rows[0])
    if width not in (1, 2):
        raise ValueError(
            f"X[0] holds {width} values: each row must hold one text, or two for a pair. "
            "For lists of tokens use DiceTokenClassifier"
        )
    pairs = []
    for i, row in enumerate(rows):
        if not is_ordered(row) or len(row) != width:
            raise ValueError(f"X[{i}] is {row!r}: each row must be a list of {width} text(s)")
        pairs.append(tuple(string_of(value, f"X[{i}][{j}]") for j, value in enumerate(row)))
    return [pair[0] for pair in pairs] if width == 1 else pairs  # type: ignore[return-value]


def refuse_labels_in(texts: Sequence[Any], labels: np.ndarray) -> None:
    """Refuse pairs of which one side is y, as in ``fit(frame, frame["label"])``."""
    if texts and not isinstance(texts[0], str) and labels.ndim == 1:
        for column, side in enumerate(zip(*texts, strict=True)):
            if list(side) == labels.tolist():
                raise ValueError(f"column {column} of X is y itself: give the column of the texts")


def as_single_texts(X: Any, *, may_be_empty: bool = False) -> list[str]:
    """Texts, one a row."""
    texts: list[Any] = as_texts(X, may_be_empty=may_be_empty)
    if texts and not isinstance(texts[0], str):
        raise ValueError(
            f"X[0] holds {len(texts[0])} strings, and a recognizer reads one text a row: join them "
            "to one, or use DiceTokenClassifier for lists of tokens"
        )
    return texts


def is_text(text: str) -> bool:
    """Return True if a string holds characters alone, and no half of a surrogate pair."""
    return text.isascii() or _HALF.search(text) is None


def check_characters(text: str, where: str) -> None:
    """Refuse what no tokenizer reads."""
    if found := None if text.isascii() else _HALF.search(text):
        raise ValueError(
            f"{where} holds half of a surrogate pair at character {found.start()}, as of a byte "
            "that was not decoded: read the text with its own encoding, such as "
            "encoding='latin-1', or mend it by text.encode('utf-16', 'surrogatepass')"
            ".decode('utf-16', 'replace')"
        )


def check_width(texts: list[Any], width: int | None, owner: Any, what: str = "X") -> int:
    """1 for texts or 2 for pairs, the same as `fit` saw if that is not None."""
    if not texts and width is not None:
        return width
    found = 1 if isinstance(texts[0], str) else 2
    if width not in (None, found):
        kinds = {1: "texts", 2: "pairs"}
        raise ValueError(
            f"{what} holds {kinds[found]}, but fit saw {kinds[width]}: "
            f"{type(owner).__name__} is expecting {width} features as input"
        )
    return found


def holds_texts(X: Any) -> bool:
    """Return True if the rows of X are texts, and not lists of tokens."""
    rows = plain_values(X)
    return is_ordered(rows) and len(rows) > 0 and isinstance(next(iter(rows)), str)
