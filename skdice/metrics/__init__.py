"""Metrics over spans and tokens, and scorers for scikit-learn's model selection."""

from skdice.metrics.positive import positive_class
from skdice.metrics.qa import (
    answer_exact_match_score,
    answer_exact_match_scorer,
    answer_f1_score,
    answer_f1_scorer,
    normalize_answer,
)
from skdice.metrics.span import (
    span_f1_score,
    span_f1_scorer,
    span_macro_f1_scorer,
    span_precision_recall_fscore_support,
    span_precision_score,
    span_precision_scorer,
    span_recall_score,
    span_recall_scorer,
    span_report,
    spans_f1_score,
    token_f1_score,
    token_f1_scorer,
)

__all__ = [
    "answer_exact_match_score",
    "answer_exact_match_scorer",
    "answer_f1_score",
    "answer_f1_scorer",
    "normalize_answer",
    "positive_class",
    "span_f1_score",
    "span_f1_scorer",
    "span_macro_f1_scorer",
    "span_precision_recall_fscore_support",
    "span_precision_score",
    "span_precision_scorer",
    "span_recall_score",
    "span_recall_scorer",
    "span_report",
    "spans_f1_score",
    "token_f1_score",
    "token_f1_scorer",
]
