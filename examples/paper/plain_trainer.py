"""The Trainer of transformers with its own defaults, behind `fit` and `predict`.

The rate is 5e-5, batches have 8 rows, and three epochs end at a rate of 0, in fp32.
"""

from __future__ import annotations

import tempfile
from typing import Any

import numpy as np
import torch
from transformers import (
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    AutoTokenizer,
    DataCollatorForTokenClassification,
    DataCollatorWithPadding,
    Trainer,
    TrainingArguments,
)

from skdice.backbones import DEFAULT_BACKBONE, find_backbone


class PlainTrainer:
    """As transformers' course shows it, but that rows to predict come in batches of 64.

    Parameters
    ----------
    kind : {"tags", "labels"}
        Of lists of words with a tag each, or of texts and pairs of texts.
    seed : int
    backbone : str or None, default=None
        A folder; None is MiniLM.
    """

    def __init__(self, kind: str, seed: int, backbone: str | None = None) -> None:
        self.tagging, self.seed = kind == "tags", seed
        self.backbone = backbone or find_backbone(DEFAULT_BACKBONE)

    def fit(self, X: list[Any], y: list[Any]) -> PlainTrainer:
        flat = [tag for row in y for tag in row] if self.tagging else y
        self.classes_ = sorted(set(flat))
        self.tokenizer_ = AutoTokenizer.from_pretrained(self.backbone)
        auto, collator = AutoModelForSequenceClassification, DataCollatorWithPadding
        if self.tagging:
            auto, collator = AutoModelForTokenClassification, DataCollatorForTokenClassification
        torch.manual_seed(self.seed)  # the head is drawn before Trainer sets its seed
        model = auto.from_pretrained(
            self.backbone, num_labels=len(self.classes_), dtype=torch.float32
        )
        with tempfile.TemporaryDirectory() as folder:
            args = TrainingArguments(
                folder,
                seed=self.seed,
                per_device_eval_batch_size=64,
                use_cpu=not torch.cuda.is_available(),
                report_to=[],
                disable_tqdm=True,
                save_strategy="no",
                logging_strategy="no",
            )
            self.trainer_ = Trainer(
                model,
                args,
                train_dataset=self._rows(X, y),
                data_collator=collator(self.tokenizer_),
            )
            self.trainer_.train()
        return self

    def predict(self, X: list[Any]) -> Any:
        best = self.trainer_.predict(self._rows(X)).predictions.argmax(-1)
        if not self.tagging:
            return np.array(self.classes_)[best]
        encoded, tags = self._encoded(X), [["O"] * len(words) for words in X]
        for i, row in enumerate(tags):
            for place, word in enumerate(first_pieces(encoded.word_ids(i))):
                if word is not None:
                    row[word] = self.classes_[best[i][place]]
        return tags

    def _encoded(self, X: list[Any]) -> Any:
        if self.tagging:
            return self.tokenizer_(X, is_split_into_words=True, truncation=True)
        if isinstance(X[0], str):
            return self.tokenizer_(X, truncation=True)
        return self.tokenizer_([a for a, _ in X], [b for _, b in X], truncation=True)

    def _rows(self, X: list[Any], y: list[Any] | None = None) -> list[dict[str, Any]]:
        """A dictionary of ids for each row; of a word the first piece has the tag."""
        encoded, number = self._encoded(X), {label: i for i, label in enumerate(self.classes_)}
        rows = [{name: encoded[name][i] for name in encoded} for i in range(len(X))]
        for i, label in enumerate(y or []):
            rows[i]["labels"] = number[label] if not self.tagging else [
                -100 if word is None else number[label[word]]
                for word in first_pieces(encoded.word_ids(i))
            ]  # fmt: skip
        return rows


def first_pieces(words: list[int | None]) -> list[int | None]:
    """The word of each piece that is the first of its word, and None for all others."""
    return [
        None if word == before else word
        for before, word in zip([None, *words], words, strict=False)
    ]
