"""Several labels a text, by name, through the life of an estimator."""

from __future__ import annotations

import json
import pickle
import re

import numpy as np
import pandas as pd
import pytest
from imblearn.over_sampling import RandomOverSampler
from imblearn.under_sampling import RandomUnderSampler
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_val_score
from sklearn.preprocessing import MultiLabelBinarizer
from transformers import pipeline

from skdice import DiceClassifier, DiceSequenceClassifier
from skdice.inputs.labels import read_labels
from skdice.inspection import html_report, imbalance
from skdice.metrics import class_f1_scorer
from skdice.model_selection import LossSearchCV, compare_losses
from skdice.resampling.drawing import draw_rows
from tests import data

TEXTS = data.TEXTS * 2
NAMES = data.LABEL_SETS * 2
COLUMNS = ["money", "spam", "travel"]
ROWS = MultiLabelBinarizer().fit_transform(NAMES)
FRAME = pd.DataFrame(ROWS, columns=COLUMNS)
NUMBERS = np.eye(4)[[0, 1, 2, 3] * 6]


@pytest.fixture(scope="module")
def blank(tiny_backbone):
    settings = dict(loss="ce", max_epochs=40, lr=1e-2, batch_size=8, random_state=0)
    return DiceSequenceClassifier(backbone=tiny_backbone, **settings)


@pytest.fixture(scope="module")
def model(blank):
    return clone(blank).fit(TEXTS, NAMES)


@pytest.fixture
def numeric():
    return DiceClassifier(max_epochs=15, lr=0.3, random_state=0)


def test_every_form_gives_the_same_model(blank, model):
    assert model.multilabel_
    assert model.classes_.tolist() == COLUMNS
    assert not hasattr(model, "positive_")
    np.testing.assert_array_equal(model.predict(TEXTS), ROWS)
    quick = clone(blank).set_params(max_epochs=1)
    wanted = clone(quick).fit(TEXTS, NAMES).predict_proba(TEXTS)
    for y in (list(map(set, NAMES)), FRAME, FRAME == 1, ROWS, sparse.csr_array(ROWS)):
        other = clone(quick).fit(TEXTS, y)
        np.testing.assert_array_equal(other.predict_proba(TEXTS), wanted)
        named = isinstance(y, list | pd.DataFrame)
        assert other.classes_.tolist() == (COLUMNS if named else [0, 1, 2])


def test_predictions_by_name(model, numeric):
    assert [sorted(row) for row in model.predict_labels(TEXTS[:4])] == [
        ["money", "spam"], [], ["spam"], ["travel"]
    ]  # fmt: skip
    single = numeric.fit(NUMBERS, ["a", "b", "a", "b"] * 6)
    np.testing.assert_array_equal(single.predict_labels(NUMBERS), single.predict(NUMBERS))


def test_scores_take_every_form(model):
    some = TEXTS[1:3]  # no row of these is about money or travel
    wanted = model.score(some, ROWS[1:3])
    for y in (NAMES[1:3], list(map(set, NAMES[1:3])), FRAME[1:3], FRAME[COLUMNS[::-1]][1:3]):
        assert model.score(some, y) == class_f1_scorer(model, some, y) == wanted == 1
        assert model.evaluate(some, y)["f1 of spam"] == 1
    assert model.evaluate(TEXTS, NAMES)["f1_macro"] == 1
    assert model.score(TEXTS[1:2], [[]]) == 0  # nothing to find, and nothing found
    assert model.task.measure(model) == "labels, micro"
    with pytest.raises(ValueError, match=r"y has no columns \['money'\]"):
        model.score(some, FRAME[["spam", "travel"]][:2])


def test_validation_labels_by_name(blank):
    settings = {"max_epochs": 2, "early_stopping": True}
    quick = clone(blank).set_params(**settings)
    fitted = quick.fit(TEXTS, NAMES, X_val=TEXTS[:3], y_val=[["spam"], [], ["spam"]])
    wanted = [epoch["valid_score"] for epoch in fitted.history_]
    y_val = pd.DataFrame({"travel": [0, 0, 0], "spam": [1, 0, 1], "money": [0, 0, 0]})
    fitted = quick.fit(TEXTS, FRAME, X_val=TEXTS[:3], y_val=y_val)
    assert [epoch["valid_score"] for epoch in fitted.history_] == wanted
    for held, error, message in (
        ([["hate"], []], ValueError, r"y_val names labels that fit did not see: \['hate'\]"),
        ([["spam"], "spam"], TypeError, r"y_val\[1\] is 'spam', and other rows are lists"),
        (["spam", "travel"], ValueError, r"y_val has shape \(2,\) and y \(24, 3\)"),
    ):
        with pytest.raises(error, match=message):
            quick.fit(TEXTS, NAMES, X_val=["a", "b"], y_val=held)


def test_further_training_by_name(blank):
    quick = clone(blank).set_params(max_epochs=1)
    first = clone(quick).partial_fit(TEXTS[:2], NAMES[:2], classes=[*COLUMNS, "hate"])
    assert first.classes_.tolist() == ["hate", *COLUMNS]
    first.partial_fit(TEXTS[2:4], NAMES[2:4])
    assert first.class_counts_.tolist() == [0, 1, 2, 1]
    assert first.n_samples_seen_ == 4
    with pytest.raises(ValueError, match=r"labels \['envy'\] are new"):
        first.partial_fit(TEXTS[:1], [["envy"]])
    with pytest.raises(ValueError, match="the first fit did not see"):
        first.partial_fit(TEXTS[:2], ["spam", "money"])
    by_frame = clone(quick).partial_fit(TEXTS, FRAME, classes=["spam", "hate"])
    assert by_frame.classes_.tolist() == [*COLUMNS, "hate"]
    named = clone(quick).partial_fit(TEXTS, ROWS, classes=COLUMNS)
    assert named.classes_.tolist() == COLUMNS
    assert named.partial_fit(TEXTS[:2], NAMES[:2]).history_[-1]["train_loss"] > 0
    with pytest.raises(ValueError, match=r"classes=.* holds 2 names and y has 3 columns"):
        clone(quick).partial_fit(TEXTS, ROWS, classes=["a", "b"])
    warm = clone(quick).set_params(warm_start=True).fit(TEXTS, NAMES)
    warm.fit(TEXTS[:2], [["travel"], []])
    assert warm.classes_.tolist() == COLUMNS


def test_a_label_without_a_row_is_named(numeric):
    with pytest.warns(UserWarning, match=r"y has no row with the labels \['hate'\]"):
        found = numeric.fit(NUMBERS, FRAME.assign(hate=0))
    assert found.predict(NUMBERS)[:, 3].sum() == 0
    with pytest.warns(UserWarning, match=r"no row with the labels \[1\]"):
        numeric.fit(NUMBERS, np.c_[ROWS[:, 0], np.zeros(24)])
    with pytest.raises(ValueError, match="y names no label in any row"):
        numeric.fit(NUMBERS, [[]] * 24)


@pytest.mark.parametrize("loss", ["ce", "weighted_ce", "focal", "ce_dice", "dsc"])
def test_rows_of_numbers_may_have_several_labels(loss):
    found = DiceClassifier(loss=loss, max_epochs=15, lr=0.3, random_state=0).fit(NUMBERS, NAMES)
    np.testing.assert_array_equal(found.predict(NUMBERS), ROWS)
    assert found.predict_proba(NUMBERS).shape == found.decision_function(NUMBERS).shape == (24, 3)
    assert found.score(NUMBERS, FRAME) == 1
    doubled = clone(found).fit(np.r_[NUMBERS, NUMBERS[:4]], [*NAMES, *NAMES[:4]])
    weighted = clone(found).fit(NUMBERS, NAMES, sample_weight=[2] * 4 + [1] * 20)
    tables = (model.predict_proba(NUMBERS) for model in (weighted, doubled))
    np.testing.assert_allclose(*tables, atol=1e-6)
    assert pickle.loads(pickle.dumps(found)).score(NUMBERS, NAMES) == 1
    one = clone(found).fit(NUMBERS, [["spam"], []] * 12)
    assert one.classes_.tolist() == ["spam"]
    np.testing.assert_array_equal(one.predict(NUMBERS), [[1], [0]] * 12)
    assert one.score(NUMBERS, [["spam"], []] * 12) == 1


def test_searches_and_folds(numeric):
    grid = {"loss": ["ce"]}
    for y in (FRAME, ROWS):
        assert GridSearchCV(numeric, grid, cv=3).fit(NUMBERS, y).best_score_ == 1
        np.testing.assert_array_equal(cross_val_predict(numeric, NUMBERS, y, cv=3), ROWS)
    # scikit-learn reads no lists of names, except where it need not look at y.
    with pytest.raises(ValueError, match="MultiLabelBinarizer"):
        cross_val_score(numeric, NUMBERS, NAMES, cv=3)
    folds = KFold(3)
    assert GridSearchCV(numeric, grid, cv=folds).fit(NUMBERS, NAMES).best_score_ == 1
    np.testing.assert_array_equal(cross_val_predict(numeric, NUMBERS, NAMES, cv=folds), ROWS)
    for y in (NAMES, FRAME):
        search = LossSearchCV(numeric, grid, n_trials=1, cv=3, random_state=0).fit(NUMBERS, y)
        assert search.best_score_ == 1
        assert search.best_estimator_.classes_.tolist() == COLUMNS
    rare = [["a"], *[["b"], []] * 11, ["b"]]
    with pytest.raises(ValueError, match=r"cv leaves the value 1 of column 'a' of y out .* fold 0"):
        LossSearchCV(numeric, grid, n_trials=1, cv=3).fit(NUMBERS, rare)


@pytest.mark.parametrize(("y", "labels"), [(NAMES, COLUMNS), (ROWS, [0, 1, 2])])
def test_a_saved_model_serves_the_names(blank, y, labels, tmp_path):
    model = clone(blank).set_params(pooling="native", max_epochs=2).fit(TEXTS, y)
    folder = model.save_pretrained(tmp_path / "m")
    config = json.loads((folder / "config.json").read_text())
    assert config["problem_type"] == "multi_label_classification"
    assert list(config["id2label"].values()) == [*map(str, labels)]
    judge = pipeline("text-classification", str(folder), top_k=None)
    for text, row in zip(TEXTS[:4], model.predict_proba(TEXTS[:4]), strict=True):
        found = {f["label"]: f["score"] for f in judge([text])[0]}
        np.testing.assert_allclose([found[str(name)] for name in labels], row, atol=1e-5)
    assert f"`{labels[-1]}`" in (folder / "README.md").read_text()
    for read in (DiceSequenceClassifier.from_pretrained, DiceSequenceClassifier.from_transformers):
        again = read(folder)
        assert again.multilabel_
        assert again.classes_.tolist() == labels
        assert again.score(TEXTS, y) == model.score(TEXTS, y)
        again.set_params(max_epochs=1).partial_fit(TEXTS[:4], y[:4])


@pytest.mark.parametrize("sampler", [RandomOverSampler(), RandomUnderSampler()])
def test_a_sampler_draws_texts_by_their_rarest_label(blank, sampler):
    names = [["spam", "money"], *[["spam"]] * 3, *[[]] * 20]
    fitted = clone(blank).set_params(sampler=sampler, max_epochs=1).fit(TEXTS, names)
    n = 20 if "Over" in type(sampler).__name__ else 1
    # Texts of the rarest label have two; the counts are those of the drawn rows.
    assert (fitted.class_counts_.tolist(), fitted.n_samples_seen_) == ([n, 2 * n], 3 * n)


def test_rows_are_drawn_by_their_rarest_label():
    names = [["spam", "money"], *[["spam"]] * 3, *[[]] * 20]
    table = read_labels(names).values
    drawn = draw_rows(RandomOverSampler(), table, 0)
    kinds = [tuple(names[i]) for i in drawn]
    assert {kind: kinds.count(kind) for kind in kinds} == {
        ("spam", "money"): 20, ("spam",): 20, (): 20
    }  # fmt: skip
    some = RandomUnderSampler(sampling_strategy={-1: 5})  # the rows without a label
    assert np.bincount(draw_rows(some, table, 0) > 3).tolist() == [4, 5]


def test_counts_of_several_labels():
    for y, how in ((NAMES, {"multilabel": True}), (list(map(set, NAMES)), {}), (FRAME, {})):
        found = imbalance(y, **how)
        assert found.unit == "examples"
        assert (found.n_negative, found.n_positive, found.ratio) == (6, 18, 1 / 3)
        assert found.counts == {"spam": 12, "(no label)": 6, "money": 6, "travel": 6}
        assert found.background == "(no label)"
    assert imbalance(ROWS).counts == {1: 12, "(no label)": 6, 0: 6, 2: 6}
    with pytest.raises(ValueError, match="background of several labels a row='spam'"):
        imbalance(FRAME, background="spam")


def test_pictures_and_report(model):
    wrong = [["spam"], *NAMES[1:]]
    page = html_report(model, TEXTS, wrong)
    assert 'true:</p><p><b>spam</b></p><p class="note">predicted:</p><p><b>money, spam<' in page
    assert f"({model.predict_proba(TEXTS)[0][list(model.classes_).index('money')]:.2f})" in page
    rows = {cells[0]: cells[1:] for cells in _cells(page) if cells}
    assert [rows["money"][i] for i in (2, 4, 5)] == ["0.909", "5", "6"]
    assert rows["micro average"][2] == f"{model.score(TEXTS, wrong):.3f}"
    with pytest.raises(ValueError, match="hate"):
        html_report(model, TEXTS, [["hate"]] * 24)


def _cells(page):
    return [re.findall("<td>(.*?)</td>", row) for row in re.findall("<tr>(.*?)</tr>", page)]


def test_a_comparison_has_the_f1_of_each_label(numeric):
    how = dict(X_test=NUMBERS, y_test=FRAME, losses=["ce", "dsc"], seeds=1)
    found = compare_losses(numeric, NUMBERS, NAMES, **how)
    assert found.averages == ("precision", "recall", "f1", "accuracy", "f1_macro")
    assert found.measures[5:] == ("f1 of money", "f1 of spam", "f1 of travel")
    assert found.rows[0].mean("f1 of travel") == 1
    with pytest.raises(ValueError, match=r"y_test names labels that fit did not see: \['hate'\]"):
        compare_losses(numeric, NUMBERS, NAMES, X_test=NUMBERS[:1], y_test=[["hate"]], seeds=1)
