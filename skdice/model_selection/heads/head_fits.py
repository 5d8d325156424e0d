"""The strategy that runs trials as linear heads, and when it is possible."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from skdice.engine.fit_plan import needs_windows
from skdice.estimators import DiceClassifier, DiceSequenceClassifier, DiceTokenClassifier
from skdice.inputs.labels import read_labels
from skdice.inputs.texts import as_texts
from skdice.losses import Loss
from skdice.model_selection.full_fits import FullFits
from skdice.model_selection.heads.data import HeadData
from skdice.model_selection.records import Settings, TrialRecord


class HeadFits:
    """The strategy that trains linear heads of several trials at once, on every fold."""

    def __init__(self, full: FullFits, trials_at_once: int) -> None:
        self.full, self.trials_at_once = full, trials_at_once
        # The heads of a `DiceClassifier` equal its fits; others are on a frozen encoder.
        self.is_exact = isinstance(full.estimator, DiceClassifier)
        self.data = HeadData(full.estimator, full.X, full.y)

    def run(self, settings: Settings, trials: Sequence[Any] = ()) -> list[TrialRecord]:
        """Run trials with the given parameters; none of them is pruned."""
        full, heads, started = self.full, None, time.perf_counter()
        try:
            models = [full.model(params) for params in settings]
            heads = self.data.fit(models, [train for train, _ in full.splits])
        except Exception as error:
            scores = [full.score_of_error] * len(full.splits)
            failed = TrialRecord(shared={name: list(scores) for name in full.scorers})
            failed.fail(error, of_fit=True, keep_frames=full.raises)
        if heads is None and len(settings) > 1:  # a bad setting must cost its own trial only
            half = len(settings) // 2
            return self.run(settings[:half]) + self.run(settings[half:])
        if heads is None:  # the estimator's own fit has the better error
            return [full.run_one(settings[0]) if self.is_exact else full.ended(failed)]
        seconds = (time.perf_counter() - started) / (len(settings) * len(heads))
        records = [TrialRecord(fit_time=[seconds] * len(heads)) for _ in settings]
        for fold, of_fold in enumerate(heads):
            for side in range(2 if full.with_train and self.is_exact else 1):
                self._score(of_fold, fold, side, records)
        return [full.ended(record) for record in records]

    def _score(self, heads: Any, fold: int, side: int, records: list[TrialRecord]) -> None:
        """Score the heads of one fold on its test rows (side 0) or training rows (side 1)."""
        rows = self.full.splits[fold][1 - side]
        scored = self.full.scored(rows)
        # Many settings predict the same, and a scorer may cost more than the training of a head.
        # So a scorer that needs only predictions scores equal predictions once.
        known: dict[Any, float] = {}
        models = self.data.predict(heads, rows, scored[0][0])
        for model, record in zip(models, records, strict=True):
            started = time.perf_counter()
            into = (record.test, record.train)[side] if self.is_exact else record.shared
            for name in self.full.scorers:
                key = name, repr(model.predicted.tolist())
                if (score := known.get(key)) is None:
                    model.asked_for_more, before = False, record.exception
                    score = self.full.score(name, model, scored, record)
                    if not model.asked_for_more and record.exception is before:
                        known[key] = score
                into.setdefault(name, []).append(score)
            record.score_time.append(time.perf_counter() - started)


def why_no_heads(full: FullFits, names: Sequence[str], losses: list[Loss]) -> str | None:
    """Why trials over the parameters `names` cannot run as heads; None if they can."""
    estimator, kind = full.estimator, type(full.estimator).__name__
    unset: tuple[str, ...] = ("sampler", "label_all_subwords")
    allowed = {"loss"}
    if isinstance(estimator, DiceClassifier):
        if type(estimator).fit is not DiceClassifier.fit:
            return f"{kind} is not DiceClassifier: it has a fit of its own"
        if estimator.module is not None or len(estimator.hidden_layer_sizes):
            return "its head is not linear"
        if not isinstance(full.X, np.ndarray):
            return f"X is a {type(full.X).__name__} and not an array"
        unset = ("early_stopping", "callbacks", "net_params")
        allowed = {"loss", "lr", "weight_decay"}
    elif not isinstance(estimator, (DiceSequenceClassifier, DiceTokenClassifier)):
        return f"{kind} is not DiceClassifier, DiceSequenceClassifier or DiceTokenClassifier"
    elif not estimator.task.has_words:
        return f"{kind} finds its words in texts"
    if is_classifier(estimator) and read_labels(full.y, missing=True).multilabel:
        return "the labels are 0/1 rows or lists, and heads give one label a row"
    for name in unset:
        if getattr(estimator, name, None):
            return f"it has {name}={getattr(estimator, name)!r}"
    for name in names:
        if name not in allowed and not name.startswith("loss__"):
            return f"{name!r} is searched, which heads have in common"
    if full.fit_params:
        return f"fit got {sorted(full.fit_params)}"
    for loss in losses:
        if not loss.has_functional_form:
            return f"{type(loss).__name__} has no functional form, which heads need"
    if isinstance(estimator, DiceSequenceClassifier) and needs_windows(estimator, as_texts(full.X)):
        return "some texts are read in several windows, and heads see one vector of each text"
    return None
