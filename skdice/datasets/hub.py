"""A bridge from Hugging Face `datasets` objects."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from sklearn.preprocessing import MultiLabelBinarizer

from skdice._checks import checked
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
    features = _features(dataset)
    single = isinstance(text_columns, str)
    columns = [text_columns] if single else as_row_list("text_columns", text_columns)
    if len(columns) not in (1, 2):
        raise ValueError(f"text_columns={columns} must name one column, or two for a pair")
    chosen = dataset.select_columns(list(dict.fromkeys([*columns, label_column])))
    rows = [
        {name: _named(value, features[name], f"row {i}, {name}") for name, value in row.items()}
        for i, row in enumerate(chosen.with_format(None))
    ]
    X = list(map(operator.itemgetter(*columns), rows))  # a value of one column, a tuple of two
    y = [row[label_column] for row in rows]
    if None in y:
        raise ValueError(f"{label_column}[{y.index(None)}] is None: leave out rows without a label")
    names = getattr(getattr(features[label_column], "feature", None), "names", None)
    if names is None or not (X and isinstance(X[0], (str, tuple))):
        return X, y
    return X, MultiLabelBinarizer(classes=names).fit_transform(y)


def _features(dataset: Any) -> Any:
    features = getattr(dataset, "features", None)
    if features is None or not hasattr(dataset, "column_names"):
        what = f"has the splits {list(dataset)}" if isinstance(dataset, dict) else "is no dataset"
        raise TypeError(f"dataset {what}: give one split, such as dataset['train']")
    return features


def _named(value: Any, feature: Any, where: str) -> Any:
    names, inner = getattr(feature, "names", None), getattr(feature, "feature", feature)
    if isinstance(value, list):
        inner = inner[0] if isinstance(inner, list) else inner
        return [_named(each, inner, where) for each in value]
    if names is None or value is None:
        return value
    if not 0 <= value < len(names):
        problem = "which marks rows without a label (as in hidden test splits): leave them out"
        raise ValueError(f"{where} holds {value!r}, {problem}")
    return names[value]
