"""Move a decision to rows in which the classes have other frequencies."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, logit, softmax

from skdice._checks import check_has, checked, is_number, naming, position, shown
from skdice._tables import text_table
from skdice._types import Data
from skdice._warn import warn
from skdice.engine.fit_plan import check_validation
from skdice.estimators.tuned.classifier import BiasTunedClassifier
from skdice.estimators.tuned.decision import as_tuned
from skdice.exceptions import DecisionWarning
from skdice.inputs.labels import known_labels
from skdice.metrics.calibration import calibrate, log, log_odds
from skdice.metrics.decisions.bounds import Bound
from skdice.metrics.decisions.frequencies import mixture_weights, shift_p_value
from skdice.metrics.decisions.positive import positive_of

DOUBTFUL = 0.01  # p-value up to which more than the frequencies has changed
FEWEST = 5  # held-out rows of a class from which its distribution can be told
MOST_DRAWS = 1_000_000  # more would take days


@dataclass(frozen=True)
class PriorShift:
    """The result of `adapt_prior`; prints as a table.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
    before, after : ndarray of shape (n_classes,)
        Frequencies in the held-out and in the new rows, from 0 to 1.
    low, high : ndarray of shape (n_classes,)
        Ends of the 95 % interval of `after`; equal to it where the user gave it.
    p_value : float or None
        How often new rows would differ as much from the held-out ones if only frequencies had
        shifted; None where the user gave them, or a class has fewer than 5 held-out rows. Of
        several labels the smallest, times their number.
    """

    classes: np.ndarray
    before: np.ndarray
    after: np.ndarray
    low: np.ndarray
    high: np.ndarray
    p_value: float | None

    def __str__(self) -> str:
        table = np.array([self.before, self.after, self.low, self.high]).T
        rows = zip(self.classes.tolist(), table, strict=True)
        lines = [[str(name), *(f"{100 * figure:.2f}%" for figure in row)] for name, row in rows]
        text = text_table(["class", "before", "after", "95 % from", "to"], lines)
        if self.p_value is None:
            return text
        return f"{text}\nonly the frequencies changed: p = {self.p_value:.3f}"


@checked
def adapt_prior(
    model: Any,
    X_new: Data | None = None,
    *,
    X_val: Data | None = None,
    y_val: Data | None = None,
    prior: dict[Any, float] | None = None,
    n_bootstraps: int = 100,
    random_state: int = 0,
) -> BiasTunedClassifier:
    """Move a classifier's decision to rows in which the classes have other frequencies.

    New, and not proven yet: it may change.

    The probabilities are calibrated on held-out rows by a temperature and a bias for each class.
    Those frequencies are then found that make `X_new` likeliest, without its labels. This holds if
    the texts of each class are as they were, and only the frequencies have shifted.

    Parameters
    ----------
    model : fitted classifier with ``predict_proba``
        `BiasTunedClassifier` keeps its tuned decision: a row is positive from the same calibrated
        probability on, or, with a cost, at the same cost. Any other classifier then predicts the
        most probable class; for F1 tune it first, as by ``BiasTunedClassifier(model,
        cv="prefit").fit(X_val, y_val)``.
    X_new : as for ``model.predict``, default=None
        Rows without labels, of the kind that is to be predicted; some hundreds or more.
    X_val, y_val : rows and labels that the model was not trained on, default=None
        A `BiasTunedClassifier` has its own, from its tuning. With `prior` a
        `DiceSequenceClassifier` needs none: its probabilities are taken as they are, and the
        frequencies are those of training.
    prior : dict or None, default=None
        The new frequencies, where they are known, as in ``{"spam": 0.18}``, in place of `X_new`.
        Classes that it does not name share the rest as they did before.
    n_bootstraps : int, default=100
        Number of draws for the interval, and for the test. Draws are of the new rows, and of the
        held-out rows of each class. Each draw calibrates anew, so there are fewer than for the
        intervals of `html_report`.
    random_state : int, default=0

    Returns
    -------
    BiasTunedClassifier
        With the moved decision, which `save_pretrained` writes into the head. Its ``prior_shift_``
        holds the frequencies, to be printed. `model` stays as it is.

    Warns
    -----
    DecisionWarning
        If the new rows do not look like held-out rows with other frequencies: their probabilities
        are further from the best mixture of the classes than in 99 % of draws.

    Raises
    ------
    ValueError, TypeError
        If there are neither new rows nor `prior`, or both; no held-out rows, or none of a class; or
        if the decision was tuned for a bound, which holds for the old frequencies only.

    References
    ----------
    M. Saerens, P. Latinne, C. Decaestecker, "Adjusting the Outputs of a Classifier to New a Priori
    Probabilities", Neural Computation 2002. A. Alexandari, A. Kundaje, A. Shrikumar, "Maximum
    Likelihood with Bias-Corrected Calibration is Hard-To-Beat at Label Shift Adaptation", ICML
    2020.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from skdice import BiasTunedClassifier, DiceClassifier
    >>> from skdice.model_selection import adapt_prior
    >>> X, y = make_classification(900, weights=[0.9], class_sep=2, random_state=0)
    >>> tuned = BiasTunedClassifier(DiceClassifier(loss="ce", random_state=0)).fit(X, y)
    >>> moved = adapt_prior(tuned, prior={1: 0.3})
    >>> moved.prior_shift_.after.tolist()
    [0.7, 0.3]
    """
    check_validation(X_val, y_val)
    _check_request(model, X_new, prior, n_bootstraps, random_state)
    around = as_tuned(model)
    classes, several = around.classes_, around.multilabel_
    held = _held_out(around, X_val, y_val)
    before, temperature, bias = _frequencies(around, held, known=prior is not None)
    if absent := classes[(before <= 0) | (before >= 1 if several else False)].tolist():
        without = ", or none without them" if several else ""
        raise ValueError(
            f"no held-out row tells of {absent}{without}: give X_val and y_val with such rows"
        )
    if prior is not None:
        after = _known(prior, classes, before, several)
        found = PriorShift(classes, before, after, after, after, None)
    else:
        assert held is not None
        estimate = _Estimate(*held, before, several, np.random.default_rng(random_state))
        with naming({"X": "X_new"}):
            rows = (log_odds if several else log)(around.estimator_.predict_proba(X_new))
        found = estimate.shift(classes, rows, temperature, bias, int(n_bootstraps))
        _tell_of_doubt(found.p_value)
    moved = copy.copy(around)
    if not isinstance(model, BiasTunedClassifier):
        moved.bias_, moved.temperature_ = bias, temperature
        _take_from(moved, model, y_val)
    odds = logit if several else np.log
    moved.bias_ = moved.bias_ + temperature * (odds(found.after) - odds(before))
    moved.bias_draws_ = np.zeros((0, len(classes)))  # were drawn for the frequencies before
    moved.prior_shift_ = found
    return moved


def _check_request(model: Any, X_new: Any, prior: Any, n_bootstraps: int, seed: int) -> None:
    """Refuse arguments that do not go together."""
    check_has("model", model, "predict_proba", "classes_")
    if (X_new is None) == (prior is None):
        raise ValueError(
            "give X_new, rows without labels, or prior, known frequencies: one of them"
        )
    if not 1 <= n_bootstraps <= MOST_DRAWS or seed < 0:
        raise ValueError(
            f"n_bootstraps={n_bootstraps} must be 1 to {MOST_DRAWS:,}, and random_state 0 or more"
        )
    if isinstance(model, BiasTunedClassifier) and isinstance(model.scoring, Bound):
        raise ValueError(
            f"model was tuned for {model.scoring!r}, a bound that was promised for the frequencies "
            "of its held-out rows only: tune it for an F1 or a cost, or give its estimator_"
        )


def _frequencies(
    tuned: BiasTunedClassifier, held: tuple[np.ndarray, np.ndarray] | None, *, known: bool
) -> tuple[np.ndarray, float, np.ndarray]:
    """The frequencies of the classes so far, and a temperature and biases that calibrate."""
    n_classes, inner = len(tuned.classes_), tuned.estimator_
    if held is not None:
        logits, truth = held
        several = tuned.multilabel_
        counts = truth.sum(axis=0) if several else np.bincount(truth, minlength=n_classes)
        return counts / len(truth), *calibrate(logits, truth, biases=True)
    if known and hasattr(inner, "class_counts_"):
        return inner.class_counts_ / inner.n_samples_seen_, 1.0, np.zeros(n_classes)
    raise ValueError(
        "X_val and y_val are missing: give labelled rows that the model was not trained on, or "
        "tune it first by BiasTunedClassifier, which keeps its held-out rows"
    )


def _tell_of_doubt(p_value: float | None) -> None:
    if p_value is not None and p_value <= DOUBTFUL:
        warn(
            "X_new does not look like the held-out rows with other frequencies "
            f"(p = {p_value:.3f}): the texts of a class have changed too. The estimate "
            "may be off, so check the decision on some labelled rows",
            DecisionWarning,
        )


def _take_from(moved: BiasTunedClassifier, model: Any, y_val: Any) -> None:
    """Give a decision the columns and the positive class of a model that was not tuned."""
    for name in ("n_features_in_", "feature_names_in_"):
        if hasattr(model, name):
            setattr(moved, name, getattr(model, name))
    if moved._kind == "two":
        classes = moved.classes_
        labels = classes if y_val is None else known_labels(y_val, classes, False)
        moved.positive_ = positive_of(model, labels)


def _held_out(
    tuned: BiasTunedClassifier, X_val: Any, y_val: Any
) -> tuple[np.ndarray, np.ndarray] | None:
    """Logits and truth of held-out rows; None without any."""
    if X_val is not None:
        with naming({"X": "X_val", "y": "y_val"}):
            logits, truth = tuned._judged(X_val, y_val)[2:]
    elif hasattr(tuned, "_held"):
        logits, truth = tuned._held
    else:
        return None
    known = (truth >= 0).reshape(len(truth), -1).all(axis=1)  # -1 is no class of the model's
    if not known.any():
        raise ValueError(
            "no held-out row has labels that are all known, of which frequencies can be told: "
            "complete the labels of some rows of y_val"
        )
    return logits[known], truth[known]


def _known(
    prior: Mapping[Any, float], classes: np.ndarray, before: np.ndarray, several: bool
) -> np.ndarray:
    """Frequencies that the user gave, and the others in proportion to those before."""
    after, named = before.copy(), np.zeros(len(classes), dtype=bool)
    for label, value in prior.items():
        at = position("prior's label", label, classes.tolist(), "classes")
        after[at], named[at] = _frequency(label, value), True
    if not named.any():
        raise ValueError("prior is empty: give the frequency of one class at least")
    if several:
        return after
    rest = 1 - after[named].sum()
    if (named.all() and abs(rest) > 1e-6) or (not named.all() and rest <= 0):
        raise ValueError(f"prior={shown(dict(prior))} sums to {1 - rest:g}: all classes make 1")
    if not named.all():
        after[~named] *= rest / after[~named].sum()
    return after / after.sum()


def _frequency(label: Any, value: Any) -> float:
    if isinstance(value, bool) or not is_number(value):
        raise TypeError(f"prior[{label!r}]={shown(value)} must be a number between 0 and 1")
    if not 0 < value < 1:
        raise ValueError(f"prior[{label!r}]={value!r} must be between 0 and 1, without the ends")
    return float(value)


def _interval(after: np.ndarray, draws: np.ndarray, least: float) -> tuple[np.ndarray, np.ndarray]:
    """Ends of the 95 % interval: normal in the log-odds, with the draws' standard deviation.

    Percentiles of the draws cover less: they are as far off as the estimate is, and 100 draws have
    two or three beyond each end.
    """
    half = 1.96 * logit(np.clip(draws, least, 1 - least)).std(axis=0, ddof=min(1, len(draws) - 1))
    return expit(logit(after) - half), expit(logit(after) + half)


@dataclass(frozen=True)
class _Estimate:
    """Held-out logits with their truth, from which frequencies of new rows are estimated."""

    logits: np.ndarray
    truth: np.ndarray
    before: np.ndarray
    several: bool
    random: np.random.Generator

    def tables(self, logits: np.ndarray, temperature: float, bias: np.ndarray) -> list[np.ndarray]:
        """Calibrated probabilities: of the classes, or of no and yes for each label."""
        scores = (logits + bias) / temperature
        if self.several:
            return [np.column_stack([1 - p, p]) for p in expit(scores).T]
        return [softmax(scores, axis=1)]

    def weights(self, tables: list[np.ndarray], counts: np.ndarray | None = None) -> np.ndarray:
        """The frequencies that make the rows of the tables likeliest."""
        if self.several:
            pairs = zip(tables, self.before, strict=True)
            return np.array([mixture_weights(t / [1 - f, f], counts)[1] for t, f in pairs])
        return mixture_weights(tables[0] / self.before, counts)

    def shift(
        self,
        classes: np.ndarray,
        rows: np.ndarray,
        temperature: float,
        bias: np.ndarray,
        n_draws: int,
    ) -> PriorShift:
        """The frequencies in new rows, with an interval and the test of the shift."""
        new, held = (self.tables(part, temperature, bias) for part in (rows, self.logits))
        # No class is rarer than half a row: it could not come back.
        least = 0.5 / len(rows)
        after = np.clip(self.weights(new), least, 1 - least)
        after = after if self.several else after / after.sum()
        draws = np.array([self.drawn(rows) for _ in range(n_draws)])
        low, high = _interval(after, draws, least)
        if self.several:
            problems = [
                (n, h, t.astype(int), np.array([1 - q, q]))
                for n, h, t, q in zip(new, held, self.truth.T, after, strict=True)
            ]
        else:
            problems = [(new[0], held[0], self.truth, after)]
        p_values = [
            shift_p_value(*problem, n_draws, self.random)
            for problem in problems
            if np.bincount(problem[2], minlength=len(problem[3])).min() >= FEWEST
        ]
        p_value = min(1.0, min(p_values) * len(p_values)) if p_values else None
        return PriorShift(classes, self.before, after, low, high, p_value)

    def drawn(self, rows: np.ndarray) -> np.ndarray:
        """The frequencies from draws of the new rows, and of the held-out rows of each class."""
        kinds = np.unique(self.truth, axis=0, return_inverse=True)[1].ravel()
        order = np.argsort(kinds, kind="stable")
        sizes = np.bincount(kinds)
        first = np.repeat(np.cumsum(sizes) - sizes, sizes)
        chosen = order[first + self.random.integers(np.repeat(sizes, sizes))]
        calibration = calibrate(self.logits[chosen], self.truth[chosen], biases=True)
        counts = self.random.multinomial(len(rows), np.full(len(rows), 1 / len(rows)))
        return self.weights(self.tables(rows, *calibration), counts)
