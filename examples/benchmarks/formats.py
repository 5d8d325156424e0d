"""Do files of every format come back, survive damage, and take time in proportion?

    python formats.py                    # about 6 minutes on one core
    python formats.py --documents 200 --changed 50 --most 2000

Prints what was tried and lost of round trips and of damaged files, what the readers of WebAnno,
PubTator and BioC make of files that contradict themselves, by the validators of ``validators.py``,
and the seconds on a processor of each reader and writer at a size and at ten times that size.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import shutil
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from validators import VALIDATORS, WEBANNO, judged, pubtator_of, sound_files, xml_of_bioc

from skdice._names import WRITTEN
from skdice.datasets import (
    read_annotations,
    read_conll,
    read_dataset,
    read_squad,
    read_table,
    read_texts,
    write_annotations,
    write_conll,
)

NAMES = dict(doccano="a.jsonl", jsonl="b.jsonl", prodigy="c.jsonl", conll="f.conll", brat="h")


def name_of(tool: str) -> str:
    """A name of a file, or of a folder, for a tool's annotations."""
    return NAMES.get(tool, f"{tool}.json")


# ---- round trips

LETTERS = "aB \u00e9,.\n\t-#\\\U0001f600\U0001f44d\U0001f3fd\u4e2d\u0301\u200d\u2028|[]*_<&"
KEYS = (
    *("id", "source", "ents", "spans", "label", "labels", "regions", "entities", "annotations"),
    *("answer", "text", "data", "meta", "result", "tokens", "tags", "skdice", "offsets", "cats"),
    *("relations", "annotation_id", "lead_time", "paragraphs", "accept", "documents", "passages"),
    *("identifiers", "entity_ids", "infons", "a b", "x = y", "predictions", "drafts", "metadata"),
    *("annotation", "sentence", "content", "query", "question", "context", "file", "format"),
)
VALUES: tuple[Any, ...] = (
    *(1, "x", None, True, [], {}, 2.5, "", "reject", "ignore", "utf16", ["t"], {"a": [1]}),
    *([[0, 1, "Q"]], [{"start": 0, "end": 1, "label": "Z"}], {"choices": ["a"]}, {"A": 1.0}),
    [{"start": 0, "end": 1, "labels": ["L"], "text": "q"}],
    [["t", {"entities": [[0, 1, "A"]]}]],
    {"format": "jsonl", "metadata": {}},
)


def document(draw: random.Random, tool: str) -> tuple[str, list[Any], dict[str, Any]]:
    """A random text with entities, and metadata where the format has a place for them."""
    text = "".join(draw.choices(LETTERS, k=draw.randint(0, 30)))
    entities = []
    for _ in range(draw.randint(0, 4) if text else 0):
        start = draw.randrange(len(text))
        end = draw.randint(start + 1, len(text))
        entities.append((start, end, draw.choice(["PER", "LOC", "a-b", "_"])))
    keys = draw.sample(KEYS, draw.randint(0, 5) if tool != "brat" else 0)
    return text, entities, {key: draw.choice(VALUES) for key in keys}


def round_trips(wanted: int) -> list[str]:
    """Random documents of every format, written and read by what the file shows."""
    warnings.simplefilter("ignore")
    draw, tried, lost = random.Random(0), 0, 0
    with tempfile.TemporaryDirectory() as folder:
        for tool in WRITTEN:
            if tool == "conll":  # which holds words alone
                continue
            name, done = name_of(tool), 0
            while done < wanted:
                n = min(draw.randint(1, 20), wanted - done)
                texts, entities, metadata = map(
                    list, zip(*(document(draw, tool) for _ in range(n)), strict=True)
                )
                path = Path(folder) / name
                write_annotations(path, texts, entities, tool, metadata)
                wrong = differences(path, tool, texts, entities, metadata)
                for problem in wrong[:3]:
                    print(f"{tool}: {problem}", file=sys.stderr)
                shutil.rmtree(path) if path.is_dir() else path.unlink()
                done, tried, lost = done + n, tried + n, lost + len(wrong)
    return [f"documents written and read ({wanted} of each format)", str(tried), str(lost)]


def differences(
    path: Path, tool: str, texts: list[Any], entities: list[Any], metadata: list[Any]
) -> list[str]:
    """Documents of a file that are not read as they were written."""
    try:
        found = read_annotations(path)
        data = read_dataset(path)
    except ValueError as error:
        return [repr(error)] * len(texts)
    if (data.task, data.X, data.y) != ("entities", found.texts, found.entities):
        return [f"read as {data.task}, {data!r:.200}"] * len(texts)
    if len(found.texts) != len(texts):
        return [f"{len(found.texts)} texts"] * len(texts)
    wrong = []
    for i, known in enumerate(found.metadata):
        kept = {"id": known["id"]} if tool == "brat" else metadata[i]  # the name of the file
        back = found.texts[i], found.entities[i], known
        if back != (texts[i], entities[i], kept):
            wrong.append(f"{back} and not {(texts[i], entities[i], kept)}")
    return wrong


# ---- damaged files

TEXTS = ["Ann Lee lives in Rome \U0001f44d.\nShe sings.", "It rains."]
ENTITIES = [[(0, 7, "PER"), (17, 21, "LOC")], []]
METADATA = [{"id": "a", "source": {"n": [1, 2]}}, {"id": "b"}]
ODD = (
    *(None, True, -1, 3, 10**30, 0.5, float("nan"), "", "x", "half \ud83d", [], {}, [1], [None]),
    *([["x"]], {"a": 1}, {"start": 0}, [[0, 1]], [0, 1, "X"], {"text": 5}, {"data": []}),
)
BY_HAND = {  # what our writers do not write, by the name of the file
    "bioc.json": {"documents": [{"id": "1", "infons": {"year": "2020"}, "passages": [
        {"offset": 0, "text": "Ann sings.", "annotations": [
            {"infons": {"type": "PER", "identifier": "D1"}, "text": "Ann",
             "locations": [{"offset": 0, "length": 3}]}]}]}]},
    "spacy.json": [
        ["Ann sings.", {"entities": [[0, 3, "PER"]]}],
        {"id": 1, "paragraphs": [{"raw": "Ann sings.", "sentences": [{"tokens": [
            {"orth": "Ann", "ner": "U-PER", "space": " "}, {"orth": "sings."}]}]}]},
        {"text": "Ann", "ents": [{"start": 0, "end": 3, "label": "PER"}],
         "spans": {"sc": [{"start": 0, "end": 3, "label": "X"}]}},
        {"annotations": [["Ann", {"entities": [[0, 3, "PER"]]}], None]}],
    "tasks.json": [
        {"id": 1, "data": {"text": "Ann"}, "drafts": [], "predictions": [{"result": []}],
         "annotations": [{"id": 3, "was_cancelled": False, "completed_by": 1, "result": [
             {"from_name": "label", "to_name": "text", "type": "labels", "id": "r",
              "value": {"start": 0, "end": 3, "text": "Ann", "labels": ["PER"]}},
             {"from_name": "mood", "type": "choices", "value": {"choices": ["good"]}}]}]}],
    "min.json": [{"text": "Ann", "label": [{"start": 0, "end": 3, "labels": ["PER"]}],
                  "annotation_id": 1, "lead_time": 2.0, "mood": {"choices": ["a"]}}],
    "prodigy.jsonl": [
        {"text": "Ann", "spans": [{"start": 0, "end": 3, "label": "PER", "answer": "accept"}],
         "tokens": [{"text": "Ann", "start": 0, "end": 3, "id": 0}], "answer": "accept"},
        {"text": "Bo", "label": "A", "answer": "reject"},
        {"text": "Bo", "accept": ["A"], "options": [{"id": "A"}], "answer": "accept"}],
    "relations.jsonl": [
        {"text": "Ann", "entities": [{"id": 1, "label": "PER", "start_offset": 0, "end_offset": 3}],
         "relations": [{"id": 1, "from_id": 1, "to_id": 1, "type": "self"}]}],
    "tokens.jsonl": [{"tokens": ["Ann", "sings"], "tags": ["B-PER", "O"]},
                     {"tokens": ["Ann"], "spans": [{"type": "PER", "start": 0, "end": 1}]}],
    "cats.jsonl": [{"text": "Ann", "cats": {"A": 1.0, "B": 0.0}}],
    "squad.json": {"data": [{"title": "t", "paragraphs": [{"context": "Ann sings.", "qas": [
        {"id": "1", "question": "Who?", "answers": [{"text": "Ann", "answer_start": 0}],
         "is_impossible": False}]}]}]},
    "asked.json": [{"qas_id": "0.1", "context": "Ann sings", "query": "who", "entity_label": "PER",
                    "start_position": [0], "end_position": [0]}],
}  # fmt: skip


def changed(value: object, draw: random.Random) -> object:
    """A value of JSON with another one at one place, or without it."""
    if isinstance(value, (list, dict)) and value and draw.random() < 0.85:
        at = draw.choice(list(value) if isinstance(value, dict) else range(len(value)))
        copy = value.copy()
        if draw.random() < 0.1:
            del copy[at]
        else:
            copy[at] = changed(value[at], draw)
        return copy
    return draw.choice(ODD)


def changed_text(text: str, draw: random.Random) -> str:
    """A text with some characters, cells or lines lost, doubled or replaced."""
    for _ in range(draw.randint(1, 3)):
        lines = text.split("\n")
        at = draw.randrange(len(lines))
        cells = lines[at].split("\t")
        how = draw.choice(["cut", "line", "double", "cell", "cells", "character"])
        if how == "cut":
            text = text[: draw.randint(0, len(text))]
            continue
        if how == "line":
            del lines[at]
        elif how == "double":
            lines.insert(at, lines[at])
        elif how == "cell":
            cells[draw.randrange(len(cells))] = draw.choice(
                ["", "x", "-1", "9" * 40, "1-2", "[", "*"]
            )
            lines[at] = "\t".join(cells)
        elif how == "cells":
            lines[at] = "\t".join(cells[: draw.randint(0, len(cells))])
        else:
            i = draw.randint(0, len(lines[at]))
            odd = draw.choice(["\x00", "\t", "|", '"', "<", "&", "\\", "]", "\u2028"])
            lines[at] = lines[at][:i] + odd + lines[at][i + 1 :]
        text = "\n".join(lines)
    return text


def contents(wanted: int) -> list[str]:
    """Files of every format with one value or line changed: read, or refused by their name."""
    warnings.simplefilter("ignore")
    draw, tried, lost = random.Random(0), 0, 0
    with tempfile.TemporaryDirectory() as folder:
        whole, path = Path(folder) / "whole", Path(folder) / "changed"
        whole.mkdir()
        for tool in WRITTEN:
            how = TEXTS, ENTITIES, tool, METADATA
            write_annotations(whole / name_of(tool), *how)
        for tool, files in sound_files().items():
            (whole / VALIDATORS[tool][0]).write_text(files[0])
        for name, values in BY_HAND.items():
            lines = map(json.dumps, values)
            text = "\n".join(lines) if name.endswith("l") else json.dumps(values)
            (whole / name).write_text(text)
        for file in sorted(each for each in whole.rglob("*") if each.is_file()):
            in_folder = file.parent != whole
            for _ in range(wanted):
                shutil.rmtree(path, ignore_errors=True)
                if in_folder:
                    shutil.copytree(file.parent, path)
                else:
                    path.mkdir()
                text = file.read_text()
                if file.suffix in (".json", ".jsonl") and draw.random() < 0.9:
                    parts = text.split("\n") if file.suffix == ".jsonl" else [text]
                    at = draw.randrange(len([part for part in parts if part]))
                    parts[at] = json.dumps(changed(json.loads(parts[at]), draw))
                    text = "\n".join(parts)
                else:
                    text = changed_text(text, draw)
                (path / file.name).write_text(text)
                source = path if in_folder else path / file.name
                for read in (read_annotations, read_dataset):
                    tried += 1
                    try:
                        read(source)
                    except (ValueError, TypeError, OSError) as error:
                        if str(path) in str(error):
                            continue
                        lost += 1
                        print(f"{file.name}: {error!r} of {text!r:.300}", file=sys.stderr)
                    except Exception as error:
                        lost += 1
                        print(f"{file.name}: {error!r} of {text!r:.300}", file=sys.stderr)
    return ["files with one value or line changed", str(tried), str(lost)]


# ---- time

WORDS = "Ann naps. "


def lines_of(*values: Any) -> str:
    return "".join(json.dumps(value) + "\n" for value in values)


def spans_in_words(n: int) -> list[tuple[int, int, str]]:
    return [(i, i + 3, "PER") for i in range(0, n * len(WORDS), len(WORDS))]


def squad(n_texts: int, n_questions: int) -> str:
    """A file of questions."""
    paragraphs = [{"context": WORDS, "qas": [
        {"id": f"{i}-{j}", "question": "who?", "answers": [{"text": "Ann", "answer_start": 0}]}
        for j in range(n_questions)]} for i in range(n_texts)]  # fmt: skip
    return json.dumps({"data": [{"title": "t", "paragraphs": paragraphs}]})


def asked(n_texts: int, n_spans: int) -> str:
    """A file of BERT-MRC."""
    at = [2 * i for i in range(n_spans)]
    row = {"context": "Ann naps " * n_spans, "query": "who", "entity_label": "PER"}
    row |= {"start_position": at, "end_position": at}
    return json.dumps([{"qas_id": f"{i}.1", **row} for i in range(n_texts)])


def task_of_studio(i: int) -> dict[str, Any]:
    result = {"from_name": "mood", "type": "choices", "value": {"choices": ["a"]}}
    return {"id": i, "data": {"text": f"text {i}"}, "annotations": [{"result": [result]}]}


def webanno_of(n_texts: int, n_spans: int) -> str:
    """A file of WebAnno, with a sentence for each text."""
    lines, at, size = [WEBANNO], 0, len(WORDS)
    for i in range(1, n_texts + 1):
        lines.append(f"#Text={WORDS * n_spans}\n")
        for j in range(n_spans):
            for k, (word, cells) in enumerate((("Ann", "*\tPER"), ("naps", "_\t_"), (".", "_\t_"))):
                start = at + WORDS.index(word)
                place = f"{i}-{3 * j + k + 1}\t{start}-{start + len(word)}"
                lines.append(f"{place}\t{word}\t{cells}\t\n")
            at += size
        at += 1
        lines.append("\n")
    return "".join(lines)


CONLLU = "1\tIt\tit\tPRON\t_\t_\t0\troot\t_\t_\n"
# What our annotations do not hold: the reader, and the file of n texts of m tokens or labels.
FILES: dict[str, tuple[Callable[[Path], Any], str, Callable[[int, int], str]]] = {
    "CoNLL": (read_conll, "a.conll", lambda n, m: ("Ann\tB-PER\n" * m + "\n") * n),
    "CoNLL by auto": (read_dataset, "a.conll",
                      lambda n, m: "it O\n\n" + ("Ann B-PER\n" * m + "\n") * n),
    "CoNLL-U": (read_dataset, "a.conllu", lambda n, m: (CONLLU * m + "\n") * n),
    "table of tokens": (read_dataset, "a.csv", lambda n, m: "Sentence #,Word,Tag\n" + "".join(
        f"{i},Ann,B-PER\n" * m for i in range(n))),
    "lists in cells": (read_dataset, "a.csv", lambda n, m: "Sentence,Tag\n" + (
        f"{'Ann ' * m},\"{['B-PER'] * m}\"\n") * n),
    "JSON of tokens": (read_dataset, "a.jsonl", lambda n, m: lines_of(
        {"tokens": ["Ann"] * m, "tags": ["B-PER"] * m}) * n),
    "table": (read_table, "a.csv", lambda n, m: "text,label\n" + f"{WORDS * m},x\na b,y\n" * n),
    "table by auto": (read_dataset, "a.tsv",
                      lambda n, m: "text\tlabel\n" + f"{WORDS}\tx\n" * n * m),
    "labels in a cell": (read_table, "a.csv", lambda n, m: "text,label\na b,c0\n" + "".join(
        f"{WORDS},\"{', '.join(f'c{j}' for j in range(m))}\"\n" for _ in range(n))),
    "columns of labels": (lambda p: read_table(p, label_columns=["b", "c"]), "a.csv",
                          lambda n, m: "text,b,c\n" + f"{WORDS},0,1\n" * n * m),
    "texts": (read_texts, "a.txt", lambda n, m: f"{WORDS}\n" * n * m),
    "Prodigy's answers": (read_table, "a.jsonl", lambda n, m: lines_of(*(
        {"text": f"t{i}", "label": f"c{j}", "answer": "accept"}
        for i in range(n) for j in range(m)))),
    "choices": (read_table, "a.json", lambda n, m: json.dumps(
        [task_of_studio(i) for i in range(n * m)])),
    "cats": (read_table, "a.jsonl", lambda n, m: lines_of(*(
        {"text": WORDS, "cats": {f"c{j}": 1.0 for j in range(m)}} for _ in range(n)))),
    "SQuAD": (read_squad, "a.json", squad),
    "BERT-MRC": (read_dataset, "a.json", asked),
    "spaCy's span groups": (read_annotations, "a.jsonl", lambda n, m: lines_of(
        {"text": WORDS * m, "ents": [], "spans": {"sc": [
            dict(start=a, end=b, label=c) for a, b, c in spans_in_words(m)]}}) * n),
    "WebAnno": (read_annotations, "a.tsv", webanno_of),
    "PubTator": (read_annotations, "a.pubtator", lambda n, m: pubtator_of(
        [WORDS * m] * n, [spans_in_words(m)] * n)),
    "BioC": (read_annotations, "a.xml", lambda n, m: xml_of_bioc(
        [WORDS * m] * n, [spans_in_words(m)] * n)),
}  # fmt: skip


def seconds(run: Callable[..., Any], *args: Any) -> float:
    """The best of three, without the passes of Python's collector, which small files never see."""
    taken = []
    for _ in range(3):
        gc.collect()
        gc.disable()
        begun = time.process_time()
        run(*args)
        taken.append(time.process_time() - begun)
        gc.enable()
    return min(taken)


def timed(folder: Path, n: int, m: int) -> dict[str, float]:
    """The seconds of each reader and writer, of n texts with m spans, tokens or labels."""
    found = {}
    texts, entities = [WORDS * m] * n, [spans_in_words(m)] * n
    same = [{"id": "one"} for _ in range(n)]  # the hardest for names of files
    for tool in WRITTEN:
        path = folder / name_of(tool)
        what = f"{tool}, {path.suffix or 'folder'}"
        found[f"{what}, written"] = seconds(write_annotations, path, texts, entities, tool, same)
        found[f"{what}, read"] = seconds(read_annotations, path)
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    rows = [["Ann"] * m] * n, [["B-PER"] * m] * n
    found["CoNLL, written"] = seconds(write_conll, folder / "a.conll", *rows)
    for what, (read, name, content) in FILES.items():
        (folder / name).write_text(content(n, m))
        found[f"{what}, read"] = seconds(read, folder / name)
    return found


def times(most: int) -> int:
    """Print a table of seconds at `most` and at a tenth; the number of those out of proportion."""
    few, out = most // 10, 0
    print(f"| what | {few:,} texts | {most:,} texts | times |", end="")
    print(f" {few:,} spans | {most:,} spans | times |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        sizes = ((few, 1), (most, 1), (1, few), (1, most))
        columns = [timed(Path(folder), *size) for size in sizes]
    for what in columns[0]:
        cells = []
        for small, large in (columns[:2], columns[2:]):
            ratio = large[what] / small[what]
            out += ratio > 15 and large[what] > 0.5
            cells += [f"{small[what]:.3f}", f"{large[what]:.3f}", f"{ratio:.1f}"]
        print(f"| {what} | {' | '.join(cells)} |", flush=True)
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--documents", type=int, default=2000, help="of each format")
    parser.add_argument("--changed", type=int, default=1000, help="changed files of each format")
    parser.add_argument(
        "--most", type=int, default=10_000, help="texts, or spans of a text; 0: no times"
    )
    parser.add_argument("--judged", type=int, default=2334, help="damaged files of a validator")
    args = parser.parse_args()
    print("| what | tried | survived | lost |\n|---|---:|---:|---:|", flush=True)
    failed = 0
    for what, tried, lost in (round_trips(args.documents), contents(args.changed)):
        failed += int(lost)
        print(f"| {what} | {tried} | {int(tried) - int(lost)} | {lost} |", flush=True)
    print("\n| damaged files | held | refused | read as by a validator | wrong |", flush=True)
    print("|---|---:|---:|---:|---:|")
    for tool, *counts in judged(args.judged, changed_text):
        failed += counts[-1]
        print(f"| {tool} | {' | '.join(map(str, counts))} |", flush=True)
    if args.most:
        print(flush=True)
        failed += times(args.most)
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
