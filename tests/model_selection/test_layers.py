"""Top layers as lanes: each ends where its own fit with frozen lower layers ends."""

from __future__ import annotations

import copy
import warnings

import numpy as np
import pytest
import torch
from optuna.pruners import BasePruner
from optuna.samplers import RandomSampler
from sklearn.base import clone
from sklearn.metrics import f1_score
from transformers import AutoConfig, AutoModel, AutoTokenizer

from skdice import DiceClassifier, DiceSequenceClassifier, DiceTokenClassifier
from skdice.engine import tables
from skdice.losses import CompoundLoss, CrossEntropyLoss
from skdice.model_selection import LossSearchCV, loss_space
from skdice.model_selection.layers import LayerLanes, TopLayers
from skdice.resampling import TagOverSampler
from tests.conftest import build_tiny_backbone

TEXTS = [
    "free money now",
    "lunch today",
    "call now to win a free prize",
    "the bus is late today",
    "meeting at the bank near the old river",
    "win free prize money",
    "rain",
    "the old school team went to paris with bob and carla",
] * 2
LABELS = np.array(["spam", "ham", "spam", "ham", "ham", "spam", "ham", "ham"] * 2)
X = [text.split() for text in TEXTS]
Y = [["B-X" if word in ("money", "prize", "bob") else "O" for word in row] for row in X]
SETTINGS = [
    {"loss": "dsc"},
    {"loss": "tversky", "loss__alpha": 0.3, "loss__beta": 0.7},
    {"loss": "ce", "lr": 3e-3},
    {"loss": "focal", "weight_decay": 0.3},
    {"loss": CompoundLoss("ce", "dice")},
]


@pytest.fixture(scope="module")
def backbones(tmp_path_factory):
    """Three layers each; only the first four can be lanes."""
    folders = {
        kind: build_tiny_backbone(
            str(tmp_path_factory.mktemp(kind)),
            kind,
            **({"n_layer": 3} if kind == "xlnet" else {"num_hidden_layers": 3}),
        )
        for kind in ("bert", "roberta", "modernbert", "deberta-v2", "xlnet")
    }
    small = dict(num_hidden_layers=3, num_attention_heads=2, intermediate_size=32)
    others = {
        "esm": dict(hidden_size=16, pad_token_id=0, mask_token_id=4, **small),  # an unused weight
        "convbert": dict(hidden_size=16, embedding_size=16, head_ratio=1, **small),
        "xlm": dict(emb_dim=16, n_layers=3, n_heads=2, pad_index=0),
    }
    for kind, config in others.items():
        folders[kind] = build_tiny_backbone(str(tmp_path_factory.mktemp(kind)))
        known = len(AutoTokenizer.from_pretrained(folders[kind]))
        longest = {"vocab_size": known, "max_position_embeddings": 64}
        encoder = AutoModel.from_config(AutoConfig.for_model(kind, **longest, **config))
        encoder.save_pretrained(folders[kind])
    return folders


def model(backbones, tagging, kind="bert", **params):
    made = DiceTokenClassifier if tagging else DiceSequenceClassifier
    common = dict(max_epochs=2, random_state=0, batch_size=6, lr=1e-3)
    return made(backbone=backbones[kind], **{**common, **params})


def data(tagging):
    return (X, Y) if tagging else (TEXTS, LABELS)


def lanes_of(estimator, n_layers, settings, rows, **fit_params):
    top = TopLayers(estimator, n_layers, rows[0])
    models = [clone(estimator).set_params(frozen=top.frozen, **p) for p in settings]
    return LayerLanes(models, *rows, fit_params, top.lower)


def flat(probabilities):
    return np.concatenate(list(probabilities)) if probabilities.dtype == object else probabilities


def trained(lanes):
    while not lanes.is_done:
        lanes.epoch()
    return lanes.models


@pytest.mark.parametrize("tagging", [False, True])
@pytest.mark.parametrize(
    ("kind", "n_layers", "params"),
    [
        ("bert", 1, {}),
        ("bert", 2, {"schedule": "cosine", "max_grad_norm": 0.1}),
        ("bert", 1, {"gradient_accumulation": 2, "batch_size": 4}),
        ("roberta", 1, {}),
        ("modernbert", 1, {}),
        ("esm", 1, {}),
    ],
)
def test_a_lane_ends_where_its_own_fit_does(backbones, tagging, kind, n_layers, params):
    rows = data(tagging)
    estimator = model(backbones, tagging, kind, **params)
    before = torch.get_rng_state()
    found = trained(lanes_of(estimator, n_layers, SETTINGS, rows))
    assert torch.equal(before, torch.get_rng_state())
    seen = []
    for one, chosen in zip(found, SETTINGS, strict=True):
        alone = clone(estimator).set_params(frozen=3 - n_layers, **chosen).fit(*rows)
        want, got = flat(alone.predict_proba(rows[0])), flat(one.predict_proba(rows[0]))
        np.testing.assert_allclose(got, want, atol=2e-6)
        seen.append(got)
        # Also of texts that were no part of the search.
        other = [["bob", "met", "anna"]] if tagging else ["bob met anna"]
        np.testing.assert_allclose(
            flat(one.predict_proba(other)), flat(alone.predict_proba(other)), atol=2e-6
        )
    assert min(np.abs(a - b).max() for i, a in enumerate(seen) for b in seen[:i]) > 1e-4


def test_lanes_take_weights_samplers_several_labels_and_pairs(backbones):
    weight = np.linspace(0.5, 2, len(TEXTS))
    drawn = TagOverSampler(sampling_strategy=0.6, random_state=0)
    cases = [
        (model(backbones, False), (TEXTS, LABELS), {"sample_weight": weight}),
        (
            model(backbones, True, sampler=drawn),
            (X, Y),
            {},
        ),
        (model(backbones, False), (TEXTS, np.eye(2, dtype=int)[[0, 1] * 8]), {}),
        (model(backbones, False, pooling="cls"), ([(t, "rain") for t in TEXTS], LABELS), {}),
    ]
    for estimator, rows, fit_params in cases:
        found = trained(lanes_of(estimator, 1, SETTINGS[:2], rows, **fit_params))
        for one, chosen in zip(found, SETTINGS, strict=False):
            alone = clone(estimator).set_params(frozen=2, **chosen).fit(*rows, **fit_params)
            np.testing.assert_allclose(
                flat(one.predict_proba(rows[0])), flat(alone.predict_proba(rows[0])), atol=2e-6
            )


def test_lanes_that_go_on_without_others_end_as_they_would_have(backbones):
    estimator = model(backbones, True, max_epochs=3)
    all_of_them = trained(lanes_of(estimator, 1, SETTINGS, (X, Y)))
    some = lanes_of(estimator, 1, SETTINGS, (X, Y))
    some.epoch()
    some.keep([3, 1])
    for one, i in zip(trained(some), [3, 1], strict=True):
        np.testing.assert_allclose(
            flat(one.predict_proba(X)), flat(all_of_them[i].predict_proba(X)), atol=2e-6
        )


def test_lower_layers_run_once_for_each_input(backbones, monkeypatch):
    estimator = model(backbones, False)
    top = TopLayers(estimator, 1, TEXTS)
    runs = []
    monkeypatch.setattr(top.lower, "_run", runs.append)
    models = [clone(estimator).set_params(frozen=2, **p) for p in SETTINGS[:2]]
    lanes = LayerLanes(models, TEXTS[:8], LABELS[:8], {}, top.lower)
    trained(lanes)[0].predict(TEXTS[8:])
    assert runs == []
    assert len(top.lower._known) == len(set(TEXTS))


def test_what_lower_layers_say_lies_in_a_file_past_a_size(backbones, monkeypatch):
    estimator = model(backbones, True)
    small = trained(lanes_of(estimator, 1, SETTINGS[:1], (X, Y)))[0].predict_proba(X)
    monkeypatch.setattr(tables, "IN_MEMORY", 0)
    lanes = lanes_of(estimator, 1, SETTINGS[:1], (X, Y))
    top = TopLayers(estimator, 1, X)
    assert isinstance(top.lower._table, np.memmap)
    np.testing.assert_allclose(flat(trained(lanes)[0].predict_proba(X)), flat(small), atol=1e-6)


def spam_f1(model, texts, labels):
    return f1_score(np.asarray(labels) == "spam", model.predict(texts) == "spam", zero_division=0)


def spam_probability(model, texts, labels):
    """Differs between any two models."""
    return float(model.predict_proba(texts)[np.asarray(labels) == "spam", 1].mean())


def search(estimator, space=None, **params):
    common = dict(
        n_trials=6,
        n_lanes=3,
        n_finalists=2,
        lane_layers=1,
        cv=2,
        random_state=0,
        pruner=None,
        strategy="shared",
        scoring=spam_probability,
        sampler=RandomSampler(seed=0),
    )
    return LossSearchCV(estimator, space or loss_space("tversky"), **{**common, **params})


def test_lanes_are_the_fits_of_an_estimator_with_these_layers_frozen(backbones):
    frozen = model(backbones, False, frozen=2)
    shared = search(frozen, return_train_score=True).fit(TEXTS, LABELS)
    full = search(frozen, return_train_score=True, strategy="full").fit(TEXTS, LABELS)
    assert set(shared.cv_results_["state"]) == {"COMPLETE"}
    assert shared.best_params_ == full.best_params_
    for name in ("split0_test_score", "mean_test_score", "mean_train_score"):
        np.testing.assert_allclose(
            shared.cv_results_[name], full.cv_results_[name], atol=2e-6, err_msg=name
        )
    assert len(set(full.cv_results_["mean_test_score"])) == 6
    assert "mean_shared_score" not in shared.cv_results_


def test_lanes_stand_for_the_fits_of_other_estimators(backbones):
    estimator = model(backbones, False)
    found = search(estimator, return_train_score=True).fit(TEXTS, LABELS)
    lanes = search(model(backbones, False, frozen=2)).fit(TEXTS, LABELS)
    full = search(estimator, strategy="full").fit(TEXTS, LABELS)
    results = found.cv_results_
    np.testing.assert_allclose(
        results["mean_shared_score"], lanes.cv_results_["mean_test_score"], atol=2e-6
    )
    ran = results["state"] == "COMPLETE"
    assert sorted(results["state"]) == ["COMPLETE"] * 2 + ["SCREENED"] * 4
    assert ran[np.argmax(results["mean_shared_score"])]
    np.testing.assert_allclose(
        results["mean_test_score"][ran], full.cv_results_["mean_test_score"][ran]
    )
    assert found.best_index_ in np.flatnonzero(ran)
    np.testing.assert_array_equal(np.isnan(results["mean_train_score"]), ~ran)


class Below(BasePruner):
    """Ends trials of some numbers, at some step."""

    def __init__(self, numbers, step):
        self.numbers, self.step = numbers, step

    def prune(self, study, trial):
        return trial.number in self.numbers and trial.last_step == self.step


@pytest.mark.parametrize("frozen", ["none", 2])
def test_others_take_the_place_of_pruned_lanes(backbones, frozen, monkeypatch):
    sizes = []
    monkeypatch.setattr(LayerLanes, "epoch", counting(sizes))
    estimator = model(backbones, False, frozen=frozen)
    found = search(estimator, n_trials=5, pruner=Below({1}, 0)).fit(TEXTS, LABELS)
    # Two go on while another begins, and the last begins when they are through.
    assert sizes[:7] == [3, 2, 1, 2, 1, 2, 1]
    states = found.cv_results_["state"]
    assert states[1] == "PRUNED"
    assert np.isnan(found.cv_results_["mean_test_score"][1])
    assert np.isfinite(found.best_score_)
    assert found.best_index_ != 1
    # Those that were not pruned are as they would have been.
    name = "mean_test_score" if frozen == 2 else "mean_shared_score"
    whole = search(estimator, n_trials=5).fit(TEXTS, LABELS).cv_results_[name]
    scores = found.cv_results_[name]
    np.testing.assert_allclose(np.delete(scores, 1), np.delete(whole, 1), atol=2e-6)
    assert np.isnan(scores[1])


def test_the_median_pruner_sees_each_epoch(backbones):
    estimator = model(backbones, False, frozen=2)
    found = search(estimator, pruner="median", n_trials=12, n_lanes=6).fit(TEXTS, LABELS)
    trials = found.study_.trials
    whole = [t for t in trials if t.state.name == "COMPLETE"]
    # Two folds of two epochs: after each epoch but the last, and after the first fold.
    assert all(list(t.intermediate_values) == [0, 9_999, 10_000] for t in whole)
    assert {t.state.name for t in trials[:6]} == {"COMPLETE"}
    assert {t.state.name for t in trials[6:]} == {"COMPLETE", "PRUNED"}


class Broken(CrossEntropyLoss):
    """Fails on any data."""

    def forward(self, logits, target, sample_weight=None):
        raise ArithmeticError("it cannot be")


def test_a_lane_that_fails_has_its_error_and_leaves_the_others(backbones, monkeypatch):
    estimator = model(backbones, False, frozen=2)
    space = {"loss": [Broken(), "ce", "dsc", "focal"]}
    how = dict(n_trials=8, n_lanes=8)
    with pytest.warns(match="it cannot be"):
        found = search(estimator, space, **how).fit(TEXTS, LABELS)
    failed = [isinstance(p["loss"], Broken) for p in found.cv_results_["params"]]
    assert 0 < sum(failed) < 8
    np.testing.assert_array_equal(found.cv_results_["state"] == "FAIL", failed)
    np.testing.assert_array_equal(np.isnan(found.cv_results_["mean_test_score"]), failed)
    # As full fits have it.
    with pytest.warns(match="failed and scores 0.25"):
        found, full = (
            search(estimator, space, error_score=0.25, strategy=strategy, **how)
            .set_params(sampler=RandomSampler(seed=0))
            .fit(TEXTS, LABELS)
            .cv_results_
            for strategy in ("shared", "full")
        )
    np.testing.assert_array_equal(found["state"], full["state"])
    np.testing.assert_allclose(found["mean_test_score"], full["mean_test_score"], atol=2e-6)
    with pytest.raises(ArithmeticError, match="it cannot be"):
        search(estimator, space, error_score="raise", **how).fit(TEXTS, LABELS)
    trained_by_then = []
    monkeypatch.setattr(LayerLanes, "epoch", counting(trained_by_then))
    with pytest.raises(ValueError, match="scoring must return a number"):
        search(estimator, scoring=lambda model, X, y: {"a": 1.0}).fit(TEXTS, LABELS)
    assert trained_by_then == [3, 3]


def counting(sizes):
    """`LayerLanes.epoch` that also notes how many lanes there are."""
    epoch = LayerLanes.epoch

    def counted(lanes):
        sizes.append(len(lanes.models))
        epoch(lanes)

    return counted


def test_lanes_that_do_not_fit_in_memory_run_in_smaller_groups(backbones, monkeypatch):
    sizes = []
    counted = counting(sizes)

    def limited(lanes):
        if len(lanes.models) > 2:
            raise torch.OutOfMemoryError("too many")
        counted(lanes)

    monkeypatch.setattr(LayerLanes, "epoch", limited)
    found = search(model(backbones, False, frozen=2), n_trials=9, n_lanes=8).fit(TEXTS, LABELS)
    assert set(found.cv_results_["state"]) == {"COMPLETE"}
    assert sizes == [2] * 16 + [1] * 4


def test_a_lane_is_a_fitted_estimator_to_a_scorer(backbones, tmp_path):
    frozen = model(backbones, False, frozen=2)

    def saved(one, texts, labels):
        one.save_pretrained(tmp_path / "one")
        assert [epoch["epoch"] for epoch in one.history_] == list(range(1, one.n_iter_ + 1))
        assert one.n_iter_ == 2, "in mid-fit"
        again = type(one).from_pretrained(tmp_path / "one")
        return one.history_[-1]["train_loss"] + spam_probability(again, texts, labels)

    how = dict(n_trials=3, scoring=saved, error_score=-5.0)
    found = search(frozen, **how, pruner="median").fit(TEXTS, LABELS)
    full = search(frozen, **how, strategy="full").fit(TEXTS, LABELS)
    for name in ("split0_test_score", "mean_test_score"):
        np.testing.assert_allclose(found.cv_results_[name], full.cv_results_[name], atol=1e-5)
    # A scorer that fails in mid-fit says nothing to the pruner.
    assert all(list(t.intermediate_values) == [9_999] for t in found.study_.trials)


def test_auto_looks_whether_lanes_rank_as_fits_do(backbones, monkeypatch):
    estimator = model(backbones, False)
    how = dict(strategy="auto", n_trials=16, n_lanes=8)
    found = search(estimator, **how).fit(TEXTS, LABELS)
    results = found.cv_results_
    probed = results["state"] == "COMPLETE"
    assert found.strategy_ == ("shared" if found.agreement_ >= 0.7 else "full")
    assert probed.sum() >= 6
    from skdice.model_selection import screening

    monkeypatch.setattr(screening, "agreement", lambda *pairs: 0.1)
    with pytest.warns(match="lanes with 1 trained layer rank these losses otherwise"):
        found = search(estimator, **how).fit(TEXTS, LABELS)
    assert found.strategy_ == "full"
    assert set(found.cv_results_["state"]) == {"COMPLETE"}
    # An exact lane needs no such look.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for n_trials in (3, 16):
            exact = clone(estimator).set_params(frozen=2)
            exact = search(exact, strategy="auto", n_trials=n_trials).fit(TEXTS, LABELS)
            assert exact.strategy_ == "shared"
            assert not hasattr(exact, "agreement_")
    few = search(clone(estimator).set_params(frozen=1), strategy="auto", n_trials=3)
    assert few.fit(TEXTS, LABELS).strategy_ == "full"


def test_what_cannot_be_lanes_is_refused_before_any_work(backbones):
    cases = [
        (model(backbones, False, "xlnet"), {}, "dropout below is not frozen in XLNetModel"),
        (model(backbones, False, "deberta-v2"), {}, "weights below are not frozen in Deberta"),
        (model(backbones, False, "convbert"), {}, "depend on what else is in a batch in ConvBert"),
        (model(backbones, False, "xlm"), {}, "layers of XLMModel cannot run side by side"),
        (model(backbones, False), {"lane_layers": 3}, "leaves no layer of the backbone's 3"),
        (model(backbones, False, early_stopping=True), {}, "early_stopping=True"),
        (model(backbones, False), {"space": {"max_epochs": [1, 2]}}, "'max_epochs' is searched"),
        (DiceClassifier(), {"space": {"loss": ["ce"]}}, "DiceClassifier has no layers below"),
    ]
    before = torch.get_rng_state()
    for estimator, params, message in cases:
        rows = (np.eye(16), LABELS) if isinstance(estimator, DiceClassifier) else (TEXTS, LABELS)
        with pytest.raises(ValueError, match=r"lane_layers=. is not possible: ") as raised:
            search(estimator, scoring="accuracy", **params).fit(*rows)
        assert message in str(raised.value)
    assert torch.equal(before, torch.get_rng_state())


def test_a_study_of_lanes_is_no_study_of_heads(backbones, tmp_path):
    estimator = model(backbones, False)
    how = dict(storage=str(tmp_path / "study.log"), study_name="spam", n_trials=2)
    search(estimator, scoring=spam_f1, **how).fit(TEXTS, LABELS)
    for others in (0, 2):
        with pytest.raises(ValueError, match="another estimator"):
            search(estimator, scoring=spam_f1, lane_layers=others, **how).fit(TEXTS, LABELS)
    again = search(estimator, scoring=spam_f1, **how).fit(TEXTS, LABELS)
    assert len(again.cv_results_["params"]) == 2


def test_lanes_are_copied_with_what_they_share(backbones):
    top = TopLayers(model(backbones, False), 1, TEXTS)
    assert copy.deepcopy(top.lower) is top.lower
