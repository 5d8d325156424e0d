"""F1 in a minute, and in five: skdice beside what else people use, baselines included.

    python peers.py make --envs FOLDER                       # an environment for each peer
    python peers.py run --envs FOLDER --data FOLDER --minutes 1 5
    python peers.py list                                     # what has run and what has not
    python peers.py show                                     # tables into docs, and the chart

DATA holds `wnut17/`, `bc5cdr/`, `sms_spam/`, `clinc_oos/` and `mrpc/`. Each run is a process of its
own, in the peer's own environment, on all cores: nothing else should run. The budget counts
everything from the start of the process to the predictions of the test rows: imports, loading,
tokenising, training, tuning; not the time in which another program had the main thread's core,
which the kernel tells. A short probe, which does not count, says how many updates fit. A run
that overshoots by more than a tenth is made again with fewer, and one that leaves a fifth unused
once again with more. skdice, and Trainer at our rate, make no more passes than `fit` would choose,
though more may fit. A file of records grows by one line a run; what stands there is not run again.

Every peer sees the same rows, as JSON, and all predictions are scored here by one scorer. Text
labels: F1 of the positive class. Tags: micro F1 of spans.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path
from typing import Any

from show import SETS, TAGS, TEXTS, best, key, read, show

HERE = Path(__file__).parent
RECORDS = HERE.parent / "results" / "peers.jsonl"
TORCH = "torch==2.13.0"
AIM = 0.97  # of the budget, which the number of updates is chosen for
WARM_UP = 1.5  # seconds of training that do not grow with the rows


@dataclass(frozen=True)
class Peer:
    """A package, the sets that it runs on and how it is installed.

    Attributes
    ----------
    script : str
    sets : tuple of str
    packages : tuple of str
        What pip is asked for; nothing for what runs in this environment.
    settings : tuple of str
        ``"advice"``: the best advice for a small encoder. ``"default"``: the peer's own numbers.
    probed : int or None
        Training rows of the probe; None for a peer that fits to all rows at once.
    """

    script: str
    sets: tuple[str, ...]
    packages: tuple[str, ...] = ()
    settings: tuple[str, ...] = ("advice", "default")
    probed: int | None = 640
    environment: dict[str, str] = field(default_factory=dict)


PEERS = {
    "TF-IDF": Peer("run_baselines.py", TEXTS, probed=None),
    "CRF": Peer("run_baselines.py", TAGS, probed=1000),
    "skdice": Peer(
        "run_skdice.py",
        TAGS + TEXTS,
        settings=("advice", "advice, bf16", "default"),
        probed=960,
    ),
    "Trainer": Peer(
        "run_trainer.py",
        TAGS + TEXTS,
        ("transformers==5.23.0", "accelerate==1.15.0"),
        settings=("advice", "advice, 1e-4", "default"),  # 1e-4: our rate for texts
    ),
    "SetFit": Peer("run_setfit.py", TEXTS, ("setfit==1.2.0",), probed=320),
    "spaCy": Peer("run_spacy.py", TAGS + TEXTS, ("spacy==3.8.18", "spacy-transformers==1.4.0")),
    "SpanMarker": Peer("run_spanmarker.py", TAGS, ("span-marker==1.8.1",), probed=320),
    "Flair": Peer("run_flair.py", TAGS, ("flair==0.15.1",), probed=320),
    "simpletransformers": Peer(
        "run_simpletransformers.py",
        ("wnut17", "sms"),
        ("simpletransformers==0.70.8",),
        probed=320,
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("command", choices=["make", "run", "list", "show"])
    parser.add_argument("--envs", type=Path, help="folder of the peers' environments")
    parser.add_argument("--data", type=Path, help="folder of the data sets")
    parser.add_argument("--model", help="folder of the encoder; the default one's if absent")
    parser.add_argument("--peers", nargs="+", choices=PEERS, default=list(PEERS))
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument(
        "--settings", nargs="+", default=["advice", "advice, bf16", "default", "better"]
    )
    parser.add_argument("--minutes", nargs="+", type=float, default=[1, 5])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--nice", type=int, help="of the run's group of processes; needs root")
    parser.add_argument("--until", help="begin no run that would end after this time, as in 02:35")
    parser.add_argument(
        "--pause", type=float, default=0, help="rest after a job, as a multiple of its time"
    )
    parser.add_argument("--retry", action="store_true", help="run again what failed")
    parser.add_argument("--records", type=Path, default=RECORDS)
    args = parser.parse_args()
    records = read(args.records)
    if args.command == "make":
        for name in args.peers:
            make(name, needed(args.envs, "--envs"))
    elif args.command == "show":
        show(records)
    elif args.command == "list":
        for job in jobs(args, records):
            print(job["minutes"], job["peer"], job["set"], job["setting"])
        print(f"{len(records)} runs on record")
    else:
        run_all(args)


def needed(value: Path | None, option: str) -> Path:
    """The value, or an error that names the option."""
    if value is None:
        raise SystemExit(f"{option} is missing")
    return value.resolve()


# ---- environments


def python_of(name: str, envs: Path | None) -> str:
    """The interpreter of a peer: this one for what needs skdice."""
    if not PEERS[name].packages:
        return sys.executable
    return str(needed(envs, "--envs") / name / "bin" / "python")


def make(name: str, envs: Path) -> None:
    """Make a peer's environment, unless it is there; a file keeps what pip says of a failure."""
    python = Path(python_of(name, envs))
    done, log = envs / name / "made", envs / f"{name}.log"
    if not PEERS[name].packages or done.exists():
        return
    envs.mkdir(parents=True, exist_ok=True)
    print(f"{name}: {' '.join(PEERS[name].packages)}", flush=True)
    subprocess.run([sys.executable, "-m", "venv", str(envs / name)], check=True)
    pip = [str(python), "-m", "pip", "install", "--quiet"]
    with log.open("w") as file:
        # torch first, so that no peer chooses another build.
        for packages in ((TORCH,), (TORCH, *PEERS[name].packages)):
            made = subprocess.run([*pip, *packages], stdout=file, stderr=subprocess.STDOUT)
            if made.returncode:
                print(f"{name} cannot be installed: see {log}", flush=True)
                return
    done.touch()


# ---- what to run


def jobs(args: argparse.Namespace, records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What is missing, in the order of the options: budget, setting, peer, set."""
    done = {
        key(record) for record in records if "error" not in record or not getattr(args, "retry", 0)
    }
    missing = []
    for minutes in args.minutes:
        for setting in args.settings:
            for peer in args.peers:
                for name in args.sets:
                    if name not in PEERS[peer].sets:
                        continue
                    job = {"peer": peer, "set": name, "minutes": minutes, "seed": args.seed}
                    if setting == "better":
                        # The first seed takes what was better with the shortest budget; another
                        # takes what was better with its own.
                        shortest = min((r["minutes"] for r in records), default=minutes)
                        runs = best(records, peer, name, minutes if args.seed else shortest)
                        job["setting"] = runs[0]["setting"] if runs else None
                    else:
                        job["setting"] = setting
                    if job["setting"] in PEERS[peer].settings and key(job) not in done:
                        done.add(key(job))
                        missing.append(job)
    return missing


def run_all(args: argparse.Namespace) -> None:
    """Make the missing runs one after the other."""
    envs = args.envs and args.envs.resolve()
    data = needed(args.data, "--data")
    if args.model is None:
        from skdice.backbones import DEFAULT_BACKBONE, find_backbone

        args.model = find_backbone(DEFAULT_BACKBONE)
    args.records.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for job in iter(lambda: next(iter(jobs(args, read(args.records))), None), None):
            if args.until and too_late(job["minutes"], args.until):
                print(f"{args.until} is near: stopped before", *key(job))
                return
            scratch, began = Path(folder) / "run", time.time()
            record = job | run_one(job, args, envs, data, scratch)
            with args.records.open("a") as file:
                file.write(json.dumps(record) + "\n")
            told = record.get("error") or f"F1 {record['f1']:.1f}, dev {record['dev_f1']:.1f}"
            print(*key(job)[:4], told, record.get("seconds"), record.get("busy"), flush=True)
            time.sleep(args.pause * (time.time() - began))


def too_late(minutes: float, until: str) -> bool:
    """Whether a run and its probe would end after this time of today."""
    end = datetime.combine(date.today(), datetime.strptime(until, "%H:%M").time())
    return (end - datetime.now()).total_seconds() < 60 * minutes + 30


def write_data(name: str, folder: Path, into: Path) -> dict[str, Any]:
    """Write what a peer sees of a set: all but the labels of the test rows; return those."""
    from dataclasses import replace

    import tasks

    from skdice.datasets import read_conll

    task = tasks.load(name, folder)
    if name == "bc5cdr":  # whole; its development rows are a sample
        task = replace(task, test=read_conll(tasks.paths(name, folder)[2]))
    seen = seen_of(task)
    into.write_text(json.dumps(seen))
    truth = {"dev": task.dev[1], "test": task.test[1], "pos": task.pos_label, "kind": seen["kind"]}
    return truth | {"rows": len(task.train[1])}


def seen_of(task: Any) -> dict[str, Any]:
    """What a peer sees of a task: all but the labels of the test rows."""
    parts = {"train": task.train, "dev": task.dev, "test": (task.test[0], None)}
    return {
        "kind": "tags" if task.kind == "tags" else "texts",
        "pos_label": task.pos_label,
        **{part: {"X": X, "y": y} for part, (X, y) in parts.items()},
    }


def run_one(
    job: dict[str, Any], args: argparse.Namespace, envs: Path | None, data: Path, scratch: Path
) -> dict[str, Any]:
    """Probe, run, and run again if the time is missed; the record's part that is measured."""
    from skdice.engine.recipe import choose_epochs

    peer = PEERS[job["peer"]]
    scratch.mkdir(exist_ok=True)
    truth = write_data(job["set"], data, scratch / "data.json")
    common = {
        **job,
        **{"data": str(scratch / "data.json"), "model": str(args.model), "share": 1.0},
        **{"scratch": str(scratch), "views": None},
        "passes": choose_epochs(truth["rows"], 32),
    }
    python = python_of(job["peer"], envs)
    budget, tries = 60 * job["minutes"], []
    shorter = [
        record
        for record in read(args.records)
        if key(record)[:3] == key(job)[:3] and "error" not in record
    ]
    if peer.probed is not None and shorter:
        common["views"] = views_for(shorter[-1] | {"share": 1.0}, budget)
    elif peer.probed is not None:
        probe = start(python, peer, common | {"share": 0.2, "views": peer.probed}, args)
        if "error" in probe:
            return probe
        tries.append(probe)
        common["views"] = views_for(probe, budget)
    for _ in range(3):
        answer = start(python, peer, common, args)
        if "error" in answer:
            return answer
        tries.append(answer)
        used = (answer["seconds"] - (answer["waited"] or 0)) / budget
        short = used < 0.8 and "capped" not in answer["notes"]
        if peer.probed is None or not (used > 1.1 or (short and len(tries) < 3)):
            break
        common["views"] = views_for(answer, budget)
    record = {
        "f1": 100 * score(truth["test"], answer["test"], truth["kind"], truth["pos"]),
        "dev_f1": 100 * score(truth["dev"], answer["dev"], truth["kind"], truth["pos"]),
        "over": used > 1.1,
        "tries": [
            {name: t[name] for name in ("views", "seconds", "parts", "waited")} for t in tries
        ],
    }
    names = ("seconds", "views", "parts", "busy", "waited", "load", "notes", "versions")
    return record | {name: answer[name] for name in names} | machine(args.threads)


def views_for(answer: dict[str, Any], budget: float) -> int:
    """How many training rows can be seen in the budget, by a run or a probe.

    Training takes a time for each row after some seconds of warming up; all else takes as long as
    in that run. A probe has predicted a share of the rows.
    """
    parts = answer["parts"]
    shared = ("predict", "tune")
    fixed = WARM_UP + sum(
        seconds / (answer["share"] if part in shared else 1)
        for part, seconds in parts.items()
        if part != "train"
    )
    each = max(parts["train"] - WARM_UP, 0.5 * parts["train"], 1e-6) / answer["views"]
    # What other programs took of a probe is small beside its noise.
    waited = (answer["waited"] or 0) if answer["share"] == 1 else 0
    return max(int((AIM * budget + waited - fixed) / each), 1)


def start(python: str, peer: Peer, job: dict[str, Any], args: argparse.Namespace) -> dict[str, Any]:
    """Run a peer's script; its answer with its seconds, or its error."""
    scratch = Path(job["scratch"])
    out, log = scratch / "answer.json", scratch / "log.txt"
    out.unlink(missing_ok=True)
    environment = {
        **os.environ,
        **{"OMP_NUM_THREADS": str(args.threads), "TOKENIZERS_PARALLELISM": "false"},
        **{"HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": "", "PYTHONWARNINGS": "ignore"},
        **peer.environment,
    }
    if peer.packages:
        environment.pop("PYTHONPATH", None)
    load = os.getloadavg()[0]
    began = time.time()
    (scratch / "job.json").write_text(json.dumps(job | {"out": str(out), "began": began}))
    with log.open("w") as file:
        process = subprocess.Popen(
            [python, str(HERE / peer.script), str(scratch / "job.json")],
            **{"stdout": file, "stderr": subprocess.STDOUT, "stdin": subprocess.DEVNULL},
            env=environment,
            cwd=scratch,
            start_new_session=True,
        )
        if args.nice is not None:
            Path(f"/proc/{process.pid}/autogroup").write_text(str(args.nice))
        limit = 60 * job["minutes"] * 2.5 + 120  # and 120 s for what comes after the budget
        usage = wait(process, began + limit)
    if usage is None or not out.exists():
        said = log.read_text(errors="replace").strip().splitlines()
        what = f"ended after {limit:.0f} s" if usage is None else (said or ["no word"])[-1]
        (args.records.parent / "peers-error.txt").write_text("\n".join(said[-40:]))
        return {"error": what[:300]} | machine(args.threads)
    answer = json.loads(out.read_text())
    wall = time.time() - began
    return answer | {
        "seconds": round(answer["answered"] - began, 2),
        "busy": round((usage.ru_utime + usage.ru_stime) / (args.threads * wall), 3),
        "parts": {part: round(seconds, 2) for part, seconds in answer["parts"].items()},
        **{"load": load, "share": job["share"]},
    }


def wait(process: subprocess.Popen[bytes], end: float) -> Any:
    """What the process used, or None if it had to be killed."""
    while time.time() < end:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            return usage
        time.sleep(0.02)
    os.killpg(process.pid, 9)
    process.wait()
    return None


def machine(threads: int) -> dict[str, Any]:
    """Where and when."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if sys.platform == "linux" else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return {
        "date": date.today().isoformat(),
        "python": platform.python_version(),
        "processor": names[0] if names else platform.processor(),
        "cores": os.cpu_count(),
        "threads": threads,
    }


def score(true: list[Any], predicted: list[Any], kind: str, pos_label: str | None) -> float:
    """Micro F1 of spans, or the F1 of the positive class."""
    from sklearn.metrics import f1_score

    from skdice.metrics import span_f1_score

    if kind == "tags":
        return float(span_f1_score(true, predicted))
    return float(f1_score(true, predicted, pos_label=pos_label, zero_division=0.0))


if __name__ == "__main__":
    main()
