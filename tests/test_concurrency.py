"""Threads and processes: the same answers as one after the other, and no deadlock."""

from __future__ import annotations

import multiprocessing
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.metrics import f1_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold

from skdice import DiceClassifier, DiceSequenceClassifier, DiceTokenClassifier
from skdice.model_selection import LossSearchCV, loss_space
from tests.processes import forkserver


@pytest.fixture
def models(tiny_backbone, sentences):
    X, y = sentences
    texts = [" ".join(words) for words in X]
    labels = [int(any(tag != "O" for tag in row)) for row in y]
    common = dict(backbone=tiny_backbone, max_epochs=1, batch_size=2, random_state=0, lr=1e-2)
    return [
        (DiceTokenClassifier(**common), X, y),
        (DiceSequenceClassifier(loss="dsc", **common), texts, labels),
    ]


@pytest.mark.parametrize("which", [0, 1])
def test_predictions_from_eight_threads_are_those_of_one(models, which):
    model, X, y = models[which]
    model.fit(X, y)
    parts = [(X * 3)[i : i + 3] for i in range(8)]
    alone = [[np.asarray(p) for p in model.predict_proba(part)] for part in parts]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(5):
            together = list(pool.map(model.predict_proba, parts))
            for one, other in zip(alone, together, strict=True):
                for a, b in zip(one, other, strict=True):
                    np.testing.assert_allclose(a, b, atol=1e-6)


def test_two_fits_in_threads_end(models):
    with ThreadPoolExecutor(2) as pool:
        fitted = list(pool.map(lambda m: clone(m[0]).fit(m[1], m[2]), models))
    for model, (_, X, y) in zip(fitted, models, strict=True):
        assert len(model.predict(X)) == len(y)
        assert np.isfinite(model.history_[-1]["train_loss"])


@pytest.mark.slow
@pytest.mark.parametrize("which", [0, 1])
def test_a_grid_in_two_processes_finds_what_one_process_finds(models, which):
    model, X, y = models[which]
    grids = [
        GridSearchCV(model, {"loss": ["ce", "dsc"]}, cv=2, n_jobs=n_jobs).fit(X * 3, list(y) * 3)
        for n_jobs in (None, 2)
    ]
    scores = [grid.cv_results_["mean_test_score"] for grid in grids]
    np.testing.assert_allclose(*scores, atol=1e-6)


@pytest.mark.slow  # but for the grids above, whose processes it finds
def test_trials_in_parallel_and_fit_parameters(tmp_path):
    X, y = make_classification(240, weights=[0.85], flip_y=0.05, random_state=0)
    weights, base = np.where(y == 1, 3.0, 1.0), DiceClassifier(max_epochs=5, random_state=0)
    how = {"cv": 2, "scoring": "f1", "strategy": "full", "pruner": None, "random_state": 0}
    how |= {"n_jobs": 2, "storage": tmp_path / "study.db"}
    found = LossSearchCV(base, loss_space("tversky"), n_trials=5, **how)
    found.fit(X, y, sample_weight=weights)
    assert len(found.study_.trials) in (5, 6)  # one process may have been at its last
    params = found.cv_results_["params"][0]
    for k, (train, test) in enumerate(StratifiedKFold(2).split(X, y)):
        model = clone(base).set_params(**params).fit(X[train], y[train], weights[train])
        # The scorer takes the weights, too, as in GridSearchCV.
        expected = f1_score(y[test], model.predict(X[test]), sample_weight=weights[test])
        assert found.cv_results_[f"split{k}_test_score"][0] == pytest.approx(expected)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["fork", "forkserver"])
def test_a_child_process_predicts_the_same(models, how):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python warns of any fork of a process with threads
        context = forkserver() if how == "forkserver" else multiprocessing.get_context(how)
        with context.Pool(1) as pool:
            for model, X, y in models:
                model.fit(X, y)
                found = pool.apply_async(model.predict, (X,)).get(timeout=120)  # no deadlock
                assert found.tolist() == model.predict(X).tolist()
