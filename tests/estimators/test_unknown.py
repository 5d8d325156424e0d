"""Tags of None: tokens that nobody annotated."""

from __future__ import annotations

from itertools import chain

import numpy as np
import pytest
import torch
from sklearn.base import BaseEstimator, clone

from skdice import BiasTunedTagger, DiceMRCTagger, DiceTokenClassifier
from skdice.engine import ranks
from skdice.engine.fit_plan import fresh_loss, plan_fit
from skdice.engine.layouts.layout import Padded, Padding
from skdice.inspection import html_report, imbalance, show_tags, span_errors
from skdice.losses import LOSSES
from skdice.model_selection import LossSearchCV, compare_losses
from skdice.resampling import BackgroundUnderSampler, EntityReplacement, TagOverSampler
from tests.fits import before_training


@pytest.fixture
def partly(sentences):
    """The sentences of the fixture with every third tag, and the whole second sentence, unknown."""
    X, y = sentences
    tags = [[None if (i + j) % 3 == 0 else t for j, t in enumerate(row)] for i, row in enumerate(y)]
    tags[1] = [None] * len(tags[1])
    return X, tags


@pytest.fixture
def tagger(tiny_backbone):
    return DiceTokenClassifier(
        backbone=tiny_backbone, max_epochs=2, lr=1e-3, batch_size=4, dropout=0.0, random_state=0
    )


def annotated(tags):
    return [tag for row in tags for tag in row if tag is not None]


@pytest.mark.parametrize("loss", list(LOSSES))
def test_the_loss_is_that_of_the_annotated_tokens_alone(tagger, partly, loss):
    X, y = partly
    tagger.set_params(loss=loss)
    net, dataset = before_training(tagger, X, y)
    tags = np.array([t for row in y for t in row], dtype=object)
    known = np.array([tag is not None for tag in tags])
    sentence = np.repeat(np.arange(len(y)), [len(row) for row in y])
    classes = sorted(set(tags[known]))
    one_group = Padded(padding=Padding(0), unit=10**9)
    update = dataset.update(one_group, np.arange(len(dataset)), len(dataset))
    order = np.concatenate([np.flatnonzero(sentence == i) for i in update.parts[0].order])
    tags, known = tags[order], known[order]
    logits = torch.randn(len(tags), len(classes), requires_grad=True)
    value = net.get_loss(logits, update.target, update)
    (slope,) = torch.autograd.grad(value, logits)
    index = {tag: i for i, tag in enumerate(classes)}
    right = torch.tensor([index[tag] for tag in tags[known]])
    counts = np.bincount(right.numpy(), minlength=len(index))
    alone = fresh_loss(loss).prepare(counts, background=index["O"])
    torch.testing.assert_close(value, alone(logits[torch.from_numpy(known)], right))
    assert not slope[torch.from_numpy(~known)].any()
    assert net.criterion_.class_counts_.tolist() == counts.tolist()
    # A batch in which nothing is known moves nothing.
    nothing = net.get_loss(logits, update.target, ranks.weightless(update))
    assert not torch.autograd.grad(nothing, logits)[0].any()


@pytest.mark.parametrize("params", [{}, {"gradient_accumulation": 2}], ids=str)
def test_a_sentence_of_weight_0_is_left_out(tagger, sentences, params):
    X, y = sentences
    X, y = [*X, ["zz9", "anna", "zz9", "met", "dan"]], [*y, ["B-PER", "I-PER", "O", "O", "B-PER"]]
    weights = np.ones(len(X))
    weights[[1, len(X) - 1]] = 0
    left = [[row for row, w in zip(rows, weights, strict=True) if w] for rows in (X, y)]
    tagger.set_params(**params)
    one, other = clone(tagger).fit(*left), clone(tagger).fit(X, y, sample_weight=weights)
    assert [e["train_loss"] for e in one.history_] == [e["train_loss"] for e in other.history_]
    for a, b in zip(one.predict_proba(X), other.predict_proba(X), strict=True):
        np.testing.assert_array_equal(a, b)
    assert (
        one.partial_fit(*left).history_[-1]["train_loss"]
        == (other.partial_fit(X, y, sample_weight=weights).history_[-1]["train_loss"])
    )
    assert one.class_counts_.tolist() == other.class_counts_.tolist()
    assert one.n_samples_seen_ == other.n_samples_seen_


def test_weights_of_sentences_count_beside_unknown_tags(tagger, partly):
    X, y = partly
    twice = plan_fit(tagger, [*X, *X], [*y, *y], mode="fresh")
    weighted = plan_fit(tagger, X, y, np.full(len(X), 2.0), mode="fresh")
    counts = [plan.criterion.class_counts_.tolist() for plan in (twice, weighted)]
    assert counts[0] == counts[1]


def test_many_classes_beside_unknown_tags(tagger):
    names = [f"T{i}" for i in range(150)]
    X, y = [["rain"] * 151] * 2, [[*names, None]] * 2
    tagger.set_params(max_epochs=1).fit(X, y)
    assert tagger.class_counts_.tolist() == [2] * 150
    assert tagger.n_samples_seen_ == 300


def test_scores_pass_over_unknown_tokens(tagger, partly, sentences):
    X, y = sentences
    tagger.set_params(max_epochs=15, lr=1e-2).fit(X, y)
    predicted = tagger.predict(X)
    wrong = [
        [None if t != p else t for t, p in zip(*rows, strict=True)]
        for rows in zip(y, predicted, strict=True)
    ]
    assert tagger.score(X, wrong) == tagger.evaluate(X, wrong)["f1"] == 1
    assert tagger.score(X, [[None] * len(row) for row in y]) == 0
    page = html_report(tagger, X, wrong)
    assert "None: all rows are right." in page
    tagger.set_params(max_epochs=1).fit(X, y, X_val=X, y_val=partly[1])
    assert tagger.history_[-1]["valid_score"] == tagger.score(X, partly[1])


def test_what_is_only_unknown_is_refused(tagger, sentences):
    X, y = sentences
    with pytest.raises(ValueError, match="y holds no tag at all"):
        tagger.fit(X, [[None] * len(row) for row in y])
    with pytest.raises(ValueError, match="one class only"):
        tagger.fit(X, [["O", *[None] * (len(row) - 1)] for row in y])
    with pytest.warns(UserWarning, match="hold no entity"):
        tagger.fit(X, y, X_val=X[:1], y_val=[[None] * len(X[0])])


@pytest.mark.parametrize("tag", [float("nan"), -100, "\x00"], ids=repr)
def test_only_none_is_unknown(tagger, sentences, tag):
    X, y = sentences
    with pytest.raises((TypeError, ValueError), match=r"y\[0\]\[0\] is"):
        tagger.fit(X, [[tag, *y[0][1:]], *y[1:]])


def test_a_reader_of_entities_refuses_unknown_tags(tiny_backbone, sentences):
    X, y = sentences
    reader = DiceMRCTagger(backbone=tiny_backbone)
    with pytest.raises(TypeError, match=r"y\[0\]\[1\] is None"):
        reader.fit(X, [[y[0][0], None, *y[0][2:]], *y[1:]])


def test_samplers_do_not_count_unknown_tokens():
    X = [["ann", "sings"], ["in", "rome"], ["it", "rains"], ["oslo", "sleeps"]]
    y = [["B-PER", None], [None, "B-LOC"], ["O", None], [None, None]]
    kept = BackgroundUnderSampler().fit_resample(X, y)[1]
    assert kept == y[:2]
    sampler = TagOverSampler(sampling_strategy=4.0, random_state=0)
    positive = [tag for row in sampler.fit_resample(X, y)[1] for tag in row]
    assert positive.count("O") * 4 <= len(annotated([positive])) - positive.count("O")
    assert len(sampler.sample_indices_) == 6  # 2 positives to 1 negative: two more are needed
    counts = TagOverSampler(sampling_strategy={"PER": 3, "LOC": 1}, random_state=0)
    assert annotated(counts.fit_resample(X, y)[1]).count("B-PER") == 3


def test_swapped_sentences_keep_unknown_tokens():
    X = [["ann", "lee", "met", "bob", "today", "."], ["rome", "x"]]
    y = [["B-PER", "I-PER", None, "B-PER", "O", None], ["B-LOC", None]]
    swap = EntityReplacement(
        gazetteer={"PER": ["carla de la cruz"], "LOC": ["oslo"]},
        sampling_strategy={"PER": 4, "LOC": 1},
        random_state=0,
    )
    X_more, y_more = swap.fit_resample(X, y)
    assert X_more[2] == ["carla", "de", "la", "cruz", "met", "carla", "de", "la", "cruz", *X[0][4:]]
    person = ["B-PER", "I-PER", "I-PER", "I-PER"]
    assert y_more[2] == [*person, None, *person, "O", None]


def test_sampler_of_a_fit_takes_unknown_tags(tagger, partly):
    X, y = partly
    tagger.set_params(sampler=TagOverSampler(sampling_strategy=1.0)).fit(X, y)
    assert set(tagger.classes_) == set(annotated(y))


def test_a_tuned_decision_looks_at_annotated_tokens_only(tagger, sentences):
    X, y = sentences
    tagger.fit(X, y)
    some = [[t if j % 2 else None for j, t in enumerate(row)] for row in y]
    tuned = BiasTunedTagger(tagger, cv="prefit", n_bootstraps=0).fit(X, some)
    # The unknown tokens as sentences of their own, which are left out, give the same biases.
    proba = np.concatenate([p[1::2] for p in tagger.predict_proba(X)])

    class Known(BaseEstimator):
        classes_, scheme_ = tagger.classes_, tagger.scheme_

        def fit(self, X, y):
            return self

        def __sklearn_is_fitted__(self):
            return True

        def predict_proba(self, X):
            return np.split(proba, np.cumsum([len(row) for row in X])[:-1])

    pieces = [[[tag] for tag in row[1::2]] for row in y]
    words = [[[word] for word in row[1::2]] for row in X]
    alone = BiasTunedTagger(Known(), cv="prefit", n_bootstraps=0)
    alone.fit(list(chain(*words)), list(chain(*pieces)))
    expected = alone.score(list(chain(*words)), list(chain(*pieces)))
    assert tuned.score(X, some) == pytest.approx(expected)
    BiasTunedTagger(tagger, cv=0.5, random_state=0).fit(X, some)


def test_comparisons_and_searches_take_unknown_tags(tagger, partly):
    X, y = partly
    rows = compare_losses(
        tagger, X, y, X_test=X, y_test=y, losses=["weighted_ce", "ce_dice + tuned"], seeds=1
    ).rows
    assert all(0 <= row.runs[0]["f1"] <= 1 for row in rows)
    for strategy in ("full", "shared"):
        search = LossSearchCV(
            tagger, {"loss": ["ce", "dice"]}, n_trials=2, cv=2, strategy=strategy, random_state=0
        ).fit(X, y)
        assert search.strategy_ == strategy
        assert 0 <= search.best_score_ <= 1


def test_heads_do_not_train_on_unknown_words(tagger, partly):
    from skdice.model_selection.heads.data import HeadData

    X, y = partly
    fold = np.arange(len(X))
    data = HeadData(tagger, X, y)
    vectors, known = data.X, np.array([tag is not None for row in y for tag in row])
    heads = data.fit([tagger], [fold])[0]
    data.X = np.where(known[:, None], vectors, 7.0).astype(vectors.dtype)
    torch.testing.assert_close(data.fit([tagger], [fold])[0].weight, heads.weight, rtol=0, atol=0)
    assert heads.classes.tolist() == sorted(set(annotated(y)))


def test_inspection_of_unknown_tags():
    assert imbalance([["O", None, "B-PER"], [None]]).counts == {"B-PER": 1, "O": 1}
    with pytest.raises(ValueError, match="not annotated"):
        imbalance([[None], []])
    with pytest.raises(ValueError, match=r"y\[1\] is missing"):
        imbalance(["ham", None])
    true, pred = [[None, "B-PER", None]], [["B-LOC", "B-PER", "I-PER"]]
    assert len(span_errors(true, pred)) == 0
    assert str(show_tags(["in", "rome"], [None, "B-LOC"])) == "in [rome LOC]"
