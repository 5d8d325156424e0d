"""
The losses in the Hugging Face Trainer
======================================

``for_trainer`` makes any loss of skdice one that the Trainer of transformers takes. Gradient
accumulation then equals one big batch. It needs ``pip install accelerate``, as the Trainer does.

The model is a tiny BERT with random weights, made here, so nothing is downloaded. In your own work,
use ``AutoModelForSequenceClassification``.
"""

import tempfile
from typing import Any

import matplotlib.pyplot as plt
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
ORDINARY = ["the bus is late", "lunch at noon", "rain in the hills"]
ORDINARY += ["we met near the bridge", "the report is ready"]
ORDINARY += ["see you at the river", "a new road to town"]
SENTENCES = [(f"{text} {day}", 0) for text in ORDINARY for day in range(8)]
SENTENCES += [(f"claim your free prize now {day}", 1) for day in range(8)]

words = sorted({word for text, _ in SENTENCES for word in text.split()})
vocabulary = {word: i for i, word in enumerate(["[PAD]", "[UNK]", *words])}
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


# %%
# ``compute_loss_func=`` takes the loss. ``background=0`` names the class that is not rare. With
# ``loss=None`` the model uses its own.
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
        loss_func = (
            None if loss is None else for_trainer(loss, background=0)
        )
        trainer = Trainer(
            model=BertForSequenceClassification(config),
            args=TrainingArguments(**{**defaults, **settings}),
            train_dataset=data,
            data_collator=DataCollatorWithPadding(tokenizer),
            compute_loss_func=loss_func,
        )
        trainer.remove_callback(PrinterCallback)
        trainer.train()
    return [
        row["loss"] for row in trainer.state.log_history if "loss" in row
    ]


# %%
# Each loss, update by update. Their scales differ, so compare models by F1 and not by these values.
fig, ax = plt.subplots(figsize=(5, 3), layout="constrained")
for loss in ("ce", "dsc"):
    values = train(loss, max_steps=20)
    print(f"{loss}: from {values[0]:.4f} to {values[-1]:.4f}")
    ax.plot(range(1, 21), values, label=loss)
ax.set(xlabel="update", ylabel="loss")
ax.legend()
plt.show()
