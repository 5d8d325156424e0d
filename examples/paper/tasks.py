"""The data sets of the experiments, split into training, development and test rows.

All are read from one folder that the caller names. `FILES` lists the files of each. A data set
without its own split is split by the seed, so its spread over seeds includes the spread over
splits.
"""

from __future__ import annotations

import csv
import json
from collections import Counter
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from skdice.datasets import read_conll, read_dataset, read_squad

FILES = {
    "wnut17": ["wnut17train.conll", "emerging.dev.conll", "emerging.test.annotated"],
    "bc5cdr": ["train.tsv", "devel.tsv", "test.tsv"],
    "weibo": [f"weiboNER_2nd_conll.{part}" for part in ("train", "dev", "test")],
    "ud_en_ewt": [f"en_ewt-ud-{part}.conllu" for part in ("train", "dev", "test")],
    "ud_zh_v1_hankcs": [f"{part}.conll" for part in ("train", "dev", "test")],
    "mrpc": ["msr_paraphrase_train.txt", "msr_paraphrase_test.txt"],
    "sms_spam": ["SMSSpamCollection"],
    "clinc_oos": ["data_imbalanced.json"],
    "squad2_half_dev": ["dev-v2.0.json"],
    "xquad": ["xquad.en.json", "xquad.zh.json"],
    "cmrc2018": ["cmrc2018_dev.json", "cmrc2018_trial.json"],
    "gmb": ["ner_dataset.csv"],
    "sst2": ["train.tsv", "dev.tsv"],
    "sst5": [f"stsa.fine.{part}" for part in ("train", "dev", "test")],
    "qqp": ["pairs.tsv"],
    "goemotions": ["labels.txt", *(f"{part}.tsv" for part in ("train", "dev", "test"))],
    "ncbi": ["train.tsv", "devel.tsv", "test.tsv"],
    "trec": ["train.txt", "test.txt"],
}
# In SQuAD's form and without rows to train on: Table 1 counts them.
COUNTED = ("xquad", "cmrc2018")


# Positives that each part of a cell holds at least.
LEAST = {"train": 8, "dev": 10, "test": 100}


@dataclass(frozen=True)
class Task:
    """Rows of one data set.

    Attributes
    ----------
    name : str
    kind : {"tags", "labels", "several", "answers"}
        "several" are texts with any number of labels.
    train, dev, test : tuple of (X, y)
    pos_label : label or None
        Whose F1 counts; None is micro span F1 for tags and macro F1 for labels.
    """

    name: str
    kind: str
    train: tuple[list[Any], list[Any]]
    dev: tuple[list[Any], list[Any]]
    test: tuple[list[Any], list[Any]]
    pos_label: Any = None


def load(name: str, folder: Path, seed: int = 0, limit: int | None = None) -> Task:
    """Read a data set.

    Parameters
    ----------
    name : one of `TASKS`
    folder : Path
        Holds one folder for each data set, named as in `FILES`.
    seed : int, default=0
        Of the split, where the data have none.
    limit : int or None, default=None
        Keep this many rows of each part, drawn at random, some of each class; for a trial of the
        machinery.
    """
    if name not in TASKS:
        raise SystemExit(f"data set {name!r} is unknown: use one of {', '.join(TASKS)}")
    task = TASKS[name](folder, seed)
    if limit is not None:
        draw = few if task.kind == "labels" else sample
        parts = {part: draw(getattr(task, part), limit) for part in ("train", "dev", "test")}
        if task.kind == "several":  # a few rows do not hold every label
            known = {label for row in parts["train"][1] for label in row}
            parts = {
                part: (X, [[label for label in row if label in known] for row in y])
                for part, (X, y) in parts.items()
            }
        task = replace(task, **parts)
    return task


def paths(name: str, folder: Path) -> list[Path]:
    """The files of a data set; says which one is missing."""
    found = [folder / name / file for file in FILES[name]]
    for path in found:
        if not path.exists():
            raise SystemExit(f"{path} is missing: --data must name the folder that holds {name}/")
    return found


def sample(part: tuple[list[Any], list[Any]], limit: int | None) -> tuple[list[Any], list[Any]]:
    """That many rows, the same in every call; all of them if `limit` is None."""
    X, y = part
    chosen = np.random.default_rng(0).permutation(len(X))[:limit]
    return [X[i] for i in chosen], [y[i] for i in chosen]


def few(part: tuple[list[Any], list[Any]], limit: int) -> tuple[list[Any], list[Any]]:
    """That many rows, an eighth of them from each class at least; of many classes the first."""
    X, y = sample(part, None)
    seen: Counter[Any] = Counter()
    places = []
    for label in y:
        seen[label] += 1
        others = seen[label] > max(limit // 8, 1)
        places.append((others, "" if others else label))
    chosen = sorted(range(len(y)), key=places.__getitem__)[:limit]
    return [X[i] for i in chosen], [y[i] for i in chosen]


def cell(task: Task, job: dict[str, Any]) -> Task:
    """A few rows of each part, as a job asks for.

    Training and development rows are drawn with the job's seed, test rows always alike. A part
    holds at least so many positives as `LEAST` says, if its data set has them.
    """
    parts = {}
    for part, least in LEAST.items():
        X, y = getattr(task, part)
        order = np.random.default_rng(0 if part == "test" else job["seed"]).permutation(len(X))
        n_rows = job[f"{part}_rows"]
        if task.pos_label is not None:
            rare = np.array([y[i] == task.pos_label for i in order])
            n_rare = max(int(rare[:n_rows].sum()), min(least, int(rare.sum()), n_rows // 2))
            order = np.concatenate([order[rare][:n_rare], order[~rare][: n_rows - n_rare]])
        chosen = sorted(order[:n_rows].tolist())
        parts[part] = [X[i] for i in chosen], [y[i] for i in chosen]
    return replace(task, **parts)


def _some(read: Any, n_rows: int) -> Any:
    """A data set of which so many rows are to train on."""

    def some(folder: Path, seed: int) -> Task:
        task: Task = read(folder, seed)
        return replace(task, train=sample(task.train, n_rows))

    return some


def _split(X: list[Any], y: list[Any], shares: tuple[float, float], seed: int) -> list[Any]:
    """Dev and test of the given shares and the rest, each class apart."""
    generator = np.random.default_rng(seed)
    parts: list[list[int]] = [[], [], []]
    for label in sorted(set(y)):
        rows = generator.permutation([i for i, other in enumerate(y) if other == label])
        n_dev, n_test = (round(share * len(rows)) for share in shares)
        for part, chosen in zip(
            parts, np.split(rows, [len(rows) - n_dev - n_test, len(rows) - n_test]), strict=True
        ):
            part.extend(chosen.tolist())
    return [([X[i] for i in sorted(part)], [y[i] for i in sorted(part)]) for part in parts]


# ---- tags


def _tags(name: str, reader: Any = read_conll, **options: Any) -> Any:
    def read(folder: Path, seed: int) -> Task:
        parts = [reader(path, **options) for path in paths(name, folder)]
        return Task(name, "tags", *parts)

    return read


def _treebank(path: Path) -> Any:
    data = read_dataset(path)
    return data.X, data.y


def _bc5cdr(folder: Path, seed: int) -> Task:
    train, dev, test = (read_conll(path) for path in paths("bc5cdr", folder))
    # The whole of them takes longer than the training.
    return Task("bc5cdr", "tags", train, sample(dev, 900), sample(test, 2400))


def _weibo(folder: Path, seed: int) -> Task:
    parts = []
    for path in paths("weibo", folder):
        X, y = read_conll(path)
        # A character is followed by its place in the word, which no other set tells.
        parts.append(([[token[0] for token in row] for row in X], y))
    return Task("weibo", "tags", *parts)


def _gmb(most: int | None) -> Any:
    """English news with eight types; it has no split, so one of 40,000, 4,000 and 3,959."""

    def read(folder: Path, seed: int) -> Task:
        X: list[list[str]] = []
        y: list[list[str]] = []
        with paths("gmb", folder)[0].open(encoding="cp1252", newline="") as file:
            rows = csv.reader(file)
            next(rows)
            for sentence, word, _, tag in rows:
                if sentence:
                    X.append([])
                    y.append([])
                X[-1].append(word)
                y[-1].append(tag)
        order = np.random.default_rng(0).permutation(len(X))
        parts = [order[:40_000][:most], order[40_000:44_000], order[44_000:]]
        found = [([X[i] for i in part], [y[i] for i in part]) for part in parts]
        return Task("gmb" if most is None else "gmb_10k", "tags", *found)

    return read


# ---- labels


def _sst2(folder: Path, seed: int) -> Task:
    """Phrases to train on, 2,000 of them held out, and the sentences of GLUE's development set."""
    parts = []
    for path in paths("sst2", folder):
        rows = [line.rsplit("\t", 1) for line in path.read_text("utf-8").splitlines()[1:]]
        parts.append(([text.strip() for text, _ in rows], [label for _, label in rows]))
    (X, y), test = parts
    order = np.random.default_rng(0).permutation(len(X))
    held, rest = (([X[i] for i in part], [y[i] for i in part]) for part in np.split(order, [2000]))
    return Task("sst2", "labels", rest, held, test)


def _sst5(folder: Path, seed: int) -> Task:
    parts = []
    for path in paths("sst5", folder):
        rows = [line.split(" ", 1) for line in path.read_text("latin-1").splitlines()]
        parts.append(([text for _, text in rows], [label for label, _ in rows]))
    return Task("sst5", "labels", *parts)


def _qqp(folder: Path, seed: int) -> Task:
    """Pairs of all sources together, as each source has a style and a share of its own."""
    with paths("qqp", folder)[0].open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file, delimiter="\t"))[1:]
    X, y = [(row[2], row[3]) for row in rows], [row[1] for row in rows]
    return Task("qqp", "labels", *_split(X, y, (0.1, 0.1), 0), "1")


def _qqp_rare(folder: Path, seed: int) -> Task:
    """The same with one paraphrase in twenty: the others are dropped."""
    task, parts = _qqp(folder, seed), {}
    for part in ("train", "dev", "test"):
        X, y = getattr(task, part)
        rare = [i for i, label in enumerate(y) if label == "1"]
        n_kept = round((len(y) - len(rare)) * 0.05 / 0.95)
        dropped = set(np.random.default_rng(0).permutation(rare)[n_kept:].tolist())
        kept = [i for i in range(len(y)) if i not in dropped]
        parts[part] = [X[i] for i in kept], [y[i] for i in kept]
    return replace(task, name="qqp_rare", **parts)


def _trec(folder: Path, seed: int) -> Task:
    """Questions of six types; a fifth of those to train on are held out."""
    parts = []
    for path in paths("trec", folder):
        rows = [line.split(" ", 1) for line in path.read_text("latin-1").splitlines()]
        parts.append(([text for _, text in rows], [label for label, _ in rows]))
    train, dev, _ = _split(*parts[0], (0.2, 0.0), 0)
    return Task("trec", "labels", train, dev, parts[1])


def _trec_place(folder: Path, seed: int) -> Task:
    """Questions for a place among all others: 81 of 500 to test on, of abbreviations only 9."""
    task, parts = _trec(folder, seed), {}
    for part in ("train", "dev", "test"):
        X, y = getattr(task, part)
        parts[part] = X, ["place" if label == "4" else "other" for label in y]
    return replace(task, name="trec_place", pos_label="place", **parts)


def _goemotions(folder: Path, seed: int) -> Task:
    """Comments with one to five of 28 labels, the rarest on 77 of 43,410."""
    labels, *files = paths("goemotions", folder)
    names, parts = labels.read_text().split(), []
    for path in files:
        rows = [line.split("\t") for line in path.read_text("utf-8").splitlines()]
        several = [[names[int(i)] for i in row[1].split(",")] for row in rows]
        parts.append(([row[0] for row in rows], several))
    return Task("goemotions", "several", *parts)


def _mrpc_rows(path: Path) -> tuple[list[Any], list[str]]:
    # Quotes are text in this file: a reader that knows quoting swallows rows.
    rows = [line.split("\t") for line in path.read_text("utf-8-sig").splitlines()[1:]]
    return [(row[3], row[4]) for row in rows], [row[0] for row in rows]


def _mrpc(folder: Path, seed: int) -> Task:
    train, test = (_mrpc_rows(path) for path in paths("mrpc", folder))
    train, dev, _ = _split(*train, (0.1, 0.0), 0)
    return Task("mrpc", "labels", train, dev, test, "1")


def _sms_rows(folder: Path) -> tuple[list[str], list[str]]:
    lines = paths("sms_spam", folder)[0].read_text("utf-8").splitlines()
    rows = [line.split("\t", 1) for line in lines if line]
    return [text for _, text in rows], [label for label, _ in rows]


def _sms(folder: Path, seed: int) -> Task:
    return Task("sms", "labels", *_split(*_sms_rows(folder), (0.2, 0.3), seed), "spam")


def _sms_rare(folder: Path, seed: int) -> Task:
    """One spam in forty: spam is dropped until it is 2.5 % of the messages."""
    X, y = _sms_rows(folder)
    spam = np.array([i for i, label in enumerate(y) if label == "spam"])
    n_kept = round((len(y) - len(spam)) * 0.025 / 0.975)
    dropped = set(np.random.default_rng(seed).permutation(spam)[n_kept:].tolist())
    kept = [i for i in range(len(y)) if i not in dropped]
    parts = _split([X[i] for i in kept], [y[i] for i in kept], (0.2, 0.3), seed)
    return Task("sms_rare", "labels", *parts, "spam")


def _clinc(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(paths("clinc_oos", folder)[0].read_text())
    return found


def _clinc_oos(folder: Path, seed: int) -> Task:
    """Out-of-scope questions among those of 150 intents: 100 of 10,625 in training."""
    data, parts = _clinc(folder), []
    for part in ("train", "val", "test"):
        texts = [text for text, _ in data[part]] + [text for text, _ in data[f"oos_{part}"]]
        labels = ["in"] * len(data[part]) + ["oos"] * len(data[f"oos_{part}"])
        parts.append((texts, labels))
    return Task("clinc_oos", "labels", *parts, "oos")


def _clinc_rare(folder: Path, seed: int) -> Task:
    """One intent of the 150, 100 of 10,525 rows; `shopping_list` is another, and near to it."""
    task = _clinc_intents(folder, seed)
    parts = {}
    for part in ("train", "dev", "test"):
        X, y = getattr(task, part)
        parts[part] = X, ["rare" if label == "shopping_list_update" else "other" for label in y]
    return replace(task, name="clinc_rare", pos_label="rare", **parts)


def _clinc_intents(folder: Path, seed: int) -> Task:
    """150 intents with 25 to 100 examples each; no class is a background."""
    data = _clinc(folder)
    parts = [([x for x, _ in data[p]], [label for _, label in data[p]]) for p in _PARTS]
    return Task("clinc_intents", "labels", *parts)


_PARTS = ("train", "val", "test")


def _sentences_with(kind: str) -> Any:
    """Tweets of WNUT17 that hold an entity of one type, or none."""

    def read(folder: Path, seed: int) -> Task:
        parts = []
        for path in paths("wnut17", folder):
            X, y = read_conll(path)
            labels = ["yes" if f"B-{kind}" in tags else "no" for tags in y]
            parts.append(([" ".join(words) for words in X], labels))
        return Task(f"wnut17_{kind}", "labels", *parts, "yes")

    return read


# ---- answers


def _squad2(folder: Path, seed: int) -> Task:
    """Twelve articles to train on, of which the last tunes the null threshold, and four to test,
    of which half the questions are asked.
    """
    file = paths("squad2_half_dev", folder)[0]
    X, y = read_squad(file)  # in the order of the articles
    articles = json.loads(file.read_text())["data"]
    ends = [*accumulate(sum(len(p["qas"]) for p in each["paragraphs"]) for each in articles)]
    cuts = (slice(ends[10]), slice(ends[10], ends[11]), slice(ends[11], None))
    train, dev, test = ((X[part], y[part]) for part in cuts)
    return Task("squad2", "answers", train, dev, sample(test, 800))


def _squad1(folder: Path, seed: int) -> Task:
    """Those questions of `squad2` that have an answer, as in SQuAD 1.1."""
    task = _squad2(folder, seed)
    parts = {}
    for part in ("train", "dev", "test"):
        X, y = getattr(task, part)
        kept = [i for i, answers in enumerate(y) if answers]
        parts[part] = [X[i] for i in kept], [y[i] for i in kept]
    return replace(task, name="squad1", **parts)


TASKS: dict[str, Any] = {
    "wnut17": _tags("wnut17"),
    "wnut17_person": _sentences_with("person"),
    "wnut17_product": _sentences_with("product"),
    "wnut17_all": _tags("wnut17"),  # the name of runs on all of its rows
    "bc5cdr": _bc5cdr,
    "bc5cdr_all": _tags("bc5cdr"),
    "weibo": _weibo,
    "ud_en": _tags("ud_en_ewt", _treebank),
    "ud_zh": _tags("ud_zh_v1_hankcs", _treebank),
    "mrpc": _mrpc,
    "sms": _sms,
    "sms_rare": _sms_rare,
    "clinc_oos": _clinc_oos,
    "clinc_intents": _clinc_intents,
    "clinc_rare": _clinc_rare,
    "squad1": _squad1,
    "squad2": _squad2,
    "gmb_10k": _gmb(10_000),
    "gmb": _gmb(None),
    "sst2": _sst2,
    "sst5": _sst5,
    "qqp": _qqp,
    "goemotions": _goemotions,
    "ncbi": _tags("ncbi"),
    "trec": _trec,
    "trec_place": _trec_place,
    "qqp_rare": _qqp_rare,
    "bc5cdr_1500": _some(_bc5cdr, 1500),
    "sst2_20k": _some(_sst2, 20_000),
    "goemotions_10k": _some(_goemotions, 10_000),
    "qqp_10k": _some(_qqp, 10_000),
    "qqp_rare_10k": _some(_qqp_rare, 10_000),
}
