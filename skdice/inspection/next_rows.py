"""Rows of a pool that are worth a label."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from skdice._checks import check_choice, check_has, check_range, checked, naming, shown
from skdice._types import Data
from skdice.estimators.before_folds import check_rows
from skdice.estimators.evaluation import outputs_of
from skdice.inputs.labels import label_table
from skdice.inputs.rows import as_row_list, row_keys
from skdice.inputs.sentences import as_sentences
from skdice.inspection.suspects import Record, innermost, texts_of, with_texts
from skdice.metrics.decisions.positive import own_positive
from skdice.tasks.files import SpanFiles, files_of

STRATEGIES = ("mixed", "positives", "margin")
REASONS = {"positives": "probably positive", "margin": "uncertain"}


@checked
def next_to_label(estimator: Any, pool: Data, n: int = 50, *, strategy: str = "mixed") -> Any:
    """The rows of a pool that are most worth a label, for a model of a rare class.

    Of rows that are equal but for case and white space only the first is given.

    Parameters
    ----------
    estimator : fitted classifier, tagger or recognizer
        With ``predict_proba``; of skdice or of scikit-learn, also a pipeline or a search.
    pool : as X in its `fit`
        Rows without labels.
    n : int, default=50
        How many to give; fewer if the pool has no more.
    strategy : {"mixed", "positives", "margin"}, default="mixed"
        - ``"positives"`` : the most expected positives. Of two classes that is the probability of
          the positive one, of several labels or of spans the expected number of labels or of words
          in entities, and of more classes the expected rarity of the class.
        - ``"margin"`` : the least difference between the two likeliest classes; for tags and
          several labels the sum of these doubts over a row.
        - ``"mixed"`` : half of them by ``"positives"``, half by ``"margin"``.

    Returns
    -------
    pandas.DataFrame or list of dict
        Best first: ``row`` of the pool, ``reason``, ``score`` (what the strategy counts), and
        ``text`` where the pool holds texts. A list where pandas is not installed.

    Raises
    ------
    ValueError, TypeError
        For a bad argument, or a model that gives no probabilities or knows one class only.
    NotFittedError
        If `estimator` is not fitted.

    Examples
    --------
    >>> from skdice import DiceClassifier
    >>> from skdice.inspection import next_to_label
    >>> X, y = [[0.0], [0.1], [0.9], [1.0]], ["no", "no", "no", "yes"]
    >>> model = DiceClassifier(random_state=0).fit(X, y)
    >>> next_to_label(model, [[0.05], [1.0], [1.0]], n=1, strategy="positives").row.tolist()
    [1]
    """
    check_choice("strategy", strategy, STRATEGIES)
    check_range(1, n=n)
    check_has("estimator", estimator, "predict", "predict_proba")
    check_is_fitted(estimator)
    model = innermost(estimator)
    if not hasattr(model, "classes_"):  # as of one-vs-rest, which keeps an unfitted one
        model = estimator
    with naming({"X": "pool"}):
        check_rows(estimator, pool)
        task = getattr(model, "task", None)
        of_tokens = task is not None and isinstance(files_of(task), SpanFiles)
        texts = as_sentences(pool) if of_tokens else texts_of(pool)
        if not sparse.issparse(pool):
            as_row_list("X", pool, may_be_empty=False)
        keys = row_keys(pool) if texts is None else [*map(key_of, texts)]
        scores = _scores(estimator, model, pool)
    first = dict(zip(reversed(keys), reversed(range(len(keys))), strict=True))
    rows = sorted(first.values())
    n = min(n, len(rows))
    halves = [("positives", (n + 1) // 2), ("margin", n // 2)]
    records: list[Record] = []
    for part, size in halves if strategy == "mixed" else [(strategy, n)]:
        taken = {record["row"] for record in records}
        left = np.array([row for row in rows if row not in taken], dtype=int)
        best = left[np.argsort(-scores[part][left], kind="stable")[:size]]
        for row, score in zip(best.tolist(), scores[part][best].tolist(), strict=True):
            records.append({"row": row, "reason": REASONS[part], "score": score})
    return with_texts(records, ("row", "reason", "score"), texts)


def key_of(row: Any) -> Any:
    """A key of texts, pairs or tokens that are equal but for case and white space."""
    return " ".join(row.casefold().split()) if isinstance(row, str) else tuple(map(key_of, row))


# ---- what the model says


def _scores(estimator: Any, model: Any, pool: Any) -> dict[str, np.ndarray]:
    """Expected positives and doubt of each row, summed over its tokens or labels."""
    given = estimator.predict_proba(pool)
    tables = label_table(given)
    sizes = [1] * len(tables)
    outputs = list(outputs_of(model))
    of_tags = tables.dtype == object
    if of_tags:
        sizes = [len(table) for table in tables]
        tables = np.concatenate([np.zeros((0, len(outputs))), *filter(len, tables)])
    if isinstance(given, list) or getattr(model, "multilabel_", False):
        positives, doubt = tables.sum(axis=1), (1 - np.abs(2 * tables - 1)).sum(axis=1)
    elif len(outputs) < 2:
        raise ValueError(
            f"estimator knows one class only ({shown(outputs[0])}), and doubts no row: fit it on "
            "two"
        )
    else:
        best = np.sort(tables, axis=1)
        doubt = 1 - (best[:, -1] - best[:, -2])
        if of_tags and "O" in outputs:
            positives = 1 - tables[:, outputs.index("O")]
        elif len(outputs) == 2:
            own, rare = own_positive(estimator), int(tables.mean(axis=0).argmin())
            positives = tables[:, rare if own is None else own]
        else:
            positives = tables @ (1 - tables.mean(axis=0))
    row = np.repeat(np.arange(len(sizes)), sizes)
    named = {"positives": positives, "margin": doubt}
    return {name: np.bincount(row, values, len(sizes)) for name, values in named.items()}
