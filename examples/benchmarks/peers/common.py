"""What the peers' scripts share: the job, the clock, the rows that fit a budget, the answer.

It is imported in every peer's own environment, so it needs the standard library only. A script is
called with one path, that of a job, which `peers.py` writes.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

STARTED = time.time()  # the first line that a peer's script runs


def rows_of_budget(n_rows: int, views: int, seed: int) -> tuple[list[int], int]:
    """The rows and the number of epochs in which about `views` rows are seen.

    For packages that count whole epochs. Each row is seen in each epoch, and some of them twice, so
    that no time is left over. If not even one epoch fits, it is one over some of the rows.

    Returns
    -------
    places : list of int
        Of the rows of an epoch.
    epochs : int
    """
    epochs = max(views // n_rows, 1)
    wanted = max(views // epochs, 1)
    order = random.Random(seed).sample(range(n_rows), n_rows)
    return (order + order)[:wanted], epochs


def spans_of(tags: list[str]) -> list[tuple[int, int, str]]:
    """First word, word behind the last, and type of each span; the tags are IOB2."""
    spans: list[tuple[int, int, str]] = []
    for i, tag in enumerate([*tags, "O"]):
        prefix, _, kind = tag.partition("-")
        if spans and spans[-1][1] == -1 and not (prefix == "I" and kind == spans[-1][2]):
            spans[-1] = (spans[-1][0], i, spans[-1][2])
        if prefix == "B" or (prefix == "I" and not (spans and spans[-1][1] == -1)):
            spans.append((i, -1, kind))
    return spans


def tags_of(n_words: int, spans: list[tuple[int, int, str]]) -> list[str]:
    """IOB2 tags of the spans, those with the earliest start first where two overlap."""
    tags = ["O"] * n_words
    for start, end, kind in sorted(spans):
        if all(tag == "O" for tag in tags[start:end]):
            tags[start:end] = [f"B-{kind}", *[f"I-{kind}"] * (end - start - 1)]
    return tags


class Run:
    """One run of a peer: what it is to do, and how long each part takes.

    Attributes
    ----------
    job : dict
        ``setting``, ``model`` (folder of the encoder), ``views`` (training rows to be seen; None
        for a peer that fits to all rows at once), ``seed``, ``scratch`` (a folder to write to) and
        what `peers.py` needs.
    kind : {"tags", "texts"}
    train : tuple of (X, y)
        Lists of words and of tags, or texts (lists of two texts, for pairs) and labels.
    dev : tuple of (X, y)
    classes : list of str
        Labels or tags of the training rows, sorted.
    """

    def __init__(self) -> None:
        self.job = json.loads(Path(sys.argv[1]).read_text())
        self._parts = {"start": STARTED - self.job["began"]}
        self._last = STARTED
        data = json.loads(Path(self.job["data"]).read_text())
        self.kind, self.pos_label = data["kind"], data["pos_label"]
        self.train = data["train"]["X"], data["train"]["y"]
        self.dev = data["dev"]["X"], data["dev"]["y"]
        self._test = data["test"]["X"]
        labels = self.train[1]
        flat = (tag for row in labels for tag in row) if self.kind == "tags" else labels
        self.classes = sorted(set(flat))
        self.notes: dict[str, Any] = {}

    def mark(self, part: str) -> None:
        """The time since the last mark was spent on this part."""
        now = time.time()
        self._parts[part] = self._parts.get(part, 0.0) + now - self._last
        self._last = now

    def cap(self, epochs: int) -> None:
        """Make no more passes over the training rows than these, though more would fit."""
        most = epochs * len(self.train[0])
        if self.job["views"] >= most:
            self.job["views"], self.notes["capped"] = most, epochs

    def steps(self, batch_size: int) -> int:
        """The number of updates that fit the budget."""
        return max(self.job["views"] // batch_size, 1)

    def rows(self) -> tuple[list[Any], list[Any], int]:
        """X, y and the number of epochs that fit the budget."""
        X, y = self.train
        places, epochs = rows_of_budget(len(X), self.job["views"], self.job["seed"])
        return [X[i] for i in places], [y[i] for i in places], epochs

    def answer(
        self, predict: Callable[[list[Any]], Any], packages: list[str], **notes: Any
    ) -> None:
        """Predict the test rows, which ends the budget, and then the development rows.

        `notes` goes into the record: the settings that were used.
        """
        share = self.job["share"]  # of the test rows, in a probe
        test = self._test[: max(round(share * len(self._test)), 1)]
        answer = {"test": _plain(predict(test)), "parts": self._parts, "notes": self.notes | notes}
        answer["views"] = self.job["views"]
        self.mark("predict")
        answer["answered"] = time.time()
        answer["waited"] = _waited()
        answer["versions"] = {name: version(name) for name in packages}
        answer["dev"] = None if share < 1 else _plain(predict(self.dev[0]))
        Path(self.job["out"]).write_text(json.dumps(answer))


def _plain(predictions: Any) -> list[Any]:
    """Strings in lists."""
    return [str(p) if isinstance(p, str) else [str(tag) for tag in p] for p in predictions]


def _waited() -> float | None:
    """Seconds in which the main thread could have run but another program had its core."""
    try:
        return int(Path("/proc/self/schedstat").read_text().split()[1]) / 1e9
    except OSError:
        return None
