"""Metrics over classes, spans and tokens, and scorers for scikit-learn's model selection."""

# ruff: noqa: F403
from skdice.metrics import answers, calibration, classification, spans
from skdice.metrics.answers import *
from skdice.metrics.calibration import *
from skdice.metrics.classification import *
from skdice.metrics.decisions import bounds, objectives, rejection
from skdice.metrics.decisions.bounds import *
from skdice.metrics.decisions.objectives import *
from skdice.metrics.decisions.rejection import *
from skdice.metrics.spans import *

__all__ = [
    *answers.__all__,
    *bounds.__all__,
    *calibration.__all__,
    *classification.__all__,
    *objectives.__all__,
    *rejection.__all__,
    *spans.__all__,
]
