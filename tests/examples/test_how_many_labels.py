"""F1 by the number of labelled rows, examples/paper/how_many_labels.py."""

from __future__ import annotations

import argparse

import pytest

from tests.examples.scripts import PAPER, scripts, write_messages


@pytest.fixture(scope="module")
def labels():
    with scripts(PAPER, "tasks", "run", "pages", "how_many_labels") as found:
        yield found["how_many_labels"]


def options(labels):
    known = {"cells": list(labels.CELLS), "sizes": list(labels.SIZES), "seeds": 2}
    known |= {"models": list(labels.MODELS), "precision": "bf16", "backbone": None, "limit": None}
    return argparse.Namespace(**known)


def test_each_model_fits_what_it_can(labels):
    jobs = list(labels.missing_jobs(options(labels), []))
    # Four sets of texts with three models at five sizes and SetFit at four; two of tags with two.
    assert len(jobs) == 2 * (4 * (3 * 5 + 4) + 2 * 2 * 5)
    assert {job["train_rows"] for job in jobs if job["model"] == "setfit"} == {20, 50, 100, 300}
    of_tags = {job["model"] for job in jobs if job["task"] in labels.TAGS}
    assert of_tags == {"skdice", "counts"}
    records = [{"job": job} for job in jobs[:5]]
    assert list(labels.missing_jobs(options(labels), records)) == jobs[5:]


@pytest.mark.parametrize("model", ["skdice", "vectors", "counts"])
def test_a_model_is_fitted_and_scored(labels, tmp_path, tiny_backbone, model):
    write_messages(tmp_path, 60)
    job = {"task": "sms", "seed": 0, "train_rows": 20, "dev_rows": 2, "test_rows": 8}
    job |= {"loss": "ce_dice", "precision": "fp32", "backbone": tiny_backbone, "model": model}
    found = labels.run(job, tmp_path, 1)
    assert 0 <= found["test"]["f1"] <= 1


def test_the_page_shows_the_records(labels):
    table = "\n".join(labels.lines(labels.read(labels.RESULTS), list(labels.SIZES)))
    assert table in labels.PAGE.read_text()


def test_the_table_has_means_over_seeds(labels, tmp_path):
    records = [
        {"job": {"task": "sms", "model": model, "train_rows": 20, "seed": seed}, "test": {"f1": f1}}
        for model, seed, f1 in (("skdice", 0, 0.5), ("skdice", 1, 0.7), ("counts", 0, 0.4))
    ]
    assert list(labels.lines(records, [20, 50]))[2:] == [
        "| SMS | skdice | 60.0 |  |",
        "| SMS | TF-IDF or random field | 40.0 |  |",
    ]
    pytest.importorskip("matplotlib")
    labels.picture(labels.curves(records), tmp_path / "labels.svg")
    assert (tmp_path / "labels.svg").stat().st_size > 1000
