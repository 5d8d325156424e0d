"""Batches without padding give what padded batches give."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from skdice import DiceTokenClassifier
from skdice._compat import attention_of
from skdice.engine.encoded import EncodedDataset
from skdice.engine.layouts.architectures import ARCHITECTURES
from skdice.engine.layouts.grouped import Grouped, recurring_size
from skdice.engine.layouts.layout import Padded, Padding, length_chunks
from skdice.text.encoding import Window
from tests.data import UNEVEN, UNEVEN_TAGS
from tests.fits import UNEVEN_TASKS, Tells

KINDS = [kind for kind, needs in ARCHITECTURES.items() if needs.grouped]
TASKS = {name: ({}, *UNEVEN_TASKS[name]) for name in ("tagger", "reader", "mrc")}
for how in ("cls", "mean", "max", "native"):
    TASKS[f"texts, {how}"] = ({"pooling": how}, *UNEVEN_TASKS["texts"])
DROPOUTS = (
    *("hidden_dropout_prob", "attention_probs_dropout_prob", "classifier_dropout"),
    *("dropout", "attention_dropout", "seq_classif_dropout", "qa_dropout"),  # of DistilBERT
)


@pytest.fixture(scope="module")
def packable(tmp_path_factory, build_backbone):
    """A backbone of every architecture that is run without padding, without dropout."""
    # Large weights, so that attention is far from even.
    config = {**dict.fromkeys(DROPOUTS, 0.0), "initializer_range": 0.5}
    return {
        kind: build_backbone(str(tmp_path_factory.mktemp(kind)), kind, **config) for kind in KINDS
    }


def fitted(task, backbone, **params):
    own, cls, X, y = TASKS[task]
    model = cls(backbone=backbone, loss="ce", max_epochs=1, batch_size=5, dropout=0.0)
    return model.set_params(random_state=0, **own, **params).fit(X, y)


def gradients(net, dataset, *, pack):
    net.pack, net.batch_size = pack, len(dataset)
    update = dataset.update(net.layout(dataset), np.arange(len(dataset)), len(dataset))
    (part,) = update.parts
    assert len(part.groups) == 1 or not pack
    assert ("groups" in part.groups[0]) == pack
    logits = net.infer(update)
    net.module_.zero_grad()
    net.get_loss(logits, update.target, replace(update, weight=None)).backward()
    return logits.detach(), {n: p.grad for n, p in net.module_.named_parameters()}


def layout_of(model):
    """The layout of a fit on nothing."""
    return model.net_.layout(EncodedDataset([]))


def assert_pack_changes_nothing(model, dataset):
    net = model.net_
    logits, expected = gradients(net, dataset, pack=False)
    packed, found = gradients(net, dataset, pack=True)
    torch.testing.assert_close(packed, logits, rtol=1e-5, atol=1e-5)
    for name, gradient in expected.items():
        if gradient is None:
            assert found[name] is None, name
        else:
            torch.testing.assert_close(found[name], gradient, rtol=1e-4, atol=1e-5, msg=name)
    return found


def fitted_with_data(task, backbone, **params):
    """A fitted model, and what its net was given."""
    given = []
    tells = Tells(begin=lambda net, data: given.append(data))
    return fitted(task, backbone, callbacks=[tells], **params), given[0]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("task", TASKS)
def test_logits_and_gradients_are_those_of_padded_batches(task, kind, packable, monkeypatch):
    model, dataset = fitted_with_data(task, packable[kind])
    # Several groups, some of them with rows of different lengths.
    monkeypatch.setattr("skdice.engine.layouts.run_cost", lambda device: 8)
    assert_pack_changes_nothing(model, dataset)


def test_kernels_are_compiled_for_few_numbers_of_rows(packable):
    """Whatever is drawn, layers run on numbers of rows that come again."""
    seen = set()

    class Noting(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            # Only training, and not the head, which has few outputs.
            if function is F.linear and args[1].shape[0] > 2 and torch.is_grad_enabled():
                seen.add(args[0].shape[-2])
            return function(*args, **(kwargs or {}))

    rng = np.random.default_rng(0)
    words = sorted({word for row in UNEVEN for word in row})
    X = [rng.choice(words, rng.integers(1, 25)).tolist() for _ in range(320)]
    y = [["B-PER" if word == "bob" else "O" for word in row] for row in X]
    lengths = [len(row) + 2 for row in X]
    assert len({sum(lengths[i : i + 16]) for i in range(0, 320, 16)}) > 12
    settings = dict(backbone=packable["bert"], max_epochs=2, batch_size=16, random_state=0)
    with Noting():
        DiceTokenClassifier(**settings).fit(X, y)
    assert all(recurring_size(n) == n for n in seen)
    assert len(seen) < 14  # of all subwords, and of words in the last layer, over 40 batches


@pytest.mark.parametrize("pad_id", [0, 7])
def test_rows_of_padding_change_nothing(pad_id, packable):
    model, dataset = fitted_with_data("texts, mean", packable["bert"])
    module = model.net_.module_.eval()
    module.encoder.set_attn_implementation("skdice_sdpa")
    windows = [dataset.windows[i] for i in (1, 4, 0)]
    outputs = []
    with pytest.MonkeyPatch.context() as patch:
        for size in (lambda n: n, recurring_size):
            patch.setattr("skdice.engine.layouts.grouped.recurring_size", size)
            layout = Grouped(padding=Padding(pad_id), first=0)
            inputs, _ = layout.place(windows, [1, 2])
            module.zero_grad()
            logits = module(layout=layout, **inputs)
            (logits**2).sum().backward()
            gradients = {n: p.grad for n, p in module.named_parameters() if p.grad is not None}
            outputs.append((inputs["input_ids"].shape[1], logits, gradients))
    (plain, logits, gradients), (padded, same_logits, same_gradients) = outputs
    assert padded == 16 > plain
    torch.testing.assert_close(same_logits, logits)
    torch.testing.assert_close(same_gradients, gradients)


@pytest.mark.parametrize("params", [{"adapter": "lora"}, {"gradient_checkpointing": True}])
def test_adapters_and_gradient_checkpointing(params, packable):
    if "adapter" in params:
        pytest.importorskip("peft")
    model, dataset = fitted_with_data("tagger", packable["bert"], **params)
    model.net_.module_.train()  # gradients are checkpointed in training only
    found = assert_pack_changes_nothing(model, dataset)
    assert any(gradient is not None for gradient in found.values())


def test_a_fit_ends_with_the_same_model(packable):
    packed, padded = (
        np.vstack(model.predict_proba(UNEVEN))
        for model in (
            fitted("tagger", packable["bert"], max_epochs=3, net_params={"pack": pack})
            for pack in (True, False)
        )
    )
    np.testing.assert_allclose(packed, padded, atol=1e-4)


@pytest.mark.parametrize("kind", ["deberta-v2", "modernbert", "xlnet"])
def test_other_architectures_are_padded(kind, tiny_backbones):
    model = fitted("tagger", tiny_backbones[kind])
    assert type(layout_of(model)) is Padded


def test_another_attention_is_padded(packable):
    model = fitted("tagger", packable["bert"])
    model.net_.module_.encoder.set_attn_implementation("eager")
    assert type(layout_of(model)) is Padded
    model.fit(UNEVEN, UNEVEN_TAGS)


def test_a_fitted_model_attends_as_it_did_before(packable):
    model = fitted("tagger", packable["bert"])
    assert attention_of(model.net_.module_.encoder) == "sdpa"


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(lengths=st.lists(st.integers(1, 9), min_size=1, max_size=8), unit=st.integers(1, 12))
def test_groups_hold_each_row_and_join_puts_them_back(lengths, unit):
    chunks = length_chunks(np.array(lengths), unit)
    lengths = np.array(lengths)[np.concatenate(chunks)]
    empty = np.empty(0, np.int64)
    windows = [Window(np.arange(n, dtype=np.int32), None, empty, empty, 0) for n in lengths]
    sizes = [len(chunk) for chunk in chunks]
    inputs, starts = Grouped(padding=Padding(99), first=3).place(windows, sizes)
    places = inputs["groups"]
    assert starts.tolist() == [sum(lengths[:i]) for i in range(len(lengths))]
    ids = [i for n in lengths for i in range(n)]
    n_padding = recurring_size(len(ids)) - len(ids)
    n_rows, longest = len(lengths), max(lengths)
    padding = [min(longest, n_padding - i) for i in range(0, n_padding, longest)]
    assert inputs["input_ids"].tolist() == [ids + [99] * n_padding]
    in_rows = ids + [i for n in padding for i in range(n)]
    assert inputs["position_ids"].tolist() == [[i + 3 for i in in_rows]]
    assert places.starts.tolist() == starts.tolist()

    lengths, chunks[-1] = np.append(lengths, padding).astype(int), [*chunks[-1], *padding]
    values = torch.randn(sum(lengths), 3, 2, dtype=torch.float64, requires_grad=True)
    rows = values.split(lengths.tolist())
    groups = places.pad(values)
    seen = 0
    for group, mask, chunk in zip(groups, places.masks, chunks, strict=True):
        assert len(group) == len(chunk)
        for i, row in enumerate(group):
            n = int(lengths[seen])
            torch.testing.assert_close(row[:, :n].transpose(0, 1), rows[seen])
            longest = row.shape[1]
            held = torch.ones(longest, dtype=torch.bool) if mask is None else mask[i]
            assert held.tolist() == [j < n for j in range(longest)]
            seen += 1
    assert seen == len(lengths)
    torch.testing.assert_close(places.join(groups, 3), values)
    weights = torch.randn_like(values)
    (gradient,) = torch.autograd.grad((places.join(groups, 3) * weights).sum(), values)
    torch.testing.assert_close(gradient, weights)
    assert len(places.pool(values[:, 0], lambda group, mask: group.sum(1))) == n_rows
