"""Exact match and token F1 of answers, as in the evaluation script of SQuAD."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from skdice._checks import check_lengths, checked
from skdice._types import Rows
from skdice.inputs.answers import answers_in
from skdice.inputs.rows import as_row_list

__all__ = [
    "answer_exact_match_score",
    "answer_f1_score",
]

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def _normalized(text: str) -> str:
    """Lower case, without punctuation, articles and extra white space, as in SQuAD's script."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def _best(y_true: Any, y_pred: Any, score: Callable[[str, str], float]) -> float:
    """The mean of the best score of each prediction over its row's answers, both normalised."""
    rows, texts = as_row_list("y_true", y_true), as_row_list("y_pred", y_pred)
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"y_pred[{i}] is {text!r:.60}: give a string, empty for no answer")
    check_lengths(y_true=rows, y_pred=texts)
    if not rows:  # as scikit-learn's scores
        raise ValueError(
            "y_true holds no answers, and a mean needs one: give one for each question"
        )
    found = []
    for i, (answers, text) in enumerate(zip(rows, texts, strict=True)):
        given = answers_in(answers, f"y_true[{i}]", may_lack_start=True)
        gold = [*filter(None, (_normalized(answer) for _, answer in given))] or [""]
        found.append(max(score(answer, _normalized(text)) for answer in gold))
    return float(np.mean(found))


def _f1(answer: str, text: str) -> float:
    gold, predicted = answer.split(), text.split()
    if not gold or not predicted:
        return float(gold == predicted)
    shared = sum((Counter(gold) & Counter(predicted)).values())
    return 2 * shared / (len(gold) + len(predicted))


@checked
def answer_f1_score(y_true: Rows, y_pred: Sequence[str]) -> float:
    """Mean F1 over the words that a prediction and its best answer share.

    Parameters
    ----------
    y_true : list of answers
        For each question ``(start, text)``, several of them, a text, SQuAD's dicts, or None or []
        where there is no answer.
    y_pred : list of str
        Empty for no answer.

    Returns
    -------
    float
        From 0 to 1: the official script's figure divided by 100. Words are compared in lower case,
        without articles and punctuation.

    Raises
    ------
    ValueError
        If lengths differ, or without any row.

    References
    ----------
    P. Rajpurkar et al., "SQuAD", EMNLP 2016; "Know What You Don't Know", ACL 2018.

    Examples
    --------
    >>> from skdice.metrics import answer_f1_score
    >>> answer_f1_score([[(4, "the black cat")], []], ["A black dog", ""])
    0.75
    """
    return _best(y_true, y_pred, _f1)


@checked
def answer_exact_match_score(y_true: Rows, y_pred: Sequence[str]) -> float:
    """Share of predictions that equal one of their answers, after normalising both.

    Parameters
    ----------
    y_true : list of lists of (start, text)
        As in `answer_f1_score`, whose errors these are.
    y_pred : list of str

    Returns
    -------
    float

    Examples
    --------
    >>> from skdice.metrics import answer_exact_match_score
    >>> answer_exact_match_score([[(0, "The cat"), (0, "Tom")], []], ["cat!", "dog"])
    0.5
    """
    return _best(y_true, y_pred, lambda answer, text: float(answer == text))
