"""The imbalance of data: the paper's Table 1."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from skdice._checks import check_choice, checked, position
from skdice._types import Data
from skdice.inputs.answers import read_answers
from skdice.inputs.labels import Labels, is_indicator, read_labels
from skdice.inputs.rows import as_row_list, is_missing
from skdice.inputs.sentences import as_entities, as_sentences, first_item, holds_tags
from skdice.inputs.texts import as_texts
from skdice.metrics.decisions.positive import positive_class

_TOKEN = re.compile(r"[\u3400-\u9fff]|[^\W\u3400-\u9fff]+|[^\w\s]")


@checked
@dataclass(frozen=True)
class Imbalance:
    """Counts of negatives and positives.

    Attributes
    ----------
    unit : {"tokens", "examples"}
    n_negative, n_positive : int
    background : str or None
        The negative class; None if there is none, so that all are positives.
    counts : dict
        Examples of each class, the most frequent first. Where a row may have several labels, a row
        counts for each of them.

    Examples
    --------
    >>> from skdice.inspection import Imbalance
    >>> counts = Imbalance("examples", 90, 10, "ham", {"ham": 90, "spam": 10})
    >>> counts.ratio
    9.0
    """

    unit: str
    n_negative: int
    n_positive: int
    background: Any
    counts: dict[Any, int]

    def __post_init__(self) -> None:
        if self.unit not in ("tokens", "examples") or min(self.n_negative, self.n_positive) < 0:
            raise ValueError(
                f"unit={self.unit!r}, n_negative={self.n_negative}, n_positive={self.n_positive}: "
                "the unit is 'tokens' or 'examples', and counts are not negative"
            )

    @property
    def ratio(self) -> float:
        """Negatives for each positive."""
        return self.n_negative / self.n_positive if self.n_positive else float("inf")

    def to_dict(self) -> dict[str, Any]:
        """A dict of plain values, with the ratio."""
        return {**asdict(self), "ratio": self.ratio}


NO_LABEL = "(no label)"


@checked
def imbalance(y: Data, *, background: Any = "auto", multilabel: bool = False) -> Imbalance:
    """Count negatives and positives, as in Table 1 of Li et al. (2020).

    Parameters
    ----------
    y : list of tag lists; labels of shape (n,); 0/1 rows of shape (n, n_labels), a frame of such \
columns, or sets of names
        A tag of None, which marks a token that was not annotated, is not counted.
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
    rows = [] if several else as_row_list("y", y)
    if not several and not rows:
        raise ValueError("y is empty: give at least one label")
    tagged = holds_tags(rows)
    if tagged:
        n_of = _tags_in(rows)
    else:
        read = read_labels(y)
        if read.multilabel:
            check_choice("background of several labels a row", background, ("auto",))
            return _of_several(read)
        n_of = Counter(read.values.tolist())
    counts = _frequent_first(n_of)
    if isinstance(background, str) and background == "auto":
        background = _background(counts, tagged)
    elif background is not None:
        labels = list(counts)
        background = labels[position("background", background, labels, "labels")]
    negative = counts[background] if background is not None else 0
    total = sum(counts.values())
    unit = "tokens" if tagged else "examples"
    return Imbalance(unit, negative, total - negative, background, counts)


def reading_imbalance(X: Data, y: Data) -> Imbalance:
    """Count tokens that start or end an answer, and all others, as in Table 1 of Li et al. (2020).

    Parameters
    ----------
    X : (question, context) pairs, or sentences as lists of tokens
        In any container that `DiceQuestionAnswerer` or `DiceMRCTagger` takes.
    y : list of answers, one row for each question; or of tags or (type, start, end) spans
        For tags and spans, every sentence is asked for every type.

    Returns
    -------
    Imbalance

    Raises
    ------
    TypeError, ValueError
        If X or y has another form, or they do not match; the message names the row.

    Notes
    -----
    Tokens of a context are words and punctuation marks. An answer counts as two, its start and
    its end, as in the paper's figures (175K in SQuAD 1.1 for 88K questions).

    Examples
    --------
    >>> from skdice.inspection import reading_imbalance
    >>> reading_imbalance([("Who?", "Ann sings in Rome.")], [[(0, "Ann")]]).to_dict()["counts"]
    {'other': 3, 'start or end': 2}
    """
    if _are_entities(X, y):
        sentences = as_sentences(X)
        spans, _ = as_entities(y, sentences)
        types = {kind for row in spans for kind, _, _ in row}
        total = len(types) * sum(map(len, sentences))
        positive = sum(
            len({s for k, s, _ in row if k == kind}) + len({e for k, _, e in row if k == kind})
            for row in spans
            for kind in types
        )
    else:
        pairs = as_texts(X)  # not as_questions(): a row without a question can be counted
        if isinstance(pairs[0], str):
            raise ValueError("X holds single texts: each row must be a pair (question, context)")
        contexts = Counter(context for _, context in pairs)
        total = sum(n * len(_TOKEN.findall(context)) for context, n in contexts.items())
        positive = 2 * sum(map(bool, read_answers(y, len(pairs))))
    counts = {"other": total - positive, "start or end": positive}
    return Imbalance("tokens", total - positive, positive, "other", counts)


def _are_entities(X: Any, y: Any) -> bool:
    """Tell whether `y` holds tags or (type, start, end) spans, and not answers."""
    kinds, item = (list, tuple, np.ndarray), first_item(y)
    if item is None:  # neither answers nor entities: a question and its context are two texts
        return any(isinstance(row, kinds) and len(row) != 2 for row in as_row_list("X", X))
    return isinstance(item, str) or (isinstance(item, kinds) and len(item) == 3)


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
    """The rows of each of several labels, and those of none."""
    n_of = dict(zip(labels.classes.tolist(), labels.values.sum(axis=0).tolist(), strict=True))
    positive = int(labels.values.any(axis=1).sum())
    negative = len(labels.values) - positive
    n_of[NO_LABEL] = negative
    return Imbalance("examples", negative, positive, NO_LABEL, _frequent_first(n_of))


def _frequent_first(n_of: dict[Any, int]) -> dict[Any, int]:
    return dict(sorted(n_of.items(), key=lambda item: (-item[1], str(item[0]))))


def _background(counts: dict[Any, int], tagged: bool) -> Any:
    if tagged:
        return "O" if "O" in counts else None
    if len(counts) != 2:
        return None
    names = sorted(counts, key=str)
    return names[1 - positive_class(names, [counts[name] for name in names])]
