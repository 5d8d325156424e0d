"""DiceSequenceClassifier as a scikit-learn user meets it."""

from __future__ import annotations

import pickle
import shutil

import numpy as np
import pandas as pd
import pytest
from imblearn.over_sampling import RandomOverSampler
from imblearn.pipeline import make_pipeline as make_imblearn_pipeline
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import f1_score
from sklearn.model_selection import GridSearchCV, KFold
from skorch.callbacks import Callback
from transformers import AutoModel

from skdice import (
    BiasTunedClassifier,
    DiceClassifier,
    DiceSequenceClassifier,
    TfidfClassifier,
    TransformerFeatures,
)
from skdice.inputs.rows import object_array
from tests.data import HAM
from tests.data import KINDS_OF_MESSAGES as Y
from tests.data import MESSAGES as X


@pytest.fixture
def classifier(tiny_backbone):
    return DiceSequenceClassifier(backbone=tiny_backbone, max_epochs=1, lr=1e-3, random_state=0)


@pytest.mark.parametrize("loss", ["ce", "dsc"])
def test_binary_labels_are_learned(classifier, loss):
    classifier.set_params(loss=loss, max_epochs=30, lr=1e-2, batch_size=8).fit(X, Y)
    assert (classifier.predict(X) == Y).mean() > 0.9
    probabilities = classifier.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    margin = classifier.decision_function(X)
    np.testing.assert_allclose(margin, np.log(probabilities[:, 1] / probabilities[:, 0]), atol=1e-4)
    assert classifier.score(X, Y) == f1_score(Y, classifier.predict(X), pos_label="spam")


def test_three_classes_are_learned(classifier):
    texts = ["free money", "lunch today", "rome is old"] * 4
    y = [5, -1, 7] * 4
    many = classifier.set_params(loss="dsc", max_epochs=20, lr=1e-2, batch_size=8).fit(texts, y)
    assert many.classes_.tolist() == [-1, 5, 7]
    assert many.score(texts, y) > 0.9
    assert many.decision_function(texts).shape == (12, 3)


@pytest.mark.parametrize("kind", ["bert", "roberta", "deberta-v2", "modernbert", "xlnet"])
@pytest.mark.parametrize("pooling", ["cls", "mean", "max"])
def test_backbones_poolings_and_batch_composition(classifier, tiny_backbones, kind, pooling):
    classifier.set_params(backbone=tiny_backbones[kind], pooling=pooling).fit(X, Y)
    alone = np.concatenate([classifier.predict_proba([text]) for text in X[:5]])
    np.testing.assert_allclose(alone, classifier.predict_proba(X)[:5], atol=1e-5)


def test_pairs(classifier):
    pairs = [("free money", "money is free"), ("lunch", "the bus")] * 4
    y = [1, 0] * 4
    tables = [
        classifier.fit(kind, y).predict_proba(kind)
        for kind in (pairs, np.array(pairs), np.array(pairs, dtype=object), pd.DataFrame(pairs))
    ]
    for table in tables[1:]:
        np.testing.assert_array_equal(table, tables[0])
    swapped = classifier.predict_proba([(b, a) for a, b in pairs])
    assert not np.allclose(swapped, tables[0])
    texts = [" ".join(pair) for pair in pairs]
    fitted = classifier.set_params(warm_start=True)
    for call in (
        lambda: fitted.predict(texts),
        lambda: fitted.partial_fit(texts, y),
        lambda: fitted.fit(texts, y),
        lambda: clone(fitted).fit(pairs, y, X_val=texts, y_val=y),
    ):
        with pytest.raises(ValueError, match="holds texts, but fit saw pairs"):
            call()
    np.testing.assert_array_equal(fitted.predict_proba(pairs), tables[0])


def test_a_pipeline_of_imbalanced_learn(classifier):
    column = np.array(X, dtype=object).reshape(-1, 1)
    pipeline = make_imblearn_pipeline(RandomOverSampler(random_state=0), classifier)
    assert pipeline.fit(column, Y).predict(column).shape == (16,)


def test_pickle_and_files(classifier, tmp_path):
    classifier.fit(X, Y)
    # What was pickled goes on as one model: what is trained is what is saved.
    copy = pickle.loads(pickle.dumps(classifier))
    copy.partial_fit(X, Y)
    saved = DiceSequenceClassifier.from_pretrained(copy.save_pretrained(tmp_path / "copy"))
    assert not np.allclose(copy.predict_proba(X), classifier.predict_proba(X), atol=1e-4)
    np.testing.assert_allclose(saved.predict_proba(X), copy.predict_proba(X), atol=1e-6)
    copy = pickle.loads(pickle.dumps(copy)).set_params(warm_start=True, lr=1e-12).fit(X, Y)
    np.testing.assert_allclose(copy.predict_proba(X), saved.predict_proba(X), atol=1e-5)


@pytest.mark.parametrize("kind", ["bert", "roberta", "deberta-v2", "modernbert", "xlnet"])
def test_a_saved_folder_is_a_backbone(classifier, tiny_backbones, kind, tmp_path):
    model = classifier.set_params(backbone=tiny_backbones[kind], lr=1e-2).fit(X, Y)
    folder = model.save_pretrained(tmp_path / "m")
    trained = model.net_.module_.encoder.state_dict()
    read, report = AutoModel.from_pretrained(folder / "encoder", output_loading_info=True)
    # What skdice has no use for: its head pools by itself.
    assert all(name.startswith("pooler.") for name in report["missing_keys"])
    assert not report["unexpected_keys"]
    features = TransformerFeatures(backbone=str(folder)).fit(X)
    for encoder in (read, features.encoder_):
        for name, values in encoder.state_dict().items():
            assert name.startswith("pooler.") or values.equal(trained[name])
    on_top = clone(model).set_params(backbone=str(folder), frozen="encoder").fit(X, Y)
    for name, values in on_top.net_.module_.encoder.state_dict().items():
        assert values.equal(trained[name])


def test_what_is_read_has_the_history_and_goes_on(classifier, tmp_path):
    class Record(Callback):
        def on_epoch_end(self, net, **kwargs):
            net.history.record("norm", np.float32(0.5))
            net.history.record("object", object())

    classifier.set_params(callbacks=[Record()], max_epochs=2, verbose=1)
    classifier.fit(X, Y, X_val=X[:8], y_val=Y[:8])
    with pytest.warns(UserWarning, match="^callbacks cannot be written as JSON"):
        folder = classifier.save_pretrained(tmp_path / "m")
    read = DiceSequenceClassifier.from_pretrained(folder)
    kept = [{k: v for k, v in row.items() if k != "object"} for row in classifier.history_]
    assert (read.history_, read.n_iter_) == (kept, 2)
    assert {"train_loss", "valid_score", "lr", "dur", "norm"} <= set(read.history_[1])
    assert read.partial_fit(X, Y).n_iter_ == 3
    assert read.history_[:2] == kept


@pytest.mark.parametrize(
    ("params", "names"),
    [
        ({"sampler": RandomOverSampler(random_state=0)}, "sampler"),
        ({"net_params": {"lr": 1e-3}, "callbacks": [Callback()]}, "callbacks, net_params"),
        ({"random_state": np.random.RandomState(0)}, "random_state"),
    ],
)
def test_settings_that_are_not_saved_are_named(classifier, params, names, tmp_path):
    classifier.set_params(**params).fit(X, Y)
    with pytest.warns(UserWarning, match=f"^{names} cannot be written"):
        folder = classifier.save_pretrained(tmp_path / "m")
    read = DiceSequenceClassifier.from_pretrained(folder)
    assert [getattr(read, name) for name in params] == [None] * len(params)


def test_the_positive_class_stays_over_a_warm_start(classifier):
    rare, common = ["free money", "win a prize"], ["lunch", "the bus", "old road", "bank", "team"]
    classifier.set_params(warm_start=True).fit(rare + common, ["s"] * 2 + ["h"] * 5)
    assert classifier.classes_[classifier.positive_] == "s"
    classifier.fit(common + rare, ["s"] * 5 + ["h"] * 2)
    assert classifier.classes_[classifier.positive_] == "s"
    classifier.set_params(pos_label="h").fit(common + rare, ["s"] * 5 + ["h"] * 2)
    assert classifier.classes_[classifier.positive_] == "h"
    classifier.set_params(pos_label=None, warm_start=False)
    assert classifier.fit(rare + common, ["s"] * 2 + ["h"] * 5).positive_ == 1


def test_a_warm_start_has_the_settings_of_now(classifier, tmp_path):
    def moved(model, X, Y):
        names = [name for name, _ in model.net_.module_.encoder.named_parameters()]
        before = [p.detach().clone() for p in model.net_.module_.encoder.parameters()]
        model.fit(X, Y)
        after = model.net_.module_.encoder.parameters()
        return {n for n, a, b in zip(names, before, after, strict=True) if not a.equal(b)}

    classifier.set_params(frozen="encoder", warm_start=True).fit(X, Y)
    assert moved(classifier, X, Y) == set()
    assert moved(classifier.set_params(frozen=None, dropout=0.5), X, Y)
    module = classifier.net_.module_
    assert (module.dropout.p, module.pooling) == (0.5, "mean")
    assert moved(classifier.set_params(frozen="encoder", pooling="max"), X, Y) == set()
    assert classifier.net_.module_.pooling == "max"
    assert module.pooling == "mean"  # a warm start trains a copy
    classifier.set_params(pooling="cls")  # of the next fit
    saved = DiceSequenceClassifier.from_pretrained(classifier.save_pretrained(tmp_path / "m"))
    np.testing.assert_allclose(saved.predict_proba(X), classifier.predict_proba(X), atol=1e-6)


@pytest.mark.parametrize("missing", [np.nan, float("nan"), None, pd.NA])
@pytest.mark.parametrize("kind", [list, lambda y: np.array(y, dtype=object), pd.Series])
def test_a_missing_label_is_named(classifier, missing, kind):
    y = kind(["ham", "spam", missing, "ham"])
    with pytest.raises(ValueError, match=r"y\[2\] is missing"):
        classifier.fit(["a", "b", "c", "d"], y)


def test_partial_fit_and_early_stopping(classifier):
    classifier.partial_fit(X[:3], Y[:3], classes=["ham", "spam"])
    classifier.partial_fit(X, Y)
    assert classifier.n_iter_ == 2
    with pytest.raises(ValueError, match=r"such as 7: give labels such as \['ham', 'spam'\]"):
        classifier.partial_fit(["a"], [7])
    classifier.set_params(early_stopping=True, validation_fraction=0.25, max_epochs=3).fit(X, Y)
    assert all("valid_score" in epoch for epoch in classifier.history_)
    classifier.set_params(early_stopping=True, validation_fraction=0.01)
    with pytest.warns(UserWarning, match="not stratified"):
        classifier.fit(X, Y)


def test_the_classes_of_a_partial_fit_are_of_the_labels_type(classifier):
    wanted = np.array([0, 1, 2], dtype=object)
    with pytest.raises(TypeError, match=r"several types \(int, str\)"):
        classifier.partial_fit(X[:2], [0, 1], classes=["0", "1", "2"])
    classifier.partial_fit(X[:2], [0, 1], classes=wanted)
    assert classifier.classes_.dtype.kind == "i"
    assert classifier.score(X[:2], [0, 2]) <= 1


def test_a_partial_fit_of_one_class_teaches_by_the_counts_of_all_calls(classifier):
    classifier.set_params(loss="weighted_ce", lr=1e-2, weight_decay=0.0).partial_fit(X, Y)
    weights = classifier.net_.criterion_.weights_
    head = classifier.net_.module_.output_layer.weight.detach().clone()
    classifier.partial_fit(HAM[:4], ["ham"] * 4)
    assert classifier.net_.criterion_.class_counts_.tolist() == [14, 6]
    assert (classifier.net_.module_.output_layer.weight - head).abs().max() > 1e-3
    assert classifier.net_.criterion_.weights_[0] < weights[0]


def test_the_examples_of_a_partial_fit_with_labels_add_up(classifier):
    rows = np.array([[1, 0], [0, 0], [1, 1], [0, 0]])
    classifier.set_params(loss="weighted_ce").partial_fit(X[:4], rows)
    classifier.partial_fit(X[:2], rows[:2], sample_weight=[1, 3])
    criterion = classifier.net_.criterion_
    assert criterion.class_counts_.tolist() == [3, 1]
    assert criterion.n_samples_ == 8


@pytest.mark.parametrize("kind", ["save", "pickle"])
def test_a_net_goes_on_without_its_backbone(classifier, tiny_backbone, tmp_path, kind):
    folder = shutil.copytree(tiny_backbone, tmp_path / "backbone")
    model = classifier.set_params(backbone=str(folder), warm_start=True).fit(X, Y)
    shutil.rmtree(folder)
    if kind == "save":
        model = DiceSequenceClassifier.from_pretrained(model.save_pretrained(tmp_path / "m"))
    else:
        model = pickle.loads(pickle.dumps(model))
    assert model.partial_fit(X, Y).fit(X, Y).n_iter_ == 3
    for fresh in (model.set_params(warm_start=False).fit, clone(model).partial_fit):
        with pytest.raises(ValueError, match="is neither a folder nor a possible hub id"):
            fresh(X, Y)


@pytest.mark.parametrize("values", [[0, 1], [False, True], [np.int64(3), 7], ["a", "b"]])
def test_labels_in_an_array_of_objects_have_their_own_type(classifier, values):
    table = np.array([[text, values[i % 2]] for i, text in enumerate(X)], dtype=object)
    classifier.set_params(early_stopping=True, validation_fraction=0.25)
    classifier.fit(table[:, 0], table[:, 1])
    assert classifier.classes_.dtype == np.array(values).dtype
    assert classifier.classes_.tolist() == values
    positive = values[classifier.positive_]
    found = classifier.predict(table[:, 0]) == positive
    assert classifier.score(table[:, 0], table[:, 1]) == f1_score(table[:, 1] == positive, found)
    rows = np.array([[0, 1], [1, 0]] * 8, dtype=object)
    assert classifier.set_params(early_stopping=False).fit(X, rows).multilabel_


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.array([1, "a", 0], dtype=object), r"several types \(int, str\)"),
        ([1, "a", 0], r"several types \(int, str\)"),
        (np.array([True, 2, 1.5], dtype=object), r"several types \(bool, float, int\)"),
        (object_array([1j, 2j, 1j]), "Unknown label type: complex"),
    ],
)
def test_labels_of_mixed_or_strange_types_are_refused(y, message):
    blank = DiceSequenceClassifier(backbone="nowhere/never-downloaded")
    with pytest.raises((TypeError, ValueError), match=message):
        blank.fit(["a", "b", "c"], y)


def test_a_search_over_folds_that_lack_a_label(classifier):
    y = ["rare", *Y[1:]]
    how = dict(cv=KFold(2), error_score="raise", refit=False)
    search = GridSearchCV(classifier, {"pooling": ["cls"]}, **how).fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_validation_labels_that_training_knows_none_of_are_refused(classifier):
    y = ["1", "0"] * 8
    message = r"none of the labels of y: it has \[0, 1\], and y has \['0', '1'\]"
    several = [[1, 0], [0, 1]] * 8
    for labels, held, wrong in (
        (y, [1, 0] * 8, message),
        (y, [[1, 0]] * 16, r"y_val has shape \(16, 2\) and y \(16,\)"),
        (several, [[1, 0, 1]] * 16, r"y_val has shape \(16, 3\) and y \(16, 2\)"),
    ):
        with pytest.raises(ValueError, match=wrong):
            classifier.fit(X, labels, X_val=X, y_val=held)
    assert not hasattr(classifier, "net_")
    tuned = BiasTunedClassifier(DiceClassifier(max_epochs=1))
    with pytest.raises(ValueError, match=message):
        tuned.fit(np.eye(16), y, X_val=np.eye(16), y_val=[1, 0] * 8)
    # A label that only validation holds is a miss, as it will be in use.
    classifier.fit(X, y, X_val=X[:2], y_val=["1", "2"])
    classifier.fit(X, [1, 0] * 8, X_val=X[:2], y_val=np.array([1.0, 0.0]))


def test_bad_input_is_named(classifier):
    for texts, y, message in (
        (X, Y[1:], "16 rows and y 15"),
        (X, ["ham"] * 16, "one class only"),
        (["a", "b"], [0.0, float("nan")], r"y\[1\] is missing"),
        (["a", "b"], [0.5, 1.7], "Unknown label type"),
        (["a", "b"], [[1, 2], [3, 4]], "multi-label"),
        (X, None, "target y is None"),
    ):
        with pytest.raises(ValueError, match=message):
            classifier.fit(texts, y)
    with pytest.raises(TypeError, match=r"X\[1\] is 3"):
        classifier.fit(["a", 3], Y[:2])
    with pytest.raises(ValueError, match="pos_label='eggs'"):
        classifier.set_params(pos_label="eggs").fit(X, Y)
    with pytest.raises(NotFittedError):
        classifier.predict(X)
    classifier.set_params(pos_label=None).fit(X, Y)
    assert classifier.evaluate(["a"], ["eggs"])["accuracy"] == 0


@pytest.mark.parametrize("cls", [DiceSequenceClassifier, TfidfClassifier])
def test_the_labels_as_one_of_two_texts_are_refused(cls):
    frame = pd.DataFrame({"label": Y, "text": X})
    with pytest.raises(ValueError, match="column 0 of X is y itself"):
        cls().fit(frame, frame["label"])
