"""Samplers that draw whole tagged sentences; imbalanced-learn's own refuse ragged tags."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from imblearn.base import BaseSampler
from imblearn.utils import check_sampling_strategy
from sklearn.utils import check_random_state

from skdice._compat import Interval, StrOptions
from skdice._fitting import all_or_nothing, check_params, reading_strategy
from skdice._types import Rows
from skdice.inputs.rows import take
from skdice.inputs.sentences import as_sentences, as_tags
from skdice.inputs.texts import holds_texts
from skdice.tags.schemes import get_spans, infer_scheme
from skdice.text.alignment import tags_of_texts


class TagSampler(BaseSampler):
    """Base of the samplers of tagged sentences."""

    _sampling_type = "bypass"

    def fit(self, X: Rows, y: Rows) -> Self:
        """Check the sentences and the `sampling_strategy`; `fit_resample` is what draws."""
        self.fit_resample(X, y)
        return self

    @all_or_nothing
    def fit_resample(self, X: Rows, y: Rows) -> tuple[Any, Any]:
        """Draw sentences.

        Parameters
        ----------
        X : list of lists of str, or list of str
            Tokens, or texts.
        y : list of lists of str or None, or list of lists of entities
            One tag for each token. None, a token that was not annotated, counts nowhere. For texts
            their entities, as in `DiceEntityRecognizer`; tokens are then words.

        Returns
        -------
        X_resampled, y_resampled
            In containers of the same kinds.

        Raises
        ------
        ValueError, TypeError
            If a sentence has another number of tags than tokens (its index is named), or the
            strategy cannot be met.
        """
        check_params(self)
        tags = tags_of_texts(X, y) if holds_texts(X) else as_tags(y, as_sentences(X))
        self.sample_indices_ = self._draw(tags, check_random_state(self.random_state))
        return take(X, self.sample_indices_), take(y, self.sample_indices_)

    def _draw(self, tags: list[list[str]], random_state: np.random.RandomState) -> np.ndarray:
        raise NotImplementedError

    def _fit_resample(self, X: Any, y: Any, **params: Any) -> Any:
        raise NotImplementedError  # of the parent's fit_resample, which is for tables

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.sparse = False
        tags.input_tags.dataframe = False
        tags.input_tags.string = True
        tags.sampler_tags.sample_indices = True
        return tags


def positive_tokens(tags: list[list[Any]]) -> tuple[np.ndarray, np.ndarray]:
    """Positive and negative tokens of each sentence."""
    annotated = np.array([len(row) - row.count(None) for row in tags], dtype=np.int64)
    negative = np.array([row.count("O") for row in tags], dtype=np.int64)
    return annotated - negative, negative


def check_token_ratio(
    ratio: float, positive: np.ndarray, negative: np.ndarray, sampling_type: str
) -> None:
    """Refuse a ratio below the one in the data, with imbalanced-learn's message."""
    if positive.sum() > ratio * negative.sum():
        tokens = np.repeat([1, 0], [positive.sum(), negative.sum()])
        check_sampling_strategy(min(ratio, 1.0), tokens, sampling_type)


@dataclass(kw_only=True, eq=False, repr=False)
class TagOverSampler(TagSampler):
    """Repeat sentences that hold rare tags.

    Parameters
    ----------
    sampling_strategy : float, str, dict or callable, default="auto"
        As in imbalanced-learn, counted in mentions (spans of an entity type; tokens of a plain
        tag). A dict gives the number of mentions wanted of a type; ``"auto"`` brings every type up
        to the most frequent one. The rarest type comes first: sentences that hold it are drawn at
        random. Their other mentions count too, so a type can end above its target. A float is the
        ratio of positive to negative *tokens* wanted (0.25: four negatives to a positive).
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    sample_indices_ : ndarray of shape (n_new,)
        Sentences that were taken; the first n are X itself.

    Examples
    --------
    >>> from skdice.resampling import TagOverSampler
    >>> X = [["Ann", "sleeps"], ["in", "Rome"], ["in", "Oslo"]]
    >>> y = [["B-PER", "O"], ["O", "B-LOC"], ["O", "B-LOC"]]
    >>> sampler = TagOverSampler(random_state=0)
    >>> X_more, y_more = sampler.fit_resample(X, y)
    >>> sampler.sample_indices_.tolist()
    [0, 1, 2, 0]
    """

    _sampling_type = "over-sampling"

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "sampling_strategy": [
            Interval(Real, 0, None, closed="neither"),
            StrOptions({"auto", "minority", "not minority", "not majority", "all"}),
            dict,
            callable,
        ],
        "random_state": ["random_state"],
    }

    sampling_strategy: Any = "auto"
    random_state: int | np.random.RandomState | None = None

    def _draw(self, tags: list[list[str]], random_state: np.random.RandomState) -> np.ndarray:
        kept = np.arange(len(tags))
        return np.append(kept, self._added(tags, kept, random_state))

    def _added(
        self, tags: list[list[str]], usable: np.ndarray, random_state: np.random.RandomState
    ) -> np.ndarray:
        """Sentences, out of `usable`, to add."""
        by_ratio = isinstance(self.sampling_strategy, Real)
        draw = self._to_ratio if by_ratio else self._to_counts
        return np.array(draw(tags, usable, random_state), dtype=np.int64)

    def _to_counts(
        self, tags: list[list[str]], usable: np.ndarray, random_state: np.random.RandomState
    ) -> list[int]:
        """Sentences to add until every type has its mentions."""
        scheme = infer_scheme(tags)
        types_of_rows = [[span[0] for span in get_spans(row, scheme)] for row in tags]
        mentions = [kind for row in types_of_rows for kind in row]
        types = sorted(set(mentions))
        if len(types) < 2:
            raise ValueError(
                f"y holds {types!r} as types: to draw by type there must "
                "be 2 or more; give sampling_strategy a float for a ratio of tokens"
            )
        with reading_strategy(self.sampling_strategy):
            self.sampling_strategy_ = check_sampling_strategy(
                self.sampling_strategy, np.array(mentions), "over-sampling"
            )
        counts = np.array([[row.count(kind) for kind in types] for row in types_of_rows])
        return self._until(types, counts, usable, random_state)

    def _until(
        self,
        types: list[str],
        counts: np.ndarray,
        usable: np.ndarray,
        random_state: np.random.RandomState,
    ) -> list[int]:
        """Sentences to add, the rarest type first; `counts` has the mentions of each."""
        wanted = {types.index(kind): n for kind, n in self.sampling_strategy_.items()}
        added = np.zeros(len(types), dtype=np.int64)
        drawn: list[int] = []
        for j in sorted(wanted, key=lambda j: counts[:, j].sum()):
            holders = usable[counts[usable, j] > 0]
            if not len(holders) and added[j] < wanted[j]:
                raise ValueError(
                    f"no sentence can be drawn for the type {types[j]!r}: none holds a mention "
                    "that another of its type could replace; add to the gazetteer, or use "
                    "TagOverSampler"
                )
            while added[j] < wanted[j]:
                i = int(random_state.choice(holders))
                drawn.append(i)
                added += counts[i]
        return drawn

    def _to_ratio(
        self, tags: list[list[str]], usable: np.ndarray, random_state: np.random.RandomState
    ) -> list[int]:
        """Sentences to add until positive to negative tokens reach the ratio."""
        ratio = float(self.sampling_strategy)
        positive, negative = positive_tokens(tags)
        check_token_ratio(ratio, positive, negative, "over-sampling")
        gain = positive - ratio * negative
        helpful = usable[gain[usable] > 0]
        missing = -gain.sum()
        if missing > 0 and not len(helpful):
            densest = (positive / np.maximum(negative, 1))[usable].max(initial=0)
            raise ValueError(
                f"sampling_strategy={ratio} cannot be reached by repeating sentences: the densest "
                f"that can be has {densest:.3g} positive tokens for each negative one"
            )
        drawn: list[int] = []
        while missing > 1e-9:
            i = int(random_state.choice(helpful))
            drawn.append(i)
            missing -= gain[i]
        return drawn


@dataclass(kw_only=True, eq=False, repr=False)
class BackgroundUnderSampler(TagSampler):
    """Drop sentences whose tags are all background.

    Parameters
    ----------
    sampling_strategy : "auto" or float, default="auto"
        ``"auto"`` drops all of them. A float is the wanted ratio of positive to negative tokens
        (0.25 is four negatives for each positive): sentences are dropped at random until it is
        reached.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    sample_indices_ : ndarray of shape (n_new,)
        Sentences that were kept, in their order.

    Examples
    --------
    >>> from skdice.resampling import BackgroundUnderSampler
    >>> X = [["Ann", "sleeps"], ["it", "rains"]]
    >>> BackgroundUnderSampler().fit_resample(X, [["B-PER", "O"], ["O", "O"]])
    ([['Ann', 'sleeps']], [['B-PER', 'O']])
    """

    _sampling_type = "under-sampling"

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "sampling_strategy": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "random_state": ["random_state"],
    }

    sampling_strategy: str | float = "auto"
    random_state: int | np.random.RandomState | None = None

    def _draw(self, tags: list[list[str]], random_state: np.random.RandomState) -> np.ndarray:
        positive, negative = positive_tokens(tags)
        if not positive.any():
            raise ValueError("every tag in y is 'O', so nothing would be left")
        empty = np.flatnonzero(positive == 0)
        if self.sampling_strategy == "auto":
            return np.setdiff1d(np.arange(len(tags)), empty)
        ratio = float(self.sampling_strategy)
        if negative.sum() > positive.sum():
            check_token_ratio(ratio, positive, negative, "under-sampling")
        order = random_state.permutation(empty)
        left = negative.sum() - np.append(0, np.cumsum(negative[order]))
        enough = np.flatnonzero(positive.sum() >= ratio * left)
        if not len(enough):
            raise ValueError(
                f"sampling_strategy={ratio} cannot be reached by dropping all {len(empty)} "
                f"background sentences, which gives {positive.sum() / left[-1]:.3g}: lower it, or "
                "add a TagOverSampler"
            )
        return np.setdiff1d(np.arange(len(tags)), order[: enough[0]])
