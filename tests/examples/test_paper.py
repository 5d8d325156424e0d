"""The harness of examples/paper: what is run, in which order, and what counts in a table."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import f1_score

from tests.examples.scripts import PAPER, scripts

COMMON = {"precision": "fp32"}


@pytest.fixture(scope="module")
def harness() -> Iterator[dict[str, ModuleType]]:
    pytest.importorskip("matplotlib")
    with scripts(
        PAPER, "tasks", "experiments", "run", "report", "budget", "decisions", "table8"
    ) as found:
        # The tests count its runs: three rows with one setting each are easier to count.
        experiments = found["experiments"].EXPERIMENTS
        experiments["table9"] = found["run"].narrowed(experiments["table9"], None, ["dice", "dsc"])
        yield found


def finished(job: dict[str, Any], score: float) -> dict[str, Any]:
    scores = dict.fromkeys(("precision", "recall", "accuracy", "f1"), score)
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


def test_a_killed_run_goes_on_where_it_was(harness, tmp_path):
    run = harness["run"]
    records = play(harness, "table9", "clinc_intents", seeds=2)
    assert len(records) == 6
    file = tmp_path / "runs.jsonl"
    lines = [json.dumps(record) for record in records]
    file.write_text("\n".join(lines[:4]) + "\n" + lines[4][:20])  # the kill cut a line short
    found = run.read(file)
    assert found == records[:4]
    # The next record has a line of its own, and so has the one after it.
    for record in records[4:]:
        run.append(file, record)
    assert run.read(file) == records
    assert file.read_text().endswith(f"{lines[4][:20]}\n{lines[4]}\n{lines[5]}\n")
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
    reported = json.loads((PAPER / "reported.json").read_text())
    text = "\n".join(report.section("rivals", records, reported, COMMON, tmp_path))
    summary, table, *differences = text.split("\n### ")[1:]
    line = next(row for row in table.splitlines() if row.startswith("| ce |"))
    # Seeds 0 to 5 score 50 down to 45: the mean and the standard deviation by hand.
    assert "47.5 ± 1.9" in line
    assert "| ce | 47.5 | 47.5 |" in summary
    assert "lr 0.0001" in line
    assert "| 4 | 6 | 1 |" in line
    for paired, ours in zip(differences, ("dsc", "ce_dice", "ce_dice, tuned"), strict=True):
        assert paired.startswith(f"`{ours}` less each other row")
        rows = [row for row in paired.splitlines() if row.startswith("| weighted_ce | 6 | +0.00")]
        assert len(rows) == 1
    empty = "\n".join(report.section("table7", records, reported, COMMON, tmp_path))
    assert "| BERT + DSC | 88.92 | 92.11 |" in empty
    command = "python run.py table7 --data FOLDER --tasks mrpc --precision fp32"
    assert f"- Not run yet on mrpc: every row (`{command}`)." in empty


def made_up(harness: Any, seeds: dict[str, dict[str, list[int]]]) -> tuple[Any, dict[str, Any]]:
    """Runs of the rivals with an F1 that tells data set, row and seed apart."""
    rivals = harness["experiments"].EXPERIMENTS["rivals"]
    places = {row.label: i for i, row in enumerate(rivals.rows)}

    def run(task: str, label: str, seed: int) -> dict[str, Any]:
        return {"seed": seed, "f1": (len(task) + places[label] + 20 * seed**2) / 100}

    return rivals, {
        task: {label: [run(task, label, s) for s in of_row] for label, of_row in rows.items()}
        for task, rows in seeds.items()
    }


def lines_of(text: str) -> dict[str, list[str]]:
    """The cells of each line of a table by the first."""
    rows = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("|")]
    return {row[0].strip(): [cell.strip() for cell in row[1:]] for row in rows}


def test_a_column_of_the_summary_is_over_the_same_seeds(harness):
    everywhere = ("ce", "dice", "dsc")
    seeds: dict[str, dict[str, list[int]]] = {
        "wnut17": {label: [0, 1, 2] for label in everywhere} | {"ce, over-sampling": [0, 1, 2]},
        "clinc_oos": {label: [0, 1] for label in everywhere} | {"ce": [0, 1, 4]},
        "bc5cdr": {label: [0, 3] for label in everywhere} | {"tversky": [0]},
    }
    rivals, shown = made_up(harness, seeds)
    table = lines_of("\n".join(harness["report"].summary(rivals, shown)))
    columns = ["wnut17 (seeds 0-2)", "clinc_oos (seeds 0-1)", "bc5cdr (seed 0)"]
    assert table["row"] == [*columns, "mean", "mean without clinc_oos"]
    places = {row.label: place for place, row in enumerate(rivals.rows)}
    of_seeds = ((0 + 20 + 80) / 3, (0 + 20) / 2, 0)
    for label in everywhere:
        a, b, c = (len(t) + places[label] + v for t, v in zip(seeds, of_seeds, strict=True))
        expected = [a, b, c, (a + b + c) / 3, (a + c) / 2]
        assert table[label] == [f"{value:.1f}" for value in expected]
    # A row that has not run everywhere has no mean.
    over = len("wnut17") + places["ce, over-sampling"] + of_seeds[0]
    assert table["ce, over-sampling"] == [f"{over:.1f}", "-", "-", "-", "-"]
    assert set(table) == {"row", "---", *everywhere, "ce, over-sampling", "tversky"}


def test_paired_differences_say_how_many_pairs_each_data_set_has(harness):
    seeds = {"wnut17": {"ce": [0, 1, 2], "dsc": [0, 2]}, "sms_rare": {"ce": [0], "dsc": [0, 1]}}
    rivals, shown = made_up(harness, seeds)
    text = "\n".join(harness["report"].paired(rivals, shown, "dsc"))
    rows = [row.label for row in rivals.rows]
    gap = rows.index("dsc") - rows.index("ce")
    cells = ["3", f"+{gap}.00", f"wnut17 +{gap}.0 (2), sms_rare +{gap}.0 (1)", "too few"]
    assert lines_of(text)["ce"] == cells
    assert "not independent data sets" in text.replace("\n", " ")


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


def test_the_stronger_cross_entropy_is_the_better_start_on_development_rows(harness):
    budget = harness["budget"]
    test = {"ce": {1: {0: 30.0}, 2: {0: 50.0}}, budget.PRIOR: {1: {0: 40.0}, 2: {0: 45.0}}}
    dev = {"ce": {1: {0: 1.0}, 2: {0: 2.0}}, budget.PRIOR: {1: {0: 2.0}, 2: {0: 3.0}}}
    tasks = {"wnut17": test}
    budget.add_stronger(tasks, {"wnut17": dev})
    # Not the better one on the test rows, which nobody has when they choose.
    assert tasks["wnut17"][budget.STRONGER] == {1: {0: 40.0}, 2: {0: 45.0}}


def test_the_plug_in_rule_finds_the_best_threshold_of_true_probabilities(harness):
    random = np.random.default_rng(0)
    p = random.beta(0.3, 2.0, 20_000)
    truth = random.random(len(p)) < p
    odds = np.log(p) - np.log1p(-p)

    def f1(found):
        return f1_score(truth, found)

    found = f1(odds + harness["decisions"].plug_in(odds, truth) > 0)
    assert found == pytest.approx(max(f1(p > t) for t in np.linspace(0.01, 0.99, 99)), abs=0.005)
    assert found > f1(odds > 0) + 0.02


def test_a_temperature_takes_away_what_made_a_model_too_sure(harness):
    """Log-odds three times too large, of two classes and of tags."""
    decisions, random = harness["decisions"], np.random.default_rng(0)

    def part(positive):
        p = random.dirichlet([1.0, 0.4], size=4000)
        truth = (random.random(4000) > p[:, 0]).astype(int)
        return decisions.Part(3 * np.log(p), truth, positive)

    for positive in (1, None):
        found = decisions.errors(part(positive), part(positive))
        assert found["as it is"] > 8
        assert max(found["temperature"], found["neg_log_loss"]) < 3


def write_clinc(folder: Path) -> None:
    """Ten intents with 40 questions each in every part, and few out of scope."""
    (folder / "clinc_oos").mkdir()
    data: dict[str, list[list[str]]] = {}
    for part, n_out in (("train", 4), ("val", 6), ("test", 100)):
        data[part] = [[f"{part} {i}", f"intent {i % 10}"] for i in range(400)]
        data[f"oos_{part}"] = [[f"{part} out {i}", "oos"] for i in range(n_out)]
    (folder / "clinc_oos" / "data_imbalanced.json").write_text(json.dumps(data))


def test_a_trial_has_rows_of_each_class_and_others_are_drawn_as_ever(harness, tmp_path):
    tasks, run = harness["tasks"], harness["run"]
    write_clinc(tmp_path)
    whole, few = (tasks.load("clinc_oos", tmp_path, limit=limit) for limit in (None, 32))
    for part in ("train", "dev", "test"):
        X, y = getattr(few, part)
        assert len(X) == len(set(X)) == len(y) == 32
        assert y.count("oos") >= 4
        assert y.count("in") > y.count("oos")
        known = dict(zip(*getattr(whole, part), strict=True))
        assert [known[x] for x in X] == y
    job = {"seed": 0, "train_rows": 3500, "train_set": "+ positive"}
    assert run.training_rows(few, job)[1].count("oos") == few.train[1].count("in")
    # Too many classes for the limit: the same ones in each part.
    intents = tasks.load("clinc_intents", tmp_path, limit=16)
    assert {*intents.train[1]} == {*intents.dev[1]} == {*intents.test[1]}
    chosen = np.random.default_rng(0).permutation(len(whole.train[0]))[:30]
    X, y = run.training_rows(whole, {"train_rows": 30})
    assert [whole.train[0][i] for i in chosen] == X
    assert y == [whole.train[1][i] for i in chosen]


def test_table_1_counts_each_part_as_the_runs_use_it(harness, tmp_path, monkeypatch):
    report, tasks = harness["report"], harness["tasks"]
    write_clinc(tmp_path)
    monkeypatch.setattr(tasks, "TASKS", {"clinc_oos": tasks.TASKS["clinc_oos"]})
    monkeypatch.setattr(tasks, "COUNTED", ("cmrc2018",))
    (tmp_path / "cmrc2018").mkdir()
    for part, said in (("dev", 1), ("trial", 2)):
        question = {"question": "谁?", "answers": [{"text": "安", "answer_start": said}]}
        asked = [{**question, "id": "a"}, {**question, "id": "b"}]
        content = {"data": [{"paragraphs": [{"context": "在安。", "qas": asked}]}]}
        (tmp_path / "cmrc2018" / f"cmrc2018_{part}.json").write_text(json.dumps(content))
    monkeypatch.setitem(report.SETTINGS, "clinc_oos", {"train_rows": 150})
    text = report.table1(tmp_path, {"table1": {"columns": ["ratio"], "rows": {}}})
    task = tasks.load("clinc_oos", tmp_path)
    chosen = np.random.default_rng(0).permutation(404)[:150]
    used = [task.train[1][i] for i in chosen]
    cells = [
        f"{y.count('in') / y.count('oos'):.2f} ({100 * y.count('oos') / len(y):.1f} %)"
        for y in (used, task.dev[1], task.test[1])
    ]
    assert lines_of(text)["clinc_oos"] == ["examples", "400", "4", "100.00", *cells]
    assert cells[2] == "4.00 (20.0 %)"
    # Two questions about three tokens; an offset that is wrong by one counts alike.
    for part in ("dev", "trial"):
        line = lines_of(text)[f"cmrc2018_{part}"]
        assert line == ["tokens", "2", "4", "0.50", "-", "-", "-"]


def test_the_commands_for_what_is_missing_can_be_called(harness, tmp_path, monkeypatch):
    from typer.main import get_command

    from skdice.cli.app import app

    files = {
        "qqp.tsv": "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n"
        "0\t1\t2\tWho is Ann?\tAnn is who?\t1\n1\t3\t4\tWhy?\tWho sings?\t0\n",
        "sst2.tsv": "sentence\tlabel\na fine film\t1\na dull film\t0\n",
        "train.conll": "-DOCSTART- -X- -X- O\n\nAnn NNP B-NP B-PER\nsings VBZ B-VP O\n",
        "train-v2.0.json": '{"data": [{"title": "", "paragraphs": [{"context": "Ann sings.", '
        '"qas": [{"id": "0", "question": "Who?", "answers": [{"text": "Ann", '
        '"answer_start": 0}]}]}]}]}',
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    for name, other in (("train.conll", "test.conll"), ("train-v2.0.json", "dev-v2.0.json")):
        (tmp_path / other).write_text(files[name])
    sizes = set()
    monkeypatch.setattr(
        "skdice.model_selection.comparison.compare_losses",
        lambda estimator, X, y, **how: sizes.add((type(estimator).__name__, len(X))),
    )
    monkeypatch.setattr("skdice.cli.compare._report", lambda *args: None)
    texts = [
        text
        for experiment in harness["experiments"].EXPERIMENTS.values()
        for text in experiment.missing.values()
    ]
    commands = re.findall(r"`(skdice compare [^`]*)`", " ".join(texts))
    for command in commands:
        assert not get_command(app).main(shlex.split(command)[1:], standalone_mode=False)
    kinds = {"DiceSequenceClassifier": 2, "DiceTokenClassifier": 1, "DiceQuestionAnswerer": 1}
    assert sizes == {*kinds.items()}
    asked = re.findall(r"run\.py (\w+) --data FOLDER", " ".join(texts))
    assert asked == ["table3", "table5"]


def test_table8_sets_at_the_papers_proportions(harness):
    X, y = [f"text {i}" for i in range(1000)], [1] * 370 + [0] * 630
    sets = harness["table8"].training_sets(X, y, 0)
    assert {name: (labels.count(1), labels.count(0)) for name, (_, labels) in sets.items()} == {
        "original": (370, 630),
        "+ positive": (630, 630),  # 458,477 / 363,871 = 1.26 of the original
        "+ negative": (370, 1392),  # 21 % positives
        "- negative": (370, 370),  # 269,165 / 363,871 = 0.74
        "+ positive & negative": (630, 630),
    }
    label = dict(zip(X, y, strict=True))
    for texts, labels in sets.values():
        assert [label[text] for text in texts] == labels
