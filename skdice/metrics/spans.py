"""Precision, recall and F1 over spans (entities), and over tokens for plain tags."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from sklearn.metrics import make_scorer

from skdice._checks import check_choice, checked, printable
from skdice._tables import text_table
from skdice._types import Rows, Scorer
from skdice.inputs.sentences import Spans, read_tags, spans_of
from skdice.metrics.classification import precision_recall_f1
from skdice.metrics.partial_credit import MODES, credit
from skdice.tags.schemes import get_spans, strict_spans

__all__ = [
    "span_f1_score",
    "span_f1_scorer",
    "span_precision_recall_fscore_support",
    "span_precision_score",
    "span_recall_score",
    "span_report",
]


@checked
def span_precision_recall_fscore_support(
    y_true: Rows,
    y_pred: Rows,
    *,
    average: str | None = None,
    scheme: str = "auto",
    mode: str = "lenient",
) -> tuple[Any, Any, Any, Any]:
    """Precision, recall, F1 and number of true spans; 0 where a ratio has a denominator of 0.

    A predicted span is right if its type and both borders are. A token whose true tag is None was
    not annotated, and is left out of both sides: a predicted span that covers only such tokens
    counts neither as right nor as wrong, one that reaches into them is compared by its other
    tokens, and a prediction that agrees with every annotated token has no errors.

    Parameters
    ----------
    y_true, y_pred : lists of lists of str, or of (type, start, end)
        Tags; each sentence as long in one as in the other. A true tag may be None. Or spans, which
        may be nested, with the end exclusive.
    average : {"micro", "macro", "weighted"} or None, default=None
        None gives arrays with one value for each type, types in sorted order.
    scheme : str, default="auto"
        One of ``"iob1"``, ``"iob2"``, ``"ioe1"``, ``"ioe2"``, ``"bioes"``, ``"bmes"``,
        ``"bilou"``, ``"plain"``. ``"auto"`` infers it from `y_true`.
    mode : {"lenient", "strict"}, default="lenient"
        ``"lenient"`` counts a span whose tags break the scheme, such as an I- without its B-, as
        the CoNLL-2003 script does. ``"strict"`` does not, like seqeval's strict mode.

    Returns
    -------
    precision, recall, fscore, support
        Floats and an int, or arrays of shape (n_types,).

    Raises
    ------
    TypeError
        If a sentence is not a list of tags, or a tag is not a string.
    ValueError
        If lengths differ (it names the first such sentence), a tag is neither ``O`` nor
        ``PREFIX-TYPE`` though most are, or for an unknown `average`, `scheme` or `mode`.

    References
    ----------
    E. Tjong Kim Sang, F. De Meulder, "Introduction to the CoNLL-2003 Shared Task", 2003.

    Examples
    --------
    >>> from skdice.metrics import span_precision_recall_fscore_support
    >>> y_true = [["B-PER", "I-PER", "O", "B-LOC"]]
    >>> y_pred = [["B-PER", "I-PER", "O", "O"]]
    >>> span_precision_recall_fscore_support(y_true, y_pred, average="micro")
    (1.0, 0.5, 0.6666666666666666, 2)
    """
    check_choice("average", average, ("micro", "macro", "weighted", None))
    check_choice("mode", mode, ("lenient", "strict"))
    true, pred = spans_of(y_true, y_pred, scheme, strict=mode == "strict")
    n_of = _n_of_types(true, pred)
    types = sorted(set(n_of[1]) | set(n_of[2]))
    counts = np.array([[n[kind] for kind in types] for n in n_of], dtype=np.int64).reshape(3, -1)
    if average == "micro":
        counts = counts.sum(axis=1, keepdims=True)
    # F1 is computed from counts, so that it is rounded only once.
    scores, support = precision_recall_f1(counts), counts[2]
    if average is None:
        return *scores, support
    if not len(support):
        return 0.0, 0.0, 0.0, 0
    weights = support if average == "weighted" and support.any() else None
    p, r, f = np.average(scores, axis=1, weights=weights).tolist()
    return p, r, f, int(support.sum())


def _n_of_types(true: Spans, pred: Spans) -> list[Counter[str]]:
    """The number of right, of predicted and of true spans of each type."""
    sets = [{(i, *span) for i, row in enumerate(rows) for span in row} for rows in (pred, true)]
    return [Counter(span[1] for span in spans) for spans in (sets[0] & sets[1], *sets)]


@checked
def span_precision_score(
    y_true: Rows, y_pred: Rows, *, average: str | None = "micro", **options: Any
) -> Any:
    """Share of predicted spans that are right; see `span_precision_recall_fscore_support`.

    Parameters
    ----------
    y_true, y_pred : lists of lists of str
        Tags.
    average : {"micro", "macro", "weighted"} or None, default="micro"
    **options
        As in `span_precision_recall_fscore_support`.

    Returns
    -------
    float, or ndarray of shape (n_types,)

    Examples
    --------
    >>> from skdice.metrics import span_precision_score
    >>> span_precision_score([["B-PER", "B-LOC"]], [["B-PER", "O"]])
    1.0
    """
    return span_precision_recall_fscore_support(y_true, y_pred, average=average, **options)[0]


@checked
def span_recall_score(
    y_true: Rows, y_pred: Rows, *, average: str | None = "micro", **options: Any
) -> Any:
    """Share of true spans that are found; see `span_precision_recall_fscore_support`.

    Parameters
    ----------
    y_true, y_pred : lists of lists of str
        Tags.
    average : {"micro", "macro", "weighted"} or None, default="micro"
    **options
        As in `span_precision_recall_fscore_support`.

    Returns
    -------
    float, or ndarray of shape (n_types,)

    Examples
    --------
    >>> from skdice.metrics import span_recall_score
    >>> span_recall_score([["B-PER", "B-LOC"]], [["B-PER", "O"]])
    0.5
    """
    return span_precision_recall_fscore_support(y_true, y_pred, average=average, **options)[1]


@checked
def span_f1_score(
    y_true: Rows, y_pred: Rows, *, average: str | None = "micro", **options: Any
) -> Any:
    """F1 over spans; see `span_precision_recall_fscore_support`.

    Parameters
    ----------
    y_true, y_pred : lists of lists of str
        Tags.
    average : {"micro", "macro", "weighted"} or None, default="micro"
    **options
        As in `span_precision_recall_fscore_support`.

    Returns
    -------
    float, or ndarray of shape (n_types,)

    Examples
    --------
    >>> from skdice.metrics import span_f1_score
    >>> span_f1_score([["B-PER", "O"], ["O", "B-LOC"]], [["B-PER", "O"], ["O", "O"]])
    0.6666666666666666
    """
    return span_precision_recall_fscore_support(y_true, y_pred, average=average, **options)[2]


@checked
def span_report(
    y_true: Rows,
    y_pred: Rows,
    *,
    scheme: str = "auto",
    mode: str = "lenient",
    output_dict: bool = False,
) -> Any:
    """Precision, recall, F1 and support of every type and of the averages, as text or a dict.

    Parameters
    ----------
    y_true, y_pred : lists of lists of str
    scheme : str, default="auto"
        As in `span_precision_recall_fscore_support`.
    mode : {"lenient", "strict", "exact", "partial", "type"}, default="lenient"
        What counts as found. ``"lenient"`` and ``"strict"`` are those of `span_f1_score`. In all
        others, too, spans are read leniently.

        =========  =================================================================
        lenient    a span with its type and both borders
        strict     the same, if its tags do not break the scheme
        exact      both borders, of any type
        partial    both borders, of any type; an overlap counts half
        type       an overlap with a span of the same type
        =========  =================================================================

        All but ``strict`` are the schemas of SemEval-2013, where the first is called strict. In
        them each span has at most one partner, and the row of a type compares spans of that type
        alone, as nervaluate does. In ``type`` nervaluate finds less: there a predicted span of
        another type, if it comes first, takes the true span from one of the same type.
    output_dict : bool, default=False

    Returns
    -------
    str or dict of dict

    References
    ----------
    I. Segura-Bedmar et al., "SemEval-2013 Task 9", SemEval 2013.

    Examples
    --------
    >>> from skdice.metrics import span_report
    >>> report = span_report([["B-PER", "O"]], [["B-PER", "O"]], output_dict=True)
    >>> report["PER"]
    {'precision': 1.0, 'recall': 1.0, 'f1': 1.0, 'support': 1}
    >>> y_true, y_pred = [["B-PER", "I-PER"]], [["B-PER", "O"]]
    >>> span_report(y_true, y_pred, mode="partial", output_dict=True)["micro avg"]["f1"]
    0.5
    """
    check_choice("mode", mode, tuple(MODES))
    true, pred, scheme = read_tags(y_true, y_pred, scheme)
    read = strict_spans if mode == "strict" else get_spans
    there, found = ([read(row, scheme) for row in rows] for rows in (true, pred))
    table = report_of_spans(there, found, mode)
    return table if output_dict else report_text(table)


def report_text(table: dict[str, dict[str, float]]) -> str:
    """The lines of a report."""
    columns = ("precision", "recall", "f1")
    rows = [
        [printable(name), *(f"{entry[c]:.3f}" for c in columns), str(entry["support"])]
        for name, entry in table.items()
    ]
    return text_table(["", *columns, "support"], rows) + "\n"


def report_of_spans(true: Spans, pred: Spans, mode: str) -> dict[str, dict[str, float]]:
    """Precision, recall, F1 and support of every type and of the averages."""
    of_type, of_all = credit(true, pred, mode)
    n_true = Counter(span[0] for row in true for span in row)
    support = [n_true[kind] for kind in of_type]
    scores = precision_recall_f1(np.array([*of_type.values(), of_all]).T)
    of_types, total = scores[:, :-1], sum(support)
    rows = {kind: (*of_types[:, i], n_true[kind]) for i, kind in enumerate(of_type)}
    rows["micro avg"] = (*scores[:, -1], total)
    for name, weights in (("macro", None), ("weighted", support if total else None)):
        means = np.average(of_types, axis=1, weights=weights) if support else np.zeros(3)
        rows[f"{name} avg"] = (*means, total)
    columns = ("precision", "recall", "f1")
    return {
        name: {**{c: float(v) for c, v in zip(columns, row, strict=False)}, "support": row[3]}
        for name, row in rows.items()
    }


span_f1_scorer: Scorer = make_scorer(span_f1_score)
