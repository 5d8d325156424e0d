"""Batches, schedules, freezing, accumulation, and what a fit leaves behind."""

from __future__ import annotations

import copy
import math
import pickle
import signal
from functools import partial
from itertools import product

import numpy as np
import pytest
import torch
from sklearn.base import clone
from skorch.callbacks import Callback, EarlyStopping
from transformers import (
    AutoConfig,
    AutoModel,
    get_constant_schedule_with_warmup,
    get_cosine_schedule_with_warmup,
    get_linear_schedule_with_warmup,
)

from skdice import DiceClassifier, DiceSequenceClassifier, DiceTokenClassifier
from skdice._compat import attention_of
from skdice.backbones import load_encoder
from skdice.engine.devices import autocast_dtype
from skdice.engine.fit_plan import encode
from skdice.engine.layouts.layout import Padded, length_batches, length_chunks
from skdice.engine.module import EncoderWithHead, freeze, split_by_decay
from skdice.engine.parts import settle_attention
from skdice.engine.recipe import schedule_factor
from skdice.losses import TverskyLoss
from tests.fits import assert_same_weights


@pytest.fixture
def tagger_of(tiny_backbone):
    """From parameters to a tagger."""
    return partial(DiceTokenClassifier, backbone=tiny_backbone, random_state=0)


def head_of(estimator):
    return estimator.net_.module_.output_layer.weight.detach().clone()


def test_prediction_batches_hold_every_row_once_and_similar_lengths():
    lengths = np.random.default_rng(0).integers(1, 100, size=203)
    batches = list(length_batches(lengths, 8, unit=20))
    assert sorted(np.concatenate(batches)) == list(range(203))
    assert max(map(len, batches)) == 8
    assert sum(len(b) * lengths[b].max() for b in batches) < 1.1 * lengths.sum()


@pytest.mark.parametrize("unit", [0, 1, 13, 60, 10_000])
def test_chunks_of_a_batch_cost_least(unit):
    generator = np.random.default_rng(unit)
    for n in (1, 2, 5, 8):
        lengths = generator.integers(5, 100, size=n)
        groups = length_chunks(lengths, unit)
        assert sorted(np.concatenate(groups)) == list(range(n))
        cost = sum(unit + len(g) * lengths[g].max() for g in groups)
        # Every way to cut the sorted rows.
        ranked, costs = np.sort(lengths), []
        for cuts in product((False, True), repeat=n - 1):
            places = [i + 1 for i, cut in enumerate(cuts) if cut]
            costs.append(sum(unit + len(g) * g.max() for g in np.split(ranked, places)))
        assert cost == min(costs)
    assert [g.tolist() for g in length_chunks(np.array([30, 10]), 1)] == [[1], [0]]


def test_training_batches_are_drawn_at_random(tagger_of, sentences):
    """No batch is made of one length, and an update is that of the batch as a whole."""
    X, y = sentences
    tagger = tagger_of(max_epochs=1, batch_size=4, dropout=0.0).fit(X, y)
    net, dataset = tagger.net_, encode(tagger, X, y)
    net.pack, net.first_epoch_ = False, 0
    epochs = []
    for _ in range(2):
        net.history.new_epoch()
        updates = list(net.get_iterator(dataset, training=True))
        masks = [[i["attention_mask"] for part in u.parts for i in part.groups] for u in updates]
        epochs.append([sorted(t for mask in of_one for t in mask.sum(1)) for of_one in masks])
    assert epochs[0] != epochs[1]
    assert sorted(t for batch in epochs[0] for t in batch) == sorted(dataset.lengths)
    assert sum(len(set(map(int, batch))) > 1 for batch in epochs[0]) == 4
    layout = net.layout(dataset)
    assert type(layout) is Padded
    update = dataset.update(layout, np.arange(16), len(dataset))
    (part,) = update.parts
    assert len(part.groups) == 1
    order = np.argsort(dataset.lengths, kind="stable")
    np.testing.assert_array_equal(part.order, order)
    whole = layout.lay([dataset.windows[i] for i in order])
    groups = [layout.lay([dataset.windows[i] for i in group]) for group in np.array_split(order, 4)]
    net.module_.eval()
    torch.testing.assert_close(net.outputs(groups), net.outputs([whole]), atol=1e-5, rtol=1e-5)
    expected = np.concatenate([dataset.targets[i] for i in order])
    np.testing.assert_array_equal(update.target, expected)


THEIRS = {
    "constant": lambda optimizer, rising, n: get_constant_schedule_with_warmup(optimizer, rising),
    "linear": get_linear_schedule_with_warmup,
    "cosine": get_cosine_schedule_with_warmup,
}


def rates(make, n):
    """The rate of each update under a scheduler of torch."""
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    scheduler, found = make(optimizer), []
    for step in range(n):
        found.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        if step < n - 1:
            scheduler.step()
    return found


@pytest.mark.parametrize("name", THEIRS)
@pytest.mark.parametrize(("n", "warmup"), [(20, 0.0), (20, 0.1), (37, 0.3), (10, 1.0), (1, 0.5)])
def test_schedules_are_those_of_transformers_but_for_an_update_at_rate_0(name, n, warmup):
    rising = math.ceil(n * warmup)  # as its Trainer counts warmup_ratio
    theirs = rates(lambda optimizer: THEIRS[name](optimizer, rising, n), n)
    ours = [schedule_factor(name, n, warmup)(step) for step in range(n)]
    assert ours[rising:] == pytest.approx(theirs[rising:])
    assert ours[:rising] == pytest.approx([*theirs[1:rising], 1.0][:rising])


def test_weight_decay_spares_biases_and_norms(tiny_backbone):
    module = EncoderWithHead(load_encoder(tiny_backbone), 3)
    names = {id(p): n for n, p in module.named_parameters()}
    decayed, spared = split_by_decay([{"params": list(module.parameters())}], 0.01)
    assert decayed["weight_decay"] == 0.01
    assert spared["weight_decay"] == 0
    kinds = [
        {"LayerNorm" in names[id(p)] or names[id(p)].endswith("bias") for p in group["params"]}
        for group in (decayed, spared)
    ]
    assert kinds == [{False}, {True}]


def test_parameters_by_name_have_their_own_settings(tagger_of, tiny_backbone, sentences):
    X, y = sentences
    patterns = [("head*", {"lr": 1e-2}), ("encoder.embeddings*", {"weight_decay": 0.5})]
    own = {"optimizer__param_groups": patterns}
    tagger = tagger_of(lr=1e-4, max_epochs=2, batch_size=8, net_params=own).fit(X, y)
    net = tagger.net_
    names = {id(p): n for n, p in net.module_.named_parameters()}
    settings, rates = {}, {}
    for group in net.optimizer_.param_groups:
        for p in group["params"]:
            settings[names[id(p)]] = group["initial_lr"], group["weight_decay"]
            rates[names[id(p)]] = group["lr"] / group["initial_lr"]
    assert set(settings) == set(names.values())
    assert settings["head.classifier.weight"] == (1e-2, 0.01)
    assert settings["head.classifier.bias"] == (1e-2, 0)
    assert settings["encoder.embeddings.LayerNorm.bias"] == (1e-4, 0.5)
    assert settings["encoder.encoder.layer.0.output.dense.weight"] == (1e-4, 0.01)
    assert settings["encoder.encoder.layer.0.output.dense.bias"] == (1e-4, 0)
    assert len({round(rate, 9) for rate in rates.values()}) == 1  # one schedule for all
    assert [epoch["lr"] for epoch in tagger.history_] == pytest.approx([1e-4, 1e-4 * 2 / 3])
    own = {"optimizer__param_groups": [("encoder*", {"lr": 0.0})]}
    still = tagger_of(max_epochs=1, net_params=own).fit(X, y)
    before = load_encoder(tiny_backbone).state_dict()
    for name, value in still.net_.module_.encoder.state_dict().items():
        assert torch.equal(before[name], value)


def test_partial_fit_keeps_the_rates_that_are_given_by_name(tagger_of, sentences):
    X, y = sentences
    tagger = tagger_of(net_params={"optimizer__param_groups": [("head*", {"lr": 0.0})]})
    head = head_of(tagger.partial_fit(X, y))
    assert torch.equal(head_of(tagger.set_params(lr=1e-2).partial_fit(X, y)), head)
    assert tagger.history_[1]["lr"] == 1e-2


def test_a_pattern_gives_parameters_of_numbers_their_own_rate():
    still = {"optimizer__param_groups": [("*bias", {"lr": 0.0})]}
    layers = [
        DiceClassifier(net_params=still, max_epochs=n, random_state=0)
        .fit(np.eye(4), [0, 1, 0, 1])
        .net_.module_.body[0]
        for n in (1, 3)
    ]
    torch.testing.assert_close(layers[0].bias, layers[1].bias)
    assert not torch.allclose(layers[0].weight, layers[1].weight)


@pytest.mark.parametrize("kind", ["bert", "roberta", "deberta-v2", "modernbert", "xlnet"])
def test_freezing_embeddings_layers_or_all(tiny_backbones, kind):
    def trainable(frozen):
        module = EncoderWithHead(load_encoder(tiny_backbones[kind]), 3)
        freeze(module, frozen)
        return {n for n, p in module.named_parameters() if p.requires_grad}

    everything = trainable(None)
    assert trainable("encoder") == {"head.weight", "head.bias"}
    without = trainable("embeddings")
    assert any("embed" in n for n in everything - without)
    one = trainable(1)
    assert one < without
    shared = {n for n in without if "rel_embeddings" in n}
    assert without - one == {n for n in without if ".0." in n} | shared
    with pytest.raises(ValueError, match="frozen=9"):
        trainable(9)


@pytest.mark.parametrize("kind", ["deberta", "deberta-v2", "mpnet", "roformer", "xlnet", "bert"])
def test_nothing_that_is_trained_changes_what_frozen_layers_give(kind):
    sizes = dict(hidden_size=16, num_hidden_layers=3, num_attention_heads=2, intermediate_size=32)
    if kind == "xlnet":
        sizes = dict(d_model=16, n_layer=3, n_head=2, d_inner=32)
    elif kind.startswith("deberta"):
        sizes |= dict(relative_attention=True, pos_att_type=["p2c", "c2p"])
    if kind == "deberta-v2":  # as in its large models
        sizes |= dict(norm_rel_ebd="layer_norm", conv_kernel_size=3, conv_act="gelu")
    config = AutoConfig.for_model(kind, vocab_size=50, **sizes)
    module = EncoderWithHead(AutoModel.from_config(config), 2, pooling="mean")
    ids = torch.arange(5, 15)[None]
    for count in (1, 2):
        freeze(module, count)
        inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
        states = module.encoder(**inputs, output_hidden_states=True).hidden_states
        trained = [False] * (count + 1) + [True] * (3 - count)
        assert [state.requires_grad for state in states] == trained


def test_frozen_parts_do_not_move_and_have_no_dropout(tagger_of, tiny_backbone, sentences):
    tagger = tagger_of(frozen=1, max_epochs=1, lr=1e-2).fit(*sentences)
    before = load_encoder(tiny_backbone).state_dict()
    after = tagger.net_.module_.encoder.state_dict()
    moved = {k for k in after if not torch.equal(before[k], after[k])}
    assert moved
    assert not any(k.startswith("embeddings") or ".layer.0." in k for k in moved)
    tagger.net_.module_.train()
    assert not tagger.net_.module_.encoder.embeddings.training


@pytest.mark.parametrize("loss", ["ce", "dsc"])
def test_accumulation_equals_one_big_batch(tagger_of, calm_backbone, sentences, loss):
    """Set-level losses are no sums over micro-batches; the update must be the same all the same."""
    X, y = sentences
    # Dropout draws its masks batch by batch, so only without it can the two runs be equal.
    without = dict(loss=loss, backbone=calm_backbone, dropout=0.0)
    settings = dict(max_epochs=2, lr=1e-3, net_params={"optimizer": torch.optim.SGD})
    for frozen in (None, "encoder"):
        big = tagger_of(batch_size=16, frozen=frozen, **settings, **without)
        small = clone(big).set_params(batch_size=4, gradient_accumulation=4)
        assert_same_weights(big.fit(X, y), small.fit(X, y), rtol=1e-4, atol=1e-6)


def test_early_stopping_restores_the_best_epoch(tagger_of, sentences, monkeypatch):
    (X, y), seen = sentences, []

    def score(tagger, held):
        seen.append(head_of(tagger))
        return [0.1, 0.5, 0.4, 0.3, 0.9][len(seen) - 1]

    monkeypatch.setattr(DiceTokenClassifier, "_score_of_held", score)
    tagger = tagger_of(max_epochs=6, early_stopping=True, n_iter_no_change=2)
    tagger.fit(X, y, X_val=X[:4], y_val=y[:4])
    assert len(seen) == 4  # two epochs without a better score end the fit
    assert torch.equal(head_of(tagger), seen[1])
    assert [epoch["valid_score"] for epoch in tagger.history_] == [0.1, 0.5, 0.4, 0.3]
    assert [epoch["valid_score_best"] for epoch in tagger.history_] == [True, True, False, False]


def test_an_interrupt_keeps_the_best_weights_and_a_usable_estimator(tagger_of, sentences):
    X, y = sentences

    class Interrupt(Callback):
        def on_epoch_begin(self, net, **kwargs):
            if len(net.history) == 3:
                raise KeyboardInterrupt

    tagger = tagger_of(max_epochs=9, callbacks=[Interrupt()])
    with pytest.raises(KeyboardInterrupt):
        tagger.fit(X, y)
    assert tagger.n_iter_ == 2
    assert len(tagger.predict(X)) == len(X)


@pytest.mark.parametrize("patience", [None, 1, 9])
def test_an_interrupt_at_the_end_of_an_epoch_is_one(tagger_of, sentences, patience):
    class Interrupt(Callback):
        def on_epoch_end(self, net, **kwargs):
            if len(net.history) == 3:
                signal.raise_signal(signal.SIGINT)

    callbacks = [Interrupt()]
    if patience is not None:  # which ends a fit by the same error
        callbacks.append(EarlyStopping(monitor="lr", lower_is_better=False, patience=patience))
    tagger = tagger_of(max_epochs=5, warmup=0.0, callbacks=callbacks)
    if patience == 1:
        tagger.fit(*sentences)
        assert tagger.n_iter_ == 2
    else:
        with pytest.raises(KeyboardInterrupt):
            tagger.fit(*sentences)
        assert tagger.n_iter_ == 3


def test_an_epoch_of_partial_fit_has_the_rate_of_now(tagger_of, sentences):
    X, y = sentences
    tagger = tagger_of(lr=1e-3).partial_fit(X, y)
    before = copy.deepcopy(tagger)
    tagger.set_params(lr=1e-12).partial_fit(X, y)
    assert_same_weights(tagger, before, atol=1e-7)
    assert [epoch["lr"] for epoch in tagger.history_] == [1e-3, 1e-12]
    own = tagger_of(net_params={"lr": 1e-4}).partial_fit(X, y).partial_fit(X, y)
    assert [epoch["lr"] for epoch in own.history_] == [1e-4, 1e-4]


def test_gradient_clipping_bounds_the_update(tagger_of, sentences):
    settings = dict(max_epochs=1, batch_size=16, weight_decay=0.0, schedule="constant", warmup=0.0)
    settings |= dict(net_params={"optimizer": torch.optim.SGD})
    start, clipped = (
        tagger_of(lr=lr, max_grad_norm=1e-2, **settings).fit(*sentences).net_.module_
        for lr in (1e-30, 1.0)
    )
    pairs = zip(clipped.parameters(), start.parameters(), strict=True)
    moved = sum(((p - before).detach().float() ** 2).sum() for p, before in pairs)
    assert float(moved) ** 0.5 == pytest.approx(1e-2, rel=1e-2)


def test_a_fit_on_changed_loss_parameters_starts_afresh(tagger_of, sentences):
    X, y = sentences
    loss = TverskyLoss(alpha=0.3, beta=0.7)
    tagger = tagger_of(loss=loss, max_epochs=1).fit(X, y)
    assert loss.get_params()["alpha"] == 0.3  # the caller's object is cloned, not prepared
    tagger.set_params(loss__alpha=0.9).fit(X, y)
    fresh = tagger_of(loss=TverskyLoss(alpha=0.9, beta=0.7), max_epochs=1).fit(X, y)
    assert_same_weights(tagger, fresh)


@pytest.mark.gpu
@pytest.mark.parametrize("precision", ["fp32", "fp16", "bf16"])
@pytest.mark.parametrize("accumulation", [1, 2])
def test_gpu_precisions_train(tagger_of, sentences, precision, accumulation):
    (X, y), settings = sentences, dict(max_epochs=2, device="cuda", batch_size=4)
    settings |= dict(precision=precision, gradient_accumulation=accumulation)
    tagger = tagger_of(**settings).fit(X, y)
    assert np.isfinite(tagger.history_[-1]["train_loss"])
    assert len(tagger.predict(X)) == len(X)


def as_if_of_cuda(monkeypatch, model):
    """A pickle as a machine with CUDA writes it, of storages that are tagged so."""
    tagged = (0, lambda storage: "cuda:0", lambda storage, location: None)
    with monkeypatch.context() as patched:
        registry = torch.serialization._package_registry
        patched.setattr(torch.serialization, "_package_registry", [tagged, *registry])
        model.net_.device = "cuda"
        return pickle.dumps(model)


@pytest.mark.filterwarnings("ignore::skorch.exceptions.DeviceWarning")
def test_what_was_fitted_on_cuda_is_read_on_a_cpu(tiny_backbone, monkeypatch):
    texts = ["free money", "lunch", "a prize", "the bus"] * 2
    rows = np.random.default_rng(0).normal(size=(8, 3))
    for model, X in (
        (DiceSequenceClassifier(backbone=tiny_backbone, max_epochs=1, random_state=0), texts),
        (DiceClassifier(max_epochs=1, random_state=0), rows),
    ):
        want = model.fit(X, [0, 1] * 4).predict_proba(X)
        settle_attention(model.net_.module_, "cuda")
        data = as_if_of_cuda(monkeypatch, model)
        assert b"cuda:0" in data
        read = pickle.loads(data)
        encoder = getattr(read.net_.module_, "encoder", None)
        assert attention_of(encoder) in (None, "sdpa")  # which every process knows
        np.testing.assert_allclose(read.predict_proba(X), want, atol=1e-6)


def test_a_fit_on_the_cpu_leaves_other_devices_alone(monkeypatch):
    def refuse(seed):
        raise AssertionError("seeded all devices")

    monkeypatch.setattr(torch.cuda, "manual_seed_all", refuse)
    monkeypatch.setattr(torch, "manual_seed", refuse)
    state = torch.get_rng_state()
    rows = np.random.default_rng(0).normal(size=(20, 3))
    models = [DiceClassifier(max_epochs=1, random_state=7).fit(rows, [0, 1] * 10) for _ in "ab"]
    assert torch.equal(torch.get_rng_state(), state)
    np.testing.assert_array_equal(*(model.predict_proba(rows) for model in models))


def test_half_precision_of_a_gpu_without_bf16_is_fp16(monkeypatch):
    for native in (False, True):
        monkeypatch.setattr(
            torch.cuda, "is_bf16_supported",
            lambda including_emulation=True, native=native: including_emulation or native,
        )  # fmt: skip
        assert autocast_dtype("auto", "cuda") is (torch.bfloat16 if native else torch.float16)


def test_a_fitted_estimator_is_as_large_as_its_weights(tagger_of, sentences):
    """The tokenizer is what these weights, a thousandth of a real encoder's, do not outweigh."""
    X, y = sentences
    tagger = tagger_of(max_epochs=1).fit(X, y)
    net = tagger.net_
    assert all(p.grad is None for p in net.module_.parameters())
    assert not net.optimizer_.state
    net = tagger.partial_fit(X, y).net_
    assert all(p.grad is None for p in net.module_.parameters())
    assert net.optimizer_.state  # a series of calls goes on
    weights = sum(p.numel() * p.element_size() for p in net.module_.parameters())
    tokenizer = len(pickle.dumps(tagger.tokenizer_))
    size = len(pickle.dumps(tagger)) - tokenizer
    copy = pickle.loads(pickle.dumps(tagger))
    assert not copy.net_.optimizer_.state
    overhead = 600 * len(list(net.module_.parameters()))  # of pickle, for each tensor
    assert size < 1.1 * weights + overhead + 50_000
    copy.partial_fit(X, y)
    assert copy.n_iter_ == 3
    assert net.optimizer_.state  # pickling took nothing away


def test_auto_trains_large_models_in_bf16_where_the_processor_has_it(
    tagger_of, sentences, monkeypatch
):
    net = tagger_of(max_epochs=1).fit(*sentences).net_
    monkeypatch.setattr("skdice.engine.net.bf16_gain", lambda: 1.3)
    net.module_.train()
    assert net.gain() is None  # so small a model gains nothing
    assert net.precision_of(net.module_) == "fp32"
    net.module_.encoder.config.hidden_size = 256
    assert net.gain() == 1.3
    net.bf16_ = True
    assert net.precision_of(net.module_) == "bf16"
    net.module_.eval()
    assert net.precision_of(net.module_) == "fp32"
    net.precision = "fp16"
    assert net.precision_of(net.module_) == "fp16"
