"""Looking at data and results."""

# ruff: noqa: F403
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from skdice.inspection.class_balance import *
    from skdice.inspection.comparison import *
    from skdice.inspection.decision import *
    from skdice.inspection.highlighted import *
    from skdice.inspection.misfits import *
    from skdice.inspection.next_rows import *
    from skdice.inspection.rejection import *
    from skdice.inspection.report import *
    from skdice.inspection.span_scores import *
    from skdice.inspection.suspects import *
    from skdice.inspection.tagging_errors import *
    from skdice.inspection.training import *

# Each is loaded on first use: counting labels loads no torch.
_MODULES = {
    "ComparisonDisplay": "comparison",
    "DecisionDisplay": "decision",
    "ImbalanceDisplay": "class_balance",
    "RejectDisplay": "rejection",
    "SpanConfusionDisplay": "tagging_errors",
    "TrainingHistoryDisplay": "training",
    "alignment_report": "misfits",
    "html_report": "report",
    "imbalance": "class_balance",
    "next_to_label": "next_rows",
    "show_entities": "highlighted",
    "show_tags": "highlighted",
    "span_errors": "tagging_errors",
    "span_probabilities": "span_scores",
    "suspect_labels": "suspects",
}
__all__ = [*_MODULES]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(f"skdice.inspection.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
