"""From how many labelled rows a fine-tuned model pays: F1 by the number of training rows.

    python how_many_labels.py run --data FOLDER      # fills results/how_many_labels.jsonl
    python how_many_labels.py list                   # the fits that are missing
    python how_many_labels.py show --picture labels.svg    # the table goes into docs/need.md

Models are skdice without settings, logistic regression on vectors of the frozen encoder, TF-IDF
(texts) or a random field (tags), and SetFit (texts, up to 300 rows), all but TF-IDF and the field
with MiniLM. SetFit is left out, with a line that says so, where it cannot be imported.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import time
import warnings
from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import tasks
from pages import replaced
from run import (
    HERE,
    add_common,
    add_runs,
    common_of,
    core_hours,
    described,
    environment,
    finish_or_exit,
    key,
    read,
    scores,
)
from small_batches import loaded

RESULTS = HERE / "results" / "how_many_labels.jsonl"
PAGE = HERE.parent.parent / "docs" / "need.md"
CELLS = {
    "sms": "SMS",
    "sst2": "SST-2",
    "anger": "GoEmotions, anger",
    "trec": "TREC, six types",
    "wnut17": "WNUT17",
    "ncbi": "NCBI-disease",
}
TAGS = ("wnut17", "ncbi")
SIZES = (20, 50, 100, 300, 1000)
MOST_OF_SETFIT = 300  # rows; with more it takes hours
MODELS = {
    "skdice": "skdice",
    "vectors": "vectors, logistic regression",
    "counts": "TF-IDF or random field",
    "setfit": "SetFit",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("command", choices=["run", "list", "show"])
    parser.add_argument("--data", type=Path, help="folder of the data sets")
    parser.add_argument("--cells", nargs="+", choices=CELLS, default=list(CELLS))
    parser.add_argument("--sizes", nargs="+", type=int, default=list(SIZES))
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    add_runs(parser, seeds=2)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--page", type=Path, default=PAGE, help="of show: it gets the table")
    parser.add_argument("--picture", type=Path, help="of show: where to draw the curves")
    add_common(parser)
    args = parser.parse_args()
    args.probabilities = None
    if args.command == "show":
        show(args)
        return
    if "setfit" in args.models and importlib.util.find_spec("setfit") is None:
        print("SetFit is left out: it is not installed here")
        args.models.remove("setfit")
    if args.command == "list":
        jobs = list(missing_jobs(args, read(args.out)))
        print(*map(key, jobs), f"{len(jobs)} fits", sep="\n")
    else:
        finish_or_exit(partial(missing_jobs, args), args, run)


# ---- what to run


def missing_jobs(args: Any, records: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """What has still to run, the fits of few rows first."""
    done = {key(record["job"]) for record in records}
    for seed, size, cell, model in product(range(args.seeds), args.sizes, args.cells, args.models):
        of_texts = model in ("vectors", "setfit")
        if (of_texts and cell in TAGS) or (model == "setfit" and size > MOST_OF_SETFIT):
            continue
        job = {"task": cell, "seed": seed, **common_of(vars(args)), "model": model}
        job |= {"train_rows": size, "dev_rows": 20, "test_rows": 2000, "loss": "ce_dice"}
        if key(job) not in done:
            yield job


# ---- one fit


def run(job: dict[str, Any], folder: Path, threads: int, _: Any = None) -> dict[str, Any]:
    """Fit one model and score it on the test rows."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    import torch
    from transformers.utils import logging

    logging.disable_progress_bar()
    logging.set_verbosity_error()
    warnings.simplefilter("ignore")
    torch.set_num_threads(threads)
    task = tasks.cell(loaded(job["task"], folder, 0), job)
    started, of_cpu = time.perf_counter(), time.process_time()
    model = estimator(task, job).fit(*task.train)
    record = {"job": job, "loss": described(job), "test": scores(task, model, task.test)}
    record["seconds"] = round(time.perf_counter() - started, 1)
    record["cpu_seconds"] = round(time.process_time() - of_cpu, 1)
    return record | environment()


def estimator(task: tasks.Task, job: dict[str, Any]) -> Any:
    import skdice

    seed, tags = job["seed"], task.kind == "tags"
    backbone = {"backbone": job["backbone"]} if "backbone" in job else {}
    if job["model"] == "skdice":
        params = {"precision": job["precision"], "random_state": seed, **backbone}
        if tags:
            return skdice.DiceTokenClassifier(**params)
        return skdice.DiceSequenceClassifier(pos_label=task.pos_label, **params)
    if job["model"] == "vectors":
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline

        return make_pipeline(skdice.TransformerFeatures(**backbone), LogisticRegression())
    if job["model"] == "setfit":
        return SetFit(seed, **backbone)
    if tags:
        return skdice.CRFTagger(random_state=seed)
    return skdice.TfidfClassifier(pos_label=task.pos_label, random_state=seed)


class SetFit:
    """SetFit with its own defaults, behind `fit` and `predict`."""

    def __init__(self, seed: int, backbone: str | None = None) -> None:
        from skdice.backbones import DEFAULT_BACKBONE, find_backbone

        self.seed, self.backbone = seed, backbone or find_backbone(DEFAULT_BACKBONE)

    def fit(self, X: list[str], y: list[str]) -> SetFit:
        import tempfile

        from datasets import Dataset
        from setfit import SetFitModel, Trainer, TrainingArguments

        names = sorted(set(y))
        self.model_ = SetFitModel.from_pretrained(self.backbone, labels=names, device="cpu")
        rows = Dataset.from_dict({"text": X, "label": [names.index(label) for label in y]})
        with tempfile.TemporaryDirectory() as folder:
            args = TrainingArguments(
                folder,
                seed=self.seed,
                report_to="none",
                save_strategy="no",
                logging_strategy="no",
                show_progress_bar=False,
            )
            Trainer(self.model_, args, train_dataset=rows).train()
        return self

    def predict(self, X: list[str]) -> np.ndarray:
        return np.array(self.model_.predict(X, use_labels=True))


# ---- what the records say


def curves(records: list[dict[str, Any]]) -> dict[tuple[str, str], dict[int, float]]:
    """F1 in points by set and model, and by rows: the mean over seeds."""
    found: dict[tuple[str, str], dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for record in records:
        job = record["job"]
        found[job["task"], job["model"]][job["train_rows"]].append(100 * record["test"]["f1"])
    return {
        of: {size: float(np.mean(values)) for size, values in sorted(sizes.items())}
        for of, sizes in found.items()
    }


def lines(records: list[dict[str, Any]], sizes: list[int]) -> Iterator[str]:
    found = curves(records)
    yield "| data set | model | " + " | ".join(f"{size:,}" for size in sizes) + " |"
    yield "|---|---" + "|---:" * len(sizes) + "|"
    for cell, model in product(CELLS, MODELS):
        if curve := found.get((cell, model)):
            cells = [f"{curve[size]:.1f}" if size in curve else "" for size in sizes]
            yield f"| {CELLS[cell]} | {MODELS[model]} | {' | '.join(cells)} |"


def show(args: Any) -> None:
    records = read(args.out)
    print(f"{len(records)} fits, {core_hours(records):.1f} core-hours\n")
    print(table := "\n".join(lines(records, args.sizes)))
    if args.out == RESULTS:
        args.page.write_text(
            replaced(args.page.read_text(), "labels to train", table, "how_many_labels.py")
        )
    if args.picture is not None:
        picture(curves(records), args.picture)


def picture(found: dict[tuple[str, str], dict[int, float]], file: Path) -> None:
    """A panel for each data set, a line for each model."""
    import matplotlib.pyplot as plt
    from report import save

    shown = [cell for cell in CELLS if any(cell == name for name, _ in found)]
    figure, axes = plt.subplots(1, len(shown), figsize=(2.2 * len(shown), 2.8), squeeze=False)
    handles: dict[str, Any] = {}
    for cell, ax in zip(shown, axes[0], strict=True):
        for model, title in MODELS.items():
            if curve := found.get((cell, model)):
                (handles[title],) = ax.plot(
                    list(curve), list(curve.values()), "o-", markersize=4,
                    color=f"C{list(MODELS).index(model)}",
                )  # fmt: skip
        ax.set_xscale("log")
        ax.set_xticks(SIZES, [f"{size:,}" for size in SIZES], fontsize=7)
        ax.minorticks_off()
        ax.grid(alpha=0.3)
        ax.set_title(CELLS[cell], fontsize=8)
        ax.set_xlabel("labelled rows", fontsize=8)
    axes[0, 0].set_ylabel("F1 on test")
    figure.legend(handles.values(), handles, loc="lower center", ncols=4, fontsize=8, frameon=False)
    figure.tight_layout(rect=(0, 0.1, 1, 1))
    save(figure, file)


if __name__ == "__main__":
    main()
