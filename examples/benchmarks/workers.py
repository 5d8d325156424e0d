"""Four processes on one journal file, one of them killed: is a trial lost, or done twice?

    python workers.py --trials 200 --workers 4

Each process runs the same search of a loss's parameters on the same made features. One is killed
with SIGKILL when half of the trials are done. At the end every trial is counted in the study.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import platform
import signal
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path

import optuna
import torch
from sklearn.datasets import make_classification

from skdice import DiceClassifier, __version__
from skdice.model_selection import LossSearchCV, loss_space


def storage(path: str) -> optuna.storages.JournalStorage:
    backend = optuna.storages.journal.JournalFileBackend(path)
    return optuna.storages.JournalStorage(backend)


def work(path: str, n_trials: int) -> None:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    X, y = make_classification(600, 20, weights=[0.95], random_state=0)
    LossSearchCV(
        DiceClassifier(max_epochs=5, random_state=0),
        loss_space("tversky"),
        n_trials=n_trials,
        cv=3,
        scoring="f1",
        pruner=None,
        strategy="full",
        storage=storage(path),
        study_name="workers",
    ).fit(X, y)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--workers", type=int, default=4)
    args = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore")
    spawn = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "study.log")
        optuna.create_study(study_name="workers", storage=storage(path), direction="maximize")
        started = time.perf_counter()
        workers = [
            spawn.Process(target=work, args=(path, args.trials)) for _ in range(args.workers)
        ]
        for worker in workers:
            worker.start()
        study = optuna.load_study(study_name="workers", storage=storage(path))
        doomed = workers[0].pid
        while True:  # until half is done and the first worker is in the middle of a trial
            trials = study.get_trials(deepcopy=False)
            done = sum(trial.state.name == "COMPLETE" for trial in trials)
            at_work = [
                trial.number
                for trial in trials
                if trial.state.name == "RUNNING" and doomed in trial.user_attrs.get("worker", ())
            ]
            if done >= args.trials // 2 and at_work:
                os.kill(doomed, signal.SIGKILL)
                break
            time.sleep(0.02)
        for worker in workers:
            worker.join()
        seconds = time.perf_counter() - started
        trials = study.get_trials(deepcopy=False)
    complete = [trial for trial in trials if trial.state.name == "COMPLETE"]
    lost = [trial.number for trial in trials if "lost" in trial.user_attrs]
    retried = {trial.user_attrs.get("retry_of") for trial in complete} - {None}
    by_worker = Counter(trial.user_attrs["worker"][1] for trial in complete)
    settings = {tuple(sorted(trial.params.items())) for trial in complete}
    print(
        f"{args.workers} processes, {args.trials} trials x 3 folds, {seconds:.0f} s; skdice "
        f"{__version__}, optuna {optuna.__version__}, Python {platform.python_version()}, "
        f"{time.strftime('%Y-%m-%d')}"
    )
    print(f"worker 0 was killed when {done} trials were done, in the middle of trial {at_work}")
    print(f"exit codes {[worker.exitcode for worker in workers]}")
    print(f"states {dict(Counter(trial.state.name for trial in trials))}")
    print(f"complete {len(complete)}, with {len(settings)} different settings")
    print(f"complete by worker {[by_worker[worker.pid] for worker in workers]}")
    print(f"killed in the middle {lost}, run again {sorted(retried)}")
    assert len(complete) == len(settings) == args.trials
    assert len(lost) == 1
    assert retried == set(lost)


if __name__ == "__main__":
    main()
