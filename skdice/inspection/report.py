"""One page on a fitted model: scores with intervals, pictures, the hardest examples."""

from __future__ import annotations

from functools import partial
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skdice._checks import (
    check_has,
    check_lengths,
    checked,
    counted,
    shown,
)
from skdice._fitting import layers
from skdice._tables import html_table
from skdice._types import Data, Rows
from skdice._version import __version__
from skdice.inputs.answers import read_answers
from skdice.inputs.labels import UNKNOWN, as_labels, known_labels, paired_labels
from skdice.inputs.rows import as_row_list
from skdice.inputs.texts import as_texts
from skdice.inspection.axes import label_of, pyplot
from skdice.inspection.class_counts import row_counts, summed
from skdice.inspection.highlighted import MarkedRows, outer
from skdice.inspection.page import as_page, cut, picture
from skdice.inspection.tagging_errors import SpanConfusionDisplay
from skdice.metrics.answers import answer_exact_match_score, answer_f1_score
from skdice.metrics.classification import precision_recall_f1
from skdice.tags.pairing import pairs_by_span

MAX_CLASSES = 30  # a confusion matrix of more cannot be read
OF_CLASS = ("class", "precision", "recall", "F1", "F1, 95 %", "true", "predicted")
OF_ANSWERS = ("questions", "exact match", "exact match, 95 %", "F1", "F1, 95 %", "number")
N_EXAMPLES = 20  # of wrong rows
N_DRAWS = 1000  # ends of an interval need more than the mean of a bias, for which 20 do


class _Wrong(NamedTuple):
    """A wrong row: its number, a note, and HTML of the row, the truth and the prediction."""

    row: int
    note: str
    body: str
    true: str
    predicted: str


class _Findings(NamedTuple):
    """What a page shows of a task: the lines of its table, its pictures, and its wrong rows."""

    header: tuple[str, ...]
    lines: list[list[str]]
    pictures: list[str]
    heading: str
    wrong: list[_Wrong]


@checked
def html_report(
    estimator: Any,
    X: Data,
    y: Data,
    *,
    y_pred: Rows | None = None,
    title: str | None = None,
) -> str:
    """Scores with bootstrap intervals, the confusion matrix and the hardest examples, as HTML.

    The page needs no other file and no network. All text of the data is escaped.

    Parameters
    ----------
    estimator : fitted tagger, classifier or reader of skdice
        Also a `TfidfClassifier` or `CRFTagger`. With or without a tuned decision, also as the model
        of a scikit-learn pipeline, search or threshold tuner.
    X, y : as in its `score`
    y_pred : as `y` or None, default=None
        Its predictions for X. None predicts them here. For `DiceMRCTagger` these may be spans.
    title : str or None, default=None
        None is the estimator's name.

    Returns
    -------
    str
        The page, which names what the decision was tuned for. Its 95 % intervals are percentiles
        of 1,000 bootstrap draws. Write it by ``pathlib.Path("report.html").write_text(page)``.

    Raises
    ------
    TypeError, NotFittedError
        If `estimator` holds no fitted estimator of skdice.
    ValueError
        If X, y and y_pred do not match.
    ImportError
        If matplotlib is missing.

    Examples
    --------
    >>> from skdice import DiceTokenClassifier
    >>> from skdice.datasets import load_town_notes
    >>> from skdice.inspection import html_report
    >>> X, y = load_town_notes(subset="test")
    >>> tagger = DiceTokenClassifier(max_epochs=1, frozen="encoder", random_state=0).fit(X, y)
    >>> page = html_report(tagger, X, y)
    >>> page.startswith("<!doctype html>")
    True
    """
    *around, model = _parts_of(estimator)
    pyplot()  # refuses a missing matplotlib before the predictions are made
    found_in: Any = {"answers": _answers, "spans": _spans}.get(model.task.judged, _classes)
    body = _page(found_in(estimator, model, X, y, y_pred))
    name = title if title is not None else type(estimator).__name__
    kinds = dict.fromkeys([type(estimator).__name__, type(model).__name__])
    of_loss = f", loss {model.loss}" if hasattr(model, "loss") else ""
    tuned = next(filter(None, map(_tuned_for, (*around, model))), "")
    about = (
        f"{' of '.join(kinds)}{of_loss}, {counted(len(y), 'row')}{tuned}; intervals hold 95 % of "
        f"{N_DRAWS:,} bootstrap draws of rows; skdice {__version__}"
    )
    return as_page(name, about, body)


def _tuned_for(model: Any) -> str:
    """What a decision was tuned for, and the threshold of two classes."""
    if not hasattr(model, "tuned_for_"):
        return ""
    threshold = getattr(model, "threshold_", None)
    above = "" if threshold is None else f" (positive above a probability of {threshold:.2f})"
    return f"; decision tuned for {model.tuned_for_['objective']}{above}"


def _parts_of(estimator: Any) -> list[Any]:
    """The estimator and what it holds: in a pipeline, a search or a tuner, the last is skdice's."""
    check_has("estimator", estimator, "predict")
    check_is_fitted(estimator)
    parts = [*layers(estimator)]
    if not hasattr(parts[-1], "task"):
        raise TypeError(
            f"estimator={shown(estimator)} holds no fitted estimator of skdice: a report is of a "
            "tagger, a classifier or a reader"
        )
    check_is_fitted(parts[-1])
    return parts


def _page(found: _Findings) -> str:
    examples = [
        f'<div class="example"><p class="note">row {wrong.row}{wrong.note}</p>{wrong.body}'
        f'<p class="note">true:</p>{wrong.true}'
        f'<p class="note">predicted:</p>{wrong.predicted}</div>'
        for wrong in found.wrong
    ]
    return (
        f'<h2>Scores</h2><div class="wide">{html_table(found.header, found.lines)}</div>'
        + ("<h2>Pictures</h2>" + "".join(found.pictures) if found.pictures else "")
        + f"<h2>{found.heading}</h2>"
        + ("".join(examples) or "<p>None: all rows are right.</p>")
    )


def _bold(text: Any) -> str:
    return f"<p><b>{cut(text)}</b></p>"


# ---- one for each task; a wrong y is refused before anything is predicted. `estimator` predicts,
# ---- and `model` is the estimator of skdice in it


def _spans(estimator: Any, model: Any, X: Any, y: Any, y_pred: Any) -> _Findings:
    """The findings of a tagger, by spans."""
    inputs = model.task.inputs(X)
    sentences = model.task.passages(inputs)
    true = model.task.read(model, X, y)[1]
    found = _predicted(estimator, X, y_pred, len(true))
    true, found = model.task.paired_spans(model, inputs, true, found)
    classes, counts = row_counts(true, found)
    pairs = map(pairs_by_span, true, found)
    n_wrong = np.array([sum(right != ours for right, ours in row) for row in pairs])
    hardest = [i for i in np.argsort(-n_wrong, kind="stable")[:N_EXAMPLES] if n_wrong[i]]
    wrong = []
    for i, scored in zip(hardest, _scored(estimator, [inputs[i] for i in hardest]), strict=True):
        spans = [scored.get(tuple(span), span) for span in found[i]]
        rows = [(sentences[i], outer(row)) for row in (true[i], spans)]
        marked = MarkedRows(rows, classes)._repr_html_().split("\n")
        wrong.append(_Wrong(i, f", {n_wrong[i]} wrong", "", *marked))
    lines = _class_lines(classes, counts, ("micro average", "macro average"))
    pictures = _confusion(SpanConfusionDisplay._of_spans(true, found).plot, classes)
    return _Findings(OF_CLASS, lines, pictures, "Sentences with the most wrong spans", wrong)


def _classes(estimator: Any, model: Any, X: Any, y: Any, y_pred: Any) -> _Findings:
    """The findings of a classifier, by texts, which may have several labels each."""
    texts, several = as_texts(X), getattr(model, "multilabel_", False)
    read = _label_sets if several else _single_labels
    true, pred = read(estimator, model, X, y, y_pred, len(texts))
    names = [str(label) for label in np.asarray(estimator.classes_).tolist()]
    proba = np.asarray(estimator.predict_proba(X))
    items: Any = ([[(name,) for name in sorted(row)] for row in part] for part in (true, pred))
    classes, counts = row_counts(*items)
    mean, pictures = "micro average", []
    heading = "Mistakes whose probabilities are furthest off (by this much)"
    if not several:
        mean, heading = "accuracy", "Mistakes with the highest probability (this one)"
        pictures = _confusion(partial(_draw_confusion, true, pred), classes)
    lines = _class_lines(classes, counts, (mean, "macro average"))
    wrong = _wrong_texts(texts, true, pred, names, proba, several)[:N_EXAMPLES]
    return _Findings(OF_CLASS, lines, pictures, heading, wrong)


def _wrong_texts(
    texts: Any, true: Any, pred: Any, names: list[str], proba: np.ndarray, several: bool
) -> list[_Wrong]:
    """The texts with wrong labels, the one whose probability is furthest off first."""
    found = []
    for i, (right, ours) in enumerate(zip(true, pred, strict=True)):
        if right == ours:
            continue
        # Of one label a text it is the predicted one's probability.
        off = [name for name in (right ^ ours if several else ours) if name in names]
        far = (abs((name in right) - proba[i, names.index(name)]) for name in off)
        worst = float(max(far, default=proba[i].max()))
        sides = (_bold(", ".join(sorted(side)) or "no label") for side in (right, ours))
        found.append((worst, _Wrong(i, f" ({worst:.2f})", f"<p>{cut(texts[i])}</p>", *sides)))
    return [wrong for _, wrong in sorted(found, key=lambda pair: -pair[0])]


def _single_labels(estimator: Any, model: Any, X: Any, y: Any, y_pred: Any, n_rows: int) -> Any:
    """The true and the predicted label of each text, as sets of one name."""
    y = as_labels(y, n_rows)
    if y.ndim != 1:
        raise ValueError(f"y has shape {y.shape}: give one label for each row of X")
    labels = paired_labels(y, _predicted(estimator, X, y_pred, n_rows))
    return [[{str(label)} for label in part] for part in labels]


def _label_sets(estimator: Any, model: Any, X: Any, y: Any, y_pred: Any, n_rows: int) -> Any:
    """The names of the true and of the predicted labels of each text, without unknown ones."""
    names = [str(label) for label in model.classes_.tolist()]
    true = known_labels(y, model.classes_, True, missing=True)
    check_lengths(X=range(n_rows), y=true)
    found = estimator.predict(X) if y_pred is None else y_pred
    _check_decided(estimator, found)
    pred = known_labels(found, model.classes_, True, "y_pred")
    check_lengths(y=true, y_pred=pred)
    held = ((part == 1) & (true != UNKNOWN) for part in (true, pred))
    return [[{names[j] for j in np.flatnonzero(row)} for row in part] for part in held]


def _answers(estimator: Any, model: Any, X: Any, y: Any, y_pred: Any) -> _Findings:
    """The findings of a reader of answers, by questions."""
    pairs = as_texts(X)
    rows = read_answers(y, len(pairs))
    found = _predicted(estimator, X, y_pred, len(rows))
    measures = (answer_exact_match_score, answer_f1_score)
    exact, f1 = scores = np.array(
        [[measure([t], [p]) for t, p in zip(rows, found, strict=True)] for measure in measures]
    )
    given = np.array([bool(row) for row in rows])
    parts = {"all": given | True, "with answer": given, "without": ~given}
    lines = [
        [name, *_means(scores[:, kept].T), f"{kept.sum():,}"]
        for name, kept in parts.items()
        if kept.any()
    ]
    hardest = [i for i in np.argsort(f1, kind="stable")[:N_EXAMPLES] if exact[i] < 1]
    wrong = [_wrong_answer(i, pairs[i], rows[i], found[i]) for i in hardest]
    return _Findings(OF_ANSWERS, lines, [], "Questions with the lowest F1", wrong)


def _wrong_answer(i: int, pair: tuple[str, str], answers: Any, found: str) -> _Wrong:
    right = " / ".join(str(answer[1]) for answer in answers)
    sides = (_bold(text or "no answer") for text in (right, found))
    return _Wrong(i, "", f"{_bold(pair[0])}<p>{cut(pair[1])}</p>", *sides)


def _means(scores: np.ndarray) -> list[str]:
    """The mean of each column, each with its interval over draws of rows."""
    draws = _resampled(scores).T / len(scores)
    cells = ((f"{m:.3f}", _interval(d)) for m, d in zip(scores.mean(axis=0), draws, strict=True))
    return [*chain.from_iterable(cells)]


def _scored(estimator: Any, sentences: list[list[str]]) -> list[dict[Any, Any]]:
    """The spans that are predicted for each sentence, with their scores where it gives any."""
    if sentences and isinstance(sentences[0], str):
        rows = estimator.predict(sentences)
        return [
            {(e.label, e.start, e.end): (e.label, *e[:2], e.score) for e in row} for row in rows
        ]
    if not (sentences and hasattr(estimator, "predict_spans")):
        return [{} for _ in sentences]
    return [{span[:3]: span for span in row} for row in estimator.predict_spans(sentences)]


def _predicted(estimator: Any, X: Any, y_pred: Any, n_rows: int) -> list[Any]:
    found = estimator.predict(X) if y_pred is None else y_pred
    _check_decided(estimator, found)
    predicted = as_row_list("y_pred", found)
    check_lengths(y=range(n_rows), y_pred=predicted)
    return predicted


def _check_decided(estimator: Any, found: Any) -> None:
    """Refuse rows that the estimator leaves to a person."""
    rejects = (part for part in layers(estimator) if getattr(part, "reject_margin_", 0))
    tuned = next(rejects, None)
    if tuned is None or not isinstance(found, np.ndarray):
        return
    left = found == (-1 if tuned.multilabel_ else tuned.reject_label)
    n_left = int(left.reshape(len(left), -1).any(axis=1).sum())
    if n_left:
        raise ValueError(
            f"estimator leaves {counted(n_left, 'row')} to a person, and a report is of decisions: "
            "give the other rows alone"
        )


# ---- tables and pictures


def _class_lines(classes: list[str], counts: Any, means: tuple[str, str]) -> list[list[str]]:
    """Scores of each class and on average, each with the interval of its F1 over draws of rows."""
    draws = _resampled(counts)
    draws = draws.reshape(len(draws), 3, len(classes))
    of_class, pooled = summed(counts), summed(counts).sum(axis=1, keepdims=True)
    scores, f1_draws = precision_recall_f1(of_class), precision_recall_f1(draws)[:, 2]
    pooled_draws = precision_recall_f1(draws.sum(axis=2, keepdims=True))[:, 2, 0]
    rows = [(name, scores[:, i], of_class[:, i], f1_draws[:, i]) for i, name in enumerate(classes)]
    rows.append((means[0], precision_recall_f1(pooled)[:, 0], pooled[:, 0], pooled_draws))
    if classes:
        rows.append((means[1], scores.mean(axis=1), pooled[:, 0], f1_draws.mean(axis=1)))
    lines = []
    for name, values, (_, found, true), of_draws in rows:
        cells = [f"{value:.3f}" for value in values]
        lines.append([name, *cells, _interval(of_draws), f"{true:,}", f"{found:,}"])
    if means[0] == "accuracy":  # precision and recall are the same
        lines[len(classes)][1:3] = ["", ""]
    return lines


def _interval(draws: np.ndarray) -> str:
    return "{:.3f} to {:.3f}".format(*np.percentile(draws, [2.5, 97.5]))


def _resampled(counts: Any) -> np.ndarray:
    """Column sums over draws of all rows with replacement; shape (N_DRAWS, n_columns)."""
    n, random = counts.shape[0], np.random.default_rng(0)
    weights = (random.multinomial(n, np.full(n, 1 / n)) for _ in range(N_DRAWS))
    return np.array([counts.T @ weight for weight in weights])


def _confusion(draw: Any, classes: list[str]) -> list[str]:
    """A confusion matrix, unless there are too many classes to read it."""
    size = 2.2 + 0.55 * len(classes)
    return [picture(draw, (size + 1, size))] if len(classes) <= MAX_CLASSES else []


def _draw_confusion(true: list[set[str]], pred: list[set[str]], ax: Any) -> None:
    """A confusion matrix of one label a text."""
    from sklearn.metrics import ConfusionMatrixDisplay

    look = {"cmap": "Blues", "colorbar": False, "xticks_rotation": "vertical"}
    sides = [[label_of(name) for row in part for name in row] for part in (true, pred)]
    ConfusionMatrixDisplay.from_predictions(*sides, ax=ax, **look)
