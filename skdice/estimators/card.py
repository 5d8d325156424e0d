"""The model card that lies beside a saved estimator."""

from __future__ import annotations

from typing import Any

import numpy as np

from skdice import backbones
from skdice.engine.module import TaskModel
from skdice.losses import resolve_loss

__all__ = ["model_card"]

# From a task to the hub's name for it.
_TASKS = {
    "tagging": "token-classification",
    "classification": "text-classification",
    "qa": "question-answering",
    "mrc-ner": "token-classification",
}
_EXAMPLE = {
    "tagging": '[["Ann", "lives", "in", "Rome"]]',
    "classification": '["Win a free prize now"]',
    "qa": '[("Who sings?", "Every day Ann sings in Rome.")]',
    "mrc-ner": '[["Ann", "lives", "in", "Rome"]]',
}


def model_card(estimator: Any, metrics: dict[str, float]) -> str:
    """Markdown, with the metadata that the hub reads."""
    from huggingface_hub import ModelCardData

    from skdice import __version__

    pipeline_tag = _TASKS[estimator.task]
    native = isinstance(estimator._module, TaskModel)
    name = str(estimator.backbone)
    data = ModelCardData(
        base_model=name if backbones.is_hub_id(name) else None,
        library_name="transformers" if native else "skdice",
        pipeline_tag=pipeline_tag,
        tags=["skdice", "imbalanced"],
    )
    kind = type(estimator).__name__
    rows = [
        ("Task", estimator.task),
        ("Backbone", name if backbones.is_hub_id(name) else "a local folder"),
        ("Architecture", type(estimator._module.model if native else estimator._module).__name__),
        ("Loss", f"`{estimator.loss}`, that is `{resolve_loss(estimator.loss)!r}`"),
        ("Epochs", f"{estimator.n_iter_}"),
        ("Peak learning rate, batch size", f"{estimator.lr}, {estimator.batch_size}"),
        ("skdice", __version__),
        *((package, _version(package)) for package in ("torch", "transformers", "scikit-learn")),
    ]
    parts = [
        f"---\n{data.to_yaml()}\n---\n",
        f"# {kind}\n",
        f"A model for {pipeline_tag}, trained with skdice for "
        "data in which the positive class is rare.\n",
        _table(("", ""), rows),
        *_data(estimator),
    ]
    if metrics:
        shown = [(metric, f"{value:.4g}") for metric, value in metrics.items()]
        parts += ["## Scores\n\nAs given by whoever trained the model.\n", _table(("", ""), shown)]
    parts += ["## Use\n", _usage(estimator, kind, native)]
    return "\n".join(parts)


def _data(estimator: Any) -> list[str]:
    """How many examples of each class training held, if it was counted."""
    seen = getattr(estimator, "_seen", None)
    if seen is None or not hasattr(estimator, "classes_"):
        return []
    counts = dict(zip(map(str, estimator.classes_.tolist()), np.asarray(seen)[:-1], strict=True))
    unit = "tokens" if estimator.task == "tagging" else "examples"
    negative = "O" if estimator.task == "tagging" else _negative(estimator)
    order = sorted(counts, key=lambda name: -counts[name])
    parts = [
        "## Training data\n",
        _table(("class", unit), [(f"`{name}`", f"{counts[name]:g}") for name in order]),
    ]
    positives = sum(n for name, n in counts.items() if name != negative)
    if negative in counts and positives:
        ratio = counts[negative] / positives
        parts.append(f"{ratio:.3g} `{negative}` to one of all others.\n")
    return parts


def _negative(estimator: Any) -> str | None:
    """The negative class of two."""
    if not hasattr(estimator, "positive_"):
        return None
    return str(estimator.classes_.tolist()[1 - estimator.positive_])


def _usage(estimator: Any, kind: str, native: bool) -> str:
    lines = [
        "```python",
        f"from skdice import {kind}",
        f'model = {kind}.from_pretrained("FOLDER_OR_REPO_ID")',
        f"model.predict({_EXAMPLE[estimator.task]})",
        "```\n",
    ]
    if not native:
        lines.append("Its head is skdice's own: transformers cannot read it.\n")
    elif estimator.task == "qa":
        auto = f"AutoModelFor{backbones.HEADS[estimator.task]}"
        lines += [
            "```python",
            f"from transformers import {auto}, AutoTokenizer",
            f'model = {auto}.from_pretrained("FOLDER_OR_REPO_ID")',
            'tokenizer = AutoTokenizer.from_pretrained("FOLDER_OR_REPO_ID")',
            "```\n",
        ]
    else:
        more = ', aggregation_strategy="first"' if estimator.task == "tagging" else ""
        lines += [
            "```python",
            "from transformers import pipeline",
            f'model = pipeline("{_TASKS[estimator.task]}", "FOLDER_OR_REPO_ID"{more})',
            'model("Ann lives in Rome")',
            "```\n",
        ]
    return "\n".join(lines)


def _table(header: tuple[str, str], rows: list[tuple[str, str]]) -> str:
    lines = [f"| {a} | {b} |" for a, b in (header, ("---", "---"), *rows)]
    return "\n".join(lines) + "\n"


def _version(package: str) -> str:
    from importlib.metadata import version

    return version(package)
