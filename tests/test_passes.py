"""Speed, without a clock: how often an encoder runs, and how often a text is tokenised.

What is expected follows from the data. All rows are equally long and made of whole words, so that
a batch is padded with nothing: its subwords are the words, the question and the special tokens.
"""

from __future__ import annotations

from collections import Counter

import pytest
import transformers

from skdice import (
    DiceEntityRecognizer,
    DiceMRCTagger,
    DiceMultiSpanAnswerer,
    DiceQuestionAnswerer,
    DiceSequenceClassifier,
    DiceTokenClassifier,
    backbones,
)
from skdice.model_selection import compare_losses

NAMES = ["anna", "bob", "carla", "dan", "paris", "rome", "oslo", "acme", "globex"] * 2
PLACES = ["bank", "river", "market", "road", "school", "team"] * 3
TEXTS = [f"{a} saw the old {b} today" for a, b in zip(NAMES, PLACES, strict=True)]
WORDS, TRAIN, TEST, SIZE, EPOCHS = 6, 12, 6, 4, 2
SENTENCES = [text.split() for text in TEXTS]
FIRST = [len(row[0]) for row in SENTENCES]
QUESTIONS = [("is bob old", text) for text in TEXTS]
ANSWERS = [[(0, row[0])] for row in SENTENCES]
# The estimator, its rows, and the subwords of a row.
KINDS = {
    "classifier": (DiceSequenceClassifier, TEXTS, ["spam", "ham", "ham"] * 6, WORDS + 2),
    "tagger": (DiceTokenClassifier, SENTENCES, [["B-PER", *"OOOOO"]] * 18, WORDS + 2),
    "recognizer": (DiceEntityRecognizer, TEXTS, [[(0, n, "PER")] for n in FIRST], WORDS + 2),
    "reader": (DiceQuestionAnswerer, QUESTIONS, ANSWERS, WORDS + 3 + 3),
    "multi-span reader": (DiceMultiSpanAnswerer, QUESTIONS, ANSWERS, WORDS + 3 + 3),
    # The question of a type without one is "find every person", of which the vocabulary has no
    # word: [CLS], 15 letters, and [SEP] twice.
    "mrc tagger": (DiceMRCTagger, SENTENCES, [[("PER", 0, 1)]] * 18, WORDS + 15 + 3),
}


class Counted:
    """What happened since the last look: rows and subwords of passes, and texts."""

    def __init__(self) -> None:
        self.passes: list[tuple[bool, int]] = []
        self.texts: Counter[str] = Counter()

    def look(self) -> tuple[list[int], list[int], dict[str, int]]:
        """Subwords of each pass in training and in evaluation, and how often texts were read."""
        train, evaluate = ([n for mode, n in self.passes if mode is m] for m in (True, False))
        texts = {text: self.texts[text] for text in TEXTS if self.texts[text]}
        self.passes.clear()
        self.texts.clear()
        return train, evaluate, texts


@pytest.fixture
def counted(monkeypatch):
    found = Counted()
    forward, call = transformers.BertModel.forward, transformers.PreTrainedTokenizerFast.__call__

    def passes(encoder, *args, **kwargs):
        n = (args[0] if args else kwargs["input_ids"]).numel()
        if n > 3:  # three are no row, but what the head of an architecture is found by
            found.passes.append((encoder.training, n))
        return forward(encoder, *args, **kwargs)

    def reads(tokenizer, rows, *args, **kwargs):
        found.texts.update(row if isinstance(row, str) else " ".join(row) for row in rows)
        return call(tokenizer, rows, *args, **kwargs)

    monkeypatch.setattr(transformers.BertModel, "forward", passes)
    monkeypatch.setattr(transformers.PreTrainedTokenizerFast, "__call__", reads)
    return found


def unfitted(kind, backbone):
    options = {"max_epochs": EPOCHS, "batch_size": SIZE, "lr": 1e-3, "random_state": 0}
    return KINDS[kind][0](backbone=backbone, device="cpu", **options)


def updates_of(subwords, n_rows=TRAIN):
    """The subwords of the pass of each update; a fit makes no other."""
    return [SIZE * subwords] * (EPOCHS * n_rows // SIZE)


@pytest.mark.parametrize("kind", KINDS)
def test_a_fit_and_a_prediction_do_nothing_twice(kind, tiny_backbone, counted):
    _, X, y, subwords = KINDS[kind]
    updates = updates_of(subwords)
    model = unfitted(kind, tiny_backbone).fit(X[:TRAIN], y[:TRAIN])
    assert counted.look() == (updates, [], dict.fromkeys(TEXTS[:TRAIN], 1))
    once = ([], [TEST * subwords], dict.fromkeys(TEXTS[-TEST:], 1))
    model.predict(X[-TEST:])
    assert counted.look() == once
    for score in (model.score, model.evaluate):
        score(X[-TEST:], y[-TEST:])
        assert counted.look() == once, score.__name__


@pytest.mark.parametrize("kind", KINDS)
def test_a_fit_loads_its_tokenizer_once(kind, tiny_backbone, monkeypatch):
    _, X, y, _ = KINDS[kind]
    loaded, load = [], backbones.load_tokenizer
    monkeypatch.setattr(backbones, "load_tokenizer", lambda *a: loaded.append(a) or load(*a))
    held = {"X_val": X[-TEST:], "y_val": y[-TEST:]}
    model = unfitted(kind, tiny_backbone).fit(X[:TRAIN], y[:TRAIN], **held)
    assert len(loaded) == 1
    model.fit(X[:TRAIN], y[:TRAIN])  # of the backbone that is set now
    assert len(loaded) == 2


@pytest.mark.parametrize("kind", KINDS)
def test_validation_runs_once_an_epoch(kind, tiny_backbone, counted):
    _, X, y, subwords = KINDS[kind]
    updates = updates_of(subwords)
    held = {"X_val": X[-TEST:], "y_val": y[-TEST:]}
    unfitted(kind, tiny_backbone).fit(X[:TRAIN], y[:TRAIN], **held)
    train, evaluate, texts = counted.look()
    assert (train, evaluate) == (updates, [TEST * subwords] * EPOCHS)
    # Held-out rows are encoded once, and not anew in each epoch.
    assert set(texts.values()) == {1}
    assert len(texts) == TRAIN + TEST


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "mrc tagger"])
def test_a_comparison_that_tells_what_it_does_runs_what_one_in_silence_runs(
    kind, tiny_backbone, counted, capsys
):
    _, X, y, subwords = KINDS[kind]
    updates = updates_of(subwords)
    how = dict(X_test=X[-TEST:], y_test=y[-TEST:], losses=["ce", "dsc"], seeds=1, verbose=1)
    compare_losses(unfitted(kind, tiny_backbone), X[:TRAIN], y[:TRAIN], **how)
    assert "dsc" in "".join(capsys.readouterr())
    run = [TEST * subwords]
    texts = dict.fromkeys(TEXTS[:TRAIN], 2) | dict.fromkeys(TEXTS[-TEST:], 2)
    assert counted.look() == (2 * updates, 2 * run, texts)


@pytest.mark.parametrize("kind", ["classifier", "tagger", "recognizer"])
def test_a_tuned_decision_costs_one_pass_over_its_rows(kind, tiny_backbone, counted):
    _, X, y, subwords = KINDS[kind]
    updates = updates_of(subwords)
    rows = dict(X_val=X[-TEST:], y_val=y[-TEST:], X_test=X[:8], y_test=y[:8])
    how = dict(losses=["ce + tuned"], seeds=1, verbose=1)
    compare_losses(unfitted(kind, tiny_backbone), X[:TRAIN], y[:TRAIN], **rows, **how)
    train, evaluate, _ = counted.look()
    of_epochs, to_tune, to_score = [TEST * subwords] * EPOCHS, [TEST * subwords], [8 * subwords]
    assert (train, evaluate) == (updates, of_epochs + to_tune + to_score)
