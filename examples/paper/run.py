"""Run the experiments of one table.

    python run.py table7 --data FOLDER                    # the paper's rows, default losses
    python run.py rivals --data FOLDER --tasks wnut17 --seeds 5 --workers 2
    python run.py table7 --data FOLDER --limit 64 --seeds 1 --out /tmp/trial.jsonl   # a trial

Every finished run is one JSON line in --out, with its settings, figures, versions and hardware.
Runs that --out holds are not repeated, so a killed command continues where it stopped, and tables
share runs. If a run fails, the error is printed and the others continue. Then `report.py` makes
tables and charts from the runs of one --precision, --backbone and --limit.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import os
import platform
import subprocess
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from copy import copy
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import table8
import tasks
import torch
from experiments import BUDGET_SETTINGS, EXPERIMENTS, SETTINGS, Experiment, Row
from skorch.callbacks import Callback

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "runs.jsonl"
# What the runs of a table have in common, by the names of the options.
COMMON: dict[str, Any] = {"precision": "bf16", "backbone": None, "limit": None}


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table", choices=EXPERIMENTS)
    parser.add_argument("--data", type=Path, required=True, help="folder of the data sets")
    parser.add_argument("--tasks", nargs="+", help="some of the table's data sets only")
    parser.add_argument("--rows", nargs="+", help="some of the table's rows only, by label")
    add_runs(parser, seeds=5)
    parser.add_argument(
        "--probabilities", type=Path, help="folder that keeps them for decisions.py"
    )
    add_common(parser)
    parser.add_argument("--out", type=Path, default=RESULTS)
    args = parser.parse_args(argv)
    experiment = narrowed(EXPERIMENTS[args.table], args.tasks, args.rows)
    for name in experiment.tasks:
        tasks.load(name, args.data)  # says what is missing
    args.out.parent.mkdir(parents=True, exist_ok=True)
    missing = partial(missing_jobs, experiment, seeds=args.seeds, common=common_of(vars(args)))
    if failures := finish(missing, args):
        print(f"\n{len(failures)} failed; runs that wait for their figures were not begun:")
        raise SystemExit("\n".join(failures))


def add_runs(parser: argparse.ArgumentParser, seeds: int) -> None:
    """The options that say how many runs are made, and how."""
    parser.add_argument("--seeds", type=int, default=seeds)
    parser.add_argument("--workers", type=int, default=1, help="runs at a time")
    parser.add_argument("--threads", type=int, default=1, help="of torch, for each run")
    parser.add_argument(
        "--hours", type=float, default=float("inf"), help="begin no run past these hours in --out"
    )


def add_common(parser: argparse.ArgumentParser) -> None:
    """The options of `COMMON`."""
    parser.add_argument(
        "--precision", choices=["auto", "fp32", "bf16"], default=COMMON["precision"]
    )
    parser.add_argument("--backbone", help="instead of the default one")
    parser.add_argument("--limit", type=int, help="rows of each part, to try the machinery")


def common_of(given: dict[str, Any]) -> dict[str, Any]:
    """What is given of `COMMON`, by options or in a job."""
    return {name: given[name] for name in COMMON if given.get(name) is not None}


def flags(common: dict[str, Any]) -> str:
    """The options that ask for `common`."""
    return "".join(f" --{name} {v}" for name, v in common.items() if v != COMMON[name])


def finish(
    missing: Callable[[list[dict[str, Any]]], Iterable[dict[str, Any]]],
    args: argparse.Namespace,
    work: Callable[..., dict[str, Any]] | None = None,
) -> list[str]:
    """Run the jobs that are missing from the records, each once; returns what failed.

    `work` is what runs one, instead of `run`.
    """
    running: dict[Future[dict[str, Any]], tuple[dict[str, Any], Executor]] = {}
    tried: set[str] = set()
    failures: list[str] = []
    with ExitStack() as workers:
        idle = [workers.enter_context(new_worker()) for _ in range(args.workers)]
        while True:
            for job in missing(read(args.out)):
                if not idle or core_hours(read(args.out)) >= args.hours:
                    break
                if key(job) not in tried:
                    tried.add(key(job))
                    worker = idle.pop()
                    started = worker.submit(
                        work or run, job, args.data, args.threads, args.probabilities
                    )
                    running[started] = job, worker
            if not running:
                return failures
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                job, worker = running.pop(future)
                error = future.exception()
                if isinstance(error, BrokenProcessPool):
                    worker = workers.enter_context(new_worker())
                idle.append(worker)
                if error is None:
                    append(args.out, future.result())
                    print(line(future.result()), flush=True)
                else:
                    failures.append(f"{title(job)}: {type(error).__name__}: {error}")
                    traceback.print_exception(error)
                    print(f"failed: {failures[-1]}", flush=True)


def finish_or_exit(missing: Any, args: argparse.Namespace, work: Any = None) -> None:
    """Do what `finish` does, and end the command with what failed."""
    if args.data is None:
        raise SystemExit("--data is missing: the folder of the data sets")
    args.out.parent.mkdir(parents=True, exist_ok=True)
    if failures := finish(missing, args, work):
        raise SystemExit("\n".join([f"{len(failures)} failed:", *failures]))


def core_hours(records: list[dict[str, Any]]) -> float:
    """Processor time; of old records the time by the clock, which on a busy machine is longer."""
    seconds = (r.get("cpu_seconds", r["seconds"] * r.get("threads", 1)) for r in records)
    return sum(seconds) / 3600


def new_worker() -> Executor:
    """One process for one run at a time: if it is killed, the others go on."""
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(1, context, initializer=end_with_parent)


def end_with_parent() -> None:
    """Let a worker end with a command that is killed, and not go on for nobody."""
    parent = multiprocessing.parent_process()

    def watch() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def narrowed(experiment: Experiment, names: Any, labels: Any) -> Experiment:
    """Some of the data sets and rows; cross-entropy stays, since others take its rate."""
    for asked, known in (
        (names, experiment.tasks),
        (labels, [row.label for row in experiment.rows]),
    ):
        if unknown := set(asked or ()) - set(known):
            raise SystemExit(f"{sorted(unknown)} is not in this table: it has {known}")
    rows = [row for row in experiment.rows if not labels or row.label in [*labels, "ce"]]
    return replace(experiment, tasks=names or experiment.tasks, rows=rows)


# ---- what to run


def key(job: dict[str, Any]) -> str:
    return json.dumps(job, sort_keys=True)


def job_of(task: str, row: Row, params: dict[str, Any], seed: int, common: Any) -> dict[str, Any]:
    """All that a run depends on, as plain values."""
    how = {"sampler": row.sampler, "reader": row.reader or None, "train_set": row.train_set}
    given = {name: value for name, value in how.items() if value is not None}
    settings = SETTINGS[task]
    if "keep" in params:
        settings = settings | BUDGET_SETTINGS.get(task, {})
    if "faster" in params:
        params = {**params, "lr": settings["lr"] * params["faster"]}
        del params["faster"]
    return {"task": task, "seed": seed, **common, **given, **settings, **params}


def missing_jobs(
    experiment: Experiment, records: list[dict[str, Any]], seeds: int, common: Any
) -> Iterator[dict[str, Any]]:
    """What has still to run and can, seed by seed so that an interrupt leaves whole tables."""
    done = {key(record["job"]): record for record in records}
    chosen: dict[tuple[str, str], dict[str, Any] | None] = {}
    for task in experiment.tasks:
        for row in experiment.rows:
            jobs = candidates(experiment, done, task, row, common)
            for job in jobs or []:
                if len(jobs or []) > 1 and key(job) not in done:
                    yield job
    for seed in range(seeds):
        for task in experiment.tasks:
            for row in experiment.rows:
                if (task, row.label) not in chosen:
                    chosen[task, row.label] = choice(experiment, done, task, row, common)
                best = chosen[task, row.label]
                if best is not None and key({**best, "seed": seed}) not in done:
                    yield {**best, "seed": seed}


def candidates(
    experiment: Experiment, done: dict[str, Any], task: str, row: Row, common: Any
) -> list[dict[str, Any]] | None:
    """The row's candidates with seed 0; None while they wait for cross-entropy's rate."""
    rate = {}
    if experiment.rate_of_ce and "lr" not in row.candidates[0]:
        leader = next(other for other in experiment.rows if other.label == "ce")
        best = choice(experiment, done, task, leader, common)
        if best is None:
            return None
        rate = {"lr": best["lr"]}
    return [job_of(task, row, {**rate, **params}, 0, common) for params in row.candidates]


def choice(
    experiment: Experiment, done: dict[str, Any], task: str, row: Row, common: Any
) -> dict[str, Any] | None:
    """The candidate with the best development score; None before all have run."""
    jobs = candidates(experiment, done, task, row, common)
    if jobs is None or len(jobs) == 1:
        return jobs[0] if jobs else None
    if any(key(job) not in done for job in jobs):
        return None
    measure = experiment.measure
    return max(jobs, key=lambda job: done[key(job)][row.decision]["dev"][measure])


# ---- one run


def run(
    job: dict[str, Any], folder: Path, threads: int, probabilities: Path | None = None
) -> dict[str, Any]:
    """Fit and score one model, with and without a decision tuned on the development rows."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    from transformers.utils import logging

    logging.disable_progress_bar()
    warnings.simplefilter("ignore")
    torch.set_num_threads(threads)
    started, of_cpu = time.perf_counter(), time.process_time()
    task = tasks.load(job["task"], folder, job["seed"], job.get("limit"))
    dev = {"X_val": task.dev[0], "y_val": task.dev[1]}
    if "dev_rows" in job:
        task, dev = tasks.cell(task, job), {}
    model = estimator_for(task, job)
    X, y = training_rows(task, job)
    model.fit(X, y, **dev)
    seconds = time.perf_counter() - started
    # What the name stood for on that day.
    record = {"job": job, "loss": described(job), "seconds": round(seconds, 1)}
    record |= {"cpu_seconds": round(time.process_time() - of_cpu, 1), **environment()}
    record["history"] = [
        {name: epoch[name] for name in ("train_loss", "valid_score") if name in epoch}
        for epoch in model.history_
    ]
    for name, decided in decisions(task, model).items():
        record[name] = {
            part: scores(task, decided, getattr(task, part)) for part in ("dev", "test")
        }
    if probabilities is not None:
        keep(probabilities, task, model, job)
    return record


def keep(folder: Path, task: tasks.Task, model: Any, job: dict[str, Any]) -> None:
    """Write the probabilities of the development and test rows, for `decisions.py`."""
    folder.mkdir(parents=True, exist_ok=True)
    found = {part: model.predict_proba(getattr(task, part)[0]) for part in ("dev", "test")}
    if task.kind == "tags":
        found = {part: np.concatenate(list(rows)) for part, rows in found.items()}
    name = hashlib.sha256(key(job).encode()).hexdigest()[:16]
    tables = {part: np.asarray(rows, np.float32) for part, rows in found.items()}
    np.savez_compressed(folder / f"{name}.npz", job=key(job), classes=model.classes_, **tables)


def estimator_for(task: tasks.Task, job: dict[str, Any]) -> Any:
    """An unfitted estimator of skdice with all that the job says."""
    import skdice

    kinds = {
        "tags": skdice.DiceMRCTagger if job.get("reader") else skdice.DiceTokenClassifier,
        "labels": skdice.DiceSequenceClassifier,
        "answers": skdice.DiceQuestionAnswerer,
    }
    own = ("task", "seed", "limit", "sampler", "reader", "train_set", "keep", "start")
    own += ("train_rows", "dev_rows", "test_rows")
    params = {name: value for name, value in job.items() if name not in own and name[:4] != "loss"}
    model = kinds[task.kind](random_state=job["seed"], loss=loss_of(job))
    if kinds[task.kind] is skdice.DiceTokenClassifier:
        # Records from before it was the default say nothing of it.
        params.setdefault("constrained", False)
    # Records from before skdice chose the start say nothing of it, and began at zero.
    params["callbacks"] = [Start(job.get("start", "zero"))]
    if task.kind == "answers":
        params |= {"max_length": 384, "stride": 128}
    elif job.get("keep") != "last":
        # The best epoch by development F1 is kept, in every row alike.
        params |= {"early_stopping": True, "n_iter_no_change": job["max_epochs"]}
    if task.pos_label is not None:
        params["pos_label"] = task.pos_label
    if "sampler" in job:
        params["sampler"] = sampler(task.kind, job["sampler"], job["seed"])
    return model.set_params(**params)


def loss_of(job: dict[str, Any]) -> Any:
    """What the job's loss stands for today."""
    from sklearn.base import clone

    from skdice.losses.base import resolve_loss

    options = {name[6:]: value for name, value in job.items() if name[:6] == "loss__"}
    return clone(resolve_loss(job["loss"])).set_params(**options)


class Start(Callback):
    """Set the bias of the layer that makes the logits before the first update.

    Parameters
    ----------
    start : {"zero", "log_prior"}
        The second is the logarithm of the classes' shares (Lin et al. 2017, section 4.1).
    """

    def __init__(self, start: str) -> None:
        self.start = start

    @torch.no_grad()
    def on_train_begin(self, net: Any, X: Any = None, y: Any = None, **kwargs: Any) -> None:
        bias = net.module_.output_layer.bias
        bias.zero_()
        if self.start == "log_prior":
            of_texts = isinstance(X.targets, np.ndarray)
            targets, weights = (X.targets, X.shares) if of_texts else X.flat_targets()
            counts = np.bincount(targets, weights, minlength=len(bias))
            shares = torch.as_tensor(counts / counts.sum())
            bias.copy_(shares.clamp(min=1e-6).log())


def described(job: dict[str, Any]) -> str:
    """The job's loss with all its settings."""
    return repr(loss_of(job))


def sampler(kind: str, name: str, seed: int) -> Any:
    from imblearn.over_sampling import RandomOverSampler
    from imblearn.under_sampling import RandomUnderSampler

    from skdice.resampling import BackgroundUnderSampler, TagOverSampler

    found: Any = {"over": RandomOverSampler, "under": RandomUnderSampler}
    if kind == "tags":
        found = {"over": TagOverSampler, "under": BackgroundUnderSampler}
    return found[name](random_state=seed)


def training_rows(task: tasks.Task, job: dict[str, Any]) -> Any:
    X, y = tasks.sample(task.train, job.get("train_rows"))
    if "train_set" not in job:
        return X, y
    return table8.training_sets(X, y, job["seed"])[job["train_set"]]


def decisions(task: tasks.Task, model: Any) -> dict[str, Any]:
    """The fitted model as it is and with its decision tuned on the development rows."""
    from skdice import BiasTunedClassifier, BiasTunedTagger, DiceMRCTagger

    tuner: Any
    if task.kind == "labels" and len(model.classes_) == 2:
        tuner = BiasTunedClassifier(model, cv="prefit", pos_label=task.pos_label)
    elif isinstance(model, DiceMRCTagger):
        return {"plain": model, "tuned": copy(model).tune_threshold(*task.dev)}
    elif task.kind == "tags":
        tuner = BiasTunedTagger(model, cv="prefit")
    else:
        return {"plain": model}
    # One pass over each part serves both decisions: the plain one has biases of 0.
    model.predict_proba = remembered(model.predict_proba)
    tuned = tuner.fit(*task.dev)
    plain = copy(tuned)
    plain.bias_ = np.zeros_like(tuned.bias_)
    return {"plain": plain, "tuned": tuned}


def remembered(method: Any) -> Any:
    """The method, run once for each list of rows that it is given."""
    known: list[tuple[Any, Any]] = []

    def call(X: Any) -> Any:
        for rows, found in known:
            if rows is X:
                return found
        known.append((X, method(X)))
        return known[-1][1]

    return call


def scores(task: tasks.Task, model: Any, part: tuple[list[Any], list[Any]]) -> dict[str, float]:
    """Precision, recall and F1 (and accuracy); of answers, exact match and F1."""
    from sklearn.metrics import precision_recall_fscore_support

    from skdice.metrics import (
        answer_exact_match_score,
        answer_f1_score,
        span_precision_recall_fscore_support,
    )

    X, y = part
    predicted = model.predict(X)
    if task.kind == "answers":
        return {
            "exact_match": answer_exact_match_score(y, predicted),
            "f1": answer_f1_score(y, predicted),
        }
    found: dict[str, float] = {}
    if task.kind == "tags":
        values = span_precision_recall_fscore_support(y, predicted, average="micro")
    else:
        truth = np.asarray(y)
        found["accuracy"] = float((truth == predicted).mean())
        average = "macro" if task.pos_label is None else "binary"
        if task.pos_label is not None:
            truth, predicted = truth == task.pos_label, predicted == task.pos_label
        values = precision_recall_fscore_support(truth, predicted, average=average, zero_division=0)
    return {
        **dict(zip(("precision", "recall", "f1"), map(float, values[:3]), strict=True)),
        **found,
    }


def environment() -> dict[str, Any]:
    import sklearn
    import transformers

    import skdice

    cuda = torch.cuda.is_available()
    return {
        "skdice": skdice.__version__,
        "commit": commit(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "sklearn": sklearn.__version__,
        "python": platform.python_version(),
        "device": torch.cuda.get_device_name() if cuda else platform.machine(),
        "threads": torch.get_num_threads(),
        "date": time.strftime("%Y-%m-%d"),
    }


def commit() -> str | None:
    """That of the code, if it is in a repository."""
    command = ["git", "-C", str(HERE), "rev-parse", "--short", "HEAD"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    return found.stdout.strip() or None


# ---- results


def append(path: Path, record: dict[str, Any]) -> None:
    """Write a line, apart from one that a kill cut short."""
    with path.open("a+b") as file:
        file.seek(max(file.tell() - 1, 0))
        start = b"" if file.read() in (b"", b"\n") else b"\n"
        file.write(start + json.dumps(record).encode() + b"\n")


def read(path: Path) -> list[dict[str, Any]]:
    """The finished runs of losses as they are now; lines that a kill cut short are passed over."""
    found = []
    for text in path.read_text().splitlines() if path.exists() else []:
        try:
            record = json.loads(text)
        except json.JSONDecodeError:
            continue
        if record["loss"] == described(record["job"]):
            found.append(record)
    return found


def title(job: dict[str, Any]) -> str:
    what = {
        name: value
        for name, value in job.items()
        if name not in ("task", "batch_size", "precision")
    }
    return f"{job['task']} {what}"


def line(record: dict[str, Any]) -> str:
    if "plain" not in record:
        return f"{title(record['job'])} ({record['seconds']:.0f} s)"
    test = " ".join(f"{name} {100 * v:.2f}" for name, v in record["plain"]["test"].items())
    more = f" | tuned {100 * record['tuned']['test']['f1']:.2f}" if "tuned" in record else ""
    dev = 100 * record["plain"]["dev"]["f1"]
    return f"{title(record['job'])}: dev {dev:.2f} test {test}{more} ({record['seconds']:.0f} s)"


if __name__ == "__main__":
    main()
