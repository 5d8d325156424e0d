"""The measurement beside other packages, examples/benchmarks/peers."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from skdice.metrics import span_f1_score
from tests.examples.scripts import PEERS, scripts


@pytest.fixture(scope="module")
def harness() -> Iterator[dict[str, ModuleType]]:
    with scripts(PEERS, "common", "show", "peers") as found:
        yield found


def record(peer: str, name: str, f1: float, **others: Any) -> dict[str, Any]:
    known = {
        **{"peer": peer, "set": name, "setting": "advice", "minutes": 1.0, "seed": 0, "f1": f1},
        **{"dev_f1": f1, "seconds": 58.0, "views": 5576, "parts": {"train": 50.0}, "waited": 1.0},
        **{"versions": {peer: "1.0"}, "cores": 2, "processor": "X", "date": "2026-11-26"},
        "over": False,
    }
    return known | others


def test_the_scorer_is_that_of_seqeval(harness):
    seqeval = pytest.importorskip("seqeval.metrics")
    true = [["B-A", "I-A", "O", "B-B"], ["O", "B-A"], ["B-B", "I-B"]]
    predicted = [["B-A", "I-A", "B-B", "O"], ["O", "B-A"], ["B-B", "O"]]
    score = harness["peers"].score(true, predicted, "tags", None)
    assert (
        score == pytest.approx(seqeval.f1_score(true, predicted)) == span_f1_score(true, predicted)
    )
    labels = harness["peers"].score(["1", "0", "1"], ["1", "1", "0"], "texts", "1")
    assert labels == pytest.approx(0.5)
    assert harness["peers"].score(["1", "0"], ["0", "0"], "texts", "1") == 0


def test_a_table_with_gaps(harness):
    show = harness["show"]
    records = [
        record("skdice", "sms", 90.04),
        record("skdice", "sms", 95.0, setting="default", dev_f1=80.0),  # worse on development rows
        record("TF-IDF", "sms", 96.5, seconds=4.0),
        {**record("SetFit", "mrpc", 0.0), "error": "it broke"},
    ]
    lines = show.table(records, [1.0])
    cells = {line.split("|")[1].strip(): line.split("|")[2:-1] for line in lines[2:]}
    assert [text.strip() for text in cells["**skdice**"]] == ["?", "?", "90.0", "?", "?"]
    baseline = cells["TF-IDF, logistic regression (ours)"]
    assert [text.strip() for text in baseline] == ["", "", "**96.5**", "?", "?"]
    assert [text.strip() for text in cells["SetFit"]] == ["", "", "?", "?", "failed"]
    assert len(lines) == 5
    assert all(line.count("|") == lines[0].count("|") for line in lines)
    # With two budgets the best of each is bold, and a run that did not end in time has no score.
    records += [record("skdice", "sms", 97.0, minutes=5.0), record("SetFit", "sms", 9.0, over=True)]
    cells = {line.split("|")[1].strip(): line for line in show.table(records, [1.0, 5.0])}
    assert "| 90.0 / **97.0** |" in cells["**skdice**"]
    assert "| **96.5** / ? |" in cells["TF-IDF, logistic regression (ours)"]
    assert "| too slow / ? |" in cells["SetFit"]


def test_a_second_seed_counts_with_the_better_setting(harness):
    show = harness["show"]
    records = [
        record("skdice", "sms", 80.0, dev_f1=70.0),
        record("skdice", "sms", 90.0, dev_f1=75.0, setting="default", seconds=50.0),
        record("skdice", "sms", 93.0, dev_f1=60.0, setting="default", seed=1, seconds=52.0),
        record("skdice", "sms", 99.0, dev_f1=99.0, seed=1),  # seed 0 has chosen the other setting
        record("SetFit", "sms", 99.0, seed=1),
    ]
    assert [run["f1"] for run in show.best(records, "skdice", "sms", 1.0)] == [90.0, 93.0]
    assert show.cell(records, "skdice", "sms", 1.0) == "91.5"
    assert show.best(records, "SetFit", "sms", 1.0) == []
    slow = [*records[:2], records[2] | {"over": True}]
    assert show.cell(slow, "skdice", "sms", 1.0) == "too slow"
    # A setting that overshot is not chosen beside one that did not.
    slow = [records[0], records[1] | {"over": True}]
    assert show.cell(slow, "skdice", "sms", 1.0) == "80.0"


def test_a_page_is_written_anew(harness):
    page = "a\n<!-- peers: made by peers.py show -->\nold\n<!-- end of peers -->\nb\n"
    made = harness["show"].replaced(page, "peers", "new", "peers.py show")
    assert "old" not in made
    assert harness["show"].replaced(made, "peers", "new", "peers.py show") == made
    assert harness["show"].replaced("no part", "peers", "new", "peers.py show") == "no part"
    with pytest.raises(SystemExit, match="lacks"):
        harness["show"].replaced(page.replace("end of", "stop"), "peers", "new", "peers.py show")


def options(tmp_path: Path, **others: Any) -> argparse.Namespace:
    known = {
        **{"peers": ["skdice", "TF-IDF", "CRF"], "sets": ["sms", "wnut17"], "seed": 0},
        **{"settings": ["advice", "default", "better"], "minutes": [1.0, 5.0], "retry": False},
        **{"threads": 1, "nice": None, "records": tmp_path / "peers.jsonl", "model": "model"},
    }
    return argparse.Namespace(**known | others)


PEER = """
from common import Run

run = Run()
run.mark("import")
if run.job["setting"] == "capped":
    run.cap(run.job["passes"])
X, y, epochs = run.rows()
run.mark("train")
if run.job["setting"] == "default":
    raise ValueError("it broke")
run.answer(lambda X: ["spam" if "win" in x else "ham" for x in X], ["numpy"], rows=len(X))
"""


def test_a_run_is_a_process_of_its_own(harness, tmp_path, monkeypatch):
    peers = harness["peers"]
    script = tmp_path / "run_fake.py"
    script.write_text(f"import sys\nsys.path.insert(0, {str(PEERS)!r})\n{PEER}")
    monkeypatch.setattr(peers, "HERE", tmp_path)
    truth = {"dev": ["ham"], "test": ["spam", "ham"], "pos": "spam", "kind": "texts", "rows": 2}
    parts = {"train": (["win", "see"], ["spam", "ham"]), "dev": (["lunch"], ["ham"])}

    def write_data(name: str, folder: Path, into: Path) -> dict[str, Any]:
        rows = {part: {"X": X, "y": y} for part, (X, y) in parts.items()}
        rows["test"] = {"X": ["win it", "win"], "y": None}
        into.write_text(json.dumps({"kind": "texts", "pos_label": "spam", **rows}))
        return truth

    monkeypatch.setattr(peers, "write_data", write_data)
    monkeypatch.setitem(peers.PEERS, "fake", peers.Peer("run_fake.py", ("sms",), probed=2))
    job = {"peer": "fake", "set": "sms", "setting": "advice", "minutes": 0.01, "seed": 0}
    result = peers.run_one(job, options(tmp_path), None, tmp_path, tmp_path / "scratch")
    assert result["f1"] == pytest.approx(100 * 2 / 3)
    assert result["dev_f1"] == 0
    assert set(result["versions"]) == {"numpy"}
    assert result["tries"][0]["views"] == 2
    assert result["views"] == result["tries"][-1]["views"]
    broken = peers.run_one(
        job | {"setting": "default"}, options(tmp_path), None, tmp_path, tmp_path / "scratch"
    )
    assert broken["error"] == "ValueError: it broke"
    # One that makes no more passes than `fit` would is not made again because time is left.
    capped = peers.run_one(
        job | {"setting": "capped", "minutes": 0.5},
        options(tmp_path),
        None,
        tmp_path,
        tmp_path / "scratch",
    )
    assert capped["notes"]["capped"] == 30
    assert capped["views"] == 60
    assert len(capped["tries"]) == 2  # the probe is one
