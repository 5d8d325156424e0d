"""One page on a fitted model: scores with intervals, pictures, the hardest examples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, wraps
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skdice import __version__
from skdice._checks import (
    check_has,
    check_lengths,
    check_range,
    checked,
    counted,
    position,
    shown,
)
from skdice._fitting import layers
from skdice._tables import escaped, html_table
from skdice._types import Data, Rows
from skdice.inputs.answers import read_answers
from skdice.inputs.labels import as_labels, known_labels
from skdice.inputs.rows import as_row_list
from skdice.inputs.texts import as_texts
from skdice.inspection.axes import label_of, pyplot
from skdice.inspection.classes import items_of, items_of_several, row_counts, summed
from skdice.inspection.highlighted import MarkedRows, outer
from skdice.inspection.page import as_page, cut, listed, picture
from skdice.inspection.tagging_errors import SpanConfusionDisplay
from skdice.metrics.classification import precision_recall_f1
from skdice.tags.pairing import pairs_by_span

MAX_CLASSES = 30  # a confusion matrix of more cannot be read

Resampled = Callable[[Any], np.ndarray]  # column sums of counts over draws of rows


def _refusing_a_path(function: Callable[..., str]) -> Callable[..., str]:
    """Say what to do to those who give the file as the next argument."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> str:
        if len(args) > 3:
            raise TypeError(
                f"html_report got {shown(args[3])} after y. It returns the page as a string: write "
                "it by pathlib.Path('report.html').write_text(html_report(estimator, X, y)). Give "
                "all that follows y by name, as in title='Spam'"
            )
        return function(*args, **kwargs)

    return call


@_refusing_a_path
@checked
def html_report(
    estimator: Any,
    X: Data,
    y: Data,
    *,
    y_pred: Rows | None = None,
    labels: Sequence[Any] | None = None,
    title: str | None = None,
    n_examples: int = 20,
    n_bootstraps: int = 1000,
    random_state: int = 0,
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
    labels : list of labels or None, default=None
        Labels of a classifier whose precision is drawn against recall. None is the positive class
        of two, and otherwise none.
    title : str or None, default=None
        None is the estimator's name.
    n_examples : int, default=20
        Number of wrong examples to show: for a tagger the sentences with the most wrong spans, each
        predicted span with its score in ``predict_spans``; for a classifier the texts with the
        highest probability of a wrong class.
    n_bootstraps : int, default=1000
        Number of bootstrap draws for the 95 % intervals (percentiles).
    random_state : int, default=0
        Seed of these draws.

    Returns
    -------
    str
        The page, which names what the decision was tuned for.

    Raises
    ------
    TypeError, NotFittedError
        If `estimator` holds no fitted estimator of skdice, or a path follows y.
    ValueError
        If X, y and y_pred do not match, `labels` holds none of a classifier's, or `n_examples`,
        `n_bootstraps` or `random_state` is negative.
    ImportError
        If matplotlib is missing.

    Examples
    --------
    >>> from skdice import DiceTokenClassifier
    >>> from skdice.datasets import load_town_notes
    >>> from skdice.inspection import html_report
    >>> X, y = load_town_notes(subset="test")
    >>> tagger = DiceTokenClassifier(max_epochs=1, frozen="encoder", random_state=0).fit(X, y)
    >>> page = html_report(tagger, X, y, n_bootstraps=20)
    >>> page.startswith("<!doctype html>")
    True
    """
    check_range(0, 1_000_000, n_bootstraps=n_bootstraps)
    check_range(0, n_examples=n_examples, random_state=random_state)
    if labels is not None:
        labels = as_row_list("labels", labels)
    *around, model = _parts_of(estimator)
    pyplot()  # refuses a missing matplotlib before the predictions are made
    resampled = partial(_resampled, n_boot=n_bootstraps, draw=np.random.default_rng(random_state))
    page: Any = {"answers": _answers, "spans": _spans}.get(model.task.judged)
    if page is None:
        page = partial(_classes, labels=labels)
    elif labels is not None:
        raise ValueError(f"labels={shown(labels)} is for classifiers: leave it out")
    body = page(estimator, model, X, y, y_pred, int(n_examples), resampled)
    name = title if title is not None else type(estimator).__name__
    kinds = dict.fromkeys([type(estimator).__name__, type(model).__name__])
    of_loss = f", loss {model.loss}" if hasattr(model, "loss") else ""
    tuned = next(filter(None, map(_tuned_for, (*around, model))), "")
    about = (
        f"{' of '.join(kinds)}{of_loss}, {counted(len(y), 'row')}{tuned}; intervals hold 95 % of "
        f"{counted(n_bootstraps, 'bootstrap draw')} of rows; skdice {__version__}"
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


# ---- one for each task; a wrong y is refused before anything is predicted. `estimator` predicts,
# ---- and `model` is the estimator of skdice in it


def _spans(
    estimator: Any, model: Any, X: Any, y: Any, y_pred: Any, n_examples: int, resampled: Resampled
) -> str:
    """The page of a tagger, by spans."""
    inputs = model.task.inputs(X)
    sentences = model.task.passages(inputs)
    true = model.task.read(model, X, y)[1]
    found = _predicted(estimator, X, y_pred, len(true))
    true, found = model.task.paired_spans(model, inputs, true, found)
    classes, counts = row_counts(true, found)
    pairs = map(pairs_by_span, true, found)
    wrong = np.array([sum(right != ours for right, ours in row) for row in pairs])
    hardest = [i for i in np.argsort(-wrong, kind="stable")[:n_examples] if wrong[i]]
    examples = []
    for i, scored in zip(hardest, _scored(estimator, [inputs[i] for i in hardest]), strict=True):
        spans = [scored.get(tuple(span), span) for span in found[i]]
        rows = [(sentences[i], outer(row)) for row in (true[i], spans)]
        right, ours = MarkedRows(rows, classes)._repr_html_().split("\n")
        examples.append(
            f'<p class="note">row {i}, {wrong[i]} wrong; true:</p>{right}'
            f'<p class="note">predicted:</p>{ours}'
        )
    table = _class_table(classes, counts, resampled, ("micro average", "macro average"))
    pictures = _confusion(SpanConfusionDisplay._of_spans(true, found).plot, classes)
    return _page(table, pictures, examples, "Sentences with the most wrong spans")


def _classes(
    estimator: Any,
    model: Any,
    X: Any,
    y: Any,
    y_pred: Any,
    n_examples: int,
    resampled: Resampled,
    labels: Sequence[Any] | None,
) -> str:
    """The page of a classifier, by texts, which may have several labels each."""
    from sklearn.metrics import ConfusionMatrixDisplay

    texts, several = as_texts(X), getattr(model, "multilabel_", False)
    if several:
        check_lengths(X=texts, y=known_labels(y, model.classes_, True))
        found = estimator.predict(texts) if y_pred is None else y_pred
        items = items_of_several(y, found, model.classes_)
    else:
        y = as_labels(y, len(texts))
        if y.ndim != 1:
            raise ValueError(f"y has shape {y.shape}: give one label for each row of X")
        items = items_of(y, _predicted(estimator, X, y_pred, len(texts)))
    true, pred = ([{name for (name,) in row} for row in part] for part in items)
    wrong = [i for i, (t, p) in enumerate(zip(true, pred, strict=True)) if t != p]
    names = [str(label) for label in np.asarray(estimator.classes_).tolist()]
    if labels is None:
        two = len(names) == 2 and not several
        labels = [names[int(getattr(model, "positive_", 1))]] if two else []
    proba = np.zeros((len(texts), len(names)))
    if wrong or labels:
        proba = np.asarray(estimator.predict_proba(texts))
    # How far the worst label is off: of one a text that is the predicted one's probability.
    worst = []
    for i in wrong:
        off = [name for name in (true[i] ^ pred[i] if several else pred[i]) if name in names]
        far = (abs((name in true[i]) - proba[i, names.index(name)]) for name in off)
        worst.append(max(far, default=proba[i].max()))
    examples = []
    for at in np.argsort(-np.array(worst), kind="stable")[:n_examples]:
        i = wrong[at]
        right, ours = (", ".join(sorted(part[i])) or "no label" for part in (true, pred))
        examples.append(
            f'<p class="note">row {i}: true <b>{escaped(right)}</b>, predicted '
            f"<b>{escaped(ours)}</b> ({worst[at]:.2f})</p><p>{cut(texts[i])}</p>"
        )
    classes, counts = row_counts(*items)
    means, heading, pictures = "micro average", "Mistakes that are furthest off", []
    if not several:
        means, heading = "accuracy", "Mistakes with the highest probability"
        look = {"cmap": "Blues", "colorbar": False, "xticks_rotation": "vertical"}
        sides = [[label_of(name) for row in part for name in row] for part in (true, pred)]
        pictures = _confusion(
            partial(ConfusionMatrixDisplay.from_predictions, *sides, **look), classes
        )
    pictures += _curves(labels, names, true, proba)
    table = _class_table(classes, counts, resampled, (means, "macro average"))
    return _page(table, pictures, examples, heading)


def _answers(
    estimator: Any, model: Any, X: Any, y: Any, y_pred: Any, n_examples: int, resampled: Resampled
) -> str:
    """The page of a reader of answers, by questions."""
    from skdice.metrics import answer_exact_match_score, answer_f1_score

    language, pairs = model.language, as_texts(X)
    rows = read_answers(y, len(pairs))
    found = _predicted(estimator, X, y_pred, len(rows))
    exact, f1 = scores = np.array(
        [
            [measure([t], [p], language=language) for t, p in zip(rows, found, strict=True)]
            for measure in (answer_exact_match_score, answer_f1_score)
        ]
    )
    given = np.array([bool(row) for row in rows])
    every = np.ones(len(given), dtype=bool)
    lines = []
    for name, kept in (("all", every), ("with answer", given), ("without", ~given)):
        if kept.any():
            part = scores[:, kept]
            (exact_mean, f1_mean), draws = part.mean(axis=1), resampled(part.T).T / kept.sum()
            exact_ends, f1_ends = map(_interval, draws)
            cells = [f"{exact_mean:.3f}", exact_ends, f"{f1_mean:.3f}", f1_ends]
            lines.append([name, *cells, f"{kept.sum():,}"])
    examples = []
    for i in np.argsort(f1, kind="stable")[:n_examples]:
        if exact[i] < 1:
            question, context = pairs[i]
            right = " / ".join(str(answer[1]) for answer in rows[i]) or "no answer"
            examples.append(
                f"<p><b>{cut(question)}</b></p><p>{cut(context)}</p>"
                f'<p class="note">row {i}: true <b>{cut(right)}</b>, predicted '
                f"<b>{cut(found[i]) or 'no answer'}</b></p>"
            )
    header = ["questions", "exact match", "exact match, 95 %", "F1", "F1, 95 %", "number"]
    return _page(html_table(header, lines), [], examples, "Questions with the lowest F1")


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
    predicted = as_row_list("y_pred", estimator.predict(X) if y_pred is None else y_pred)
    check_lengths(y=range(n_rows), y_pred=predicted)
    return predicted


# ---- tables, pictures, text


def _page(table: str, pictures: list[str], examples: list[str], heading: str) -> str:
    return (
        f'<h2>Scores</h2><div class="wide">{table}</div>'
        + ("<h2>Pictures</h2>" + "".join(pictures) if pictures else "")
        + f"<h2>{heading}</h2>{listed(examples) or '<p>None: all rows are right.</p>'}"
    )


def _class_table(
    classes: list[str], counts: Any, resampled: Resampled, means: tuple[str, str]
) -> str:
    """Scores of each class and on average, each with the interval of its F1 over draws of rows."""
    draws = resampled(counts)
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
    header = ["class", "precision", "recall", "F1", "F1, 95 %", "true", "predicted"]
    return html_table(header, lines)


def _interval(draws: np.ndarray) -> str:
    if not len(draws):
        return ""
    return "{:.3f} to {:.3f}".format(*np.percentile(draws, [2.5, 97.5]))


def _resampled(counts: Any, n_boot: int, draw: Any, at_a_time: int = 50) -> np.ndarray:
    """Column sums over `n_boot` draws of all rows with replacement; shape (n_boot, n_columns)."""
    n = counts.shape[0]
    sums = np.zeros((n_boot, counts.shape[1]))
    for start in range(0, n_boot, at_a_time):
        part = sums[start : start + at_a_time]
        part[:] = (counts.T @ draw.multinomial(n, np.full(n, 1 / n), size=len(part)).T).T
    return sums


def _confusion(draw: Any, classes: list[str]) -> list[str]:
    """A confusion matrix, unless there are too many classes to read it."""
    size = 2.2 + 0.55 * len(classes)
    return [picture(draw, (size + 1, size))] if len(classes) <= MAX_CLASSES else []


def _curves(
    asked: Sequence[str], names: list[str], true: list[set[str]], proba: np.ndarray
) -> list[str]:
    """Precision against recall of some labels; `true` holds those of each row."""
    from sklearn.metrics import PrecisionRecallDisplay

    places = {name: position("labels", name, names, "labels") for name in map(str, asked)}
    every = ((n, np.array([n in row for row in true]), proba[:, at]) for n, at in places.items())
    shown_ = [curve for curve in every if curve[1].any()]

    def draw(ax: Any) -> None:
        for name, of_rows, values in shown_:
            PrecisionRecallDisplay.from_predictions(of_rows, values, name=label_of(name), ax=ax)
        ax.set(xlabel="recall", ylabel="precision", xlim=(0, 1.02), ylim=(0, 1.05))
        ax.set_title("Precision and recall at every threshold")
        ax.grid(alpha=0.25)
        ax.legend(fontsize=8, loc="lower left")

    return [picture(draw, (5.5, 3.6))] if shown_ else []
