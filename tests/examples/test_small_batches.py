"""What small batches need: examples/paper/small_batches.py."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, f1_score

from tests.examples.scripts import PAPER, scripts


@pytest.fixture(scope="module")
def small():
    with scripts(PAPER, "tasks", "small_batches") as found:
        yield found["small_batches"]


def test_scores_are_as_if_another_share_were_positive(small):
    draw = np.random.default_rng(0)
    truth, proba = np.arange(30) < 10, draw.random(30)
    # Each negative three times: 10 of 70.
    more = np.concatenate([np.arange(10), *[np.arange(10, 30)] * 3])
    found = small.scores(truth, proba, 1 / 7)
    assert found["f1"] == pytest.approx(f1_score(truth[more], proba[more] > 0.5))
    assert found["ap"] == pytest.approx(average_precision_score(truth[more], proba[more]))
    assert found == pytest.approx(small.scores(truth[more], proba[more]))


def test_tables_are_of_means_over_fits(small, monkeypatch):
    job = {"part": "rate", "seed": 0, "data": "sms", "noise": 0, "batch": 8, "factor": 0.5}
    rates = [
        {"job": job, "f1": 0.5, "ap": 0.7},
        {"job": {**job, "noise": 0.1}, "f1": 0.7, "ap": 0.9},
        {"job": {**job, "data": "gmb", "factor": 1}, "f1": 0.3},
        {"job": {**job, "data": "anger", "rows": small.MANY}, "f1": 0.1, "ap": 0.1},
    ]
    full = {"part": "full", "data": "sms", "rows": 400, "rare": 16, "batch": 8, "loss": "dsc"}
    kept = [
        {"job": {**full, "memory": memory, "seed": seed}, "f1": f1 + seed / 10, "ap": 0.5}
        for memory, f1 in ((0, 0.2), ("formula", 0.4))
        for seed in (0, 1)
    ]
    monkeypatch.setattr(small, "records", lambda: rates + kept)
    assert list(small.lines_of_rates())[2:] == [
        "| 8 |  | 1 | 30.0 |  |  |  |  | 30.0 |  |",
        "| 8 | x 0.5 | 3 | 60.0 |  | 60.0 / 80.0 |  |  |  | 10.0 / 10.0 |",
    ]
    assert list(small.lines_of_full())[2:] == [
        "| SMS | 400 | 16 | 8 | 4 |  |  | 25.0 / 50.0 | 45.0 / 50.0 |  |  |",
    ]
