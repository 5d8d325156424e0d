"""Memory of predictions as the texts grow: row by row, on the command line, and with Dask.

    python examples/benchmarks/stream.py --rows 100000 --out results/stream.json
    python examples/benchmarks/stream.py --rows 1000000 --ways iter_predict dask

A way is a process of its own, which reads the texts from files on disk. The encoder is small and
random (one layer of 32), so that the memory of the texts is not hidden behind that of the model.
A point is the most memory that the process needed; "first" is the same after the first block. With
Dask, two partitions are predicted at a time, by threads of one process.
"""

from __future__ import annotations

import argparse
import functools
import json
import platform
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

WAYS = ("iter_predict", "skdice predict - < file", "skdice predict file", "dask")
WORDS = ("the", "bus", "late", "green", "river", "anna", "rome", "sees", "old", "is")
PARTITION = 10_000  # texts, of five words


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS)
    parser.add_argument("--out", type=Path, help="to which the points are added")
    parser.add_argument("--point", nargs=2, metavar=("WAY", "FOLDER"), help=argparse.SUPPRESS)
    parser.add_argument("--make", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.make:
        make(Path(args.make), args.rows)
    elif args.point:
        way, folder = args.point
        print(json.dumps(point(way, Path(folder))))
    else:
        report(args)


def report(args: Any) -> None:
    """Measure each way, and add its point to the file.

    This process imports nothing heavy: the peak of a child begins at what its parent holds.
    """
    script = [sys.executable, __file__]
    with tempfile.TemporaryDirectory() as folder:
        told = run([*script, "--make", folder, "--rows", str(args.rows)])
        for way in args.ways:
            found = {
                "way": way,
                "rows": args.rows,
                **run([*script, "--point", way, folder]),
                **told,
            }
            print(json.dumps(found), flush=True)
            if args.out:
                points = json.loads(args.out.read_text()) if args.out.exists() else []
                args.out.write_text(json.dumps([*points, found], indent=1) + "\n")


def run(command: list[str]) -> Any:
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def make(folder: Path, rows: int) -> None:
    """Write the model, and the texts as lines and as Parquet files."""
    import pandas as pd
    import torch
    import transformers

    from skdice import DiceSequenceClassifier, __version__
    from skdice.backbones import DEFAULT_BACKBONE, find_backbone

    tokenizer = transformers.AutoTokenizer.from_pretrained(find_backbone(DEFAULT_BACKBONE))
    config = transformers.BertConfig(
        vocab_size=len(tokenizer), hidden_size=32, num_hidden_layers=1,
        num_attention_heads=2, intermediate_size=64,
    )  # fmt: skip
    transformers.BertModel(config).save_pretrained(folder / "backbone")
    tokenizer.save_pretrained(folder / "backbone")
    model = DiceSequenceClassifier(backbone=str(folder / "backbone"), max_epochs=1, random_state=0)
    model.fit(["the bus is late", "anna sees rome"] * 8, ["spam", "ham"] * 8)
    model.save_pretrained(folder / "model")
    (folder / "texts").mkdir()
    draw = random.Random(0)
    with open(folder / "texts.txt", "w") as lines:
        for first in range(0, rows, PARTITION):
            n = min(PARTITION, rows - first)
            texts = [" ".join(draw.choices(WORDS, k=5)) for _ in range(n)]
            lines.writelines(f"{text}\n" for text in texts)
            frame = pd.DataFrame({"text": texts})
            frame.to_parquet(folder / "texts" / f"{first // PARTITION:05}.parquet")
    versions = {"skdice": __version__, "torch": torch.__version__}
    machine = {"date": time.strftime("%Y-%m-%d"), "processor": platform.machine()}
    print(json.dumps(versions | machine))


def point(way: str, folder: Path) -> dict[str, Any]:
    """Predict the texts, and tell the memory."""
    start = time.perf_counter()
    if way.startswith("skdice"):
        return by_command(way, folder) | {"seconds": time.perf_counter() - start}
    import torch

    torch.set_num_threads(1)
    first = by_rows(folder) if way == "iter_predict" else by_dask(folder)
    return {"first, MiB": first, "MiB": peak(), "seconds": time.perf_counter() - start}


def peak(who: int = resource.RUSAGE_SELF) -> float:
    """MiB that a process has needed at most."""
    return round(resource.getrusage(who).ru_maxrss / 1024, 1)


def by_command(way: str, folder: Path) -> dict[str, Any]:
    command = [sys.executable, "-c", "from skdice.cli import main; main()", "predict"]
    streamed = way.endswith("< file")
    file = "-" if streamed else str(folder / "texts.txt")
    command += [str(folder / "model"), file, "--out", str(folder / "out.tsv")]
    with open(folder / "texts.txt") as lines:
        given = lines if streamed else subprocess.DEVNULL
        subprocess.run([*command, "--force"], stdin=given, stdout=subprocess.DEVNULL, check=True)
    return {"MiB": peak(resource.RUSAGE_CHILDREN)}


def by_rows(folder: Path) -> float:
    from skdice import DiceSequenceClassifier

    model = DiceSequenceClassifier.from_pretrained(folder / "model")

    def texts() -> Iterator[str]:
        with open(folder / "texts.txt") as lines:
            yield from map(str.strip, lines)

    first = 0.0
    with open(folder / "predictions.txt", "w") as out:
        for i, label in enumerate(model.iter_predict(texts())):
            out.write(f"{label}\n")
            first = first or peak() if i == 0 else first
    return first


@functools.cache
def load(folder: Path) -> Any:
    from skdice import DiceSequenceClassifier

    return DiceSequenceClassifier.from_pretrained(folder / "model")


def by_dask(folder: Path) -> float:
    import dask
    import dask.dataframe as dd
    import pandas as pd

    load(folder)

    def labels_of(texts: pd.Series) -> pd.Series:
        return pd.Series(load(folder).predict(texts), texts.index)

    labels_of(pd.Series(["the bus is late"] * PARTITION))
    first = peak()
    texts = dd.read_parquet(folder / "texts")["text"]
    labels = texts.map_partitions(labels_of, meta=("label", "str"))
    with dask.config.set(scheduler="threads", num_workers=2):
        labels.to_frame().to_parquet(folder / "labels")
    return first


if __name__ == "__main__":
    main()
