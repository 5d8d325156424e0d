"""DiceEntityRecognizer: what every user of it counts on."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import torch
import transformers
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline

from skdice import DiceEntityRecognizer, DiceTokenClassifier
from skdice.text import Entity, pipeline_entities

TEXTS = [
    "Anna went to Paris.",
    "the bus was old",
    "Bob Dan works at Acme, in Oslo",
    "rain today!",
    "Carla met Bob (near the river)",
    "",
    "the market in Oslo is new.",
    "Globex saw the report",
]
NAMES = {"Anna": "PER", "Bob Dan": "PER", "Carla": "PER", "Bob": "PER", "Paris": "LOC"}
NAMES |= {"Oslo": "LOC", "Acme": "ORG", "Globex": "ORG"}


def marked(text):
    """Each name of NAMES in a text, the longest first."""
    found = []
    for name in sorted(NAMES, key=len, reverse=True):
        at = text.find(name)
        if at >= 0 and all(at + len(name) <= a or at >= b for a, b, _ in found):
            found.append((at, at + len(name), NAMES[name]))
    return sorted(found)


X = TEXTS * 3
y = [marked(text) for text in X]


def recognizer(backbone, **params):
    settings = dict(max_epochs=12, lr=1e-2, batch_size=4, dropout=0.0, random_state=0, loss="ce")
    return DiceEntityRecognizer(backbone=backbone, **{**settings, **params})


@pytest.fixture(scope="module")
def fitted(tiny_backbone):
    return recognizer(tiny_backbone).fit(X, y)


def test_texts_in_entities_out(fitted):
    predicted = fitted.predict(X)
    assert isinstance(predicted, np.ndarray)
    assert predicted.shape == (len(X),)
    assert predicted.dtype == object
    assert [[entity[:3] for entity in row] for row in predicted] == y
    for text, row in zip(X, predicted, strict=True):
        for entity in row:
            assert isinstance(entity, Entity)
            assert text[entity.start : entity.end] == entity.text
            assert 0 < entity.score <= 1
    assert fitted.score(X, y) == 1
    assert fitted.classes_.tolist() == ["LOC", "ORG", "PER"]
    assert fitted.tags_.tolist() == ["B-LOC", "B-ORG", "B-PER", "I-PER", "O"]


@pytest.mark.parametrize("container", [list, np.array, pd.Series, lambda t: pd.DataFrame({"t": t})])
def test_containers_of_texts(fitted, container):
    assert fitted.score(container(X), pd.Series(y)) == 1


@pytest.mark.parametrize("kind", ["bert", "roberta", "xlm-roberta"])
def test_a_served_pipeline_finds_the_same(kind, raw_text_backbones, tmp_path):
    model = recognizer(raw_text_backbones[kind], max_epochs=3).fit(X, y)
    with torch.no_grad():  # the model finds something everywhere, right or wrong
        model._module.output_layer.bias.zero_()[model.tags_.tolist().index("O")] -= 2
    model.save_pretrained(tmp_path / "m")
    pipe = transformers.pipeline(
        "token-classification", str(tmp_path / "m"), aggregation_strategy="first", device="cpu"
    )
    texts = [
        *TEXTS, "Don't @bob: U.S. 3.5% (Acme-Globex)\tin\nOslo", "a_b,c", "東京にいる Bob🎉 x",
        "  Zoë, café… ", "[SEP] <s> Anna", "\u200b", "!" * 40,
    ]  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "Tokenizer does not support real words"
        served = pipeline_entities(pipe, texts)
        plain = pipe([t for t in texts if t]) if kind == "bert" else None
    ours = model.predict(texts)
    assert [[e[:3] for e in row] for row in served] == [[e[:3] for e in row] for row in ours]
    assert sum(map(len, ours)) > 12
    if plain is not None:
        found = [[(e["start"], e["end"], e["entity_group"]) for e in row] for row in plain]
        assert found == [[e[:3] for e in row] for t, row in zip(texts, ours, strict=True) if t]


def test_the_folder_predicts_the_same(fitted, tmp_path):
    fitted.save_pretrained(tmp_path / "m")
    again = DiceEntityRecognizer.from_pretrained(tmp_path / "m")
    assert again.predict(X).tolist() == fitted.predict(X).tolist()
    assert again.get_params() == {**fitted.get_params(), "device": "auto"}
    with pytest.raises(ValueError, match=r"use DiceEntityRecognizer\.from_pretrained"):
        DiceTokenClassifier.from_pretrained(tmp_path / "m")
    wrapped = DiceEntityRecognizer.from_transformers(tmp_path / "m")
    assert wrapped.predict(X).tolist() == fitted.predict(X).tolist()


def test_an_entity_at_a_border_of_windows_is_found_once(fitted):
    model = clone(fitted).set_params(max_length=16).fit(X, y)
    texts = ["rain " * k + "Bob Dan" + " today" * 40 for k in range(20)]
    found = [[entity.text for entity in row] for row in model.predict(texts)]
    assert found == [["Bob Dan"]] * 20


def test_scikit_learns_tools(tiny_backbone, fitted):
    model = recognizer(tiny_backbone, max_epochs=1)
    found = GridSearchCV(model, {"loss": ["ce", "dice"]}, cv=2, error_score="raise").fit(X, y)
    assert len(found.cv_results_["params"]) == 2
    assert cross_val_score(model, X, y, cv=2, error_score="raise").shape == (2,)
    assert cross_val_predict(model, X, y, cv=2).shape == (len(X),)
    assert make_pipeline(model).fit(X, y).predict(X).shape == (len(X),)
    assert pickle.loads(pickle.dumps(fitted)).predict(X).tolist() == fitted.predict(X).tolist()
    assert list(fitted.iter_predict(iter(X), block_size=5)) == fitted.predict(X).tolist()


def test_unfitted():
    with pytest.raises(NotFittedError):
        DiceEntityRecognizer().predict(["a"])
