"""The comparison at the paper's size: examples/paper/full.py and the tables that it makes."""

from __future__ import annotations

import argparse

import pytest

from tests.examples.scripts import PAPER, scripts, write_messages


@pytest.fixture(scope="module")
def harness():
    with scripts(PAPER, "tasks", "run", "full", "full_page") as found:
        yield found


def test_a_machine_without_a_gpu_runs_the_sets_that_are_named(harness, tmp_path):
    full = harness["full"]
    args = argparse.Namespace(
        small=False, sets=["mrpc", "ud_zh"], losses=["ce", "dsc"], data=None, reader=False,
        passes=None, precision=None, records=tmp_path / "full.jsonl",
    )  # fmt: skip
    found = [(job["seed"], job["task"], job["loss"]) for job in full.missing(args)]
    assert found == [
        (seed, name, loss)
        for name in ("mrpc", "ud_zh")
        for seed in (0, 1)
        for loss in ("ce", "dsc")
    ]
    # They are those of the whole plan.
    assert full.key(full.missing(args)[0]) in {full.key(job) for job in full.jobs()}
    args.reader, args.passes, args.precision = True, "auto", "bf16"
    kinds = {(job["reader"], job["max_epochs"], job["precision"]) for job in full.missing(args)}
    assert kinds == {(True, "auto", "bf16")}


@pytest.mark.parametrize(
    "loss",
    [{"loss": "ce", "start": "zero"}, {"loss": "dsc", "max_epochs": "auto", "precision": "fp32"}],
)
def test_a_job_is_scored_as_it_is_and_tuned(harness, tmp_path, tiny_backbone, loss):
    full = harness["full"]
    job = {"task": "sms", "seed": 0, "max_epochs": 1, "backbone": tiny_backbone, **loss}
    found = full.run(job, write_messages(tmp_path, 40))
    assert found["job"] == job
    assert found["max_epochs"] == (1 if job["max_epochs"] == 1 else 30)  # of a few rows
    for how in ("plain", "tuned"):
        assert 0 <= found[how]["test"]["score"] <= 1


def record(loss, seed, score, **job):
    job = {"task": "mrpc", "seed": seed, "max_epochs": 3, **loss, **job}
    figures = {"dev": {"score": score}, "test": {"score": score}}
    return {"job": job, "loss": "", "plain": figures, "tuned": figures}


def test_differences_are_of_fits_that_are_the_same_but_for_the_loss(harness):
    page, ce, dsc = harness["full_page"], {"loss": "ce"}, {"loss": "dsc"}
    records = [record(ce, 0, 0.5), record(dsc, 0, 0.6), record(ce, 1, 0.5), record(dsc, 1, 0.4)]
    records += [record(ce | {"start": "zero"}, 0, 0.1), record(dsc, 2, 0.9)]  # without a partner
    records += [record(ce, 0, 0.1, max_epochs=8), record(dsc, 0, 0.9, backbone="base")]
    found = page.differences(records, "mrpc", "plain", max_epochs=3)
    assert found == pytest.approx([10.0, -10.0])
    assert page.interval(found) == "+10.0, -10.0"
    # By hand: the mean of 1, 2 and 3 is 2, t is 4.303 and the standard error 0.577.
    assert page.interval([1.0, 2.0, 3.0]) == "+2.0 ± 2.5 (3)"


def test_a_fit_of_another_length_has_a_row_that_says_so(harness):
    page = harness["full_page"]
    records = [record({"loss": "ce"}, seed, 0.5) for seed in (0, 1)]
    records += [record({"loss": "dsc"}, 0, 0.6, max_epochs="auto") | {"max_epochs": 5}]
    records += [record({"loss": "dsc"}, 0, 0.7, max_epochs=8)]  # of another table
    rows = [row for row in page.by_loss(records) if "plain" in row]
    assert [row.split(" | ")[0] for row in rows] == ["| MRPC", "| MRPC, 5 passes"]
    assert "50.0" in rows[0]
    assert "60.0" in rows[1]
    assert list(page.by_positives(records)) == []  # no empty table


def test_a_row_has_the_seeds_that_all_its_losses_have(harness):
    ce, dsc = {"loss": "ce"}, {"loss": "dsc"}
    records = [record(ce, 0, 0.5), record(ce, 1, 0.9), record(dsc, 0, 0.6)]
    row = list(harness["full_page"].by_loss(records))[2]
    assert row.split(" | ")[2:4] == ["1", "plain"]
    assert "50.0" in row


def test_k_is_chosen_on_development_rows(harness):
    page, weighted = harness["full_page"], {"loss": "weighted_ce"}
    one, five = (record(weighted | {"loss__K": K}, 0, score) for K, score in ((1, 0.5), (5, 0.4)))
    five["plain"] = {"dev": {"score": 0.6}, "test": {"score": 0.3}}
    assert page.means([one, five], "plain") == pytest.approx({"weighted_ce": 30.0})
