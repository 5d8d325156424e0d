"""Exact match and token F1 of answers, as in the evaluation scripts of SQuAD and CMRC 2018."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Any

import numpy as np
from sklearn.metrics import make_scorer

from skdice._checks import check_choice, check_lengths, checked
from skdice._types import Rows
from skdice.inputs.answers import answers_in
from skdice.inputs.rows import as_row_list

__all__ = [
    "answer_exact_match_score",
    "answer_exact_match_scorer",
    "answer_f1_score",
    "answer_f1_scorer",
    "normalize_answer",
]

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)
# Only the punctuation marks that CMRC's script deletes.
_CMRC_SIGNS = str.maketrans("", "", "-:_*^/\\~`+=，。：？！“”；’《》·、「」（）－～『』")
_CMRC_PIECE = re.compile(
    r"[\u4e00-\u9fa5]|[^\W\u4e00-\u9fa5]+(?:[.,'][^\W\u4e00-\u9fa5]+)*|[^\w\s]"
)
LANGUAGES = ("en", "zh")


def normalize_answer(text: str) -> str:
    """Lower case, without punctuation, articles and extra white space, as SQuAD compares answers.

    Parameters
    ----------
    text : str

    Returns
    -------
    str

    Raises
    ------
    TypeError
        If it is not a string.

    Examples
    --------
    >>> from skdice.metrics import normalize_answer
    >>> normalize_answer("The  Cat's tail.")
    'cats tail'
    """
    if not isinstance(text, str):
        raise TypeError(f"text is {text!r:.60}: an answer is a string, empty where there is none")
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def _normalized(text: str, language: str) -> str:
    """Return what exact match compares."""
    if language == "en":
        return normalize_answer(text)
    return text.lower().strip().translate(_CMRC_SIGNS)


def _pieces(text: str, language: str) -> list[str]:
    """Return what F1 counts: words, or Chinese characters (and whole words of other scripts)."""
    text = _normalized(text, language)
    return text.split() if language == "en" else _CMRC_PIECE.findall(text)


def _best(y_true: Any, y_pred: Any, language: str, score: Any) -> list[float]:
    """The best score of each prediction over its row's answers."""
    check_choice("language", language, LANGUAGES)
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
        given = [text for _, text in answers_in(answers, f"y_true[{i}]", may_lack_start=True)]
        gold = [answer for answer in given if _pieces(answer, language)] or [""]
        found.append(max(score(answer, text) for answer in gold))
    return found


def _f1(answer: str, text: str, language: str) -> float:
    gold, predicted = _pieces(answer, language), _pieces(text, language)
    if not gold or not predicted:
        return float(gold == predicted)
    if language == "zh":
        shared = SequenceMatcher(None, gold, predicted, autojunk=False).find_longest_match().size
    else:
        shared = sum((Counter(gold) & Counter(predicted)).values())
    return 2 * shared / (len(gold) + len(predicted))


@checked
def answer_f1_score(y_true: Rows, y_pred: Sequence[str], *, language: str = "en") -> float:
    """Mean F1 over the words that a prediction and its best answer share.

    Parameters
    ----------
    y_true : list of answers
        For each question ``(start, text)``, several of them, a text, SQuAD's dicts, or None or []
        where there is no answer.
    y_pred : list of str
        Empty for no answer.
    language : {"en", "zh"}, default="en"
        ``"en"`` compares words as SQuAD's script does: in lower case, without articles and
        punctuation. ``"zh"`` compares characters as CMRC 2018's script does: a word of another
        script counts as one, only the longest common run counts, the script's list of punctuation
        is deleted, and exact match keeps the spaces.

    Returns
    -------
    float
        From 0 to 1: the official script's figure divided by 100. (CMRC's script splits words of
        other scripts with nltk; here they are split at spaces and punctuation.)

    Raises
    ------
    ValueError
        If lengths differ, without any row, or for an unknown `language`.

    References
    ----------
    P. Rajpurkar et al., "SQuAD", EMNLP 2016; "Know What You Don't Know", ACL 2018.
    Y. Cui et al., "A Span-Extraction Dataset for Chinese Machine Reading Comprehension", EMNLP
    2019.

    Examples
    --------
    >>> from skdice.metrics import answer_f1_score
    >>> answer_f1_score([[(4, "the black cat")], []], ["A black dog", ""])
    0.75
    """
    return float(np.mean(_best(y_true, y_pred, language, lambda g, p: _f1(g, p, language))))


@checked
def answer_exact_match_score(y_true: Rows, y_pred: Sequence[str], *, language: str = "en") -> float:
    """Share of predictions that equal one of their answers, after normalising both.

    Parameters and errors are those of `answer_f1_score`.

    Examples
    --------
    >>> from skdice.metrics import answer_exact_match_score
    >>> answer_exact_match_score([[(0, "The cat"), (0, "Tom")], []], ["cat!", "dog"])
    0.5
    """

    def same(answer: str, text: str) -> float:
        return float(_normalized(answer, language) == _normalized(text, language))

    return float(np.mean(_best(y_true, y_pred, language, same)))


answer_f1_scorer = make_scorer(answer_f1_score)
answer_exact_match_scorer = make_scorer(answer_exact_match_score)
