"""The probability that a span is there, from the probabilities of the tags of its tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, log_expit

from skdice._checks import as_numbers, as_row_list, check_choice, check_lengths, checked
from skdice.metrics.calibration import calibrate
from skdice.metrics.span import read_spans
from skdice.tags.schemes import SCHEMES, borders, get_spans, infer_scheme, transitions
from skdice.tags.spans import ScoredSpan, Span

# The log of a probability of 0. It is finite, so that tags which are all improbable still compare.
_FLOOR = -1e5
_FEW = 200  # spans with which a correction counts half


@checked
def span_probabilities(
    proba: Any,
    spans: Any,
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
    rows, names = read_spans(spans, "spans"), [str(name) for name in classes]
    check_lengths("sentences", proba=tables, spans=rows)
    for i, (table, row) in enumerate(zip(tables, rows, strict=True)):
        if len(table) and table.shape[1] != len(names):
            raise ValueError(
                f"proba[{i}] has {table.shape[1]} columns, and classes {len(names)} names: give "
                "the classes_ of the tagger"
            )
        if (table < 0).any():
            raise ValueError(f"proba[{i}] holds numbers below 0: give what predict_proba gives")
        for span in row:
            if not 0 <= span[1] < span[2] <= len(table):
                raise ValueError(f"spans[{i}] holds {span}, outside the {len(table)} tokens")
    scheme = infer_scheme([], names) if scheme == "auto" else scheme
    posterior = SpanPosterior(names, scheme)
    with np.errstate(divide="ignore"):
        return [posterior(np.log(t), row) for t, row in zip(tables, rows, strict=True)]


class SpanPosterior:
    """Probabilities of the spans of a sentence, by the masks of a scheme.

    Whether a span begins or ends between two tokens depends on their two tags only. So a span's
    sequences are those whose pairs of neighbours pass one mask where it begins, another within it,
    and a third where it ends.
    """

    def __init__(self, classes: Sequence[str], scheme: str) -> None:
        self.kinds, starts, ends = borders(classes, scheme)
        n = len(classes)  # the place of both ends of the sentence
        follow = np.ones((n + 1, n + 1), bool)
        follow[n, :n], follow[:n, :n], follow[:n, n] = transitions(classes, scheme)
        self.follow, self.into, self.out = map(_log_mask, (follow, follow & starts, follow & ends))
        self.within = _log_mask(follow & ~starts)

    def __call__(self, log_p: np.ndarray, spans: Sequence[Span]) -> np.ndarray:
        """The probabilities of spans; `log_p` has shape (n_tokens, n_classes)."""
        if not len(spans):
            return np.zeros(0)
        log_p = np.maximum(log_p, _FLOOR)
        # An end of the sentence is one more token, of one more class, on either side.
        border = np.full((len(log_p) + 2, log_p.shape[1] + 1), -np.inf)
        border[[0, -1], -1] = 0.0
        border[1:-1, :-1] = log_p - _log_sum(log_p, axis=1)[:, None]
        before = _sweep(border, self.follow)
        after = _sweep(border[::-1], self.follow.T)[::-1]
        total = before[-1, -1]
        if total == -np.inf:  # the classes allow no sequence of this length
            return np.zeros(len(spans))
        log_probs = [self._joint(border, before, after, *span) - total for span in spans]
        return np.exp(np.minimum(log_probs, 0.0))

    def _joint(self, log_p: Any, before: Any, after: Any, kind: str, start: int, end: int) -> float:
        """The log of the summed products of all sequences with a span."""
        of_kind = np.flatnonzero(self.kinds == kind)
        if not len(of_kind):
            return -np.inf
        start, end = start + 1, end + 1  # for the token before the sentence
        steps = self.within[np.ix_(of_kind, of_kind)]
        first = _log_sum(before[start - 1][:, None] + self.into[:, of_kind])
        inside = _sweep(log_p[start:end, of_kind], steps, first)
        last = inside[-1][:, None] + self.out[of_kind] + after[end]
        return float(_log_sum(last.ravel()))


def _log_mask(mask: np.ndarray) -> np.ndarray:
    return np.where(mask, 0.0, -np.inf)


def _log_sum(values: np.ndarray, axis: int = 0) -> np.ndarray:
    """The log of a sum of exponentials, -inf of none."""
    top = values.max(axis=axis, keepdims=True)
    top[top == -np.inf] = 0.0
    with np.errstate(divide="ignore"):
        return np.log(np.exp(values - top).sum(axis=axis)) + top.squeeze(axis)


def _sweep(log_p: np.ndarray, steps: np.ndarray, first: Any = 0.0) -> np.ndarray:
    """For each token and class the log of the summed products of the sequences up to there."""
    sums = log_p.copy()
    sums[0] += first
    for i in range(1, len(sums)):
        sums[i] += _log_sum(sums[i - 1][:, None] + steps)
    return sums


# ---- scores that mean what they say


def judged(
    spans: Sequence[ScoredSpan], true: Sequence[Any], scheme: str | None
) -> list[tuple[ScoredSpan, bool]]:
    """Predicted spans of a sentence, each with whether it is there.

    Those that reach into what nobody annotated are left out. `true` holds tags, or without a scheme
    spans, whose type is None where nobody annotated.
    """
    if scheme is None:
        gaps = [span for span in true if span[0] is None]
        known = (s for s in spans if not any(s.start < g[2] and g[1] < s.end for g in gaps))
        return [(span, span[:3] in true) for span in known]
    there = set(get_spans(true, scheme))
    return [(s, s[:3] in there) for s in spans if None not in true[s.start : s.end]]


class SpanScales:
    """Corrections of the scores of spans, for each type, from held-out spans.

    One curve is for all types together: new log-odds = a log(p) - b log(1 - p) + c, so that scores
    near 0 and near 1 may be off by different amounts. Then each type has a slope and an offset from
    its own spans. The fewer spans there are, the less is corrected.

    Parameters
    ----------
    pairs : list of (ScoredSpan, bool)
        Spans predicted for sentences that the model did not see, and whether each is there.

    Attributes
    ----------
    of_all : tuple of float
        a, b and c of all types.
    of_type : dict of tuple of float
        Slope and offset of the log-odds of each type, which come after.

    References
    ----------
    M. Kull et al., "Beta calibration", AISTATS 2017. J. Platt, "Probabilistic Outputs for Support
    Vector Machines", 1999.
    """

    def __init__(self, pairs: Sequence[tuple[ScoredSpan, bool]]) -> None:
        self.of_type: dict[str, tuple[float, float]] = {}
        self.of_all: tuple[float, ...] = (1.0, 1.0, 0.0)
        if not pairs:
            return
        spans, right = zip(*pairs, strict=True)
        truth, kinds = np.array(right), np.array([span.type for span in spans])
        scores = np.array([span.score for span in spans])
        self.of_all = _curve(scores, truth)
        log_odds = _curved(scores, self.of_all)
        for kind in sorted(set(kinds.tolist())):
            self.of_type[kind] = _scale(log_odds[kinds == kind], truth[kinds == kind])

    def __call__(self, spans: Sequence[ScoredSpan]) -> list[ScoredSpan]:
        """The spans with corrected scores."""
        corrected = []
        for span in spans:
            log_odds = _curved(span.score, self.of_all)
            log_odds = _scaled(log_odds, self.of_type.get(span.type, (1.0, 0.0)))
            corrected.append(span._replace(score=float(expit(log_odds))))
        return corrected


def _logs(scores: Any) -> np.ndarray:
    """log(p), -log(1 - p) and 1 of each score, shape (..., 3)."""
    p = np.clip(scores, 1e-9, 1 - 1e-9)
    return np.stack([np.log(p), -np.log1p(-p), np.ones_like(p)], axis=-1)


def _curve(scores: np.ndarray, truth: np.ndarray) -> tuple[float, ...]:
    """The rising curve that makes the truth likeliest, for few spans near the diagonal."""
    logs, start = _logs(scores), np.array([1.0, 1.0, 0.0])

    def loss(curve: np.ndarray) -> tuple[float, np.ndarray]:
        log_odds, prior = logs @ curve, curve - start  # the prior is that of `calibrate`
        value = -log_expit(np.where(truth, log_odds, -log_odds)).sum() + (prior**2).sum() / 2
        return value, (expit(log_odds) - truth) @ logs + prior

    bounds = [(0.0, 50.0), (0.0, 50.0), (None, None)]
    curve = minimize(loss, start, jac=True, bounds=bounds, method="L-BFGS-B").x
    share = len(truth) / (len(truth) + _FEW)
    return tuple((start + share * (curve - start)).tolist())


def _curved(scores: Any, curve: tuple[float, ...]) -> Any:
    """Corrected log-odds."""
    return _logs(scores) @ np.array(curve)


def _scale(log_odds: np.ndarray, truth: np.ndarray) -> tuple[float, float]:
    temperature, (bias,) = calibrate(log_odds[:, None], truth[:, None], biases=True)
    share = len(truth) / (len(truth) + _FEW)
    return 1 + share * (1 / temperature - 1), share * float(bias) / temperature


def _scaled(log_odds: Any, scale: tuple[float, float]) -> Any:
    slope, offset = scale
    return slope * log_odds + offset
