"""Train one estimator per loss on the same data and seeds, and compare."""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.metrics import precision_recall_fscore_support

from skdice.datasets.conll import write_text
from skdice.metrics import span_precision_recall_fscore_support

__all__ = ["Comparison", "Row", "compare_losses", "precision_recall_f1"]


@dataclass
class Row:
    """One loss: its runs, one for each seed that is finished."""

    label: str
    runs: list[dict[str, float]] = field(default_factory=list)

    def values(self, name: str) -> list[float]:
        """``precision``, ``recall``, ``f1`` or ``seconds`` of every run."""
        return [run[name] for run in self.runs]

    def mean(self, name: str) -> float:
        """Mean over the runs; NaN without any."""
        return float(np.mean(self.values(name))) if self.runs else float("nan")

    def sd(self, name: str) -> float:
        """Standard deviation over the runs (n - 1); NaN below two."""
        return float(np.std(self.values(name), ddof=1)) if len(self.runs) > 1 else float("nan")


@dataclass
class Comparison:
    """What `compare_losses` found."""

    title: str
    measure: str
    rows: list[Row]
    settings: dict[str, Any]
    environment: dict[str, str]

    def to_dict(self) -> dict[str, Any]:
        """All figures as plain values."""
        return {
            "title": self.title,
            "measure": self.measure,
            "settings": self.settings,
            "environment": self.environment,
            "rows": [
                {
                    "label": row.label,
                    "n_runs": len(row.runs),
                    **{
                        name: {"mean": _finite(row.mean(name)), "sd": _finite(row.sd(name))}
                        for name in ("precision", "recall", "f1", "seconds")
                    },
                    "runs": row.runs,
                }
                for row in self.rows
            ],
        }

    def to_json(self, path: str | Path) -> Path:
        """Write all figures; the file takes its place when it is complete."""
        write_text(Path(path), json.dumps(self.to_dict(), indent=2, ensure_ascii=False) + "\n")
        return Path(path)


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


def precision_recall_f1(estimator: Any, X: Any, y: Any) -> tuple[dict[str, float], str]:
    """Precision, recall and F1 of a fitted estimator, and what they are of.

    Spans (micro) for a tagger, tokens for plain tags; the positive class of two; the macro average
    of more classes.
    """
    predicted = estimator.predict(X)
    if hasattr(estimator, "scheme_"):
        values = span_precision_recall_fscore_support(
            y, predicted, average="micro", scheme=estimator.scheme_
        )
        measure = "tokens, micro" if estimator.scheme_ == "plain" else "spans, micro"
    elif hasattr(estimator, "positive_"):
        positive = estimator.classes_[estimator.positive_]
        values = precision_recall_fscore_support(
            np.asarray(y) == positive, predicted == positive, average="binary", zero_division=0
        )
        measure = f"class {positive!s}"
    else:
        values = precision_recall_fscore_support(y, predicted, average="macro", zero_division=0)
        measure = "classes, macro"
    return dict(zip(("precision", "recall", "f1"), map(float, values[:3]), strict=True)), measure


def compare_losses(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    X_test: Any,
    y_test: Any,
    X_val: Any = None,
    y_val: Any = None,
    losses: Sequence[Any] = ("ce", "weighted_ce", "focal", "dice", "tversky", "dsc"),
    seeds: int | Sequence[int] = 3,
    title: str = "",
    on_run: Callable[[Comparison, Row], None] | None = None,
) -> Comparison:
    """Fit `estimator` once for each loss and seed, and score it on the test data.

    Parameters
    ----------
    estimator : DiceTokenClassifier or DiceSequenceClassifier
        Cloned for every run, with ``loss`` and ``random_state`` set.
    X, y : training data
    X_test, y_test : test data
    X_val, y_val : validation data, default=None
        Handed to ``fit``; with ``early_stopping=True`` they choose the epoch.
    losses : list of str or Loss, default=all six names
    seeds : int or list of int, default=3
        An int is that many seeds, from 0.
    title : str, default=""
    on_run : callable, default=None
        Called with the comparison and the row after each finished run.

    Returns
    -------
    Comparison

    Raises
    ------
    ValueError
        If `losses` or `seeds` is empty, or a loss is unknown.
    """
    from skdice.losses import resolve_loss

    chosen = list(range(seeds)) if isinstance(seeds, int) else list(seeds)
    if not chosen or not losses:
        raise ValueError(f"losses={losses!r} and seeds={seeds!r} must each name at least one")
    for loss in losses:
        resolve_loss(loss)
    settings: dict[str, Any] = {
        name: value
        for name, value in estimator.get_params(deep=False).items()
        if isinstance(value, (str, int, float, bool, type(None)))
        and name not in ("loss", "random_state")
    }
    settings.update(
        seeds=chosen,
        n_train=len(X),
        n_val=0 if X_val is None else len(X_val),
        n_test=len(X_test),
    )
    rows = [Row(loss if isinstance(loss, str) else repr(loss)) for loss in losses]
    comparison = Comparison(title, "", rows, settings, _environment())
    # Seed by seed, so that what an interrupt leaves compares all losses.
    for seed in chosen:
        for loss, row in zip(losses, rows, strict=True):
            model = clone(estimator).set_params(
                loss=loss if isinstance(loss, str) else clone(loss), random_state=seed
            )
            started = time.perf_counter()
            model.fit(X, y, X_val=X_val, y_val=y_val)
            seconds = time.perf_counter() - started
            figures, comparison.measure = precision_recall_f1(model, X_test, y_test)
            row.runs.append({"seed": seed, **figures, "seconds": seconds})
            if on_run is not None:
                on_run(comparison, row)
    return comparison


def _environment() -> dict[str, str]:
    packages = ("skdice", "torch", "transformers", "scikit-learn", "skorch")
    found = {}
    for name in packages:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return {
        **found,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "date": time.strftime("%Y-%m-%d"),
    }
