"""BiasTunedTagger: a tagger's decision tuned for an objective on held-out sentences."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from numbers import Integral, Real
from types import SimpleNamespace
from typing import Any, Self

import numpy as np
from scipy.special import log_softmax
from sklearn.model_selection import KFold

from skdice._fitting import all_or_nothing, check_params, draft_of
from skdice._types import Rows
from skdice.engine.fit_plan import check_validation, draw_seed
from skdice.estimators.evaluation import SpanScores, outputs_of
from skdice.estimators.fold_fits import group_folds, probabilities_of
from skdice.estimators.tuned.base import BiasTuned, HeldOut
from skdice.inputs.rows import object_array
from skdice.metrics.calibration import SpanScales, judged, log
from skdice.metrics.decisions.chosen_objective import resolve_scoring
from skdice.metrics.decisions.held_out_rows import SpanRows
from skdice.tasks.tagging import Tagging


@dataclass(eq=False, repr=False)
class BiasTunedTagger(SpanScores, BiasTuned):
    """A tagger whose decision is tuned for span F1, a cost or a bound on held-out sentences.

    A bias for each tag is added to the log-probabilities of every token before decoding.

    Parameters
    ----------
    estimator : DiceTokenClassifier
    scoring : str, objective or callable, default="auto"
        What to maximise over spans:

        - ``"auto"``, ``"f1"`` or ``"f1_micro"`` for all types together, ``"f1_macro"`` for the mean
          of the types.
        - ``Fbeta(2)``, ``Cost([[0, 1], [20, 0]])`` of false and missed spans, and the bounds
          ``RecallAtPrecision(0.9)``, ``PrecisionAtRecall(0.9)`` and ``AlertBudget(50)``, all of
          `skdice.metrics`. A bound is for all types together, or with ``each=True`` for each.
        - ``"neg_log_loss"``: biases and a temperature that make the tags' probabilities calibrated.
        - A function of true and predicted lists of tags, higher being better, such as
          `span_f1_score`.
    n_bootstraps : int, default=20
        The bias is the mean of the best ones of as many bootstrap draws of the held-out sentences.
        0 tunes once on all sentences. Bounds and ``"neg_log_loss"`` do not use it.
    cv : int, float, splitter, "prefit" or None, default=None
        Where held-out sentences come from: a number of folds (None is 5), a share, or ``"prefit"``,
        which is all sentences for a tagger that is fitted already. With folds or a share the tagger
        is fitted on all sentences at the end. Ignored if `fit` gets ``X_val``.
    random_state : int, RandomState or None, default=None
        Seed of the split.

    Attributes
    ----------
    estimator_ : fitted tagger
    bias_ : ndarray of shape (n_classes,)
    tuned_for_ : dict
        What the decision was tuned for: the ``"objective"`` in words and, of a `Cost`, the
        ``"cost"`` of absent and present spans by truth (rows) and prediction.
    bound_ : Promise or None
        Of a bound ``(measure, asked, promised, confidence)``: what was asked for, and what new
        sentences will hold.
    temperature_ : float
        What the biased log-probabilities are divided by. The decision does not change with it. It
        makes the probabilities likeliest on the held-out sentences.
    span_scales_ : SpanScales
        A curve for all types, and a slope and an offset for each, which calibrate the scores of
        `predict_spans` on the held-out sentences. A saved folder holds them for `from_pretrained`.
    bias_draws_ : ndarray of shape (n_bootstraps, n_classes)
        The best biases of each draw.
    classes_ : ndarray of str, shape (n_classes,)
    scheme_ : str

    Notes
    -----
    A bound with ``each=True`` is tested for one type after the other, and types compete for tokens:
    the confidence of each is approximate. Bounds count what `predict` gives. The other searches
    count the best tag of each token, which ``constrained=True`` then makes well-formed.

    References
    ----------
    A. K. Menon et al., "Long-tail learning via logit adjustment", ICLR 2021.

    Examples
    --------
    >>> from skdice import BiasTunedTagger, DiceTokenClassifier
    >>> X = [["Ann", "lives", "in", "Rome"], ["it", "rains"]] * 4
    >>> y = [["B-PER", "O", "O", "B-LOC"], ["O", "O"]] * 4
    >>> tagger = DiceTokenClassifier(loss="ce", max_epochs=1, random_state=0)
    >>> BiasTunedTagger(tagger, cv=0.5, random_state=0).fit(X, y).bias_.shape
    (3,)
    """

    @all_or_nothing
    def fit(
        self,
        X: Rows,
        y: Rows,
        *,
        X_val: Rows | None = None,
        y_val: Rows | None = None,
        **params: Any,
    ) -> Self:
        """Fit the tagger, and tune the biases on sentences that it did not see.

        Parameters
        ----------
        X, y : lists of lists of str
            Tokens and tags.
        X_val, y_val : as X and y, default=None
            Sentences to tune on, also passed to the tagger's ``fit``.
        **params : dict
            For the tagger's ``fit``, such as ``sample_weight``. ``groups``, of shape
            (n_sentences,), is for `cv`: sentences of one group, such as a document, are in one
            fold.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            For bad parameters or data, before anything is trained.

        Warns
        -----
        DecisionWarning
            If a bound cannot be promised. The warning names the best that can be, which the
            decision then keeps, and `bound_` holds it.
        """
        check_params(self)
        params, groups = self._routed(params, X_val)
        check_validation(X_val, y_val)
        resolve_scoring(self.scoring, "spans", ())
        _, y = self.task.read(self.estimator, X, y)
        splits: Any = ()
        if X_val is not None:
            _, y_val = self.task.read(self.estimator, X_val, y_val)
        elif self.cv != "prefit":
            splits = self._folds(X, y, groups)
        parts = self._fit_and_hold_out(X, y, X_val, y_val, params, splits)
        self.classes_, self.scheme_ = outputs_of(self.estimator_), self.estimator_.scheme_
        if hasattr(self.estimator_, "feature_names_in_"):
            self.feature_names_in_ = self.estimator_.feature_names_in_
        parts = [self._with_tags(part) for part in parts]
        spans, objective, log_p, known = self._held_out(parts)
        self._tune(spans, objective, log_p, known, parts)
        tags, ends = spans.tags, spans.ends
        tables = np.split((log_p + self.bias_) / self.temperature_, ends[:-1])
        self.__dict__.pop("span_scales_", None)
        scored = self.task.tagged(self._decider(), [], tables)
        pairs = (judged(s, row, self.scheme_) for (_, s), row in zip(scored, tags, strict=True))
        self.span_scales_: SpanScales = SpanScales([*chain.from_iterable(pairs)])
        return self

    def predict(self, X: Rows) -> np.ndarray:
        """Tags of every token, or entities, as the estimator's own ``predict`` gives them."""
        return object_array(self.task.decide(*self._decided(X)))

    def _spans(self, X: Any) -> Any:
        return self.task.spans(*self._decided(X))

    def predict_proba(self, X: Rows) -> np.ndarray:
        """Probabilities after biases and temperature: (n_tokens, n_classes) for each sentence."""
        return object_array([np.exp(log_softmax(rows, axis=1)) for rows in self._log_tables(X)])

    @property
    def task(self) -> Tagging:
        """The task of the tagger; those of others than skdice read tokens and give tags."""
        task = getattr(self.estimator, "task", None)
        return task if isinstance(task, Tagging) else Tagging()

    # ---- the steps

    def _judge(self) -> Any:
        return self._decider()

    def _decider(self) -> Any:
        """The fitted tagger, with the calibration of this decision, to decide on other tables."""
        inner = self._inner()
        constrained = getattr(inner, "constrained", False)
        decider: Any = SimpleNamespace(
            outputs_=self.classes_, scheme_=self.scheme_, constrained=constrained
        )
        if isinstance(getattr(inner, "task", None), Tagging):
            decider = draft_of(inner)
        for name in ("span_scales_", "tuned_for_"):
            vars(decider).pop(name, None)
            if hasattr(self, name):
                setattr(decider, name, getattr(self, name))
        return decider

    def _decided(self, X: Any) -> tuple[Any, list[Any], list[np.ndarray]]:
        """Return what the task decides on: the tagger, the rows and their tables."""
        decider, tables = self._decider(), self._log_tables(X)
        return decider, self.task.sources(decider, self.task.inputs(X)), tables

    def _judged(self, X: Any, y: Any) -> tuple[SpanRows, Any, np.ndarray, np.ndarray]:
        """Return what `_held_out` gives, of rows that may be others than those to tune on."""
        _, y = self.task.read(self.estimator_, X, y)
        part = HeldOut(X, y, *probabilities_of(self.estimator_, X))
        return self._held_out([self._with_tags(part)])

    def _with_tags(self, part: HeldOut) -> HeldOut:
        """The same, with the tags of words as truth."""
        inputs = self.task.inputs(part.X)
        return part._replace(y=self.task.true_tags(self.estimator_, inputs, part.y))

    def _held_out(self, parts: list[HeldOut]) -> tuple[SpanRows, Any, np.ndarray, np.ndarray]:
        """Held-out sentences, the objective, and the tokens' logits and truth."""
        tags, log_p = [row for part in parts for row in part.y], self._stacked(parts)
        classes, constrained = (
            self.classes_.tolist(),
            getattr(self.estimator_, "constrained", False),
        )
        truth = self._indices(chain.from_iterable(tags), classes)
        spans = SpanRows(log_p, truth, tags, classes, self.scheme_, constrained)
        told = self._told(parts, [chain.from_iterable(part.y) for part in parts])
        return spans, resolve_scoring(self.scoring, self._kind, self.classes_), log_p, told

    _kind = "spans"

    def _log_tables(self, X: Any) -> list[np.ndarray]:
        tables = self._inner().predict_proba(X)
        return [(log(rows) + self.bias_) / self.temperature_ for rows in tables]

    def _splits(self, X: Any, y: Any, groups: Any) -> Any:
        n_rows = len(X)
        if isinstance(self.cv, Real) and not isinstance(self.cv, Integral):
            size = min(max(1, round(n_rows * float(self.cv))), n_rows - 1)
            order = np.random.default_rng(draw_seed(self.random_state)).permutation(n_rows)
            return [(np.sort(order[size:]), np.sort(order[:size]))]
        n_folds: Any = 5 if self.cv is None else self.cv
        if groups is not None:
            return group_folds(n_folds, False).split(np.zeros(n_rows), groups=groups)
        if isinstance(n_folds, Integral):
            seed = draw_seed(self.random_state)
            return KFold(int(n_folds), shuffle=True, random_state=seed).split(np.zeros(n_rows))
        return n_folds.split(np.zeros(n_rows))
