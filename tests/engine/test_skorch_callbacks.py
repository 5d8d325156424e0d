"""skorch's callbacks do in our nets what skorch's documentation says, or are refused."""

from __future__ import annotations

from fnmatch import fnmatch

import numpy as np
import pytest
import torch
from skorch.callbacks import (
    BatchScoring,
    Callback,
    Checkpoint,
    EarlyStopping,
    EpochScoring,
    Freezer,
    GradientNormClipping,
    Initializer,
    LRScheduler,
    ParamMapper,
    PassthroughScoring,
    ProgressBar,
    TrainEndCheckpoint,
    Unfreezer,
)

from skdice import DiceClassifier, DiceSequenceClassifier, DiceTokenClassifier
from skdice.engine.fit_plan import encode

TEXTS, LABELS = ["free money", "lunch today", "win a prize", "the bus"] * 4, [1, 0] * 8
NUMBERS = np.random.default_rng(0).normal(size=(40, 3))
KINDS = ("numbers", "texts", "tags")


@pytest.fixture
def fit(tiny_backbone, sentences):
    """Fit an estimator of a kind with callbacks."""

    def run(kind, *callbacks, held=False, **params):
        params = {"max_epochs": 3, "batch_size": 8, "random_state": 0, **params}
        params["callbacks"] = list(callbacks)
        if kind == "numbers":
            model = DiceClassifier(early_stopping=held, validation_fraction=0.3, **params)
            return model.fit(NUMBERS, (NUMBERS[:, 0] > 0).astype(int))
        if kind == "texts":
            X, y, model = TEXTS, LABELS, DiceSequenceClassifier(backbone=tiny_backbone, **params)
        else:
            (X, y), model = sentences, DiceTokenClassifier(backbone=tiny_backbone, **params)
        return model.fit(X, y, **({"X_val": X[:4], "y_val": y[:4]} if held else {}))

    return run


def recorded(model, name):
    return [epoch[name] for epoch in model.history_]


@pytest.mark.parametrize("kind", KINDS)
def test_a_scheduler_takes_the_place_of_ours(fit, kind):
    for callback in (
        LRScheduler("StepLR", step_size=1, gamma=0.5),
        ("rate", LRScheduler(torch.optim.lr_scheduler.StepLR, step_size=1, gamma=0.5)),
    ):
        model = fit(kind, callback, lr=1e-3)
        assert recorded(model, "lr") == pytest.approx([1e-3, 5e-4, 2.5e-4])
        assert recorded(model, "event_lr") == pytest.approx([1e-3, 5e-4, 2.5e-4])
    cyclic = LRScheduler("CyclicLR", base_lr=1e-4, max_lr=1e-3, step_every="batch", step_size_up=2)
    rates = fit(kind, cyclic, lr=1e-3).net_.history[:, "batches", :, "event_lr"]
    assert rates[0][:2] == pytest.approx([1e-4, 5.5e-4])
    plateau = LRScheduler("ReduceLROnPlateau", monitor=lambda net: 1.0, patience=0, factor=0.5)
    assert recorded(fit(kind, plateau, lr=1e-3), "lr") == pytest.approx([1e-3, 1e-3, 5e-4])


@pytest.mark.parametrize("kind", KINDS)
def test_functions_score_held_out_and_training_rows(fit, kind):
    sizes = []

    def score(net, X, y):
        sizes.append(len(X))
        return float(net.predict_proba(X).sum(-1).mean())

    of_held = EpochScoring(score, name="held", lower_is_better=False)
    model = fit(kind, of_held, EpochScoring(score, name="trained", on_train=True), held=True)
    assert recorded(model, "held") == pytest.approx([1.0] * 3, abs=1e-5)
    assert recorded(model, "trained") == pytest.approx([1.0] * 3, abs=1e-5)
    assert "held_best" in model.history_[0]
    assert len(set(sizes)) == 2


@pytest.mark.parametrize("kind", KINDS)
def test_scores_of_batches(fit, kind):
    """skorch gives X, here the update, y and what the net computed of it."""

    def right(net, update, y):
        assert len(net.predict(update)) == len(y)
        return len(update)

    model = fit(kind, BatchScoring(right, on_train=True, name="rows"))
    of_batches = model.net_.history[-1, "batches", :, ["rows", "train_batch_size"]]
    assert all(rows == size for rows, size in of_batches)
    mean = np.average([r for r, _ in of_batches], weights=[s for _, s in of_batches])
    assert recorded(model, "rows")[0] == pytest.approx(mean)
    passed = fit(kind, PassthroughScoring(name="train_loss", on_train=True))
    losses = passed.net_.history[-1, "batches", :, ["train_loss", "train_batch_size"]]
    mean = np.average([loss for loss, _ in losses], weights=[size for _, size in losses])
    assert recorded(passed, "train_loss")[-1] == pytest.approx(mean)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("callback", "message"),
    [
        (EpochScoring(lambda net, X, y: 1.0), "EpochScoring.*no validation set"),
        (EpochScoring, "EpochScoring.*scoring=None"),
        (BatchScoring("accuracy"), "BatchScoring.*scoring='accuracy'"),
        (EarlyStopping(), "EarlyStopping.*'valid_loss'.*'valid_score'"),
        (EarlyStopping, "EarlyStopping.*'valid_loss'.*'valid_score'"),
        (Checkpoint(), "Checkpoint.*'valid_loss_best'.*'valid_score_best'"),
        (EarlyStopping("valid_score"), "EarlyStopping.*no validation set"),
        (Checkpoint("valid_score_best"), "Checkpoint.*no validation set"),
        (("mine", Checkpoint), "Checkpoint.*'valid_loss_best'.*'valid_score_best'"),
    ],
)
def test_what_would_do_nothing_or_fail_late_is_refused(fit, kind, callback, message):
    with pytest.raises(ValueError, match=message):
        fit(kind, callback)


def test_a_scoring_by_name_is_refused_also_with_held_out_rows(fit):
    with pytest.raises(ValueError, match=r"EpochScoring with scoring='accuracy'.*function"):
        fit("texts", EpochScoring("accuracy"), held=True)
    with pytest.raises(TypeError, match="callbacks holds 3, which is no callback"):
        fit("numbers", 3)


@pytest.mark.parametrize("kind", KINDS)
def test_early_stopping_and_checkpoints(fit, kind, tmp_path):
    stop = EarlyStopping("train_loss", patience=1, threshold=0.0, threshold_mode="abs")
    never = EarlyStopping("lr", lower_is_better=False, patience=1)
    assert fit(kind, never, schedule="constant", warmup=0.0).n_iter_ == 2
    assert fit(kind, stop).n_iter_ >= 1
    best = Checkpoint(monitor="valid_score_best", dirname=tmp_path, load_best=True, sink=str)
    model = fit(kind, best, TrainEndCheckpoint(dirname=tmp_path), held=True)
    assert (tmp_path / "params.pt").exists()
    assert (tmp_path / "train_end_params.pt").exists()
    scores = recorded(model, "valid_score")  # the history, too, is that of the best epoch
    assert len(scores) <= 3
    assert scores[-1] == max(scores)


@pytest.mark.parametrize("kind", KINDS)
def test_parameters_are_frozen_and_mapped(fit, kind):
    names = {"numbers": "*bias", "texts": "head*", "tags": "head.classifier*"}
    frozen = fit(kind, Freezer(names[kind]), lr=1e-2)
    still = [
        p.requires_grad
        for name, p in frozen.net_.module_.named_parameters()
        if fnmatch(name, names[kind])
    ]
    assert still
    assert not any(still)
    fit(kind, Freezer(names[kind], at=1), Unfreezer(names[kind], at=2))
    zero = torch.nn.init.zeros_
    fit(kind, Initializer(names[kind], fn=zero), ParamMapper(names[kind], fn=zero, at=2))
    fit(kind, GradientNormClipping(0.1))


@pytest.mark.parametrize("kind", KINDS)
def test_a_bar_and_a_logger_of_batches(fit, kind, capsys):
    seen = []

    class Logs(Callback):
        """As WandbLogger does."""

        def on_train_begin(self, net, **kwargs):
            seen.append(("begin", len(list(net.module_.parameters())) > 0))

        def on_batch_end(self, net, training, **kwargs):
            seen.append((training, "loss" in kwargs, "y_pred" in kwargs, "batch" in kwargs))

        def on_epoch_end(self, net, **kwargs):
            logged = {k: v for k, v in net.history[-1].items() if np.isscalar(v)}
            seen.append(("epoch", logged["train_loss"] > 0))

    model = fit(kind, Logs, ProgressBar())
    epochs = [entry for entry in seen if entry[0] == "epoch"]
    assert epochs == [("epoch", True)] * 3
    batches = [entry for entry in seen if entry[0] is True]
    assert batches == [(True, True, True, True)] * model.net_.done_
    assert "it/s" in capsys.readouterr().err


def test_settings_of_the_net_do_what_skorch_says(fit, tiny_backbone):
    settings = {
        "iterator_train__num_workers": 2,
        "optimizer": torch.optim.SGD,
        "optimizer__momentum": 0.9,
    }
    for kind in KINDS:
        without = {k: v for k, v in settings.items() if "train" not in k}
        alone = fit(kind, lr=0.1, net_params=without)
        model = fit(kind, lr=0.1, net_params=settings)
        assert isinstance(model.net_.optimizer_, torch.optim.SGD)
        assert model.net_.optimizer_.defaults["momentum"] == 0.9
        assert recorded(model, "train_loss") == recorded(alone, "train_loss")
    small = fit("texts", net_params={"iterator_train__batch_size": 2})
    assert small.net_.done_ == 3 * 8
    whole = fit("numbers", net_params={"predict_nonlinearity": None})
    assert (whole.net_.predict_proba(NUMBERS).sum(1) != 1).any()
    with pytest.raises(ValueError, match="shuffle"):
        fit("texts", net_params={"iterator_train__shuffle": True})
    with pytest.raises(ValueError, match=r"net_params=.*unexpected.*no_such"):
        fit("texts", net_params={"no_such": 3})


def test_settings_that_the_estimator_has_are_refused_before_any_work(fit, monkeypatch):
    monkeypatch.setattr("skdice.backbones.load_config", lambda *a: pytest.fail("work began"))
    for name in ("criterion", "module", "callbacks", "train_split", "warm_start", "compile"):
        with pytest.raises(ValueError, match=rf"net_params holds \['{name}'\].*the estimator"):
            fit("texts", net_params={name: None})
    with pytest.raises(ValueError, match=r"net_params holds \['compile'\].*CUDA graphs in place"):
        fit("numbers", net_params={"compile": True})


@pytest.mark.parametrize("kind", KINDS)
def test_a_net_is_fitted_and_asked_as_any(fit, kind):
    """`net_.fit` and `net_.predict` are skorch's, of encoded rows."""
    seen = []

    class Sees(Callback):
        def on_train_begin(self, net, X=None, **kwargs):
            seen.append(X)

    model = fit(kind, Sees())
    net, data = model.net_, seen[0]
    before = net.predict_proba(data)
    np.testing.assert_allclose(before.sum(-1), 1, atol=1e-5)
    assert len(net.predict(data)) == len(before)
    net.partial_fit(data)
    assert len(net.history) == 6
    net.fit(data)
    assert len(net.history) == 3
    assert len(net.epochs()) == 3


def test_one_more_epoch_has_the_callbacks_of_now(tiny_backbone):
    model = DiceSequenceClassifier(backbone=tiny_backbone, max_epochs=2, random_state=0)
    stop = EarlyStopping("valid_score", lower_is_better=False)
    model.set_params(callbacks=[stop]).fit(TEXTS, LABELS, X_val=TEXTS, y_val=LABELS)
    model.set_params(callbacks=None).partial_fit(TEXTS, LABELS)
    assert model.n_iter_ == 3
    score = EpochScoring(lambda net, X, y: 7.0, name="seven", on_train=True)
    model.set_params(callbacks=[score]).partial_fit(TEXTS, LABELS)
    assert [epoch.get("seven") for epoch in model.history_] == [None] * 3 + [7.0]
    first = DiceSequenceClassifier(backbone=tiny_backbone, early_stopping=True, random_state=0)
    assert first.partial_fit(TEXTS, LABELS).n_iter_ == 1  # which holds nothing out


@pytest.mark.parametrize(
    "callback",
    [
        LRScheduler("StepLR", step_size=1, gamma=0.5),
        LRScheduler("ReduceLROnPlateau", patience=5),
        LRScheduler("LambdaLR", lr_lambda=lambda epoch: 0.5**epoch),
    ],
)
def test_a_scheduler_begins_anew_with_a_warm_start(fit, callback):
    model = fit("texts", callback, max_epochs=2, lr=0.01, warm_start=True)
    rates = recorded(model, "lr")
    model.fit(TEXTS, LABELS)
    assert recorded(model, "lr") == pytest.approx(rates * 2)


def test_a_net_gives_probabilities_of_several_labels(tiny_backbone, tmp_path):
    y = np.random.default_rng(0).integers(0, 2, size=(40, 3))
    model = DiceClassifier(max_epochs=2, random_state=0).fit(NUMBERS, y)
    found = model.net_.predict_proba(model.task.dataset(model, NUMBERS, None, None))
    np.testing.assert_allclose(found, model.predict_proba(NUMBERS), atol=1e-5)
    labels = [["a"], ["b"], ["a", "b"], []] * 4
    texts = DiceSequenceClassifier(backbone=tiny_backbone, max_epochs=1).fit(TEXTS, labels)
    loaded = DiceSequenceClassifier.from_pretrained(texts.save_pretrained(tmp_path / "m"))
    for model in (texts, loaded):
        found = model.net_.predict_proba(encode(model, model.task.sources(model, TEXTS)))
        np.testing.assert_allclose(found, model.predict_proba(TEXTS), atol=1e-5)
