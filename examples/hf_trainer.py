"""Train with skdice's losses in a Hugging Face Trainer.

    pip install accelerate  # the Trainer needs it, and skdice does not install it
    python examples/hf_trainer.py

For a few steps, it trains a tiny random BERT to find a rare class of sentences. The BERT is built
here, so nothing is downloaded. In your own work, use ``AutoModelForSequenceClassification``.
"""

from __future__ import annotations

import tempfile
from typing import Any

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

from skdice.losses import Loss, for_trainer

# One sentence in eight is spam: label 1. The others, label 0, are the background.
ORDINARY = ["the bus is late", "lunch at noon", "rain in the hills", "we met near the bridge"]
ORDINARY += ["the report is ready", "see you at the river", "a new road to town"]
SENTENCES = [(f"{text} {day}", 0) for text in ORDINARY for day in range(8)]
SENTENCES += [(f"claim your free prize now {day}", 1) for day in range(8)]


def make_tokenizer() -> PreTrainedTokenizerFast:
    """A tokenizer that knows the words above."""
    words = sorted({word for text, _ in SENTENCES for word in text.split()})
    vocabulary = {word: i for i, word in enumerate(["[PAD]", "[UNK]", *words])}
    tokenizer = Tokenizer(WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]")


def make_model(vocabulary_size: int) -> BertForSequenceClassification:
    """A BERT with one layer, random weights and two classes."""
    config = BertConfig(
        vocab_size=vocabulary_size,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=32,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        num_labels=2,
    )
    return BertForSequenceClassification(config)


def train(loss: str | Loss | None, **settings: Any) -> list[float]:
    """Train, and return the loss of each update.

    With ``loss=None`` the model uses its own loss. `settings` go to
    `transformers.TrainingArguments`.
    """
    set_seed(0)
    tokenizer = make_tokenizer()
    data = [{**tokenizer(text), "labels": label} for text, label in SENTENCES]
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
        trainer = Trainer(
            model=make_model(len(tokenizer)),
            args=TrainingArguments(**{**defaults, **settings}),
            train_dataset=data,
            data_collator=DataCollatorWithPadding(tokenizer),
            compute_loss_func=None if loss is None else for_trainer(loss, background=0),
        )
        trainer.remove_callback(PrinterCallback)
        trainer.train()
    return [float(entry["loss"]) for entry in trainer.state.log_history if "loss" in entry]


def main() -> None:
    for loss in ("ce", "dsc"):
        print(f"{loss}: loss of each update {[round(value, 4) for value in train(loss)]}")


if __name__ == "__main__":
    main()
