"""Shared search against one trial at a time, on frozen features: the same 64 trials on 3 folds.

    python search.py SMSSpamCollection --runs 3

Both run the same trials (Optuna's random sampler with the same seed) in turns and find the same
best parameters. Only the time differs. The texts are encoded once, before the search.
"""

from __future__ import annotations

import argparse
import platform
import time
from pathlib import Path

import numpy as np
import optuna
import torch

from skdice import DiceClassifier, TransformerFeatures, __version__
from skdice.model_selection import LossSearchCV, loss_space


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path, help="label TAB text")
    parser.add_argument("--trials", type=int, default=64)
    parser.add_argument("--folds", type=int, default=3)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--limit", type=int)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    rows = [line.split("\t", 1) for line in args.file.read_text("utf-8").splitlines() if line]
    rows = rows[: args.limit]
    y = np.array([label for label, _ in rows])
    X = TransformerFeatures().fit_transform([text for _, text in rows])
    print(
        f"{len(y)} messages, {X.shape[1]} features, {args.trials} trials over alpha x {args.folds} "
        f"folds, {args.epochs} epochs, refit included; skdice {__version__}, torch "
        f"{torch.__version__}, optuna {optuna.__version__}, Python {platform.python_version()}, "
        f"{args.threads} threads, {time.strftime('%Y-%m-%d')}"
    )
    times: dict[str, list[float]] = {"full": [], "shared": []}
    for run in range(args.runs):
        found = {}
        for strategy in times:
            search = LossSearchCV(
                DiceClassifier(max_epochs=args.epochs, pos_label="spam", random_state=0),
                loss_space("tversky"),
                n_trials=args.trials,
                trials_at_once=args.trials,
                cv=args.folds,
                scoring="f1_macro",
                pruner=None,
                sampler=optuna.samplers.RandomSampler(seed=run),
                strategy=strategy,
            )
            started = time.perf_counter()
            found[strategy] = search.fit(X, y)
            times[strategy].append(time.perf_counter() - started)
        scores = {name: f"{100 * search.best_score_:.3f}" for name, search in found.items()}
        same = np.abs(
            found["full"].cv_results_["mean_test_score"]
            - found["shared"].cv_results_["mean_test_score"]
        ).max()
        print(
            f"run {run}: full {times['full'][-1]:.1f} s, shared {times['shared'][-1]:.2f} s, "
            f"best macro F1 {scores}, largest difference of a trial's score {same:.2g}",
            flush=True,
        )
    ratios = np.array(times["full"]) / np.array(times["shared"])
    print(f"ratio: median {np.median(ratios):.1f}, from {ratios.min():.1f} to {ratios.max():.1f}")


if __name__ == "__main__":
    main()
