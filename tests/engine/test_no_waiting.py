"""A training step never waits for a GPU, shown on a device that has no values.

On torch's meta device a tensor has a shape and nothing in it. An operation that needs a value is an
error there, and so are, in this test, a constant that is sent up within the step and a tensor that
was left on the CPU: each would make a GPU wait.
"""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np
import pytest
import torch
import transformers
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import skdice.engine.net as net_module
from skdice import (
    DiceClassifier,
    DiceMRCTagger,
    DiceQuestionAnswerer,
    DiceSequenceClassifier,
    DiceTokenClassifier,
)
from skdice._compat import attention_of
from skdice.engine import encoded
from skdice.engine.layouts.grouped import Groups
from skdice.engine.layouts.layout import PADDED, Layout
from skdice.engine.parts import settle_attention
from skdice.engine.span_heads import EncoderWithSpanHeads
from skdice.estimators.classifier import NumericNet
from skdice.losses import (
    LOSSES,
    CompoundLoss,
    CrossEntropyLoss,
    DiceLoss,
    FocalLoss,
    Loss,
    TverskyLoss,
)
from skdice.losses.base import resolve_loss
from skdice.losses.span_ends import SpanEndsLoss
from skdice.model_selection.heads.training import fit_heads
from skdice.tasks.numbers import NumericDataset
from tests.data import SENTENCES, TAGS
from tests.fits import Tells

TASKS = {
    "tagger": (DiceTokenClassifier, SENTENCES[:2], TAGS[:2]),
    "two classes": (DiceSequenceClassifier, ["win money", "lunch"], [1, 0]),
    "three classes": (DiceSequenceClassifier, ["win money", "lunch", "bus"], [2, 1, 0]),
    "labels": (DiceSequenceClassifier, ["win", "lunch"], np.array([[1, 0], [0, 1]])),
    "reader": (
        DiceQuestionAnswerer,
        [("who", "anna sings"), ("when", "at noon")],
        [[(0, "anna")], []],
    ),
    "mrc": (DiceMRCTagger, SENTENCES[:2], TAGS[:2]),
    "numbers": (DiceClassifier, np.eye(4, dtype=np.float32), [0, 1, 2, 1]),
}


class NothingFromTheCPU(TorchDispatchMode):
    """Refuse operations that bring a tensor of the CPU to the device."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        found = function(*args, **(kwargs or {}))
        given = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
        made = [leaf for leaf in tree_leaves(found) if isinstance(leaf, torch.Tensor)]
        if any(t.is_meta for t in (*given, *made)):
            # A tensor of no dimension beside others is passed with the call, as a number is.
            alone = len(given) == 1
            behind = [t for t in given if not t.is_meta and (t.dim() or alone)]
            assert not behind, f"{function} brings a tensor of shape {tuple(behind[0].shape)}"
        return found


class NoConstants(TorchFunctionMode):
    """Refuse tensors of the device that are made of Python's numbers, which are sent up."""

    MAKERS = (torch.tensor, torch.as_tensor, torch.asarray, torch.Tensor.new_tensor)

    def __torch_function__(self, function, types, args=(), kwargs=None):
        found = function(*args, **(kwargs or {}))
        if function in self.MAKERS and found.is_meta:
            data = args[1] if function is torch.Tensor.new_tensor else args[0]
            assert isinstance(data, torch.Tensor), f"brings a tensor made of {data}"
        return found


class InOneOrder(TorchDispatchMode):
    """Refuse sums that a GPU adds up in a changing order, after which a seed means nothing."""

    NAMES = ("index_add", "scatter_add", "index_reduce", "scatter_reduce", "bincount", "histc")

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        found = function(*args, **(kwargs or {}))
        name = function.overloadpacket.__name__.rstrip("_")
        if name in self.NAMES and found.is_meta and found.is_floating_point():
            one_each = name == "scatter_add" and args[2].shape[args[1]] == 1  # as of `gather`
            assert one_each or "amax" in args, name
        return found


def to_meta(module):
    for part in module.modules():
        for name, value in part._parameters.items():
            if value is not None:
                part._parameters[name] = nn.Parameter(value.to("meta"), value.requires_grad)
        for name, value in part._buffers.items():
            if value is not None:
                part._buffers[name] = value.to("meta")


@contextmanager
def on_cuda():
    """Let tensors without values be taken for tensors on a GPU."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.Tensor, "is_cuda", property(lambda self: self.is_meta))
        patch.setattr(torch, "is_autocast_enabled", lambda kind: False)
        yield


def step_of(model, X, y, weight=None):
    """The net of a short fit on the CPU, with the micro-batches of its first update."""
    batches, given = [], {} if weight is None else {"sample_weight": weight}
    tells = Tells(before=lambda net, batch: batches.append(batch))
    model.set_params(callbacks=[tells]).fit(X, y, **given)
    return model.net_, batches[0]


def without_values(values, device):
    if isinstance(values, (Groups, Layout)):
        return values.to(lambda part: without_values(part, device))
    if values is None:
        return None
    return torch.empty(values.shape, dtype=values.dtype, device=device)


def run_without_values(net, batch):
    """One update on the meta device, as on a GPU."""
    to_meta(net.module_)
    to_meta(net.criterion_)
    net.device, net.precision = "meta", "fp32"
    with pytest.MonkeyPatch.context() as patch:
        # From pinned memory, without waiting, on a GPU.
        for module in (net_module, encoded):
            patch.setattr(module, "to_device", without_values)
        # The fused kernel, which has no form without values, is told what to skip.
        skipped = []
        for kind in (torch.optim.AdamW, torch.optim.Adam):  # that of heads steps as Adam does
            patch.setattr(kind, "step", lambda self: skipped.append(self.found_inf))
        net.initialize_optimizer()
        net.optimizer_.defaults["fused"] = True
        with on_cuda(), NothingFromTheCPU(), NoConstants():
            step = net.train_step(batch)
    assert step["loss"].is_meta
    assert len(skipped) == 1
    assert skipped[0].is_meta
    for name, p in net.module_.named_parameters():
        # XLNet's mask_emb is for its pretraining.
        assert p.grad is not None or not p.requires_grad or "mask_emb" in name, name


@pytest.mark.parametrize("loss", ["ce", "dsc"])
@pytest.mark.parametrize("task", TASKS)
def test_no_training_step_waits_for_the_gpu(task, loss, tiny_backbone):
    cls, X, y = TASKS[task]
    params = {} if cls is DiceClassifier else {"backbone": tiny_backbone}
    model = cls(loss=loss, max_epochs=1, batch_size=4, random_state=0, **params)
    run_without_values(*step_of(model, X, y))


def loss_without_values(loss, n_logits, target, weighted):
    """Value and gradient of a loss on the meta device, in training, as a step computes them."""
    to_meta(loss)
    rows = (len(target),) if n_logits == 1 else (len(target), n_logits)
    logits = torch.empty(rows, device="meta", requires_grad=True)
    weight = torch.empty(len(target), device="meta") if weighted else None
    with on_cuda(), NothingFromTheCPU(), NoConstants(), InOneOrder():
        value = loss(logits, without_values(target, "meta"), sample_weight=weight)
        value.backward()
    assert value.is_meta
    assert logits.grad is not None


def losses_without_values(make):
    """A loss by itself, for the targets of every task."""
    classes, labels = torch.tensor([0, 2, 1, 0]), torch.eye(4)[:, :3]
    for weighted in (False, True):
        for background in (0, None):
            counts = [2, 1, 1]
            loss_without_values(make().prepare(counts, background), 3, classes, weighted)
        loss_without_values(make().prepare([3, 1], 0), 2, classes % 2, weighted)
        loss_without_values(make().prepare([3, 1], 0), 1, classes % 2, weighted)
        of_labels = make().set_params(multilabel=True).prepare([2, 1, 1], n_samples=4)
        loss_without_values(of_labels, 3, labels, weighted)
        ends = SpanEndsLoss(make().prepare([3, 1], 0))
        loss_without_values(ends, 2, torch.eye(4)[:, :3], weighted)


@pytest.mark.parametrize("loss", LOSSES)
def test_no_loss_waits(loss):
    losses_without_values(lambda: resolve_loss(loss))


OPTIONS = [
    CrossEntropyLoss(tau=1.0),
    CrossEntropyLoss(label_smoothing=0.1, class_weight=[1.0, 2.0, 0.5]),
    TverskyLoss(class_weight=[1.0, 2.0, 0.5]),
    DiceLoss(average="macro"),
    DiceLoss(surrogate="none", class_weight=[1.0, 2.0, 0.5]),
    DiceLoss.literal(),
    FocalLoss(alpha=0.25),
    FocalLoss(alpha=[1.0, 2.0, 0.5]),
    CompoundLoss(CrossEntropyLoss(class_weight=(1.0, 2.0, 0.5)), DiceLoss(), weight=0.3),
]


@pytest.mark.parametrize("loss", OPTIONS, ids=repr)
def test_options_of_losses_do_not_wait_either(loss, tiny_backbone):
    cls, X, y = TASKS["tagger"]  # of three tags
    model = cls(loss=loss, backbone=tiny_backbone, max_epochs=1, random_state=0)
    run_without_values(*step_of(model, X, y, weight=np.arange(1.0, len(X) + 1)))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_updates_of_heads_do_not_wait(n_classes, monkeypatch):
    """Those of a search, whose losses are functions of many settings."""
    options = [loss for loss in OPTIONS if n_classes == 3 or "0.5" not in repr(loss)]
    losses = [TverskyLoss(alpha=0.3, beta=0.7), *LOSSES, *options, TverskyLoss()]
    nets, partial_fit = [], NumericNet.partial_fit

    def kept(net, *args, **kwargs):
        nets.append(net)
        return partial_fit(net, *args, **kwargs)

    monkeypatch.setattr(NumericNet, "partial_fit", kept)
    models = [DiceClassifier(loss=loss, lr=0.1, max_epochs=1, random_state=0) for loss in losses]
    y = np.repeat(np.arange(n_classes), [6, 4, 2][:n_classes])
    fit_heads(models, np.eye(len(y), 5, dtype=np.float32), y, [np.arange(len(y))])
    (net,) = nets
    assert len(net.criterion_.groups) > 3
    batch = NumericDataset(np.zeros((4, 5), np.float32), y[:4]).update(None, np.arange(4), 4)
    run_without_values(net, batch)


@pytest.mark.parametrize("name", [name for name in TASKS if name != "numbers"])
def test_accumulation_weights_and_frozen_layers_do_not_wait(name, tiny_backbone):
    cls, X, y = TASKS[name]
    model = cls(
        backbone=tiny_backbone, max_epochs=1, batch_size=1, gradient_accumulation=2, frozen=1
    )
    net, batch = step_of(model, X, y, weight=np.arange(1.0, len(X) + 1))
    assert len(batch.parts) == 2
    run_without_values(net, batch)


def test_words_of_several_spans_get_their_gradients_in_one_order(monkeypatch):
    monkeypatch.setattr(type(PADDED), "states_at", lambda layout, encoder, places, inputs: places)
    encoder = nn.Module()
    encoder.config = transformers.XLNetConfig(d_model=6, n_head=2)
    module, words = EncoderWithSpanHeads(encoder, 0.0, 3), torch.randn(5, 6)
    pairs = torch.tensor([[0, 1], [0, 2], [4, 4], [0, 4]])
    order = torch.arange(3 * len(words) + len(pairs))
    expected = module(words, pairs, order)
    rows = [module.first(words)[pairs[:, 0]], module.last(words)[pairs[:, 1]]]
    of_spans = (
        (rows[0][:, :-1] * rows[1][:, :-1]).sum(-1) / 3**0.5 + rows[0][:, -1] + rows[1][:, -1]
    )
    torch.testing.assert_close(expected[-len(pairs) :], of_spans)
    to_meta(module)
    # All outputs are taken once each, so their order is no sum.
    monkeypatch.setattr(torch.Tensor, "index_select", lambda table, _, i: table[i])
    with on_cuda(), InOneOrder():
        module(*(given.to("meta") for given in (words, pairs, order))).sum().backward()
    assert module.first.weight.grad.is_meta


OLD = tuple(map(int, transformers.__version__.split(".")[:2])) < (5, 23)
# Whose masks older transformers makes on the CPU.
MASKED_LATER = [
    pytest.param(kind, marks=pytest.mark.skipif(OLD, reason="transformers before 5.23"))
    for kind in ("modernbert", "xlnet")
]


@pytest.mark.parametrize("kind", ["roberta", "deberta-v2", "distilbert", "electra", *MASKED_LATER])
def test_no_backbone_waits(kind, tiny_backbones):
    cls, X, y = TASKS["tagger"]
    model = cls(loss="dsc", backbone=tiny_backbones[kind], max_epochs=1, random_state=0)
    run_without_values(*step_of(model, X, y))


class Looks(Loss):
    """A loss of somebody who looks at its value."""

    def forward(self, logits, target, sample_weight=None):
        loss = nn.functional.cross_entropy(logits, target)
        return loss * 2 if loss > 1 else loss


class Moves(Loss):
    """A loss of somebody who moves a constant in each step."""

    def forward(self, logits, target, sample_weight=None):
        weight = torch.ones(logits.shape[-1]).to(logits.device)
        return nn.functional.cross_entropy(logits, target, weight=weight)


class Sends(Loss):
    """A loss of somebody who makes one anew in each step."""

    def forward(self, logits, target, sample_weight=None):
        weight = torch.tensor([1.0] * logits.shape[-1], device=logits.device)
        return nn.functional.cross_entropy(logits, target, weight=weight)


@pytest.mark.parametrize("loss", [Looks, Moves, Sends])
def test_what_waits_is_found(loss, tiny_backbone):
    cls, X, y = TASKS["tagger"]
    net, batch = step_of(cls(loss=loss(), backbone=tiny_backbone, max_epochs=1), X, y)
    message = r"meta tensors|brings a tensor"
    with pytest.raises((RuntimeError, AssertionError), match=message):
        run_without_values(net, batch)
    with pytest.raises((RuntimeError, AssertionError), match=message):
        loss_without_values(loss(), 3, torch.tensor([0, 2]), weighted=False)


@pytest.mark.parametrize("kind", ["bert", "roberta", "distilbert", MASKED_LATER[0]])
def test_masks_that_nobody_looks_at_hide_the_same(kind, tiny_backbones):
    texts = ["win", "free money now", "free money now"]
    model = DiceSequenceClassifier(backbone=tiny_backbones[kind], max_epochs=1, random_state=0)
    model.fit(texts, [1, 0, 0])
    encoder = model.net_.module_.encoder
    ids = model.tokenizer_(texts, padding=True, return_tensors="pt")
    for rows in (slice(0, 3), slice(1, 3)):  # with padding and without
        given = {name: ids[name][rows] for name in ("input_ids", "attention_mask")}
        with torch.no_grad():
            expected = encoder(**given).last_hidden_state
            settle_attention(model.net_.module_, "cuda")
            assert attention_of(encoder) != "sdpa"
            found = encoder(**given).last_hidden_state
            settle_attention(model.net_.module_, "cpu")
            assert attention_of(encoder) == "sdpa"
        shown = given["attention_mask"].bool()
        torch.testing.assert_close(found[shown], expected[shown], atol=1e-5, rtol=1e-5)
    assert "_sdpa" not in encoder.config.to_json_string()
