"""Pictures of fits and decisions show what a plain loop over the rows gives."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from skdice import (
    BiasTunedClassifier,
    BiasTunedTagger,
    DiceClassifier,
    DiceMRCTagger,
    DiceQuestionAnswerer,
    DiceTokenClassifier,
)
from skdice.estimators.tuned.decision import Decision
from skdice.inspection import DecisionDisplay
from skdice.metrics import (
    AlertBudget,
    PrecisionAtRecall,
    RecallAtPrecision,
    span_report,
)
from skdice.model_selection import compare_losses
from tests.fits import never_fitted

pytest.importorskip("matplotlib")


def test_rows_that_are_not_possible_are_refused_before_the_work(tiny_backbone, sentences):
    X, y = sentences
    questions, answers = [("who", "anna went")] * 4, [(0, "anna")] * 4
    asker, reader, tagger = (
        never_fitted(kind)(backbone=tiny_backbone)
        for kind in (DiceMRCTagger, DiceQuestionAnswerer, DiceTokenClassifier)
    )
    numbers = never_fitted(DiceClassifier)()
    for model, data, row, message in (
        (asker, (X, y), "ce + tuned", "takes no sampler and has no classes to tune"),
        (asker, (X, y), "ce + TagOverSampler", "takes no sampler"),
        (reader, (questions, answers), "ce + tuned", "takes no sampler"),
        (tagger, (X, y), "ce + RandomOverSampler", "'ce . RandomOverSampler' is not possible"),
        (numbers, (np.eye(8), [0, 1] * 4), "ce + TagOverSampler", "TagOverSampler' is not possib"),
    ):
        with pytest.raises(ValueError, match=message):
            compare_losses(model, *data, X_test=data[0], y_test=data[1], losses=["ce", row])


def rows_of_three_labels(n=300):
    draw = np.random.default_rng(0)
    X = draw.normal(size=(n, 3))
    y = (X + draw.normal(size=X.shape) > [1.0, 1.5, 0.5]).astype(int)
    return X, y


def f1_by_hand(true, predicted):
    hits = sum(t and p for t, p in zip(true, predicted, strict=True))
    return 2 * hits / (sum(true) + sum(predicted))


@pytest.mark.parametrize("label", ["ham", None])
def test_a_decision_of_two_classes_is_a_loop_over_biases(label):
    X, y = make_classification(400, weights=[0.2], class_sep=0.6, random_state=0)
    y = np.array(["ham", "spam"])[y]
    model = DiceClassifier(loss="ce", max_epochs=5, random_state=0).fit(X[:200], y[:200])
    tuned = BiasTunedClassifier(model, cv="prefit", n_bootstraps=4).fit(X[200:300], y[200:300])
    X, y = X[300:], y[300:]
    display = DecisionDisplay.from_estimator(tuned, X, y, label=label)
    assert display.label == "ham"  # the rarer one
    assert display.measure == "F1"
    assert display.score[display.chosen] == pytest.approx(tuned.score(X, y))
    assert display.bias[display.chosen] == pytest.approx(tuned.bias_[0])
    assert sorted(display.draws) == sorted(tuned.bias_draws_[:, 0])
    p = model.predict_proba(X)[:, 0]
    for i, bias in enumerate(display.bias):
        found = [np.log(one) + bias > np.log(1 - one) for one in p]
        assert display.score[i] == pytest.approx(f1_by_hand(y == "ham", found))
        hits = sum(f and t == "ham" for f, t in zip(found, y, strict=True))
        assert display.recall[i] == pytest.approx(hits / (y == "ham").sum())
        assert display.precision[i] == pytest.approx(hits / max(sum(found), 1))
    with pytest.raises(ValueError, match="label='spam' is not among the labels"):
        DecisionDisplay.from_estimator(tuned, X, y, label="spam")


def test_a_decision_of_several_labels_is_drawn_for_each():
    X, y = rows_of_three_labels()
    frame = pd.DataFrame(y, columns=["toxic", "threat", "rude"])
    model = DiceClassifier(loss="ce", max_epochs=5, random_state=0).fit(X, frame)
    tuned = BiasTunedClassifier(model, scoring="f1", cv="prefit").fit(X, frame)
    display = DecisionDisplay.from_estimator(tuned, X, frame, label="threat")
    at = tuned.classes_.tolist().index("threat")
    p = model.predict_proba(X)[:, at]
    for bias, score in zip(display.bias, display.score, strict=True):
        assert score == pytest.approx(f1_by_hand(y[:, 1], np.log(p / (1 - p)) + bias > 0))
    # All together: the ring is the tuned decision, and the rest moves all biases.
    display = DecisionDisplay.from_estimator(tuned, X, frame)
    macro = {"average": "macro"}
    assert display.score[display.chosen] == pytest.approx(f1_score(y, tuned.predict(X), **macro))
    shift = display.bias[5] - display.bias[display.chosen]
    tuned.bias_ = tuned.bias_ + shift
    assert display.score[5] == pytest.approx(f1_score(y, tuned.predict(X), **macro))


@pytest.mark.parametrize("scoring", ["auto", "accuracy", "neg_log_loss", None])
def test_a_decision_of_three_classes_moves_one(scoring):
    X, y = make_classification(
        300, n_informative=4, n_classes=3, weights=[0.7, 0.1], class_sep=0.6, random_state=0
    )
    model = DiceClassifier(loss="ce", max_epochs=5, random_state=0).fit(X, y)
    how = scoring or (lambda true, found: float((true == found).mean()))
    tuned = BiasTunedClassifier(model, scoring=how, cv="prefit", n_bootstraps=2).fit(X, y)
    display = DecisionDisplay.from_estimator(tuned, X, y)
    assert display.label == "1"  # the rarest
    log_p = np.log(model.predict_proba(X))
    for i, bias in enumerate(display.bias):
        biases = tuned.bias_.copy()
        biases[1] = bias + biases[[0, 2]].mean()
        found = (log_p + biases).argmax(axis=1)
        macro = f1_score(y, found, average="macro")
        want = macro if scoring in ("auto", "neg_log_loss") else (y == found).mean()
        assert display.score[i] == pytest.approx(want)
        assert display.recall[i] == pytest.approx((found[y == 1] == 1).mean())


@pytest.mark.parametrize("constrained", [False, True])
def test_a_decision_of_spans_is_that_of_the_tagger(tiny_backbone, sentences, constrained):
    X, y = sentences
    tagger = DiceTokenClassifier(
        loss="ce", backbone=tiny_backbone, max_epochs=8, lr=1e-2, random_state=0,
        constrained=constrained,
    ).fit(X, y)  # fmt: skip
    tuned = BiasTunedTagger(tagger, cv="prefit").fit(X, y)
    for model in (tuned, tagger):
        display = DecisionDisplay.from_estimator(model, X, y)
        assert display.score[display.chosen] == pytest.approx(model.score(X, y))
    display = DecisionDisplay.from_estimator(tuned, X, y, label="PER")
    of_type = np.array([tag.endswith("-PER") for tag in tuned.classes_])
    shift = display.bias[10] - display.bias[display.chosen]
    tuned.bias_ = tuned.bias_ + shift * of_type
    report = span_report(y, tuned.predict(X), output_dict=True)
    assert display.score[10] == pytest.approx(report["PER"]["f1"])
    assert len(set(display.score)) > 3
    with pytest.raises(ValueError, match=r"label='X' is not among the labels \['LOC'"):
        DecisionDisplay.from_estimator(tuned, X, y, label="X")


def test_a_constrained_decision_is_decoded(tiny_backbones, sentences):
    X, y = sentences
    # Hardly trained, it puts I- without B- before it.
    how = dict(loss="ce", backbone=tiny_backbones["bert"], max_epochs=1, lr=1e-3, random_state=0)
    tagger = DiceTokenClassifier(constrained=True, **how).fit(X, y)
    free = DiceTokenClassifier(constrained=False, **how).fit(X, y)
    scores = []
    for model in (tagger, free):
        tuned = BiasTunedTagger(model, cv="prefit", n_bootstraps=0).fit(X, y)
        tuned.bias_ = np.where(np.char.startswith(tuned.classes_.astype(str), "I-"), 2.0, 0.0)
        display = DecisionDisplay.from_estimator(tuned, X, y)
        assert display.score[display.chosen] == pytest.approx(tuned.score(X, y))
        scores.append(display.score)
    assert not np.allclose(*scores)


def test_a_bound_is_drawn_where_it_holds():
    X, y = make_classification(2000, weights=[0.7], class_sep=1.5, random_state=0)
    model = DiceClassifier(loss="ce", max_epochs=5, random_state=0).fit(X, y)
    p = model.predict_proba(X)[:, 1]
    odds = np.log(p / (1 - p))
    for scoring, measure, line in (
        (RecallAtPrecision(0.9), "recall", {"precision": 0.9}),
        (PrecisionAtRecall(0.8), "precision", {"recall": 0.8}),
        (AlertBudget(200), "recall", {"alerts per 1,000 rows": 200}),
    ):
        tuned = BiasTunedClassifier(model, scoring=scoring, cv="prefit").fit(X, y)
        display = DecisionDisplay.from_estimator(tuned, X, y)
        assert (display.measure, display.bound, len(display.draws)) == (measure, line, 0)
        np.testing.assert_array_equal(display.score, getattr(display, measure))
        alerts = np.array([(odds + bias > 0).sum() for bias in display.bias])
        holds = {
            "precision": display.precision >= 0.9,
            "recall": display.recall >= 0.8,
            "alerts per 1,000 rows": 1000 * alerts <= 200 * len(X),
        }
        np.testing.assert_array_equal(display.holds, holds[next(iter(line))])
        assert display.holds[display.chosen]
        assert 0 < display.holds.sum() < len(display.holds)
        texts = [text.get_text() for ax in display.axes_ for text in (ax.title, ax.yaxis.label)]
        assert next(iter(line)) in texts[0]
        chosen = display.precision[display.chosen], display.recall[display.chosen]
        title = "precision {:.2f}, recall {:.2f}".format(*chosen)
        assert texts[1:] == [measure, title, "precision"]


def test_a_decision_refuses_what_it_cannot_draw():
    X, y = rows_of_three_labels()
    model = DiceClassifier(loss="ce", max_epochs=1, random_state=0).fit(X, y)
    for rows, answers in ((X[:5], y[:4]), (X[:0], y[:0])):
        with pytest.raises(ValueError, match=r"\b[Xy]\b"):
            DecisionDisplay.from_estimator(model, rows, answers)
    with pytest.raises(TypeError, match="estimator"):
        DecisionDisplay.from_estimator("x", X, y)
    with pytest.raises(ValueError, match="label"):
        DecisionDisplay.from_estimator(model, X, y, label=[1])
    for name, value in (
        ("chosen", 3),
        ("draws", [np.nan]),
        ("holds", [True]),
        ("bound", {"a": "b"}),
    ):
        with pytest.raises((ValueError, TypeError), match=name):
            DecisionDisplay([0, 1, 2], [0, 1, 2], [0, 1, 1], [0, 1, 1], **{name: value})
    display = DecisionDisplay([0, 1], [0.5, 0.6], [0.5, 0.5], [0.1, 0.2], measure="F$1")
    only = display.plot().axes_[0]
    assert display.plot(axes=only).axes_ == [only]


def test_a_decision_is_of_the_rare_class_behind_a_search_too():
    X, z = make_classification(300, weights=[0.85], random_state=0)
    y = np.where(z == 1, "bad", "ok")
    model = LogisticRegression()
    for estimator in (model, GridSearchCV(model, {"C": [1.0]}, cv=2), make_pipeline(model)):
        decision = Decision.of(estimator.fit(X, y), X, y)
        assert decision.tuned.classes_[decision.tuned.positive_] == "bad"
