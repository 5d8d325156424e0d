"""Trials run together: linear heads on rows, or on vectors of the frozen encoder."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from skdice.engine.arrays import blocks
from skdice.estimators import DiceClassifier, DiceSequenceClassifier, DiceTokenClassifier
from skdice.estimators.predictions import ClassPredictions, TagPredictions
from skdice.estimators.stacked import FoldHeads, fit_heads
from skdice.losses import Loss
from skdice.metrics.schemes import infer_scheme
from skdice.model_selection.full_fits import CrossValidation, FullFits
from skdice.model_selection.records import TrialRecord
from skdice.text.inputs import as_sentences, as_tags, as_texts

__all__ = ["SharedHeads", "Vectors", "why_not_shared"]

# For heads on the frozen encoder: a rate at which none diverges on vectors of this norm. They are
# trained for as many epochs as the estimator: after few epochs losses rank differently than after
# many (docs/search.md).
LR, NORM = 1e-2, 4.0
BATCH_SIZE = {"classification": 32, "tagging": 128}
OF_ESTIMATOR = ("max_epochs", "pos_label", "device", "random_state")


class SharedHeads:
    """The strategy that trains linear heads of several trials at once, on every fold.

    They are the fits of a `DiceClassifier` with a linear head (`is_exact`). For fits of a text
    estimator they stand: they are heads on its frozen encoder.
    """

    def __init__(self, cv: CrossValidation, full_fits: FullFits, trials_at_once: int) -> None:
        self.cv = cv
        self.full_fits = full_fits
        self.trials_at_once = trials_at_once
        self.is_exact = isinstance(cv.estimator, DiceClassifier)
        self.vectors = Vectors(cv.estimator, cv.X, cv.y)

    def run(
        self, settings: Sequence[dict[str, Any]], trials: Sequence[Any] = ()
    ) -> list[TrialRecord]:
        """Run trials with the given parameters; none of them is pruned.

        Where they fail together they run in halves, so that a bad setting costs its own trial only.
        """
        cv, heads, started = self.cv, None, time.perf_counter()
        try:
            models = [cv.model(params) for params in settings]
            heads = self.vectors.train(models, [train for train, _ in cv.splits])
        except Exception as error:
            failed = TrialRecord(
                shared={n: [cv.score_of_error] * len(cv.splits) for n in cv.scorers}
            )
            failed.fail(error, of_fit=True, keep_frames=cv.raises)
        if heads is None and len(settings) > 1:
            half = len(settings) // 2
            return self.run(settings[:half]) + self.run(settings[half:])
        if heads is None:  # a fit of its own has the better error
            return [self.full_fits.run_one(settings[0]) if self.is_exact else cv.ended(failed)]
        seconds = (time.perf_counter() - started) / (len(settings) * len(heads))
        records = [TrialRecord(fit_time=[seconds] * len(heads)) for _ in settings]
        for fold, of_fold in enumerate(heads):
            for side in range(2 if cv.with_train and self.is_exact else 1):
                self._score(of_fold, fold, side, records)
        return [cv.ended(record) for record in records]

    def _score(self, heads: Any, fold: int, side: int, records: list[TrialRecord]) -> None:
        """Score the heads of one fold on the same rows.

        Neighbouring settings often predict the same, and a scorer may cost more than a head's
        training. So heads that predict the same are scored once, by scorers that ask for
        predictions alone.
        """
        rows = self.cv.splits[fold][1 - side]
        data, given = self.cv.take(rows), self.cv.scored_with(rows)
        known: dict[Any, float] = {}
        asks_for_more = set()
        for model, record in zip(self.vectors.predict(heads, rows), records, strict=True):
            started, model.rows, key = time.perf_counter(), data[0], model.key()
            into = (record.test, record.train)[side] if self.is_exact else record.shared
            for name in self.cv.scorers:
                score = None if name in asks_for_more else known.get((name, key))
                if score is None:
                    model.asked_for_more, before = False, record.exception
                    score = self.cv.score(name, model, data, given, record)
                    if model.asked_for_more:
                        asks_for_more.add(name)
                    elif record.exception is before:
                        known[name, key] = score
                into.setdefault(name, []).append(score)
            record.score_time.append(time.perf_counter() - started)


class Vectors:
    """Rows of a `DiceClassifier`, or texts or words of sentences as the frozen encoder sees them.

    The encoder runs once, and its vectors are scaled.
    """

    def __init__(self, estimator: Any, X: Any, y: Any) -> None:
        self.estimator = estimator
        self.tagging = estimator.task == "tagging"
        self.is_text = not isinstance(estimator, DiceClassifier)
        if self.tagging:
            X = as_sentences(X)
            tags = as_tags(y, X)
            self.scheme = infer_scheme(tags) if estimator.scheme == "auto" else estimator.scheme
            self.lengths = np.array([len(sentence) for sentence in X])
            y = [tag for row in tags for tag in row]
        elif self.is_text:
            X = as_texts(X)
        self.y = np.asarray(y)
        self.X = _scaled(estimator.frozen_vectors(X)) if self.is_text else X

    def train(
        self, models: Sequence[Any], train_rows: Sequence[Any], **settings: Any
    ) -> list[FoldHeads]:
        """Heads of every model on the training rows of every fold.

        `settings` are for heads on the frozen encoder, such as ``lr``.
        """
        background = "O" if self.tagging and "O" in self.y else None
        if self.is_text:
            own = self.estimator.get_params(deep=False)
            how = {"lr": LR, "batch_size": BATCH_SIZE[self.estimator.task], **settings}
            how |= {name: own[name] for name in OF_ESTIMATOR if name in own}
            models = [DiceClassifier(loss=clone(m.loss, safe=False), **how) for m in models]
        rows = [self._places(rows) for rows in train_rows]
        return fit_heads(models, self.X, self.y, rows, background)

    def predict(self, heads: FoldHeads, rows: Any) -> list[Any]:
        """Predictions of a fold's heads for some rows, texts or sentences."""
        logits = heads.logits(self.X[self._places(rows)])
        if not self.tagging:
            return [ClassPredictions(heads.classes, z) for z in logits]
        how = self.lengths[rows].tolist(), self.scheme, self.estimator.constrained
        return [TagPredictions(heads.classes, z, *how) for z in logits]

    def _places(self, rows: Any) -> Any:
        """Indices of the vectors of some rows, texts or sentences."""
        if not self.tagging:
            return rows
        ends = np.cumsum(self.lengths)
        return np.concatenate([np.arange(ends[i] - self.lengths[i], ends[i]) for i in rows])


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
    """Why trials over the parameters `searched` cannot run as heads; None if they can."""
    estimator, kind = cv.estimator, type(cv.estimator).__name__
    text = isinstance(estimator, (DiceSequenceClassifier, DiceTokenClassifier))
    own, allowed = ("sampler", "label_all_subwords"), {"loss"}
    if not text:
        if not isinstance(estimator, DiceClassifier):
            return f"{kind} is not DiceClassifier, DiceSequenceClassifier or DiceTokenClassifier"
        if type(estimator).fit is not DiceClassifier.fit:
            return f"{kind} is not DiceClassifier: it has a fit of its own"
        if estimator.module is not None or len(estimator.hidden_layer_sizes):
            return "its head is not linear"
        if not isinstance(cv.X, np.ndarray):
            return f"X is a {type(cv.X).__name__} and not an array"
        own, allowed = ("early_stopping", "callbacks", "net_params"), {"loss", "lr", "weight_decay"}
    elif isinstance(estimator, DiceSequenceClassifier) and np.ndim(cv.y) != 1:
        return "the labels are 0/1 rows"
    for name in own:
        if getattr(estimator, name, None):
            return f"it has {name}={getattr(estimator, name)!r}"
    for name in searched:
        if name not in allowed and not name.startswith("loss__"):
            return f"{name!r} is searched, which heads have in common"
    if cv.fit_params:
        return f"fit got {sorted(cv.fit_params)}"
    for loss in losses:
        if not loss.has_functional_form:
            return f"{type(loss).__name__} has no functional form, which stacked heads need"
    return None
