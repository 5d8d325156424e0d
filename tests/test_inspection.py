"""LossGradientDisplay: its curves are the derivatives, by finite differences of the formulas."""

from __future__ import annotations

import numpy as np
import pytest

from skdice import DiceClassifier, DiceMRCTagger, DiceQuestionAnswerer, DiceTokenClassifier
from skdice.inspection import LossGradientDisplay, TverskySweepDisplay
from skdice.losses import DiceLoss, DSCLoss, FocalLoss
from skdice.model_selection import compare_losses

pytest.importorskip("matplotlib")


def literal_dsc(p: float, y: int) -> float:
    q = (1 - p) * p
    return 1 - (2 * q * y + 1) / (q + y + 1)


def printed_dice(p: float, y: int) -> float:
    return 1 - (2 * p * y + 1) / (p**2 + y + 1)


def focal(p: float, y: int) -> float:
    right = p if y else 1 - p
    return -((1 - right) ** 2) * np.log(right)


@pytest.mark.parametrize(
    ("loss", "formula"),
    [
        (DiceLoss(aggregation="example"), printed_dice),
        (FocalLoss(gamma=2.0), focal),
        (DSCLoss(exponent=1.0, squared=False, aggregation="example"), literal_dsc),
    ],
)
def test_curves_are_the_derivatives_of_the_formula(loss, formula):
    display = LossGradientDisplay.from_losses({"one": loss}, n_points=9)
    step = 1e-6
    for side, curve in zip((1, 0), display.gradients["one"], strict=True):
        want = [(formula(p + step, side) - formula(p - step, side)) / (2 * step) for p in display.p]
        np.testing.assert_allclose(curve, want, rtol=1e-4, atol=1e-6)


def test_a_loss_over_the_batch_is_differentiated_beside_the_rest():
    rest = {"n_positive": 2, "n_negative": 3, "p_positive": 0.6, "p_negative": 0.2}
    display = LossGradientDisplay.from_losses({"dice": DiceLoss(smooth=0.0)}, n_points=4, **rest)

    def loss(p: float, y: int) -> float:
        hits = 2 * (2 * 0.6 + p * y)
        total = 2 * 0.6**2 + 3 * 0.2**2 + p**2 + 2 + y
        return 1 - hits / total

    step = 1e-6
    for side, curve in zip((1, 0), display.gradients["dice"], strict=True):
        want = [6 * (loss(p + step, side) - loss(p - step, side)) / (2 * step) for p in display.p]
        np.testing.assert_allclose(curve, want, rtol=1e-4)


def test_no_point_remembers_another():
    remembers, not_ = (
        LossGradientDisplay.from_losses({"dice": DiceLoss(ema_decay=decay)}, n_points=5)
        for decay in (0.9, 0.0)
    )
    np.testing.assert_array_equal(remembers.gradients["dice"], not_.gradients["dice"])


def test_the_paper_and_the_defaults_are_drawn():
    display = LossGradientDisplay.from_losses(n_points=9)
    assert {"ce", "dsc", "dsc, as printed"} <= set(display.gradients)
    positive, _ = display.gradients["dsc, as printed"]
    assert (positive[display.p < 0.5] < 0).all()
    assert (positive[display.p > 0.5] > 0).all()  # Figure 1: it turns at one half
    assert [len(ax.lines) for ax in display.axes_] == [len(display.gradients) + 1] * 2
    with pytest.raises(ValueError, match="give two"):
        display.plot(display.axes_[:1])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"p_positive": 1.0}, "p_positive=1.0"),
        ({"n_points": 0}, "n_points=0"),
        ({"n_negative": 2.5}, "n_negative=2.5"),
        ({"losses": {"x": "nope"}}, "'nope' is unknown"),
    ],
)
def test_bad_input_is_refused_by_name(options, message):
    with pytest.raises(ValueError, match=message):
        LossGradientDisplay.from_losses(**options)


def test_rows_that_are_not_possible_are_refused_before_the_work(
    tiny_backbone, sentences, monkeypatch
):
    X, y = sentences
    questions, answers = [("who", "anna went")] * 4, [(0, "anna")] * 4
    asker, reader = (
        DiceMRCTagger(backbone=tiny_backbone),
        DiceQuestionAnswerer(backbone=tiny_backbone),
    )
    tagger = DiceTokenClassifier(backbone=tiny_backbone)
    for model in (asker, reader, tagger):
        monkeypatch.setattr(type(model), "fit", lambda *_, **__: pytest.fail("the work began"))
    for model, data, row, message in (
        (asker, (X, y), "ce + tuned", "takes no sampler and has no classes to tune"),
        (asker, (X, y), "ce + TagOverSampler", "takes no sampler"),
        (reader, (questions, answers), "ce + tuned", "takes no sampler"),
        (tagger, (X, y), "ce + RandomOverSampler", "'ce . RandomOverSampler' cannot be drawn"),
    ):
        with pytest.raises(ValueError, match=message):
            compare_losses(model, *data, X_test=data[0], y_test=data[1], losses=["ce", row])
    monkeypatch.setattr(DiceClassifier, "fit", lambda *_, **__: pytest.fail("the work began"))
    table, labels = np.eye(8), [0, 1] * 4
    with pytest.raises(ValueError, match=r"'ce . TagOverSampler' cannot be drawn"):
        compare_losses(
            DiceClassifier(),
            table,
            labels,
            X_test=table,
            y_test=labels,
            losses=["ce", "ce + TagOverSampler"],
        )
    with pytest.raises(ValueError, match="reads answers"):
        TverskySweepDisplay.from_estimator(reader, questions, answers)
