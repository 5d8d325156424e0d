"""No rows in, no rows out: a filter of Dask leaves empty partitions. A fit still refuses them."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from skdice import (
    BiasTunedTagger,
    DiceClassifier,
    DiceEntityRecognizer,
    DiceSequenceClassifier,
    TfidfClassifier,
)
from tests.data import (
    ENTITIES,
    JOINED,
    LABEL_SETS,
    LABELS,
    PAIRS,
    TEXTS,
)
from tests.estimators.every import TEXT_ESTIMATORS, tiny

METHODS = (
    *("predict", "predict_labels", "predict_proba", "predict_log_proba", "decision_function"),
    *("predict_spans", "predict_tagged", "transform", "decide"),
)
NONE = {
    "list": [],
    "array": np.empty(0, dtype=object),
    "pairs": np.empty((0, 2), dtype=object),
    "series": pd.Series([], dtype="str"),
    "frame": pd.DataFrame({"text": []}),
}
KINDS = TEXT_ESTIMATORS | {
    "three classes": (tiny(DiceSequenceClassifier), TEXTS, ["a", "b", "c"] * 4),
    "several labels": (tiny(DiceSequenceClassifier), TEXTS, LABEL_SETS),
    "tfidf pairs": (lambda backbone: TfidfClassifier(Cs=(1.0,)), PAIRS, [0, 1] * 6),
    "tuned recognizer": (
        lambda backbone: BiasTunedTagger(tiny(DiceEntityRecognizer)(backbone), cv=2),
        JOINED,
        ENTITIES,
    ),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("ignore:X has feature names:UserWarning")
@pytest.mark.filterwarnings("ignore::skdice.exceptions.SkdiceWarning")
def test_no_rows_are_predicted_as_no_rows(kind, tiny_backbone):
    make, X, y = KINDS[kind]
    model = make(tiny_backbone).fit(X, y)
    methods = [name for name in METHODS if hasattr(model, name)]
    assert methods
    for name in methods:
        some = np.asarray(getattr(model, name)(X))
        for box, none in NONE.items():
            found = getattr(model, name)(none)
            assert isinstance(found, np.ndarray), (name, box)
            assert (found.shape, found.dtype) == ((0, *some.shape[1:]), some.dtype), (name, box)
    if hasattr(model, "score"):
        with pytest.raises(ValueError, match=r"0 samples|1 sample|shape \(0,\)"):
            model.score([], [])
    if not kind.startswith("tuned"):
        with pytest.raises(ValueError, match="X is empty"):
            type(model)().fit([], [])


def test_numbers_are_as_scikit_learn_has_them():
    X = np.random.default_rng(0).normal(size=(20, 2))
    model = DiceClassifier(max_epochs=1).fit(X, [0, 1] * 10)
    with pytest.raises(ValueError, match="0 sample"):
        model.predict(X[:0])


@pytest.mark.filterwarnings("ignore:The inplace keyword:DeprecationWarning")  # Dask
def test_partitions_that_a_filter_emptied_are_labelled(tiny_backbone, tmp_path, monkeypatch):
    dask = pytest.importorskip("dask.dataframe")
    monkeypatch.chdir(tmp_path)
    model = DiceSequenceClassifier(backbone=tiny_backbone, max_epochs=1, random_state=0)
    model.fit(TEXTS, LABELS).save_pretrained("spam-model")
    page = (Path(__file__).parents[2] / "docs" / "guide" / "machines.md").read_text()
    recipe = re.search(r"^```python\n([^`]*def labels_of[^`]*)^```$", page, re.M)[1]
    Path("predicting.py").write_text(recipe)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "predicting", raising=False)  # a page has one of that name
    from predicting import labels_of

    table = pd.DataFrame({"text": TEXTS * 4, "keep": [True] * 12 + [False] * 36})
    frame = dask.from_pandas(table, npartitions=4)
    frame = frame[frame["keep"]]
    labels = frame["text"].map_partitions(labels_of, meta=("label", "str"))
    frame.assign(label=labels).to_parquet("labelled")
    found = pd.read_parquet("labelled")
    assert found["label"].tolist() == model.predict(TEXTS).tolist()
