"""The Hugging Face Trainer takes skdice's losses and accumulates them rightly."""

from __future__ import annotations

import pickle
import subprocess
import sys
import tempfile
from typing import Any

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    DataCollatorWithPadding,
    PreTrainedTokenizerFast,
    PrinterCallback,
    Trainer,
    TrainingArguments,
    set_seed,
)

from skdice.losses import CrossEntropyLoss, DiceLoss, FocalLoss, Loss, WeightedCrossEntropyLoss
from skdice.losses import for_trainer as wrap

pytest.importorskip("accelerate")

# One sentence in eight is spam: label 1. The others, label 0, are the background.
ORDINARY = ["the bus is late", "lunch at noon", "rain in the hills"]
ORDINARY += ["we met near the bridge", "the report is ready"]
ORDINARY += ["see you at the river", "a new road to town"]
SENTENCES = [(f"{text} {day}", 0) for text in ORDINARY for day in range(8)]
SENTENCES += [(f"claim your free prize now {day}", 1) for day in range(8)]

WORDS = sorted({word for text, _ in SENTENCES for word in text.split()})
vocabulary = {word: i for i, word in enumerate(["[PAD]", "[UNK]", *WORDS])}
word_level = Tokenizer(WordLevel(vocabulary, unk_token="[UNK]"))
word_level.pre_tokenizer = Whitespace()
tokenizer = PreTrainedTokenizerFast(
    tokenizer_object=word_level, pad_token="[PAD]", unk_token="[UNK]"
)
config = BertConfig(
    vocab_size=len(tokenizer),
    hidden_size=16,
    num_hidden_layers=1,
    num_attention_heads=2,
    intermediate_size=32,
    max_position_embeddings=32,
    hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0,
    num_labels=2,
)


def train(loss: str | Loss | None, **settings: Any) -> list[float]:
    """Train, and return the loss of each update."""
    set_seed(0)
    data = [{**tokenizer(text), "labels": y} for text, y in SENTENCES]
    with tempfile.TemporaryDirectory() as folder:
        defaults: dict[str, Any] = dict(
            output_dir=folder,
            max_steps=3,
            per_device_train_batch_size=16,
            learning_rate=1e-2,
            logging_steps=1,
            save_strategy="no",
            report_to="none",
            use_cpu=True,
            disable_tqdm=True,
            dataloader_pin_memory=False,
        )
        loss_func = None if loss is None else wrap(loss, background=0)
        trainer = Trainer(
            model=BertForSequenceClassification(config),
            args=TrainingArguments(**{**defaults, **settings}),
            train_dataset=data,
            data_collator=DataCollatorWithPadding(tokenizer),
            compute_loss_func=loss_func,
        )
        trainer.remove_callback(PrinterCallback)
        trainer.train()
    return [row["loss"] for row in trainer.state.log_history if "loss" in row]


@pytest.mark.parametrize("loss", ["ce", "focal", "dice", "tversky", "dsc"])
def test_losses_train(loss):
    values = train(loss, per_device_train_batch_size=64, max_steps=6)
    assert len(values) == 6
    assert np.isfinite(values).all()
    assert values[-1] < values[0]


@pytest.mark.parametrize(
    "loss",
    [
        CrossEntropyLoss(),
        FocalLoss(),
        WeightedCrossEntropyLoss(class_weight=[0.1, 1.0]),
        DiceLoss.literal(background=0),
    ],
    ids=repr,
)
def test_accumulation_is_one_big_batch(loss):
    whole = train(loss)
    parts = train(loss, per_device_train_batch_size=4, gradient_accumulation_steps=4)
    assert parts == pytest.approx(whole, rel=2e-3)  # four digits are logged


def test_micro_batches_of_a_set_level_loss_count_by_their_targets():
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(8, 3, generator=generator)
    target = torch.tensor([0, 1, 2, 0, 1, 2, 0, -100])
    loss = DiceLoss(background=0)
    parts = [slice(0, 3), slice(3, 8)]
    got = sum(wrap(loss)((logits[s],), target[s], num_items_in_batch=7) for s in parts)
    want = sum(loss(logits[s], target[s]) * n / 7 for s, n in zip(parts, (3, 4), strict=True))
    torch.testing.assert_close(got, want)
    torch.testing.assert_close(wrap(loss)((logits,), target, 7), loss(logits, target))


@pytest.mark.parametrize("multilabel", [False, True])
def test_rows_of_targets(multilabel):
    """The Trainer counts each entry of a row."""
    logits = torch.randn(6, 3, generator=torch.Generator().manual_seed(0))
    target = (logits.flip(0) > 0).float() if multilabel else torch.softmax(logits.flip(0), -1)
    for cls in (CrossEntropyLoss, DiceLoss.literal):
        loss = cls(multilabel=multilabel)
        torch.testing.assert_close(
            wrap(loss, background=None)({"logits": logits}, target, target.numel()),
            loss(logits, target),
        )


def test_the_wrapper_as_an_object():
    wrapped = pickle.loads(pickle.dumps(wrap(DiceLoss(background=0))))
    assert repr(wrapped) == "for_trainer(DiceLoss(background=0))"
    with pytest.raises(ValueError, match="reduction='mean'"):
        wrap(DiceLoss(reduction="none", surrogate="none"))
    with pytest.raises(ValueError, match="labels=None"):
        wrapped({"logits": torch.zeros(2, 2)}, None)
    with pytest.raises(ValueError, match="'dise'"):
        wrap("dise")


@pytest.mark.slow
def test_losses_import_no_transformers():
    code = "import sys, skdice.losses; sys.exit('transformers' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_cross_entropy_is_the_loss_of_the_model_itself():
    assert train("ce") == pytest.approx(train(None), abs=1e-4)
