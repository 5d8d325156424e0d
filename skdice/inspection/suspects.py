"""Labels of a data set that its own model doubts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from skdice._checks import check_has, checked, shown
from skdice._fitting import layers
from skdice._tables import frame_of
from skdice._types import Data, Rows
from skdice.backbones import load_tokenizer
from skdice.inputs.labels import UNKNOWN, read_labels
from skdice.inputs.sentences import as_sentences, as_tags, read_tags
from skdice.inputs.texts import as_texts
from skdice.model_selection.folds import out_of_fold
from skdice.tags.pairing import kind_of, pairs_by_span
from skdice.tags.posterior import SpanPosterior
from skdice.tags.schemes import get_spans
from skdice.tags.spans import Span
from skdice.text.alignment import align
from skdice.text.words import with_words

SPAN_KINDS = {
    "type": "wrong type",
    "both": "wrong type",
    "boundary": "wrong border",
    "missed": "surplus",
    "spurious": "missing",
}
LABEL_COLUMNS = ("row", "kind", "given", "model", "probability", "gain")
SPAN_COLUMNS = (
    *("row", "kind", "given", "start", "end", "model", "model_start", "model_end"),
    *("probability", "gain", "text"),
)
Record = dict[str, Any]


@checked
def suspect_labels(
    estimator: Any,
    X: Data,
    y: Data,
    cv: Any = 5,
    groups: Rows | None = None,
    *,
    params: dict[str, Any] | None = None,
    n_jobs: int | None = None,
) -> Any:
    """The labels or spans that are probably wrong, the most doubtful first.

    Each row is predicted by a model that was fitted on other rows. A label is suspect if the model
    gives another one, and its own probability is below the threshold of its class: the mean
    probability of the labels of this class, as in confident learning. So a rare class, which a
    model always doubts, is never suspect as a whole.

    Parameters
    ----------
    estimator : classifier, tagger or recognizer
        With ``predict_proba``; of skdice or of scikit-learn, also a pipeline or a search. It is
        cloned for each fold. Heads on frozen features are enough for texts, and take seconds.
    X, y : as in its `fit`
        One of several labels that is not known is never suspect.
    cv : int, splitter or iterable of (train, test), default=5
        As in `skdice.model_selection.out_of_fold`, like all that follow.
    groups : array of shape (n,) or None, default=None
        The group of each row, such as the document of a sentence. Given to `cv`.
    params : dict or None, default=None
        Parameters of `fit`.
    n_jobs : int or None, default=None
        Folds to fit at the same time.

    Returns
    -------
    pandas.DataFrame or list of dict
        A row for each suspect, sorted by ``gain``. A list where pandas is not installed.

        - ``row`` : of X.
        - ``kind`` : ``"wrong"`` of one label a row; ``"missing"`` or ``"surplus"`` of several
          labels or of spans; ``"wrong type"`` or ``"wrong border"`` of spans.
        - ``given``, ``start``, ``end`` : label in `y`, and of a span its place: characters of a
          text, or tokens of a sentence, the end exclusive. None for what is missing.
        - ``model``, ``model_start``, ``model_end`` : the same of the model's answer; None for what
          is surplus.
        - ``probability`` : of the model's answer.
        - ``gain`` : the model's probability that the given label is wrong (of a span the given tag
          of one of its words). A model of few rows is often too sure.
        - ``text`` : of the row, or of the span; only where X holds text.

    Raises
    ------
    ValueError, TypeError
        If `estimator` gives no probabilities, or as `out_of_fold` does, before anything is fitted.

    References
    ----------
    C. G. Northcutt, L. Jiang, I. L. Chuang, "Confident Learning: Estimating Uncertainty in Dataset
    Labels", JAIR 2021.

    Examples
    --------
    >>> from skdice import DiceClassifier
    >>> from skdice.inspection import suspect_labels
    >>> X = [[float(i >= 10)] for i in range(20)]
    >>> y = ["low"] * 10 + ["high"] * 10
    >>> y[2] = "high"
    >>> suspects = suspect_labels(DiceClassifier(random_state=0), X, y, cv=4)
    >>> suspects[["row", "given", "model"]].values.tolist()
    [[2, 'high', 'low']]
    """
    check_has("estimator", estimator, "fit", "predict", "get_params")
    model = innermost(estimator)
    check_has("estimator", model, "predict_proba")
    rows: Any = None
    if not is_classifier(estimator):
        has_words = getattr(getattr(model, "task", None), "has_words", True)
        rows = (_Sentences if has_words else _Texts)(X, y, model)
    else:
        labels = read_labels(y, missing=True)
    scored = out_of_fold(estimator, X, y, cv, groups, params=params, n_jobs=n_jobs)
    tables: Any = scored.probabilities
    if rows is None:
        _check_classes(tables[0], labels.classes)
        records = _sorted(_wrong_labels(scored.predictions, tables, labels))
        return with_texts(records, LABEL_COLUMNS, texts_of(X))
    _check_classes(next((t[0] for t in tables if len(t)), rows.classes), rows.classes)
    return frame_of(_sorted(rows.suspects(scored.predictions, tables)), SPAN_COLUMNS)


def _sorted(found: Iterator[tuple[float, Record]]) -> list[Record]:
    """Records by a probability; their gains may all be rounded to 1."""
    return [record for _, record in sorted(found, key=lambda pair: pair[0])]


def innermost(estimator: Any) -> Any:
    """The classifier or tagger, fitted or not, inside a search, a tuner or a pipeline."""
    return [*layers(estimator)][-1]


def texts_of(X: Any) -> list[Any] | None:
    """The texts or pairs of X; None if it holds something else."""
    try:
        return list(as_texts(X))
    except (TypeError, ValueError):
        return None


def with_texts(records: list[Record], columns: tuple[str, ...], texts: Any) -> Any:
    """A table of records with the text of each row, if there are texts."""
    if texts is None:
        return frame_of(records, columns)
    found = [{**record, "text": shown_text(texts[record["row"]])} for record in records]
    return frame_of(found, (*columns, "text"))


def _check_classes(columns: Any, classes: Any) -> None:
    if len(columns) != len(classes):
        raise ValueError(
            f"cv leaves a class out of the training rows of all folds: y has {len(classes)} "
            f"({shown(list(classes))}), and the models know {len(columns)}"
        )


# ---- labels of rows


def _wrong_labels(predicted: Any, tables: Any, labels: Any) -> Iterator[tuple[float, Record]]:
    """Suspects among labels, one a row or several, each with the probability of its label."""
    names = labels.classes.tolist()
    if not labels.multilabel:
        decided = np.isin(predicted, labels.classes)  # or left to a person
        predicted = np.where(decided, predicted, labels.values)
        given, answers = (np.searchsorted(labels.classes, v) for v in (labels.values, predicted))
        for i in _doubted(given, answers, tables):
            p_given, p_model = (float(tables[i, places[i]]) for places in (given, answers))
            found = i, "wrong", names[given[i]], names[answers[i]], p_model, 1 - p_given
            yield p_given, dict(zip(LABEL_COLUMNS, found, strict=True))
        return
    for k, name in enumerate(names):
        decided = np.asarray(predicted)[:, k] >= 0  # or left to a person
        rows = np.flatnonzero((labels.values[:, k] != UNKNOWN) & decided)
        given, p_yes = labels.values[rows, k], tables[rows, k]
        answers = np.asarray(predicted)[rows, k].astype(int)
        for i in _doubted(given, answers, np.column_stack([1 - p_yes, p_yes])):
            kind, pair = ("surplus", (name, None)) if given[i] else ("missing", (None, name))
            p_model = float(1 - p_yes[i] if given[i] else p_yes[i])
            found = int(rows[i]), kind, *pair, p_model, p_model
            yield 1 - p_model, dict(zip(LABEL_COLUMNS, found, strict=True))


def _doubted(given: np.ndarray, answers: np.ndarray, tables: np.ndarray) -> list[int]:
    """Rows whose label the model contradicts, and doubts more than most of its class."""
    p_given = tables[np.arange(len(given)), given]
    means = np.bincount(given, p_given) / np.maximum(np.bincount(given), 1)
    return list(np.flatnonzero((given != answers) & _below(p_given, means[given])).tolist())


def _below(probability: Any, threshold: Any) -> Any:
    return probability < threshold - 1e-9  # the mean of equal numbers may be rounded up


def shown_text(text: Any) -> str:
    """A text, a pair or tokens as one text."""
    return text if isinstance(text, str) else (" | " if isinstance(text, tuple) else " ").join(text)


# ---- spans


class _Sentences:
    """Tagged tokens, whose suspects are spans.

    Attributes
    ----------
    classes : list of str
        The tags, in the order of a table's columns.
    """

    sentences: list[Any]
    tags: list[Any]

    def __init__(self, X: Any, y: Any, model: Any) -> None:
        self.sentences, scheme = as_sentences(X), str(getattr(model, "scheme", "auto"))
        tags = as_tags(y, self.sentences)
        self.tags, _, self.scheme = read_tags(tags, tags, scheme)
        self.classes = sorted({tag for row in self.tags for tag in row} - {None})

    def tags_of(self, predicted: Any) -> Any:
        """Predictions as tags of the words."""
        return predicted

    def place(self, row: int, span: Span | None) -> tuple[int | None, int | None]:
        """The start and the end of a span in its row."""
        return (None, None) if span is None else span[1:]

    def text(self, row: int, start: int, end: int) -> str:
        """The part of a row between two places."""
        return " ".join(self.sentences[row][start:end])

    def suspects(self, predicted: Any, tables: Any) -> Iterator[tuple[float, Record]]:
        """Spans that the model contradicts, and doubts more than most of their type.

        Each comes with the lowest probability of a given tag of its words.
        """
        true, pred, scheme = read_tags(self.tags, self.tags_of(predicted), self.scheme)
        posterior = SpanPosterior(self.classes, scheme)
        with np.errstate(divide="ignore"):
            logs = [np.log(table) for table in tables]
        given = [get_spans(tags, scheme) for tags in true]
        scores: list[dict[Any, float]] = [
            dict(zip(spans, posterior(log_p, spans).tolist(), strict=True))
            for log_p, spans in zip(logs, given, strict=True)
        ]
        threshold = _mean_of_types(scores)
        for i, known in enumerate(scores):
            for ours, model in pairs_by_span(given[i], get_spans(pred[i], scheme)):
                trusted = ours is not None and not _below(known[ours], threshold[ours[0]])
                if trusted or ours == model:
                    continue
                p_model = float(posterior(logs[i], [model])[0]) if model else 1 - known[ours]
                p_given = self._least_given(true[i], tables[i], [s for s in (ours, model) if s])
                kind = SPAN_KINDS[kind_of(ours, model)]
                yield p_given, self._record(i, kind, ours, model, p_model, 1 - p_given)

    def _least_given(self, tags: Sequence[Any], table: Any, spans: list[Span]) -> float:
        """The lowest probability of a given tag from the first to the last word of some spans."""
        column = {tag: k for k, tag in enumerate(self.classes)}
        places = range(min(s[1] for s in spans), max(s[2] for s in spans))
        return float(min(table[j][column[tags[j]]] for j in places if tags[j] is not None))

    def _record(self, row: int, kind: str, ours: Any, model: Any, *scores: float) -> Record:
        places = self.place(row, ours), self.place(row, model)
        start = min(a for a, _ in places if a is not None)
        end = max(b for _, b in places if b is not None)
        sides = ((s and s[0], *place) for s, place in zip((ours, model), places, strict=True))
        found = (row, kind, *chain(*sides), *scores, self.text(row, start, end))
        return dict(zip(SPAN_COLUMNS, found, strict=True))


def _mean_of_types(scores: list[dict[Any, float]]) -> dict[str, Any]:
    """The mean score of the spans of each type."""
    of_type: dict[str, list[float]] = {}
    for span, score in chain.from_iterable(row.items() for row in scores):
        of_type.setdefault(span[0], []).append(score)
    return {kind: np.mean(values) for kind, values in of_type.items()}


class _Texts(_Sentences):
    """Texts with entities, by their characters."""

    def __init__(self, X: Any, y: Any, model: Any) -> None:
        texts, rows = model.task.read(model, X, y)
        self.sentences = with_words(load_tokenizer(model.backbone, model.revision), texts)
        self.tags, self.scheme = [*align(self.sentences, rows, model.on_misaligned)[0]], "iob2"
        self.classes = sorted({tag for row in self.tags for tag in row} - {None} | {"O"})

    def tags_of(self, predicted: Any) -> Any:
        return align(self.sentences, list(predicted))[0]

    def place(self, row: int, span: Span | None) -> tuple[int | None, int | None]:
        if span is None:
            return None, None
        words = self.sentences[row].words
        return int(words.first[span[1]]), int(words.last[span[2] - 1])

    def text(self, row: int, start: int, end: int) -> str:
        return str(self.sentences[row][start:end])
