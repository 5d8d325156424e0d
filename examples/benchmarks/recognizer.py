"""F1 on WNUT17 from raw text, beside the tagger on the tokens that the data set gives.

    python recognizer.py FOLDER --out results/recognizer.jsonl

Raw text is the tokens joined by blanks. Both models see 1,500 training sentences.
Each run of the recognizer as it is also compares `predict` with a pipeline of transformers on 200
test sentences. FOLDER is as for wnut17.py. Each finished run is one JSON line in --out; runs that
--out holds are not repeated.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from transformers import pipeline

from skdice import DiceEntityRecognizer, DiceTokenClassifier, __version__
from skdice.datasets import read_conll
from skdice.tags.schemes import get_spans

MODELS = ["tagger", "recognizer", "recognizer, glued words skipped"]
SETTINGS = {
    "loss": "ce_dice",
    "lr": 3e-4,
    "batch_size": 16,
    "precision": "bf16",
}


def raw(sentences: list[list[str]], tags: list[list[str]]) -> tuple[list[str], list[list[tuple]]]:
    """Texts, and their entities as (start, end, label)."""
    texts, entities = [], []
    for tokens, row in zip(sentences, tags, strict=True):
        ends = np.cumsum([len(token) + 1 for token in tokens]) - 1
        starts = ends - [len(token) for token in tokens]
        texts.append(" ".join(tokens))
        spans = get_spans(row)
        entities.append([(int(starts[a]), int(ends[b - 1]), kind) for kind, a, b in spans])
    return texts, entities


def agreement(model: DiceEntityRecognizer, texts: list[str]) -> dict[str, int]:
    """What a plain pipeline finds in texts beside `predict`."""
    with tempfile.TemporaryDirectory() as folder:
        model.set_params(precision="fp32").save_pretrained(folder)
        serve = pipeline("token-classification", folder, aggregation_strategy="first", device="cpu")
        served = [{(e["start"], e["end"], e["entity_group"]) for e in serve(t)} for t in texts]
    ours = [{entity[:3] for entity in row} for row in model.predict(texts)]
    pairs = list(zip(ours, served, strict=True))
    return {
        "texts": len(texts),
        "texts_alike": sum(a == b for a, b in pairs),
        "entities": sum(map(len, ours)),
        "missing": sum(len(a - b) for a, b in pairs),
        "surplus": sum(len(b - a) for a, b in pairs),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--rows", type=int, default=1500)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--models", nargs="+", default=MODELS)
    args = parser.parse_args()
    names = "wnut17train.conll", "emerging.test.annotated"
    train, test = ([*read_conll(args.folder / name)[:2]] for name in names)
    train = [part[: args.rows] for part in train]
    texts, entities = raw(*train)
    data = {
        "tagger": (train, test),
        "recognizer": ((texts, entities), raw(*test)),
        "recognizer, glued words skipped": ((texts, entities), raw(*test)),
    }
    settings = {**SETTINGS, "max_epochs": args.epochs}
    done = [json.loads(line) for line in args.out.open()] if args.out.exists() else []
    for seed in args.seeds:
        for name in args.models:
            run = {"model": name, "seed": seed, "rows": args.rows, **settings}
            if any(run.items() <= record.items() for record in done):
                continue
            (X, y), (X_test, y_test) = data[name]
            started = time.perf_counter()
            cls = DiceTokenClassifier if name == "tagger" else DiceEntityRecognizer
            extra = {"glued": "skip"} if name.endswith("skipped") else {}
            model = cls(**settings, **extra, random_state=seed).fit(X, y)
            record = {**run, "seconds": time.perf_counter() - started}
            scores = model.evaluate(X_test, y_test)
            record |= {"f1": scores["f1"], "P": scores["precision"], "R": scores["recall"]}
            if name == "recognizer":
                record["pipeline"] = agreement(model, X_test[:200])
            record |= {
                "skdice": __version__,
                "torch": torch.__version__,
                "threads": torch.get_num_threads(),
                "date": time.strftime("%Y-%m-%d"),
            }
            with args.out.open("a") as file:
                file.write(json.dumps(record) + "\n")
            done.append(record)
            print(f"{name:31} seed {seed}  F1 {100 * record['f1']:.1f}", flush=True)
    for name in args.models:
        wanted = {"model": name, "rows": args.rows, **settings}
        f1 = [100 * record["f1"] for record in done if wanted.items() <= record.items()]
        sd = np.std(f1, ddof=1) if len(f1) > 1 else np.nan
        print(f"{name:31} {np.mean(f1):.2f} ± {sd:.2f} over {len(f1)} seeds")


if __name__ == "__main__":
    main()
