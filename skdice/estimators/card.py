"""The model card of a saved estimator."""

from __future__ import annotations

import re
from importlib.metadata import version
from numbers import Real
from typing import Any

import numpy as np

from skdice import __version__, backbones
from skdice.engine.module import TaskModel
from skdice.losses import resolve_loss
from skdice.tasks import TASKS
from skdice.text.words import marks_subwords

_READER = """\
from transformers import AutoModelForQuestionAnswering, AutoTokenizer
model = AutoModelForQuestionAnswering.from_pretrained("FOLDER_OR_REPO_ID")
tokenizer = AutoTokenizer.from_pretrained("FOLDER_OR_REPO_ID")"""


def model_card(estimator: Any, metrics: dict[str, float]) -> str:
    """Markdown, with the metadata that the hub reads."""
    from huggingface_hub import ModelCardData

    if not all(isinstance(value, Real) for value in metrics.values()):
        raise TypeError(f"metrics={metrics!r} must map names to numbers, as in {{'test F1': 0.47}}")
    pipeline_tag = TASKS[estimator.task].hub_tag
    native = isinstance(estimator._module, TaskModel)
    name = str(estimator.backbone)
    on_hub = backbones.is_hub_id(name)
    data = ModelCardData(
        base_model=name if on_hub else None,
        library_name="transformers" if native else "skdice",
        pipeline_tag=pipeline_tag,
        tags=["skdice", "imbalanced"],
    )
    rows = [
        ("Task", estimator.task),
        ("Backbone", name if on_hub else "a local folder"),
        ("Architecture", type(estimator._module.model if native else estimator._module).__name__),
        ("Loss", f"{_code(estimator.loss)}, that is {_code(repr(resolve_loss(estimator.loss)))}"),
        ("Epochs", f"{estimator.n_iter_}"),
        ("Peak learning rate", f"{estimator.lr_:g}" if hasattr(estimator, "lr_") else "unknown"),
        ("Batch size", f"{estimator.batch_size}"),
        ("skdice", __version__),
        *((package, version(package)) for package in ("torch", "transformers", "scikit-learn")),
    ]
    parts = [
        f"---\n{data.to_yaml()}\n---\n",
        f"# {type(estimator).__name__}\n",
        f"A model for {pipeline_tag}, trained with skdice for "
        "data in which the positive class is rare.\n",
        _table(("", ""), rows),
        *_data(estimator),
    ]
    if metrics:
        shown = [(_text(metric), f"{value:.4g}") for metric, value in metrics.items()]
        parts += ["## Scores\n\nAs given by whoever trained the model.\n", _table(("", ""), shown)]
    return "\n".join([*parts, "## Use\n", *_usage(estimator, native)])


def _data(estimator: Any) -> list[str]:
    """The number of training examples of each class, if they were counted."""
    seen = getattr(estimator, "_seen", None)
    if seen is None:
        return []
    labels = [str(label) for label in estimator._outputs.tolist()]
    counts = dict(zip(labels, np.asarray(seen)[:-1], strict=True))
    unit, negative = "examples", None
    if estimator.task in ("tagging", "entities"):
        unit, negative = "tokens", "O"
    elif hasattr(estimator, "positive_"):
        negative = labels[1 - estimator.positive_]
    order = sorted(counts, key=lambda name: -counts[name])
    parts = [
        "## Training data\n",
        _table(("class", unit), [(_code(name), f"{counts[name]:g}") for name in order]),
    ]
    positives = sum(n for name, n in counts.items() if name != negative)
    if negative in counts and positives:
        ratio = counts[negative] / positives
        parts.append(f"{ratio:.3g} {_code(negative)} to one of all others.\n")
    return parts


def _usage(estimator: Any, native: bool) -> list[str]:
    """Code that loads the model and predicts, with skdice and with transformers."""
    kind, task = type(estimator).__name__, estimator.task
    own = f"""\
from skdice import {kind}
model = {kind}.from_pretrained("FOLDER_OR_REPO_ID")
model.predict({TASKS[task].example})"""
    if not native:
        return [
            _block(own),
            "Its head is skdice's own: transformers cannot read it.\n",
            *([f"{_long_texts(estimator)}.\n"] if task == "classification" else []),
        ]
    if task == "qa":
        return [_block(own), _block(_READER)]
    caveat = scheme_caveat(estimator)
    joins = task == "entities" or (task == "tagging" and not caveat)
    more = ', aggregation_strategy="first"' if joins else ""
    lines = f"""\
from transformers import pipeline
model = pipeline("{TASKS[task].hub_tag}", "FOLDER_OR_REPO_ID"{more})
"""
    if task == "entities" and not marks_subwords(estimator.tokenizer_):
        lines += """\
from skdice.text import pipeline_entities
pipeline_entities(model, ["Ann lives in Rome."])"""
        caveat = (
            "With this kind of tokenizer a pipeline takes all between two blanks for one word, "
            "punctuation included: `pipeline_entities` gives it the words."
        )
    else:
        lines += 'model("Ann lives in Rome")'
    if task == "classification":
        caveat = (
            f"{_long_texts(estimator)}. A pipeline knows no windows. It needs `truncation=True, "
            f"max_length={estimator._max_length()}` in its call, and then reads the beginning only."
        )
    else:
        caveat += f"\n\n{_parts_and_scores(estimator)}{_sequences(estimator)}"
    return [_block(own), _block(lines), f"{caveat.strip()}\n"]


def _long_texts(estimator: Any) -> str:
    """What happens to texts that do not fit in one input."""
    how = f"reads them in windows, whose logits it pools ({estimator.window_pooling})"
    if estimator.long_texts == "truncate":
        how = "cuts them there"
    return f"Texts of more than {estimator._max_length()} subwords: skdice {how}"


def _parts_and_scores(estimator: Any) -> str:
    """What a pipeline makes of long texts and of the scores of entities."""
    longest, limit = estimator._max_length(), estimator.tokenizer_.model_max_length
    shown = limit if limit < 10**9 else f"not set here: set it to {longest}, or they are an error"
    return (
        f"skdice reads texts of more than {longest} subwords in windows. A pipeline cuts them at "
        f"`model.tokenizer.model_max_length` ({shown}) and does not warn; with `stride=` it reads "
        "them in parts that overlap. The `score` of a pipeline is the mean of the probabilities of "
        "an entity's tags. That of skdice is the probability that just this entity is there."
    )


def _sequences(estimator: Any) -> str:
    """How tags are predicted, if a pipeline predicts them in another way."""
    if not estimator.constrained or estimator.scheme_ == "plain":
        return ""
    return (
        " skdice predicts the best well-formed sequence of tags, and a pipeline the best tag of "
        "each word alone, as skdice does with `constrained=False`: a few entities may differ."
    )


def scheme_caveat(estimator: Any) -> str:
    """Why a pipeline cannot join the tags of this tagger, if it cannot."""
    if estimator.task != "tagging" or estimator.scheme_ == "plain":
        return ""
    if all(tag == "O" or tag[:2] in ("B-", "I-") for tag in estimator.classes_.tolist()):
        return ""
    return (
        f"A pipeline of transformers joins tags B-TYPE and I-TYPE only, and this tagger's are in "
        f"the scheme {estimator.scheme_!r}: with an `aggregation_strategy`, parts of an entity "
        "become entities. Call `predict` of skdice instead, or train on "
        "`skdice.metrics.convert_scheme(y)`, which gives IOB2."
    )


def _block(lines: str) -> str:
    return f"```python\n{lines}\n```\n"


def _code(value: Any) -> str:
    """Any value as code in a line or cell of Markdown, which nothing in it can leave."""
    text = _printable(value)
    return f"`{text}`" if re.fullmatch(r"(?! )[^`|\\]+(?<! )", text) else _escaped(text)


def _text(value: Any) -> str:
    """A name as it is, if it is plain, or else as code."""
    text = _printable(value)
    plain = r"(?!.*www\.)([^\W_]|(?<=[^\W_])_(?=[^\W_])|[ .,()%/-])+"
    return text if re.fullmatch(plain, text) else _escaped(text)


def _printable(value: Any) -> str:
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in str(value))


def _escaped(text: str) -> str:
    shown = "".join(c if c.isalnum() or c == " " else f"&#{ord(c)};" for c in text)
    return f"<code>{shown}</code>"


def _table(header: tuple[str, str], rows: list[tuple[str, str]]) -> str:
    lines = [f"| {a} | {b} |" for a, b in (header, ("---", "---"), *rows)]
    return "\n".join(lines) + "\n"
