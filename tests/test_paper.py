"""The harness of examples/paper: what is run, in which order, and what counts in a table."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import BaseEstimator, clone

from skdice.losses import resolve_loss

FOLDER = Path(__file__).parents[1] / "examples" / "paper"
COMMON = {"precision": "fp32"}


@pytest.fixture(scope="module")
def harness() -> Iterator[dict[str, ModuleType]]:
    pytest.importorskip("matplotlib")
    names = ("tasks", "rival_losses", "tried_losses", "experiments", "run", "report")
    sys.path.insert(0, str(FOLDER))
    try:
        yield {name: importlib.import_module(name) for name in names}
    finally:
        sys.path.remove(str(FOLDER))
        for name in names:
            sys.modules.pop(name, None)


def finished(job: dict[str, Any], score: float) -> dict[str, Any]:
    scores = {"precision": score, "recall": score, "f1": score}
    sides = {"dev": scores, "test": scores}
    machine = {"device": "none", "torch": "0", "date": "2000-01-01"}
    return {"job": job, "seconds": 1.0, "plain": sides, "tuned": sides, **machine}


def play(harness: Any, table: str, task: str, seeds: int) -> list[dict[str, Any]]:
    """Run nothing, and score a job by its rate and seed."""
    run = harness["run"]
    experiment = run.narrowed(harness["experiments"].EXPERIMENTS[table], [task], None)
    records: list[dict[str, Any]] = []
    while job := next(run.missing_jobs(experiment, records, seeds, COMMON), None):
        assert run.key(job) not in {run.key(record["job"]) for record in records}
        record = finished(job, 0.5 - abs(job["lr"] - 1e-4) - 0.01 * job["seed"])
        records.append({**record, "loss": repr(run.loss_of(job))})
    return records


def test_candidates_compete_once_and_the_winner_runs_with_every_seed(harness):
    records = play(harness, "rivals", "wnut17", seeds=3)
    jobs = [record["job"] for record in records]
    rates = [
        job["lr"]
        for job in jobs
        if job["loss"] == "ce" and not {"sampler", "loss__tau", "then"} & set(job)
    ]
    assert sorted(rates) == [1e-4, 1e-4, 1e-4, 3e-4]
    # A row without rates of its own takes the one that cross-entropy chose.
    assert {job["lr"] for job in jobs if job["loss"] in ("focal", "dsc")} == {1e-4}
    focal = [job["loss__gamma"] for job in jobs if job["loss"] == "focal"]
    assert len(focal) == 2 + 2
    # "ce" and "ce, tuned" are one training.
    assert len(jobs) == len({json.dumps(job, sort_keys=True) for job in jobs})


def test_a_killed_run_goes_on_where_it_was(harness, tmp_path):
    run = harness["run"]
    records = play(harness, "table9", "clinc_intents", seeds=2)
    assert len(records) == 6
    file = tmp_path / "runs.jsonl"
    lines = [json.dumps(record) for record in records]
    file.write_text("\n".join(lines[:4]) + "\n" + lines[4][:20])  # the kill cut a line short
    found = run.read(file)
    assert found == records[:4]
    # What a name stood for before its default changed is no run of the name.
    old = {**records[0], "loss": "DSCLoss()"}
    file.write_text(json.dumps(old) + "\n" + lines[1])
    assert run.read(file) == records[1:2]
    experiment = harness["experiments"].EXPERIMENTS["table9"]
    left = list(run.missing_jobs(experiment, found, 2, COMMON))
    assert [run.key(job) for job in left] == [run.key(r["job"]) for r in records[4:]]


def test_the_tables_are_made_of_the_runs(harness, tmp_path):
    records = play(harness, "rivals", "wnut17", seeds=6)
    report = harness["report"]
    reported = json.loads((FOLDER / "reported.json").read_text())
    text = "\n".join(report.section("rivals", records, reported, COMMON, tmp_path))
    line = next(row for row in text.splitlines() if row.startswith("| ce |"))
    # Seeds 0 to 5 score 50 down to 45: the mean and the standard deviation by hand.
    assert "47.5 ± 1.9" in line
    assert "lr 0.0001" in line
    assert "| 2 | 6 | 1 |" in line
    pairs = [row for row in text.splitlines() if row.startswith("| weighted_ce | 6 | +0.00")]
    assert len(pairs) == 1
    assert not list(report.section("table7", records, reported, COMMON, tmp_path))


def test_the_sweep_has_a_chart_and_the_papers_own_figures(harness, tmp_path):
    records = play(harness, "table10", "wnut17", seeds=2)
    reported = json.loads((FOLDER / "reported.json").read_text())
    found = harness["report"].section("table10", records, reported, COMMON, tmp_path)
    text = "\n".join(found)
    assert (tmp_path / "table10-wnut17.svg").exists()
    assert "| 0.6 | 84.67 | 66.35 |" in text  # the paper's best for OntoNotes 4


def test_a_row_alone_brings_cross_entropy_whose_rate_it_takes(harness):
    run = harness["run"]
    rivals = harness["experiments"].EXPERIMENTS["rivals"]
    chosen = run.narrowed(rivals, ["wnut17"], ["weighted_ce"])
    assert [row.label for row in chosen.rows] == ["ce", "weighted_ce"]
    assert {job["loss"] for job in run.missing_jobs(chosen, [], 1, COMMON)} == {"ce"}


def test_every_table_names_data_and_rows_that_exist(harness):
    experiments, tasks = harness["experiments"], harness["tasks"]
    for experiment in experiments.EXPERIMENTS.values():
        assert set(experiment.tasks) <= set(tasks.TASKS) & set(experiments.SETTINGS)
        labels = [row.label for row in experiment.rows]
        assert len(labels) == len(set(labels))
        budgets: dict[bool, list[int]] = {True: [], False: []}
        for row in experiment.rows:
            ours = row.candidates[0]["loss"] in ("dice", "tversky", "dsc", "ce_dice")
            budgets[ours].append(len(row.candidates))
        if all(budgets.values()):
            assert max(budgets[True]) <= min(budgets[False]), "no overlap loss has more tries"


@pytest.mark.parametrize("seed", [0, 3])
def test_a_split_is_of_each_class_and_loses_nothing(harness, seed):
    X, y = [f"text {i}" for i in range(50)], ["a"] * 40 + ["b"] * 10
    train, dev, test = harness["tasks"]._split(X, y, (0.2, 0.3), seed)
    assert sorted(train[0] + dev[0] + test[0]) == sorted(X)
    assert [part[1].count("b") for part in (train, dev, test)] == [5, 2, 3]
    known = dict(zip(X, y, strict=True))
    assert all(
        known[x] == label for part in (train, dev, test) for x, label in zip(*part, strict=True)
    )


def test_missing_data_and_unknown_names_are_said_before_the_work(harness, tmp_path):
    tasks, run = harness["tasks"], harness["run"]
    with pytest.raises(SystemExit, match=r"wnut17train\.conll is missing"):
        tasks.load("wnut17", tmp_path)
    with pytest.raises(SystemExit, match="'nope' is unknown"):
        tasks.load("nope", tmp_path)
    with pytest.raises(SystemExit, match="nope"):
        run.narrowed(harness["experiments"].EXPERIMENTS["table7"], None, ["nope"])


class Recorded(BaseEstimator):
    """Fits nothing: each epoch scores what it is told to."""

    def __init__(self, loss: Any = "ce", max_epochs: int = 3, warm_start: bool = False) -> None:
        self.loss = loss
        self.max_epochs = max_epochs
        self.warm_start = warm_start

    def fit(self, X: Any, y: Any, scores: Any) -> Recorded:
        before = self.history_ if self.warm_start else []
        fresh = [{"valid_score": scores.pop(0), "loss": self.loss} for _ in range(self.max_epochs)]
        self.history_ = before + fresh
        return self


@pytest.mark.parametrize(("scores", "epochs"), [([0.1, 0.2, 0.3], 3), ([0.1, 0.3, 0.2], 2)])
def test_the_last_epoch_has_another_loss_and_counts_if_it_is_the_best(harness, scores, epochs):
    run = harness["run"]
    job = {"task": "wnut17", "loss": "ce", "then": "dsc", "max_epochs": 3}
    model = run.fitted(Recorded(), job, [], [], {"scores": list(scores)})
    assert len(model.history_) == epochs
    assert [epoch["loss"] for epoch in model.history_[:2]] == ["ce", "ce"]
    if epochs == 3:
        assert repr(model.history_[2]["loss"]) == "DSCLoss(smooth=0.01, surrogate='log')"
    assert run.described(job) == "CrossEntropyLoss(), then DSCLoss(smooth=0.01, surrogate='log')"


# Two types: B-x, B-y, I-x, I-y, O. Two sentences; the second begins where the first's span ends.
TAGS = torch.tensor([4, 4, 0, 2, 2, 4, 1, 1, 3, 4, 4, 4])


def slopes(loss: Any, logits: torch.Tensor) -> tuple[float, torch.Tensor]:
    made = clone(loss).prepare(np.bincount(TAGS, minlength=5), background=4)
    z = logits.clone().requires_grad_()
    value = made(z, TAGS)
    return value.item(), torch.autograd.grad(value, z)[0]


@pytest.fixture
def logits() -> torch.Tensor:
    return torch.randn(len(TAGS), 5, generator=torch.Generator().manual_seed(0))


def test_counting_tokens_in_place_of_spans_is_the_default_dice(harness, logits):
    value, slope = slopes(harness["tried_losses"].SpanLoss("tokens"), logits)
    expected, expected_slope = slopes(resolve_loss("dice"), logits)
    assert value == pytest.approx(expected, rel=1e-5)
    torch.testing.assert_close(slope, expected_slope)


@pytest.mark.parametrize("each_once", [False, True])
def test_counting_spans_is_a_loop_over_spans(harness, logits, each_once):
    p = logits.softmax(1).tolist()
    tags, spans = TAGS.tolist(), [[2, 3, 4], [6], [7, 8]]
    hits = sum(np.prod([p[i][tags[i]] for i in span]) for span in spans)
    called = sum(row[0] + row[1] for row in p)
    f1 = (2 * hits + 0.01) / (called + len(spans) + 0.01)
    total = sum(-f1 * np.log(p[i][4]) for i, tag in enumerate(tags) if tag == 4)
    for span in spans:
        pulls = [-(2 - f1) * np.log(p[i][tags[i]]) for i in span]
        total += sum(pulls) / (len(span) if each_once else 1)
    value, _ = slopes(harness["tried_losses"].SpanLoss(each_once=each_once), logits)
    assert value == pytest.approx(total / len(tags), rel=1e-5)


def test_a_temperature_of_1_changes_nothing_and_another_keeps_the_slope_at_a_half(harness):
    tempered, even = harness["tried_losses"].Tempered, torch.zeros(len(TAGS), 5)
    value, slope = slopes(tempered("dsc", 1.0), even)
    assert (value, slope.tolist()) == (
        slopes(resolve_loss("dsc"), even)[0],
        slopes(resolve_loss("dsc"), even)[1].tolist(),
    )
    for temperature in (0.5, 2.0):
        torch.testing.assert_close(slopes(tempered("dsc", temperature), even)[1], slope)
