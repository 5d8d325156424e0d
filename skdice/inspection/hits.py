"""Predicted spans that are right, with their scores: what a reliability diagram is drawn from."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skdice._checks import check_has
from skdice.inputs.entities import read_entities
from skdice.inputs.texts import as_sentences, as_single_texts, as_tags
from skdice.text.posterior import judged
from skdice.text.queries import as_entities


def span_hits(estimator: Any, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
    """Whether each span is right that a tagger predicts for new rows, and its score.

    Of calibrated scores near 0.8, four in five are right. scikit-learn's `CalibrationDisplay` draws
    this, and `skdice.metrics.expected_calibration_error` tells it in one number. `BiasTunedTagger`
    calibrates its scores on held-out sentences.

    Parameters
    ----------
    estimator : fitted tagger or recognizer
        With ``predict_spans``, tuned or not.
    X, y : as in its `score`
        A span that reaches into what nobody annotated, such as a tag of None, does not count.

    Returns
    -------
    right : ndarray of bool, shape (n_spans,)
        Whether each span is there, with its type and borders.
    scores : ndarray of shape (n_spans,)
        From 0 to 1, as ``predict_spans`` gives them.

    Raises
    ------
    ValueError
        If X and y do not match, or no span is predicted.
    NotFittedError
        If `estimator` is not fitted.

    References
    ----------
    C. Guo et al., "On Calibration of Modern Neural Networks", ICML 2017.

    Examples
    --------
    >>> from skdice import DiceTokenClassifier
    >>> from skdice.inspection import span_hits
    >>> X, y = [["dogs", "bark"], ["cats", "purr"]], [["NOUN", "VERB"]] * 2
    >>> tagger = DiceTokenClassifier(max_epochs=1, random_state=0).fit(X, y)
    >>> right, scores = span_hits(tagger, X, y)
    >>> len(right), len(scores)  # for CalibrationDisplay.from_predictions(right, scores)
    (4, 4)
    """
    check_has("estimator", estimator, "predict_spans")
    check_is_fitted(estimator)
    inputs: Any
    true: list[Any] = []
    scheme = getattr(estimator, "scheme_", None)
    task = getattr(getattr(estimator, "estimator_", estimator), "task", None)
    if task is not None and not task.has_words:
        inputs, scheme = as_single_texts(X), None
        for row in read_entities(y, inputs):
            true.append([(e.label, e.start, e.end) for e in row])
    else:
        inputs = as_sentences(X)
        true = as_entities(y, inputs)[0] if scheme is None else as_tags(y, inputs)
    rows = zip(estimator.predict_spans(inputs), true, strict=True)
    pairs = [pair for spans, row in rows for pair in judged(spans, row, scheme)]
    if not pairs:
        raise ValueError("no span is predicted for X: there is no score")
    spans, right = zip(*pairs, strict=True)
    return np.array(right), np.array([span.score for span in spans])
