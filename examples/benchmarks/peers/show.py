"""The tables and the chart of the peers, from their records."""

from __future__ import annotations

import json
import sys
import textwrap
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT / "examples" / "paper"))

from pages import replaced  # noqa: E402

PAGE = ROOT / "docs" / "evidence.md"
CHART = ROOT / "docs" / "images" / "peers.svg"
SETS = {
    "wnut17": "WNUT17",
    "bc5cdr": "BC5CDR",
    "sms": "SMS",
    "clinc_rare": "CLINC, one intent",
    "mrpc": "MRPC",
}
# Which peers a set has; a gap in the table is a run that is missing.
TAGS, TEXTS = ("wnut17", "bc5cdr"), ("sms", "clinc_rare", "mrpc")
SETS_OF = {
    "skdice": TAGS + TEXTS,
    "TF-IDF": TEXTS,
    "CRF": TAGS,
    "Trainer": TAGS + TEXTS,
    "SetFit": TEXTS,
    "spaCy": TAGS + TEXTS,
    "SpanMarker": TAGS,
    "Flair": TAGS,
    "simpletransformers": ("wnut17", "sms"),
}
NAMES = {
    "skdice": "**skdice**",
    "TF-IDF": "TF-IDF, logistic regression (ours)",
    "CRF": "random field (ours)",
    "spaCy": "spaCy with MiniLM",
    "Flair": "Flair with MiniLM",
}
MISSING, NONE, FAILED, SLOW = "?", "", "failed", "too slow"
COLOURS = ("#d55e00", "#555555", "#555555", "#0072b2", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
STARVED = 0.1  # share of the budget for which another program had the main thread's core
Record = dict[str, Any]


def key(record: Record) -> tuple[Any, ...]:
    """What a record is the only one of."""
    return tuple(record[name] for name in ("peer", "set", "setting", "minutes", "seed"))


def read(path: Path) -> list[Record]:
    """The records; the last one of each run."""
    lines = path.read_text().splitlines() if path.exists() else []
    records = [json.loads(line) for line in lines if line]
    return list({key(record): record for record in records}.values())


def best(records: list[Record], peer: str, name: str, minutes: float) -> list[Record]:
    """A peer's runs, one a seed, with the setting that is better on development rows.

    Seed 0 chooses it, since only the better setting runs with another. A run that overshot counts
    only where no other is left.
    """
    wanted = (peer, name, minutes)
    runs = [
        record
        for record in records
        if (record["peer"], record["set"], record["minutes"]) == wanted and "error" not in record
    ]
    first = [record for record in runs if record["seed"] == 0]
    if not first:
        return []
    setting = max(first, key=lambda r: (not r["over"], r["dev_f1"]))["setting"]
    return [record for record in runs if record["setting"] == setting]


def cell(records: list[Record], peer: str, name: str, minutes: float) -> str:
    """An F1, the mean of its seeds, or why there is none."""
    if name not in SETS_OF[peer]:
        return NONE
    runs = best(records, peer, name, minutes)
    if runs:
        return SLOW if any(run["over"] for run in runs) else f"{mean_of(runs, 'f1'):.1f}"
    tried = any((r["peer"], r["set"], r["minutes"]) == (peer, name, minutes) for r in records)
    return FAILED if tried else MISSING


def table(records: list[Record], minutes: list[float]) -> list[str]:
    """F1 by peer and set, in Markdown, with a figure for each budget; the best ones are bold."""
    lines = [f"| F1 | {' | '.join(SETS.values())} |", "|---" + "|---:" * len(SETS) + "|"]
    peers = [peer for peer in SETS_OF if any(record["peer"] == peer for record in records)]
    cells = {
        (peer, name, m): cell(records, peer, name, m)
        for peer in peers
        for name in SETS
        for m in minutes
    }
    for name in SETS:
        for m in minutes:
            scores = {p: cells[p, name, m] for p in peers if is_score(cells[p, name, m])}
            for peer, score in scores.items():
                if float(score) == max(map(float, scores.values())):
                    cells[peer, name, m] = f"**{score}**"
    for peer in peers:
        row = [" / ".join(filter(None, (cells[peer, name, m] for m in minutes))) for name in SETS]
        lines.append(f"| {NAMES.get(peer, peer)} | {' | '.join(row)} |")
    return lines


def mean_of(runs: list[Record], name: str) -> float:
    return sum(run[name] for run in runs) / len(runs)


def is_score(text: str) -> bool:
    return text not in (MISSING, NONE, FAILED, SLOW)


def versions(records: list[Record]) -> list[str]:
    """Which versions ran, and on which machine."""
    done = [record for record in records if "error" not in record]
    found = [next(iter(r["versions"].items())) for p in SETS_OF for r in done if r["peer"] == p]
    machines = {f"{r['cores']} cores of {r['processor']}, {r['date']}" for r in done}
    names = ", ".join(f"{name} {number}" for name, number in dict.fromkeys(found))
    text = f"Versions: {names}. Machine: {'; '.join(sorted(machines))}."
    return textwrap.wrap(text, 138, break_long_words=False, break_on_hyphens=False)


def show(records: list[Record]) -> None:
    """Write the table into the page and draw the chart."""
    minutes = sorted({record["minutes"] for record in records})
    made = "\n".join([*table(records, minutes), "", *versions(records)])
    PAGE.write_text(replaced(PAGE.read_text(), "peers", made, "peers.py show"))
    print(PAGE)
    for record in records:
        if record.get("waited") and record["waited"] > STARVED * 60 * record["minutes"]:
            print("another program had its core:", *key(record)[:4], f"{record['waited']:.0f} s")
    draw(records, CHART)
    print(CHART)


def draw(records: list[Record], path: Path) -> None:
    """F1 against the minutes that a run took, a panel for each set."""
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    mpl.rcParams["svg.hashsalt"] = "peers"
    fig, axes = plt.subplots(1, len(SETS), figsize=(13, 3.6), layout="constrained")
    handles: dict[str, Any] = {}
    styles = dict(zip(SETS_OF, (*COLOURS, "#999999"), strict=True))
    for name, ax in zip(SETS, axes, strict=True):
        for peer, colour in styles.items():
            done = [runs for m in (1.0, 5.0) if (runs := best(records, peer, name, m))]
            if done:
                ours = peer == "skdice"
                (handles[peer],) = ax.plot(
                    [mean_of(runs, "seconds") / 60 for runs in done],
                    [mean_of(runs, "f1") for runs in done],
                    marker={"skdice": "D", "TF-IDF": "s", "CRF": "s"}.get(peer, "o"),
                    color=colour,
                    linewidth=2.5 if ours else 1.2,
                    zorder=3 if ours else 2,
                )
        ax.set_title(SETS[name])
        ax.set_xscale("log")
        ax.set_xlim(0.05, 7)
        ax.set_xticks([0.1, 1, 5], ["0.1", "1", "5"])
        ax.minorticks_off()
        ax.set_xlabel("minutes")
        ax.grid(alpha=0.3)
    axes[0].set_ylabel("F1 on the test rows")
    fig.legend(handles.values(), handles, loc="outside lower center", ncols=len(handles))
    fig.savefig(path, metadata={"Date": None})
    plt.close(fig)
