"""Speed of skdice, the Hugging Face Trainer, raw skorch and pipelines, in words a second.

    python examples/benchmarks/trainer.py DATA --out results/trainer.json --chart trainer.png

DATA holds `wnut17/` and `sms_spam/`. In each round every program trains one epoch on the same rows,
with cross-entropy and batches of 32, and then predicts test rows. The programs run one after the
other in one process. Words are those of the data, not subwords or padding. Times include
tokenising. Prints medians over the rounds and ratios to skdice.

simpletransformers is timed where it is installed, in fp32, all that it can do on a CPU:

    pip install --no-deps simpletransformers==0.70.8 tensorboard absl-py
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import tempfile
import time
import warnings
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import datasets
import numpy as np
import pandas as pd
import torch
import transformers
from datasets import Dataset
from sklearn.pipeline import make_pipeline
from skorch import NeuralNetClassifier
from skorch.hf import HuggingfacePretrainedTokenizer
from transformers import (
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    AutoTokenizer,
    DataCollatorForTokenClassification,
    DataCollatorWithPadding,
    Trainer,
    TrainingArguments,
    pipeline,
)

from skdice import DiceSequenceClassifier, DiceTokenClassifier, __version__
from skdice.backbones import DEFAULT_BACKBONE, find_backbone
from skdice.datasets import read_conll, read_table

BACKBONE = find_backbone(DEFAULT_BACKBONE)


def ours(
    task: str, X: Any, y: Any, precision: str, backbone: str = BACKBONE, pack: bool = True
) -> Any:
    cls = DiceTokenClassifier if task == "tagging" else DiceSequenceClassifier
    params = {} if task == "tagging" else {"pooling": "native"}
    params |= {"backbone": backbone, "precision": precision, "random_state": 0}
    params |= {"net_params": {"pack": pack}}
    return cls(loss="ce", max_epochs=1, **params).fit(X, y)


def theirs(
    task: str, X: Any, y: Any, precision: str, grouped: bool, backbone: str = BACKBONE
) -> None:
    """Trainer as its documentation shows it; dynamic padding by its collators."""
    tokenizer = AutoTokenizer.from_pretrained(backbone)
    if task == "tagging":
        names = sorted({tag for row in y for tag in row})
        encoded = tokenizer(X, is_split_into_words=True, truncation=True)
        labels = []
        for i, row in enumerate(y):
            before, found = None, []
            for word in encoded.word_ids(i):
                new = word is not None and word != before
                found.append(names.index(row[word]) if new else -100)
                before = word
            labels.append(found)
        auto, collator = AutoModelForTokenClassification, DataCollatorForTokenClassification
    else:
        names = sorted(set(y))
        encoded = tokenizer(X, truncation=True)
        labels = [names.index(label) for label in y]
        auto, collator = AutoModelForSequenceClassification, DataCollatorWithPadding
    rows = Dataset.from_dict({**encoded, "labels": labels})
    with tempfile.TemporaryDirectory() as folder:
        args = TrainingArguments(
            folder,
            num_train_epochs=1,
            per_device_train_batch_size=32,
            train_sampling_strategy="group_by_length" if grouped else "random",
            bf16=precision == "bf16",
            use_cpu=not torch.cuda.is_available(),
            report_to=[],
            disable_tqdm=True,
            save_strategy="no",
            logging_strategy="no",
        )
        model = auto.from_pretrained(backbone, num_labels=len(names), dtype=torch.float32)
        Trainer(model, args, train_dataset=rows, data_collator=collator(tokenizer)).train()


def with_skorch(X: Any, y: Any, backbone: str = BACKBONE) -> None:
    """Raw skorch with its own tokenizer, as its documentation shows it: 256 subwords for all."""

    class Module(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            auto = AutoModelForSequenceClassification
            self.model = auto.from_pretrained(backbone, num_labels=2, dtype=torch.float32)

        def forward(self, **inputs: torch.Tensor) -> torch.Tensor:
            return self.model(**inputs).logits

    net = NeuralNetClassifier(
        Module,
        criterion=torch.nn.CrossEntropyLoss,
        optimizer=torch.optim.AdamW,
        lr=1e-4,
        batch_size=32,
        max_epochs=1,
        train_split=None,
        iterator_train__shuffle=True,
        verbose=0,
    )
    steps = make_pipeline(HuggingfacePretrainedTokenizer(backbone, max_length=256), net)
    steps.fit(X, np.unique(y, return_inverse=True)[1])


def simpletransformers_models() -> dict[str, Any]:
    """Its class for each task, or none and a printed line where it is not installed."""
    try:
        from simpletransformers.classification import ClassificationModel
        from simpletransformers.ner import NERModel
    except ImportError as error:
        print(f"simpletransformers is left out: {error}")
        return {}
    return {"tagging": NERModel, "classification": ClassificationModel}


def with_simpletransformers(cls: Any, task: str, X: Any, y: Any, backbone: str = BACKBONE) -> None:
    """simpletransformers as its documentation shows it: 128 subwords for all, its default.

    Its tagger lowercases for an uncased model only if told to. Other settings are its defaults: a
    linear schedule with warmup, and clipped gradients.
    """
    if task == "tagging":
        names = sorted({tag for row in y for tag in row})
        words = [(i, *pair) for i, row in enumerate(X) for pair in zip(row, y[i], strict=True)]
        frame = pd.DataFrame(words, columns=["sentence_id", "words", "labels"])
        params = {"labels": names}
    else:
        names, labels = np.unique(y, return_inverse=True)
        frame = pd.DataFrame({"text": X, "labels": labels})
        params = {"num_labels": len(names)}
    with tempfile.TemporaryDirectory() as folder:
        args = {
            "num_train_epochs": 1,
            "train_batch_size": 32,
            "learning_rate": 1e-4,
            "do_lower_case": True,
            "fp16": False,
            "use_multiprocessing": False,
            "no_cache": True,
            "no_save": True,
            "save_model_every_epoch": False,
            "logging_steps": 0,
            "silent": True,
            "output_dir": f"{folder}/output",
            "tensorboard_dir": f"{folder}/runs",
        }
        params |= {"args": args, "use_cuda": torch.cuda.is_available()}
        cls("bert", backbone, **params).train_model(frame)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--chart", type=Path, default=None)
    parser.add_argument("--rows", type=int, default=640)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tasks", nargs="+", default=["tagging", "classification"])
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    warnings.filterwarnings("ignore")
    transformers.logging.set_verbosity_error()
    datasets.disable_progress_bars()
    wnut = args.data / "wnut17"
    X, y = read_conll(wnut / "wnut17train.conll")
    Xt, _ = read_conll(wnut / "emerging.test.annotated")
    sms = read_table(args.data / "sms_spam" / "SMSSpamCollection", label_column=0, header=False)
    n = args.rows
    tasks = {
        "tagging": (X[:n], y[:n], Xt[:n]),
        "classification": (sms[0][:n], sms[1][:n], sms[0][n : 2 * n]),
    }
    report: dict[str, Any] = {
        "skdice": __version__,
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "processor": platform.processor() or platform.machine(),
        "threads": args.threads,
        "rounds": args.rounds,
        "rows": n,
        "words_a_second": {},
    }
    rival = simpletransformers_models()
    if rival:
        report["simpletransformers"] = version("simpletransformers")
    for task in args.tasks:
        rows, labels, test = tasks[task]
        words = sum(len(x) if task == "tagging" else len(x.split()) for x in rows)
        test_words = sum(len(x) if task == "tagging" else len(x.split()) for x in test)
        programs: dict[str, Any] = {"skdice auto": partial(ours, task, rows, labels, "auto")}
        for p in ("fp32", "bf16"):
            programs |= {
                f"skdice {p}": partial(ours, task, rows, labels, p),
                f"Trainer {p}": partial(theirs, task, rows, labels, p, False),
                f"Trainer grouped {p}": partial(theirs, task, rows, labels, p, True),
            }
        if task == "classification":
            programs["raw skorch fp32"] = partial(with_skorch, rows, labels)
        if rival:
            programs["simpletransformers fp32"] = partial(
                with_simpletransformers, rival[task], task, rows, labels
            )
        found: dict[str, list[float]] = {}
        model = ours(task, rows, labels, "fp32")
        with tempfile.TemporaryDirectory() as folder:
            model.save_pretrained(folder)
            kind = "token-classification" if task == "tagging" else "text-classification"
            pipe = pipeline(kind, folder, device="cpu")
            texts = [x if isinstance(x, str) else " ".join(x) for x in test]
            predictors = {"skdice predict": partial(model.predict, test)}
            for size in (1, 8, 32):
                predictors[f"pipeline, batch {size}"] = partial(pipe, texts, batch_size=size)
            for _ in range(args.rounds):
                for group, count in ((programs, words), (predictors, test_words)):
                    for name, program in group.items():
                        start = time.perf_counter()
                        program()
                        found.setdefault(name, []).append(count / (time.perf_counter() - start))
        medians = {name: statistics.median(values) for name, values in found.items()}
        report["words_a_second"][task] = found
        print(f"{task}: {words} words to train on, {test_words} to predict")
        args.out.write_text(json.dumps(report, indent=1) + "\n")  # what is measured is kept
        for name, median in medians.items():
            mine = "skdice predict" if name in predictors else f"skdice {name.split()[-1]}"
            ratio = medians[mine] / median
            print(f"  {name:24} {median:8.0f} words/s   {mine} is {ratio:.2f} x", flush=True)
    if args.chart is not None:
        draw(report, args.chart)


def draw(report: dict[str, Any], path: Path) -> None:
    import matplotlib.pyplot as plt

    fig, axes = plt.subplots(1, 2, figsize=(11, 4.5), layout="constrained")
    for ax, (task, found) in zip(axes, report["words_a_second"].items(), strict=True):
        names = list(found)[::-1]
        values = [statistics.median(found[name]) for name in names]
        colours = ["#c2571a" if name.startswith("skdice") else "#4a6b8a" for name in names]
        ax.barh(names, values, color=colours)
        ax.set_title(task)
        ax.set_xlabel("words a second (median)")
    fig.savefig(path, dpi=120)


if __name__ == "__main__":
    main()
