"""What a classifier of texts does with texts that are longer than its input."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from scipy.special import expit, softmax

from skdice.engine.batching import EncodedDataset
from skdice.engine.net import FineTuningNet
from skdice.engine.window_pooling import TextDataset, WindowPooling
from skdice.text.encoding import Windows
from skdice.text.inputs import as_texts, check_width, object_array
from skdice.text.long_texts import Cuts, DecisiveWindow, TextWindow, encode_texts


class WindowedTexts:
    """Texts in windows whose logits are pooled, for an estimator with `classes_`."""

    long_texts: str
    window_pooling: str
    classes_: np.ndarray
    multilabel_: bool
    n_features_in_: int
    net_: FineTuningNet
    tokenizer_: Any
    _check_fitted: Callable[[], None]
    _max_length: Callable[[], int]
    _predicted: Callable[..., Iterator[list[tuple[TextWindow, np.ndarray]]]]
    _positive_index: Callable[[], int | None]

    _sharpness: float = 1.0  # `WindowPooling.scale`: a temperature that the head was divided by
    _told: bool | None = None  # of a stream: whether it has warned of texts that were cut

    def decisive_window(self, X: Any) -> np.ndarray:
        """The window of each text that decided, and where it stands.

        It is the one with the highest logit: of two classes for the positive one, whether or not
        that is predicted; of more classes for the predicted one; of several labels for each.

        Parameters
        ----------
        X : as in `fit`

        Returns
        -------
        ndarray of object, shape (n,), or (n, n_labels) for several labels
            Named tuples (window, start, end, probability): the number of the window, its first and
            last character (end exclusive; of a pair in the second text), and the probability of the
            class by this window alone. A text that fits in `max_length` has one window.

        Examples
        --------
        >>> from skdice import DiceSequenceClassifier
        >>> X = ["win a free prize", "see you at lunch", "free money now", "the bus is late"]
        >>> clf = DiceSequenceClassifier(max_epochs=1, random_state=0).fit(X, [1, 0, 1, 0])
        >>> text = "it rains. " * 300 + "win a free prize"
        >>> (best,) = clf.decisive_window([text])
        >>> passage = text[best.start : best.end]
        """
        return self._decisive_windows(X)

    # ---- the steps

    def _decisive_windows(self, X: Any, bias: Any = 0.0, temperature: float = 1.0) -> np.ndarray:
        """`decisive_window` of a decision that was tuned."""
        self._check_fitted()
        rows, positive = [], self._positive_index()
        for found in self._predicted(self._known_texts(X), cuts := Cuts()):
            windows, logits = [w for w, _ in found], np.stack([z for _, z in found])
            tuned = (logits + bias) / temperature
            if self.multilabel_:
                deciding, probabilities = logits.argmax(axis=0), expit(tuned)
            else:
                pooled = self._pooled(logits) + bias
                label = pooled.argmax() if positive is None else positive
                evidence = self._window_pooling().evidence(logits)
                column = 0 if evidence.shape[1] == 1 else label
                deciding = evidence[:, [column]].argmax(axis=0)
                probabilities = softmax(tuned, axis=1)[:, [label]]
            rows.append(
                [
                    DecisiveWindow(int(k), int(windows[k].start), int(windows[k].end), float(p[k]))
                    for k, p in zip(deciding, probabilities.T, strict=True)
                ]
            )
        self._tell(cuts)
        if self.multilabel_:
            return np.stack([object_array(row) for row in rows])
        return object_array([row[0] for row in rows])

    def _known_texts(self, X: Any) -> list[Any]:
        texts = as_texts(X)
        check_width(texts, self.n_features_in_, self)
        return texts

    def _windows(self, texts: list[Any], cuts: Cuts | None = None) -> Windows[TextWindow]:
        return encode_texts(self.tokenizer_, texts, self._max_length(), self.long_texts, cuts)

    def _encode(
        self, inputs: Any, targets: Any = None, weights: Any = None, cuts: Cuts | None = None
    ) -> EncodedDataset:
        windows = self._windows(inputs, cuts)
        if targets is None or len(windows) == len(inputs):
            return EncodedDataset(windows, targets, weights)
        return TextDataset(windows, targets, weights, self._window_pooling())

    def _tell(self, cuts: Cuts) -> None:
        """Warn of texts that were cut, in a stream once."""
        if not self._told:
            cuts.tell(self._max_length(), self.long_texts)
        if self._told is not None:
            self._told = self._told or cuts.n_cut > 0

    def _window_pooling(self) -> WindowPooling:
        return WindowPooling(self.window_pooling, self._positive_index(), self._sharpness)

    def _pooled(self, logits: np.ndarray) -> np.ndarray:
        """Logits of a text from those of its windows."""
        if len(logits) == 1:
            return logits[0]
        inside = torch.ones(1, len(logits), dtype=torch.bool)
        return self._window_pooling()(torch.from_numpy(logits)[None], inside)[0].numpy()

    def _logits(self, X: Any, tell: bool = True) -> np.ndarray:
        self._check_fitted()
        texts, cuts = self._known_texts(X), Cuts()
        table = np.empty((len(texts), len(self.classes_)))
        for row, windows in zip(table, self._predicted(texts, cuts), strict=True):
            row[:] = self._pooled(np.stack([logits for _, logits in windows]))
        if tell:
            self._tell(cuts)
        return table
