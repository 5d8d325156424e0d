"""How classifiers and taggers are evaluated."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import check_is_fitted

from skdice.metrics import span_precision_recall_fscore_support
from skdice.metrics.classification import class_scores
from skdice.metrics.labels import known_labels
from skdice.metrics.schemes import get_spans
from skdice.text.inputs import as_sentences, as_tags, check_weights, object_array
from skdice.text.posterior import SpanPosterior, SpanScales
from skdice.text.spans import ScoredSpan


def outputs_of(model: Any) -> np.ndarray:
    """What the columns of ``predict_proba`` stand for."""
    return model._outputs if hasattr(model, "_outputs") else model.classes_


class ClassScores:
    """Scores of classes, for estimators with `classes_` and, of two, `positive_`."""

    task: ClassVar[str] = "classification"

    classes_: np.ndarray
    positive_: int
    predict: Callable[[Any], np.ndarray]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """F1: of the positive class of two, macro for more classes, micro for several labels.

        Parameters
        ----------
        X, y : as in `fit`
        sample_weight : array of shape (n,), default=None

        Returns
        -------
        float
            From 0 to 1. `evaluate` gives the accuracy too.

        Raises
        ------
        ValueError, TypeError
            If `y` holds a label that `fit` did not see, such as the string "1" beside the class 1.
        """
        return self._scores(X, y, sample_weight)["f1"]

    def evaluate(self, X: Any, y: Any) -> dict[str, float]:
        """Precision, recall and F1 as in `score`, and accuracy.

        Parameters
        ----------
        X, y : as in `fit`

        Returns
        -------
        dict
            ``precision``, ``recall``, ``f1`` and ``accuracy``, each from 0 to 1. In a multi-label
            problem accuracy is the share of rows whose labels are all right, and there are
            ``f1_macro`` and, for each label, ``f1 of <label>``.

        Raises
        ------
        ValueError, TypeError
            As in `score`.
        """
        return self._scores(X, y)

    def _scores(self, X: Any, y: Any, sample_weight: Any = None) -> dict[str, float]:
        if not hasattr(self, "classes_"):
            check_is_fitted(self)
        labels = known_labels(y, self.classes_, getattr(self, "multilabel_", False))
        check_consistent_length(X, labels)
        weights = check_weights(sample_weight, len(labels))
        return class_scores(labels, self.predict(X), self.classes_, self._positive_index(), weights)

    def predict_labels(self, X: Any) -> np.ndarray:
        """Predictions by name.

        Parameters
        ----------
        X : as in `fit`

        Returns
        -------
        ndarray of shape (n,)
            For each row of a multi-label problem a list of names, which may be empty; otherwise
            what `predict` gives.
        """
        predicted = self.predict(X)
        if not getattr(self, "multilabel_", False):
            return predicted
        return object_array([self.classes_[row > 0].tolist() for row in predicted])

    @property
    def measure_(self) -> str:
        """What `evaluate` counts."""
        positive = self._positive_index()
        if positive is not None:
            return f"class {self.classes_[positive]!s}"
        return "labels, micro" if getattr(self, "multilabel_", False) else "classes, macro"

    def _positive_index(self) -> int | None:
        """Index of the positive class of two; None for more classes and multi-label problems."""
        several = len(self.classes_) != 2 or getattr(self, "multilabel_", False)
        return None if several else self.positive_


class LogitScores(ClassScores):
    """Decisions of classifiers that compute logits, by `_logits`."""

    _logits: Callable[[Any], np.ndarray]

    def predict(self, X: Any) -> np.ndarray:
        """Labels of shape (n,); 0/1 rows of shape (n, n_labels) if multi-label."""
        return self._decided(self._logits(X))

    def _decided(self, logits: np.ndarray) -> np.ndarray:
        if getattr(self, "multilabel_", False):
            return (logits > 0).astype(int)
        return self.classes_[logits.argmax(axis=1)]

    def decision_function(self, X: Any) -> np.ndarray:
        """Log-odds of `classes_[1]`, of shape (n,); logits of shape (n, n_classes) otherwise."""
        logits = self._logits(X)
        if len(self.classes_) > 2 or getattr(self, "multilabel_", False):
            return logits
        return logits[:, 1] - logits[:, 0]


class TagScores:
    """Scores of spans, for estimators with `scheme_`."""

    task: ClassVar[str] = "tagging"

    _outputs: np.ndarray
    scheme_: str
    predict: Callable[[Any], np.ndarray]
    _log_tables: Callable[[Any], Iterable[np.ndarray]]
    _decode: Callable[[Iterable[np.ndarray]], list[list[str]]]

    def predict_spans(self, X: Any) -> np.ndarray:
        """The spans of the predicted tags, with their probabilities.

        Parameters
        ----------
        X : list of lists of str

        Returns
        -------
        ndarray of object, shape (n_sentences,)
            Each a list of named tuples ``(type, start, end, score)`` by position, ends exclusive.
            The score is the probability that just this span is there, with this type and both
            borders: see `skdice.inspection.span_probabilities`. For plain tags each token whose tag
            is not ``O`` is a span.
        """
        return self._placed(X, self._tagged(X))

    def _tagged(self, X: Any) -> list[tuple[list[str], list[ScoredSpan]]]:
        """Tags of each sentence with their spans."""
        tables = list(self._log_tables(X))
        return self._with_spans(tables, self._decode(tables), getattr(self, "span_scales_", None))

    def _with_spans(
        self, tables: list[np.ndarray], rows: list[list[str]], scales: SpanScales | None = None
    ) -> list[tuple[list[str], list[ScoredSpan]]]:
        """Tags and their spans, scored by log-probabilities; `scales` calibrate the scores."""
        posterior = SpanPosterior(self._outputs.tolist(), self.scheme_)
        scored = []
        for table, tags in zip(tables, rows, strict=True):
            spans = get_spans(tags, self.scheme_)
            scores = posterior(table, spans).tolist()
            row = [ScoredSpan(*s, p) for s, p in zip(spans, scores, strict=True)]
            scored.append(row if scales is None else scales(row))
        return list(zip(rows, scored, strict=True))

    def score(self, X: Any, y: Any) -> float:
        """Micro span F1; token micro F1 for plain tags."""
        return self.evaluate(X, y)["f1"]

    def evaluate(self, X: Any, y: Any) -> dict[str, float]:
        """Precision, recall and F1 of spans, micro; of tokens for plain tags.

        Parameters
        ----------
        X, y : as in `fit`

        Returns
        -------
        dict
            ``precision``, ``recall`` and ``f1``, each from 0 to 1.
        """
        X, y = self._checked(X, y)
        return self._rated(y, self.predict(X))

    @property
    def measure_(self) -> str:
        """What `evaluate` counts."""
        return "tokens, micro" if self.scheme_ == "plain" else "spans, micro"

    # ---- what differs where the words are not given: see `DiceEntityRecognizer`

    def _checked(self, X: Any, y: Any) -> tuple[list[Any], list[Any]]:
        """The rows of X and of y."""
        sentences = as_sentences(X)
        return sentences, as_tags(y, sentences)

    def _true_tags(self, X: list[Any], y: list[Any]) -> list[Any]:
        """The tags of the words of checked rows."""
        return y

    def _predicted_by(self, model: Any, X: Any) -> np.ndarray:
        """What `predict` of a model gives that decides on the tables of this one."""
        return object_array(model._decode(model._log_tables(X)))

    def _placed(self, X: Any, tagged: Iterable[tuple[Any, Any]]) -> np.ndarray:
        """What `predict_spans` gives for checked rows, from their tags and spans."""
        return object_array([spans for _, spans in tagged])

    def _rated(self, true: list[Any], predicted: Iterable[Any]) -> dict[str, float]:
        """Micro precision, recall and F1 of what `predict` gives."""
        *values, _ = span_precision_recall_fscore_support(
            true, list(predicted), average="micro", scheme=self.scheme_
        )
        return dict(zip(("precision", "recall", "f1"), values, strict=True))
