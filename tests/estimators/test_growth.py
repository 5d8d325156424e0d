"""Tags that a fitted tagger has not seen: its head grows."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import torch
from sklearn.metrics import get_scorer
from transformers import AutoModelForSequenceClassification, AutoModelForTokenClassification

from skdice import (
    BiasTunedClassifier,
    BiasTunedTagger,
    DiceSequenceClassifier,
    DiceTokenClassifier,
)
from skdice.engine.fit_plan import encode, plan_fit
from skdice.losses import DiceLoss
from skdice.tasks.tagging import Tagging
from tests.data import KINDS_OF_MESSAGES, MESSAGES
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


def places(model, names):
    return [model.classes_.tolist().index(name) for name in names]


def head(tagger):
    return tagger.module_.output_layer


@pytest.mark.parametrize("how", ["partial_fit", "warm_start"])
def test_the_head_grows_and_keeps_what_it_knew(tagger, sentences, kind, how, tmp_path):
    X, y = sentences
    tagger.fit(X, y)
    old, before, seen = tagger.classes_.tolist(), logits(tagger, X), tagger.class_counts_
    predicted, bias = tagger.predict(X).tolist(), head(tagger).bias.detach().numpy().copy()
    weight = head(tagger).weight.detach().clone()
    tagger.set_params(lr=NOTHING)
    if how == "partial_fit":
        tagger.partial_fit(NEW_X, NEW_Y)
        counts = seen
    else:
        tagger.set_params(warm_start=True, max_epochs=1).fit(NEW_X, NEW_Y)
        counts = [2 * sum(row.count(tag) for row in NEW_Y[:3]) for tag in old]
    assert tagger.classes_.tolist() == sorted([*old, "B-FIRM", "B-PRIZE"])
    kept, new = places(tagger, old), places(tagger, ["B-FIRM", "B-PRIZE"])
    after = logits(tagger, X)
    assert torch.equal(head(tagger).weight[kept], weight)
    np.testing.assert_allclose(after[:, kept], before, atol=1e-6)  # a column's place rounds it
    # At the zero vector a new tag is as likely as its share, with one example more of each tag.
    start = head(tagger).bias.detach().numpy()
    share = np.exp(start) / np.exp(start).sum()
    old_total = sum(counts) + len(old) + (12 if how == "partial_fit" else 0)
    np.testing.assert_allclose(share[new] * (old_total + 8) / [5, 3], 1, rtol=1e-5)
    np.testing.assert_array_equal(start[kept], bias)
    assert tagger.predict(X).tolist() == predicted  # no new tag at once
    assert head(tagger).weight[new].std().item() == pytest.approx(0.02, rel=0.5)
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
    net = tagger.net_.copied()
    before = [copy.deepcopy(net.optimizer_.state[p]) for p in net.module_.parameters()]
    order = np.roll(np.arange(len(tagger.classes_) + 2), 1)  # the last of the new ones comes first
    net.grow([0.1, 0.2], order)
    anew = 0
    for old, p in zip(before, net.module_.parameters(), strict=True):
        if p not in net.optimizer_.state:  # the layer that has grown
            anew += 1
            continue
        new = net.optimizer_.state[p]
        assert new.keys() == old.keys() > set()
        assert all(torch.equal(*map(torch.as_tensor, (new[k], old[k]))) for k in old)
    assert anew == 2
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
    assert tagger.classes_.tolist() == sorted([*classes, "B-FIRM", "B-PRIZE"])


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
    assert tagger.classes_.tolist() == sorted([*classes, "B-AGE", "I-LOC"])
    assert tagger.class_counts_[places(tagger, ["B-AGE", "I-LOC"])].tolist() == [0, 0]
    assert set(chain_of(tagger.predict(X))) <= set(classes)


def chain_of(rows):
    return [tag for row in rows for tag in row]


def test_tags_that_do_not_fit_are_refused(tagger, sentences):
    X, y = sentences
    tagger.set_params(max_epochs=1).fit(X, y)
    before = tagger.classes_.tolist()
    for tag, message in [
        ("S-FIRM", "'S-FIRM'.*in scheme 'iob2'.*convert_scheme"),
        ("firm", r"y\[0\]\[0\] is 'firm', which is in no scheme"),
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
    before, old = logits(wrapped, X), wrapped.classes_.tolist()
    wrapped.partial_fit(NEW_X, NEW_Y)
    found = logits(wrapped, X)[:, places(wrapped, old)]
    np.testing.assert_allclose(found, before, atol=1e-6)
    assert wrapped.classes_.tolist() == sorted([*old, "B-FIRM", "B-PRIZE"])


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


# ---- texts


NEW_TEXTS, NEW_KINDS = ["road near the river", "old bank", "win free money"] * 2, list("bas" * 2)


@pytest.fixture(params=["mean", "native"])
def classifier(request, tiny_backbone):
    return DiceSequenceClassifier(
        backbone=tiny_backbone, pooling=request.param, max_epochs=4, lr=1e-2, dropout=0.0,
        batch_size=8, random_state=0,
    )  # fmt: skip


def of_texts(model, X):
    return np.stack(model.net_.logits(encode(model, X)))


@pytest.mark.parametrize("how", ["partial_fit", "warm_start"])
def test_a_classifier_grows_as_a_tagger_does(classifier, how, tmp_path):
    X, y = MESSAGES, KINDS_OF_MESSAGES
    new_y = ["bill" if kind == "b" else "spam" if kind == "s" else "alarm" for kind in NEW_KINDS]
    classifier.fit(X, y)
    before, old = of_texts(classifier, X), head(classifier).bias.detach().numpy().copy()
    classifier.set_params(lr=NOTHING)
    if how == "partial_fit":
        classifier.partial_fit(NEW_TEXTS, new_y)
        counts = [2, 2, 10, 8]
    else:
        classifier.set_params(warm_start=True, max_epochs=1).fit(NEW_TEXTS, new_y)
        counts = [2, 2, 0, 2]
    assert classifier.classes_.tolist() == ["alarm", "bill", "ham", "spam"]
    assert classifier.class_counts_.tolist() == counts
    assert not hasattr(classifier, "positive_")
    after = of_texts(classifier, X)
    np.testing.assert_allclose(after[:, 2:], before, atol=1e-6)
    # At the zero vector a new label is as likely as its share, with one example more of each.
    bias = head(classifier).bias.detach().numpy()
    np.testing.assert_array_equal(bias[2:], old)
    odds = np.exp(bias[:2]) / np.exp(old).sum()
    np.testing.assert_allclose(odds, 3 / (sum(counts[2:]) + 2), rtol=1e-5)
    classifier.save_pretrained(tmp_path / "m")
    again = DiceSequenceClassifier.from_pretrained(tmp_path / "m")
    np.testing.assert_array_equal(of_texts(again, X), after)
    assert again.classes_.tolist() == classifier.classes_.tolist()
    if classifier.pooling == "native":
        model = AutoModelForSequenceClassification.from_pretrained(tmp_path / "m")
        assert list(model.config.id2label.values()) == classifier.classes_.tolist()


@pytest.mark.parametrize("loss", ["ce_dice", "weighted_ce", DiceLoss(ema_decay=0.5)], ids=str)
def test_new_labels_are_learnt_and_old_ones_scored(classifier, loss):
    X, y = MESSAGES, KINDS_OF_MESSAGES
    X_all, y_all = [*X, *NEW_TEXTS[:2] * 4], [*y, *["bill", "alarm"] * 4]
    classifier.set_params(loss=loss).fit(X, y)
    for _ in range(40):
        classifier.partial_fit(X_all, y_all)
    assert classifier.score(X_all, y_all) > 0.9
    assert classifier.predict(NEW_TEXTS[:2]).tolist() == ["bill", "alarm"]
    tuned = BiasTunedClassifier(classifier, cv="prefit").fit(X_all, y_all)
    assert tuned.score(X_all, y_all) > 0.9
    classifier.partial_fit(X[:2], ["alarm", "rain"])
    with pytest.raises(ValueError, match=r"rain.*fit the BiasTunedClassifier again"):
        tuned.predict_proba(X)


@pytest.mark.parametrize("scoring", ["roc_auc_ovr", "neg_log_loss"])
def test_scorers_of_probabilities_read_a_grown_head_rightly(classifier, scoring):
    X, y = MESSAGES, KINDS_OF_MESSAGES
    X_all, y_all = [*X, *NEW_TEXTS[:2] * 4], np.array([*y, *["bill", "alarm"] * 4])
    classifier.fit(X, y)
    for _ in range(20):
        classifier.partial_fit(X_all, y_all)
    table = classifier.predict_proba(X_all)
    own = table[np.arange(len(y_all)), places(classifier, y_all)]
    found = get_scorer(scoring)(classifier, X_all, y_all)
    if scoring == "neg_log_loss":
        assert found == pytest.approx(np.log(own).mean(), rel=1e-5)
    else:  # the share of pairs, of a label and of others, that are in order, by a naive loop
        shares = []
        for label, column in zip(classifier.classes_, table.T, strict=True):
            yes, no = column[y_all == label], column[y_all != label]
            shares.append(np.mean([(a > b) + 0.5 * (a == b) for a in yes for b in no]))
        assert found == pytest.approx(np.mean(shares))
        assert found > 0.95


def test_the_memory_of_a_loss_goes_with_its_classes(classifier):
    loss = DiceLoss(ema_decay=0.5, background=None)
    classifier.set_params(loss=loss, lr=NOTHING).fit(MESSAGES, KINDS_OF_MESSAGES)
    classifier.partial_fit(MESSAGES, KINDS_OF_MESSAGES)
    before = classifier.net_.criterion_.running_
    plan = plan_fit(classifier, NEW_TEXTS[:2], ["bill", "alarm"], mode="partial", epochs=1)
    running = plan.criterion.running_
    assert before.any()
    assert torch.equal(running[:, 2:], before)
    assert not running[:, :2].any()


def test_several_labels_a_text_are_named_at_first(classifier):
    classifier.set_params(max_epochs=1).fit(MESSAGES, [[kind] for kind in KINDS_OF_MESSAGES])
    with pytest.raises(ValueError, match=r"\['bill'\]. Name all in the first partial_fit"):
        classifier.partial_fit(["old bank"], [["bill"]])
