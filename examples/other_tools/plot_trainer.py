"""
The losses in the Hugging Face Trainer
======================================

``for_trainer`` makes any loss of skdice one that the Trainer of transformers takes. Gradient
accumulation then equals one big batch. It needs ``pip install accelerate``, as the Trainer does.

The encoder is MiniLM, and the texts are messages that ship with skdice: one in six is spam.
"""

import tempfile
from importlib.resources import files

import numpy as np
from sklearn.metrics import f1_score
from sklearn.model_selection import train_test_split
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    DataCollatorWithPadding,
    PrinterCallback,
    Trainer,
    TrainingArguments,
    set_seed,
)

from skdice.backbones import DEFAULT_BACKBONE, find_backbone
from skdice.datasets import read_table
from skdice.losses import for_trainer

texts, labels = read_table(
    files("skdice.datasets") / "data/town_messages.csv"
)
X, X_test, y, y_test = train_test_split(
    texts, labels, train_size=0.5, stratify=labels, random_state=0
)
encoder = find_backbone(DEFAULT_BACKBONE)  # a folder; or an id of the hub
tokenizer = AutoTokenizer.from_pretrained(encoder)


def rows(texts, labels):
    """Rows for the Trainer; label 0, ham, is the background."""
    return [
        {**tokenizer(text, truncation=True), "labels": int(y == "spam")}
        for text, y in zip(texts, labels, strict=True)
    ]


# %%
# ``compute_loss_func=`` takes the loss. ``background=0`` names the class that is not rare. With
# ``None`` the model uses its own.
def train(loss, max_epochs=3):
    """F1 of the spam on test messages."""
    set_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(
            model=AutoModelForSequenceClassification.from_pretrained(
                encoder, num_labels=2
            ),
            args=TrainingArguments(
                output_dir=folder,
                num_train_epochs=max_epochs,
                per_device_train_batch_size=16,
                learning_rate=1e-4,
                save_strategy="no",
                report_to="none",
                use_cpu=True,
                disable_tqdm=True,
                dataloader_pin_memory=False,
            ),
            train_dataset=rows(X, y),
            data_collator=DataCollatorWithPadding(tokenizer),
            compute_loss_func=loss,
        )
        trainer.remove_callback(PrinterCallback)
        trainer.train()
        logits = trainer.predict(rows(X_test, y_test)).predictions
    found = np.where(logits.argmax(axis=-1) == 1, "spam", "ham")
    return f1_score(y_test, found, pos_label="spam", zero_division=0)


print(f"{train(None):.2f} the model's own loss")
print(f"{train(for_trainer('dsc', background=0)):.2f} dsc")

# %%
# The same in skdice, with the same numbers, for comparison:
import matplotlib.pyplot as plt

from skdice import DiceSequenceClassifier

scores = {}
for loss in ("ce", "dsc"):
    model = DiceSequenceClassifier(
        loss=loss, max_epochs=3, batch_size=16, lr=1e-4, random_state=0
    )
    scores[loss] = model.fit(X, y).score(X_test, y_test)
fig, ax = plt.subplots(figsize=(4, 2), layout="constrained")
ax.barh(list(scores), list(scores.values()))
ax.set(xlabel="F1 of the spam, by skdice")
plt.show()
