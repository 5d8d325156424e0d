"""The page "Do I need this?": its table of promises, and the times it computes."""

from __future__ import annotations

import json
import re
from statistics import median

import pytest

from skdice.metrics import PrecisionAtRecall
from tests.examples.scripts import PAPER, scripts

ROOT = PAPER.parents[1]
BENCHMARKS = ROOT / "examples" / "benchmarks" / "results"
WORDS = 20_000_000  # of a million texts


@pytest.fixture(scope="module")
def page():
    return " ".join((ROOT / "docs" / "need.md").read_text().split())


@pytest.fixture(scope="module")
def promises():
    with scripts(PAPER, "promises") as found:
        yield found["promises"]


def test_the_table_of_promises_is_what_the_bound_asks(page, promises):
    assert " ".join(promises.lines()) in page


@pytest.mark.parametrize("share", [0.8, 0.95])
def test_the_fewest_positives_are_those_that_a_fit_asks_for(promises, share):
    _, needed, _ = PrecisionAtRecall(share)._least_evidence(10_000, 10_000)
    assert promises.fewest(share, 0) == needed
    assert promises.fewest(share, 1) > needed


@pytest.mark.skipif(not BENCHMARKS.exists(), reason="an sdist has no records")
def test_the_times_of_a_million_texts_are_those_of_the_records(page):
    rates = json.loads((BENCHMARKS / "trainer.json").read_text())["words_a_second"]["tagging"]
    pipelines = [median(rates[name]) for name in rates if name.startswith("pipeline")]
    runs = json.loads((BENCHMARKS / "gpu.json").read_text())
    (card,) = runs["second run, same card, without that setting"]["MiniLM, predict, words/s"]
    for name, cpu, gpu in (
        ("skdice", median(rates["skdice predict"]), card["skdice"]),
        ("the Trainer", max(pipelines), card["pipeline"]),
    ):
        row = re.search(rf"\| {name}[^|]*\| hundreds \|([^|]*)\|([^|]*)\|", page)
        assert row[1].strip() == f"{WORDS / cpu / 3600:.1f} hours (measured)"
        assert row[2].strip() == f"{WORDS / gpu / 60:.0f} minutes (measured)"
