"""Does `suspect_labels` find errors that were planted? Against simpler and cleverer orders.

    python suspects.py --data FOLDER               # runs what is missing, and prints the table

Of a data set 5 % or 10 % of the labels or spans are altered: at random, or by confusion, where the
model of the clean data confuses them most. Each row is then predicted by heads on frozen features
that saw other rows. The table shows the share of planted errors among the first rows of an order,
as many as were planted. Spans are dropped, added, moved by a word, or given another type.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import tasks
from sklearn.base import BaseEstimator
from sklearn.model_selection import KFold

from skdice import DiceClassifier, DiceTokenClassifier, TransformerFeatures
from skdice.estimators.scores import Scored
from skdice.inputs.labels import read_labels
from skdice.inputs.rows import object_array
from skdice.inspection.suspects import _Sentences, _sorted, _wrong_labels
from skdice.metrics.span import span_f1_score
from skdice.model_selection import out_of_fold
from skdice.tags.decoding import decode
from skdice.tags.posterior import SpanPosterior
from skdice.tags.schemes import get_spans, to_tags
from skdice.tasks.tagging import Tagging

RESULTS = Path(__file__).parent / "results" / "suspects.json"
ORDERS = {
    "function": "`suspect_labels`",
    "lowest": "lowest probability of the given label",
    "margin": "largest margin of another label",
    "thresholds": "probabilities divided by the class's mean",
    "disagree": "model contradicts, its surest first",
}
DATA = ("sms", "clinc", "wnut17", "bc5cdr")
SHARES, WAYS = (0.05, 0.1), ("random", "confusion")


def head() -> DiceClassifier:
    """What is fitted in each fold."""
    return DiceClassifier(loss="ce", max_epochs=20, batch_size=1024, lr=0.03, random_state=0)


# ---- labels


def planted_labels(
    true: np.ndarray, clean: np.ndarray, way: str, share: float, random: Any
) -> np.ndarray:
    """Labels of which a share is wrong; `clean` are probabilities for the true labels."""
    n, n_classes = clean.shape
    given, size = true.copy(), round(share * n)
    if way == "random":
        rows = random.choice(n, size, replace=False)
        given[rows] = (true[rows] + random.integers(1, n_classes, size)) % n_classes
        return given
    others = clean + 1e-9
    others[np.arange(n), true] = 0
    doubt = others.sum(axis=1)
    rows = random.choice(n, size, replace=False, p=doubt / doubt.sum())
    given[rows] = [random.choice(n_classes, p=others[i] / doubt[i]) for i in rows]
    return given


def orders_of_labels(table: np.ndarray, given: np.ndarray) -> dict[str, np.ndarray]:
    """Rows, the most suspect first, by each order."""
    rows = np.arange(len(given))
    p_given, answers = table[rows, given], table.argmax(axis=1)
    means = np.bincount(given, p_given) / np.maximum(np.bincount(given), 1)
    scaled = table / means
    scaled /= scaled.sum(axis=1, keepdims=True)

    def margin(values: np.ndarray) -> np.ndarray:
        others = values.copy()
        others[rows, given] = -1
        return others.max(axis=1) - values[rows, given]

    found = {
        "lowest": -p_given,
        "margin": margin(table),
        "thresholds": margin(scaled),
        "disagree": np.where(answers != given, table.max(axis=1), -1),
    }
    return {name: np.argsort(-values, kind="stable") for name, values in found.items()}


def run_labels(X: np.ndarray, y: list[str], way: str, share: float) -> dict[str, float]:
    """The share of planted errors among the first rows of each order."""
    _, true = np.unique(y, return_inverse=True)
    clean = out_of_fold(head(), X, true, 3).probabilities
    given = planted_labels(true, clean, way, share, np.random.default_rng(0))
    held = out_of_fold(head(), X, given, 3)
    orders: dict[str, Any] = orders_of_labels(held.probabilities, given)
    ours = _wrong_labels(held.predictions, held.probabilities, read_labels(given))
    orders["function"] = [record["row"] for record in _sorted(ours)]
    wrong = set(np.flatnonzero(given != true).tolist())
    precise = {
        k: len(wrong & set(map(int, o[: len(wrong)]))) / len(wrong) for k, o in orders.items()
    }
    return {"planted": len(wrong), "clean": float((clean.argmax(axis=1) == true).mean()), **precise}


# ---- spans


class FrozenTagger(Scored, BaseEstimator):
    """A linear tagger on vectors of words that were computed before."""

    task = Tagging()

    def __init__(self, vectors: Any) -> None:
        self.vectors = vectors  # by the words of a sentence

    def __sklearn_clone__(self) -> FrozenTagger:
        return FrozenTagger(self.vectors)

    def fit(self, X: Any, y: Any) -> FrozenTagger:
        """Fit the head."""
        self.head_ = head().fit(self._stack(X), np.array([tag for row in y for tag in row]))
        self.classes_ = self.outputs_ = self.head_.classes_
        self.scheme_ = "iob2"
        return self

    def _stack(self, X: Any) -> np.ndarray:
        return np.concatenate([self.vectors[tuple(row)] for row in X])

    def predict_proba(self, X: Any) -> np.ndarray:
        """A table for each sentence."""
        table, ends = self.head_.predict_proba(self._stack(X)), np.cumsum([len(row) for row in X])
        return object_array(np.split(table, ends[:-1]))

    def predict(self, X: Any) -> np.ndarray:
        """Tags."""
        logs = [np.log(table + 1e-30) for table in self.predict_proba(X)]
        return object_array(decode(logs, self.classes_.tolist(), "iob2"))


Region = tuple[int, int, int]  # a sentence and the words that an error touches


def planted_spans(
    X: Any, y: Any, held: Any, way: str, share: float, random: Any
) -> tuple[Any, list[Region]]:
    """Tags with errors, and where they are; `held` are predictions for the true tags."""
    classes = sorted({tag for row in y for tag in row})
    posterior = SpanPosterior(classes, "iob2")
    tables = [np.log(table + 1e-30) for table in held.probabilities]
    true = [get_spans(row, "iob2") for row in y]
    types = sorted({span[0] for row in true for span in row})
    rows = [list(row) for row in true]
    everything = [(i, span) for i, row in enumerate(true) for span in row]
    doubt = np.array([1.0 - posterior(tables[i], [span])[0] for i, span in everything])
    weights = np.ones(len(everything)) if way == "random" else doubt + 1e-3
    order = random.choice(len(everything), len(everything), False, weights / weights.sum())
    queue, planted = [everything[k] for k in order], []
    spurious = []
    if way != "random":
        for i, row in enumerate(held.predictions):
            spurious += [(i, s) for s in get_spans(row, "iob2") if not touches(s, true[i])]
        spurious = [spurious[k] for k in random.permutation(len(spurious))]

    def pick(i: int, options: list[Any]) -> Any:
        p = np.ones(len(options))
        if way != "random":
            p = posterior(tables[i], options) + 1e-9
        return options[random.choice(len(options), p=p / p.sum())]

    while len(planted) < round(share * len(everything)):
        kind = random.choice(["drop", "add", "move", "type"])
        if kind == "add":
            if spurious:
                i, span = spurious.pop()
            else:
                i = int(random.integers(len(X)))
                start = int(random.integers(max(len(X[i]), 1)))
                span = str(random.choice(types)), start, min(start + 1, len(X[i]))
            free = not touches(span, rows[i]) and not touches(span, true[i])
            if free and span[1] < span[2]:
                rows[i].append(span)
                planted.append((i, *span[1:]))
            continue
        i, span = queue.pop()
        options = [] if kind == "drop" else [(t, *span[1:]) for t in types if t != span[0]]
        if kind == "move":
            _, a, b = span
            moved = [(span[0], a + u, b + v) for u, v in ((-1, 0), (1, 0), (0, -1), (0, 1))]
            rest = [s for s in rows[i] if s != span]
            options = [s for s in moved if 0 <= s[1] < s[2] <= len(X[i]) and not touches(s, rest)]
            if not options:
                continue
        rows[i].remove(span)
        new = pick(i, options) if options else span
        if options:
            rows[i].append(new)
        planted.append((i, min(span[1], new[1]), max(span[2], new[2])))
    tags = [to_tags(sorted(r, key=lambda s: s[1]), len(x)) for r, x in zip(rows, X, strict=True)]
    return tags, planted


def touches(span: Any, others: Any) -> bool:
    """Whether spans share a word."""
    return any(span[1] < other[2] and other[1] < span[2] for other in others)


def run_spans(X: Any, y: Any, vectors: Any, way: str, share: float) -> dict[str, float]:
    """As `run_labels`. A planted error counts once, by the first row that touches it."""
    model, folds = FrozenTagger(vectors), KFold(3)
    clean = out_of_fold(model, X, y, folds)
    tags, planted = planted_spans(X, y, clean, way, share, np.random.default_rng(0))
    held = out_of_fold(model, X, tags, folds)
    rows = _Sentences(X, tags, None)
    found = _sorted(rows.suspects(held.predictions, held.probabilities))
    posterior, means = SpanPosterior(rows.classes, "iob2"), {}
    for i, row in enumerate(tags):
        spans, log_p = get_spans(row, "iob2"), np.log(held.probabilities[i] + 1e-30)
        for span, p in zip(spans, posterior(log_p, spans), strict=True):
            means.setdefault(span[0], []).append(p)

    def scaled(record: Any) -> float:
        sides = [(record["given"], 1 - record["gain"]), (record["model"], record["probability"])]
        ours, theirs = (p / (np.mean(means[kind]) if kind else 1) for kind, p in sides)
        return (theirs - ours) / (theirs + ours + 1e-12)

    keys: dict[str, Any] = {
        "function": lambda r: 0,  # they are sorted
        "margin": lambda r: r["probability"] + r["gain"],
        "thresholds": scaled,
        "disagree": lambda r: r["probability"],
    }
    regions = {
        name: [(r["row"], *ends(r)) for r in sorted(found, key=key, reverse=True)]
        for name, key in keys.items()
    }
    # The simple order: words by the probability of their tag.
    place = {tag: k for k, tag in enumerate(rows.classes)}
    words = [
        (table[j][place[tag]], i, j)
        for i, (table, row) in enumerate(zip(held.probabilities, tags, strict=True))
        for j, tag in enumerate(row)
    ]
    regions["lowest"] = [(i, j, j + 1) for _, i, j in sorted(words)]
    n, precise = len(planted), {}
    for name, places in regions.items():
        hit = {
            k
            for i, a, b in places[:n]
            for k, (r, u, v) in enumerate(planted)
            if r == i and a < v and u < b
        }
        precise[name] = len(hit) / n
    return {"planted": n, "clean": span_f1_score(y, list(clean.predictions)), **precise}


def ends(record: Any) -> tuple[int, int]:
    """The words of both spans of a suspect."""
    places = [record[name] for name in ("start", "model_start") if record[name] is not None]
    stops = [record[name] for name in ("end", "model_end") if record[name] is not None]
    return min(places), max(stops)


# ---- data and table


def run(name: str, folder: Path, cache: Path, way: str, share: float) -> dict[str, float]:
    """One cell of the table."""
    if name in ("wnut17", "bc5cdr"):
        X, y = tasks.sample(tasks.load(name, folder).train, 1000)
        file = cache / f"{name}.npy"
        if not file.exists():
            np.save(file, DiceTokenClassifier().frozen_vectors(X))
        parts = np.split(np.load(file), np.cumsum([len(row) for row in X])[:-1])
        vectors = {tuple(x): part for x, part in zip(X, parts, strict=True)}
        return run_spans(X, y, vectors, way, share)
    if name == "sms":
        X, y = tasks._sms_rows(folder)
    else:
        X, y = tasks.sample(tasks.load("clinc_intents", folder).train, 4000)
    file = cache / f"{name}.npy"
    if not file.exists():
        np.save(file, TransformerFeatures().fit(X).transform(X))
    return run_labels(np.load(file), y, way, share)


def table(found: dict[str, Any]) -> str:
    """A table in Markdown: a row for each order, a column for each data set and way."""
    cells = [(name, way) for name in DATA for way in WAYS]
    lines = [
        "| first by | " + " | ".join(f"{name}, {way}" for name, way in cells) + " |",
        "|---|" + "---|" * len(cells),
    ]
    for order, title in ORDERS.items():
        row = []
        for name, way in cells:
            runs = [found.get(f"{name} {way} {share}") for share in SHARES]
            row.append(" / ".join("" if r is None else f"{100 * r[order]:.0f}" for r in runs))
        lines.append(f"| {title} | " + " | ".join(row) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--cache", type=Path, default=Path("/tmp"), help="Folder for vectors.")
    parser.add_argument("--out", type=Path, default=RESULTS)
    args = parser.parse_args()
    args.cache.mkdir(parents=True, exist_ok=True)
    found: dict[str, Any] = json.loads(args.out.read_text()) if args.out.exists() else {}
    for name in DATA:
        for way in WAYS:
            for share in SHARES:
                key = f"{name} {way} {share}"
                if key not in found:
                    scores = run(name, args.data, args.cache, way, share)
                    found[key] = {k: round(value, 4) for k, value in scores.items()}
                    args.out.write_text(json.dumps(found, indent=1) + "\n")
                    print(key, found[key], flush=True)
    print(table(found))


if __name__ == "__main__":
    main()
