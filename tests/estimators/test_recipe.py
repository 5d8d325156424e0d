"""Rates, numbers of epochs and starts of the head that the estimators choose."""

from __future__ import annotations

import json
import pickle
import warnings

import numpy as np
import pytest
import torch
from imblearn.over_sampling import RandomOverSampler
from sklearn.exceptions import NotFittedError

from skdice import (
    DiceMRCTagger,
    DiceQuestionAnswerer,
    DiceSequenceClassifier,
    DiceTokenClassifier,
)
from skdice.engine import recipe
from skdice.engine.fit_plan import encode
from skdice.engine.recipe import choose_epochs, epochs_for
from skdice.model_selection import LossSearchCV, compare_losses
from skdice.model_selection.heads.data import HeadData
from tests.data import HAM, SPAM
from tests.fits import before_training, lengths_in

TEXTS, LABELS = (SPAM * 2)[:4] + (HAM * 4)[:16], ["spam"] * 4 + ["ham"] * 16


@pytest.fixture
def tiny_backbone(tiny_backbones):
    """One of two layers, of which a fit may freeze one."""
    return tiny_backbones["bert"]


@pytest.fixture(autouse=True)
def _short(set_recipe):
    """Fits of a few updates, by the same rule."""
    set_recipe(UPDATES=6, MOST_EPOCHS=4)


def classifier(backbone, **params):
    return DiceSequenceClassifier(**{"backbone": backbone, "random_state": 0} | params)


def rates(model):
    return [epoch["lr"] for epoch in model.history_]


# ---- what is chosen


@pytest.mark.parametrize(
    ("params", "epochs", "rate"),
    [
        ({}, 4, 1e-4),
        ({"batch_size": 4}, 3, 3.5e-5),  # 1e-4 times the root of 4 / 32
        ({"batch_size": 8}, 3, 5e-5),
        ({"batch_size": 8, "gradient_accumulation": 2}, 3, 7.1e-5),
        ({"batch_size": 16, "gradient_accumulation": 2}, 4, 1e-4),
        ({"net_params": {"batch_size": 10}}, 3, 5.6e-5),
        ({"net_params": {"gradient_accumulation": 4}, "batch_size": 2}, 3, 5e-5),
        ({"max_epochs": 2}, 2, 1e-4),
        ({"net_params": {"max_epochs": 1}}, 1, 1e-4),
        ({"lr": 1e-3}, 4, 1e-3),
    ],
)
def test_epochs_and_rates_follow_from_rows_and_batches(tiny_backbone, params, epochs, rate):
    model = classifier(tiny_backbone, **params).fit(TEXTS, LABELS)
    assert (model.max_epochs_, model.n_iter_, model.net_.max_epochs) == (epochs,) * 3
    # A number given alone does not spoil the other.
    assert model.lr_ == model.net_.lr == rate


@pytest.mark.parametrize(
    ("params", "rate"),
    [
        ({}, recipe.RATES[512][1]),
        ({"frozen": 1}, recipe.RATES[512][1]),
        ({"frozen": "encoder"}, recipe.RATE_OF_HEAD),
        ({"frozen": 2}, recipe.RATE_OF_HEAD),  # of two layers
        ({"lr": 7e-5}, 7e-5),
        ({"net_params": {"lr": 8e-5}}, 8e-5),
        ({"lr": 7e-5, "net_params": {"optimizer__lr": 9e-5}}, 9e-5),
        ({"net_params": {"optimizer": torch.optim.SGD, "lr": 0.1}}, 0.1),
    ],
)
def test_the_rate_follows_from_the_encoder_unless_it_is_given(tiny_backbone, params, rate):
    model = classifier(tiny_backbone, schedule="constant", warmup=0.0, **params)
    model.fit(TEXTS, LABELS)
    assert model.lr_ == rate
    assert rates(model) == [rate] * 4
    assert model.net_.optimizer_.param_groups[0]["lr"] == rate


def test_an_adapter_has_a_rate_of_its_own(tiny_backbone):
    pytest.importorskip("peft")
    model = classifier(tiny_backbone, adapter="lora", loss="ce").fit(TEXTS, LABELS)
    assert model.lr_ == recipe.RATES[512][2]
    assert model.merge_adapter().lr_ == recipe.RATES[512][2]


def test_the_width_decides(tmp_path, build_backbone):
    wide = build_backbone(str(tmp_path), hidden_size=520, num_hidden_layers=1)
    net, _ = before_training(classifier(wide), TEXTS, LABELS)
    assert net.lr == recipe.RATES[768][1] != recipe.RATES[512][1]


def test_texts_of_many_classes_have_the_higher_rate(tiny_backbone):
    of_many = ["spam", "ham", "news", "ham"] * 5
    of_sets = [{label} for label in LABELS]
    lower, higher = recipe.RATES[512][1], recipe.RATES[512][0]
    model = classifier(tiny_backbone, max_epochs=1)
    for y, rate in ((of_many, higher), (LABELS, lower), (of_sets, higher), (LABELS, lower)):
        assert model.fit(TEXTS, y).lr_ == rate > 0
    assert lower < higher
    named = classifier(tiny_backbone).partial_fit(TEXTS, LABELS, classes=["spam", "ham", "news"])
    assert named.lr_ == recipe.choose_rate(8, constant=True)


def test_rows_held_out_do_not_count_and_rows_drawn_do(tiny_backbone):
    def epochs(**params):
        settings = {"batch_size": 5, **params}
        return classifier(tiny_backbone, **settings).fit(TEXTS, LABELS).max_epochs_

    assert epochs() == 3
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert epochs(early_stopping=True, validation_fraction=0.5) == 3
        assert epochs(early_stopping=True, validation_fraction=0.5, batch_size=10) == 4
    drawn = classifier(tiny_backbone, batch_size=16, sampler=RandomOverSampler(random_state=0))
    drawn.fit(TEXTS, LABELS)  # 32 rows
    assert (drawn.max_epochs_, drawn.n_iter_) == (3, 3)
    assert classifier(tiny_backbone, batch_size=20).fit(TEXTS, LABELS).max_epochs_ == 4


def test_texts_of_two_classes_are_seen_until_the_rarer_was_seen_often(tiny_backbone, set_recipe):
    set_recipe(UPDATES=1000, MOST_EPOCHS=18, RARE_ROWS=16, LEAST_UPDATES=1)

    def epochs(X=TEXTS, y=LABELS, weights=None, **params):
        return classifier(tiny_backbone, **params).fit(X, y, sample_weight=weights).max_epochs_

    assert epochs() == 4  # 4 of 20 are spam
    assert epochs(TEXTS[::-1], LABELS[::-1]) == 4
    assert epochs(y=[{"spam": "ham", "ham": "spam"}[label] for label in LABELS]) == 4
    assert epochs(weights=np.full(20, 2.0)) == 4
    assert epochs(weights=[4.0] * 4 + [1.0] * 16) == 4  # as "balanced" weighs them
    assert epochs(weights=[0.0] * 3 + [1.0] * 17) == 16  # as without those three
    assert epochs(TEXTS[3:], LABELS[3:]) == 16  # one of 17 is spam
    assert epochs(TEXTS * 2, LABELS * 2) == 3  # twice as many are seen in a pass, but 3 are made
    assert epochs(sampler=RandomOverSampler(random_state=0)) == 3  # 16 of each
    assert epochs(lr=1e-6) == 18  # at which the updates count
    assert epochs(max_epochs=7) == 7
    # Elsewhere it was not measured, or held-out rows say when to stop.
    longer = [{"frozen": "encoder"}, {"frozen": 2}, {"early_stopping": True}]
    for params in longer:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert epochs(**params) == 18
    assert epochs(y=[*LABELS[:-1], "other"]) == 18
    assert epochs(y=np.eye(2, dtype=int)[[int(label == "spam") for label in LABELS]]) == 18


def test_every_window_counts(tiny_backbone, sentences):
    X, y = sentences
    mrc = DiceMRCTagger(backbone=tiny_backbone, batch_size=16, random_state=0).fit(X, y)
    windows = len(X) * len(mrc.queries_)
    assert mrc.max_epochs_ == recipe.choose_epochs(windows, 16) < recipe.choose_epochs(len(X), 16)
    long = [[word for row in X for word in row]]
    tagger = DiceTokenClassifier(backbone=tiny_backbone, batch_size=1, random_state=0)
    tagger.fit(long, [[tag for row in y for tag in row]])
    n_windows = len(encode(tagger, long).windows)
    assert n_windows > 1
    assert tagger.max_epochs_ == recipe.choose_epochs(n_windows, 1)


# ---- every way to train


def test_a_series_of_partial_fits_has_a_lower_constant_rate(tiny_backbone):
    model = classifier(tiny_backbone)
    for _ in range(2):
        model.partial_fit(TEXTS, LABELS)
        assert (model.lr_, model.max_epochs_) == (3e-5, 1)
    assert rates(model) == [3e-5, 3e-5]
    model.fit(TEXTS, LABELS)
    assert (model.lr_, model.max_epochs_) == (1e-4, 4)
    assert model.set_params(lr=1e-5).partial_fit(TEXTS, LABELS).lr_ == 1e-5
    assert model.n_iter_ == 5  # four of `fit`, and one since


def test_a_warm_start_chooses_again(tiny_backbone):
    model = classifier(tiny_backbone, warm_start=True).fit(TEXTS, LABELS)
    before = model.net_.module_.head.weight.detach().clone()
    model.set_params(batch_size=4).fit(TEXTS, LABELS)
    assert (model.max_epochs_, model.n_iter_) == (3, 7)
    assert not torch.equal(before, model.net_.module_.head.weight)


def test_early_stopping_waits_for_a_third_of_the_epochs(tiny_backbone, set_recipe):
    set_recipe(UPDATES=100, MOST_EPOCHS=12)
    model = classifier(tiny_backbone, early_stopping=True, lr=1e-12)  # no score is better
    dev = {"X_val": TEXTS[:6], "y_val": LABELS[:6]}
    assert model.fit(TEXTS, LABELS, **dev).n_iter_ == 1 + 12 // 3
    assert model.set_params(n_iter_no_change=1).fit(TEXTS, LABELS, **dev).n_iter_ == 2
    model.set_params(n_iter_no_change="auto", max_epochs=5)
    assert model.fit(TEXTS, LABELS, **dev).n_iter_ == 1 + 3


@pytest.mark.parametrize("params", [{"lr": "fast"}, {"max_epochs": 0}])
def test_bad_numbers_are_refused_before_a_search_or_a_comparison(params):
    (name,) = params
    model = DiceSequenceClassifier(**{"backbone": "no/such-backbone", **params})
    data = {"X_test": TEXTS, "y_test": LABELS}
    with pytest.raises(ValueError, match=f"'{name}' parameter of DiceSequenceClassifier"):
        compare_losses(model, TEXTS, LABELS, losses=["tfidf", "ce"], **data)
    pytest.importorskip("optuna")
    with pytest.raises(ValueError, match=f"'{name}' parameter of DiceSequenceClassifier"):
        LossSearchCV(model, {"loss": ["ce"]}, n_trials=2, cv=2).fit(TEXTS, LABELS)


def test_heads_of_a_search_train_as_many_epochs(tiny_backbone):
    def weights(model):
        heads = HeadData(model, TEXTS, LABELS)
        return heads.fit([classifier(tiny_backbone)], [np.arange(10), np.arange(20)])[1].weight

    chosen, three, four = (weights(classifier(tiny_backbone, max_epochs=n)) for n in ("auto", 3, 4))
    assert torch.equal(chosen, four)
    assert not torch.equal(chosen, three)


def test_a_comparison_makes_as_many_updates_in_every_row(tiny_backbone, set_recipe):
    set_recipe(UPDATES=20, MOST_EPOCHS=12)
    made = []  # of each fit
    data = {"X_test": TEXTS, "y_test": LABELS, "seeds": 1}
    rows = ["ce", "ce + RandomOverSampler", "ce + RandomUnderSampler"]
    given = classifier(tiny_backbone, net_params={"batch_size": 4}, callbacks=[lengths_in(made)])
    found = compare_losses(given, TEXTS, LABELS, losses=rows, **data)
    assert [updates for _, updates in made] == [20, 16, 20]
    assert found.settings["max_epochs"] == 4
    assert given.max_epochs == "auto"
    made.clear()
    compare_losses(given.set_params(max_epochs=1), TEXTS, LABELS, losses=rows, **data)
    assert [updates for _, updates in made] == [5, 8, 2]


def test_a_fit_goes_on_from_the_checkpoints_of_one_with_the_same_numbers(tiny_backbone, tmp_path):
    folder = {"checkpoint_dir": tmp_path, "checkpoint_every": 1}
    chosen = classifier(tiny_backbone, **folder).fit(TEXTS, LABELS)
    assert len(list(tmp_path.iterdir())) == 1
    told = {"lr": chosen.lr_, "max_epochs": chosen.max_epochs_}
    classifier(tiny_backbone, **told, **folder).fit(TEXTS, LABELS)
    assert len(list(tmp_path.iterdir())) == 1
    classifier(tiny_backbone, lr=1e-5, **folder).fit(TEXTS, LABELS)
    assert len(list(tmp_path.iterdir())) == 2


def test_what_was_chosen_is_saved_and_shown(tiny_backbone, tmp_path, capsys):
    model = classifier(tiny_backbone, verbose=1).fit(TEXTS, LABELS)
    first, second, *_ = capsys.readouterr().out.splitlines()
    assert first == "the positive class is spam"
    assert second == "lr 0.0001, 4 epochs, 4 updates, batches of 32"
    read = DiceSequenceClassifier.from_pretrained(model.save_pretrained(tmp_path / "model"))
    for other in (read, pickle.loads(pickle.dumps(model))):
        assert (other.lr_, other.max_epochs_) == (1e-4, 4)
        assert (other.lr, other.max_epochs) == ("auto", "auto")
        assert other.partial_fit(TEXTS, LABELS).lr_ == 3e-5
    assert "| Peak learning rate | 0.0001 |" in (tmp_path / "model" / "README.md").read_text()
    json.dumps(model.history_)


def test_a_model_of_others_has_no_rate_until_it_is_trained(tiny_backbone, tmp_path):
    saved = classifier(tiny_backbone, pooling="native", max_epochs=1).fit(TEXTS, LABELS)
    saved.save_pretrained(tmp_path / "model")
    model = DiceSequenceClassifier.from_transformers(tmp_path / "model")
    assert not hasattr(model, "lr_")
    model.save_pretrained(tmp_path / "again")
    assert "| Peak learning rate | unknown |" in (tmp_path / "again" / "README.md").read_text()
    assert model.partial_fit(TEXTS, LABELS).lr_ == 3e-5
    model.set_params(warm_start=True).fit(TEXTS, LABELS)
    assert (model.lr_, model.max_epochs_) == (1e-4, 4)


# ---- bad input


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"lr": "fast"}, "lr.*'auto'.*'fast'"),
        ({"lr": 0}, "lr.*Got 0"),
        ({"max_epochs": 0}, "max_epochs.*'auto'.*Got 0"),
        ({"max_epochs": "many"}, "max_epochs.*'auto'.*'many'"),
        ({"n_iter_no_change": "long"}, "n_iter_no_change.*'auto'"),
        ({"lr": True}, "lr=True must be a float"),
        ({"max_epochs": True}, "max_epochs=True must be an int"),
        ({"frozen": True}, "frozen=True must be"),
        ({"net_params": {"optimizer": torch.optim.SGD}}, "SGD.*give lr as a number"),
    ],
)
def test_what_is_no_number_is_refused_before_anything_is_loaded(params, message):
    model = DiceTokenClassifier(**{"backbone": "no/such-backbone", **params})
    with pytest.raises(ValueError, match=message):
        model.fit([["anna"]], [["B-PER"]])
    with pytest.raises(NotFittedError):
        model.predict([["anna"]])


@pytest.mark.parametrize("rows", [[0, 4], [0, *range(4, 12)]])
def test_a_few_examples_train(tiny_backbone, rows):
    X, y = [TEXTS[i] for i in rows], [LABELS[i] for i in rows]
    assert len(classifier(tiny_backbone, pos_label="spam").fit(X, y).predict(X)) == len(X)


# ---- where the head begins


def begun(model, *data, **arguments):
    """The module before its first update."""
    return before_training(model, *data, **arguments)[0].module_


@pytest.mark.parametrize("pooling", ["mean", "native"])
def test_a_classifier_begins_at_the_shares(tiny_backbone, pooling):
    weights = np.array([2.0] * 4 + [1.0] * 16)
    for given, shares in ((None, [0.8, 0.2]), (weights, [16 / 24, 8 / 24])):
        model = classifier(tiny_backbone, loss="ce", pooling=pooling)
        layer = begun(model, TEXTS, LABELS, sample_weight=given).output_layer
        np.testing.assert_allclose(torch.softmax(layer.bias.detach(), 0), shares, rtol=1e-5)
    model = classifier(tiny_backbone, loss="dice", pooling=pooling)
    assert begun(model, TEXTS, LABELS).output_layer.bias.tolist() == [0, 0]


def test_labels_begin_at_their_shares(tiny_backbone):
    y = np.array([[int(i < 5), int(i % 2)] for i in range(20)])
    layer = begun(classifier(tiny_backbone, loss="ce"), TEXTS, y).output_layer
    np.testing.assert_allclose(torch.sigmoid(layer.bias.detach()), [0.25, 0.5], rtol=1e-5)


def test_a_tagger_begins_at_the_shares_of_tokens(tiny_backbone, sentences):
    X, y = sentences
    model = DiceTokenClassifier(backbone=tiny_backbone, loss="focal", random_state=0)
    layer = begun(model, X, y).output_layer
    tags = [tag for row in y for tag in row]
    shares = [tags.count(tag) / len(tags) for tag in sorted(set(tags))]
    np.testing.assert_allclose(torch.softmax(layer.bias.detach(), 0), shares, rtol=1e-5)


def test_an_adapted_head_begins_there_too(tiny_backbone, sentences):
    pytest.importorskip("peft")
    X, y = sentences
    model = DiceTokenClassifier(backbone=tiny_backbone, loss="ce", adapter="lora", random_state=0)
    module = begun(model, X, y)
    logits = module.all_logits(
        {"input_ids": torch.zeros(1, 3, dtype=int), "attention_mask": torch.ones(1, 3, dtype=int)}
    )
    tags = [tag for row in y for tag in row]
    share = tags.count("O") / len(tags)
    assert abs(torch.softmax(logits, -1)[..., -1].mean().item() - share) < 0.05


def test_heads_of_readers_begin_at_zero(tiny_backbone, sentences):
    module = begun(DiceMRCTagger(backbone=tiny_backbone, loss="ce", random_state=0), *sentences)
    assert module.output_layer.bias.tolist() == [0, 0, 0]
    reader = DiceQuestionAnswerer(backbone=tiny_backbone, loss="ce", random_state=0)
    layer = begun(reader, [("who met anna", "bob met anna")] * 3, [(0, "bob")] * 3).output_layer
    assert layer.bias.tolist() == [0, 0]


def test_a_model_that_is_trained_on_keeps_its_bias(tiny_backbone):
    model = classifier(tiny_backbone, loss="ce", warm_start=True, lr=1e-9, weight_decay=0.0)
    bias = model.fit(TEXTS, LABELS).net_.module_.head.bias.detach().clone()
    np.testing.assert_allclose(torch.softmax(bias, 0), [0.8, 0.2], rtol=1e-3)
    model.fit(TEXTS[:8], LABELS[:8])
    np.testing.assert_allclose(model.net_.module_.head.bias.detach(), bias, atol=1e-6)


def test_several_processes_count_as_a_larger_batch(monkeypatch):
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    tagger = DiceTokenClassifier(batch_size=16)
    assert epochs_for(tagger, 64) == choose_epochs(64, 32) == 3  # two updates an epoch, six in all
    assert epochs_for(tagger, 32) == choose_epochs(32, 32) == 4
    monkeypatch.setenv("WORLD_SIZE", "1")
    assert epochs_for(tagger, 32) == 3
