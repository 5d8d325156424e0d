"""The baseline: token classification in plain torch and transformers, without skdice."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn
from transformers import AutoModel, AutoTokenizer


class PlainTagger(nn.Module):
    """An encoder and a linear layer over every subword."""

    def __init__(self, backbone: str, n_classes: int) -> None:
        super().__init__()
        self.encoder = AutoModel.from_pretrained(backbone, dtype=torch.float32)
        self.encoder.pooler = None
        self.dropout = nn.Dropout(0.1)
        self.head = nn.Linear(self.encoder.config.hidden_size, n_classes)
        nn.init.normal_(self.head.weight, std=0.02)
        nn.init.zeros_(self.head.bias)

    def forward(self, **inputs: torch.Tensor) -> torch.Tensor:
        return self.head(self.dropout(self.encoder(**inputs).last_hidden_state))


def encode(tokenizer: Any, X: list[list[str]], y: list[list[str]] | None, index: dict[str, int]):
    """Input ids and labels (-100 but at the first subword of each word)."""
    encoded = tokenizer(X, is_split_into_words=True, truncation=True, max_length=512)
    rows = []
    for i in range(len(X)):
        labels, previous = [], None
        for word in encoded.word_ids(i):
            first = word is not None and word != previous
            labels.append((index[y[i][word]] if y is not None else 0) if first else -100)
            previous = word
        rows.append((encoded["input_ids"][i], labels))
    return rows


def collate(tokenizer: Any, rows: list[tuple[list[int], list[int]]]):
    longest = max(len(ids) for ids, _ in rows)
    pad = tokenizer.pad_token_id
    ids = torch.tensor([r + [pad] * (longest - len(r)) for r, _ in rows])
    mask = torch.tensor([[1] * len(r) + [0] * (longest - len(r)) for r, _ in rows])
    labels = torch.tensor([t + [-100] * (longest - len(t)) for _, t in rows])
    return {"input_ids": ids, "attention_mask": mask}, labels


def optimizer_for(model: nn.Module, lr: float) -> torch.optim.Optimizer:
    decayed = [p for p in model.parameters() if p.ndim >= 2]
    spared = [p for p in model.parameters() if p.ndim < 2]
    groups = [{"params": decayed, "weight_decay": 0.01}, {"params": spared, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=lr)


def step(model: nn.Module, optimizer: Any, schedule: Any, inputs: Any, labels: torch.Tensor):
    """One update with cross-entropy."""
    model.train()
    optimizer.zero_grad(set_to_none=True)
    logits = model(**inputs)
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=-100)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    if schedule is not None:
        schedule.step()
    return loss.item()


@torch.no_grad()
def predict(model: nn.Module, tokenizer: Any, X: list[list[str]], classes: list[str]):
    model.eval()
    rows = encode(tokenizer, X, None, {})
    tags = []
    for start in range(0, len(rows), 64):
        inputs, labels = collate(tokenizer, rows[start : start + 64])
        best = model(**inputs).argmax(-1)
        for i in range(len(labels)):
            tags.append([classes[c] for c in best[i][labels[i] != -100].tolist()])
    # A sentence cut at 512 subwords, or a word without subwords, gets O for what is missing.
    return [t + ["O"] * (len(x) - len(t)) for t, x in zip(tags, X, strict=True)]


def fit_predict(backbone, train, test, *, epochs, lr, batch_size, seed, dev=None, score=None):
    """Train as `DiceTokenClassifier(loss="ce")` does by default and predict `test`.

    With `dev`, the epoch with the best `score(y, predicted)` on it is the one that predicts.
    """
    torch.manual_seed(seed)
    X, y = train
    classes = sorted({tag for row in y for tag in row})
    index = {tag: i for i, tag in enumerate(classes)}
    tokenizer = AutoTokenizer.from_pretrained(backbone)
    model = PlainTagger(backbone, len(classes))
    rows = encode(tokenizer, X, y, index)
    counts = np.bincount([t for _, labels in rows for t in labels if t >= 0])
    with torch.no_grad():
        model.head.bias.copy_(torch.as_tensor(np.log(counts / counts.sum())))
    optimizer = optimizer_for(model, lr)
    n_steps = epochs * -(-len(rows) // batch_size)
    rising = int(np.ceil(0.1 * n_steps))
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer,
        lambda s: (s + 1) / rising if s < rising else max(n_steps - s, 0) / (n_steps - rising),
    )
    generator = np.random.default_rng(seed)
    best = (-1.0, None)
    for _ in range(epochs):
        order = generator.permutation(len(rows))
        for start in range(0, len(order), batch_size):
            batch = [rows[i] for i in order[start : start + batch_size]]
            step(model, optimizer, schedule, *collate(tokenizer, batch))
        if dev is not None:
            value = score(dev[1], predict(model, tokenizer, dev[0], classes))
            if value > best[0]:
                best = value, {k: v.clone() for k, v in model.state_dict().items()}
    if best[1] is not None:
        model.load_state_dict(best[1])
    return predict(model, tokenizer, test[0], classes)
