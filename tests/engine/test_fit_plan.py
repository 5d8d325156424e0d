"""From X and y to what is trained: rows without weight, and what is not loaded."""

from __future__ import annotations

import numpy as np
import pytest

from skdice import (
    DiceClassifier,
    DiceEntityRecognizer,
    DiceMRCTagger,
    DiceSequenceClassifier,
    DiceTokenClassifier,
    backbones,
)
from skdice.datasets import read_dataset
from skdice.engine.fit_plan import FitPlan, length_of_fit, plan_fit
from skdice.tasks import TASKS
from tests.data import LABELS, SENTENCES, SPANS, TAGS, TEXTS
from tests.fits import ROWS_OF

NUMBERS = np.random.default_rng(0).normal(size=(12, 3))
OTHERS = np.array(["a", "b", "c", "b"] * 3)


def small(cls, tiny_backbone, **params):
    if cls is DiceClassifier:
        return cls(max_epochs=1, random_state=0)
    return cls(backbone=tiny_backbone, random_state=0, **params)


# ---- rows of weight 0


@pytest.mark.parametrize("cls", [DiceSequenceClassifier, DiceClassifier])
def test_two_classes_of_which_one_weighs_nothing_are_refused_before_work(
    tiny_backbone, monkeypatch, cls
):
    monkeypatch.setattr(backbones, "load_weights", lambda *a: pytest.fail("weights are loaded"))
    X = NUMBERS if cls is DiceClassifier else TEXTS
    with pytest.raises(ValueError, match=r"one class only \('ham'\)"):
        small(cls, tiny_backbone).fit(X, LABELS, sample_weight=LABELS == "ham")


@pytest.mark.parametrize("cls", [DiceSequenceClassifier, DiceClassifier])
def test_a_class_of_more_that_weighs_nothing_counts_as_absent(tiny_backbone, cls):
    X = NUMBERS if cls is DiceClassifier else np.array(TEXTS)
    weights, kept = (OTHERS != "c").astype(float), OTHERS != "c"
    model = small(cls, tiny_backbone).fit(X, OTHERS, sample_weight=weights)
    alone = small(cls, tiny_backbone).fit(X[kept], OTHERS[kept])
    assert model.classes_.tolist() == ["a", "b"]
    assert model.max_epochs_ == alone.max_epochs_
    np.testing.assert_array_equal(model.predict_proba(X), alone.predict_proba(X))


def test_tags_and_types_that_weigh_nothing_count_as_absent(tiny_backbone):
    weights = [0 if any("ORG" in tag for tag in row) else 1 for row in TAGS]
    tagger = small(DiceTokenClassifier, tiny_backbone, max_epochs=1)
    tagger.fit(SENTENCES, TAGS, sample_weight=weights)
    assert tagger.classes_.tolist() == ["B-LOC", "B-PER", "O"]
    spans = small(DiceMRCTagger, tiny_backbone, max_epochs=1)
    spans.fit(SENTENCES, SPANS, sample_weight=weights)
    assert set(spans.queries_) == {"LOC", "PER"}


# ---- what is loaded


@pytest.mark.parametrize("cls", [DiceSequenceClassifier, DiceTokenClassifier, DiceEntityRecognizer])
def test_the_length_of_a_fit_is_known_without_weights(tiny_backbone, monkeypatch, cls):
    X, y = ROWS_OF[cls]
    model = small(cls, tiny_backbone, max_length=6).fit(X, y)
    n_rows = len(plan_fit(model, X, y).dataset)
    monkeypatch.setattr(backbones, "load_weights", lambda *a: pytest.fail("weights are loaded"))
    assert length_of_fit(model, X, y) == (n_rows, model.max_epochs_)


# ---- numbers are a task


def test_numbers_go_through_the_same_plan_and_stay_out_of_files(tmp_path):
    model = DiceClassifier(early_stopping=True, validation_fraction=0.5, random_state=0)
    plan = plan_fit(model, NUMBERS, LABELS)
    assert isinstance(plan, FitPlan)
    assert len(plan.dataset) + len(plan.validation.examples) == 12
    assert DiceClassifier.task.name == "numbers"
    assert "numbers" not in TASKS
    path = tmp_path / "rows.tsv"
    path.write_text("text\tlabel\na b\tx\nc d\ty\n")
    with pytest.raises(ValueError, match="task='numbers' must be one of"):
        read_dataset(path, task="numbers")
