"""Updates and predictions in recurring shapes, where a CPU stands for a GPU.

A graph is replayed by calling its function on the inputs that stay. So what is tested is all but
CUDA itself: weights after a fit, what would wait for a GPU, and what keeps a fit from being
recorded.
"""

from __future__ import annotations

import copy
import gc
import pickle
import threading
import weakref

import numpy as np
import pytest
import torch
from sklearn.base import clone
from skorch.callbacks import Callback
from torch import nn

from skdice import (
    DiceClassifier,
    DiceSequenceClassifier,
    DiceTokenClassifier,
    TransformerFeatures,
)
from skdice._compat import attention_of
from skdice.engine import graphs
from skdice.engine.graphs import EAGER_RUNS, Graphs
from skdice.engine.layouts import rows
from skdice.engine.layouts.layout import Padded
from skdice.engine.layouts.rows import Rows
from skdice.engine.parts import settle_attention
from skdice.losses import LOSSES, DiceLoss, Loss
from skdice.losses.base import resolve_loss
from tests.data import UNEVEN, UNEVEN_TAGS, UNEVEN_TEXTS
from tests.engine.test_grouped import TASKS, fitted_with_data
from tests.engine.test_no_waiting import OPTIONS, Looks
from tests.fits import Tells, assert_same_weights, killed_at, numbers_of
from tests.test_gpu import assert_same

ROWS = np.random.default_rng(0).normal(size=(50, 5)).astype(np.float32)
MANY = {
    **TASKS,
    "labels": ({}, DiceSequenceClassifier, UNEVEN_TEXTS, np.eye(3, dtype=int)[[0, 1, 2, 0, 1]]),
    "three classes": ({}, DiceSequenceClassifier, UNEVEN_TEXTS, [0, 1, 2, 0, 1]),
    "numbers": ({}, DiceClassifier, ROWS, (ROWS[:, 0] > 0.5).astype(int)),
}


def fitted(task, backbone, net_params=None, weight=None, **params):
    own, cls, X, y = MANY[task]
    given = {"max_epochs": 6, "batch_size": 5, "random_state": 0, **own, **params}
    if cls is DiceClassifier:
        given["batch_size"] = 15  # which holds three positives
    else:
        given |= {"backbone": backbone}
    model = cls(**given, net_params=net_params)
    return model.fit(X, y, **({} if weight is None else {"sample_weight": weight}))


def eager(model):
    return {epoch.get("eager") for epoch in model.history_}


def assert_graphs_change_nothing(gpu, task, backbone, **params):
    model = fitted(task, backbone, **params)
    assert gpu, "nothing was recorded"
    assert eager(model) == {None}
    plain = fitted(task, backbone, net_params={"cuda_graphs": False}, **params)
    assert eager(plain) == {"cuda_graphs is False"}
    assert_same_weights(model, plain)
    losses = [[epoch["train_loss"] for epoch in m.history_] for m in (model, plain)]
    assert losses[0] == losses[1]
    return model


@pytest.mark.parametrize("task", MANY)
def test_a_fit_ends_with_the_same_weights(task, gpu, tiny_backbone):
    assert_graphs_change_nothing(gpu, task, tiny_backbone)


SETTINGS = {
    "sample weights": {"weight": np.arange(1.0, 6.0)},
    "frozen layers": {"frozen": 1},
    "a frozen encoder": {"frozen": "encoder"},
    "LoRA": {"adapter": "lora"},
    "bf16": {"precision": "bf16"},
    "no clipping": {"max_grad_norm": None},
    "a last smaller batch": {"batch_size": 2},
    "one row": {"batch_size": 1, "max_epochs": 3},
    "a cosine": {"schedule": "cosine", "warmup": 0.5},
}


@pytest.mark.parametrize("name", SETTINGS)
def test_settings_change_nothing_either(name, gpu, tiny_backbone):
    if name == "LoRA":
        pytest.importorskip("peft")
    assert_graphs_change_nothing(gpu, "tagger", tiny_backbone, **SETTINGS[name])


@pytest.mark.parametrize("kind", ["roberta", "deberta-v2", "modernbert", "distilbert"])
def test_updates_of_every_backbone_are_recorded(kind, gpu, tiny_backbones):
    """XLNet's are not on a CPU, where torch's `one_hot` looks at the segments."""
    assert_graphs_change_nothing(gpu, "tagger", tiny_backbones[kind])


def test_few_shapes_are_recorded(gpu, tiny_backbone):
    rng = np.random.default_rng(0)
    X = [rng.choice(UNEVEN[2], rng.integers(1, 12)).tolist() for _ in range(300)]
    y = [["B-X" if word == "bank" else "O" for word in row] for row in X]
    settings = {"backbone": tiny_backbone, "random_state": 0, "max_epochs": 1}
    DiceTokenClassifier(**settings).fit(X, y)
    assert len(gpu) <= 3


class Hears(Callback):
    """Looks at gradients."""

    def on_grad_computed(self, net, named_parameters, **kwargs):
        self.norm = sum(float(p.grad.norm()) for _, p in named_parameters if p.grad is not None)


REASONS = {
    "several micro-batches": {"gradient_accumulation": 2, "batch_size": 2},
    "gradient_checkpointing": {"gradient_checkpointing": True},
    "heeds_weights": {"loss": Looks()},
    "callback": {"callbacks": [Hears()]},
    "optimizer": {"net_params": {"optimizer": torch.optim.NAdam}},
}


@pytest.mark.parametrize("reason", REASONS)
def test_what_cannot_be_recorded_runs_eagerly_and_says_why(reason, gpu, tiny_backbone, capsys):
    model = fitted("tagger", tiny_backbone, verbose=1, **REASONS[reason])
    (said,) = eager(model)
    assert reason in said
    assert not gpu
    assert capsys.readouterr().out.count(said) == 1
    assert len(model.predict(UNEVEN)) == len(UNEVEN)


@pytest.mark.parametrize("batch_size", [1, 5])  # refused in the first epoch, or in the third
def test_what_a_recording_refuses_is_told_in_one_line(
    batch_size, gpu, tiny_backbone, monkeypatch, capsys
):
    def record(*args):
        raise RuntimeError("operation not permitted when stream is capturing\nmore")

    monkeypatch.setattr(graphs, "record", record)
    model = fitted("tagger", tiny_backbone, verbose=1, batch_size=batch_size)
    said = "no graph could be recorded (operation not permitted when stream is capturing)"
    assert model.history_[-1]["eager"] == said
    lines = [line for line in capsys.readouterr().out.splitlines() if "recorded" in line]
    assert lines == [f"updates are not recorded as CUDA graphs: {said}"]


class Means(Loss):
    """A loss of somebody who looks at no weights."""

    @staticmethod
    def kernel(inputs):
        return -inputs.true_class_log_p().mean()


class Divides(Loss):
    """A loss of somebody who divides by the number of all rows."""

    @staticmethod
    def kernel(inputs):
        return -inputs.weighted(inputs.true_class_log_p()).sum() / len(inputs.logits)


class Heeds(Loss):
    """A loss of somebody who heeds the weights."""

    heeds_weights = True

    def forward(self, logits, target, sample_weight=None):
        losses = nn.functional.cross_entropy(logits, target, reduction="none")
        weight = torch.ones_like(losses) if sample_weight is None else sample_weight
        return (weight * losses).sum() / weight.sum()


@pytest.mark.parametrize("loss", [*map(resolve_loss, LOSSES), *OPTIONS, Heeds()], ids=str)
def test_losses_that_heed_weights_count_nothing_of_weight_0(loss):
    """Each says so itself; here it is found for classes and labels, in value and gradient."""
    assert loss.heeds_weights
    counts = [4.0, 3.0, 3.0]
    labels = torch.eye(3)[[0, 1, 2, 0, 0, 1, 0, 0, 2, 1]]
    logits = torch.randn(10, 3, generator=torch.Generator().manual_seed(0))
    weight = (torch.arange(10) < 7).float() * torch.arange(1.0, 11)
    for several in (False, True):
        prepared = clone(loss).set_params(multilabel=several).prepare(counts, 0, n_samples=10)
        target = labels if several else labels.argmax(1)
        found = []
        for some in (slice(10), slice(7)):
            z = logits[some].clone().requires_grad_()
            value = copy.deepcopy(prepared)(z, target[some], sample_weight=weight[some])
            value.backward()
            found.append((value.detach(), z.grad[:7]))
        torch.testing.assert_close(*found)


def test_a_loss_with_a_kernel_of_its_own_says_so_itself():
    class Named(DiceLoss):
        """Only another default."""

    class Other(DiceLoss):
        """Another formula."""

        @staticmethod
        def kernel(inputs):
            return inputs.logits.mean()

    heeds = [cls.heeds_weights for cls in (DiceLoss, Named, Other, Loss)]
    assert heeds == [True, True, False, False]


@pytest.mark.parametrize("loss", [Means, Divides, Heeds, Looks])
def test_a_loss_of_the_user_counts_no_padding(loss, gpu, tiny_backbone):
    model = fitted("tagger", tiny_backbone, loss=loss(), max_epochs=1)
    net, dataset = model.net_, fitted_with_data("tagger", tiny_backbone)[1]
    layout = net.layout(dataset)
    assert isinstance(layout, Rows) is (loss is Heeds)
    found = []
    for how in (layout, Padded(padding=net.padding, unit=10**9)):
        update = dataset.update(how, np.arange(len(dataset)), len(dataset))
        found.append(net.get_loss(net.infer(update), update.target, update).item())
    assert found[0] == pytest.approx(found[1], rel=1e-4)


def scale(net, data=None):
    """Give the net a scaler, as fp16 on a GPU has one; here its numbers are float32."""
    net.scaler_ = torch.amp.GradScaler("cpu", init_scale=4.0, growth_interval=3)
    NETS[:] = [net]


NETS = []  # of the fit that is running


def cut_off(at):
    """A recording that fails within an update; as on a GPU, no tensor has changed by then."""

    def record(function, inputs, pool, stream):
        (net,) = NETS
        of_optimizer = [t for state in net.optimizer_.state.values() for t in state.values()]
        of_scaler = [t for t in vars(net.scaler_).values() if isinstance(t, torch.Tensor)]
        tensors = [*net.module_.parameters(), *net.criterion_.buffers(), *of_optimizer, *of_scaler]
        kept = [(t, t.detach().clone()) for t in tensors]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(*at, raises)
            try:
                function(inputs)
            finally:
                for tensor, values in kept:
                    tensor.data.copy_(values)

    def raises(*args, **kwargs):
        raise RuntimeError("operation not permitted when stream is capturing\nmore")

    return record


CUTS = {
    "clipping": (torch.nn.utils, "clip_grad_norm_"),
    "optimizer": (torch.amp.GradScaler, "step"),
}


@pytest.mark.parametrize("cut", CUTS)
def test_a_capture_that_fails_leaves_the_fit_as_it_was(cut, gpu, monkeypatch, tiny_backbone):
    """Weights, the loss scale, and what dropout draws."""
    monkeypatch.setattr(graphs, "record", cut_off(CUTS[cut]))
    params = {"loss": DiceLoss(), "precision": "fp32"}
    params["callbacks"] = [Tells(begin=scale)]
    model = fitted("tagger", tiny_backbone, **params)
    last = model.history_[-1]["eager"]
    assert last == "no graph could be recorded (operation not permitted when stream is capturing)"
    assert "eager" not in model.history_[0]
    plain = fitted("tagger", tiny_backbone, net_params={"cuda_graphs": False}, **params)
    assert_same_weights(model, plain)
    losses = [[epoch["train_loss"] for epoch in m.history_] for m in (model, plain)]
    assert losses[0] == losses[1]


SPOIL = torch.ones(())  # by which `Spoiled` is multiplied


class Spoiled(DiceLoss):
    """A loss that is infinite in some updates."""

    heeds_weights = True

    def forward(self, *args, **kwargs):
        return super().forward(*args, **kwargs) * SPOIL


def test_a_bad_update_is_skipped_without_a_look(gpu, tiny_backbone):
    """Weights stay as they were."""
    seen, bad = [], []

    def spoil(net, batch):
        SPOIL.fill_(torch.inf if len(bad) in (1, 5) else 1.0)

    def note(net, loss):
        bad.append(bool(loss.isnan()))
        seen.append(net.module_.output_layer.weight.detach().clone())

    tells = Tells(before=spoil, after=note)
    params = {"loss": Spoiled(), "max_epochs": 8, "batch_size": 3, "callbacks": [tells]}
    model = fitted("tagger", tiny_backbone, **params)
    assert eager(model) == {None}
    assert gpu
    assert [i for i, skipped in enumerate(bad) if skipped] == [1, 5]
    for i in (1, 5):
        assert torch.equal(seen[i - 1], seen[i])
    assert not torch.equal(seen[6], seen[5])


def test_a_scaler_is_recorded(gpu, tiny_backbone):
    params = {"callbacks": [Tells(begin=scale)]}
    assert_graphs_change_nothing(gpu, "tagger", tiny_backbone, **params)
    assert_graphs_change_nothing(gpu, "tagger", tiny_backbone, max_grad_norm=None, **params)


kinds_of_rate = set()  # in each update


def note_kind(net, loss):
    kinds_of_rate.add(type(net.optimizer_.param_groups[0]["lr"]))


def test_the_rate_is_a_tensor_only_while_a_fit_runs(gpu, tiny_backbone):
    kinds_of_rate.clear()
    model = fitted("tagger", tiny_backbone, callbacks=[Tells(after=note_kind)])
    assert kinds_of_rate == {torch.Tensor}
    assert type(model.net_.optimizer_.param_groups[0]["lr"]) is float
    pickle.loads(pickle.dumps(model)).partial_fit(UNEVEN, UNEVEN_TAGS)


def test_a_fit_goes_on_from_a_checkpoint(gpu, tiny_backbone, tmp_path):
    whole = fitted("tagger", tiny_backbone, batch_size=2)
    params = {"checkpoint_dir": tmp_path, "checkpoint_every": 0, "batch_size": 2}
    with killed_at(8):
        fitted("tagger", tiny_backbone, **params)
    assert_same_weights(fitted("tagger", tiny_backbone, **params), whole)


# ---- predictions


@pytest.mark.parametrize("task", [task for task in MANY if task != "numbers"])
def test_predictions_are_those_of_padded_batches(task, tiny_backbone, gpu):
    gpu.on = False
    model = fitted(task, tiny_backbone, max_epochs=1)
    X = [*MANY[task][2]] * 40
    expected = numbers_of(model, X)
    gpu.on = True
    for i in range(EAGER_RUNS + 2):
        found = numbers_of(model, X)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5, err_msg=str(i))
    assert gpu


def test_predictions_follow_the_weights(tiny_backbone, gpu):
    model = fitted("tagger", tiny_backbone)
    for _ in range(EAGER_RUNS + 1):
        before = numbers_of(model, UNEVEN)
    n = len(gpu)
    model.net_.module_.output_layer.bias.data += 1.0  # the same memory
    model.net_.module_.output_layer.bias.data[0] -= 3.0
    changed = numbers_of(model, UNEVEN)
    assert len(gpu) == n
    assert np.abs(changed - before).max() > 0.1
    layer = model.net_.module_.output_layer
    layer.bias = nn.Parameter(layer.bias.detach() * 0 + torch.tensor([9.0, 0.0]))  # another
    assert numbers_of(model, UNEVEN).reshape(-1, 2)[:, 0].min() > 0.9


def test_a_model_that_is_dropped_frees_its_memory_at_once(tiny_backbone, gpu):
    model = fitted("tagger", tiny_backbone)
    for _ in range(EAGER_RUNS + 1):
        model.predict(UNEVEN)
    assert gpu
    left = weakref.ref(model.net_.module_)
    gc.collect()
    gc.disable()
    try:
        del model
        assert left() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("task", [task for task in MANY if task != "numbers"])
def test_the_last_batch_of_an_epoch_has_the_shape_of_the_others(task, tiny_backbone, gpu):
    fitted(task, tiny_backbone, batch_size=3)  # five rows: three and two
    assert len(gpu) == 1


def test_predictions_during_a_fit_leave_it_as_it_is(tiny_backbone, gpu):
    class Predicts(Callback):
        def on_epoch_end(self, net, **kwargs):
            net.logits(kwargs["dataset_train"])

    plain = fitted("tagger", tiny_backbone)
    other = fitted("tagger", tiny_backbone, callbacks=[Predicts()])
    assert_same_weights(other, plain)


@pytest.mark.parametrize("pooling", ["mean", "max", "cls"])
@pytest.mark.parametrize("kind", ["bert", "deberta-v2", "xlnet"])
def test_features_are_those_of_padded_batches(kind, pooling, gpu, tiny_backbones, monkeypatch):
    draw = np.random.default_rng(0)
    texts = [" ".join(draw.choice(UNEVEN[2], n)) for n in range(1, 40)]
    features = TransformerFeatures(backbone=tiny_backbones[kind], pooling=pooling).fit(texts)
    monkeypatch.setattr(rows, "TOKENS", 256)
    settled = []  # where a CPU looks at masks, a GPU does not
    monkeypatch.setattr(
        "skdice.engine.vectors.settle_attention",
        lambda module, device: (
            settled.append(device)
            or settle_attention(module, "cpu" if len(settled) > 1 else "cuda")
        ),
    )
    found = features.transform(texts)
    if kind != "xlnet":  # which looks at its segments
        assert len(gpu) == 1  # of four texts each; the last three are another shape
    gpu.on = False
    np.testing.assert_allclose(found, features.transform(texts), rtol=1e-4, atol=1e-5)
    assert attention_of(features.encoder_) in ("sdpa", "eager")


def test_vectors_of_words_are_those_of_padded_batches(gpu, tiny_backbone, monkeypatch):
    monkeypatch.setattr(rows, "TOKENS", 128)
    model = fitted("tagger", tiny_backbone, max_epochs=1)
    X = UNEVEN * 5
    found = model.frozen_vectors(X)
    gpu.on = False
    np.testing.assert_allclose(found, model.frozen_vectors(X), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("task", [task for task in MANY if task != "numbers"])
def test_the_next_rows_are_encoded_while_others_are_predicted(
    task, tiny_backbone, gpu, monkeypatch
):
    model, X = fitted(task, tiny_backbone, max_epochs=1), [*MANY[task][2]] * 3
    expected, threads = list(model.predict(X)), set()

    class Noted(type(model.task)):
        def encode(self, *args, **kwargs):
            threads.add(threading.current_thread())
            if len(threads) > limit:
                raise LookupError("in the other thread")
            return super().encode(*args, **kwargs)

    limit, model.task = 1, Noted()
    monkeypatch.setattr("skdice.estimators.transformer.BLOCK_ON_GPU", 2)
    found = list(model.predict(X))
    assert len(found) == len(expected) == len(X)
    for one, other in zip(found, expected, strict=True):
        assert_same(one, other)
    assert threading.main_thread() not in threads
    limit, before = 0, threading.active_count()
    with pytest.raises(LookupError, match="in the other thread"):
        model.predict(X)
    assert threading.active_count() == before


def test_nothing_to_predict(tiny_backbone, gpu):
    model = fitted("tagger", tiny_backbone, max_epochs=1)
    assert [list(row) for row in model.predict([[], ["anna"], []])][::2] == [[], []]


def test_a_graph_reads_its_inputs_anew(gpu):
    doubled = Graphs(lambda given: (given["x"] * 2,), "cpu")
    found = [doubled({"x": torch.full((2,), float(i))})[0] for i in range(6)]
    assert [float(f[0]) for f in found] == [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]
    (shape,) = doubled.shapes.values()
    assert shape.replay is not None
    for n in range(1, 60):  # of shapes beyond the most, nothing is kept
        assert doubled({"x": torch.ones(n)})[0].tolist() == [2.0] * n
    assert len(doubled.shapes) == graphs.MOST
