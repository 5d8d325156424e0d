"""What is lost by not tuning: examples/paper/fresh.py, and the Trainer that stands beside it."""

from __future__ import annotations

import argparse

import pytest

from tests.examples.scripts import PAPER, scripts, write_messages


@pytest.fixture(scope="module")
def harness():
    with scripts(PAPER, "tasks", "run", "fresh", "plain_trainer") as found:
        yield found


def options(harness, **others):
    known = {"cells": list(harness["fresh"].CELLS), "sizes": [100, 400, 2000], "seeds": 2}
    known |= {"precision": "bf16", "backbone": None, "limit": None}
    return argparse.Namespace(**known | others)


def record(job, dev, test, lr=1e-4, max_epochs=3):
    scores = {"dev": {"f1": dev}, "test": {"f1": test}}
    return {"job": job, "plain": scores, "lr": lr, "max_epochs": max_epochs}


def test_regret_is_against_the_fit_that_the_development_rows_choose(harness):
    fresh = harness["fresh"]
    args = options(harness, cells=["ncbi", "sst2"], sizes=[100])
    records = []
    for job in fresh.missing_jobs(args, []):
        if job["way"] == "grid":
            best = (job["lr"], job["max_epochs"]) == (3e-4, 10)
            dev, test = (0.6, 0.7) if best else (0.5, 0.9)
        elif job["way"] == "fit":
            # Regrets of 10 and 0 on one set, whose mean is 5, and of -10 on the other.
            dev, test = 0.5, 0.8 if job["task"] == "sst2" else 0.6 + 0.1 * job["seed"]
        else:
            dev, test = 0.5, 0.3
        records.append(record(job, dev, test, job.get("lr", 1e-4), job.get("max_epochs", 5)))
    table = list(fresh.regrets(args, records))
    assert table[2:] == [
        "| 100 | 2 | -2.5 (-10.0 to 5.0) | 40.0 (40.0 to 40.0) |",
        "| all | 2 | -2.5 (-10.0 to 5.0) | 40.0 (40.0 to 40.0) |",
    ]
    rows = list(fresh.lines(args, records))[2:]
    assert rows[0] == (
        "| NCBI-disease | 100 | 0 | 0.0003, 10 passes | 70.0 | 0.0001, 5 passes | 60.0 | 30.0 |"
    )
    assert len(rows) == 4
    # A cell that lacks one fit is left out.
    assert len(list(fresh.lines(args, records[1:]))[2:]) == 3


@pytest.mark.parametrize("way", [{"way": "fit"}, {"way": "grid", "lr": 1e-3, "max_epochs": 2}])
def test_a_job_is_one_fit_with_its_own_settings(harness, tmp_path, tiny_backbone, way):
    write_messages(tmp_path, 60)
    job = {"task": "sms", "seed": 0, "train_rows": 16, "dev_rows": 8, "test_rows": 8}
    job |= {"loss": "ce_dice", "precision": "fp32", "backbone": tiny_backbone, **way}
    found = harness["fresh"].run(job, tmp_path, 1)
    assert found["job"] == job
    assert found["lr"] == way.get("lr", found["lr"]) > 0
    assert found["max_epochs"] == way.get("max_epochs", found["max_epochs"]) >= 1
    assert all(0 <= found["plain"][part]["f1"] <= 1 for part in ("dev", "test"))


def test_of_a_word_the_first_piece_counts(harness):
    first = harness["plain_trainer"].first_pieces
    assert first([None, 0, 0, 1, 2, 2, None]) == [None, 0, None, 1, 2, None, None]


def test_the_trainer_fits_tags_texts_and_pairs(harness, tiny_backbone):
    pytest.importorskip("accelerate")
    plain = harness["plain_trainer"].PlainTrainer
    X, y = [["Ann", "sings"], ["it", "rains", "today"]] * 4, [["B-PER", "O"], ["O"] * 3] * 4
    tagger = plain("tags", 0, tiny_backbone).fit(X, y)
    assert [len(row) for row in tagger.predict(X[:2])] == [2, 3]
    assert {tag for row in tagger.predict(X) for tag in row} <= {"B-PER", "O"}
    args = tagger.trainer_.args
    defaults = args.learning_rate, args.num_train_epochs, args.lr_scheduler_type
    assert defaults == (5e-5, 3, "linear")
    assert args.per_device_train_batch_size == 8
    for rows in (["a fine film", "a dull film"] * 4, [("Who?", "Ann"), ("Why?", "So")] * 4):
        model = plain("labels", 0, tiny_backbone).fit(rows, ["yes", "no"] * 4)
        assert set(model.predict(rows)) <= {"yes", "no"}


def test_sets_that_are_made_smaller_or_rarer(harness, tmp_path):
    tasks = harness["tasks"]
    (tmp_path / "qqp").mkdir()
    pairs = "".join(f"s\t{int(i % 3 == 0)}\tWho is {i}?\tWhat is {i}?\n" for i in range(600))
    (tmp_path / "qqp" / "pairs.tsv").write_text("source\tlabel\tone\ttwo\n" + pairs)
    task = tasks.load("qqp_rare", tmp_path)
    for part, n_others in (("train", 320), ("dev", 40), ("test", 40)):
        y = getattr(task, part)[1]
        assert (y.count("0"), y.count("1")) == (n_others, round(n_others / 19))
    (tmp_path / "trec").mkdir()
    lines = [f"{i % 6} What is {i} ?" for i in range(60)]
    for name, rows in (("train.txt", lines), ("test.txt", lines[:12])):
        (tmp_path / "trec" / name).write_text("\n".join(rows), "latin-1")
    place = tasks.load("trec_place", tmp_path)
    parts = [getattr(place, part)[1] for part in ("train", "dev", "test")]
    assert [part.count("place") for part in parts] == [8, 2, 2]
    assert set(tasks.load("trec", tmp_path).test[1]) == set("012345")
    some = tasks._some(lambda folder, seed: place, 5)(tmp_path, 0)
    assert len(some.train[0]) == 5
    assert some.test == place.test
