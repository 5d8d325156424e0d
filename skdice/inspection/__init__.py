"""Looking at data and results."""

from skdice.inspection.class_balance import imbalance
from skdice.inspection.comparison import ComparisonDisplay
from skdice.inspection.decision import DecisionDisplay
from skdice.inspection.highlighted import show_entities, show_tags
from skdice.inspection.misfits import alignment_report
from skdice.inspection.next_rows import next_to_label
from skdice.inspection.rejection import RejectDisplay
from skdice.inspection.report import html_report
from skdice.inspection.span_scores import span_probabilities
from skdice.inspection.suspects import suspect_labels
from skdice.inspection.tagging_errors import SpanConfusionDisplay, span_errors

__all__ = [
    "ComparisonDisplay",
    "DecisionDisplay",
    "RejectDisplay",
    "SpanConfusionDisplay",
    "alignment_report",
    "html_report",
    "imbalance",
    "next_to_label",
    "show_entities",
    "show_tags",
    "span_errors",
    "span_probabilities",
    "suspect_labels",
]
