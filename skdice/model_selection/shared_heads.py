"""Trials run together: linear heads on rows, or on vectors of the frozen encoder."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from skdice.engine.arrays import blocks
from skdice.estimators import DiceClassifier, DiceSequenceClassifier, DiceTokenClassifier
from skdice.losses import Loss
from skdice.metrics.schemes import infer_scheme
from skdice.model_selection.full_fits import CrossValidation, FullFits
from skdice.model_selection.heads import train_heads
from skdice.model_selection.predictions import Predictions, TagPredictions
from skdice.model_selection.records import TrialRecord
from skdice.text.inputs import as_sentences, as_tags, as_texts

__all__ = ["FrozenText", "NumericRows", "SharedHeads", "why_not_shared"]

# For heads on the frozen encoder: a rate at which none diverges on vectors of this norm. They are
# trained for as many epochs as the estimator: after few epochs losses rank differently than after
# many (docs/search.md).
LR, NORM = 1e-2, 4.0
BATCH_SIZE = {"classification": 32, "tagging": 128}


class SharedHeads:
    """The strategy that trains linear heads of several trials at once, on every fold.

    Parameters
    ----------
    cv : CrossValidation
        Of a `DiceClassifier` with a linear head, whose fits the heads are; or of a text estimator,
        for whose fits heads on the frozen encoder stand.
    full_fits : FullFits
    trials_at_once : int
    """

    def __init__(self, cv: CrossValidation, full_fits: FullFits, trials_at_once: int) -> None:
        self.cv = cv
        self.full_fits = full_fits
        self.trials_at_once = trials_at_once
        self.is_exact = isinstance(cv.estimator, DiceClassifier)
        self.rows: NumericRows | FrozenText = (
            NumericRows(cv.X, cv.y) if self.is_exact else FrozenText(cv.estimator, cv.X, cv.y)
        )

    def run(
        self, settings: Sequence[dict[str, Any]], trials: Sequence[Any] = ()
    ) -> list[TrialRecord]:
        """Run trials with the given parameters; none of them is pruned.

        Where they fail together they run in halves, so that a setting that fails costs its own
        trial only.
        """
        started, failure = time.perf_counter(), None
        train_rows = [train for train, _ in self.cv.splits]
        try:
            heads = self.rows.train([self.cv.model(params) for params in settings], train_rows)
        except Exception as error:
            failure = error
        if failure is not None and len(settings) > 1:
            half = len(settings) // 2
            del failure
            return self.run(settings[:half]) + self.run(settings[half:])
        if failure is not None:
            return [self._failed(settings[0], failure)]
        seconds = (time.perf_counter() - started) / (len(settings) * len(train_rows))
        records = [TrialRecord(fit_times=[seconds] * len(train_rows)) for _ in settings]
        for fold, (train, test) in enumerate(self.cv.splits):
            self._score("test" if self.is_exact else "shared", heads[fold], test, records)
            if self.cv.with_train and self.is_exact:
                self._score("train", heads[fold], train, records)
        return [self.cv.closed(record) for record in records]

    def _failed(self, params: dict[str, Any], error: Exception) -> TrialRecord:
        """A trial that fails by itself; as a fit of its own, where that has a better error."""
        if self.is_exact:
            return self.full_fits.run_one(params)
        scores = [self.cv.score_of_error] * len(self.cv.splits)
        record = TrialRecord(shared={name: list(scores) for name in self.cv.scorers})
        record.fail(error, of_fit=True, keep_frames=self.cv.raises)
        return self.cv.closed(record)

    def _score(self, part: str, heads: Any, rows: Any, records: list[TrialRecord]) -> None:
        """Score the heads of one fold on the same rows.

        Neighbouring settings often predict the same, and a scorer may cost more than a head's
        training. So heads that predict the same are scored once, by scorers that ask for
        predictions alone.
        """
        scored = self.cv.rows(rows)
        known: dict[tuple[str, bytes], float] = {}
        asks_for_more: set[str] = set()
        for model, record in zip(self.rows.predict(heads, rows), records, strict=True):
            started = time.perf_counter()
            model.rows, key = scored.X, model.key()
            for name in self.cv.scorers:
                if name in asks_for_more or (name, key) not in known:
                    model.asked_for_more, before = False, record.exception
                    score = self.cv.score(name, model, scored, record)
                    if model.asked_for_more:
                        asks_for_more.add(name)
                    elif record.exception is before:
                        known[name, key] = score
                else:
                    score = known[name, key]
                getattr(record, part).setdefault(name, []).append(score)
            record.score_times.append(time.perf_counter() - started)


class NumericRows:
    """Rows of numbers, on which heads are a `DiceClassifier`'s own fits."""

    def __init__(self, X: np.ndarray, y: Any) -> None:
        self.X, self.y = X, y

    def train(self, models: Sequence[Any], train_rows: Sequence[Any]) -> list[Any]:
        """Heads of every model on the training rows of every fold."""
        return train_heads(models, self.X, self.y, train_rows)

    def predict(self, heads: Any, rows: Any) -> Sequence[Predictions]:
        """Predictions of a fold's heads for some rows."""
        return heads.predict(np.asarray(self.X)[rows])


class FrozenText:
    """Texts, or the words of sentences, as vectors of the frozen encoder, computed once.

    Parameters
    ----------
    estimator : DiceSequenceClassifier or DiceTokenClassifier
        Unfitted.
    X, y : data
    """

    def __init__(self, estimator: Any, X: Any, y: Any) -> None:
        self.estimator = estimator
        if estimator.task == "tagging":
            X = as_sentences(X)
            tags = as_tags(y, X)
            self.scheme = infer_scheme(tags) if estimator.scheme == "auto" else estimator.scheme
            self.y = np.array([tag for row in tags for tag in row])
            self.lengths = np.array([len(sentence) for sentence in X])
        else:
            X = as_texts(X)
            self.y, self.lengths = np.asarray(y), np.ones(len(X), dtype=int)
        self.X = _scaled(estimator.frozen_vectors(X))

    def train(
        self,
        models: Sequence[Any],
        train_rows: Sequence[Any],
        *,
        lr: float = LR,
        batch_size: int | None = None,
    ) -> list[Any]:
        """Heads with the losses of `models` on the training rows of every fold."""
        tagging = self.estimator.task == "tagging"
        heads = [
            DiceClassifier(
                loss=clone(model.loss, safe=False),
                lr=lr,
                max_epochs=self.estimator.max_epochs,
                batch_size=batch_size or BATCH_SIZE[self.estimator.task],
                pos_label=None if tagging else self.estimator.pos_label,
                device=self.estimator.device,
                random_state=self.estimator.random_state,
            )
            for model in models
        ]
        background = "O" if tagging and "O" in self.y else None
        rows = [self._places(train) for train in train_rows]
        return train_heads(heads, self.X, self.y, rows, background=background)

    def predict(self, heads: Any, rows: Any) -> Sequence[Predictions]:
        """Predictions of a fold's heads for some texts or sentences."""
        found = heads.predict(self.X[self._places(rows)])
        if self.estimator.task != "tagging":
            return found
        lengths, constrained = self.lengths[rows].tolist(), self.estimator.constrained
        return [TagPredictions(words, lengths, self.scheme, constrained) for words in found]

    def _places(self, rows: Any) -> np.ndarray:
        """Indices of the vectors of some texts or sentences."""
        ends = np.cumsum(self.lengths)
        parts = [np.arange(ends[i] - self.lengths[i], ends[i]) for i in rows]
        return np.concatenate(parts)


def _scaled(table: np.ndarray) -> np.ndarray:
    """The table with rows of norm `NORM` on average, in its place.

    Not centred, nor each column scaled: with fewer rows than columns a head on such vectors fits
    its rows before its intercept has moved, and calls half of all others positive.
    """
    norms = [np.linalg.norm(table[part], axis=1) for part in blocks(len(table))]
    factor = table.dtype.type(NORM / max(np.concatenate(norms).mean(), np.finfo(np.float32).tiny))
    for part in blocks(len(table)):
        table[part] *= factor
    return table


def why_not_shared(
    cv: CrossValidation, searched: Sequence[str], losses: Sequence[Loss]
) -> str | None:
    """Why trials cannot run as heads, or with `losses` should not; None if they can."""
    estimator, kind = cv.estimator, type(cv.estimator).__name__
    text = isinstance(estimator, (DiceSequenceClassifier, DiceTokenClassifier))
    if not text and not isinstance(estimator, DiceClassifier):
        return f"{kind} is not DiceClassifier, DiceSequenceClassifier or DiceTokenClassifier"
    if not text and type(estimator).fit is not DiceClassifier.fit:
        return f"{kind} has a fit of its own"
    if not text and (estimator.module is not None or len(estimator.hidden_layer_sizes)):
        return "its head is not linear"
    own = (
        ("sampler", "label_all_subwords") if text else ("early_stopping", "callbacks", "net_params")
    )
    for name in own:
        if getattr(estimator, name, None):
            return f"it has {name}={getattr(estimator, name)!r}"
    allowed = ("loss",) if text else ("loss", "lr", "weight_decay")
    for name in searched:
        if name not in allowed and not name.startswith("loss__"):
            return f"{name!r} is searched, which heads have in common"
    if cv.fit_params:
        return f"fit got {sorted(cv.fit_params)}"
    if not text and not isinstance(cv.X, np.ndarray):
        return f"X is a {type(cv.X).__name__} and not an array"
    if isinstance(estimator, DiceSequenceClassifier) and np.ndim(cv.y) != 1:
        return "the labels are 0/1 rows"
    for loss in losses:
        if not loss.has_functional_form:
            return f"{type(loss).__name__} has no functional form to train stacked heads with"
    return None
