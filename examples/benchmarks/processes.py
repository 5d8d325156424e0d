"""Start-up time and peak memory of skdice and its rivals, each in a process of its own.

    python examples/benchmarks/processes.py DATA --out results/processes.json

DATA holds `wnut17/`. Start-up is the time of the imports; the programs take turns. Memory is the
peak resident memory during one epoch on the first sentences of WNUT17, minus the memory after the
imports. It includes tokenising and loading the model. Prints medians.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path

IMPORTS = {
    "torch and sklearn": "import torch, sklearn.base",
    "skdice": "import torch, sklearn.base, skdice",
    "DiceClassifier": "import torch, sklearn.base; from skdice import DiceClassifier",
    "DiceTokenClassifier": "import torch, sklearn.base; from skdice import DiceTokenClassifier",
    "Trainer": "import torch, sklearn.base; from transformers import Trainer",
}
FITS = {
    "skdice": "ours('tagging', X, y, 'fp32')",
    "Trainer": "theirs('tagging', X, y, 'fp32', False)",
    "Trainer grouped": "theirs('tagging', X, y, 'fp32', True)",
}
TIMED = """
import time
start = time.perf_counter()
{imports}
print(time.perf_counter() - start)
"""
MEASURED = """
import sys, resource, warnings
sys.path.insert(0, {folder!r})
warnings.filterwarnings("ignore")
import torch
from trainer import ours, read_conll, theirs
torch.set_num_threads({threads})
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
X, y = read_conll({file!r})
X, y = X[:{rows}], y[:{rows}]
before = peak()
{fit}
print(peak() - before)
"""


def figure(code: str) -> float:
    """What a new process prints at its end."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(done.stdout.split()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=320)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    given = {
        "folder": str(Path(__file__).parent),
        "file": str(args.data / "wnut17" / "wnut17train.conll"),
        "rows": args.rows,
        "threads": args.threads,
    }
    programs = {
        "seconds to import": {
            name: TIMED.format(imports=imports) for name, imports in IMPORTS.items()
        },
        "MiB at the peak of a fit": {
            name: MEASURED.format(fit=fit, **given) for name, fit in FITS.items()
        },
    }
    report: dict[str, dict[str, list[float]]] = {}
    for title, group in programs.items():
        found: dict[str, list[float]] = {}
        for _ in range(args.rounds):
            for name, code in group.items():
                found.setdefault(name, []).append(figure(code))
        report[title] = found
        print(title)
        for name, values in found.items():
            print(f"  {name:20} {statistics.median(values):8.2f}")
    args.out.write_text(json.dumps({**vars_of(args), **report}, indent=1) + "\n")


def vars_of(args: argparse.Namespace) -> dict[str, object]:
    """What the figures depend on."""
    import torch
    import transformers

    from skdice import __version__

    versions = {
        "skdice": __version__,
        "torch": torch.__version__,
        "transformers": transformers.__version__,
    }
    return {**versions, "rows": args.rows, "rounds": args.rounds, "threads": args.threads}


if __name__ == "__main__":
    main()
