"""The baseline for reading: AutoModelForQuestionAnswering in a plain torch loop, without skdice."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn
from transformers import AutoModelForQuestionAnswering, AutoTokenizer

MAX_LENGTH, STRIDE, N_BEST, MAX_ANSWER = 384, 128, 20, 30


def encode(tokenizer, pairs):
    """Windows of all pairs, with the pair that each comes from and its offsets."""
    encoded = tokenizer(
        [q for q, _ in pairs],
        [c for _, c in pairs],
        truncation="only_second",
        max_length=MAX_LENGTH,
        stride=STRIDE,
        return_overflowing_tokens=True,
        return_offsets_mapping=True,
    )
    rows = []
    for i, row in enumerate(encoded["overflow_to_sample_mapping"]):
        context = [part == 1 for part in encoded.sequence_ids(i)]
        offsets = [
            o if c else None for o, c in zip(encoded["offset_mapping"][i], context, strict=True)
        ]
        segments = encoded["token_type_ids"][i] if "token_type_ids" in encoded else None
        rows.append((row, encoded["input_ids"][i], segments, offsets))
    return rows


def positions(offsets, answers):
    """First and last token of the first answer; 0, 0 where the window does not hold it whole."""
    if not answers:
        return 0, 0
    start, text = answers[0]
    end = start + len(text)
    first = [i for i, o in enumerate(offsets) if o and o[0] <= start < o[1]]
    last = [i for i, o in enumerate(offsets) if o and o[0] < end <= o[1]]
    return (first[0], last[0]) if first and last else (0, 0)


def collate(tokenizer, rows):
    longest = max(len(ids) for _, ids, _, _ in rows)

    def padded(values, fill):
        return torch.tensor([list(v) + [fill] * (longest - len(v)) for v in values])

    inputs = {
        "input_ids": padded([ids for _, ids, _, _ in rows], tokenizer.pad_token_id),
        "attention_mask": padded([[1] * len(ids) for _, ids, _, _ in rows], 0),
    }
    if rows[0][2] is not None:
        inputs["token_type_ids"] = padded([segments for _, _, segments, _ in rows], 0)
    return inputs


def autocast(precision):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.autocast(device, dtype=torch.bfloat16, enabled=precision == "bf16")


def step(model, optimizer, schedule, inputs, starts, ends, precision="fp32"):
    model.train()
    optimizer.zero_grad(set_to_none=True)
    with autocast(precision):
        loss = model(**inputs, start_positions=starts, end_positions=ends).loss
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    if schedule is not None:
        schedule.step()


def load(backbone):
    model = AutoModelForQuestionAnswering.from_pretrained(backbone, dtype=torch.float32)
    return model, AutoTokenizer.from_pretrained(backbone)


def optimizer_for(model, lr):
    decayed = [p for p in model.parameters() if p.ndim >= 2]
    spared = [p for p in model.parameters() if p.ndim < 2]
    groups = [{"params": decayed, "weight_decay": 0.01}, {"params": spared, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=lr)


@torch.no_grad()
def rank(model, tokenizer, pairs, precision="fp32"):
    """For each pair its best answer, its score, and the score of no answer."""
    model.eval()
    best = [("", -np.inf, np.inf)] * len(pairs)
    rows = sorted(encode(tokenizer, pairs), key=lambda row: len(row[1]))
    for first in range(0, len(rows), 32):
        batch = rows[first : first + 32]
        with autocast(precision):
            output = model(**collate(tokenizer, batch))
        logits = output.start_logits.float().numpy(), output.end_logits.float().numpy()
        for (i, ids, _, offsets), s, e in zip(batch, *logits, strict=False):
            s, e = s[: len(ids)], e[: len(ids)]
            text, score, null = best[i]
            null = min(null, s[0] + e[0])
            for a in np.argsort(-s)[:N_BEST]:
                for b in np.argsort(-e)[:N_BEST]:
                    possible = offsets[a] and offsets[b] and a <= b < a + MAX_ANSWER
                    if possible and s[a] + e[b] > score:
                        score = s[a] + e[b]
                        text = pairs[i][1][offsets[a][0] : offsets[b][1]]
            best[i] = text, score, null
    return best


def fit(backbone, X, y, *, epochs, lr, batch_size, seed, precision="fp32"):
    """Train as `DiceQuestionAnswerer(loss="ce")` does by default."""
    torch.manual_seed(seed)
    model, tokenizer = load(backbone)
    nn.init.normal_(model.qa_outputs.weight, std=0.02)
    nn.init.zeros_(model.qa_outputs.bias)
    rows = encode(tokenizer, X)
    labels = torch.tensor([positions(offsets, y[i]) for i, _, _, offsets in rows])
    optimizer = optimizer_for(model, lr)
    n_steps = epochs * -(-len(rows) // batch_size)
    rising = int(np.ceil(0.1 * n_steps))
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer,
        lambda s: (s + 1) / rising if s < rising else max(n_steps - s, 0) / (n_steps - rising),
    )
    generator = np.random.default_rng(seed)
    for _ in range(epochs):
        order = generator.permutation(len(rows))
        for first in range(0, len(order), batch_size):
            chosen = order[first : first + batch_size]
            inputs = collate(tokenizer, [rows[i] for i in chosen])
            starts, ends = labels[chosen].T
            step(model, optimizer, schedule, inputs, starts, ends, precision)
    return model, tokenizer
