"""Looking at data and results."""

from skdice.inspection.alignment import alignment_report
from skdice.inspection.bias import BiasDisplay
from skdice.inspection.classes import ClassFrequencyDisplay, ImbalanceDisplay
from skdice.inspection.comparison import ComparisonDisplay
from skdice.inspection.decision import DecisionDisplay
from skdice.inspection.gradients import LossGradientDisplay
from skdice.inspection.imbalance import Imbalance, imbalance, reading_imbalance
from skdice.inspection.next_rows import next_to_label
from skdice.inspection.reliability import SpanReliabilityDisplay
from skdice.inspection.report import html_report
from skdice.inspection.spans import SpanConfusionDisplay, show_entities, show_tags, span_errors
from skdice.inspection.suspects import suspect_labels
from skdice.inspection.sweep import TverskySweepDisplay
from skdice.inspection.threshold import ThresholdDisplay
from skdice.inspection.training import TrainingHistoryDisplay
from skdice.text.posterior import span_probabilities

__all__ = [
    "BiasDisplay",
    "ClassFrequencyDisplay",
    "ComparisonDisplay",
    "DecisionDisplay",
    "Imbalance",
    "ImbalanceDisplay",
    "LossGradientDisplay",
    "SpanConfusionDisplay",
    "SpanReliabilityDisplay",
    "ThresholdDisplay",
    "TrainingHistoryDisplay",
    "TverskySweepDisplay",
    "alignment_report",
    "html_report",
    "imbalance",
    "next_to_label",
    "reading_imbalance",
    "show_entities",
    "show_tags",
    "span_errors",
    "span_probabilities",
    "suspect_labels",
]
