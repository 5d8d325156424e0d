"""LossSearchCV: its trials are cross-validations, and its study can be continued."""

from __future__ import annotations

import logging
import pickle
import re
import subprocess
import sys

import numpy as np
import optuna
import pandas as pd
import pytest
from imblearn.over_sampling import RandomOverSampler
from imblearn.pipeline import make_pipeline as make_imblearn_pipeline
from optuna.distributions import FloatDistribution, IntDistribution
from scipy.stats import rankdata
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import make_classification
from sklearn.exceptions import FitFailedWarning
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.metrics import accuracy_score, f1_score, make_scorer
from sklearn.model_selection import (
    GridSearchCV,
    PredefinedSplit,
    StratifiedKFold,
    cross_val_score,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from skdice import DiceClassifier, DiceSequenceClassifier, DiceTokenClassifier
from skdice.engine.callbacks import AfterEpoch
from skdice.losses import LOSSES, CrossEntropyLoss, TverskyLoss
from skdice.losses.search_ranges import OneMinus
from skdice.model_selection import LossSearchCV, loss_space
from skdice.model_selection.studies import identity_of
from tests.fits import never_fitted

X, Y = make_classification(240, weights=[0.85], flip_y=0.05, random_state=0)
BASE = DiceClassifier(max_epochs=5, random_state=0)


def search(space=None, estimator=BASE, **params):
    settings = dict(n_trials=5, cv=2, scoring="f1", random_state=0, strategy="full")
    return LossSearchCV(estimator, space or loss_space("tversky"), **{**settings, **params})


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(
    [
        search({"C": [1.0, 10.0]}, LogisticRegression(), n_trials=2, scoring=None),
        search(
            loss_space("weighted_ce"),
            clone(BASE).set_params(max_epochs=4, lr=0.1),
            n_trials=1,
            scoring=None,
            strategy="auto",
        ),
    ]
)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("loss", LOSSES)
def test_every_loss_has_a_space_of_its_parameters(loss):
    space = loss_space(loss)
    assert space.pop("loss") == [loss]
    known = clone(BASE).set_params(loss=LOSSES[loss]()).get_params()
    assert {name.removeprefix("loss__") for name in space} == set(LOSSES[loss].search_space())
    assert set(space) <= set(known)


def test_scores_are_those_of_cross_validation():
    found = search([loss_space("tversky"), loss_space("weighted_ce")], n_trials=6).fit(X, Y)
    results = found.cv_results_
    assert len(results["params"]) == 6
    assert {p["loss"] for p in results["params"]} == {"tversky", "weighted_ce"}
    for i, params in enumerate(results["params"]):
        if params["loss"] == "tversky":
            assert params["loss__alpha"] + params["loss__beta"] == pytest.approx(1)
            assert results["param_loss__alpha"][i] == params["loss__alpha"]
            assert results["param_loss__K"].mask[i]
        if results["state"][i] == "COMPLETE":
            model = clone(BASE).set_params(**params)
            expected = cross_validate(model, X, Y, cv=2, scoring="f1")["test_score"]
            got = [results[f"split{k}_test_score"][i] for k in range(2)]
            np.testing.assert_allclose(got, expected)
            assert results["mean_test_score"][i] == pytest.approx(np.mean(expected))
    means = np.where(np.isfinite(results["mean_test_score"]), results["mean_test_score"], -1)
    np.testing.assert_array_equal(results["rank_test_score"], rankdata(-means, method="min"))
    assert found.best_index_ == means.argmax()
    assert found.best_score_ == means.max()
    best = clone(BASE).set_params(**found.best_params_).fit(X, Y)
    np.testing.assert_array_equal(found.predict_proba(X), best.predict_proba(X))
    assert found.score(X, Y) == f1_score(Y, best.predict(X))
    assert pickle.loads(pickle.dumps(found)).predict(X).tolist() == found.predict(X).tolist()


def test_the_same_seed_searches_the_same():
    first, second = (search(n_trials=4).fit(X, Y) for _ in range(2))
    assert first.cv_results_["params"] == second.cv_results_["params"]
    other = search(n_trials=4, random_state=1).fit(X, Y)
    assert first.cv_results_["params"] != other.cv_results_["params"]


def test_spaces():
    steps = make_pipeline(StandardScaler(), BASE)
    space = loss_space("tversky", prefix="diceclassifier__")
    space["diceclassifier__lr"] = FloatDistribution(1e-3, 1e-1, log=True)
    space["diceclassifier__max_epochs"] = IntDistribution(2, 4)
    space["standardscaler__with_mean"] = [True, False]
    found = search(space, steps, n_trials=3).fit(X, Y)
    params = found.best_params_
    assert 2 <= params["diceclassifier__max_epochs"] <= 4
    total = params["diceclassifier__loss__alpha"] + params["diceclassifier__loss__beta"]
    assert total == pytest.approx(1)
    objects = search({"loss": [TverskyLoss(alpha=0.2), "ce"]}, n_trials=4).fit(X, Y)
    found = {repr(p["loss"]) for p in objects.cv_results_["params"]}
    assert found <= {"TverskyLoss(alpha=0.2)", "'ce'"}
    assert OneMinus("a")({"a": 0.25}) == 0.75


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"space": [{}]}, r"param_distributions=\[{}\] is empty"),
        ({"space": {"lr": []}}, r"param_distributions\['lr'\]"),
        ({"space": {"lr": 3}}, r"param_distributions\['lr'\]=3"),
        ({"storage": "sqlite:////no/such/folder/a.db"}, "storage='sqlite"),
        ({"storage": ""}, "storage=''"),
        ({"storage": optuna.storages.InMemoryStorage(), "n_jobs": 2}, "n_jobs=2 with .*file"),
        ({"n_jobs": 2}, "n_jobs=2 with storage=None: processes share a file"),
        ({"n_trials": 0}, "'n_trials' parameter"),
        ({"scoring": ["f1", "recall"]}, "'scoring' parameter of LossSearchCV must be"),
        ({"scoring": {"f1": "f1"}}, "'scoring' parameter of LossSearchCV must be"),
        ({"cv": iter([])}, "cv=.* has no folds"),
        ({"cv": [(np.flatnonzero(i == Y), [0, 1]) for i in (0, 1)]}, "cv leaves the class 1 out"),
        ({"cv": [(range(200), [200, 240])]}, "does not split X and y: index 240 is out of bounds"),
        ({"cv": [([0.5, 1.5], [2])]}, "does not split X and y: .*must be of integer"),
        ({"cv": [(range(9),)]}, "does not split X and y: not enough values to unpack"),
    ],
)
def test_bad_searches_are_refused_before_a_trial(params, message):
    model = never_fitted(DiceClassifier)(max_epochs=5, random_state=0)
    with pytest.raises((ValueError, TypeError), match=message):
        search(**{"estimator": model, **params}).fit(X, Y)


def test_failed_trials_keep_their_error_and_break_nothing():
    space = {"lr": [1e-2, 1e9], "loss": ["ce"]}

    class Fragile(DiceClassifier):
        def fit(self, X, y, sample_weight=None):
            if self.lr > 1:
                raise ValueError("lr is absurd")
            return super().fit(X, y, sample_weight)

    estimator = Fragile(max_epochs=20, random_state=0)
    with pytest.warns(FitFailedWarning, match="lr is absurd"):
        found = search(space, estimator, n_trials=8).fit(X, Y)
    assert found.best_params_["lr"] == 1e-2
    failed = [t for t in found.study_.trials if t.state.name == "FAIL"]
    assert failed
    assert all(t.user_attrs["record"]["error"] == "ValueError: lr is absurd" for t in failed)
    rows = found.cv_results_["state"] == "FAIL"
    assert rows.sum() == len(failed)
    assert np.isnan(found.cv_results_["mean_test_score"][rows]).all()
    with pytest.raises(ValueError, match="lr is absurd"):
        search(space, estimator, n_trials=8, error_score="raise").fit(X, Y)
    with pytest.warns(FitFailedWarning), pytest.raises(ValueError, match="every trial failed"):
        search({"lr": [1e9]}, estimator, n_trials=2).fit(X, Y)
    with pytest.warns(FitFailedWarning):
        zero = search(space, estimator, n_trials=8, error_score=0.0).fit(X, Y)
    assert (zero.cv_results_["mean_test_score"][rows] == 0).all()


def fails_above(model, rows, labels):
    """A score of weak penalties only, and of few rows."""
    if getattr(model, "C", 0) > 0.1 or len(labels) > 120:
        raise ValueError("no score")
    return 0.5


def test_a_single_scorer_that_fails_fails_its_trial():
    with pytest.warns(UserWarning, match="failed and scores nan.*no score"):
        found = search({"C": [0.01, 1.0]}, LogisticRegression(), scoring=fails_above).fit(X, Y)
    strong = [params["C"] > 0.1 for params in found.cv_results_["params"]]
    assert [state == "FAIL" for state in found.cv_results_["state"]] == strong
    assert found.best_params_["C"] == 0.01


@pytest.mark.parametrize("loss", ["ce", "dsc"])
@pytest.mark.parametrize("strategy", ["full", "shared"])
def test_a_setting_that_no_fit_can_take_is_refused_before_a_trial(loss, strategy):
    space = {"loss": [loss], "loss__class_weight": [[1.0, 2.0], [2.0, 1.0], [1.0, 2.0, 3.0]]}
    model = never_fitted(DiceClassifier)(max_epochs=5, random_state=0)
    refused = search(space, model, n_trials=8, strategy=strategy)
    with pytest.raises(ValueError, match=r"=\[1.0, 2.0, 3.0\] has 3 factors, and there are 2 cl"):
        refused.fit(X, Y)
    assert not hasattr(refused, "study_")


def test_scorer_that_asks_heads_for_other_rows():
    def turned(model, rows, labels):
        return accuracy_score(labels, model.predict(-rows))

    def copied(model, rows, labels):
        return accuracy_score(labels, model.predict(rows.copy()))

    how = dict(n_trials=2, pruner=None)

    def both(model, rows, labels):  # the first answers are not those of the second call
        return np.mean(model.predict(rows) != model.predict(-rows))

    for scoring in (turned, copied, both):
        full, auto = (
            search({"loss": ["tversky"]}, **how, scoring=scoring, strategy=strategy).fit(X, Y)
            for strategy in ("full", "auto")
        )
        scores = (found.cv_results_["mean_test_score"] for found in (full, auto))
        np.testing.assert_allclose(*scores)
        assert auto.strategy_ == "shared"


def test_scorers_see_the_rows_index():
    weights = np.random.default_rng(0).random(len(Y)) * 10

    def weighted(model, rows, labels):
        assert list(rows.index) == list(labels.index)
        return accuracy_score(labels, model.predict(rows), sample_weight=weights[labels.index])

    frames = pd.DataFrame(X), pd.Series(Y)
    grid = GridSearchCV(LogisticRegression(), {"C": [1.0]}, scoring=weighted, cv=2).fit(*frames)
    found = search({"C": [1.0]}, LogisticRegression(), scoring=weighted, n_trials=1).fit(*frames)
    assert found.best_score_ == grid.best_score_


def test_second_fit_forgets_the_first():
    found = search({"C": [0.1, 1.0]}, LogisticRegression()).fit(X, Y)
    found.set_params(refit=False).fit(X[:, :5], Y)
    assert not hasattr(found, "best_estimator_")
    assert not hasattr(found, "n_features_in_")
    assert "C" in found.best_params_
    with pytest.raises(AttributeError, match="has no attribute 'predict'"):
        found.predict(X)
    results = found.cv_results_
    with pytest.warns(FitFailedWarning), pytest.raises(ValueError, match="every trial failed"):
        found.set_params(refit=True).fit(X * np.nan, Y)
    assert found.cv_results_ is results  # a failed search leaves what was found before


@pytest.mark.parametrize(
    ("how", "n"),
    [
        ({"callbacks": [lambda study, trial: study.stop()]}, 1),
        ({"callbacks": [optuna.study.MaxTrialsCallback(2)]}, 2),
        ({"optuna_sampler": optuna.samplers.GridSampler({"C": [0.1, 1.0, 5.0]})}, 3),
    ],
)
def test_a_study_that_is_stopped_is_refitted(how, n):
    space = {"C": FloatDistribution(0.01, 10)}
    found = search(space, LogisticRegression(), n_trials=6, **how).fit(X, Y)
    assert len(found.cv_results_["params"]) == n
    assert found.predict(X).shape == Y.shape


def test_optuna_logs_the_trials_of_a_search_that_asks_for_it(caplog, monkeypatch):
    monkeypatch.setattr(logging.getLogger("optuna"), "propagate", True)
    for verbose, expected in ((0, []), (1, ["0", "1", "2"])):
        search({"lr": [0.1, 0.2]}, n_trials=3, verbose=verbose).fit(X, Y)
        found = re.findall(r"Trial (\d) finished .* Best is", caplog.text)
        assert [*dict.fromkeys(found)] == expected  # other tests may have added handlers


class Never(optuna.pruners.BasePruner):
    """Prunes every trial but the first at a given step."""

    def __init__(self, step):
        self.step = step
        self.seen = []

    def prune(self, study, trial):
        self.seen.append((trial.number, trial.last_step))
        return trial.number > 0 and trial.last_step >= self.step


def test_a_pruned_trial_costs_only_what_it_ran(tiny_backbone, sentences):
    epochs = []  # of each fit

    def count(draft):
        if len(draft.net_.history) == 1:
            epochs.append(0)
        epochs[-1] += 1

    how = dict(max_epochs=3, random_state=0, callbacks=[AfterEpoch(count)])
    tagger = DiceTokenClassifier(backbone=tiny_backbone, **how)
    pruner = Never(10_001)
    found = search(estimator=tagger, pruner=pruner, n_trials=3, scoring=None).fit(*sentences)
    # Each epoch of each fold is seen, and the scores of finished folds between them.
    assert [step for number, step in pruner.seen if number == 0] == [
        0, 1, 2, 9_999, 10_000, 10_001, 10_002
    ]  # fmt: skip
    assert epochs == [3, 3, 3, 2, 3, 2, 3]  # the second folds end early; the last is the refit
    assert found.cv_results_["state"].tolist() == ["COMPLETE", "PRUNED", "PRUNED"]
    assert np.isnan(found.cv_results_["mean_test_score"][1:]).all()
    assert found.best_index_ == 0
    scores = found.study_.trials[0].intermediate_values
    assert scores[9_999] == pytest.approx(found.cv_results_["split0_test_score"][0])
    assert scores[2] == pytest.approx(scores[9_999])  # the last epoch is the fold's score


def by_history(model, texts, labels):
    """A score that a model in mid-fit does not have."""
    return -model.history_[-1]["train_loss"]


@pytest.mark.parametrize(("scoring", "steps"), [("accuracy", [0, 1, 9_999]), (by_history, [9_999])])
def test_the_pruner_sees_the_score_that_is_searched(tiny_backbone, scoring, steps):
    texts, labels = ["free money", "lunch today", "the bus"] * 6, ["s", "h", "h"] * 6
    model = DiceSequenceClassifier(backbone=tiny_backbone, max_epochs=2, random_state=0)
    pruner = Never(20_000)
    found = search({"loss": ["ce"]}, model, n_trials=1, pruner=pruner, scoring=scoring)
    found.fit(texts, labels)
    values = found.study_.trials[0].intermediate_values
    assert [step for step in values if step < 10_000] == steps
    assert values[9_999] == pytest.approx(found.cv_results_["split0_test_score"][0])
    for step in steps[1:]:  # of the last epoch, what the fold scores
        assert values[step] == values[9_999]
    plain = clone(model).set_params(loss="ce")  # and looking changes no fit
    scores = cross_validate(plain, texts, labels, cv=2, scoring=scoring)["test_score"]
    assert found.best_score_ == pytest.approx(scores.mean())


def test_an_interrupt_keeps_what_is_finished():
    class Stop:
        def __call__(self, study, trial):
            if trial.number == 2:
                raise KeyboardInterrupt

    found = search(n_trials=20, callbacks=[Stop()])
    with pytest.raises(KeyboardInterrupt):
        found.fit(X, Y)
    assert len(found.cv_results_["params"]) == 3
    assert found.best_params_ in found.cv_results_["params"]


def test_a_study_of_another_search_is_refused(tmp_path):
    storage = f"sqlite:///{tmp_path / 'study.db'}"
    how = {"storage": storage, "study_name": "s", "n_trials": 2}
    search(**how).fit(X, Y)
    for changed in (
        {"scoring": "recall"},
        {"cv": StratifiedKFold(2, shuffle=True, random_state=0)},
        {"estimator": clone(BASE).set_params(lr=0.5)},
        {"param_distributions": loss_space("focal")},
    ):
        other = search(**how).set_params(**changed)
        with pytest.raises(ValueError, match=r"study of another search.* give another study_name"):
            other.fit(X, Y)
        assert not hasattr(other, "cv_results_")
    # The same elsewhere: another device.
    there = search(**{**how, "n_trials": 3}, estimator=clone(BASE).set_params(device="cpu"))
    assert len(there.fit(X, Y).cv_results_["params"]) == 3
    optuna.create_study(study_name="down", storage=storage, direction="minimize")
    study = optuna.create_study(study_name="own", storage=storage, direction="maximize")
    study.tell(study.ask(), 0.5)
    for name in ("down", "own"):
        with pytest.raises(ValueError, match="study of another search"):
            search(**{**how, "study_name": name}).fit(X, Y)


def test_a_tag_that_one_fold_alone_holds(tiny_backbone, sentences):
    rows, tags = sentences
    rows = [*rows, ["the", "old", "bus"]]
    tags = [*tags, ["B-EVENT", "O", "O"]]
    tagger = DiceTokenClassifier(backbone=tiny_backbone, max_epochs=1, random_state=0)
    found = LossSearchCV(tagger, loss_space("tversky"), n_trials=2, cv=2, random_state=0)
    assert np.isfinite(found.fit(rows, tags).best_score_)


def test_study_is_continued(tmp_path):
    path = tmp_path / "study.db"

    def run(n_trials, storage):
        space = {**loss_space("tversky"), "loss__beta": lambda p: 1 - p["loss__alpha"]}
        return search(space, n_trials=n_trials, storage=storage, study_name="s").fit(X, Y)

    first, more = run(3, path), run(5, str(path))
    assert len(more.study_.trials) == 5
    assert more.cv_results_["params"][:3] == first.cv_results_["params"]
    scores = [found.cv_results_["mean_test_score"].tolist() for found in (more, first)]
    assert scores[0][:3] == scores[1]
    assert run(5, f"sqlite:///{path}").best_params_ == more.best_params_
    other = tmp_path / "texts.tsv"
    other.write_text("ham\tlunch\n")
    for storage in (other, tmp_path / "no" / "study.db", tmp_path):
        with pytest.raises(ValueError, match=r"storage=.*: give a new file, one that a"):
            run(3, storage)
    assert other.read_text() == "ham\tlunch\n"


def test_callbacks_and_other_estimators():
    seen = []
    found = search(n_trials=3, callbacks=[lambda study, trial: seen.append(trial.number)])
    found.fit(X, Y)
    assert seen == [0, 1, 2]
    space = {"C": FloatDistribution(1e-3, 10, log=True)}
    plain = search(space, LogisticRegression(), scoring=make_scorer(f1_score)).fit(X, Y)
    assert 1e-3 <= plain.best_params_["C"] <= 10
    assert optuna.logging.get_verbosity() == optuna.logging.INFO


def test_shared_and_full_find_the_same():
    spaces = [loss_space("tversky"), loss_space("focal")]
    sampler = optuna.samplers.RandomSampler
    for scoring in ("f1", "roc_auc"):
        common = dict(scoring=scoring, pruner=None, n_trials=18)
        full = search(spaces, strategy="full", optuna_sampler=sampler(seed=1), **common).fit(X, Y)
        shared = search(spaces, strategy="auto", optuna_sampler=sampler(seed=1), **common).fit(X, Y)
        assert (full.strategy_, shared.strategy_) == ("full", "shared")
        assert full.cv_results_["params"] == shared.cv_results_["params"]
        scores, of_heads = (f.cv_results_["mean_test_score"] for f in (full, shared))
        np.testing.assert_allclose(scores, of_heads, atol=1e-9)
    np.testing.assert_array_equal(full.predict(X), shared.predict(X))


class Own(CrossEntropyLoss):
    """A loss of somebody else, which computes in its own way."""

    def forward(self, logits, target, sample_weight=None):
        return super().forward(logits, target, sample_weight)


def test_reasons_against_heads():
    for estimator, space, message in (
        (LogisticRegression(), {"C": [1.0]}, "LogisticRegression is not DiceClassifier"),
        (DiceClassifier(hidden_layer_sizes=(3,)), {"lr": [0.1]}, "not linear"),
        (DiceClassifier(early_stopping=True), {"lr": [0.1]}, "early_stopping=True"),
        (BASE, {"max_epochs": [1, 2]}, "'max_epochs' is searched"),
        (BASE, {"loss": [Own()]}, "Own has no functional form"),
    ):
        with pytest.raises(ValueError, match=message):
            search(space, estimator, strategy="shared").fit(X, Y)
        assert search(space, estimator, strategy="auto", n_trials=1).fit(X, Y).strategy_ == "full"


# Prints a line for each fit, which sleeps so that the process can be killed in it.
CHILD = """
import time
from optuna.distributions import FloatDistribution
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from skdice.model_selection import LossSearchCV

class Slow(LogisticRegression):
    def fit(self, X, y):
        print("fit", flush=True)
        time.sleep({seconds})
        return super().fit(X, y)

X, y = make_classification(60, weights=[0.8], random_state=0)
search = LossSearchCV(
    Slow(), {{"C": FloatDistribution(1e-3, 10.0, log=True)}}, n_trials=7, cv=2, pruner=None,
    storage={path!r}, study_name="s", random_state=0,
).fit(X, y)
results = search.cv_results_
"""


def test_a_search_that_is_killed_goes_on_by_the_same_storage(tmp_path, capsys):
    path = str(tmp_path / "study.db")
    command = [sys.executable, "-W", "ignore", "-c", CHILD.format(path=path, seconds=0.2)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    for _ in range(2 * 4 + 1):  # into the first fold of the fifth trial
        assert process.stdout.readline() == "fit\n"
    process.kill()
    process.communicate()
    known = {}
    exec(CHILD.format(path=path, seconds=0), known)
    assert capsys.readouterr().out.splitlines().count("fit") == 2 * 3 + 1  # and the refit
    results = known["results"]
    assert results["state"].tolist() == ["COMPLETE"] * 7
    assert results["trial"].tolist() == [0, 1, 2, 3, 5, 6, 7]  # the killed one has no score
    assert len({params["C"] for params in results["params"]}) == 7


def test_several_jobs_share_one_study(tmp_path):
    space = {"C": FloatDistribution(1e-3, 10.0, log=True)}
    how = dict(n_trials=5, n_jobs=2, pruner=None, storage=tmp_path / "study.db")
    found = search(space, LogisticRegression(), **how).fit(X, Y)
    n = len(found.study_.trials)
    assert n in (5, 6)  # one process may have been at its last
    assert found.cv_results_["state"].tolist() == ["COMPLETE"] * n
    assert len({params["C"] for params in found.cv_results_["params"]}) == n
    expected = cross_val_score(found.best_estimator_, X, Y, cv=2, scoring="f1").mean()
    assert found.best_score_ == pytest.approx(expected)


def test_several_jobs_with_a_seed_try_different_settings(tmp_path):
    space = {"C": FloatDistribution(1e-3, 10.0, log=True)}
    how = dict(n_trials=6, n_jobs=2, pruner=None, storage=tmp_path / "study.db")
    seeded = optuna.samplers.RandomSampler(seed=0)
    found = search(space, LogisticRegression(), optuna_sampler=seeded, **how).fit(X, Y)
    tried = [params["C"] for params in found.cv_results_["params"]]
    assert len({*tried}) == len(tried)


def test_behind_a_sampler_the_rare_class_is_positive():
    y = np.where(Y == 1, "a rare one", "common")
    pipeline = make_imblearn_pipeline(RandomOverSampler(random_state=0), BASE)
    space = loss_space("tversky", prefix="diceclassifier__")
    found = search(space, pipeline, n_trials=1, scoring=None).fit(X, y)
    model = found.best_estimator_[-1]
    assert model.classes_[model.positive_] == "a rare one"
    expected = f1_score(y, found.predict(X), pos_label="a rare one")
    assert found.score(X, y) == pytest.approx(expected)


def test_another_function_is_another_search(tmp_path):
    how = dict(n_trials=1, storage=tmp_path / "s.db", study_name="s")
    spaces = [
        {"C": [1.0], "tol": lambda params: params["C"] / 10},
        {"C": [1.0], "tol": lambda params: params["C"] / 20},
        {"C": [1.0], "tol": lambda params: params["C"] / 10},
    ]
    first, other, same = (search(space, LogisticRegression(), **how) for space in spaces)
    first.fit(X, Y)
    with pytest.raises(ValueError, match="is a study of another search"):
        other.fit(X, Y)
    assert len(same.fit(X, Y).cv_results_["params"]) == 1


def test_a_scorer_of_several_scores_fails():
    several = dict(estimator=LogisticRegression(), scoring=lambda *_: {"a": 0.5, "b": 0.6})
    with (
        pytest.warns(FitFailedWarning),
        pytest.raises(TypeError, match=r"TypeError: .* a real number, not 'dict'"),
    ):
        search({"C": [1.0]}, **several).fit(X, Y)


class Empty(ClassifierMixin, BaseEstimator):
    """Calls a share of the rows positive."""

    def __init__(self, finds=0.5):
        self.finds = finds

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return (np.arange(len(X)) < self.finds * len(X)).astype(int)


def test_trials_that_find_nothing_are_counted_and_not_the_best():
    labels = np.r_[np.zeros(90, int), np.ones(10, int)]
    rows = np.random.default_rng(0).normal(size=(100, 2)) + labels[:, None]
    space = {"finds": [0.0, 0.5]}
    found = search(space, Empty(), n_trials=6, scoring="accuracy").fit(rows, labels)
    table = found.cv_results_
    finds = np.array([params["finds"] for params in table["params"]])
    assert 0 < (finds == 0).sum() < 6
    np.testing.assert_array_equal(table["n_empty"], np.where(finds == 0, 2, 0))
    assert table["mean_test_score"][finds == 0].min() > table["mean_test_score"][finds > 0].max()
    assert found.best_params_ == {"finds": 0.5}
    alone = clone(found).set_params(param_distributions={"finds": [0.0]}).fit(rows, labels)
    assert alone.best_params_ == {"finds": 0.0}


@pytest.mark.slow
def test_two_processes_share_one_study(tmp_path):
    path = str(tmp_path / "study.db")
    command = [sys.executable, "-W", "ignore", "-c", CHILD.format(path=path, seconds=0.05)]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    fits = [process.communicate(timeout=120)[0].splitlines().count("fit") for process in both]
    assert [process.returncode for process in both] == [0, 0]
    trials = optuna.load_study(study_name="s", storage=f"sqlite:///{path}").trials
    assert len(trials) in (7, 8)  # one of them may have been at its last
    assert {trial.state.name for trial in trials} == {"COMPLETE"}
    assert len({trial.params["C"] for trial in trials}) == len(trials)
    assert sum(fits) == 2 * len(trials) + 2  # and two refits


class ByFold(ClassifierMixin, BaseEstimator):
    """Scores `q`, but on the rows of the first fold what they are worth."""

    def __init__(self, q=0.5):
        self.q = q

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def score(self, X, y):
        return max(self.q, X[0, 1] * (X[0, 0] == 0))


@pytest.mark.parametrize("first", [0.0, 0.95])
def test_an_easy_first_fold_saves_no_trial_from_the_pruner(first):
    folds = np.repeat(np.arange(3), 4)
    rows, labels = np.c_[folds, np.full(12, first)], np.tile([0, 1], 6)
    space = {"q": FloatDistribution(0, 0.9)}
    cv = PredefinedSplit(folds)
    found = search(space, ByFold(), n_trials=20, cv=cv, scoring=None).fit(rows, labels)
    assert (found.cv_results_["state"] == "PRUNED").sum() > 3
    steps, finished = (9_999, 19_999), []
    for trial in found.study_.trials:
        q = trial.params["q"]
        means = np.cumsum([max(q, first), q]) / [1, 2]
        ends = None
        for step, mean in zip(steps, means, strict=True):
            others = [other.intermediate_values[step] for other in finished]
            if len(finished) >= 5 and mean < np.median(others):
                ends = step
                break
        assert trial.state.name == ("COMPLETE" if ends is None else "PRUNED")
        assert trial.last_step == (ends or 19_999)
        if ends is None:
            finished.append(trial)


CHOICES = np.linspace(0.1, 1, 2000)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"C": FloatDistribution(0.1, 1)}, {"C": FloatDistribution(0.1, 1, log=True)}),
        ({"C": CHOICES}, {"C": np.where(abs(CHOICES - 0.5) < 0.1, 9.0, CHOICES)}),
        ({"class_weight": [{0: CHOICES}]}, {"class_weight": [{0: CHOICES * 2}]}),
        ({"base": [SGDClassifier()]}, {"base": [SGDClassifier(alpha=1.0)]}),
        ({"tol": OneMinus("C")}, {"tol": OneMinus("alpha")}),
        ({"scoring": make_scorer(f1_score)}, {"scoring": make_scorer(accuracy_score)}),
        ({"scoring": by_history}, {"scoring": fails_above}),
    ],
)
def test_searches_are_told_apart_by_all_that_they_hold(one, other):
    def identity(space):
        spaces = [] if "scoring" in space else [space]
        return identity_of(search(scoring=space.get("scoring")), spaces, [])

    assert identity(one) == identity(clone(one, safe=False)) != identity(other)
    assert identity({"C": lambda p: p}) == identity({"C": lambda p: p})  # wherever they lie


def test_tables_and_scorers_are_as_in_a_grid_search():
    choices = {
        "C": [0.1, 1.0],
        "max_iter": [50, 60],
        "fit_intercept": [True, False],
        "solver": ["lbfgs", "liblinear"],
        "class_weight": [None, "balanced"],
        "tol": [1, 0.01],
    }
    spaces = [choices, {"intercept_scaling": [1, 2.5], "solver": ["liblinear"]}]
    grid = GridSearchCV(LogisticRegression(), spaces, cv=2, scoring="f1").fit(X, Y)
    found = search(spaces, LogisticRegression(), n_trials=12, pruner=None).fit(X, Y)
    assert found.scorer_(found, X, Y) == grid.scorer_(found, X, Y) == found.score(X, Y)
    for name in (*choices, "intercept_scaling"):
        column, expected = (s.cv_results_[f"param_{name}"] for s in (found, grid))
        assert column.dtype == expected.dtype
        assert set(column.compressed()) == set(expected.compressed())
        given = [name in params for params in found.cv_results_["params"]]
        np.testing.assert_array_equal(~column.mask, given)


def test_folds_have_the_positive_class_of_all_rows():
    X, y = [[float(i)] for i in range(40)], np.array(["few"] * 10 + ["many"] * 30)
    seen = []  # by its own counts a fold of 20 rows would take "many", as in 5 against 15

    def score(model, X, y):
        seen.append(model.classes_[model.positive_])
        return 0.0

    found = search(loss_space("dice"), n_trials=1, scoring=score).fit(X, y)
    assert seen == ["few"] * 2
    assert found.best_estimator_.positive_ == 0


def test_a_sampler_of_the_user_stays_as_it_is():
    space = {"C": FloatDistribution(1e-3, 10.0, log=True)}
    sampler = optuna.samplers.RandomSampler(seed=0)
    again = search(space, LogisticRegression(), n_trials=3, optuna_sampler=sampler)
    tried = [[p["C"] for p in again.fit(X, Y).cv_results_["params"]] for _ in range(2)]
    assert tried[0] == tried[1]
