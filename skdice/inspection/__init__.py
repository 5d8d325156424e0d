"""Looking at data and results."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from skdice.inspection.class_balance import Imbalance, imbalance, reading_imbalance

# These are loaded at once: a function has the name of its module, and no other loads torch.
from skdice.inspection.classes import ClassFrequencyDisplay, ImbalanceDisplay
from skdice.inspection.highlighted import show_entities, show_tags
from skdice.inspection.span_scores import span_hits, span_probabilities
from skdice.inspection.tagging_errors import SpanConfusionDisplay, span_errors
from skdice.inspection.training import TrainingHistoryDisplay

if TYPE_CHECKING:
    from skdice.inspection.comparison import ComparisonDisplay
    from skdice.inspection.decision import DecisionDisplay
    from skdice.inspection.gradients import LossGradientDisplay
    from skdice.inspection.misfits import alignment_report
    from skdice.inspection.next_rows import next_to_label
    from skdice.inspection.rejection import RejectDisplay
    from skdice.inspection.report import html_report
    from skdice.inspection.suspects import suspect_labels
    from skdice.inspection.sweep import TverskySweepDisplay

# What needs a model is loaded, and torch with it, on first use.
_MODULES = {
    "ComparisonDisplay": "comparison",
    "DecisionDisplay": "decision",
    "LossGradientDisplay": "gradients",
    "RejectDisplay": "rejection",
    "TverskySweepDisplay": "sweep",
    "alignment_report": "misfits",
    "html_report": "report",
    "next_to_label": "next_rows",
    "suspect_labels": "suspects",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(f"skdice.inspection.{_MODULES[name]}"), name)
    raise AttributeError(f"module 'skdice.inspection' has no attribute {name!r}")


__all__ = [
    "ClassFrequencyDisplay",
    "ComparisonDisplay",
    "DecisionDisplay",
    "Imbalance",
    "ImbalanceDisplay",
    "LossGradientDisplay",
    "RejectDisplay",
    "SpanConfusionDisplay",
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
    "span_hits",
    "span_probabilities",
    "suspect_labels",
]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
