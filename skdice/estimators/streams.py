"""Predictions for data beyond the memory, row by row."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from skdice._checks import checked
from skdice.text.inputs import as_rows

# Methods of which each estimator has some.
_PREDICTIONS = ("predict", "predict_labels", "predict_proba", "decision_function", "predict_spans")


class StreamedPredictions:
    """`iter_predict`, for estimators that check by ``_check_fitted`` whether they are fitted."""

    _check_fitted: Callable[[], None]
    _draft: Callable[[], Any]

    @checked
    def iter_predict(
        self, X: Any, method: str = "predict", block_size: int = 4096
    ) -> Iterator[Any]:
        """Predictions row by row, holding one block of rows at a time: for data beyond the memory.

        Parameters
        ----------
        X : iterable
            Rows as in `fit`: a generator, which may end at once, or a container as for `predict`.
        method : str, default="predict"
            The method to predict with: ``"predict"``, or where the estimator has it
            ``"predict_proba"``, ``"decision_function"`` or ``"predict_spans"``.
        block_size : int, default=4096
            Rows to read, check and predict at a time.

        Returns
        -------
        iterator
            For each row what `method` gives for it.

        Raises
        ------
        NotFittedError
            If the estimator is not fitted.
        ValueError, TypeError
            For a bad `method`, `block_size` or container at the call, and for bad rows when their
            block is read; a note on the error tells where the block begins.

        Examples
        --------
        >>> from skdice import DiceTokenClassifier
        >>> X = [["Ann", "lives", "in", "Rome"], ["it", "rains"]]
        >>> y = [["B-PER", "O", "O", "B-LOC"], ["O", "O"]]
        >>> tagger = DiceTokenClassifier(max_epochs=1, random_state=0).fit(X, y)
        >>> lines = iter(["Bob sleeps", "it is late"])
        >>> for tags in tagger.iter_predict(line.split() for line in lines):
        ...     print(len(tags))
        2
        3
        """
        self._check_fitted()
        known = [name for name in _PREDICTIONS if hasattr(self, name)]
        if method not in known:
            raise ValueError(f"method={method!r} is unknown: give one of {known}")
        if block_size < 1:
            raise ValueError(f"block_size={block_size!r} must be 1 or more")
        endless = hasattr(X, "__iter__") and not hasattr(X, "__len__")
        rows = iter(X if endless else as_rows(X, "X"))
        reader = self._draft()
        reader._told = False  # it warns once of texts that it cuts
        return self._by_blocks(rows, getattr(reader, method), min(int(block_size), sys.maxsize))

    def _by_blocks(
        self, rows: Iterator[Any], predict: Callable[[Any], Any], size: int
    ) -> Iterator[Any]:
        first = 0
        while block := list(islice(rows, size)):
            try:
                predictions = predict(block)
            except (TypeError, ValueError) as error:
                error.add_note(f"X[0] is row {first} of the rows given to iter_predict")
                raise
            yield from predictions
            first += len(block)
