"""The model card of a saved estimator."""

from __future__ import annotations

import re
from importlib.metadata import version
from numbers import Real
from typing import Any

import numpy as np

from skdice import backbones
from skdice._types import Model
from skdice._version import __version__
from skdice.engine.module import TaskModel
from skdice.losses.base import resolve_loss
from skdice.tasks.cards import card_of


def model_card(estimator: Model, metrics: dict[str, float], card: dict[str, Any]) -> str:
    """Markdown, with the metadata that the hub reads; `card` holds more of it, or other."""
    if not all(isinstance(value, Real) for value in metrics.values()):
        raise TypeError(f"metrics={metrics!r} must map names to numbers, as in {{'test F1': 0.47}}")
    native = isinstance(estimator.module_, TaskModel)
    parts = [
        f"---\n{_metadata(estimator, metrics, card)}\n---\n",
        f"# {type(estimator).__name__}\n",
        _table(("", ""), _settings(estimator, native)),
        *_data(estimator),
    ]
    if metrics:
        shown = [(_code(metric), f"{value:.4g}") for metric, value in metrics.items()]
        parts += ["## Scores\n\nAs given by whoever trained the model.\n", _table(("", ""), shown)]
    return "\n".join([*parts, "## Use\n", *_usage(estimator, native)])


def _settings(estimator: Model, native: bool) -> list[tuple[str, str]]:
    """What was trained, and how."""
    name = str(estimator.backbone)
    on_hub = backbones.is_hub_id(name)
    at = f" at {_code(estimator.revision)}" if estimator.revision else ""
    epochs = len(estimator.net_.epochs())
    loss = f"{_code(estimator.loss)}, that is {_code(repr(resolve_loss(estimator.loss)))}"
    tuned = getattr(estimator, "tuned_for_", None)
    return [
        ("Task", estimator.task.name),
        ("Backbone", f"{name}{at}" if on_hub else "a local folder"),
        ("Architecture", type(estimator.module_.model if native else estimator.module_).__name__),
        ("Loss", loss if epochs else "not trained by skdice"),
        *([("Decision", f"tuned for {_code(tuned['objective'])}")] if tuned else []),
        ("Epochs", f"{epochs}"),
        ("Peak learning rate", f"{estimator.lr_:g}" if hasattr(estimator, "lr_") else "unknown"),
        ("Batch size", f"{estimator.batch_size}"),
        ("skdice", __version__),
        *((package, version(package)) for package in ("torch", "transformers", "scikit-learn")),
    ]


def _metadata(estimator: Model, metrics: dict[str, float], card: dict[str, Any]) -> str:
    """YAML: what is known of the model, and what `card` says of it."""
    from huggingface_hub import EvalResult, ModelCardData

    name, task = str(estimator.backbone), estimator.task
    known = {
        "base_model": name if backbones.is_hub_id(name) else None,
        "library_name": "transformers" if isinstance(estimator.module_, TaskModel) else "skdice",
        "license": backbones.license_of(name, estimator.revision),
        "model_name": type(estimator).__name__,
        "pipeline_tag": card_of(task).hub_tag,
        "tags": ["skdice", "imbalanced"],
    }
    datasets = card.get("datasets") or "unknown"
    dataset = datasets if isinstance(datasets, str) else str(datasets[0])
    scores = [
        EvalResult(
            task_type=card_of(task).hub_tag,
            dataset_type=dataset,
            dataset_name=dataset,
            metric_type=metric,
            metric_value=float(value),
        )
        for metric, value in metrics.items()
    ]
    data = {**known, "eval_results": scores or None, **card}
    return ModelCardData(**data).to_yaml()


def _data(estimator: Model) -> list[str]:
    """The number of training examples of each class, if they were counted."""
    if not hasattr(estimator, "class_counts_"):
        return []
    counts = zip(estimator.outputs_.tolist(), np.asarray(estimator.class_counts_), strict=True)
    rows = [(_code(label), f"{n:g}") for label, n in sorted(counts, key=lambda pair: -pair[1])]
    card = card_of(estimator.task)
    negative = card.background(estimator)
    parts = ["## Training data\n", _table(("class", card.unit), rows)]
    return parts if negative is None else [*parts, f"{_code(negative)} is the negative class.\n"]


def _usage(estimator: Model, native: bool) -> list[str]:
    """Code that loads the model and predicts, with skdice and with transformers."""
    kind, card = type(estimator).__name__, card_of(estimator.task)
    own = f"""\
from skdice import {kind}
model = {kind}.from_pretrained("FOLDER_OR_REPO_ID")
model.predict({card.example})"""
    notes = card.notes(estimator, native)
    if native:
        parts = [_block(own), _block(card.transformers_code(estimator))]
    else:
        parts = [_block(own), f"{card.served_by(estimator)}\n"]
    return [*parts, f"{notes}\n"] if notes else parts


def _block(lines: str) -> str:
    return f"```python\n{lines}\n```\n"


def _code(value: object) -> str:
    """Any value as code in a line or cell of Markdown, which nothing in it can leave."""
    text = "".join(c if c.isprintable() else repr(c)[1:-1] for c in str(value))
    if re.fullmatch(r"(?! )[^`|\\]+(?<! )", text):
        return f"`{text}`"
    return f"<code>{''.join(c if c.isalnum() or c == ' ' else f'&#{ord(c)};' for c in text)}</code>"


def _table(header: tuple[str, str], rows: list[tuple[str, str]]) -> str:
    lines = [f"| {a} | {b} |" for a, b in (header, ("---", "---"), *rows)]
    return "\n".join(lines) + "\n"
