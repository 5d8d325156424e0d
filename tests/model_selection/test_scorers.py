"""Scorers of scikit-learn that fail on the labels are refused before the first fit."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import f1_score, make_scorer

from skdice import DiceClassifier, DiceTokenClassifier
from skdice.metrics import class_f1_scorer, span_f1_scorer
from skdice.model_selection import LossSearchCV, loss_space
from skdice.model_selection.checks import check_scores
from tests.data import SENTENCES, TAGS
from tests.fits import never_fitted

X = np.random.default_rng(0).normal(size=(40, 2))
NAMES = np.where(X[:, 0] > 0, "spam", "ham")


def test_f1_of_names_is_refused_and_its_remedy_works():
    search = LossSearchCV(never_fitted(DiceClassifier)(), loss_space("tversky"), scoring="f1")
    with pytest.raises(ValueError, match=r"scoring='f1' cannot score y .*class_f1_scorer"):
        search.fit(X, NAMES)
    model, space = DiceClassifier(max_epochs=2, random_state=0), loss_space("tversky")
    for remedy in (class_f1_scorer, None, "f1_macro"):
        found = LossSearchCV(model, space, n_trials=1, cv=2, scoring=remedy, random_state=0)
        assert np.isfinite(found.fit(X, NAMES).best_score_)


def test_scorers_of_classes_are_refused_for_tags(tiny_backbone):
    tagger = DiceTokenClassifier(backbone=tiny_backbone, max_epochs=1)
    search = LossSearchCV(tagger, loss_space("tversky"), n_trials=1, cv=2, scoring="f1_macro")
    with pytest.raises(ValueError, match=r"scoring='f1_macro' cannot score y .*span_f1_scorer"):
        search.fit(SENTENCES, TAGS)


@pytest.mark.parametrize(
    ("scoring", "y"),
    [
        *((name, NAMES) for name in ("roc_auc", "neg_log_loss", "f1_macro", "balanced_accuracy")),
        (span_f1_scorer, NAMES),
        (make_scorer(f1_score, pos_label="spam"), NAMES),
        ("f1", (NAMES == "spam").astype(int)),
        ("f1_micro", np.eye(3, dtype=int)),
        ("precision", np.arange(6) // 5),  # what is scored predicts no positive, without a word
        (None, TAGS),
    ],
)
def test_scorers_that_may_work_are_left_alone(scoring, y):
    assert check_scores(scoring, y) is None
