"""The command line, end to end on tiny models."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shutil
import sys
import warnings

import numpy as np
import pytest

from skdice import BiasTunedClassifier, DiceSequenceClassifier, DiceTokenClassifier
from skdice.cli.app import app
from skdice.datasets import read_conll, write_conll
from skdice.exceptions import CollapseWarning, ServingWarning
from skdice.metrics import Cost, span_report
from skdice.model_selection import compare_losses
from skdice.tags import convert_scheme
from tests.cli.running import run, said
from tests.data import tagged_sentences

ROWS = "ham\tlunch today\nspam\twin free money\nham\tthe bus was late\nspam\tfree prize call\n" * 5
SMS = "label\ttext\n" + ROWS


@pytest.fixture
def files(tmp_path):
    return write_files(tmp_path)


def write_files(folder):
    X, y = tagged_sentences()
    write_conll(folder / "train.conll", X, y)
    write_conll(folder / "test.conll", X[:6], y[:6])
    (folder / "sms.tsv").write_text(SMS)
    return folder


@pytest.fixture(scope="module")
def made(tmp_path_factory, tiny_backbone):
    """What `skdice train` makes of these files, for tests that use a model: "m" tags, "c" sorts."""
    folder = write_files(tmp_path_factory.mktemp("made"))
    for name, file in (("m", "train.conll"), ("c", "sms.tsv")):
        args = ("--out", folder / name, "--backbone", tiny_backbone, "--max-epochs", 1)
        assert run("train", folder / file, *args).exit_code == 0
    return folder


@pytest.fixture
def trained(files, made):
    """The files, with a copy of each model beside them."""
    for name in ("m", "c"):
        shutil.copytree(made / name, files / name)
    return files


@pytest.mark.parametrize(("train", "test"), [("train.conll", "test.conll"), ("sms.tsv", "sms.tsv")])
def test_train_predict_evaluate(files, tiny_backbone, train, test):
    model = files / "model"
    common = ("--backbone", tiny_backbone, "--max-epochs", 2)
    args = ("train", files / train, "--dev", files / test, "--out", model, *common)
    result = run(*args)
    assert result.exit_code == 0, result.output
    again = run(*args)
    assert again.exit_code == 2
    assert "--force" in again.output
    assert run(*args, "--force").exit_code == 0

    out = files / "predicted"
    assert run("predict", model, files / test, "--out", out).exit_code == 0
    assert run("predict", model, files / test, "--out", out).exit_code == 2
    assert out.read_text() == run("predict", model, files / test).output
    n_lines = len([line for line in (files / test).read_text().splitlines() if line])
    assert len([line for line in out.read_text().splitlines() if line]) == n_lines

    report = json.loads(run("evaluate", model, files / test, "--json").output)
    assert "macro avg" in report
    assert "macro avg" in run("evaluate", model, files / test).output
    partly = run("evaluate", model, files / test, "--mode", "partial", "--json")
    if train.endswith(".conll"):
        X, y = read_conll(files / test)
        predicted = DiceTokenClassifier.from_pretrained(model).predict(X)
        expected = span_report(y, predicted, mode="partial", scheme="iob2", output_dict=True)
        assert json.loads(partly.output) == expected
    else:
        assert partly.exit_code == 2
        assert "--mode partial is for taggers and recognizers" in said(partly)


def test_compare_writes_table_chart_and_figures(files, tiny_backbone, monkeypatch):
    found, out = [], files / "out"

    def kept(*args, **kwargs):
        found.append(compare_losses(*args, **kwargs))
        return found[0]

    monkeypatch.setattr("skdice.model_selection.comparison.compare_losses", kept)
    result = run(
        "compare", "--train", files / "sms.tsv", "--losses", "ce, dsc + tuned", "--seeds", 2,
        "--max-epochs", 1, "--backbone", tiny_backbone, "--out", out,
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert str(found[0]) in result.output
    figures = json.loads((out / "comparison.json").read_text())
    assert [row["label"] for row in figures["rows"]] == ["ce", "dsc + tuned"]
    assert [run["seed"] for run in figures["rows"][0]["runs"]] == [0, 1]
    assert figures["settings"]["max_epochs"] == 1
    assert figures["environment"]["torch"]
    assert (out / "comparison.png").read_bytes()[:4] == b"\x89PNG"
    assert sorted(p.name for p in out.iterdir()) == ["comparison.json", "comparison.png"]


def test_compare_runs_on_the_corpus_by_default(files, tiny_backbone):
    result = run(
        "compare", "--losses", "ce", "--seeds", 1, "--max-epochs", 1,
        "--frozen", "none", "--backbone", tiny_backbone, "--out", files / "out",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "town notes: 100 train, 109 test" in result.output


def test_an_interrupt_keeps_finished_runs(files, tiny_backbone, monkeypatch):
    fit, begun = DiceTokenClassifier.fit, []

    def interrupted(self, *args, **kwargs):
        begun.append(self.loss)
        if begun == ["ce", "dice"]:
            raise KeyboardInterrupt
        return fit(self, *args, **kwargs)

    monkeypatch.setattr(DiceTokenClassifier, "fit", interrupted)
    figures = files / "out" / "comparison.json"
    command = (
        "compare", "--train", files / "train.conll", "--losses", "ce,dice", "--seeds", 1,
        "--backbone", tiny_backbone, "--out", files / "out", "--max-epochs",
    )  # fmt: skip
    result = run(*command, 1)
    assert (result.exit_code, "run again to go on" in said(result)) == (130, True)
    rows = json.loads(figures.read_text())["rows"]
    assert [len(row["runs"]) for row in rows] == [1, 0]
    # Called again, it makes what is missing; other settings or data are refused.
    result = run(*command, 1)
    assert result.exit_code == 0, result.output
    assert "going on from" in said(result)
    again = json.loads(figures.read_text())["rows"]
    assert begun == ["ce", "dice", "dice"]
    assert again[0] == rows[0]
    assert len(again[1]["runs"]) == 1
    assert run(*command, 2).exit_code == 1
    (files / "train.conll").write_text((files / "train.conll").read_text() * 2)
    result = run(*command, 1)
    assert (result.exit_code, "give another file" in said(result)) == (1, True)
    assert json.loads(figures.read_text())["rows"] == again
    assert len(begun) == 3


def test_evaluate_tells_the_cost_that_a_decision_was_tuned_for(trained):
    """The rare class, which sorts first, is dear to miss."""
    texts = ["win free money", "lunch today", "the bus was late"] * 4
    inner = DiceSequenceClassifier.from_pretrained(trained / "c").set_params(max_epochs=1)
    costs = {("bad", "ok"): 10, ("ok", "bad"): 1}
    tuned = BiasTunedClassifier(inner, scoring=Cost(costs), cv=2)
    tuned.fit(texts, ["bad", "ok", "ok"] * 4).save_pretrained(trained / "tuned")
    file, page = trained / "new.tsv", trained / "page.html"
    true, asked = ["bad", "ok", "ok"], ["the bus", "win money", "lunch"]
    rows = zip(true, asked, strict=True)
    file.write_text("label\ttext\n" + "".join(f"{label}\t{text}\n" for label, text in rows))
    predicted = DiceSequenceClassifier.from_pretrained(trained / "tuned").predict(asked)
    expected = np.mean([costs.get(pair, 0) for pair in zip(true, predicted, strict=True)])
    report = json.loads(run("evaluate", trained / "tuned", file, "--json").output)
    assert report["cost"] == pytest.approx(expected)
    shown = run("evaluate", trained / "tuned", file, "--report", page).output
    assert f"cost of a row: {expected:.4g}" in shown
    told = "decision tuned for the lowest cost (bad taken for ok: 10, ok taken for bad: 1)"
    assert told in page.read_text()
    assert "cost" not in run("evaluate", trained / "c", trained / "sms.tsv").output


def test_a_warning_on_the_command_line_is_one_line(files, tiny_backbone, monkeypatch):
    def show(message, category, filename, lineno, file=None, line=None):  # as outside of pytest
        print(warnings.formatwarning(message, category, filename, lineno, line), end="")

    X, y = tagged_sentences()
    write_conll(files / "bioes.conll", X, convert_scheme(y, "bioes"))
    args = ("--max-epochs", 1, "--backbone", tiny_backbone, "--out", files / "t")
    with warnings.catch_warnings():
        warnings.simplefilter("always", ServingWarning)
        monkeypatch.setattr(warnings, "showwarning", show)
        result = run("train", files / "bioes.conll", *args)
    assert result.exit_code == 0, result.output
    (line,) = [line for line in result.output.splitlines() if "ServingWarning" in line]
    assert line.startswith("ServingWarning: ")
    assert "bioes" in line


QAS = [
    {"id": "a", "question": "who", "answers": [{"text": "anna", "answer_start": 0}]},
    {"id": "b", "question": "where", "answers": [{"text": "paris", "answer_start": 13}]},
    {"id": "c", "question": "why", "answers": [], "is_impossible": True},
]


@pytest.fixture
def squad(tmp_path):
    paragraphs = [
        {
            "context": f"anna went to paris . {word}",
            "qas": [{**question, "id": f"{question['id']}{i}"} for question in QAS],
        }
        for i, word in enumerate(["old", "new", "good", "bad", "sun"])
    ]
    path = tmp_path / "squad.json"
    path.write_text(json.dumps({"data": [{"title": "t", "paragraphs": paragraphs}]}))
    return path


def test_reading_on_the_command_line(squad, tiny_backbone, tmp_path):
    common = ("--backbone", tiny_backbone, "--max-epochs", 1)
    model, out = tmp_path / "reader", tmp_path / "answers.json"
    with pytest.warns(CollapseWarning, match="answers no validation question"):
        result = run("train", squad, "--dev", squad, "--out", model, *common)
    assert result.exit_code == 0, result.output
    assert "qa, 15 rows" in said(result)
    assert run("predict", model, squad, "--out", out).exit_code == 0
    answers = json.loads(out.read_text())
    assert sorted(answers) == sorted(f"{q}{i}" for q in "abc" for i in range(5))
    report = json.loads(run("evaluate", model, squad, "--json").output)
    assert (report["questions with answer"], report["questions"]) == (10, 15)
    parts = 10 * report["f1 with answer"] + 5 * report["f1 without answer"]
    assert report["f1"] == pytest.approx(parts / 15)
    result = run("compare", "--train", squad, "--losses", "ce", "--seeds", 1, *common,
                 "--out", tmp_path / "c")  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "exact match" in result.output
    figures = json.loads((tmp_path / "c" / "comparison.json").read_text())
    assert figures["settings"]["n_train"] == 12  # whole contexts
    # A prediction needs no answers, and SQuAD's evaluation needs every question.
    squad.write_text(squad.read_text().replace('"text": "anna"', '"text": "nobody"'))
    assert run("train", squad, "--out", tmp_path / "other", *common).exit_code == 1
    assert sorted(json.loads(run("predict", model, squad).output)) == sorted(answers)


def test_entities_by_asking_on_the_command_line(files, tiny_backbone, sentences):
    common = ("--backbone", tiny_backbone, "--max-epochs", 1)
    X, _ = sentences
    how = ("--task", "mrc-ner", "--out", files / "asker", *common)
    assert run("train", files / "train.conll", *how).exit_code == 0
    lines = run("predict", files / "asker", files / "test.conll").output
    assert len(lines.split()) == 2 * sum(map(len, X[:6]))
    records = [
        {"qas_id": f"{i}.0", "context": " ".join(tokens), "query": "who", "entity_label": "PER",
         "start_position": [0], "end_position": [0]}
        for i, tokens in enumerate(X[:4])
    ]  # fmt: skip
    (files / "m.json").write_text(json.dumps(records))
    assert run("train", files / "m.json", "--out", files / "n", *common).exit_code == 0
    lines = [
        json.loads(line)
        for line in run("predict", files / "n", files / "m.json").output.splitlines()
    ]
    assert [line["tokens"] for line in lines] == X[:4]
    assert "f1" in json.loads(run("evaluate", files / "n", files / "m.json", "--json").output)


def test_predict_reads_standard_input(trained, sentences):
    X, _ = sentences
    tagger = DiceTokenClassifier.from_pretrained(trained / "m")
    tags, spans = tagger.predict(X).tolist(), tagger.predict_spans(X)
    words = "\n\n".join("\n".join(sentence) for sentence in X)
    records = "".join(json.dumps({"tokens": sentence}) + "\n" for sentence in X)
    expected = "\n".join(
        "".join(f"{word}\t{tag}\n" for word, tag in zip(*pair, strict=True))
        for pair in zip(X, tags, strict=True)
    )
    for text in (words, records):
        assert run("predict", trained / "m", "-", text=text).output == expected
    for form in ("jsonl", "spans"):
        lines = run("predict", trained / "m", "-", "--format", form, text=words).output.splitlines()
        for line, sentence, of_words, of_row in zip(lines, X, tags, spans, strict=True):
            found = json.loads(line)
            assert found["tokens"] == sentence
            assert form == "spans" or found["tags"] == of_words
            names = ("type", "start", "end", "score")
            rows = [[s[n] for n in names] if form == "spans" else s for s in found["spans"]]
            assert rows == [[*span[:3], pytest.approx(span.score, abs=1e-5)] for span in of_row]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "'standard input' is empty: give a file"),
        ('{"tokens": ["a"]}\nb\n', "'standard input', line 2: Expecting value at character 0"),
        ('{"tokens": ["a"]}\n{"word": 1}\n', "line 2: no lists of tokens and tags, but"),
        ('{"tokens": "a b"}\n', "'standard input' holds no lists of tokens and tags"),
    ],
)
def test_bad_standard_input_is_named(trained, text, message):
    result = run("predict", trained / "m", "-", "--out", trained / "out", text=text)
    assert result.exit_code == 1
    assert message in said(result)
    assert not list(trained.glob("*out*"))


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (b"win caf\xc3\xa9 \xf0\x9f\x98\x80\nlunch\n", (), None),
        (b"win caf\xe9\nlunch\n", ("--encoding", "latin-1"), None),
        (b"lunch\nwin caf\xe9\n", (), "'standard input', line 2: byte 13 is not utf-8"),
        (b"lunch\n", ("--encoding", "nope"), "is unknown: use one such as 'latin-1'"),
    ],
)
def test_standard_input_does_not_depend_on_the_locale(trained, monkeypatch, capsys, text, options,
                                                      message):  # fmt: skip
    def in_ascii(stream):
        return io.TextIOWrapper(stream, encoding="ascii", errors="surrogateescape")

    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdin", in_ascii(io.BytesIO(text)))
    monkeypatch.setattr(sys, "stdout", in_ascii(written))
    args = ["predict", str(trained / "c"), "-", *options]
    code = app(args, standalone_mode=False)
    sys.stdout.flush()
    if message is None:
        texts = [line.split("\t")[1] for line in written.getvalue().decode().splitlines()]
        wanted = "win caf\xe9 \U0001f600" if b"\xc3" in text else "win caf\xe9"
        assert (code, texts) == (None, [wanted, "lunch"])
    else:
        assert code == 1
        assert message in " ".join(capsys.readouterr().err.split())


RAW = "Justin Bieber plays (again!) in Toronto\nno tickets are left there now\n"


def test_a_tagger_refuses_running_text_and_loses_no_token(trained, sentences):
    model = trained / "m"
    tokens, tags = sentences[0][0], sentences[1][0]
    for text in (RAW, RAW.splitlines()[0] + "\n", "see you\n\nwin now\n"):
        result = run("predict", model, "-", text=text)
        assert result.exit_code == 1
        assert "'standard input', line 1: holds running text" in said(result)
        assert "one token a line" in said(result)
    # Columns are read, numbered ones too, and without tags if the tokens' column is named.
    rows = [f"{a} {b}" for a, b in zip(tokens, tags, strict=True)]
    numbered = [f"{i}\t{token}\t_" for i, token in enumerate(tokens, 1)]
    table = "Sentence #,Word,Tag\n1," + "\n,".join(f"{token}," for token in tokens) + "\n"
    conllu = "".join(f"{i}\t{token}" + "\t_" * 8 + "\n" for i, token in enumerate(tokens, 1))
    others = "".join(f"{token} X y\n" for token in tokens)
    for name, text, options in (
        ("a", "\n".join(rows), ()), ("a", "\n".join(numbered), ()), ("t.csv", table, ()),
        ("s.csv", table.replace("Sentence #", "sentence_id"), ()),  # no line with a blank
        ("t.conllu", conllu, ()), ("b", others, ("--text-columns", 0)),
    ):  # fmt: skip
        (trained / name).write_text(text)
        result = run("predict", model, trained / name, *options)
        assert [line.split("\t")[0] for line in result.output.splitlines()] == tokens
    assert run("predict", model, trained / "b").exit_code == 1


def test_a_pipe_that_closes_early_is_no_error(trained, monkeypatch, capsys):
    ours, theirs = os.pipe()
    os.close(ours)
    closed = os.fdopen(theirs, "w")
    monkeypatch.setattr(sys, "stdout", closed)
    with pytest.raises(SystemExit):
        app(["predict", str(trained / "c"), str(trained / "sms.tsv")])
    monkeypatch.undo()
    with contextlib.suppress(BrokenPipeError):
        closed.close()
    assert capsys.readouterr() == ("", "")


def test_folders_of_transformers_are_predicted_and_evaluated(trained, tiny_backbone):
    model, test = trained / "m", trained / "test.conll"
    commands = (("predict", model, test), ("evaluate", model, test, "--json"))
    before = [run(*command).output for command in commands]
    (model / "skdice.json").unlink()
    assert [run(*command).output for command in commands] == before
    result = run("predict", tiny_backbone, test)
    assert result.exit_code == 1
    assert "holds a BertModel: give a model for token classification" in said(result)
    weights = model / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    result = run("predict", model, test)
    assert result.exit_code == 1
    assert "could not be loaded" in said(result)


def test_the_commands_of_the_start_page_give_the_scores_of_its_blocks(files, tiny_backbone):
    import shlex
    from pathlib import Path

    page = (Path(__file__).parents[2] / "docs" / "start.md").read_text().replace("\\\n", "")
    lines = [shlex.split(line[2:]) for line in page.splitlines() if line.startswith("$ skdice ")]
    commands = {line[1]: line[2:] for line in lines}
    (files / "dev.conll").write_text((files / "test.conll").read_text())
    code = re.search(r"tagger = (DiceTokenClassifier\(.*\))", page)[1]
    grid = re.search(r"compare_losses\(\n +(DiceTokenClassifier\(.*\)),", page)[1]
    losses = json.loads(re.search(r"losses=(\[.*\]),", page)[1])
    X, y = read_conll(files / "train.conll")
    test = read_conll(files / "test.conll")

    def called(name, *more):
        args = [files / a if a.endswith(".conll") else a for a in commands[name]]
        result = run(name, *args, *more)
        assert result.exit_code == 0, result.output
        return result

    with contextlib.chdir(files):
        called("train", "--backbone", tiny_backbone)
        scores = json.loads(run("evaluate", "town-tagger", "test.conll", "--json").output)
        called("compare", "--backbone", tiny_backbone, "--out", "c", "--frozen", "none")
    tagger = eval(code).set_params(backbone=tiny_backbone, verbose=0).fit(X, y)
    assert scores["micro avg"]["f1"] == tagger.score(*test)
    model = eval(grid).set_params(backbone=tiny_backbone, frozen=None)
    found = compare_losses(model, X, y, X_test=test[0], y_test=test[1], losses=losses, seeds=2)
    figures = json.loads((files / "c" / "comparison.json").read_text())["rows"]
    assert [row["label"] for row in figures] == losses
    for kept, row in zip(figures, found.rows, strict=True):
        assert [run["f1"] for run in kept["runs"]] == row.values("f1")
