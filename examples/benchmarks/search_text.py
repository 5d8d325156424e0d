"""Heads against full fits in a search over Tversky's alpha.

    python search_text.py wnut17 FOLDER --trials 64 --limit 600 --out results/search.jsonl
    python search_text.py sms FILE --trials 64 --limit 600

`strategy="full"`, `strategy="shared"` and, if installed, `optuna_integration.OptunaSearchCV` search
the same trials (Optuna's random sampler with the same seed). Times are of whole searches with the
refit. The best estimator of each is scored on rows that no search saw.

The rank agreement is Spearman's correlation over all trials between the scores of the heads and
those of full fits. Its upper bound is the agreement of full fits with full fits on other folds and
with another seed, computed over some of the trials.

The best of many scores is partly luck, and `full` has more scores to choose from. So each winner is
cross-validated `--repeats` more times, with folds and seeds that no search used.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import torch
from optuna.distributions import FloatDistribution
from optuna.samplers import RandomSampler
from skdice.model_selection.finalists import agreement
from sklearn.base import clone
from sklearn.metrics import f1_score, make_scorer
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_score
from transformers.utils import logging

from skdice import DiceSequenceClassifier, DiceTokenClassifier, __version__
from skdice.datasets import read_conll
from skdice.losses import resolve_loss
from skdice.metrics import span_f1_score
from skdice.model_selection import LossSearchCV, loss_space


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("task", choices=["wnut17", "sms"])
    parser.add_argument("path", type=Path)
    parser.add_argument("--trials", type=int, default=64)
    parser.add_argument("--folds", type=int, default=3)
    parser.add_argument("--limit", type=int, default=600, help="rows to search on")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--lr", type=float, default=3e-4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--repeats", type=int, default=5, help="of the winners, on other folds")
    parser.add_argument("--repeated-trials", type=int, default=16, help="of full, on other folds")
    parser.add_argument("--frozen", type=int, help="lowest layers of the estimator")
    parser.add_argument("--skip", nargs="*", default=[], choices=["full", "integration"])
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    logging.disable_progress_bar()
    warnings.simplefilter("ignore")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    X, y, X_test, y_test, estimator, scoring = load(args)
    settings = {"batch_size": args.batch_size, "lr": args.lr, "precision": "bf16"}
    estimator.set_params(max_epochs=args.epochs, random_state=0, **settings)
    if args.frozen is not None:
        estimator.set_params(frozen=args.frozen)
    common: dict[str, Any] = {"n_trials": args.trials, "cv": args.folds, "scoring": scoring}
    record: dict[str, Any] = {
        "task": args.task,
        "trials": args.trials,
        "folds": args.folds,
        "rows": len(X),
        "epochs": args.epochs,
        "batch_size": args.batch_size,
        "lr": args.lr,
        "frozen": estimator.frozen,
        "seed": args.seed,
        "skdice": __version__,
        "torch": torch.__version__,
        "optuna": optuna.__version__,
        "python": platform.python_version(),
        "threads": torch.get_num_threads(),
        "device": "cuda" if torch.cuda.is_available() else "cpu",
        "date": time.strftime("%Y-%m-%d"),
    }
    searches: dict[str, Any] = {}
    for name in ("shared", "full"):
        if name in args.skip:
            continue
        searches[name] = LossSearchCV(
            estimator,
            loss_space("tversky"),
            strategy=name,
            trials_at_once=args.trials,
            pruner=None,
            sampler=RandomSampler(seed=args.seed),
            **common,
        )
    if "integration" not in args.skip:
        searches["OptunaSearchCV"] = integration(estimator, common, args.seed)
    for name, search in searches.items():
        started = time.perf_counter()
        search.fit(X, y)
        seconds = time.perf_counter() - started
        test = scoring(search.best_estimator_, X_test, y_test)
        print(
            f"{name}: {seconds:.0f} s, cross-validated {100 * search.best_score_:.2f}, on unseen "
            f"rows {100 * test:.2f}, alpha {search.best_params_['loss__alpha']:.2f}",
            flush=True,
        )
        record[name] = {
            "seconds": seconds,
            "cv": search.best_score_,
            "test": test,
            "alpha": search.best_params_["loss__alpha"],
        }
        if name not in ("full", "OptunaSearchCV"):
            record[name]["scores"] = of_heads(search).round(4).tolist()
    for name, search in searches.items():
        model = clone(search.estimator).set_params(**search.best_params_)
        again = repeated(model, X, y, scoring, args, args.repeats)
        record[name]["again"] = again
        print(f"{name}, {args.repeats} other cross-validations: {100 * np.mean(again):.2f}")
    if "full" in searches:
        heads = of_heads(searches["shared"])
        full = searches["full"].cv_results_["mean_test_score"]
        alphas = [
            [p["loss__alpha"] for p in searches[name].cv_results_["params"]]
            for name in ("shared", "full")
        ]
        assert alphas[0] == alphas[1]
        record["agreement"] = agreement(heads, full)
        record["curve"] = np.column_stack([alphas[0], heads, full]).round(4).tolist()
        # Evenly over alpha, whatever they scored.
        order = np.argsort(alphas[0])
        rows = order[np.linspace(0, len(order) - 1, args.repeated_trials).round().astype(int)]
        others = []
        for row in rows:
            params = searches["full"].cv_results_["params"][row]
            model = clone(estimator).set_params(**params)
            others += repeated(model, X, y, scoring, args, 1)
        record["agreement_of_full"] = agreement(full[rows], others)
        record["agreement_of_heads_there"] = agreement(heads[rows], full[rows])
        print(
            f"over {len(rows)} trials: full with full on other folds "
            f"{record['agreement_of_full']:.2f}, heads with full "
            f"{record['agreement_of_heads_there']:.2f}"
        )
        ratio = record["full"]["seconds"] / record["shared"]["seconds"]
        print(f"agreement with full {record['agreement']:.2f}, full / shared time {ratio:.1f}")
    if args.out is not None:
        with args.out.open("a") as file:
            file.write(json.dumps(record) + "\n")


def of_heads(search: Any) -> Any:
    """Scores of heads."""
    return search.cv_results_["mean_shared_score"]


def load(args: Any) -> Any:
    """Rows to search on and others, an estimator, and what is scored."""
    if args.task == "wnut17":
        X, y = read_conll(args.path / "wnut17train.conll")
        X_test, y_test = read_conll(args.path / "emerging.dev.conll")
        return X[: args.limit], y[: args.limit], X_test, y_test, DiceTokenClassifier(), spans
    rows = [line.split("\t", 1) for line in args.path.read_text("utf-8").splitlines() if line]
    texts, labels = [text for _, text in rows], np.array([label for label, _ in rows])
    scorer = make_scorer(f1_score, pos_label="spam", zero_division=0)
    estimator = DiceSequenceClassifier(pos_label="spam")
    rest = slice(args.limit, args.limit + 2000)
    return (
        texts[: args.limit], labels[: args.limit], texts[rest], labels[rest], estimator, scorer
    )  # fmt: skip


def repeated(model: Any, X: Any, y: Any, scoring: Any, args: Any, times: int) -> list[float]:
    """Cross-validated scores on folds and with seeds that no search had."""
    folds = KFold if args.task == "wnut17" else StratifiedKFold
    means = []
    for seed in range(1, times + 1):
        cv = folds(args.folds, shuffle=True, random_state=seed)
        model.set_params(random_state=seed)
        means.append(float(cross_val_score(model, X, y, cv=cv, scoring=scoring).mean()))
    return means


def spans(model: Any, X: Any, y: Any) -> float:
    # Other than `score` this takes tags that a small fold's training rows do not have.
    return float(span_f1_score(y, model.predict(X), scheme=model.scheme_))


def integration(estimator: Any, common: dict[str, Any], seed: int) -> Any:
    """Optuna's own search over alpha."""
    from optuna_integration import OptunaSearchCV

    # It has no tied parameters, so alpha alone is searched, with beta as it is by default.
    model = clone(estimator).set_params(loss=resolve_loss("tversky"))
    study = optuna.create_study(direction="maximize", sampler=RandomSampler(seed=seed))
    space = {"loss__alpha": FloatDistribution(0.1, 0.9)}
    return OptunaSearchCV(model, space, study=study, refit=True, **common)


if __name__ == "__main__":
    main()
