"""The probability of any span, from the probabilities of tags."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from skdice._checks import as_numbers, check_choice, checked
from skdice._types import Rows
from skdice.inputs.rows import as_row_list
from skdice.inputs.sentences import read_spans
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
