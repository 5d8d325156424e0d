"""The names of columns are part of the model, as in scikit-learn."""

import pickle
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from skdice import (
    BiasTunedClassifier,
    BiasTunedTagger,
    CRFTagger,
    DiceEntityRecognizer,
    DiceMRCTagger,
    DiceMultiSpanAnswerer,
    DiceQuestionAnswerer,
    DiceSequenceClassifier,
    DiceTokenClassifier,
    TfidfClassifier,
)

QUESTIONS = [f"who is {name}?" for name in "abcdefghijkl"]
PASSAGES = [f"{name} is a town in the hills" for name in "abcdefghijkl"]
Y = np.array(["no", "yes"] * 6)
ORDER = "Feature names must be in the same order"
OTHER = "Feature names unseen at fit time:\n- url"
NO_NAMES = "X does not have valid feature names"
UNEXPECTED = "X has feature names, but .* was fitted without feature names"
KINDS = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
}


def frame(make, names=("question", "passage")):
    return make(dict(zip(names, (QUESTIONS, PASSAGES), strict=True)))


def swapped(X):
    return X[["passage", "question"]]


def net(tiny_backbone, **params):
    return DiceSequenceClassifier(backbone=tiny_backbone, max_epochs=1, random_state=0, **params)


@pytest.fixture(params=["net", "tfidf", "tuned", "tuned tfidf"])
def classifier(request, tiny_backbone):
    return {
        "net": net(tiny_backbone),
        "tfidf": TfidfClassifier(random_state=0),
        "tuned": BiasTunedClassifier(net(tiny_backbone), cv=2),
        "tuned tfidf": BiasTunedClassifier(TfidfClassifier(random_state=0), cv=2),
    }[request.param]


@pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)
def test_other_columns_are_refused(make, classifier):
    X = frame(make)
    model = classifier.fit(X, Y)
    assert model.feature_names_in_.tolist() == ["question", "passage"]
    model.predict(X)
    for same in (model, pickle.loads(pickle.dumps(model)), make_pipeline(model)):
        for method in (same.predict, same.predict_proba, partial(same.score, y=Y)):
            with pytest.raises(ValueError, match=ORDER):
                method(swapped(X))
            with pytest.raises(ValueError, match=OTHER):
                method(frame(make, ("url", "passage")))
    with pytest.warns(UserWarning, match=NO_NAMES):
        model.predict(list(zip(QUESTIONS, PASSAGES, strict=True)))


def test_a_frame_after_a_list_is_told(classifier):
    model = classifier.fit(list(zip(QUESTIONS, PASSAGES, strict=True)), Y)
    assert not hasattr(model, "feature_names_in_")
    with pytest.warns(UserWarning, match=UNEXPECTED):
        model.predict(frame(pd.DataFrame))


def test_further_fits_check_and_fresh_ones_learn_anew(tiny_backbone):
    X = frame(pd.DataFrame)
    model = net(tiny_backbone, warm_start=True).fit(X, Y)
    for train in (model.fit, model.partial_fit):
        with pytest.raises(ValueError, match=ORDER):
            train(swapped(X), Y)
    with pytest.raises(ValueError, match=ORDER):
        net(tiny_backbone).fit(X, Y, X_val=swapped(X), y_val=Y)
    model.set_params(warm_start=False).fit(swapped(X), Y)
    assert model.feature_names_in_.tolist() == ["passage", "question"]


def test_prefit_checks(tiny_backbone):
    X = frame(pd.DataFrame)
    model = net(tiny_backbone).fit(X, Y)
    with pytest.raises(ValueError, match=ORDER):
        BiasTunedClassifier(model, cv="prefit").fit(swapped(X), Y)
    tuned = BiasTunedClassifier(model, cv="prefit").fit(X, Y)
    with pytest.raises(ValueError, match=ORDER):
        tuned.predict(swapped(X))


def test_a_folder_keeps_the_names(tiny_backbone, tmp_path):
    X = frame(pd.DataFrame)
    model = net(tiny_backbone).fit(X, Y)
    again = DiceSequenceClassifier.from_pretrained(model.save_pretrained(tmp_path / "named"))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    with pytest.raises(ValueError, match=ORDER):
        again.predict(swapped(X))
    state = {**model._fitted_state()}
    del state["feature_names_in"]  # as folders were before
    old = net(tiny_backbone).fit(list(zip(QUESTIONS, PASSAGES, strict=True)), Y)
    old._restore_fitted(state)
    old.predict(swapped(X))  # in silence


WORDS = ("first", "second")  # of sentences of two tokens, in a frame
TAGS = [["B-PER", "O"], ["O", "B-PER"]] * 6


def others(tiny_backbone):
    """Estimators of each other kind, and X and y of two columns."""
    how = {"backbone": tiny_backbone, "max_epochs": 1, "random_state": 0}
    sentences, contexts = (frame(pd.DataFrame, names) for names in (WORDS, ("question", "context")))
    answers = [(0, name) for name in "abcdefghijkl"]
    return {
        "tagger": (DiceTokenClassifier(**how), sentences, TAGS),
        "mrc tagger": (DiceMRCTagger(**how), sentences, TAGS),
        "reader": (DiceQuestionAnswerer(**how), contexts, answers),
        "reader of several": (DiceMultiSpanAnswerer(**how), contexts, [[a] for a in answers]),
        "tuned tagger": (BiasTunedTagger(DiceTokenClassifier(**how), cv=2), sentences, TAGS),
        "random field": (CRFTagger(), sentences, TAGS),
    }


def turned(X):
    return X[X.columns[::-1]]


@pytest.mark.filterwarnings("ignore:.*shorter than its question:UserWarning")
@pytest.mark.parametrize(
    "kind",
    ["tagger", "mrc tagger", "reader", "reader of several", "tuned tagger", "random field"],
)
def test_every_estimator_knows_its_columns(kind, tiny_backbone, tmp_path):
    if kind == "random field":
        pytest.importorskip("pycrfsuite")
    blank, X, y = others(tiny_backbone)[kind]
    model = clone(blank).fit(X, y)
    known = [model, pickle.loads(pickle.dumps(model)), make_pipeline(model)]
    if hasattr(model, "save_pretrained"):
        folder = model.save_pretrained(tmp_path / "model")
        known.append(getattr(model, "estimator", model).from_pretrained(folder))
    for same in known:
        same.predict(X)
        for method in (same.predict, partial(same.score, y=y)):
            with pytest.raises(ValueError, match=ORDER):
                method(turned(X))
    if kind in ("tagger", "mrc tagger", "reader", "reader of several"):
        with pytest.raises(ValueError, match=ORDER):
            clone(blank).fit(X, y, X_val=turned(X), y_val=y)
        with pytest.raises(ValueError, match=ORDER):
            model.set_params(warm_start=True).fit(turned(X), y)
    if hasattr(model, "partial_fit"):
        with pytest.raises(ValueError, match=ORDER):
            model.partial_fit(turned(X), y)
    if kind in ("tagger", "random field"):
        with pytest.raises(ValueError, match=ORDER):
            BiasTunedTagger(model, cv="prefit").fit(turned(X), y)


def test_a_recognizer_knows_its_column(tiny_backbone, tmp_path):
    texts, y = pd.DataFrame({"body": PASSAGES}), [[(0, 1, "X")]] * 12
    how = {"backbone": tiny_backbone, "max_epochs": 1, "random_state": 0}
    model = DiceEntityRecognizer(**how).fit(texts, y)
    again = DiceEntityRecognizer.from_pretrained(model.save_pretrained(tmp_path / "model"))
    for same in (model, again):
        same.predict(texts)
        with pytest.raises(ValueError, match="Feature names unseen at fit time:\n- title"):
            same.predict(texts.rename(columns={"body": "title"}))


@pytest.mark.parametrize("kind", [np.int8, np.uint16, np.int64])
def test_labels_keep_their_type(kind, tiny_backbone, tmp_path):
    y = (np.arange(12) % 2).astype(kind)
    model = net(tiny_backbone).fit(QUESTIONS, y)
    again = DiceSequenceClassifier.from_pretrained(model.save_pretrained(tmp_path / "model"))
    for fitted in (model, again, net(tiny_backbone).partial_fit(QUESTIONS, y, classes=[0, 1, 2])):
        assert fitted.predict(QUESTIONS).dtype == fitted.classes_.dtype == kind
