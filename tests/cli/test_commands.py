"""The commands as a whole: help, names that are gone, and what is refused before the work."""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys

import pytest
from typer.main import get_command

from skdice import estimators
from skdice.cli import compare
from skdice.cli.app import app
from skdice.datasets import read_annotations, write_annotations
from skdice.losses import LOSS_NAMES
from skdice.model_selection import compare_losses
from skdice.tasks import TASKS
from tests.cli.running import run, said

COMMANDS = ("train", "predict", "evaluate", "compare", "convert")


def test_help_is_quick_and_has_examples():
    code = (
        "import sys; from skdice.cli.app import app\n"
        "assert not {'torch', 'transformers', 'sklearn'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert tuple(get_command(app).commands) == COMMANDS
    summaries = said(run("--help"))
    for command in COMMANDS:
        result = run(command, "--help", env={"COLUMNS": "80"}).output
        assert f"skdice {command} " in result
        assert "For example:" in result
        assert max(map(len, result.splitlines())) <= 80
        assert "\u2026" not in result  # nothing is cut
        first = " ".join(result.split("\n\n")[1].split())
        assert f"{command} {first}" in summaries
    assert run("--version").output.startswith("skdice 0.")


def test_the_help_has_the_defaults_of_python():
    text = said(run("compare", "--help", env={"COLUMNS": "999"}))
    found = dict(re.findall(r"--([a-z-]+) [^.]*?default: (.*?)\.(?: |$)", text))
    assert found["losses"] == ", ".join(LOSS_NAMES)
    assert int(found["seeds"]) == compare.SEEDS
    assert inspect.signature(compare_losses).parameters["seeds"].default == compare.SEEDS
    for name in ("max_epochs", "lr", "batch_size", "backbone"):
        shown = re.split(", (.*) with ", found[name.replace("_", "-")])
        of_task = dict.fromkeys(TASKS, shown[0]) | dict(zip(shown[2:], shown[1:2], strict=True))
        for task, value in of_task.items():
            made = inspect.signature(getattr(estimators, TASKS[task].estimator)).parameters
            assert str(made[name].default).endswith(value.split()[-1]), (task, name)


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (("train", "{}/nowhere", "--out", "{}/m"), 1, "no file"),
        (("train", "{}/a.csv", "--out", "{}/m", "--loss", "dise"), 1, "dise"),
        (("train", "{}/a.csv", "--out", "{}/m", "--backbone", "a/b/c"), 1, "backbone"),
        (("train", "{}/a.csv", "--out", "{}/m", "--max-epochs", "0"), 1, "'max_epochs' parameter"),
        (("train", "{}/a.csv", "--out", "{}/m", "--lr", "fast"), 1, "'lr' parameter"),
        (("train", "{}/empty.csv", "--out", "{}/m"), 1, "is empty"),
        (("train", "{}/a.csv", "--out", "{}/m", "--layer", "x"), 2, "is for texts with entities"),
        (("train", "{}/a.csv", "--out", "{}/m", "--task", "x"), 1, "'tagging'"),
        (("predict", "{}", "{}/a.csv"), 1, "skdice.json"),
        (("compare", "--losses", "no", "--train", "{}/a.csv", "--out", "{}/o"), 1, "'no'"),
        (("compare", "--test", "{}/a.csv"), 2, "--train"),
        (("train",), 2, "Missing"),
        (("nonsense",), 2, "No such command"),
    ],
)  # fmt: skip
def test_errors_have_codes_and_no_traceback(tmp_path, args, code, message):
    (tmp_path / "a.csv").write_text("text,label\n" + "win money,spam\nlunch,ham\n" * 5)
    (tmp_path / "empty.csv").write_text("")
    result = run(*(arg.format(tmp_path) for arg in args))
    assert result.exit_code == code
    assert message in said(result)
    assert "Traceback" not in result.output
    assert not (tmp_path / "m").exists()


def test_what_cannot_be_written_is_said_before_the_work(tmp_path, monkeypatch):
    def never(*args, **kwargs):
        raise AssertionError("the work began")

    for name in ("skdice.cli._common.load", "skdice.cli._files.read"):
        monkeypatch.setattr(name, never)
    data, model = tmp_path / "a.csv", tmp_path / "m"
    (tmp_path / "taken").write_text("")
    (tmp_path / "full").mkdir()
    to_folder = ("train", data), ("compare", "--train", data)
    to_file = ("predict", model, data)
    brat = (*to_file, "--format", "brat", "--force")
    cases = [((*c, "--out", tmp_path / "taken"), "is a file") for c in to_folder]
    cases += [((*c, "--out", tmp_path / "taken" / "b"), "cannot be written") for c in to_folder]
    cases += [
        ((*to_file, "--out", tmp_path / "no" / "p.csv"), "is no folder"),
        ((*to_file, "--out", tmp_path / "taken"), "exists: give another --out, or --force"),
        ((*to_file, "--out", tmp_path / "full", "--force"), "is no file"),
        ((*to_file, "--out", tmp_path / "p.csv.GZ"), "would hold plain text: drop '.GZ'"),
        ((*brat, "--out", tmp_path / "taken"), "is no folder"),
        (("evaluate", model, data, "--report", tmp_path / "no" / "p.html"), "is no folder"),
        (("convert", data, tmp_path / "no" / "p.jsonl"), "is no folder"),
        (("convert", data, tmp_path / "full"), "exists: give another OUT, or --force"),
    ]
    for args, message in cases:
        result = run(*args)
        assert (args, result.exit_code, message in said(result)) == (args, 2, True)
    result = run("train", data, "--out", ".")
    assert result.exit_code == 1
    assert "is the working directory" in said(result)

    def refused(dir):
        raise PermissionError(13, "Permission denied", str(dir))

    monkeypatch.setattr("tempfile.TemporaryFile", refused)  # as for a user who is not root
    for command in (*to_folder, to_file, ("evaluate", model, data), ("convert", data)):
        option = {"evaluate": ["--report"], "convert": []}.get(command[0], ["--out"])
        result = run(*command, *option, tmp_path / "new")
        assert (command, result.exit_code) == (command, 2)
        assert "cannot be written (Permission denied)" in said(result)


def test_convert_replaces_a_folder(tmp_path):
    texts, entities = ["Ann naps", "Bo sings"], [[(0, 3, "PER")], [(0, 2, "PER")]]
    write_annotations(tmp_path / "a.jsonl", texts, entities, "doccano")
    args = ("convert", tmp_path / "a.jsonl", tmp_path / "out", "--to", "brat")
    assert run(*args).exit_code == 0
    assert (tmp_path / "out").is_dir()
    write_annotations(tmp_path / "a.jsonl", texts[::-1], entities[::-1], "doccano")
    assert run(*args).exit_code == 2
    result = run(*args, "--force")
    assert result.exit_code == 0, result.output
    assert read_annotations(tmp_path / "out").texts == texts[::-1]


def test_the_answers_of_several_spans_are_counted_by_their_words(tmp_path, read):
    answers = [{"text": "Ann Lee", "answer_start": 0}, {"text": "Bo", "answer_start": 12}]
    questions = [{"id": "1", "question": "Who?", "answers": answers}]
    paragraph = {"context": "Ann Lee and Bo sing", "qas": questions}
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"data": [{"title": "t", "paragraphs": [paragraph]}]}))
    how = ("--task", "multi-span-qa")
    assert read(path, *how) == {"B-ANSWER": 2, "O": 2, "I-ANSWER": 1}
