"""DiceMRCTagger: nested spans, tags, thresholds, and what is refused."""

from __future__ import annotations

import math
import pickle
from collections import Counter

import numpy as np
import pytest
import torch
from scipy.special import logit

from skdice import DiceMRCTagger
from skdice.engine.encoded import EncodedDataset
from skdice.losses import DiceLoss
from skdice.metrics import (
    span_f1_score,
)
from skdice.text.question_windows import candidate_pairs
from tests.estimators.readers import (
    NESTED,
    SENTENCES,
    TAGS,
    tagger,
)


def test_nested_entities_are_read_right(tiny_backbone):
    model = tagger(tiny_backbone, loss="dice", max_epochs=60, lr=1e-2, dropout=0.0)
    model.fit(SENTENCES, NESTED)
    found = [sorted(row) for row in model.predict(SENTENCES)]
    assert found == [sorted(row) for row in NESTED]
    assert (model.score(SENTENCES, NESTED), model.scheme_) == (1, None)


@pytest.mark.parametrize("kind", ["bert", "roberta", "deberta-v2", "modernbert", "xlnet"])
def test_tags_are_read_right_by_every_backbone(tiny_backbones, kind):
    settings = dict(max_epochs=45, lr=2e-2, dropout=0.0, answerable_weight=0.5)
    model = tagger(tiny_backbones[kind], loss="ce", **settings).fit(SENTENCES, TAGS)
    assert model.predict(SENTENCES).tolist() == TAGS
    assert model.score(SENTENCES, TAGS) == span_f1_score(TAGS, model.predict(SENTENCES)) == 1
    windows = model.task.encode(model, SENTENCES)
    together = model.net_.logits(EncodedDataset(windows))
    for window, expected in zip(windows, together, strict=True):
        alone = model.net_.logits(EncodedDataset([window]))[0]
        np.testing.assert_allclose(alone, expected, atol=1e-4)


def test_the_outputs_stand_where_they_belong(tiny_backbone):
    """Each output of a batch against the heads applied to hidden states one by one."""
    model = tagger(tiny_backbone, max_span_length=3).fit(SENTENCES, NESTED)
    module, windows = model.net_.module_, model.task.encode(model, SENTENCES)
    module.eval()
    for window, found in zip(windows, model.net_.logits(EncodedDataset(windows)), strict=True):
        with torch.no_grad():
            hidden = module.encoder(
                input_ids=torch.from_numpy(window.input_ids)[None],
                token_type_ids=torch.from_numpy(window.token_type_ids)[None],
            ).last_hidden_state[0]
            vectors = hidden[torch.from_numpy(window.positions)]
            starts = [module.head(v)[0].item() for v in vectors[1:]]
            ends = [module.head(v)[1].item() for v in vectors[1:]]
            match = []
            for i in range(window.n_words):
                for j in range(i, min(i + 3, window.n_words)):
                    u, v = module.first(vectors[i + 1]), module.last(vectors[j + 1])
                    match.append((u[:-1] @ v[:-1] / 8 + u[-1] + v[-1]).item())
            expected = [*starts, *ends, module.head(vectors[0])[2].item(), *match]
        np.testing.assert_allclose(found, expected, atol=1e-5)
    assert len(candidate_pairs(5, 3)) == 12


def test_flat_decoding_has_no_overlaps(tiny_backbone):
    model = tagger(tiny_backbone).fit(SENTENCES, TAGS)
    window = model.task.encode(model, SENTENCES[:1])[0]

    def spans_above(window, p, threshold):
        return model.task.row_outputs(model, [[(window, logit(p))]], threshold)[0]

    everything = spans_above(window, np.full(window.n_predictions, 0.9), 0.5)
    n = sum(min(model.max_span_length_, 5 - i) for i in range(5))
    assert len(everything) == n
    assert {span[0] for span, _, _ in everything} == {"LOC"}
    assert all(value == pytest.approx(0.9) for _, *values in everything for value in values)
    p = np.full(window.n_predictions, 0.9)
    p[0] = 0.4  # no span starts at the first word
    assert not any(span[1] == 0 for span, *_ in spans_above(window, p, 0.5))
    assert any(span[1] == 0 for span, *_ in spans_above(window, p, 0.3))


@pytest.mark.parametrize("y", [TAGS, NESTED])
def test_a_threshold_tuned_for_f1(tiny_backbone, y):
    """Against the score with each threshold."""
    model = tagger(tiny_backbone, loss="ce", max_epochs=8).fit(SENTENCES, y)
    before = model.score(SENTENCES, y)
    assert model.threshold_ == 0.5
    assert model.tune_threshold(SENTENCES, y) is model
    chosen, tuned, found = model.threshold_, model.score(SENTENCES, y), {}
    for log_odds in np.linspace(-4, 4, 33):
        model.threshold_ = 1 / (1 + math.exp(-log_odds))
        found[model.threshold_] = model.score(SENTENCES, y)
    assert tuned == max(found.values()) > before
    best = [threshold for threshold in found if found[threshold] == tuned]
    assert chosen == pytest.approx(min(best, key=lambda threshold: abs(threshold - 0.5)))
    again = model.set_params(threshold=chosen).fit(SENTENCES, y)
    assert again.threshold_ == chosen
    assert again.score(SENTENCES, y) == tuned
    with pytest.raises(ValueError, match="no entity at all"):
        model.tune_threshold(SENTENCES, [[] for _ in SENTENCES])


def test_targets_of_a_sentence_in_several_windows(tiny_backbone):
    long = [["the"] * 70 + ["bank", "of", "oslo"] + ["old"] * 30]
    spans = [[("ORG", 70, 73), ("LOC", 72, 73)]]
    model = tagger(tiny_backbone, max_span_length=4, stride=10)
    model.fit([*long, *SENTENCES], [*spans, *NESTED])
    windows = [w for w in model.task.encode(model, [*long, *SENTENCES]) if w.row == 0]
    assert len(windows) > 3
    found = Counter()
    for window in windows:
        target = model.task.target(model, window, spans[0])
        n = window.n_words
        for pair, value in zip(window.pairs, target[2 * n + 1 :, 0], strict=True):
            if value:
                found[window.words[pair[0]], window.words[pair[1]] + 1, window.query] += 1
                assert target[pair[0] - 1, 0] == target[n + pair[1] - 1, 0] == target[2 * n, 0] == 1
    labels = list(model.queries_)
    assert {(labels[q], int(a), int(b)) for a, b, q in found} == set(spans[0])


def test_queries(tiny_backbone):
    own = {"PER": "who", "LOC": "where", "ORG": "which team", "X": "more"}
    model = tagger(tiny_backbone, queries=own).fit(SENTENCES, NESTED)
    assert model.queries_ == dict(sorted(own.items()))
    with pytest.raises(ValueError, match="no question for the label 'ORG'"):
        tagger(tiny_backbone, queries={"PER": "who", "LOC": "where"}).fit(SENTENCES, NESTED)
    with pytest.raises(TypeError, match="dict from label"):
        tagger(tiny_backbone, queries={"PER": 3}).fit(SENTENCES, TAGS)
    with pytest.raises(ValueError, match="the query 'who who"):
        tagger(tiny_backbone, queries={**own, "PER": "who " * 70}).fit(SENTENCES, NESTED)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([*TAGS[:4], ["O"]], r"y\[4\] has 1 tag, but X\[4\] has 6"),
        ([[("PER", 3, 9)], [], [], [], []], r"y\[0\] holds \('PER', 3, 9\), outside the 5 tokens"),
        ([[("PER", 0)], [], [], [], []], r"y\[0\] holds \('PER', 0\): a span is"),
        ([["NOUN"] * len(s) for s in SENTENCES], "plain tags"),
        ([["O"] * len(s) for s in SENTENCES], "no entity at all"),
        (NESTED[:4], "5 sentences and y 4"),
    ],
)
def test_bad_entities_are_named(tiny_backbone, y, message):
    with pytest.raises((ValueError, TypeError), match=message):
        tagger(tiny_backbone).fit(SENTENCES, y)


def test_a_weight_that_would_overflow_is_refused():
    for value in (1e308, float("inf"), float("nan"), -1):
        with pytest.raises(ValueError, match="answerable_weight"):
            DiceMRCTagger(answerable_weight=value).fit(SENTENCES, NESTED)


def test_validation_entities_of_unknown_types_only_are_refused(tiny_backbone):
    foreign = [[("ZZZ", 0, 1)], *([] for _ in SENTENCES[1:])]
    with pytest.raises(ValueError, match=r"none of the types of y: it has \['ZZZ'\]"):
        tagger(tiny_backbone).fit(SENTENCES, NESTED, X_val=SENTENCES, y_val=foreign)
    more = [["B-ZZZ" if tag != "O" else tag for tag in row] for row in TAGS]
    with pytest.raises(ValueError, match=r"none of the types of y: it has \['ZZZ'\]"):
        tagger(tiny_backbone).fit(SENTENCES, TAGS, X_val=SENTENCES, y_val=more)


def test_the_loss_of_the_heads_and_a_threshold_in_files(tiny_backbone, tmp_path):
    X = SENTENCES * 2
    nested = tagger(tiny_backbone, loss=DiceLoss(smooth=0.5), early_stopping=True)
    nested.fit(X * 2, NESTED * 4).tune_threshold(X, NESTED * 2)
    read = DiceMRCTagger.from_pretrained(nested.save_pretrained(tmp_path / "m"))
    assert read.loss == DiceLoss(smooth=0.5)
    assert nested.threshold_ != nested.threshold
    for copy in (read, pickle.loads(pickle.dumps(nested))):
        assert copy.predict_spans(X).tolist() == nested.predict_spans(X).tolist()


def test_chinese(chinese_backbone):
    """Tags of single characters."""
    characters = [list("北京大学在北京"), list("上海大学")]
    tags = [["B-ORG", "I-ORG", "I-ORG", "I-ORG", "O", "B-LOC", "I-LOC"],
            ["B-ORG", "I-ORG", "I-ORG", "I-ORG"]]  # fmt: skip
    model = tagger(chinese_backbone, loss="ce", max_epochs=60, lr=2e-2, dropout=0.0)
    model.set_params(queries={"ORG": "大学", "LOC": "哪里"})
    assert model.fit(characters, tags).predict(characters).tolist() == tags
