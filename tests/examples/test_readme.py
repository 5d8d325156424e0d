"""The figures of the README, made again from the records of the measurements.

Those on tuning are in `test_recipe.py`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from statistics import median

import numpy as np
import pytest

from skdice.losses import LOSSES
from skdice.metrics import PrecisionAtRecall
from tests.examples.scripts import PAPER, PEERS, scripts

ROOT = PAPER.parents[1]
BENCHMARKS = ROOT / "examples" / "benchmarks" / "results"
WORDS = ("none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
pytestmark = pytest.mark.skipif(not BENCHMARKS.exists(), reason="an sdist has no records")


@pytest.fixture(scope="module")
def readme() -> str:
    return " ".join((ROOT / "README.md").read_text().split())


@pytest.fixture(scope="module")
def quoted() -> list[str]:
    """Every phrase with a figure, made of records."""
    return [*of_losses(), *of_speed(), *of_peers(), *of_curves()]


def of_losses() -> Iterator[str]:
    yield f"`loss=` selects it, or one of {WORDS[len(LOSSES) - 1]} others"
    yield f"| losses for rare classes | {WORDS[len(LOSSES)]}, by name"
    fewest = next(n for n in range(1, 99) if PrecisionAtRecall(0.9)._least_evidence(n, n)[1] <= n)
    yield f"It needs {fewest} held-out spam messages or more"


def of_speed() -> Iterator[str]:
    rates = json.loads((BENCHMARKS / "trainer.json").read_text())["words_a_second"]

    def words(name: str) -> str:
        cells = (rates[kind].get(f"{name} fp32") for kind in ("tagging", "classification"))
        return " / ".join("-" if found is None else f"{median(found):,.0f}" for found in cells)

    yield (
        f"| words a second in training (2 cores, fp32; WNUT17 / SMS) | {words('skdice')} | "
        f"{words('Trainer')}; grouped by length {words('Trainer grouped')} | "
        f"{words('simpletransformers')} | not measured | {words('raw skorch')} |"
    )
    runs = json.loads((BENCHMARKS / "gpu.json").read_text())
    card = runs["second run, same card, without that setting"]
    ratios = set()
    for encoder in ("MiniLM", "BERT-base"):
        ours, theirs = (
            np.mean([run["words/s"] for run in card[f"{encoder}, batch 32: {name}"]])
            for name in ("skdice", "Trainer")
        )
        ratios.add(int(ours / theirs))
    assert len(ratios) == 1
    yield f"(H200, batches of 32) skdice trains {ratios.pop()} times as fast as the Trainer"


def of_peers() -> Iterator[str]:
    with scripts(PEERS, "common", "show") as found:
        show = found["show"]
        records = show.read(BENCHMARKS / "peers.jsonl")
        scores = {
            minutes: {
                name: {
                    peer: float(cell)
                    for peer in show.SETS_OF
                    if show.is_score(cell := show.cell(records, peer, name, minutes))
                }
                for name in show.SETS
            }
            for minutes in (1.0, 5.0)
        }
        peers = len({record["peer"] for record in records})
    leads = {}
    for name, of_set in scores[5.0].items():
        leads[name] = of_set["skdice"] - max(f1 for p, f1 in of_set.items() if p != "skdice")
    ahead = [lead for lead in leads.values() if lead > 0]
    yield (
        f"In five minutes on two cores, skdice has the best F1 of {WORDS[peers]} methods on "
        f"{WORDS[len(ahead)]} data sets of {WORDS[len(leads)]}"
    )
    assert round(scores[5.0]["mrpc"]["Trainer"] - scores[5.0]["mrpc"]["skdice"], 1) == 1.0
    yield "a point behind the Trainer on MRPC"
    yield f"{WORDS[sum(lead <= 2 for lead in ahead)].title()} of these leads are within noise"
    field, words = (
        scores[1.0][name][peer] - scores[1.0][name]["skdice"]
        for name, peer in (("bc5cdr", "CRF"), ("mrpc", "TF-IDF"))
    )
    yield (
        f"a random field is {field:.1f} points ahead of it on BC5CDR, "
        f"and TF-IDF {words:.1f} on MRPC"
    )


def of_curves() -> Iterator[str]:
    pytest.importorskip("matplotlib")
    with scripts(PAPER, "run", "budget") as found:
        budget = found["budget"]
        records = found["run"].read(PAPER / "results" / "budget.jsonl")
        curves = {how: budget.curves_of(records, how) for how in ("plain", "tuned")}
        for how, tasks in curves.items():
            budget.add_stronger(tasks, budget.curves_of(records, how, "dev"))
        rows = [line.strip("| ").split(" | ") for line in budget.leads(curves)[2:]]
    ours = {(row[0], int(row[1])): row[3:] for row in rows if row[2] == "`ce_dice`"}
    sms, clinc = 1, 2  # columns
    first = sorted(float(ours["as it is", 1][i]) for i in (sms, clinc))
    points = f"{first[0]:.0f} to {first[1]:.0f} points"
    yield f"`ce_dice` leads cross-entropy by {points} after one epoch"
    assert all(abs(float(ours["as it is", 2][i])) < 2 for i in (sms, clinc))
    yield "After two epochs they are level"
    tuned = [row[-1] for (how, _), row in ours.items() if how == "tuned"]
    means, low = ([float(re.split(r"[ (]+", cell)[i]) for cell in tuned] for i in (0, 1))
    assert 0.5 <= np.mean(means) < 1.5
    assert max(low) < 0
    n_sets = WORDS[len(rows[0]) - 4]
    yield f"is about a point on average over {n_sets} data sets, which is within noise"


def test_the_readme_quotes_what_the_records_say(readme, quoted):
    for phrase in quoted:
        assert phrase in readme


def test_the_readme_has_no_other_figure(readme, quoted):
    part = readme.partition("## Beside the alternatives")[2].partition("## Where to go next")[0]
    for phrase in quoted:
        part = part.replace(phrase, "")
    row = re.search(r"\| F1 lost by not tuning .*? not measured \| you choose \|", part)
    part = part.replace(row[0], "")  # by the test in test_recipe.py
    part = re.sub(r"\]\(\S+\)|!\[.*?\]", "", part)
    assert not re.findall(r"(?<![A-Za-z])\d\S*", part)
