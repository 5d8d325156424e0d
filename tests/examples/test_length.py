"""What a first call chooses, beside other lengths: examples/paper/length.py."""

from __future__ import annotations

import pytest

from skdice.engine.recipe import choose_epochs
from tests.examples.scripts import PAPER, scripts


@pytest.fixture(scope="module")
def harness():
    with scripts(PAPER, "tasks", "experiments", "run", "length") as found:
        yield found


@pytest.fixture
def data(tmp_path):
    """Forty messages, one in four of them spam."""
    rows = [f"{'spam' if i % 4 == 0 else 'ham'}\tmessage {i} of many" for i in range(40)]
    (tmp_path / "sms_spam").mkdir()
    (tmp_path / "sms_spam" / "SMSSpamCollection").write_text("\n".join(rows))
    return tmp_path


def test_intervals_flips_labels_and_leaves_entities_out(harness):
    X, y = ["text"] * 1000, ["a", "b"] * 500
    _, noisy = harness["length"].flipped((X, y), 0.1, seed=0)
    assert 60 < sum(one != other for one, other in zip(y, noisy, strict=True)) < 140
    assert set(noisy) == {"a", "b"}
    tags = [["B-PER", "I-PER", "O", "B-LOC"]] * 500
    _, noisy = harness["length"].unlabelled((X[:500], tags), 0.1, seed=0)
    assert {tuple(row[:2]) for row in noisy} == {("B-PER", "I-PER"), ("O", "O")}
    assert 60 < sum((row[0] == "O") + (row[3] == "O") for row in noisy) < 140
    assert tags[0] == ["B-PER", "I-PER", "O", "B-LOC"]


def test_the_table_compares_means_over_seeds(harness):
    length, records = harness["length"], []
    rule = choose_epochs(2000, 32, 500)
    assert rule == length.PASSES[2000][0]
    scores = {(0, 3): (0.5, 0.6), (0, 8): (0.7, 0.6), (1, 3): (0.8, 0.8), (1, 8): (0.4, 0.9)}
    for (seed, passes), (f1, precision) in scores.items():
        job = {"task": "sms", "flipped": 0.1, "train_rows": 2000, "loss": "ce_dice"}
        job |= {"seed": seed, "max_epochs": passes, "precision": "fp32"}
        test = {"f1": f1, "average_precision": precision}
        records.append({"job": job, "test": test, "positives": {"train": 500, "test": 9}})
    row = "| SMS | 10% | 2,000 | 500 | 2 | 8, 3 | 55.0 | 65.0 | 65.0 | 75.0 | 70.0 | 75.0 |"
    table = list(length.lines(records))
    assert table[2] == row
    assert table[-2] == "| mean behind the best, texts | | | | | | 10.0 | 0.0 |  | 0.0 | 5.0 |  |"
    # The same fit on a GPU, in bf16, counts in place of the other.
    again = {**records[0], "job": records[0]["job"] | {"precision": "bf16"}}
    again["test"] = {"f1": 0.6, "average_precision": 0.6}
    table = list(length.lines([again, *records]))
    assert table[2].startswith("| SMS * |")  # two machines
    assert "| 55.0 | 70.0 | 70.0 |" in table[2]


def test_a_fit_is_made_as_fit_chooses_it(harness, data, tiny_backbone):
    job = {"task": "sms", "seed": 0, "precision": "fp32", "loss": "ce_dice", "test_rows": 5000}
    job |= {"train_rows": 12, "backbone": tiny_backbone}
    found = harness["length"].run(job, data, threads=1)
    assert found["job"] == job
    assert len(found["history"]) == choose_epochs(12, 32, found["positives"]["train"])
    assert 0 <= found["test"]["f1"] <= found["test"]["best_f1"] <= 1
    assert found["lr"] == 1e-4
