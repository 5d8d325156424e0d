"""Tags that a fitted tagger has not seen: its head grows."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import torch
from transformers import AutoModelForTokenClassification

from skdice import BiasTunedTagger, DiceTokenClassifier
from skdice.engine.fit_plan import encode
from skdice.losses import DiceLoss
from skdice.tasks.tagging import Tagging
from tests.fits import Tells, killed_at

NEW_X = [["acme", "was", "near", "rome"], ["the", "prize", "of", "globex"], ["rain"]] * 2
NEW_Y = [["B-FIRM", "O", "O", "B-LOC"], ["O", "B-PRIZE", "O", "B-FIRM"], ["O"]] * 2
NOTHING = 1e-30  # a rate that moves no weight


@pytest.fixture(params=["bert", "own head"])
def kind(request, monkeypatch):
    if request.param == "own head":
        monkeypatch.setattr(Tagging, "uses_native_head", lambda self, model: False)
    return request.param


@pytest.fixture
def tagger(tiny_backbone, sentences):
    return DiceTokenClassifier(
        backbone=tiny_backbone, max_epochs=8, lr=1e-2, batch_size=8, dropout=0.0, random_state=0
    )


def logits(tagger, X):
    return np.concatenate(tagger.net_.logits(encode(tagger, X)))


def head(tagger):
    return tagger.module_.output_layer


@pytest.mark.parametrize("how", ["partial_fit", "warm_start"])
def test_the_head_grows_and_keeps_what_it_knew(tagger, sentences, kind, how, tmp_path):
    X, y = sentences
    tagger.fit(X, y)
    old, before, seen = tagger.classes_.tolist(), logits(tagger, X), tagger.class_counts_
    predicted, bias = tagger.predict(X).tolist(), head(tagger).bias.detach().numpy().copy()
    tagger.set_params(lr=NOTHING)
    if how == "partial_fit":
        tagger.partial_fit(NEW_X, NEW_Y)
        counts = seen
    else:
        tagger.set_params(warm_start=True, max_epochs=1).fit(NEW_X, NEW_Y)
        counts = [2 * sum(row.count(tag) for row in NEW_Y[:3]) for tag in old]
    assert tagger.classes_.tolist() == [*old, "B-FIRM", "B-PRIZE"]  # new ones come last
    after = logits(tagger, X)
    np.testing.assert_array_equal(after[:, : len(old)], before)
    # At the zero vector a new tag is as likely as its share, with one example more of each tag.
    start = head(tagger).bias.detach().numpy()
    share = np.exp(start) / np.exp(start).sum()
    old_total = sum(counts) + len(old) + (12 if how == "partial_fit" else 0)
    np.testing.assert_allclose(share[-2:] * (old_total + 8) / [5, 3], 1, rtol=1e-5)
    np.testing.assert_array_equal(start[:-2], bias)
    assert tagger.predict(X).tolist() == predicted  # no new tag at once
    assert head(tagger).weight[len(old) :].std().item() == pytest.approx(0.02, rel=0.5)
    assert head(tagger).out_features == len(tagger.classes_)
    # Files, pickles, and models of transformers.
    tagger.save_pretrained(tmp_path / "m")
    for again in (
        DiceTokenClassifier.from_pretrained(tmp_path / "m"),
        pickle.loads(pickle.dumps(tagger)),
    ):
        assert again.classes_.tolist() == tagger.classes_.tolist()
        np.testing.assert_array_equal(logits(again, X), after)
    if kind == "bert":
        model = AutoModelForTokenClassification.from_pretrained(tmp_path / "m")
        assert list(model.config.id2label.values()) == tagger.classes_.tolist()
        assert model.num_labels == model.classifier.out_features == len(tagger.classes_)


@pytest.mark.parametrize("loss", ["ce_dice", "weighted_ce", DiceLoss(ema_decay=0.5)], ids=str)
def test_new_types_are_learnt(tagger, sentences, loss):
    X, y = sentences
    tagger.set_params(loss=loss).fit(X, y)
    for _ in range(15):
        tagger.partial_fit([*X, *NEW_X], [*y, *NEW_Y])
    assert tagger.score([*X, *NEW_X], [*y, *NEW_Y]) > 0.8
    assert "B-FIRM" in {tag for row in tagger.predict(NEW_X) for tag in row}
    n = sum(map(len, y))
    assert tagger.n_samples_seen_ == 16 * n + 15 * sum(map(len, NEW_Y))
    assert tagger.class_counts_[tagger.classes_.tolist().index("B-FIRM")] == 15 * 4


@pytest.mark.parametrize(
    "optimizer",
    [torch.optim.AdamW, torch.optim.SGD, torch.optim.Adafactor],
    ids=lambda o: o.__name__,
)
def test_the_optimiser_keeps_its_averages(tagger, sentences, optimizer):
    X, y = sentences
    momentum = {"optimizer__momentum": 0.9} if optimizer is torch.optim.SGD else {}
    tagger.set_params(lr=1e-3, net_params={"optimizer": optimizer, **momentum})
    tagger.fit(X, y).partial_fit(X, y)
    net = tagger.net_.copy_sharing_weights()
    before = [copy.deepcopy(net.optimizer_.state[p]) for p in net.module_.parameters()]
    net.grow([0.1, 0.2])
    n_grown = 0
    for old, p in zip(before, net.module_.parameters(), strict=True):
        new = net.optimizer_.state[p]
        is_matrix = p.ndim == 2 and len(p) == len(tagger.classes_) + 2
        if optimizer is torch.optim.Adafactor and is_matrix:
            assert new == {}  # it keeps rows and columns apart, and starts anew
            continue
        assert new.keys() == old.keys() > set()
        for name, value in old.items():
            grown = new[name]
            if getattr(value, "ndim", 0) and len(grown) > len(value):
                assert grown.shape == p.shape
                assert not grown[len(value) :].any()
                grown, n_grown = grown[: len(value)], n_grown + 1
            assert torch.equal(torch.as_tensor(grown), torch.as_tensor(value))
    assert n_grown == {"AdamW": 4, "SGD": 2, "Adafactor": 1}[optimizer.__name__]
    assert {g["lr"] for g in net.optimizer_.param_groups} == {1e-3}
    tagger.partial_fit(NEW_X, NEW_Y).partial_fit(X, y)


def test_a_growth_that_fails_changes_nothing(tagger, sentences):
    X, y = sentences
    armed = False

    def fail(net, loss):
        if armed:
            raise MemoryError

    tagger.set_params(callbacks=[Tells(after=fail)]).fit(X, y).partial_fit(X, y)
    classes, before, seen = (
        tagger.classes_.tolist(),
        logits(tagger, X),
        tagger.class_counts_.tolist(),
    )
    armed = True
    with pytest.raises(MemoryError):
        tagger.partial_fit(NEW_X, NEW_Y)
    armed = False
    assert (tagger.classes_.tolist(), tagger.class_counts_.tolist()) == (classes, seen)
    np.testing.assert_array_equal(logits(tagger, X), before)
    tagger.partial_fit(X, y).partial_fit(NEW_X, NEW_Y)
    assert tagger.classes_.tolist()[len(classes) :] == ["B-FIRM", "B-PRIZE"]


def test_a_grown_fit_that_was_killed_goes_on(tagger, sentences, tmp_path):
    X, y = sentences
    tagger.set_params(max_epochs=2).fit(X, y).set_params(warm_start=True)
    twin = pickle.loads(pickle.dumps(tagger)).fit([*X, *NEW_X], [*y, *NEW_Y])
    tagger.set_params(checkpoint_dir=tmp_path, checkpoint_every=1)
    with killed_at(3):
        tagger.fit([*X, *NEW_X], [*y, *NEW_Y])
    tagger.fit([*X, *NEW_X], [*y, *NEW_Y])
    np.testing.assert_array_equal(logits(tagger, X), logits(twin, X))


def test_classes_named_later_grow_the_head_too(tagger, sentences):
    X, y = sentences
    tagger.set_params(max_epochs=1).partial_fit(
        X, y, classes=["O", "B-PER", "I-PER", "B-LOC", "B-ORG"]
    )
    classes = tagger.classes_.tolist()
    assert tagger.partial_fit(X, y, classes=classes).classes_.tolist() == classes
    tagger.partial_fit(X, y, classes=["O", "B-AGE", "I-LOC"])
    assert tagger.classes_.tolist() == [*classes, "B-AGE", "I-LOC"]
    assert tagger.class_counts_[-2:].tolist() == [0, 0]
    assert set(chain_of(tagger.predict(X))) <= set(classes)


def chain_of(rows):
    return [tag for row in rows for tag in row]


def test_tags_that_do_not_fit_are_refused(tagger, sentences):
    X, y = sentences
    tagger.set_params(max_epochs=1).fit(X, y)
    before = tagger.classes_.tolist()
    for tag, message in [
        ("S-FIRM", "'S-FIRM'.*in scheme 'iob2'.*convert_scheme"),
        ("firm", r"y\[0\]\[0\] is 'firm', which is neither"),
    ]:
        with pytest.raises(ValueError, match=message):
            tagger.partial_fit(NEW_X[:1], [[tag, "O", "O", "O"]])
    with pytest.raises(ValueError, match="'S-FIRM'"):
        tagger.partial_fit(X, y, classes=["S-FIRM"])
    with pytest.raises(TypeError, match=r"classes\[1\] is None"):
        tagger.partial_fit(X, y, classes=["O", None])
    assert tagger.classes_.tolist() == before


def test_a_decision_tuned_before_the_growth_is_tuned_again(tagger, sentences, tmp_path):
    X, y = sentences
    tagger.set_params(max_epochs=1).fit(X, y)
    tuned = BiasTunedTagger(tagger, cv="prefit").fit(X, y)
    tagger.partial_fit(NEW_X, NEW_Y)
    for use in (tuned.predict, lambda X: tuned.save_pretrained(tmp_path / "m")):
        with pytest.raises(ValueError, match=r"B-FIRM.*fit the BiasTunedTagger again"):
            use(X)
    assert len(tuned.fit(X, y).bias_) == len(tagger.classes_)


def test_a_model_of_others_takes_new_types(tagger, sentences, tmp_path):
    X, y = sentences
    tagger.set_params(max_epochs=1).fit(X, y).save_pretrained(tmp_path / "m")
    wrapped = DiceTokenClassifier.from_transformers(tmp_path / "m", lr=NOTHING)
    before = logits(wrapped, X)
    wrapped.partial_fit(NEW_X, NEW_Y)
    np.testing.assert_array_equal(logits(wrapped, X)[:, : before.shape[1]], before)
    assert wrapped.classes_.tolist()[-2:] == ["B-FIRM", "B-PRIZE"]


def test_a_tagger_with_an_adapter_grows(tagger, sentences, tmp_path, kind):
    pytest.importorskip("peft")
    X, y = sentences
    tagger.set_params(adapter="lora", max_epochs=1).fit(X, y).partial_fit(NEW_X, NEW_Y)
    found = logits(tagger, NEW_X)
    assert found.shape[1] == len(tagger.classes_)
    tagger.save_pretrained(tmp_path / "m")
    again = DiceTokenClassifier.from_pretrained(tmp_path / "m")
    np.testing.assert_allclose(logits(again, NEW_X), found, atol=1e-6)
    np.testing.assert_allclose(logits(again.merge_adapter(), NEW_X), found, atol=1e-5)
