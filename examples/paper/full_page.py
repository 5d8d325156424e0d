"""The tables of docs/paper.md, from the records of `full.py` and of `run.py`."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from full import BASE, BY_PASSES, PASSES
from pages import replaced
from run import HERE, core_hours, read
from run import RESULTS as SMALLER
from scipy.stats import t as student

PAGE = HERE.parents[1] / "docs" / "paper.md"
TITLES = {
    "gmb_10k": "GMB, 10,000 sentences",
    "gmb": "GMB",
    "wnut17": "WNUT17",
    "bc5cdr": "BC5CDR",
    "bc5cdr_all": "BC5CDR",
    "bc5cdr_1500": "BC5CDR, 1,500 sentences",
    "sst2": "SST-2",
    "sst2_20k": "SST-2, 20,000 phrases",
    "sst5": "SST-5",
    "qqp": "QQP",
    "qqp_10k": "QQP, 10,000 pairs",
    "qqp_rare_10k": "QQP, 5 % positive, 10,000 pairs",
    "mrpc": "MRPC",
    "clinc_oos": "CLINC, out of scope",
    "clinc_intents": "CLINC, 150 intents",
    "squad1": "half of SQuAD's development set, with answers",
    "squad2": "half of SQuAD 2.0's development set",
    "goemotions": "GoEmotions",
    "goemotions_10k": "GoEmotions, 10,000 comments",
    "ud_en": "UD English",
    "ud_zh": "UD Chinese",
}
# The paper's tables: rows without and with DSC, and of each column its data; ours by data set.
OF_READERS, OF_BERT = ("BERT-MRC", "+ DSC"), ("BERT", "BERT + DSC")
PAPER: list[tuple[str, tuple[str, str], tuple[str, ...], bool]] = [
    ("table3", ("BERT-Tagger", "+ DSC"), ("ud_zh",), False),
    ("table4", ("BERT-Tagger", "+ DSC"), ("ud_en",), False),
    ("table5", OF_READERS, ("wnut17", "bc5cdr", "bc5cdr_1500", "bc5cdr_all"), True),
    ("table6", OF_BERT, ("squad1", "squad2"), False),
    ("table7", OF_BERT, ("mrpc", "qqp_10k", "qqp"), False),
    ("table9", ("BERT + CE", "BERT + DSC"), ("sst2_20k", "sst2", "sst5", "clinc_intents"), False),
]
POSITIVES = (0, 30, 100, 300, 1000)  # of a class in the test rows: bounds of the rows of a table
OF_TABLES = (PASSES, "auto")  # passes of a fit, but in the table by their number


def show(path: Path) -> None:
    """Write the tables into the page, and print them."""
    whole, smaller, page = read(path), read(SMALLER), PAGE.read_text()
    for name, made in (
        ("gains", gains(whole, smaller)),
        ("losses", by_loss(whole)),
        ("positives", by_positives(whole)),
        ("passes", by_passes(whole)),
        ("records", [about(whole)]),
    ):
        text = "\n".join(made)
        print(f"{name}\n\n{text}\n")
        page = replaced(page, name, text, "full.py")
    PAGE.write_text(page)


def about(records: list[dict[str, Any]]) -> str:
    """How many fits have run, and where."""
    where = sorted({f"{r['device']}, torch {r['torch']}, {r['date']}" for r in records})
    return f"{len(records)} fits, {core_hours(records):.1f} core-hours. " + "; ".join(where)


# ---- differences of two losses


def settings(job: dict[str, Any]) -> str:
    """What two fits share that are compared."""
    return json.dumps({k: v for k, v in job.items() if k[:4] != "loss"}, sort_keys=True)


def score(record: dict[str, Any], how: str) -> float:
    """In points, on the test rows; records of `run.py` say which figure counts."""
    test = record[how]["test"]
    many = record["job"]["task"] == "clinc_intents"
    return 100 * test["score" if "score" in test else "accuracy" if many else "f1"]


def differences(
    records: Iterable[dict[str, Any]], task: str, how: str, *, encoder: Any = None, **wanted: Any
) -> list[float]:
    """`dsc` less cross-entropy, of fits that are the same but for the loss."""
    pairs: dict[str, dict[str, float]] = defaultdict(dict)
    for record in records:
        job = record["job"]
        same = all(job.get(name) == value for name, value in wanted.items())
        plain = set(job).isdisjoint({"sampler", "start", "then", "keep", "limit", "faster"})
        of_loss = [name for name in job if name.startswith("loss__")]
        if not (same and plain) or of_loss or job["task"] != task:
            continue
        if job.get("backbone") == encoder and how in record:
            pairs[settings(job)][job["loss"]] = score(record, how)
    return [each["dsc"] - each["ce"] for each in pairs.values() if {"dsc", "ce"} <= each.keys()]


def interval(values: list[float]) -> str:
    """The mean with its 95 % interval; of fewer than three seeds the values themselves."""
    if len(values) < 3:
        return ", ".join(f"{value:+.1f}" for value in values)
    half = student.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / len(values) ** 0.5
    return f"{np.mean(values):+.1f} ± {half:.1f} ({len(values)})"


def gains(whole: list[dict[str, Any]], smaller: list[dict[str, Any]]) -> Iterator[str]:
    """For each table: what DSC adds to cross-entropy in the paper, and here."""
    reported = json.loads((HERE / "reported.json").read_text())
    whole = [record for record in whole if record["job"]["max_epochs"] in OF_TABLES]
    rows: list[tuple[list[str], dict[str, str]]] = []
    ours_too = ((None, "plain", "MiniLM"), (BASE, "plain", "base"), (BASE, "tuned", "base, tuned"))
    for name, (before, after), ours, reader in PAPER:
        table = reported[name]
        columns = zip(table["columns"], table["rows"][before], table["rows"][after], strict=True)
        theirs = [(c, b - a) for c, a, b in columns if a is not None and b is not None]
        paper = ["<br>".join(of) for of in zip(*((c, f"{g:+.1f}") for c, g in theirs), strict=True)]
        for task in ours:
            wanted = {"reader": True if reader else None, "train_set": None}
            cells = {"MiniLM, part": interval(differences(smaller, task, "plain", **wanted))}
            for encoder, how, column in ours_too:
                found = differences(whole, task, how, encoder=encoder, **wanted)
                cells[column] = interval(found)
            if any(cells.values()):
                title = TITLES[task] + (", read" if reader else "")
                rows.append(([name[5:], *paper, title], cells))
                paper = ["", ""]
    columns = [column for column in rows[0][1] if any(cells[column] for _, cells in rows)]
    yield from as_table(["table", "the paper's data", "its gain", "data here"], columns, rows)


# ---- all losses


def label(job: dict[str, Any]) -> str:
    """A column: K of weighted cross-entropy is chosen later, on the development rows."""
    return f"{job['loss']}{', from zero' if job.get('start') == 'zero' else ''}"


COLUMNS = ("ce, from zero", "ce", "weighted_ce", "focal", "dice", "dsc", "ce_dice")


def means(records: list[dict[str, Any]], how: str) -> dict[str, float]:
    """The mean score of each column over seeds; of several settings the better on development."""
    found: dict[str, dict[int, tuple[float, float]]] = defaultdict(dict)
    for record in records:
        if how in record:
            job = record["job"]
            value = record[how]["dev"]["score"], score(record, how)
            seeds = found[label(job)]
            seeds[job["seed"]] = max(value, seeds.get(job["seed"], value))
    return {name: float(np.mean([v for _, v in of.values()])) for name, of in found.items()}


def of_shared_seeds(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The records of seeds that all columns have, so that the means of a row are comparable."""
    seeds: dict[str, set[int]] = defaultdict(set)
    for record in records:
        seeds[label(record["job"])].add(record["job"]["seed"])
    shared = set.intersection(*seeds.values()) if seeds else set()
    return [record for record in records if record["job"]["seed"] in shared]


def as_table(
    head: list[str], columns: list[str], rows: list[tuple[list[str], dict[str, str]]]
) -> Iterator[str]:
    """A table whose rows have some cells, and figures in named columns."""
    yield f"| {' | '.join([*head, *columns])} |"
    yield "|---" * len(head) + "|---:" * len(columns) + "|"
    for cells, figures in rows:
        yield f"| {' | '.join([*cells, *(figures[name] for name in columns)])} |"


def tables_of_losses(
    head: list[str], rows: list[tuple[list[str], dict[str, float]]]
) -> Iterator[str]:
    """A table for each set of losses that ran, so that none has a column for others."""
    of: dict[tuple[str, ...], list[tuple[list[str], dict[str, str]]]] = defaultdict(list)
    for cells, values in rows:
        ran = tuple(name for name in COLUMNS if name in values)
        of[ran].append((cells, {f"`{name}`": f"{values[name]:.1f}" for name in ran}))
    for n, (ran, found) in enumerate(of.items()):
        if n:
            yield ""
        yield from as_table(head, [f"`{name}`" for name in ran], found)


def by_loss(records: list[dict[str, Any]]) -> Iterator[str]:
    """The score of each loss on each set, as it is and with a tuned decision."""
    rows = []
    groups: dict[Any, list[dict[str, Any]]] = defaultdict(list)
    for record in records:
        job = record["job"]
        if job["max_epochs"] in OF_TABLES:
            passes = record.get("max_epochs", job["max_epochs"])  # "auto" is a number there
            of = job["task"], job.get("backbone"), job.get("train_set"), job.get("reader"), passes
            groups[of].append(record)
    for (task, encoder, train_set, reader, passes), found in groups.items():
        title = TITLES[task] + (f", {train_set}" if train_set else "") + (", read" * bool(reader))
        title += f", {passes} passes" * (passes != PASSES)
        found = of_shared_seeds(found)
        n_seeds = len({r["job"]["seed"] for r in found})
        for how in ("plain", "tuned"):
            if values := means(found, how):
                rows.append(([title, encoder or "MiniLM", str(n_seeds), how], values))
    yield from tables_of_losses(["data", "encoder", "seeds", "decision"], rows)


def by_positives(records: list[dict[str, Any]]) -> Iterator[str]:
    """F1 of classes, by the number of their positives in the test rows; with its heading."""
    found: dict[int, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for record in records:
        job = record["job"]
        classes = record["plain"]["test"].get("by_class", {})
        if job["max_epochs"] in OF_TABLES and "reader" not in job:
            for f1, support in classes.values():
                row = int(np.searchsorted(POSITIVES, support, "right")) - 1
                found[row][label(job)].append(100 * f1)
    if not found:
        return
    yield "## By the number of positives\n"
    rows = []
    for row, losses in sorted(found.items()):
        end = f" to {POSITIVES[row + 1] - 1:,}" if row + 1 < len(POSITIVES) else " or more"
        of = {name: float(np.mean(values)) for name, values in losses.items()}
        rows.append(([f"{POSITIVES[row]:,}{end}"], of))
    yield from tables_of_losses(["positives of a class in the test rows"], rows)


def by_passes(records: list[dict[str, Any]]) -> Iterator[str]:
    """The score of each loss after 1, 3 and 8 passes, with MiniLM; with its heading."""
    rows = []
    for task in BY_PASSES:
        of = {r["job"]["max_epochs"] for r in records if r["job"]["task"] == task}
        for passes in sorted(of & {1, PASSES, 8}) if len(of) > 1 else ():  # else the table above
            found = [
                r for r in records if r["job"]["task"] == task and "backbone" not in r["job"]
                and r["job"]["max_epochs"] == passes and "train_set" not in r["job"]
            ]  # fmt: skip
            found = of_shared_seeds(found)
            for how in ("plain", "tuned"):
                if values := means(found, how):
                    rows.append(([TITLES[task], str(passes), how], values))
    if rows:
        yield "## By the length of training\n"
        yield from tables_of_losses(["data", "passes", "decision"], rows)
