"""Whether other packages' defaults, trained by themselves, have the F1 that our engine gives them.

    python recipe_peers.py run --envs FOLDER --data FOLDER   # environments: see peers.py make
    python recipe_peers.py show                              # the table into the appendix

The table of `recipe.py` trains the numbers of Trainer and of simpletransformers in our engine. Here
the packages train on the same rows of the same cells, once each, in fp32, as they do by default.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import recipe
import tasks
from pages import replaced
from run import HERE, append, key, read

PEERS = HERE.parent / "benchmarks" / "peers"
sys.path.append(str(PEERS))
import peers  # noqa: E402

RECORDS = HERE / "results" / "recipe-peers.jsonl"
# A multiple of the batch of 8, so that an epoch has equally many updates everywhere.
ROWS = 400
CELLS = {
    "Trainer": ("bc5cdr", "ud_en", "sms", "clinc_rare", "mrpc"),
    "simpletransformers": ("ud_en", "sms"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("command", choices=["run", "show"])
    parser.add_argument("--envs", type=Path, help="folder of the peers' environments")
    parser.add_argument("--data", type=Path, help="folder of the data sets")
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    args.records, args.nice = RECORDS, None
    if args.command == "run":
        run(args)
    table, page = "\n".join(lines()), recipe.DOCS / "experiments.md"
    print(table)
    page.write_text(replaced(page.read_text(), "defaults of others", table, "recipe_peers.py"))


def run(args: Any) -> None:
    from skdice.backbones import DEFAULT_BACKBONE, find_backbone

    envs = peers.needed(args.envs, "--envs")
    folder = peers.needed(args.data, "--data")
    done = [(record["peer"], record["job"]["task"]) for record in records()]
    for name, cells in CELLS.items():
        for cell in cells:
            if (name, cell) in done:
                continue
            job = job_of(name, cell)
            task = tasks.cell(tasks.load(cell, folder, 0), job)
            with tempfile.TemporaryDirectory() as scratch:
                data, seen = Path(scratch) / "data.json", peers.seen_of(task)
                data.write_text(json.dumps(seen))
                answer = peers.start(
                    peers.python_of(name, envs),
                    peers.PEERS[name],
                    {
                        **{"setting": "default", "seed": 0, "share": 1.0, "minutes": 5},
                        **{"data": str(data), "scratch": scratch, "passes": job["max_epochs"]},
                        "model": str(find_backbone(DEFAULT_BACKBONE)),
                        "views": ROWS * job["max_epochs"],
                    },
                    args,
                )
            if "error" in answer:
                raise SystemExit(f"{name}, {cell}: {answer['error']}")
            f1 = 100 * peers.score(task.test[1], answer["test"], seen["kind"], task.pos_label)
            told = {each: answer[each] for each in ("seconds", "notes", "versions")}
            append(
                RECORDS, {"peer": name, "job": job, "f1": f1, **told, **peers.machine(args.threads)}
            )


def job_of(name: str, cell: str) -> dict[str, Any]:
    """What our engine was given."""
    given = argparse.Namespace(
        **{"precision": "bf16", "backbone": None, "limit": None, "batch_size": recipe.BATCH},
        **{"dev_rows": 300, "test_rows": 2000, "start": None},
    )
    (job,) = recipe.jobs_of(name, given, cell, ROWS, "ce", 0)
    return job


def records() -> list[dict[str, Any]]:
    text = RECORDS.read_text() if RECORDS.exists() else ""
    return [json.loads(line) for line in text.splitlines()]


def lines() -> list[str]:
    """F1 on the test rows, trained by the package and by our engine."""
    ours = recipe.runs(read(recipe.RESULTS))
    found = ["| numbers of | data set | trained by itself | by our engine |", "|---|---|---:|---:|"]
    for record in records():
        engine = ours.get(key(record["job"]))
        cell = recipe.CELLS[record["job"]["task"]]
        there = f"{recipe.f1(engine):.1f}" if engine else "not run"
        found.append(f"| {record['peer']} | {cell} | {record['f1']:.1f} | {there} |")
    return found


if __name__ == "__main__":
    main()
