"""Scores of spans: the probability of any span, and whether those with a high score are right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skdice._checks import as_numbers, check_choice, check_has, checked
from skdice._types import Rows
from skdice.inputs.entities import read_entities
from skdice.inputs.rows import as_row_list
from skdice.inputs.sentences import as_entities, as_sentences, as_tags, read_spans
from skdice.inputs.texts import as_single_texts
from skdice.metrics.calibration import judged
from skdice.tags.posterior import SpanPosterior
from skdice.tags.schemes import SCHEMES, infer_scheme


@checked
def span_probabilities(
    proba: Rows,
    spans: Rows,
    classes: Sequence[str],
    *,
    scheme: str = "auto",
) -> list[np.ndarray]:
    """The probability that just this span is there, with this type and both borders.

    Every sequence of tags that the scheme allows has a probability proportional to the product of
    its tokens' probabilities. A span has the sum over the sequences that hold it, which the
    forward-backward algorithm finds in time linear in the tokens. Plain tags allow every sequence,
    so there it is the probability of the token's tag.

    Parameters
    ----------
    proba : list of arrays of shape (n_tokens, n_classes)
        What ``predict_proba`` of a tagger gives.
    spans : list of lists of (type, start, end)
        The spans of each sentence, which may overlap; ends are exclusive.
    classes : list of str
        The tags in the order of the columns, such as ``tagger.classes_``.
    scheme : str, default="auto"
        One of ``"iob1"``, ``"iob2"``, ``"ioe1"``, ``"ioe2"``, ``"bioes"``, ``"bmes"``,
        ``"bilou"``, ``"plain"``. ``"auto"`` infers it from `classes`.

    Returns
    -------
    list of ndarray of shape (n_spans,)
        From 0 to 1. A span that was read from ill-formed tags, such as ``O I-PER``, has the
        probability that it would have if it were tagged well. 0 for a type that is not among
        `classes`, and where no sequence is allowed.

    Raises
    ------
    ValueError, TypeError
        If the sentences do not match, or a span lies outside its sentence.

    References
    ----------
    A. Culotta, A. McCallum, "Confidence Estimation for Information Extraction", HLT-NAACL 2004.

    Examples
    --------
    >>> from skdice.inspection import span_probabilities
    >>> proba = [[[0.8, 0.1, 0.1], [0.1, 0.6, 0.3]]]
    >>> found = span_probabilities(proba, [[("PER", 0, 2)]], ["B-PER", "I-PER", "O"])
    >>> found[0].round(3).tolist()  # 0.8 * 0.6 / 0.84, as O I-PER and I-PER at the start are out
    [0.571]
    """
    check_choice("scheme", scheme, ("auto", *SCHEMES))
    tables = [as_numbers("proba", table, 2) for table in as_row_list("proba", proba)]
    rows, names = read_spans(spans, "spans", proba=tables), [str(name) for name in classes]
    for i, table in enumerate(tables):
        if len(table) and table.shape[1] != len(names):
            raise ValueError(
                f"proba[{i}] has {table.shape[1]} columns, and classes {len(names)} names: give "
                "the classes_ of the tagger"
            )
        if (table < 0).any():
            raise ValueError(f"proba[{i}] holds numbers below 0: give what predict_proba gives")
    scheme = infer_scheme([], names) if scheme == "auto" else scheme
    posterior = SpanPosterior(names, scheme)
    with np.errstate(divide="ignore"):
        return [posterior(np.log(t), row) for t, row in zip(tables, rows, strict=True)]


def span_hits(estimator: Any, X: Rows, y: Rows) -> tuple[np.ndarray, np.ndarray]:
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
