"""skdice's losses in a Hugging Face Trainer: python examples/hf_trainer.py

A tiny random BERT learns to find a rare class of sentences for a few steps. It is made here, so
nothing is downloaded; in your own work put ``AutoModelForSequenceClassification`` in its place.
"""

from __future__ import annotations

import tempfile

import torch
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    DataCollatorWithPadding,
    PreTrainedTokenizerFast,
    Trainer,
    TrainingArguments,
)

from skdice.losses import DSCLoss, Loss, for_trainer

SENTENCES = [
    ("the bus was late again", 0),
    ("you won a free prize call now", 1),
    ("lunch at noon today", 0),
    ("rain all day in the hills", 0),
    ("see you at the river", 0),
    ("claim your free money now", 1),
    ("the report is on your desk", 0),
    ("we met near the old bridge", 0),
]


def make_tokenizer() -> PreTrainedTokenizerFast:
    """A tokenizer that knows the words above."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace

    words = sorted({word for text, _ in SENTENCES for word in text.split()})
    vocabulary = {word: i for i, word in enumerate(["[PAD]", "[UNK]", *words])}
    tokenizer = Tokenizer(WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]")


def make_model(vocabulary_size: int) -> BertForSequenceClassification:
    """A BERT of one layer with random weights and two classes."""
    config = BertConfig(
        vocab_size=vocabulary_size,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=32,
        num_labels=2,
    )
    return BertForSequenceClassification(config)


def main(loss: str | Loss | None = None, max_steps: int = 3, accumulate: int = 2) -> list[float]:
    """Train for `max_steps` updates and return the loss of each."""
    torch.manual_seed(0)
    tokenizer = make_tokenizer()
    data = [{**tokenizer(text), "labels": label} for text, label in SENTENCES]
    # Class 0, most of the sentences, is the background: the loss is about class 1.
    loss = DSCLoss(background=0) if loss is None else loss
    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(
            model=make_model(len(tokenizer)),
            args=TrainingArguments(
                output_dir=folder,
                max_steps=max_steps,
                per_device_train_batch_size=4,
                gradient_accumulation_steps=accumulate,
                learning_rate=1e-2,
                logging_steps=1,
                save_strategy="no",
                report_to="none",
                use_cpu=True,
                disable_tqdm=True,
                dataloader_pin_memory=False,
            ),
            train_dataset=data,
            data_collator=DataCollatorWithPadding(tokenizer),
            compute_loss_func=for_trainer(loss),
        )
        trainer.train()
    return [entry["loss"] for entry in map(_numbers, trainer.state.log_history) if "loss" in entry]


def _numbers(entry: dict[str, object]) -> dict[str, float]:
    return {key: float(value) for key, value in entry.items() if isinstance(value, (int, float))}


if __name__ == "__main__":
    print("loss of each update:", [round(value, 4) for value in main()])
