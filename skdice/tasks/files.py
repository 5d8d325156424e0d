"""The rows of a task in files: their labels, how they are split, written and reported."""

from __future__ import annotations

import json
from itertools import chain
from typing import Any, ClassVar

import numpy as np
from sklearn.metrics import classification_report

from skdice._types import Data, Model, Rows
from skdice.datasets.row import Row
from skdice.datasets.words import tagged_words
from skdice.inputs.labels import UNKNOWN, labels_to_score, read_labels
from skdice.metrics import span_report
from skdice.metrics.partial_credit import MODES
from skdice.metrics.spans import report_of_spans, report_text
from skdice.tags.spans import ScoredSpan
from skdice.tasks._base import Task
from skdice.tasks.multi_span_qa import ANSWER
from skdice.text.alignment import typed_spans


class TaskFiles:
    """What the command line and the readers of files ask about the rows of a task."""

    # In which predictions are written, and the methods that predict them; "auto" is the first.
    formats: ClassVar[dict[str, str]]
    modes: ClassVar[tuple[str, ...]] = ("lenient",)  # which spans count as found

    def __init__(self, task: Task) -> None:
        self.task = task

    def has_several_labels(self, y: Data) -> bool:
        """Tell if a row may have several labels."""
        return False

    def counted(self, X: Any, y: Any) -> Any:
        """The y that `skdice.inspection.imbalance` counts."""
        return y

    def groups(self, X: Data) -> list[str] | None:
        """The groups of rows that a split keeps together; None for none."""
        return None

    def split_strata(self, y: Data) -> np.ndarray | None:
        """A key for each row of a data set that a split keeps in proportion; None for none."""
        return None

    def formats_of(self, model: Model) -> dict[str, str]:
        """The formats in which a model's predictions are written, as in `formats`."""
        return self.formats

    def written(self, model: Model, how: str, row: Row) -> Any:
        """A row whose y was predicted: a record of JSON, or the text of its lines."""
        raise NotImplementedError

    def reported(self, model: Model, X: Data) -> Any:
        """The predictions that a report is about."""
        return getattr(model, self.task.judged_by)(X)

    def report(
        self, model: Model, X: Data, y: Data, predicted: Rows, *, mode: str, as_json: bool
    ) -> Any:
        """Scores by class of what `reported` gave."""
        raise NotImplementedError

    def unseen_labels(self, model: Model, y: Data) -> list[str]:
        """The labels of a data set that training did not have."""
        return []


class TextFiles(TaskFiles):
    """Texts or pairs with one label or several."""

    formats: ClassVar[dict[str, str]] = {"tsv": "predict_labels", "jsonl": "predict_proba"}

    def has_several_labels(self, y: Data) -> bool:
        """Tell if a text may have several labels."""
        return any(isinstance(row, list) for row in y)

    def split_strata(self, y: Data) -> np.ndarray | None:
        """The labels, 0/1 rows where there are several."""
        return read_labels(y, missing=True).values

    def written(self, model: Model, how: str, row: Row) -> Any:
        """The id if there is one, the text, its label or labels, and their probabilities.

        As a line they are the label, or a list of JSON of several, and the text.
        """
        x, found, meta = row.x, row.y, row.meta
        texts = {"text": x} if isinstance(x, str) else {"text": x[0], "text_pair": x[1]}
        if how == "tsv":
            label = json.dumps(found, ensure_ascii=False) if isinstance(found, list) else found
            return "\t".join(" ".join(str(cell).split()) for cell in (label, *texts.values()))
        classes = model.classes_.tolist()
        label = [name for name, p in zip(classes, found, strict=True) if p > 0.5]
        if not model.multilabel_:
            label = classes[found.argmax()]
        probabilities = dict(zip(map(str, classes), found.round(6).tolist(), strict=True))
        ids = {"id": meta["id"]} if "id" in meta else {}
        return {**ids, **texts, "label": label, "probabilities": probabilities}

    def reported(self, model: Model, X: Data) -> Any:
        """Labels as strings, as files have them, or 0/1 rows."""
        predicted = model.predict(X)
        return predicted if model.multilabel_ else list(map(str, predicted))

    def report(
        self, model: Model, X: Data, y: Data, predicted: Rows, *, mode: str, as_json: bool
    ) -> Any:
        """The report of scikit-learn."""
        how: dict[str, Any] = {"output_dict": as_json, "zero_division": 0, "digits": 3}
        if not model.multilabel_:
            return classification_report(y, predicted, **how)
        rows, names, _ = labels_to_score(y, model.classes_.astype(str), True)
        table = np.pad(np.asarray(predicted), [(0, 0), (0, len(names) - len(model.classes_))])
        # A label that is not known counts as a right no, in none of the counts of F1.
        table, rows = np.where(rows == UNKNOWN, 0, table), (rows == 1).astype(int)
        if len(names) == 1:  # whose one column would be taken for labels
            how["labels"] = [1]
        return classification_report(rows, table, target_names=names, **how)

    def unseen_labels(self, model: Model, y: Data) -> list[str]:
        """The labels of a data set that training did not have."""
        labels = chain.from_iterable(y) if self.has_several_labels(y) else y
        return sorted(set(labels) - {str(label) for label in model.classes_})


class SpanFiles(TaskFiles):
    """Sentences of tokens with spans, or with tags that may be predicted too."""

    formats: ClassVar[dict[str, str]] = {
        "conll": "predict",
        "jsonl": "predict_tagged",
        "spans": "predict_tagged",
    }

    def formats_of(self, model: Model) -> dict[str, str]:
        """The formats: of a model that was trained on spans, those of spans."""
        if model.scheme_ is not None:
            return self.formats
        return {name: self.formats[name] for name in ("spans", "jsonl")}

    def written(self, model: Model, how: str, row: Row) -> Any:
        """A line for each token and its tag, or the tokens, tags if any, and spans."""
        x = row.x
        if how == "conll":
            return "\n".join(f"{token}\t{tag}" for token, tag in zip(x, row.y, strict=True))
        tags: list[Any]
        spans: list[ScoredSpan]
        tags, spans = row.y
        rounded = [(*span[:3], round(span.score, 6)) for span in spans]
        if how == "spans":
            names = ("type", "start", "end", "text", "score")
            cells = ((*span[:3], " ".join(x[span[1] : span[2]]), span[3]) for span in rounded)
            return {"tokens": x, "spans": [dict(zip(names, of, strict=True)) for of in cells]}
        return {"tokens": x, **({} if model.scheme_ is None else {"tags": tags}), "spans": rounded}

    def report(
        self, model: Model, X: Data, y: Data, predicted: Rows, *, mode: str, as_json: bool
    ) -> Any:
        """The scores of spans."""
        scores = self.task.rate(model, self.task.read(model, X, y)[1], predicted)
        return scores if as_json else _table_of_scores(scores)


class TagFiles(SpanFiles):
    """Sentences of tokens with tags."""

    modes: ClassVar[tuple[str, ...]] = tuple(MODES)

    def report(
        self, model: Model, X: Data, y: Data, predicted: Rows, *, mode: str, as_json: bool
    ) -> Any:
        """The report of spans."""
        how: dict[str, Any] = {"scheme": model.scheme_, "mode": mode, "output_dict": as_json}
        return span_report(y, predicted, **how)


class EntityFiles(TaskFiles):
    """Texts with entities; the formats of annotation tools write them."""

    formats: ClassVar[dict[str, str]] = dict.fromkeys(
        ("jsonl", "doccano", "label-studio", "prodigy", "brat"), "predict"
    )
    modes: ClassVar[tuple[str, ...]] = tuple(MODES)

    def counted(self, X: Any, y: Any) -> Any:
        """The tags of the words."""
        return [tags for _, tags in tagged_words(X, y)]

    def report(
        self, model: Model, X: Data, y: Data, predicted: Rows, *, mode: str, as_json: bool
    ) -> Any:
        """The report of entities."""
        table = report_of_spans(typed_spans(y), typed_spans(predicted), mode)
        return table if as_json else report_text(table)


class QuestionFiles(TaskFiles):
    """Questions with a context, which holds their answers."""

    formats: ClassVar[dict[str, str]] = {"squad": "predict", "jsonl": "predict"}

    def groups(self, X: Data) -> list[str] | None:
        """The contexts: questions on one context are split together."""
        return [context for _, context in X]

    def written(self, model: Model, how: str, row: Row) -> Any:
        """The question and its answer."""
        return {"id": row.meta["id"], "question": row.x[0], "answer": row.y}

    def report(
        self, model: Model, X: Data, y: Data, predicted: Rows, *, mode: str, as_json: bool
    ) -> Any:
        """Scores of all questions, and of those with and without an answer."""
        rows = list(zip(y, predicted, strict=True))
        parts = {
            "": rows,
            " with answer": [row for row in rows if row[0]],
            " without answer": [row for row in rows if not row[0]],
        }
        scores: dict[str, float] = {}
        for name, kept in parts.items():
            if kept:
                for measure, value in self.task.rate(model, *zip(*kept, strict=True)).items():
                    scores[f"{measure.replace('_', ' ')}{name}"] = value
                scores[f"questions{name}"] = len(kept)
        return scores if as_json else _table_of_scores(scores)


class MultiSpanFiles(QuestionFiles):
    """Questions with several answers, which are tags of words."""

    def counted(self, X: Any, y: Any) -> Any:
        """The tags of the words of the contexts, once for each question."""
        spans = [[(start, start + len(text), ANSWER) for start, text in row] for row in y]
        return [tags for _, tags in tagged_words(self.task.passages(X), spans)]


_FILES: dict[str, type[TaskFiles]] = {
    "classification": TextFiles,
    "numbers": TextFiles,
    "tagging": TagFiles,
    "entities": EntityFiles,
    "mrc-ner": SpanFiles,
    "qa": QuestionFiles,
    "multi-span-qa": MultiSpanFiles,
}


def files_of(task: Task) -> TaskFiles:
    """What files need to know of a task.

    Examples
    --------
    >>> from skdice.tasks import TASKS
    >>> from skdice.tasks.files import files_of
    >>> list(files_of(TASKS["tagging"]).formats)
    ['conll', 'jsonl', 'spans']
    """
    return _FILES[task.name](task)


def _table_of_scores(scores: dict[str, float]) -> str:
    """Scores as text, one a line."""
    return "".join(f"{name:>24} {value:8.4f}\n" for name, value in scores.items())
