"""Fit heads on a frozen encoder, and keep their probabilities for `decisions.py`.

    python frozen_fits.py FOLDER --data DATA
    python decisions.py FOLDER --data DATA --epochs 20 --out results/decisions-frozen.json

The encoder reads each sentence, text or pair once; a word has the state of its first subword. A
head takes seconds, so that many decisions of real data can be compared in minutes.
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import tasks
import torch
from experiments import SETTINGS
from sklearn.preprocessing import StandardScaler
from transformers import AutoModel, AutoTokenizer

from skdice import DiceClassifier, TransformerFeatures
from skdice.backbones import find_backbone

TASKS = "sms_rare", "clinc_oos", "mrpc", "wnut17", "bc5cdr"
LOSSES = "ce", "focal", "ce_dice", "dsc"
LIMITS = {"bc5cdr": 2500}  # sentences of each part; drawn alike for all seeds
EPOCHS, ROWS, SEEDS = 20, 2000, range(3)


def states_of_words(sentences: list[list[str]]) -> np.ndarray:
    """The last hidden state of each word's first subword; zeros where a word was cut off."""
    folder = find_backbone(TransformerFeatures().backbone)
    tokenizer, encoder = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder)
    encoder.eval()
    found = [np.zeros((len(words), encoder.config.hidden_size), np.float32) for words in sentences]
    order = sorted(range(len(sentences)), key=lambda i: len(sentences[i]))
    for start in range(0, len(order), 32):
        chosen = order[start : start + 32]
        batch = tokenizer(
            [list(sentences[i]) for i in chosen],
            is_split_into_words=True,
            truncation=True,
            padding=True,
            return_tensors="pt",
        )
        with torch.inference_mode():
            states = encoder(**batch).last_hidden_state.numpy()
        for at, i in enumerate(chosen):
            words = batch.word_ids(at)
            for place in range(len(words) - 1, -1, -1):  # the first subword is written last
                if words[place] is not None:
                    found[i][words[place]] = states[at, place]
    return np.concatenate(found)


def features(X: list[Any], kind: str) -> np.ndarray:
    """One row for each text or pair, or for each word."""
    return states_of_words(X) if kind == "tags" else TransformerFeatures().fit_transform(X)


def flat(y: list[Any], kind: str) -> np.ndarray:
    """A label for each row of features."""
    return np.array([tag for row in y for tag in row] if kind == "tags" else y)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=TASKS)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    args.out.mkdir(parents=True, exist_ok=True)
    for name in args.tasks:
        for seed in SEEDS:
            task = tasks.load(name, args.data, seed, LIMITS.get(name))
            X, y = task.train
            chosen = np.random.default_rng(seed).permutation(len(X))[:ROWS]
            X, y = [X[i] for i in chosen], [y[i] for i in chosen]
            parts = {"train": X, "dev": task.dev[0], "test": task.test[0]}
            rows = {part: features(X, task.kind) for part, X in parts.items()}
            scaler = StandardScaler().fit(rows["train"])
            for loss in LOSSES:
                model = DiceClassifier(loss=loss, max_epochs=EPOCHS, random_state=seed)
                model.fit(scaler.transform(rows["train"]), flat(y, task.kind))
                job = {"task": name, "loss": loss, "seed": seed, "max_epochs": EPOCHS}
                job |= {"lr": SETTINGS[name]["lr"], "limit": LIMITS.get(name)}
                found = {
                    part: model.predict_proba(scaler.transform(rows[part])).astype(np.float32)
                    for part in ("dev", "test")
                }
                np.savez_compressed(
                    args.out / f"{name}-{loss}-{seed}.npz",
                    job=json.dumps(job),
                    classes=model.classes_,
                    **found,
                )
                print(name, loss, seed, flush=True)


if __name__ == "__main__":
    main()
