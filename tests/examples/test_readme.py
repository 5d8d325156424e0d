"""The figures of the README, made again from the records of the measurements."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from statistics import median

import numpy as np
import pytest

from skdice.datasets import read_table
from skdice.losses import LOSSES
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
    return [*of_losses(), *of_regret(), *of_speed(), *of_peers(), *of_curves()]


def of_losses() -> Iterator[str]:
    yield f"`loss=` selects one of {WORDS[len(LOSSES)]} losses"
    yield f"| losses for rare classes | {WORDS[len(LOSSES)]}, by name"
    rows = table_after("full.py", "losses", "paper.md")
    names = [cell.strip("`") for cell in rows[0]]
    for row in rows[2:]:
        if row[0] in ("MRPC", "UD Chinese") and row[3] == "plain":
            scores = {names[i]: float(cell) for i, cell in enumerate(row) if i > 3 and cell}
            assert max(scores, key=scores.get) == "ce"
    yield "**Whole MRPC and UD Chinese** are [better with `ce`]"


def table_after(script: str, name: str, page: str) -> list[list[str]]:
    """Cells of a table that a script has written into a page."""
    text = (ROOT / "docs" / page).read_text()
    part = text.partition(f"<!-- {name}: made by {script} -->")[2].partition("<!-- end")[0]
    lines = [line for line in part.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def of_regret() -> Iterator[str]:
    """The median over cells and the range; the page is checked against the records of the fits."""
    _, n_cells, ours, trainer = table_after("fresh.py", "regret", "evidence.md")[-1]
    yield f"| F1 lost by not tuning: median (range) of {n_cells} cells | [{ours}]"
    yield f"#what-is-lost-by-not-tuning) | {trainer} | not measured | not measured | you choose |"


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
    ratios = [
        median(rates[kind]["skdice fp32"]) / median(rates[kind]["Trainer fp32"])
        for kind in ("tagging", "classification")
    ]
    assert round(min(ratios), 1) >= 2
    yield "**Training at twice the speed of the Trainer** on a CPU"
    card = json.loads((BENCHMARKS / "gpu.json").read_text())[
        "second run, same card, without that setting"
    ]
    ratios = [
        np.mean([run["words/s"] for run in card[f"{setting}: skdice"]])
        / np.mean([run["words/s"] for run in card[f"{setting}: Trainer"]])
        for setting in {name.partition(":")[0] for name in card if name.endswith(": Trainer")}
    ]
    assert len(ratios) == 4
    yield f"[{min(ratios):.0f} to {max(ratios):.0f} times as fast as the Trainer, by batch]"


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
    leads, of_trainer = {}, {}
    for name, of_set in scores[5.0].items():
        leads[name] = of_set["skdice"] - max(f1 for p, f1 in of_set.items() if p != "skdice")
        of_trainer[name] = abs(of_set["skdice"] - of_set["Trainer"])
    (clinc,) = [name for name in leads if "clinc" in name]
    others = [gap for name, gap in of_trainer.items() if name != clinc]
    assert max(others) <= 2
    yield (
        f"skdice is {leads[clinc]:.1f} points ahead of the next of {WORDS[peers]} methods on "
        f"CLINC, and within two of the Trainer on the other {WORDS[len(others)]} sets"
    )
    field, words = (
        scores[1.0][name][peer] - scores[1.0][name]["skdice"]
        for name, peer in (("bc5cdr", "CRF"), ("mrpc", "TF-IDF"))
    )
    yield (
        f"a random field is {field:.1f} points ahead of skdice on BC5CDR, "
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
    jobs = [record["job"] for record in records if record["job"]["max_epochs"] == 1]
    updates = {
        job["task"]: math.ceil(job["train_rows"] / job["batch_size"])
        for job in jobs
        if job["task"] in ("sms_rare", "clinc_oos")
    }
    yield (
        f"**After one epoch** ({updates['sms_rare']} updates on SMS, {updates['clinc_oos']} on "
        f"CLINC), with one half as the threshold, `ce_dice` leads cross-entropy by "
        f"{first[0]:.0f} to {first[1]:.0f} points of F1"
    )
    for label in ("ce", budget.PRIOR):
        scores = [*curves["plain"]["sms_rare"][label][1].values()]
        assert (scores.count(0.0), len(scores)) == (2, 3), label
    yield "Two of three fits of cross-entropy on SMS call nothing positive there"
    assert all(abs(float(ours["as it is", 2][i])) < 2 for i in (sms, clinc))
    yield "After two epochs the two are level"
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
    part = readme.partition("## When to use it")[2].partition("## Where to go next")[0]
    for phrase in [*quoted, "ACL 2020"]:
        part = part.replace(phrase, "")
    part = re.sub(r"\]\(\S+\)|!\[.*?\]|```.*?```", "", part)
    assert not re.findall(r"(?<![A-Za-z\d])\d\S*", part)


def test_the_readme_counts_the_messages_that_ship(readme):
    texts, labels = read_table(ROOT / "skdice" / "datasets" / "data" / "town_messages.csv")
    spam = list(labels).count("spam")
    assert f"{len(texts)} messages ship with skdice, {spam} of them spam" in readme
    assert len({text.casefold() for text in texts}) == len(texts)


def test_the_readme_fits_three_screens():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 115
