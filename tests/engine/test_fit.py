"""A fit is the same whoever looks at it, and one that fails leaves nothing behind."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from imblearn.under_sampling import RandomUnderSampler
from sklearn.base import BaseEstimator, clone
from skorch.callbacks import Callback
from skorch.history import History

from skdice import (
    DiceClassifier,
    DiceMRCTagger,
    DiceQuestionAnswerer,
    DiceSequenceClassifier,
    DiceTokenClassifier,
    TransformerFeatures,
)
from skdice.engine.callbacks import ValidationScore
from skdice.engine.net import FineTuningNet
from skdice.losses import DiceLoss
from tests.data import SENTENCES, TAGS
from tests.fits import Tells, assert_same_fit, tensors_of

NUMBERS = np.random.default_rng(0).normal(size=(60, 5))
OVERLAP = DiceLoss()
KINDS = ("tagger", "texts", "pairs", "spans", "numbers")


@pytest.fixture
def case(tiny_backbone, sentences):
    """From a kind to an unfitted estimator with inputs and targets."""
    X, y = sentences
    common = dict(backbone=tiny_backbone, max_epochs=2, batch_size=4, lr=1e-2, random_state=0)
    tagged = [int(any(tag != "O" for tag in row)) for row in y]
    questions = [("who sings?", "anna sings in rome."), ("who?", "the bus is late.")] * 4

    texts, classes = [" ".join(row) for row in X], (NUMBERS[:, 0] > 0.8).astype(int)
    of_numbers = dict(loss=OVERLAP, max_epochs=3, batch_size=8, dropout=0.5, random_state=0)
    kinds = {
        "tagger": (DiceTokenClassifier(loss=OVERLAP, **common), X, y),
        "texts": (DiceSequenceClassifier(loss=OVERLAP, dropout=0.3, **common), texts, tagged),
        "pairs": (DiceQuestionAnswerer(**common), questions, [(0, "anna"), None] * 4),
        "spans": (DiceMRCTagger(**common), X[:6], y[:6]),
        "numbers": (
            DiceClassifier(hidden_layer_sizes=(8,), **of_numbers),
            *(NUMBERS, classes),
        ),
    }
    return kinds.__getitem__


class Calls(Callback):
    """Call a function at every moment of a fit; clones call the same one."""

    def __init__(self, call):
        self.call = call

    def on_epoch_begin(self, net, **kwargs):
        self.call(net)

    on_batch_begin = on_batch_end = on_grad_computed = on_epoch_end = on_epoch_begin


@pytest.mark.parametrize("kind", KINDS)
def test_a_callback_that_predicts_changes_nothing(case, kind):
    model, X, y = case(kind)
    alone = clone(model).fit(X, y)
    data, seen = [], []
    tells = Tells(begin=lambda net, rows: data.append(rows))
    looks = Calls(lambda net: seen.append(net.predict_proba(data[0])))
    model.set_params(callbacks=[tells, looks]).fit(X, y)
    assert len(seen) > 6
    assert_same_fit(model, alone)
    assert not model.net_.module_.training
    np.testing.assert_array_equal(seen[-1], alone.net_.predict_proba(data[0]))


def test_a_callback_that_changes_the_mode_changes_nothing(case):
    model, X, y = case("texts")
    alone = clone(model).fit(X, y)
    calls = [Calls(lambda net: net.module_.eval()), Calls(lambda net: net.criterion_.eval())]
    for callback in calls:
        assert_same_fit(clone(model).set_params(callbacks=[callback]).fit(X, y), alone)


# ---- fits that fail


class FailsError(Exception):
    pass


def fail_at(n):
    """A callback that raises at its call `n`."""
    calls = []

    def call(net):
        calls.append(1)
        if len(calls) == n:
            raise FailsError

    return Calls(call)


class Overflows(DiceLoss):
    """A loss that fails in its second update."""

    def forward(self, *args, **kwargs):
        self.calls = getattr(self, "calls", 0) + 1
        if self.calls == 2:
            raise OverflowError("too large")
        return super().forward(*args, **kwargs)


FAILURES = {
    "callback": lambda: dict(callbacks=[fail_at(7)]),
    "loss": lambda: dict(loss=Overflows()),
}


def state_of(model, X):
    params = model.get_params(deep=False)
    fitted = {k: v for k, v in vars(model).items() if k not in params}
    return fitted, {k: v.clone() for k, v in tensors_of(model).items()}, list(model.predict(X))


def assert_unchanged(model, X, before):
    fitted, values, predictions = before
    now, values_now, predictions_now = state_of(model, X)
    assert now.keys() == fitted.keys()
    assert all(now[name] is fitted[name] for name in fitted)
    assert values.keys() == values_now.keys()
    assert all(torch.equal(values[name], values_now[name]) for name in values)
    assert all(np.array_equal(a, b) for a, b in zip(predictions, predictions_now, strict=True))
    assert len(model.net_.history) == len(model.history_) == model.n_iter_


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("kind", ["tagger", "texts"])
def test_a_warm_start_that_fails_leaves_what_was(case, kind, failure):
    model, X, y = case(kind)
    before = state_of(model.fit(X, y), X)
    more = {"pooling": "max"} if kind == "texts" else {}
    model.set_params(warm_start=True, frozen=1, dropout=0.9, **more, **FAILURES[failure]())
    with pytest.raises((FailsError, OverflowError)):
        model.fit(X, y)
    assert_unchanged(model, X, before)
    assert all(p.requires_grad for p in model.net_.module_.parameters())


@pytest.mark.parametrize("kind", ["tagger", "texts"])
def test_partial_fit_that_fails_leaves_weights_and_history(case, kind):
    model, X, y = case(kind)
    model.partial_fit(X, y).partial_fit(X[:5], y[:5])
    before = state_of(model, X)
    model.set_params(loss=Overflows(), lr=0.5)
    with pytest.raises(OverflowError):
        model.partial_fit(X, y)
    assert_unchanged(model, X, before)
    model.set_params(loss=OVERLAP, lr=1e-3).partial_fit(X, y)
    assert model.n_iter_ == 3
    assert model.history_[-1]["lr"] == 1e-3


def test_a_threshold_that_cannot_be_tuned_leaves_what_was(case):
    model, X, y = case("pairs")

    class Fails(type(model.task)):
        def after_training(self, model, held, blocks):
            if held is not None:
                raise FailsError

    model.task = Fails()
    before = state_of(model.fit(X, y), X)
    with pytest.raises(FailsError):
        model.fit(X, y, X_val=X, y_val=y)
    assert_unchanged(model, X, before)


# ---- numbers of numpy


@pytest.mark.parametrize("integer", [np.int8, np.uint8, np.int64])
@pytest.mark.parametrize("kind", ["tagger", "pairs", "numbers"])
def test_integers_of_numpy_are_integers(case, kind, integer):
    model, X, y = case(kind)
    params = model.get_params(deep=False).items()
    counts = {name: value for name, value in params if type(value) is int}
    if kind != "numbers":
        counts |= {"max_length": 60, "gradient_accumulation": 2, "frozen": 1}
    X, y = list(X) * 20, list(y) * 20  # more rows than 8 bits count
    counts |= {"batch_size": 120, "max_epochs": 1}
    plain = clone(model).set_params(**counts).fit(X, y)
    counts = {name: v for name, v in counts.items() if v <= np.iinfo(integer).max}
    model.set_params(**{name: integer(value) for name, value in counts.items()})
    assert_same_fit(clone(model).fit(X, y), plain)
    made = type(model)(**{k: integer(v) for k, v in counts.items()})
    assert all(type(made.get_params()[name]) is int for name in counts)


@pytest.mark.parametrize("integer", [np.uint8, np.int64])
def test_other_integers_of_numpy_are_integers(tiny_backbone, integer):
    texts = ["free money", "lunch today now"] * 150
    features = TransformerFeatures(backbone=tiny_backbone, batch_size=7, max_length=9)
    mine = clone(features).set_params(batch_size=integer(7), max_length=integer(9))
    np.testing.assert_array_equal(mine.fit_transform(texts), features.fit_transform(texts))
    model = DiceClassifier(max_epochs=1, net_params={"batch_size": integer(7)}, random_state=0)
    model.fit(NUMBERS.repeat(10, 0), [0, 1] * 300)
    assert model.net_.n_updates_ == 86


# ---- what a sampler draws


def trained_in(seen):
    """A callback that adds the epoch, targets, weights and rate of each update to a list."""

    def note(net, batch):
        rate = net.schedule_.get_last_lr()[0] / net.lr
        targets, weights = batch.target.numpy(), batch.weight
        weights = np.ones(len(targets)) if weights is None else weights.numpy()
        seen.append((len(net.history), targets, weights, rate))

    return Tells(before=note)


class Random(BaseEstimator):
    """A sampler that draws another number of rows at each call."""

    draws_rows = True

    def __init__(self, random_state=None):
        self.random_state = random_state

    def fit_resample(self, X, y):
        generator = np.random.default_rng(self.random_state)
        self.sample_indices_ = generator.integers(len(y), size=generator.integers(5, 40))
        return X, y

    def __sklearn_tags__(self):
        return RandomUnderSampler().__sklearn_tags__()


class Unseeded(Random):
    """One that cannot be seeded."""

    def get_params(self, deep=True):
        return {}


@pytest.mark.parametrize("sampler", [Random(), Unseeded()])
@pytest.mark.parametrize("kind", ["tagger", "texts", "labels"])
def test_counts_and_schedule_are_of_the_rows_that_are_trained_on(case, kind, sampler):
    model, X, y = case("texts" if kind == "labels" else kind)
    if kind == "labels":
        y = np.eye(4, dtype=int)[np.arange(len(X)) % 4] | np.eye(4, dtype=int)[1]
    weights, seen = np.linspace(0.5, 2, len(X)), []
    model.set_params(max_epochs=4, sampler=sampler, loss="dice", callbacks=[trained_in(seen)])
    model.set_params(warmup=0.0, dropout=0.0).fit(X, y, sample_weight=weights)
    loss = model.net_.criterion_
    assert model.net_.n_updates_ == len(seen)
    rates = [rate for *_, rate in seen]
    assert rates == pytest.approx([1 - i / len(seen) for i in range(len(seen))])
    first = [(t, w) for epoch, t, w, _ in seen if epoch == 1]
    targets, shares = (np.concatenate(parts) for parts in zip(*first, strict=True))
    if kind == "labels":
        np.testing.assert_allclose(loss.class_counts_, shares @ targets, rtol=1e-5)
        assert loss.n_samples_ == pytest.approx(shares.sum(), rel=1e-5)
    else:
        expected = np.bincount(targets, shares, minlength=len(model.classes_))
        np.testing.assert_allclose(loss.class_counts_, expected, rtol=1e-5)
    # A warm start goes on with other rows.
    model.set_params(warm_start=True, max_epochs=1).fit(X, y, sample_weight=weights)
    more = [(t, w) for epoch, t, w, _ in seen if epoch == 5]
    targets, shares = (np.concatenate(parts) for parts in zip(*more, strict=True))
    if kind != "labels":
        expected = np.bincount(targets, shares, minlength=len(model.classes_))
        np.testing.assert_allclose(model.net_.criterion_.class_counts_, expected, rtol=1e-5)


def test_a_sampler_that_fails_late_is_refused_first(case):
    class Late(Random):
        calls = 0

        def fit_resample(self, X, y):
            Late.calls += 1
            if Late.calls % 4 == 3:
                raise FailsError
            return super().fit_resample(X, y)

    model, X, y = case("texts")
    model.set_params(max_epochs=4, sampler=Late())
    with pytest.raises(FailsError):
        model.fit(X, y)
    assert not hasattr(model, "net_")
    before = state_of(model.set_params(sampler=None).fit(X, y), X)
    with pytest.raises(FailsError):
        model.set_params(sampler=Late()).fit(X, y)
    assert_unchanged(model, X, before)


@pytest.mark.parametrize("weighted", [True, False])
def test_rows_that_are_held_out_are_not_counted(weighted):
    seen = []
    X = np.random.default_rng(1).normal(size=(80, 3)).astype(np.float32)
    y = np.array(["a", "b", "c", "c"] * 20)
    weight = np.linspace(0.5, 2, 80) if weighted else None
    model = DiceClassifier(
        early_stopping=True, validation_fraction=0.3, max_epochs=1, batch_size=100, random_state=0,
        loss="weighted_ce", callbacks=[trained_in(seen)],
    )  # fmt: skip
    model.fit(X, y, sample_weight=weight)
    ((_, targets, shares, _),) = seen
    assert len(targets) == 56
    counts = model.net_.criterion_.class_counts_
    np.testing.assert_allclose(counts, np.bincount(targets, shares), rtol=1e-5)


def test_the_best_epoch_is_the_first_of_equals():
    scores = iter([0.5, 0.7, 0.7, 0.6, 0.8, 0.8])
    net = SimpleNamespace(history=History(), first_epoch_=0)
    callback = ValidationScore(lambda: next(scores))
    for _ in range(6):
        net.history.new_epoch()
        callback.on_epoch_end(net)
    assert net.history[:, "valid_score_best"] == [True, True, False, False, True, False]


def test_a_micro_batch_is_run_again_with_the_same_dropout(tiny_backbone, monkeypatch):
    """Else its gradients would be those of another network than its share of the loss is of."""
    seen, outputs = [], FineTuningNet.outputs

    def note(net, groups):
        seen.append(outputs(net, groups))
        return seen[-1]

    monkeypatch.setattr(FineTuningNet, "outputs", note)
    settings = dict(max_epochs=1, batch_size=2, gradient_accumulation=3, dropout=0.5, lr=1e-2)
    tagger = DiceTokenClassifier(backbone=tiny_backbone, random_state=0, **settings)
    tagger.fit(SENTENCES, TAGS)
    assert len(seen) == 12  # of two updates
    for first, again in ((seen[:3], seen[3:6]), (seen[6:9], seen[9:])):
        assert all(map(torch.equal, first, again))
    assert not torch.equal(seen[0][:2], seen[1][:2])
