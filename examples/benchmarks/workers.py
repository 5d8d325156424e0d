"""Four processes share one SQLite study and one is killed: is a trial lost or done twice?

    python workers.py --trials 200 --workers 4

Each process runs the same search of a loss's parameters on the same generated features. One is
killed with SIGKILL when half of the trials are done. At the end the trials in the study are
counted.
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import platform
import tempfile
import time
import warnings
from pathlib import Path

import optuna
import torch
from sklearn.datasets import make_classification

from skdice import DiceClassifier, __version__
from skdice.model_selection import LossSearchCV, loss_space


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
        storage=path,
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
        path = str(Path(folder) / "study.db")
        started = time.perf_counter()
        workers = [
            spawn.Process(target=work, args=(path, args.trials)) for _ in range(args.workers)
        ]
        for worker in workers:
            worker.start()
        while (done := len(complete(path))) < args.trials // 2:
            time.sleep(0.1)
        workers[0].kill()
        for worker in workers:
            worker.join()
        seconds = time.perf_counter() - started
        trials = complete(path)
    settings = {tuple(sorted(trial.params.items())) for trial in trials}
    print(
        f"{args.workers} processes, {args.trials} trials x 3 folds, {seconds:.0f} s; skdice "
        f"{__version__}, optuna {optuna.__version__}, Python {platform.python_version()}, "
        f"{time.strftime('%Y-%m-%d')}"
    )
    print(f"worker 0 was killed when {done} trials were done")
    print(f"exit codes {[worker.exitcode for worker in workers]}")
    print(f"complete {len(trials)}, with {len(settings)} different settings")
    # The others may each have been at their last trial when the study was complete.
    assert args.trials <= len(trials) == len(settings) < args.trials + args.workers - 1


def complete(path: str) -> list[optuna.trial.FrozenTrial]:
    """The complete trials of a study, none before it is there."""
    with contextlib.suppress(Exception):
        study = optuna.load_study(study_name="workers", storage=f"sqlite:///{path}")
        return [trial for trial in study.trials if trial.state.name == "COMPLETE"]
    return []


if __name__ == "__main__":
    main()
