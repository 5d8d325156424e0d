"""Trials of processes that were killed or interrupted are tried again, and nothing else changes."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import numpy as np
import optuna
import pytest
from optuna.distributions import FloatDistribution
from optuna.trial import TrialState

from skdice._processes import has_ended, this_process
from skdice.model_selection import retries

# Prints a line for each fit, which sleeps so that the process can be killed in it.
CHILD = """
import sys, time
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
space = {{"C": FloatDistribution(1e-3, 10.0, log=True), "tol": FloatDistribution(1e-5, 1e-3)}}
search = LossSearchCV(
    Slow(), space, n_trials=13, cv=2, storage={path!r}, study_name="s", random_state=0, pruner=None
)
search.fit(X, y)
results = search.cv_results_
print("found", search.best_params_, [p["C"] for p in results["params"]], list(results["state"]))
"""


def test_a_search_that_is_killed_and_started_again_finds_the_same(tmp_path, capsys):
    path = str(tmp_path / "study.db")
    command = [sys.executable, "-W", "ignore", "-c", CHILD.format(path=path, seconds=0.1)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    for _ in range(2 * 11 + 1):  # into the first fold of a trial that TPE suggested
        assert process.stdout.readline() == "fit\n"
    process.kill()
    process.communicate()
    exec(CHILD.format(path=path, seconds=0), {})
    rest = capsys.readouterr().out.splitlines()
    exec(CHILD.format(path=str(tmp_path / "whole.db"), seconds=0), {})
    assert rest[-1] == capsys.readouterr().out.splitlines()[-1]
    assert rest.count("fit") == 2 * 2 + 1  # of the killed trial and the last, and the refit


@pytest.fixture(scope="module")
def ended():
    """The name of a process of this host that has ended."""
    code = "from skdice._processes import this_process; print(this_process())"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout[:-1]


def test_processes_are_known_by_host_number_and_start(ended):
    me = this_process()
    assert not has_ended(me)
    assert has_ended(ended)
    assert not has_ended(f"elsewhere {ended.split(' ', 1)[1]}")  # nothing is known of it
    host, number, _ = me.rsplit(" ", 2)
    if os.path.exists("/proc/self/stat"):
        assert has_ended(f"{host} {number} 1")  # an earlier one with the same number


def test_a_dead_child_that_nobody_waited_for_has_ended():
    code = "from skdice._processes import this_process; print(this_process(), flush=True)"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    name = process.stdout.readline().strip()
    for _ in range(200):
        if has_ended(name):
            break
        time.sleep(0.02)
    assert has_ended(name)
    process.communicate()


def study_with(*owners):
    """A study whose trials run in the processes of these names."""
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    for owner in owners:
        trial = study.ask({"x": FloatDistribution(0, 1)})
        if owner is not None:
            trial.set_user_attr(retries.OWNER, owner)
    return study


def states(study):
    return [trial.state for trial in study.trials]


def test_trials_of_processes_that_run_or_are_elsewhere_are_left_alone(ended):
    elsewhere = f"elsewhere {ended.split(' ', 1)[1]}"
    study = study_with(this_process(), elsewhere, None)
    study.set_user_attr(retries.WORKER + elsewhere, True)
    retries.enter(study)
    assert states(study) == [TrialState.RUNNING] * 3


def test_trials_of_ended_processes_keep_their_parameters_and_their_number(ended):
    study = study_with(ended, None, ended)
    study.set_user_attr(retries.WORKER + ended, True)
    first = study.trials[0].params
    retries.enter(study)
    assert states(study) == [TrialState.FAIL] * 3 + [TrialState.WAITING] * 3
    again = [study.ask() for _ in range(3)]
    assert [retries.number_without_retries(study, trial) for trial in again] == [0, 1, 2]
    assert again[0].params == first
    assert again[1].params == {}  # the process ended before it was known to have all
    assert retries.number_without_retries(study, study.ask()) == 3
    assert all(retries.OWNER not in trial.user_attrs for trial in again)


def test_a_trial_whose_processes_end_again_and_again_is_given_up(ended):
    study = study_with(ended)
    for _ in range(3):
        retries.take_over(study)
        retries.own(trial := study.ask())
        trial.set_user_attr(retries.OWNER, ended)
    retries.take_over(study)
    assert states(study) == [TrialState.FAIL] * 4


def test_a_sampler_without_settings_left_is_no_error(ended):
    sampler = optuna.samplers.GridSampler({"x": [0.0, 1.0]}, seed=0)
    study = optuna.create_study(sampler=sampler)
    for _ in range(2):
        study.ask({"x": FloatDistribution(0, 1)}).set_user_attr(retries.OWNER, ended)
    retries.take_over(study)
    assert states(study).count(TrialState.WAITING) == 2
    assert np.unique([study.ask().params["x"] for _ in range(2)]).tolist() == [0.0, 1.0]
