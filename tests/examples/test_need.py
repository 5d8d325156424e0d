"""The page "Do I need this?": its table of promises, and the times it computes."""

from __future__ import annotations

import json
import re
from statistics import median

import pytest
from sklearn.linear_model import LogisticRegression

from skdice import BiasTunedClassifier
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


@pytest.mark.parametrize("missed", [0, 1])
@pytest.mark.parametrize("share", [0.8, 0.9])
@pytest.mark.filterwarnings("ignore::skdice.exceptions.SkdiceWarning")
def test_the_fewest_positives_are_those_of_a_fit(promises, share, missed):
    """Positives lie above all negatives, but for those that are missed: they lie below."""
    n = promises.fewest(share, missed)
    for more, kept in ((0, True), (-1, False)):
        found = n + more - missed
        X = [[100.0 + i / 100] for i in range(found)] + [[-100.0 - i / 100] for i in range(missed)]
        X += [[i / 100 - 50.0] for i in range(200)]
        y = [1] * (found + missed) + [0] * 200
        model = LogisticRegression().fit([[-100.0], [100.0]], [0, 1])
        tuned = BiasTunedClassifier(model, scoring=PrecisionAtRecall(share), cv="prefit")
        bound = tuned.fit(X, y).bound_
        # With no threshold above the missed ones, all rows are called positive.
        alarms = tuned.predict(X)[found + missed :].sum()
        assert (bound.promised == share and not alarms) is kept


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
        row = re.search(rf"\| {name}[^|]*\|[^|]*\|([^|]*hours[^|]*)\|([^|]*)\|", page)
        assert row[1].strip() == f"{WORDS / cpu / 3600:.1f} hours (measured)"
        assert row[2].strip() == f"{WORDS / gpu / 60:.0f} minutes (measured)"
