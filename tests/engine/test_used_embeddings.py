"""The rows of the word table that no text uses end where they would, whoever looks on."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import torch
from skorch.callbacks import Checkpoint, EarlyStopping
from torch import nn

from skdice import DiceTokenClassifier
from skdice.engine.callbacks import AfterEpoch
from skdice.engine.fit_plan import encode
from skdice.engine.net import FineTuningNet
from skdice.engine.used_embeddings import UsedEmbeddings
from skdice.exceptions import ServingWarning
from tests.fits import Tells, assert_same_weights, word_tables_from


def table_of(model):
    return model.net_.module_.encoder.get_input_embeddings()


def fits_of(settings, *data, **more):
    """One fit of the whole table, and one of the used rows."""
    fits, kinds = [], []
    tells = Tells(before=lambda net, batch: kinds.append(type(table_of_net(net))))
    for least in (10**9, 0):
        with word_tables_from(least):
            model = DiceTokenClassifier(**settings, callbacks=[tells])
            fits.append(model.fit(*data, **more))
    half = len(kinds) // 2
    assert set(kinds[:half]) == {nn.Embedding}
    assert set(kinds[half:]) == {UsedEmbeddings}
    return fits


def table_of_net(net):
    return net.module_.encoder.get_input_embeddings()


@pytest.mark.parametrize(
    ("kind", "validated"),
    [
        *(("bert", False), ("bert", True), ("roberta", False), ("distilbert", True)),
        *(("deberta-v2", False), ("electra", True), ("modernbert", False), ("xlnet", True)),
        ("gpt2", True),
    ],
)
def test_words_that_no_text_has_end_where_they_would(
    tiny_backbones, build_backbone, tmp_path, sentences, kind, validated
):
    X, y = sentences
    backbone = tiny_backbones.get(kind) or build_backbone(str(tmp_path), kind)
    used, held = (X[:4], y[:4]), (X[4:], y[4:])  # which have other words
    more = dict(zip(("X_val", "y_val"), held, strict=True)) if validated else {}
    settings = dict(backbone=backbone, max_epochs=3, lr=1e-2, batch_size=2)
    settings |= dict(weight_decay=0.3, random_state=0, early_stopping=validated)
    fits = fits_of(settings, *used, **more)
    assert_same_weights(*fits, rtol=1e-4, atol=1e-6)
    histories = [[epoch["train_loss"] for epoch in model.history_] for model in fits]
    assert histories[0] == pytest.approx(histories[1])
    weight = table_of(fits[1]).weight
    assert type(table_of(fits[1])) is nn.Embedding
    assert any(weight is p for g in fits[1].net_.optimizer_.param_groups for p in g["params"])
    assert fits[1].predict(X).tolist() == fits[0].predict(X).tolist()
    fits[1].partial_fit(X, y)


def test_vectors_and_gradients_are_those_of_the_whole_table():
    """The padding, also where a text holds it, gets no gradient; untrained rows share one."""
    layer, used = nn.Embedding(9, 4, padding_idx=0), np.array([0, 3, 5])
    some = UsedEmbeddings(layer, used)
    ids, factors = torch.tensor([[0, 3, 5], [3, 0, 7]]), torch.randn(2, 3, 4)
    found, expected = some(ids), layer(ids)
    assert torch.equal(found, expected)
    for vectors in (found, expected):
        (vectors * factors).sum().backward()
    assert not some.weight.grad[0].any()
    torch.testing.assert_close(some.weight.grad[:3], layer.weight.grad[used])
    torch.testing.assert_close(some.weight.grad[3], layer.weight[7].detach() * factors[1, 2])


@pytest.fixture
def settings(tiny_backbone):
    return dict(
        backbone=tiny_backbone, max_epochs=3, lr=1e-2, batch_size=2, weight_decay=0.3,
        random_state=0,
    )  # fmt: skip


def test_a_callback_changes_nothing_of_what_is_trained(settings, sentences, monkeypatch):
    X, y = sentences
    held, fits, started = [], [], FineTuningNet.on_train_begin

    def note(net, *args, **kwargs):
        groups = net.optimizer_.param_groups
        held.append([(tuple(p.shape), g["weight_decay"]) for g in groups for p in g["params"]])
        return started(net, *args, **kwargs)

    monkeypatch.setattr(FineTuningNet, "on_train_begin", note)
    for callbacks in (None, [Tells()]):
        with word_tables_from(0):
            fits.append(DiceTokenClassifier(**settings, callbacks=callbacks).fit(X[:4], y[:4]))
    assert held[0] == held[1]
    n_rows = len(table_of(fits[0]).weight)
    assert all(shape[0] < n_rows for shape, _ in held[0])
    assert_same_weights(*fits)


def test_whoever_looks_during_a_fit_finds_the_whole_table(settings, sentences):
    """Outputs for other words, state dicts, copies and pickles are those of a whole table."""
    X, y = sentences
    others = []
    seen = [[], []]
    for least, found in zip((10**9, 0), seen, strict=True):
        model = DiceTokenClassifier(**settings)

        def look(net, loss, found=found):
            read = pickle.loads(pickle.dumps(net.module_)).encoder.get_input_embeddings()
            copied = copy.deepcopy(net.module_).encoder.get_input_embeddings()
            assert type(read) is type(copied) is nn.Embedding
            tables = [
                net.module_.state_dict()["encoder.embeddings.word_embeddings.weight"],
                read.weight,
                copied.weight,
            ]
            predicted = np.concatenate(net.logits(others[0]))
            found.append([*(table.detach().numpy().copy() for table in tables), predicted])

        model.fit(X[4:], y[4:])
        others[:] = [encode(model, X[4:], y[4:])]
        with word_tables_from(least):
            model.set_params(callbacks=[Tells(after=look)]).fit(X[:4], y[:4])
    assert len(seen[0]) == len(seen[1]) == 6
    for one, other in zip(*seen, strict=True):
        for a, b in zip(one, other, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


def test_callbacks_of_skorch_that_keep_weights(settings, sentences, tmp_path):
    X, y = sentences

    def callbacks():
        stop = EarlyStopping(monitor="lr", lower_is_better=False, patience=1, load_best=True)
        return [stop, Checkpoint(monitor=None, dirname=str(tmp_path), f_params="w.pt")]

    fits = []
    for least in (10**9, 0):
        with word_tables_from(least):
            model = DiceTokenClassifier(**settings, warmup=0.0, callbacks=callbacks())
            fits.append(model.fit(X[:4], y[:4]))
            state = torch.load(tmp_path / "w.pt", weights_only=True)
            model.net_.module_.load_state_dict(state)
            assert model.n_iter_ == 2
    assert_same_weights(*fits, rtol=1e-4, atol=1e-6)


def test_weights_that_a_callback_loads_are_trained_on(settings, sentences):
    X, y = sentences

    def load(net, batch):
        if net.done_ == 2:
            state = net.module_.state_dict()
            net.module_.load_state_dict({name: value / 2 for name, value in state.items()})

    fits = []
    for least in (10**9, 0):
        with word_tables_from(least):
            model = DiceTokenClassifier(**settings, callbacks=[Tells(before=load)])
            fits.append(model.fit(X[:4], y[:4]))
    assert_same_weights(*fits, rtol=1e-4, atol=1e-6)


def test_a_model_saved_after_each_epoch_is_that_of_the_epoch(settings, sentences, tmp_path):
    X, y = sentences
    model, found = DiceTokenClassifier(**settings), []

    def save(model):
        with pytest.warns(ServingWarning, match="callbacks"):
            folder = model.save_pretrained(tmp_path / f"epoch-{len(found)}")
        predicted = np.concatenate(model.predict_proba(X))
        found.append((folder, predicted, model.net_.history[-1, "train_loss"]))

    with word_tables_from(0):
        model.set_params(callbacks=[AfterEpoch(save)]).fit(X[:4], y[:4])
    assert len(found) == 3
    for i, (folder, predicted, loss) in enumerate(found):
        read = DiceTokenClassifier.from_pretrained(folder)
        np.testing.assert_allclose(np.concatenate(read.predict_proba(X)), predicted, atol=1e-6)
        assert [epoch["train_loss"] for epoch in read.history_][i:] == [loss]
