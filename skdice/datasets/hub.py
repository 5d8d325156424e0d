"""A bridge from Hugging Face `datasets` objects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from skdice._checks import checked, shown
from skdice.inputs.rows import as_row_list


@checked
def from_hf(
    dataset: Any, *, text_columns: str | Sequence[str], label_column: str
) -> tuple[list[Any], Any]:
    """X and y of a `datasets.Dataset`, with class ids turned into names.

    Parameters
    ----------
    dataset : datasets.Dataset
        One split, such as ``load_dataset(...)["train"]``.
    text_columns : str or list of one or two str
        The column of the text or tokens, or the two columns of a pair.
    label_column : str
        The column of the label, or of the tags.

    Returns
    -------
    X : list of str, of (str, str), or of lists of str
    y : list, or int array of shape (n, n_names)
        Names where the column is a ``ClassLabel`` (or a sequence of them beside tokens), values
        otherwise. A sequence of ``ClassLabel`` beside texts is a multi-label problem, whose rows
        are 0 and 1 for each of ``features[label_column].feature.names``, as
        `DiceSequenceClassifier` takes them.

    Raises
    ------
    TypeError
        If `dataset` is not a single split.
    ValueError
        If a column is missing, or a row has no label.

    Examples
    --------
    >>> from datasets import ClassLabel, Dataset, Features, Value
    >>> from skdice.datasets import from_hf
    >>> features = Features({"text": Value("string"), "label": ClassLabel(names=["ham", "spam"])})
    >>> rows = Dataset.from_dict({"text": ["hi", "win"], "label": [0, 1]}, features=features)
    >>> from_hf(rows, text_columns="text", label_column="label")
    (['hi', 'win'], ['ham', 'spam'])
    """
    features = getattr(dataset, "features", None)
    if features is None or not hasattr(dataset, "column_names"):
        what = f"has the splits {list(dataset)}" if isinstance(dataset, dict) else "is no dataset"
        raise TypeError(f"dataset {what}: give one split, such as dataset['train']")
    columns = (
        [text_columns]
        if isinstance(text_columns, str)
        else as_row_list("text_columns", text_columns)
    )
    for what, name in [
        *(("text_columns", name) for name in columns),
        ("label_column", label_column),
    ]:
        if name not in list(features):
            raise ValueError(
                f"{what}: the dataset has no column {shown(name)}: it has {list(features)}"
            )
    if len(columns) not in (1, 2):
        raise ValueError(
            f"text_columns={shown(text_columns)} must name one column, or two for a pair"
        )
    dataset = dataset.with_format(None)  # plain lists, whatever format the caller has set
    texts = [list(dataset[name]) for name in columns]
    X = texts[0] if len(texts) == 1 else list(zip(*texts, strict=True))
    labels = list(dataset[label_column])
    feature = features[label_column]
    inner = getattr(feature, "feature", None)
    names = getattr(feature, "names", None) or getattr(inner, "names", None)
    if names is None:
        return X, labels
    for i, value in enumerate(labels):
        for label in value if isinstance(value, list) else [value]:
            if label is None or label < 0:
                raise ValueError(
                    f"{label_column}[{i}] holds {label!r}, which marks rows without a label "
                    "(as in hidden test splits): leave them out"
                )
    if inner is None:
        return X, [names[label] for label in labels]
    if getattr(features[columns[0]], "dtype", None) not in ("string", "large_string"):
        return X, [[names[label] for label in row] for row in labels]
    y = np.zeros((len(labels), len(names)), dtype=int)
    for row, chosen in zip(y, labels, strict=True):
        row[chosen] = 1
    return X, y


def named_rows(dataset: Any) -> list[dict[str, Any]]:
    """The rows of one split, with class ids turned into names at any depth."""
    features = getattr(dataset, "features", None)
    if features is None or not hasattr(dataset, "column_names"):
        what = f"has the splits {list(dataset)}" if isinstance(dataset, dict) else "is no dataset"
        raise TypeError(f"dataset {what}: give one split, such as dataset['train'], or a path")
    return [
        {name: _named(value, features[name], f"row {i}, {name}") for name, value in row.items()}
        for i, row in enumerate(dataset.with_format(None))
    ]


def _named(value: Any, feature: Any, where: str) -> Any:
    names, inner = getattr(feature, "names", None), getattr(feature, "feature", feature)
    if isinstance(value, list):
        inner = inner[0] if isinstance(inner, list) else inner
        return [_named(each, inner, where) for each in value]
    if isinstance(value, dict):
        return {name: _named(each, inner[name], where) for name, each in value.items()}
    if names is None or value is None:
        return value
    if not 0 <= value < len(names):
        raise ValueError(
            f"{where} holds {value!r}, which marks rows without a label: leave them out"
        )
    return names[value]
