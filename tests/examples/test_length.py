"""What a first call chooses, beside other lengths: examples/paper/length.py."""

from __future__ import annotations

import argparse

import pytest

from skdice.engine.recipe import choose_epochs
from tests.examples.scripts import PAPER, scripts, write_messages


@pytest.fixture(scope="module")
def harness():
    with scripts(PAPER, "tasks", "experiments", "run", "length") as found:
        yield found


@pytest.fixture
def data(tmp_path):
    """Forty messages, one in four of them spam."""
    return write_messages(tmp_path, 40)


def test_some_positives_and_as_many_negatives_change_their_labels(harness):
    X, y = ["text"] * 1000, ["rare"] * 50 + ["other"] * 950
    _, noisy = harness["length"].exchanged((X, y), 0.1, "rare", seed=0)
    assert noisy.count("rare") == 50
    assert noisy[:50].count("other") == noisy[50:].count("rare") == 5
    assert noisy != harness["length"].exchanged((X, y), 0.1, "rare", seed=1)[1]
    # One at least.
    assert harness["length"].exchanged((X[:4], ["rare", *"aaa"]), 0.1, "rare", 0)[1][0] == "a"


def test_some_entities_are_left_out(harness):
    tags = [["B-PER", "I-PER", "O", "B-LOC"]] * 500
    _, noisy = harness["length"].unlabelled((["text"] * 500, tags), 0.1, seed=0)
    assert {tuple(row[:2]) for row in noisy} == {("B-PER", "I-PER"), ("O", "O")}
    assert 60 < sum((row[0] == "O") + (row[3] == "O") for row in noisy) < 140
    assert tags[0] == ["B-PER", "I-PER", "O", "B-LOC"]


def test_a_made_cell_has_its_number_of_positives(harness, data, monkeypatch):
    length = harness["length"]
    monkeypatch.setattr(length, "MADE", {12: {"sms": 5}})
    job = {"task": "sms", "seed": 0, "train_rows": 12, "test_rows": 1}
    X, y = length.prepared(data, job).train
    assert len(set(X)) == 12
    assert y.count("spam") == 5
    assert length.rare_rows(data, "sms", 0, 12, 0.0) == 5
    args = argparse.Namespace(wrong=[0.0], losses=["ce_dice"], data=data, passes=[3])
    monkeypatch.setitem(length.PASSES, 12, (3, 10))
    args = argparse.Namespace(**vars(args), precision="fp32", backbone=None, limit=None)
    assert [job["max_epochs"] for job in length.jobs_of(args, "sms", 12, 0)] == [3]
    assert not list(length.jobs_of(args, "mrpc", 12, 0))


def of_length(wrong, scores, positives=500):
    """Records of 2,000 messages: F1 and average precision by seed and passes."""
    job = {"task": "sms", "wrong": wrong, "train_rows": 2000, "loss": "ce_dice"}
    job["precision"] = "fp32"
    return [
        {
            "job": job | {"seed": seed, "max_epochs": passes},
            "test": {"f1": f1, "average_precision": precision},
            "positives": {"train": positives, "test": 9},
        }
        for (seed, passes), (f1, precision) in scores.items()
    ]


def test_the_tables_are_of_means_over_seeds(harness):
    length = harness["length"]
    scores = {(0, 3): (0.5, 0.6), (0, 8): (0.7, 0.6), (1, 3): (0.8, 0.8), (1, 8): (0.4, 0.9)}
    noisy = of_length(0.1, scores)
    clean = of_length(0.0, {(0, 3): (0.5, 0.5), (0, 8): (0.7, 0.6), (1, 5): (1.0, 1.0)}, 20)
    table = list(length.lines(length.by_cell([*noisy, *clean])))
    # A number of passes counts if all seeds have it.
    assert table[2].endswith("| 20 | 1 | 5 | 3: 50.0 (50.0), 5: 100.0 (100.0), 8: 70.0 (60.0) |")
    assert table[3].endswith("| 10% | 2,000 | 500 | 2 | 3 | 3: 65.0 (70.0), 8: 55.0 (75.0) |")
    rules = list(length.rule_lines(length.by_cell([*noisy, *of_length(0.0, scores, 20)])))
    assert rules[0].endswith("| worst, 30 of the rarer class or more (1 cells) |")
    # Of 20 rare rows the default makes 5 passes: 8 of those that ran are the nearest.
    assert rules[2].endswith("(`fit`) | 10.0 (0.0) | 0.0 (5.0) | 0.0 (5.0) |")
    assert rules[-1] == "| 3 passes | 0.0 (5.0) | 0.0 (5.0) | 0.0 (5.0) |"
    # A cell without a fit that is near to each rule's counts for none.
    far = of_length(0.0, {(0, 30): (0.5, 0.5)})
    assert next(length.rule_lines(length.by_cell([*noisy, *far]))).count("cells") == 2
    # The same fit in bf16 counts in place of the other.
    again = {**noisy[0], "job": noisy[0]["job"] | {"precision": "bf16"}}
    again["test"] = {"f1": 0.6, "average_precision": 0.6}
    assert list(length.lines(length.by_cell([again, *noisy])))[2].count("3: 70.0 (70.0)") == 1


def test_the_rules_of_the_table_are_those_of_fit(harness):
    length = harness["length"]
    for size in (100, 400, 2000):
        for rare in (8, 20, 60, size // 3):
            wanted = length.passes_of(length.RULES[length.RULE], size, [rare])
            assert abs(choose_epochs(size, 32, rare) - wanted) <= 0.5


def test_a_fit_is_made_as_fit_chooses_it(harness, data, tiny_backbone):
    job = {"task": "sms", "seed": 0, "precision": "fp32", "loss": "ce_dice", "test_rows": 5000}
    job |= {"train_rows": 12, "backbone": tiny_backbone}
    found = harness["length"].run(job, data, threads=1)
    assert found["job"] == job
    assert len(found["history"]) == choose_epochs(12, 32, found["positives"]["train"])
    assert 0 <= found["test"]["f1"] <= found["test"]["best_f1"] <= 1
    assert found["lr"] == 1e-4
