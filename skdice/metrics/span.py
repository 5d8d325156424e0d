"""Precision, recall and F1 over spans (entities), and over tokens for plain tags."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence, Set
from itertools import chain
from numbers import Integral
from typing import Any, Literal, overload

import numpy as np
from sklearn.metrics import make_scorer

from skdice._checks import (
    check_choice,
    check_lengths,
    check_ordered,
    checked,
    is_ordered,
    printable,
)
from skdice._tables import TextTable
from skdice._types import Rows
from skdice.metrics.credit import MODES, credit
from skdice.tags.schemes import (
    SCHEMES,
    get_spans,
    infer_scheme,
    refuse_strays,
    strict_spans,
    to_tags,
)
from skdice.tags.spans import Span

__all__ = [
    "convert_scheme",
    "span_f1_score",
    "span_f1_scorer",
    "span_macro_f1_scorer",
    "span_precision_recall_fscore_support",
    "span_precision_score",
    "span_precision_scorer",
    "span_recall_score",
    "span_recall_scorer",
    "span_report",
    "token_f1_score",
    "token_f1_scorer",
]


Tags = list[list[Any]]
Spans = list[list[Span]]


def _tag_lists(name: str, rows: Any) -> Tags:
    """Sentences as lists of tags."""
    check_ordered(rows, name, "a list with a list of tags for each sentence")
    lists: Tags = []
    for i, row in enumerate(rows.tolist() if isinstance(rows, np.ndarray) else rows):
        wanted = f"a list with the tags of one sentence; for a single sentence give [{name}]"
        check_ordered(row, f"{name}[{i}]", wanted)
        lists.append(list(row))
        for j, tag in enumerate(lists[-1]):
            if tag is not None and not isinstance(tag, str):
                raise TypeError(f"{name}[{i}][{j}] is {tag!r}, not a string: tags are strings")
    return lists


@checked
def convert_scheme(y: Rows, to: str = "iob2", *, scheme: str = "auto") -> list[list[str]]:
    """The same spans, tagged in another scheme.

    Parameters
    ----------
    y : list of lists of str
        Tags. Ill-formed ones are read leniently; None stays None.
    to : str, default="iob2"
        ``"plain"`` keeps types only: adjacent spans of a type can no longer be told apart.
    scheme : str, default="auto"
        The scheme of `y`; ``"auto"`` infers it.

    Raises
    ------
    ValueError, TypeError
        If a tag is plain or not a string, or a scheme is unknown.

    Examples
    --------
    >>> from skdice.metrics import convert_scheme
    >>> convert_scheme([["B-ORG", "E-ORG", "O", "S-PER"]])
    [['B-ORG', 'I-ORG', 'O', 'B-PER']]
    """
    check_choice("to", to, SCHEMES)
    check_choice("scheme", scheme, ("auto", *SCHEMES))
    rows = _tag_lists("y", y)
    scheme = infer_scheme(rows) if scheme == "auto" else scheme
    if scheme == "plain" and rows:
        raise ValueError("y holds plain tags, which do not say where spans begin and end")
    converted = (to_tags(get_spans(tags, scheme), len(tags), to) for tags in rows)
    return [_without_unknown(*pair) for pair in zip(rows, converted, strict=True)]


def _without_unknown(true: list[Any], tags: list[Any]) -> list[Any]:
    """Tags with None where the true tag is None."""
    return [None if a is None else b for a, b in zip(true, tags, strict=True)]


def read_tags(y_true: Any, y_pred: Any, scheme: str) -> tuple[Tags, Tags, str]:
    """Tags of sentences that match in their lengths, and the name of their scheme.

    ``"auto"`` is the scheme of `y_true`, or of both if `y_true` holds no entity. Predicted tags are
    None where the true one is.
    """
    check_choice("scheme", scheme, ("auto", *SCHEMES))
    true, pred = _tag_lists("y_true", y_true), _tag_lists("y_pred", y_pred)
    check_lengths("sentences", y_true=true, y_pred=pred)
    for i, (a, b) in enumerate(zip(true, pred, strict=True)):
        if len(a) != len(b):
            raise ValueError(f"y_true[{i}] has {len(a)} tags, but y_pred[{i}] has {len(b)}")
        pred[i] = _without_unknown(a, b)
        if pred[i].count(None) > a.count(None):
            raise TypeError(f"y_pred[{i}] holds None: a predicted tag is a string")
    if scheme == "auto":
        scheme = infer_scheme(true if any({*row} - {"O", None} for row in true) else [*true, *pred])
    if scheme != "plain":
        refuse_strays(true, "y_true")
        refuse_strays(pred, "y_pred")
    return true, pred, scheme


def _ratio(hits: np.ndarray, totals: np.ndarray, zero_division: float) -> np.ndarray:
    result = np.full(len(hits), float(zero_division))
    np.divide(hits, totals, out=result, where=totals > 0)
    return result


@checked
def span_precision_recall_fscore_support(
    y_true: Rows,
    y_pred: Rows,
    *,
    average: str | None = None,
    scheme: str = "auto",
    labels: Sequence[str] | None = None,
    zero_division: float = 0.0,
    mode: str = "lenient",
) -> tuple[Any, Any, Any, Any]:
    """Precision, recall, F1 and number of true spans.

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
    labels : list of str, default=None
        Types to count. None is every type in `y_true` or `y_pred`; ``O`` is not a type.
    zero_division : float, default=0.0
        Value of a ratio whose denominator is 0.
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
    if labels is not None and not all(isinstance(label, str) for label in labels):
        raise TypeError(f"labels={labels!r} must hold strings, the types to count")
    if labels is not None:
        check_ordered(labels, "labels", "a list of types")
    background = None if labels is not None and "O" in labels else "O"
    true, pred = _as_spans(y_true, y_pred, scheme, mode == "strict", background)
    return _scores(true, pred, average, labels, zero_division)


def _scores(true: Spans, pred: Spans, average: Any, labels: Any, zero_division: float) -> Any:
    sets = [{(i, *span) for i, row in enumerate(rows) for span in row} for rows in (true, pred)]
    n_true, n_pred, n_hits = (Counter(s[1] for s in spans) for spans in (*sets, sets[0] & sets[1]))
    types = sorted(set(n_true) | set(n_pred)) if labels is None else list(labels)
    hits, found, support = (
        np.array([counts[t] for t in types], dtype=np.int64) for counts in (n_hits, n_pred, n_true)
    )
    if average == "micro":
        hits, found, support = (values.sum(keepdims=True) for values in (hits, found, support))
    precision = _ratio(hits, found, zero_division)
    recall = _ratio(hits, support, zero_division)
    # From counts, 2 TP / (2 TP + FP + FN), F1 is rounded only once.
    fscore = _ratio(2 * hits, found + support, zero_division)
    if average is None:
        return precision, recall, fscore, support
    if not len(support):
        return (float(zero_division),) * 3 + (0,)
    weights = support if average == "weighted" and support.any() else None
    p, r, f = (float(np.average(v, weights=weights)) for v in (precision, recall, fscore))
    return p, r, f, int(support.sum())


@checked
def span_precision_score(
    y_true: Rows, y_pred: Rows, *, average: str | None = "micro", **options: Any
) -> Any:
    """Share of predicted spans that are right; see `span_precision_recall_fscore_support`.

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

    Examples
    --------
    >>> from skdice.metrics import span_f1_score
    >>> span_f1_score([["B-PER", "O"], ["O", "B-LOC"]], [["B-PER", "O"], ["O", "O"]])
    0.6666666666666666
    """
    return span_precision_recall_fscore_support(y_true, y_pred, average=average, **options)[2]


def _is_span(span: Any) -> bool:
    if not isinstance(span, (tuple, list)) or len(span) != 3 or not isinstance(span[0], str):
        return False
    floats = (b for b in span[1:] if not isinstance(b, Integral))
    return all(isinstance(b, (float, np.floating)) and b.is_integer() for b in floats)


def read_spans(y: Any, name: str) -> Spans:
    """Spans of each sentence, which must be (type, start, end) with whole numbers."""
    check_ordered(y, name, "a list with a list of spans for each sentence")
    rows: Spans = []
    for i, row in enumerate(y):
        # The order of a sentence's spans does not matter.
        check_ordered([*row] if isinstance(row, Set) else row, f"{name}[{i}]", "a list of spans")
        for span in row:
            if not _is_span(span):
                raise TypeError(
                    f"{name}[{i}] holds {span!r}: a span is (type, start, end), in whole tokens"
                )
        rows.append([(str(kind), int(start), int(end)) for kind, start, end in row])
    return rows


def _as_spans(y_true: Any, y_pred: Any, scheme: str, strict: bool, background: Any) -> list[Spans]:
    """True and predicted spans of sentences, from tags or from spans."""
    if not _holds_spans(y_true, y_pred):
        true, pred, scheme = read_tags(y_true, y_pred, scheme)
        read = strict_spans if strict else get_spans
        return [[read(row, scheme, background) for row in rows] for rows in (true, pred)]
    true, pred = read_spans(y_true, "y_true"), read_spans(y_pred, "y_pred")
    check_lengths("sentences", y_true=true, y_pred=pred)
    return [true, pred]


def _holds_spans(*given: Any) -> bool:
    """Tell if the first item of any sentence is a tuple or a list, and not a tag."""
    for y in given:
        lists = (
            row
            for row in (y if is_ordered(y) else ())
            if isinstance(row, (list, tuple, np.ndarray, Set))
        )
        for item in chain.from_iterable(lists):
            return isinstance(item, (tuple, list))
    return False


@checked
def token_f1_score(
    y_true: Rows,
    y_pred: Rows,
    *,
    average: str | None = "micro",
    background: str | None = "O",
    zero_division: float = 0.0,
) -> Any:
    """F1 over tokens, the background tag left out of the counts.

    With ``background=None``, or tags without it, the micro average is token accuracy.

    Parameters
    ----------
    y_true, y_pred : lists of lists of str
    average : {"micro", "macro", "weighted"} or None, default="micro"
    background : str or None, default="O"
    zero_division : float, default=0.0

    Returns
    -------
    float, or ndarray of shape (n_tags,)

    Examples
    --------
    >>> from skdice.metrics import token_f1_score
    >>> token_f1_score([["NOUN", "VERB"]], [["NOUN", "NOUN"]])
    0.5
    """
    true, pred, _ = read_tags(y_true, y_pred, "plain")
    tags = {tag for rows in (true, pred) for row in rows for tag in row}
    labels = sorted(tags - {background, None})
    return span_precision_recall_fscore_support(
        true, pred, average=average, scheme="plain", labels=labels, zero_division=zero_division
    )[2]


@overload
def span_report(
    y_true: Rows,
    y_pred: Rows,
    *,
    scheme: str = "auto",
    mode: str = "strict",
    output_dict: Literal[False] = False,
    digits: int = 3,
) -> str: ...
@overload
def span_report(
    y_true: Rows,
    y_pred: Rows,
    *,
    scheme: str = "auto",
    mode: str = "strict",
    output_dict: Literal[True],
    digits: int = 3,
) -> dict[str, dict[str, float]]: ...
@checked
def span_report(
    y_true: Rows,
    y_pred: Rows,
    *,
    scheme: str = "auto",
    mode: str = "strict",
    output_dict: bool = False,
    digits: int = 3,
) -> str | dict[str, dict[str, float]]:
    """Precision, recall, F1 and support of every type and of the averages, as text or a dict.

    Parameters
    ----------
    y_true, y_pred : lists of lists of str
    scheme : str, default="auto"
        As in `span_precision_recall_fscore_support`.
    mode : {"strict", "exact", "partial", "type", "fair"}, default="strict"
        What counts as found. Spans are read leniently in every mode.

        =========  =================================================================
        strict     a span with its type and both borders
        exact      both borders, of any type
        partial    both borders, of any type; an overlap counts half
        type       an overlap with a span of the same type
        fair       as strict, but each error counts once: a wrong type or border is
                   half a false and half a missed span, not one of each
        =========  =================================================================

        The first four are the schemas of SemEval-2013. In them each span has at most one partner,
        and the row of a type compares spans of that type alone, as nervaluate does. In ``type``
        nervaluate finds less: there a predicted span of another type, if it comes first, takes the
        true span from one of the same type. In ``fair`` the false half counts for the type that was
        predicted, and the missed half for the true type.
    output_dict : bool, default=False
    digits : int, default=3
        Of the text.

    Returns
    -------
    str or dict of dict

    References
    ----------
    I. Segura-Bedmar et al., "SemEval-2013 Task 9", SemEval 2013. K. Ortmann, "Fine-Grained Error
    Analysis and Fair Evaluation of Labeled Spans", LREC 2022.

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
    if not 0 <= digits <= 100:
        raise ValueError(f"digits={digits!r} must be from 0 to 100")
    true, pred, scheme = read_tags(y_true, y_pred, scheme)
    there, found = ([get_spans(row, scheme) for row in rows] for rows in (true, pred))
    table = report_of_spans(there, found, mode)
    return table if output_dict else report_text(table, digits)


def report_text(table: dict[str, dict[str, float]], digits: int = 3) -> str:
    """The lines of a report; in a notebook, a table."""
    columns = ("precision", "recall", "f1")
    rows = [
        [printable(name), *(f"{entry[c]:.{digits}f}" for c in columns), str(entry["support"])]
        for name, entry in table.items()
    ]
    names = ["", *columns, "support"]
    width = max(len(row[0]) for row in rows)
    lines = [
        f"{name:>{width}}" + "".join(f"{c:>11}" for c in cells) for name, *cells in [names, *rows]
    ]
    return TextTable("\n".join(lines) + "\n", names, rows)


def report_of_spans(true: Spans, pred: Spans, mode: str) -> dict[str, dict[str, float]]:
    """Precision, recall, F1 and support of every type and of the averages."""
    of_type, of_all = credit(true, pred, mode)
    n_true = Counter(span[0] for row in true for span in row)
    support = [n_true[kind] for kind in of_type]
    hits, found, wanted = np.array([*of_type.values(), of_all]).T
    ratios = [_ratio(*pair, 0.0) for pair in ((hits, found), (hits, wanted))]
    scores = np.array([*ratios, _ratio(2 * hits, found + wanted, 0.0)])
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


span_f1_scorer = make_scorer(span_f1_score)
span_macro_f1_scorer = make_scorer(span_f1_score, average="macro")
span_precision_scorer = make_scorer(span_precision_score)
span_recall_scorer = make_scorer(span_recall_score)
token_f1_scorer = make_scorer(token_f1_score)
