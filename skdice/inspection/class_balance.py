"""The imbalance of data (the paper's Table 1)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from skdice._checks import check_choice, checked, position
from skdice._types import Data
from skdice.inputs.labels import Labels, holds_tags, is_indicator, read_labels
from skdice.inputs.rows import as_row_list, is_missing
from skdice.metrics.decisions.positive import positive_class


@dataclass(frozen=True)
class Imbalance:
    """Counts of negatives and positives, as `imbalance` gives them.

    Attributes
    ----------
    unit : {"tokens", "examples"}
    n_negative, n_positive : int
    background : str or None
        The negative class; None if there is none, so that all are positives.
    counts : dict
        Examples of each class, the most frequent first. Where a row may have several labels, a row
        counts for each of them.
    """

    unit: str
    n_negative: int
    n_positive: int
    background: Any
    counts: dict[Any, int]

    @property
    def ratio(self) -> float:
        """Negatives for each positive."""
        return self.n_negative / self.n_positive if self.n_positive else float("inf")


NO_LABEL = "(no label)"


@checked
def imbalance(y: Data, *, background: Any = "auto", multilabel: bool = False) -> Imbalance:
    """Count negatives and positives, as in Table 1 of Li et al. (2020).

    Parameters
    ----------
    y : list of tag lists; labels of shape (n,); 0/1 rows of shape (n, n_labels), a frame of such \
columns, or sets of names
        A tag of None, which marks a token that was not annotated, is not counted. Nor is one of
        several labels that is NaN or None; a row that may have it, and has no other, is neither
        positive nor negative.
    background : label or None, default="auto"
        The negative class. ``"auto"`` is ``O`` for tags. For two labels it is 0, -1 or False
        beside 1 or True, and otherwise the more frequent one. For more labels there is none. Where
        a row may have several labels, the rows without any are the negatives.
    multilabel : bool, default=False
        Whether lists in `y` are the labels of a row, and not its tags. Sets and 0/1 rows always
        are.

    Returns
    -------
    Imbalance

    Raises
    ------
    ValueError
        If `y` is empty or `background` is not in it.
    TypeError
        If `multilabel` is not True or False.

    Examples
    --------
    >>> from skdice.inspection import imbalance
    >>> imbalance([["O", "O", "O", "B-PER"], ["O"]]).ratio
    4.0
    """
    several = multilabel or is_indicator(y)
    rows = [] if several else as_row_list("y", y, may_be_empty=False)
    is_column = getattr(y, "shape", ())[1:] == (1,)  # of labels
    tagged = holds_tags(rows) and not is_column
    labels = None if tagged else read_labels(y, missing=True)
    if labels is not None and labels.multilabel:
        check_choice("background of several labels a row", background, ("auto",))
        return _of_several(labels)
    counts = _frequent_first(_tags_in(rows) if labels is None else Counter(labels.values.tolist()))
    background = _background(counts, tagged, background)
    negative = counts[background] if background is not None else 0
    unit = "tokens" if tagged else "examples"
    return Imbalance(unit, negative, sum(counts.values()) - negative, background, counts)


def _tags_in(rows: list[Any]) -> Counter[Any]:
    """The number of each tag; tags are None where nobody annotated."""
    try:
        tags = (tag for row in rows for tag in row if tag is not None)
        n_of = Counter(tag.item() if isinstance(tag, np.generic) else tag for tag in tags)
    except TypeError as error:  # a sentence that is no list, or a tag that is one
        raise TypeError(f"y must hold labels, or lists of tags: {error}") from None
    if any(map(is_missing, n_of)):
        raise ValueError("y holds a missing label (NaN or None): drop the row or label it")
    if not n_of:
        raise ValueError("y holds no label: its sentences are empty, or not annotated")
    return n_of


def _of_several(labels: Labels) -> Imbalance:
    """The rows of each of several labels, and those that are known to have none."""
    held = labels.values == 1
    n_of = dict(zip(labels.classes.tolist(), held.sum(axis=0).tolist(), strict=True))
    positive = int(held.any(axis=1).sum())
    negative = int((labels.values == 0).all(axis=1).sum())
    n_of[NO_LABEL] = negative
    return Imbalance("examples", negative, positive, NO_LABEL, _frequent_first(n_of))


def _frequent_first(n_of: dict[Any, int]) -> dict[Any, int]:
    return dict(sorted(n_of.items(), key=lambda item: (-item[1], str(item[0]))))


def _background(counts: dict[Any, int], tagged: bool, given: Any) -> Any:
    if given is None:
        return None
    if not (isinstance(given, str) and given == "auto"):
        return [*counts][position("background", given, [*counts], "labels")]
    if tagged:
        return "O" if "O" in counts else None
    if len(counts) != 2:
        return None
    names = sorted(counts)  # as in `classes_`
    return names[1 - positive_class(names, [counts[name] for name in names])]
