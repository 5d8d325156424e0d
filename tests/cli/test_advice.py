"""The options that errors about files name: each is there, and what it promises happens."""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path

import pytest
from typer.main import get_command

import skdice
from skdice.cli._options import of_table
from skdice.cli.app import app
from tests.cli.running import run
from tests.datasets.annotations.test_columns_and_passages import webanno

COMMANDS = get_command(app).commands
READING = ("train", "compare")  # which ask for the task


def lines(*values):
    return "\n".join(map(json.dumps, values))


ANN = {"start": 0, "end": 3, "label": "PER"}
MOVED = {**ANN, "start": 1, "end": 4, "text": "Ann"}
ANSWER = {"id": "a", "question": "who?", "answers": [{"text": "anna", "answer_start": 5}]}
QUESTIONS = {"data": [{"paragraphs": [{"context": "anna went home", "qas": [ANSWER]}]}]}
CHOICES = {"data": {"text": "a b"}, "annotations": [{"result": [
    {"from_name": "mood", "type": "choices", "value": {"choices": ["x"]}}]}]}  # fmt: skip
NESTED = {"tokens": ["a", "b"], "spans": [{"type": t, "start": i, "end": 2}
                                          for i, t in enumerate("XY")]}  # fmt: skip

# The file, its content, options that fail, the advice, and the options that follow it.
ADVICE = {
    "encoding": ("a.csv", "text,label\ncaf\u00e9 a,x\nb c,y\n", (),
                 "encoding='latin-1'", ("--encoding", "latin-1")),
    "separator": ("a.csv", "text|label\na b|x\nc d|y\n", (),
                  "check the parameter separator", ("--separator", "|")),
    "separator of columns": ("a.conll", "a|O\nb|B-X\n\nc|O\n", ("--task", "tagging"),
                             "the parameter separator", ("--task", "tagging", "--separator", "|")),
    "quoting": ("a.tsv", 'text\tlabel\n"a\tb"\tx\nc\ty\n', (),
                "separator and quoting", ("--quoting",)),
    "no quoting": ("a.csv", 'text,label\n"win a,x\nb c,y\n', (),
                   "quoting=False", ("--no-quoting",)),
    "label column": ("a.csv", "text,p,q\na b c,x,y\nd e f,y,y\n", (),
                     "give label_column", ("--label-column", "p")),
    "label column of JSON": ("a.jsonl", lines({"text": "a", "mood": "x", "by": "y"}), (),
                             "give label_column", ("--label-column", "mood")),
    "label columns": ("a.csv", "text,p,q\na b c,0,1\nd e f,1,0\n", (),
                      "give label_columns=['p', 'q']", ("--label-columns", "p,q")),
    "other label columns": ("a.csv", "text,p,q,r\na b,0,1,5\nc d,1,0,4\n",
                            ("--label-columns", "p,q,r"), "check label_columns",
                            ("--label-columns", "p,q")),
    "text column": ("a.csv", "a one,b two,c three,x\nd one,e two,f three,y\n",
                    ("--label-column", "3"), "with text_columns",
                    ("--label-column", "3", "--text-columns", "0", "--no-header")),
    "text column of JSON": ("a.jsonl", lines({"body": "Ann", "entities": [ANN]}), (),
                            "with text_columns", ("--text-columns", "body")),
    "a structure": ("a.jsonl", lines({"text": "a b", "label": "x"}, {"text": "c",
                    "label": {"choices": ["y"]}}), (), 'lists of names, ["a", "b"]',
                    lines({"text": "a b", "label": ["x"]}, {"text": "c", "label": ["y"]})),
    "several labels": ("a.csv", 'text,label\na b,"x, y"\nc d,x\ne f,y\n', (),
                       "give label_separator=','", ("--label-separator", ",")),
    "a header": ("a.csv", "saying,act\na b,x\nc d,y\n",
                 ("--text-columns", "0", "--label-column", "1"), "header=True or header=False",
                 ("--text-columns", "0", "--label-column", "1", "--header")),
    "two separators": ("a.csv", "text;x,label\na;b,y\n", (), "give separator=','",
                       ("--separator", ",", "--label-column", "label", "--text-columns", "text;x")),
    "two texts": ("a.csv", "claim,fact,label\na b,c d,x\ne f,g h,y\n", (), "with text_columns",
                  ("--text-columns", "claim", "--text-columns", "fact")),
    "labels and entities": ("a.jsonl", lines({"text": "Ann", "entities": [ANN], "label": "x"}), (),
                            "give task='classification' or task='entities'",
                            ("--task", "entities")),
    "two formats": ("a.jsonl", lines({"text": "Ann", "spans": [ANN], "label": [[0, 3, "X"]]}), (),
                    "give format='doccano' or another", ("--format", "doccano")),
    "a feature": ("a.tsv", webanno("#Text=Ada naps\n1-1\t0-3\tAda\thigh\tPER\t\n"
                                   "1-2\t4-8\tnaps\t_\t_\t\n", layers=("custom.Name|sure|kind",)),
                  (),
                  "give feature= for", ("--feature", "kind", "--layer", "Name")),
    "UTF-16": ("a.csv", "text,label\na b,x\nc d,y\n".encode("utf-16-le"), (),
               "give encoding='utf-16-le'", ("--encoding", "utf-16-le")),
    "entities in a table": ("a.jsonl", lines({"text": "Ann", "label": [[0, 3, "PER"]]}),
                            ("--task", "classification"), "task='entities'",
                            ("--task", "entities")),
    "tags in a table": ("a", "the DET\n\nbus NOUN\n", (), "give task='tagging'",
                        ("--task", "tagging")),
    "entities as tags": ("a.jsonl", lines({"text": "Ann", "entities": [ANN]}),
                         ("--task", "tagging"), "give task='entities'", ("--task", "entities")),
    "nested": ("a.jsonl", lines(NESTED), (), "give task='mrc-ner'", ("--task", "mrc-ner")),
    "labels as entities": ("a.json", json.dumps([CHOICES]), ("--task", "entities"),
                           "task='classification'", ("--task", "classification")),
    "a table as entities": ("a.csv", "text,label\na b,x\nc d,y\n", ("--task", "entities"),
                            "task='auto'", ("--task", "auto")),
    "an option of labels": ("a.jsonl", lines({"text": "Ann", "entities": [ANN], "mood": "x"}),
                            ("--task", "entities", "--label-column", "mood"),
                            "task='classification'",
                            ("--task", "classification", "--label-column", "mood")),
    "an option of another file": ("a.conll", "Ann B-PER\nin O\n\nit O\n", ("--header",),
                                  "leave it out", ()),
    "columns of tokens": ("a.conll", "1\tO\n2\tO\n3\tO\n\n1\tO\n", (),
                          "give text_columns and label_column",
                          ("--text-columns", "0", "--label-column", "1")),
    "a column of tags": ("a.conllu", "1\tIt\tit\t_\tPRP\t_\t2\tnsubj\t_\t_\n", (),
                         "label_column", ("--label-column", "xpos")),
    "moved": ("a.jsonl", lines({"text": "Ann Lee", "entities": [MOVED]}), (),
              "on_misaligned='expand'", ("--on-misaligned", "expand")),
    "left out": ("a.jsonl", lines({"text": "Ann Lee", "entities": [{**ANN, "label": ""}]}), (),
                 "on_misaligned='drop'", ("--on-misaligned", "drop")),
    "an answer": ("a.json", json.dumps(QUESTIONS), (), "on_misaligned='expand'",
                  ("--on-misaligned", "expand")),
    "offsets": ("a.jsonl", lines({"text": "\U0001f44d Ann", "entities": [[3, 6, "PER"]]}), (),
                "'utf16'", ("--offsets", "utf16")),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", ADVICE)
def test_advice_is_followed(tmp_path, read, name):
    file, content, failing, advice, remedy = ADVICE[name]
    path = tmp_path / file
    encoding = "latin-1" if name == "encoding" else "utf-8"
    path.write_bytes(content if isinstance(content, bytes) else content.encode(encoding))
    message = read(path, *failing)
    assert advice in message
    for parameter in re.findall(r"[a-z]+(?:_[a-z]+)+|[a-z]+(?==)", advice):
        assert f"--{parameter.replace('_', '-')}" in message.rpartition("(")[2]
    if isinstance(remedy, str):  # another content
        path.write_text(remedy)
        remedy = ()
    assert isinstance(read(path, *remedy), dict)


def test_a_format_that_nothing_shows(tmp_path, read):
    path, out = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    path.write_text(lines({"sentence": "Ann", "annotation": [[0, 3, "PER"]]}))
    message = read(path, "--task", "entities")
    assert "give the parameter format of read_annotations, one of" in message
    assert run("convert", path, out, "--format", "jsonl").exit_code == 0
    assert read(out) == read(path, "--format", "jsonl") == {"B-PER": 1}


def test_messages_of_the_library_name_no_options():
    folder = Path(inspect.getfile(skdice)).parent
    named = {
        path.relative_to(folder).parts[0]: found
        for path in folder.rglob("*.py")
        if (found := re.findall(r"(?:\(| or )--[a-z-]+", path.read_text()))
    }
    assert set(named) <= {"cli"}


def test_every_command_that_reads_has_the_options_of_the_advice():
    remedies = [remedy for *_, remedy in ADVICE.values() if isinstance(remedy, tuple)]
    options = {word for remedy in remedies for word in remedy if word.startswith("--")}
    assert {"--task", "--label-columns", "--separator", "--on-misaligned"} <= options
    for command in READING:
        assert options <= {
            name
            for param in COMMANDS[command].params
            for name in (*param.opts, *param.secondary_opts)
        }


# Options that are no parameters of Python: files, and what the command itself does.
OF_COMMANDS = {
    *("--train", "--test", "--dev", "--file", "--out", "--report", "--json", "--force"),
    "--to",
}


def parameters_behind(command):
    """The parameters of the functions and estimators that a command calls."""
    from skdice import datasets, estimators, model_selection
    from skdice.tasks import TASKS

    readers = [getattr(datasets, name) for name in datasets.__all__ if name.startswith("read_")]
    more = {"compare": [model_selection.compare_losses]}
    made = [getattr(estimators, task.estimator) for task in TASKS.values()]
    called = [*readers, *made, *more.get(command, [])]
    return {name for each in called for name in inspect.signature(each).parameters}


@pytest.mark.parametrize("command", COMMANDS)
def test_options_are_named_after_parameters(command):
    known = parameters_behind(command) | {"format", "mode", "losses"}  # of writers and reports
    for param in COMMANDS[command].params:
        long = [name for name in param.opts if name.startswith("--")]
        assert len(long) == (param.param_type_name == "option")
        for option in long:
            name = option.removeprefix("--").replace("-", "_")
            assert option in OF_COMMANDS or name in known, (command, option)


def test_columns_are_separated_by_commas():
    rows = (
        (["c, a"], ["c", "a"]),
        (["2", "0"], [2, 0]),
        (["-1"], -1),
        (["a, b", "1"], ["a", "b", 1]),
    )
    for given, wanted in rows:
        assert of_table({"text_columns": given}) == {"text_columns": wanted}
    kept = {"label_separator": "", "header": False}
    assert of_table({**kept, "text_columns": None}) == kept
