"""From any accepted container of X and y to plain lists."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Hashable, Mapping, Sequence, Set
from itertools import pairwise
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy import sparse

from skdice._checks import (
    as_numbers,
    as_row_list,
    check_given,
    check_lengths,
    check_ordered,
    counted,
    is_missing,
    is_ordered,
    plain_values,
    shown,
)
from skdice._compat import safe_indexing
from skdice.inputs.labels import as_labels as as_labels
from skdice.inputs.labels import is_indicator


def object_array(rows: Sequence[Any]) -> np.ndarray:
    """A 1-D object array of `rows`, also when all rows have the same length."""
    return np.fromiter(rows, dtype=object, count=len(rows))


def take(X: Any, indices: np.ndarray) -> Any:
    """Rows of `X` by position, in a container of the same kind; frames get a fresh index."""
    if isinstance(X, (list, tuple)):
        return [X[i] for i in indices]
    rows = safe_indexing(X, indices)
    return rows.reset_index(drop=True) if hasattr(rows, "reset_index") else rows


def row_keys(X: Any) -> list[Any]:
    """A key for each row; equal rows have equal keys.

    Examples
    --------
    >>> from skdice.inputs.texts import row_keys
    >>> a, b, c = row_keys([["no", "war"], ("no", "war"), ["no war"]])
    >>> a == b, a == c
    (True, False)
    """
    if sparse.issparse(X):
        rows = sparse.csr_array(X, copy=True)
        rows.sum_duplicates()
        rows.eliminate_zeros()
        parts = [slice(*ends) for ends in pairwise(rows.indptr)]
        return [(rows.indices[part].tobytes(), rows.data[part].tobytes()) for part in parts]
    return [_key(row) for row in plain_values(X)]


def _key(value: Any) -> Any:
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufc":
        return (value + value.dtype.type(0)).tobytes()  # -0.0 becomes 0.0
    if is_ordered(value):
        return tuple(map(_key, value))
    # Missing values, and what has no hash, are equal if they look alike.
    return repr(value) if is_missing(value) or not isinstance(value, Hashable) else value


def holds_tags(y: Any) -> bool:
    """Tell if the rows of `y` are lists of tags, and not labels, one or several in 0/1 rows."""
    if is_indicator(y):
        return False
    rows = plain_values(y, "y")
    if not is_ordered(rows) or not len(rows):
        return False
    first = next(iter(rows))
    return isinstance(first, (list, tuple, Mapping, Set)) or np.ndim(first) == 1


def as_rows(X: Any, name: str, *, may_be_empty: bool = False) -> list[Any]:
    """The rows of a list, array, Series or frame; scikit-learn's wording for what has none."""
    if sparse.issparse(X):
        raise TypeError(
            f"{name} is a sparse matrix, and a text estimator reads text: pass strings, or use "
            "DiceClassifier for numbers"
        )
    if isinstance(X, (str, bytes)):
        raise TypeError(f"{name} is a single string: put it in a list, as in [{name}]")
    X = plain_values(X, name)
    if not is_ordered(X):
        kind = f"the {type(X).__name__} {shown(X)}"
        raise TypeError(f"{name} must be a list, an array, a Series or a frame, not {kind}")
    rows = X.tolist() if isinstance(X, np.ndarray) and X.dtype.kind in "US" else list(X)
    if not rows and not may_be_empty:
        raise ValueError(f"{name} is empty (0 samples): at least 1 sample is required")
    return rows


def _input_rows(X: Any, may_be_empty: bool) -> list[Any]:
    rows = as_rows(X, "X", may_be_empty=may_be_empty)
    if rows and isinstance(rows[0], Mapping):  # a datasets.Dataset, or a list of records
        raise TypeError(
            f"X[0] is a dict with {list(rows[0])}: pass one column, as in dataset['text'], or read "
            "the data set with skdice.datasets.from_hf"
        )
    return rows


def target_rows(y: Any, n_rows: int, wanted: str, rows_of_x: str = "rows") -> list[Any]:
    """The rows of y, as many as those of X."""
    check_given(y, wanted)
    rows = as_rows(y, "y")
    check_lengths(rows_of_x, X=range(n_rows), y=rows)
    return rows


def is_whole_number(value: Any) -> bool:
    """Return True if a number has no fraction, such as 3, 3.0 or numpy's."""
    if isinstance(value, Integral):
        return True
    return isinstance(value, Real) and math.isfinite(value) and value == math.floor(value)


def nearest_place(text: str, part: str, start: int) -> int | None:
    """The place nearest to `start` at which `text` holds `part`; None if it does not."""
    start = min(max(start, 0), len(text))
    both = text.rfind(part, 0, start + len(part)), text.find(part, start)
    places = [place for place in both if place >= 0]
    return min(places, key=lambda place: abs(place - start), default=None)


_CONVERT = "convert it with str(); if it is missing, drop the row or fill it with ''"
_TAGS = (
    "write 'O' for a token outside all spans, None (of a tagger) for one that was not annotated, "
    "and map numbers to the names of their tags"
)


_TOKENS = "a list of tokens (for texts as strings use DiceEntityRecognizer)"


def _string(value: Any, where: str, remedy: str = _CONVERT) -> str:
    if isinstance(value, str):
        check_characters(value, where)
        return str(value)
    raise TypeError(f"{where} is {value!r}, not a string: {remedy}")


def _tag(value: Any, where: str) -> str:
    tag = _string(value, where, _TAGS)
    if "\x00" in tag:  # numpy would drop it at the end of a string
        raise ValueError(f"{where} is {tag!r}: a tag or label must not hold a null character")
    return tag


def _tag_or_none(value: Any, where: str) -> str | None:
    return None if value is None else _tag(value, where)


def as_names(name: str, values: Any) -> list[str]:
    """The tags or types that a parameter lists."""
    return [_tag(value, f"{name}[{i}]") for i, value in enumerate(as_row_list(name, values))]


def _strings(row: Any, where: str, read: Callable[[Any, str], Any]) -> list[Any]:
    """The values of a row; a list of plain strings is not copied."""
    if type(row) is list and all(type(value) is str and "\x00" not in value for value in row):
        if not is_text("".join(row)):
            for j, value in enumerate(row):
                check_characters(value, f"{where}[{j}]")
        return row
    return [read(value, f"{where}[{j}]") for j, value in enumerate(row)]


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
    rows = _input_rows(X, may_be_empty)
    if not rows or isinstance(rows[0], (str, bytes)) or not hasattr(rows[0], "__len__"):
        return [_string(row, f"X[{i}]") for i, row in enumerate(rows)]
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
        pairs.append(tuple(_string(value, f"X[{i}][{j}]") for j, value in enumerate(row)))
    return [pair[0] for pair in pairs] if width == 1 else pairs  # type: ignore[return-value]


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
    return text.isascii() or re.search("[\ud800-\udfff]", text) is None


def check_characters(text: str, where: str) -> None:
    """Refuse what no tokenizer reads."""
    if is_text(text):
        return
    both, half = "[\ud800-\udbff][\udc00-\udfff]", r"[\ud800-\udfff]"
    found = re.search(f"{both}|{half}", text)
    assert found is not None
    if len(found[0]) == 2:
        problem = "a surrogate pair, which is one character in two"
        remedy = "join all by text.encode('utf-16', 'surrogatepass').decode('utf-16', 'replace')"
    elif "\udc80" <= found[0] <= "\udcff":  # as errors="surrogateescape" leaves it
        problem = f"the byte {ord(found[0]) - 0xDC00:#x}, which was not decoded"
        remedy = "read the text with its own encoding, such as encoding='latin-1'"
    else:
        problem = "half of a surrogate pair, which is no character"
        remedy = "replace it by text.encode('utf-8', 'replace').decode()"
    raise ValueError(f"{where} holds {problem}, at character {found.start()}: {remedy}")


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


def as_sentences(X: Any, *, may_be_empty: bool = False) -> list[list[str]]:
    """Sentences as lists of tokens; an empty sentence is legal, and an empty X if it may be.

    Examples
    --------
    >>> from skdice.inputs.texts import as_sentences
    >>> as_sentences([["Anna", "sleeps"], []])
    [['Anna', 'sleeps'], []]
    """
    sentences = []
    for i, row in enumerate(_input_rows(X, may_be_empty)):
        check_ordered(row, f"X[{i}]", _TOKENS)
        sentences.append(_strings(row, f"X[{i}]", _string))
    return sentences


def as_tags(y: Any, sentences: list[list[str]], *, complete: bool = False) -> list[list[Any]]:
    """Tags as lists, one for each token of `sentences`.

    A tag is a string, or None for a token that was not annotated unless they must be `complete`.
    """
    rows = target_rows(y, len(sentences), "a list of tag lists", "sentences")
    tags = []
    for i, (row, sentence) in enumerate(zip(rows, sentences, strict=True)):
        check_ordered(row, f"y[{i}]", "a list with one tag for each token")
        if len(row) != len(sentence):
            raise ValueError(
                f"y[{i}] has {counted(len(row), 'tag')}, but X[{i}] has "
                f"{counted(len(sentence), 'token')} ({' '.join(sentence)[:60]!r}): give one tag "
                "for each token"
            )
        tags.append(_strings(row, f"y[{i}]", _tag if complete else _tag_or_none))
    return tags


def check_groups(groups: Any, n_rows: int) -> None:
    """Refuse groups that are not one value for each row; a missing one would be a group."""
    as_row_list("groups", groups)
    rows = list(plain_values(groups, "groups"))
    check_lengths(groups=rows, y=range(n_rows))
    for i, group in enumerate(rows):
        if is_ordered(group) or is_missing(group) or group != group:  # NaT, too
            raise ValueError(
                f"groups[{i}] is {shown(group)}: give one value for each row, such as the number "
                "of its document, and to a row without one a group of its own"
            )


def check_weights(sample_weight: Any, n_rows: int) -> np.ndarray | None:
    """`sample_weight` as a float array of shape (n_rows,), or None."""
    if sample_weight is None:
        return None
    if isinstance(sample_weight, Real):
        sample_weight = [sample_weight] * n_rows
    weights = as_numbers("sample_weight", sample_weight)
    if weights.shape != (n_rows,):
        raise ValueError(
            f"sample_weight has shape {weights.shape}, but X holds "
            f"{counted(n_rows, 'row')}: give one weight for each row"
        )
    if not np.isfinite(weights.sum()) or (weights < 0).any() or not weights.any():
        raise ValueError("sample_weight must have a finite sum, not be negative or all zero")
    return weights
