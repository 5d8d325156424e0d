"""How often a bound that was asked for holds on rows that nobody tuned on.

    python run.py starts --data FOLDER --probabilities /tmp/probabilities ...
    python promise.py /tmp/probabilities --data FOLDER

The development and test rows of a run are pooled, so that both halves of a split are of one kind,
and drawn into rows to tune on and new rows, 200 times. No model is fitted. A row that is drawn
twice counts once as evidence, as in `fit` of the estimators. A split counts as kept where the bound
holds among the new rows; where no threshold can promise it, tuning says so, and nothing is
promised.
"""

from __future__ import annotations

import argparse
import json
from multiprocessing import Pool
from pathlib import Path
from typing import Any

import numpy as np
from decisions import Part, parts_of

from skdice.metrics import PrecisionAtRecall, RecallAtPrecision
from skdice.metrics.decisions.held_out_rows import BinaryRows
from skdice.metrics.decisions.tuning import tune

HERE = Path(__file__).parent
BOUNDS = {"precision": RecallAtPrecision, "recall": PrecisionAtRecall}
SHARE = 0.9
SPLITS = ("half", "bootstrap")


def rows_of(parts: dict[str, Part]) -> BinaryRows:
    """All rows of a run, of two classes."""
    positive = parts["dev"].positive
    assert positive is not None
    log_p = np.concatenate([part.log_p for part in parts.values()])
    truth = np.concatenate([part.truth for part in parts.values()]) == positive
    margins = log_p[:, [positive]] - log_p[:, [1 - positive]]
    return BinaryRows(margins, truth[:, None], truth.astype(int), np.array([0, 1]))


def split(random: np.random.Generator, n: int, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Rows to tune on and new rows: halves, or a bootstrap draw and what it left out."""
    if kind == "half":
        order = random.permutation(n)
        return order[: n // 2], order[n // 2 :]
    drawn = random.integers(n, size=n)
    return drawn, np.setdiff1d(np.arange(n), drawn)


def share(rows: BinaryRows, decided: np.ndarray, what: str) -> float:
    """Precision or recall of the positive class; 1 where there is nothing to count."""
    hits = int((decided & rows.truth).sum())
    total = int((decided if what == "precision" else rows.truth).sum())
    return hits / total if total else 1.0


def tried(given: tuple[Path, Path, int]) -> list[dict[str, Any]]:
    """How often each bound was promised and held, for one run."""
    file, data, n_splits = given
    job, parts = parts_of(file, data)
    if parts["dev"].tags is not None:
        return []
    rows = rows_of(parts)
    made = []
    for what, bound in BOUNDS.items():
        for kind in SPLITS:
            random = np.random.default_rng(0)
            shares = []
            for _ in range(n_splits):
                chosen, others = split(random, rows.n_rows, kind)
                try:
                    bias = tune(rows.take(np.unique(chosen)), bound(SHARE, strict=True)).bias
                except ValueError:
                    continue  # out of reach, and named so
                new = rows.take(others)
                shares.append(share(new, new.decide(bias), what))
            held = int((np.array(shares) >= SHARE).sum())
            made.append(
                {"job": job, "what": what, "split": kind, "splits": n_splits}
                | {"promised": len(shares), "held": held, "mean": float(np.mean(shares or [0.0]))}
            )
    return made


def table(records: list[dict[str, Any]]) -> list[str]:
    """A line for each data set, bound and kind of split."""
    lines = [
        "| data set | asked | split | fits | promised | of these held | held or named |",
        "|---|---|---|---:|---:|---:|---:|",
    ]
    groups: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for record in records:
        names = record["job"]["task"], record["what"], record["split"]
        groups.setdefault(names, []).append(record)
    for (task, what, kind), runs in sorted(groups.items()):
        promised, held, splits = (
            sum(run[name] for run in runs) for name in ("promised", "held", "splits")
        )
        shares = [
            f"{100 * promised / splits:.0f} %",
            f"{100 * held / promised:.1f} %" if promised else "",
            f"{100 * (splits - promised + held) / splits:.1f} %",
        ]
        cells = [task, f"{what} {SHARE}", kind, str(len(runs)), *shares]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("probabilities", type=Path)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--splits", type=int, default=200)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, default=HERE / "results" / "promise.json")
    args = parser.parse_args()
    files = sorted(args.probabilities.glob("*.npz"))
    records: list[dict[str, Any]] = []
    with Pool(args.workers) as pool:
        for made in pool.imap(tried, [(file, args.data, args.splits) for file in files]):
            records += made
            for record in made:
                print({**record, "job": record["job"]["task"]}, flush=True)
    args.out.write_text(json.dumps(records, indent=1))
    print("\n".join(table(records)))


if __name__ == "__main__":
    main()
