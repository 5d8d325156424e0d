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
    of_numbers = {"part": "numbers", "data": small.FOUND, "batch": "auto", "loss": "dice"}
    of_digits = {**of_numbers, "data": "five digits"}
    kept = [
        {"job": {**of_numbers, "seed": seed}, "f1": 0.2 + seed / 10, "ap": 0.5, "rows": 800}
        for seed in (0, 1)
    ]
    kept.append({"job": {**of_digits, "seed": 0}, "f1": 0.4, "rows": 182})
    found = [(name, "`ce`", 0.5) for name in small.EIGHT]
    found += [(name, "`dice`", 0.25 if name == "five digits" else 0.75) for name in small.EIGHT]
    kept += [
        {"job": {"part": "shares", "seed": 0, "data": name, "setting": setting}, "f1": f1}
        | ({"ap": 0.9 * f1} if name != "five digits" else {})
        for name, setting, f1 in found
    ]
    monkeypatch.setattr(small, "records", lambda: rates + kept)
    assert list(small.lines_of_rates())[2:] == [
        "| 8 |  | 1 | 30.0 |  |  |  |  | 30.0 |  |",
        "| 8 | x 0.5 | 3 | 60.0 |  | 60.0 / 80.0 |  |  |  | 10.0 / 10.0 |",
    ]
    assert list(small.lines_of_numbers())[2:] == [
        "| 30 columns, 4 %, 4,000 rows | auto | 800 |  |  | 25.0 / 50.0 |  |  |",
        "| five digits | auto | 182 |  |  | 40.0 |  |  |",
        "| **mean of the eight** | auto |  |  |  | 30.0 / 50.0 |  |  |",
    ]
    *_, dice = small.lines_of_shares()
    # Seven are 25 points ahead and one is 25 behind; average precision is of the seven.
    assert dice.startswith("| `dice` | +18.8 / +22.5 | -25.0 / +22.5 | 75.0 / 67.5 | ")
    assert dice.endswith("| 25.0 |")
