"""Trials of a text estimator judged by their head alone, on vectors of the frozen encoder."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import log_softmax
from sklearn.base import clone

from skdice.engine.arrays import blocks
from skdice.metrics import span_f1_score
from skdice.metrics.schemes import infer_scheme
from skdice.model_selection.lanes import LaneModel, StoredModel, fit_lanes, is_number
from skdice.text.decoding import decode
from skdice.text.inputs import as_sentences, as_tags, as_texts, object_array

__all__ = ["Screen", "TagLane", "agreement", "finalists", "spread_over", "why_not"]

# Of the heads: a rate that none diverges at on vectors of this norm. Their epochs are those of the
# full fit: what a loss is worth in a short training says little of a long one (docs/search.md).
LR, NORM = 1e-2, 4.0
BATCH = {"labels": 32, "tags": 128}


def why_not(estimator: Any, names: Sequence[str], fit_params: Any, y: Any) -> str | None:
    """Why trials of `estimator` cannot be screened; None if they can."""
    from skdice.estimators import DiceSequenceClassifier, DiceTokenClassifier

    kind = type(estimator)
    if kind not in (DiceSequenceClassifier, DiceTokenClassifier):
        return f"{kind.__name__} is neither DiceSequenceClassifier nor DiceTokenClassifier"
    for name in ("sampler", "label_all_subwords"):
        if getattr(estimator, name, None):
            return f"it has {name}={getattr(estimator, name)!r}"
    other = [name for name in names if name != "loss" and not name.startswith("loss__")]
    if other:
        return f"{other[0]!r} is searched, which says nothing of a head alone"
    if fit_params:
        return f"fit got {sorted(fit_params)}"
    if kind is DiceSequenceClassifier and np.ndim(y) != 1:
        return "the labels are 0/1 rows"
    return None


class Screen:
    """The rows of a search as vectors of the frozen encoder, computed once.

    Attributes
    ----------
    exact : bool
        Whether what it says of a trial is what a fit would say.
    what : str
        That stands for fits.

    Parameters
    ----------
    estimator : DiceSequenceClassifier or DiceTokenClassifier
        Unfitted.
    X, y : data
    splits : list of (train, test)
        Indices of texts or sentences.
    """

    exact = False
    what = "heads on the frozen encoder"

    def __init__(self, estimator: Any, X: Any, y: Any, splits: Sequence[tuple[Any, Any]]) -> None:
        from skdice.estimators import DiceTokenClassifier

        self.estimator = estimator
        self.tagging = isinstance(estimator, DiceTokenClassifier)
        if self.tagging:
            sentences = as_sentences(X)
            tags = as_tags(y, sentences)
            vectors = estimator.frozen_vectors(sentences)
            named = estimator.scheme != "auto"
            self.scheme = estimator.scheme if named else infer_scheme(tags)
            ends = np.cumsum([len(sentence) for sentence in sentences])
            places = [np.arange(a, b) for a, b in zip([0, *ends[:-1]], ends, strict=True)]
            labels = np.array([tag for row in tags for tag in row])
        else:
            texts = as_texts(X)
            vectors = estimator.frozen_vectors(texts)
            places = [np.array([i]) for i in range(len(texts))]
            labels = np.asarray(y)
        self.X = _scaled(vectors)
        self.y = labels
        self.lengths = [[len(places[i]) for i in test] for _, test in splits]
        self.folds = [
            (np.concatenate([places[i] for i in a]), np.concatenate([places[i] for i in b]))
            for a, b in splits
        ]

    def models(
        self, losses: Sequence[Any], *, lr: float = LR, batch_size: int | None = None
    ) -> list[list[Any]]:
        """For each fold what a head trained with each loss says of the fold's test rows."""
        from skdice.estimators import DiceClassifier

        heads = [
            DiceClassifier(
                loss=clone(loss) if not isinstance(loss, str) else loss,
                batch_size=batch_size or BATCH["tags" if self.tagging else "labels"],
                random_state=self.estimator.random_state,
                device=self.estimator.device,
                pos_label=getattr(self.estimator, "pos_label", None),
                max_epochs=self.estimator.max_epochs,
                lr=lr,
            )
            for loss in losses
        ]
        outside = self.tagging and "O" in self.y
        found: list[list[Any]] = fit_lanes(
            heads, self.X, self.y, self.folds, background="O" if outside else None
        )
        if not self.tagging:
            return found
        constrained = self.estimator.constrained
        return [
            [TagLane(lane, lengths, self.scheme, constrained) for lane in lanes]
            for lanes, lengths in zip(found, self.lengths, strict=True)
        ]


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


class TagLane(StoredModel):
    """What one head says of the sentences that it was asked about, for scikit-learn's scorers.

    Parameters
    ----------
    lane : LaneModel
        Of all their words.
    lengths : list of int
        Words of each sentence.
    scheme : str
    constrained : bool
    """

    def __init__(self, lane: LaneModel, lengths: list[int], scheme: str, constrained: bool) -> None:
        self.lane = lane
        self.lengths = lengths
        self.scheme = scheme
        self.constrained = constrained

    @property
    def classes_(self) -> np.ndarray:
        """Tags."""
        return self.lane.classes

    @property
    def scheme_(self) -> str:
        """How the tags mark spans."""
        return self.scheme

    def _log_rows(self) -> list[np.ndarray]:
        rows = log_softmax(self.lane.logits.astype(np.float64), axis=1)
        return np.split(rows, np.cumsum(self.lengths)[:-1])

    def said(self) -> bytes:
        """The same for models that predict the same."""
        return "\n".join(tag for row in self._decoded for tag in row).encode()

    @functools.cached_property
    def _decoded(self) -> list[list[str]]:
        return decode(
            self._log_rows(), list(self.classes_), self.scheme, constrained=self.constrained
        )

    def predict(self, X: Any) -> np.ndarray:
        """Tags of every word, as a 1-D object array of lists."""
        self._check_rows(X)
        return object_array(self._decoded)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities, an array of shape (n_words, n_classes) a sentence."""
        self._check_rows(X)
        self.only_predicted = False
        return object_array([np.exp(rows) for rows in self._log_rows()])

    def score(self, X: Any, y: Any) -> float:
        """Micro span F1; token micro F1 for plain tags."""
        return float(span_f1_score(y, self.predict(X), scheme=self.scheme))


def spread_over(scores: Sequence[float], n: int) -> list[int]:
    """Places of `n` scores, evenly from the best to the worst."""
    order = np.argsort(np.asarray(scores), kind="stable")[::-1]
    return [int(order[i]) for i in np.linspace(0, len(order) - 1, n).round().astype(int)]


def finalists(settings: Sequence[dict[str, Any]], scores: np.ndarray, n: int) -> list[int]:
    """Places of `n` settings that may be the best: half by their heads, half as unlike as can be.

    Where heads rank as full fits do, the best heads are the best. Where they do not, folds being
    few and a head only a likeness, settings within one standard error of the best mean are level,
    and of those the ones next to each other tell the least.

    Parameters
    ----------
    settings : list of dict
    scores : ndarray of shape (n_settings, n_folds)
    n : int
    """
    means = scores.mean(axis=1)
    order = np.argsort(-means, kind="stable")
    n_folds = scores.shape[1]
    error = scores[order[0]].std(ddof=1) / n_folds**0.5 if n_folds > 1 else 0.0
    level = [int(i) for i in order if means[i] >= means[order[0]] - error]
    if len(level) <= n:
        return [int(i) for i in order[:n]]
    apart = _distances([settings[i] for i in level])
    chosen = list(range((n + 1) // 2))
    while len(chosen) < n:
        chosen.append(int(apart[chosen].min(axis=0).argmax()))
    return [level[i] for i in chosen]


def _distances(settings: Sequence[dict[str, Any]]) -> np.ndarray:
    """How far settings lie apart: for each parameter, 1 between the ends or for other choices."""
    total = np.zeros((len(settings), len(settings)))
    for name in sorted({name for params in settings for name in params}):
        values = [params.get(name) for params in settings]
        if all(is_number(value) for value in values):
            column = np.array(values, dtype=np.float64)
            gaps = np.abs(column[:, None] - column)
            total += gaps / max(float(gaps.max()), np.finfo(np.float64).tiny)
        else:
            said = np.array([repr(value) for value in values])
            total += said[:, None] != said
    return total


def agreement(one: Sequence[float], other: Sequence[float]) -> float:
    """Spearman's rank correlation; 0 where a side does not vary."""
    from scipy.stats import spearmanr

    if len(set(one)) < 2 or len(set(other)) < 2:
        return 0.0
    return float(spearmanr(one, other).statistic)
