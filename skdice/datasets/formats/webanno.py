"""WebAnno TSV 3, of WebAnno and INCEpTION: a file for each text, a line for each token.

Read from "WebAnno TSV 3.3 File format" in INCEpTION's user's guide (appendix C). The file is one
text: sentences come with their texts, and what lies between two of them is taken for line breaks.
A line names a token, or a part of one (``2-2.1``), its offsets in UTF-16 code units as Java counts
them, and a cell for each feature of each layer. Annotations of several tokens have one number, as
in ``PER[1]``. Read are the spans of `layer`, of named entities, or of all layers but those of parts
of speech, lemmas and the like, with a warning if these are several; of a layer with several
features, `feature` or ``value``. Roles, relations and chains are read past. An annotation without a
value has the name of its layer. A text is written as sentences that end at its line breaks; a
folder holds a file for each.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from skdice._checks import shown
from skdice._warn import warn
from skdice.datasets.formats._base import Format
from skdice.datasets.formats._folder import documents_of, write_folder
from skdice.datasets.offsets import units_before
from skdice.datasets.reading import first_line
from skdice.datasets.row import Marks, Row, raw
from skdice.datasets.source import Source
from skdice.datasets.words import parts_between, words_of
from skdice.exceptions import DataWarning
from skdice.inputs.entities import Entity
from skdice.whole_files import write_text

_HEAD = "#FORMAT=WebAnno TSV 3"
_LAYER = "de.tudarmstadt.ukp.dkpro.core.api.ner.type.NamedEntity"
_OTHERS = re.compile(r"\.(POS|Lemma|Stem|MorphologicalFeatures|SurfaceForm|Token|Sentence)$")
_OLD = r" *# ?[\w.]+ *\|.*\n#id=|#id=.*\n#text="  # of version 2
_UNIT = re.compile(r"(\d+)-(\d+)(\.\d+)?")
_ESCAPES = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}
_IN_CELLS = {**_ESCAPES, **{c: f"\\{c}" for c in "[]|_;*"}, "->": "\\->"}


class WebAnno(Format):
    """Tokens with layers of annotations."""

    unit = "utf16"
    rank = 70
    suffixes = (".tsv",)

    def keeps(self, path: Path) -> frozenset[str] | None:
        return frozenset() if path.suffix == ".tsv" else None

    def claims(self, source: Source) -> bool:
        if source.path.is_dir():
            return any(map(_is_ours, source.path.rglob("*.tsv")))
        begins = "" if source.is_json else "\n".join(source.head[:3]).lstrip()
        return begins.startswith(_HEAD) or re.match(_OLD, begins) is not None

    def read(self, source: Source) -> Iterator[Row]:
        if not source.path.is_dir():
            yield _row(source, source.path.name, {})
            return
        folder = source.path
        paths = {p.relative_to(folder).as_posix().removesuffix(".tsv"): p
                 for p in folder.rglob("*.tsv") if _is_ours(p)}  # fmt: skip
        for name, path, metadata in documents_of(folder, paths):
            yield _row(replace(source, path=path), f"{name}.tsv", metadata)

    def write(self, path: Path, rows: list[Row]) -> None:
        if path.suffix != ".tsv":
            write_folder(path, rows, lambda row, name: {".tsv": "".join(_lines(row))})
        elif len(rows) == 1:
            write_text(path, "".join(_lines(rows[0])))
        else:
            problem = f"holds one text, and there are {len(rows)}: give a folder, in which "
            raise ValueError(f"{str(path)!r} {problem}each has a file")


def _is_ours(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(64).removeprefix(b"\xef\xbb\xbf").lstrip().startswith(_HEAD.encode())


class _Column(NamedTuple):
    layer: str
    feature: str
    holds_values: bool  # of annotations of spans, and not roles or their targets


class _Token(NamedTuple):
    place: str
    number: tuple[int, int]  # of its sentence, and its own
    start: int
    end: int
    text: str
    cells: list[str]
    is_part: bool


def _row(source: Source, name: str, metadata: dict[str, Any]) -> Row:
    columns: list[_Column] = []
    sentences: list[tuple[str, list[_Token]]] = []
    if not first_line(source.head).startswith(_HEAD):
        problem = f"{first_line(source.head)[:60]!r} is not '{_HEAD}.3': export as WebAnno TSV 3"
        raise source.fault("line 1", problem)
    for number, line in enumerate(source.iter_lines(), 1):
        if line.startswith("#T_"):
            columns += _columns(line)
        elif line.startswith("#Text=") and sentences and not sentences[-1][1]:  # of several lines
            sentences[-1] = (f"{sentences[-1][0]}\n{_unescaped(line[6:])}", [])
        elif line.startswith("#Text="):
            sentences.append((_unescaped(line[6:]), []))
        elif line.strip() and not line.startswith("#"):
            if not sentences:
                raise source.fault(f"line {number}", "a token without a line '#Text=' before it")
            sentences[-1][1].append(_token(source, number, line, len(columns)))
    if not sentences:
        raise source.fault("the file", "it holds no sentence: is it cut short?")
    text = _joined(source, sentences)
    tokens = [token for _, some in sentences for token in some]
    spans = list(_spans(source, columns, tokens)) if source.labelled else []
    return Row(name, text, Marks(spans, unit="utf16"), metadata)


def _columns(line: str) -> Iterator[_Column]:
    """The columns of a layer: one for each feature, or one for a layer without any."""
    kind, _, rest = line.partition("=")
    layer, *features = rest.strip().removesuffix("|").split("|")
    if kind == "#T_RL":  # a relation has one more, for its source
        features = [*features, "source"] if not features or "BT_" in features[-1] else features
    of_role = False
    for feature in features or [""]:
        # Behind the roles stands the layer of what plays them.
        is_role = feature.startswith("ROLE_")
        yield _Column(layer, feature, kind == "#T_SP" and not (is_role or of_role))
        of_role = is_role


def _token(source: Source, number: int, line: str, n_columns: int) -> _Token:
    place = f"line {number}"
    unit, _, rest = line.partition("\t")
    at, _, rest = rest.partition("\t")
    text, *cells = rest.rstrip("\r").split("\t")
    found, places = _UNIT.fullmatch(unit), re.fullmatch(r"(\d+)-(\d+)", at)
    if found is None or places is None:
        problem = f"{line[:60]!r} is no token: 'SENTENCE-TOKEN<tab>START-END<tab>text'"
        raise source.fault(place, problem)
    if cells and cells[-1] == "" and len(cells) == n_columns + 1:
        cells.pop()
    if "" in cells:
        raise source.fault(place, f"the token {text!r} has an empty cell: one without a value is _")
    if len(cells) != n_columns:
        problem = f"the token {text!r} has {len(cells)} cells for {n_columns} features"
        raise source.fault(place, problem)
    start, end, text = int(places[1]), int(places[2]), _unescaped(text)
    is_part = found[3] is not None
    return _Token(place, (int(found[1]), int(found[2])), start, end, text, cells, is_part)


def _joined(source: Source, sentences: list[tuple[str, list[_Token]]]) -> str:
    """The text of the sentences, where their offsets say that they stand."""
    text, size, number = "", 0, 0
    for sentence, tokens in sentences:
        before = units_before(sentence, "utf16")
        if tokens:
            gap = tokens[0].start - before[_place(sentence, tokens[0], before, size)] - size
            if gap < 0:
                problem = f"the token {tokens[0].text!r} begins before the sentence that holds it"
                raise source.fault(tokens[0].place, problem)
            if gap > 10_000 + len(source.text):
                problem = f"the token {tokens[0].text!r} stands {gap} characters behind the text"
                raise source.fault(tokens[0].place, problem)
            number = _check(source, sentence, tokens, before, size + gap, number)
        elif sentence.strip():
            problem = f"no token holds {sentence.strip()!r:.60} of its sentence"
            raise source.fault("its lines '#Text='", problem)
        else:
            gap = int(bool(text))
        text += "\n" * gap + sentence
        size += gap + before[-1]
    return text


def _check(
    source: Source,
    sentence: str,
    tokens: list[_Token],
    before: Sequence[int],
    size: int,
    number: int,
) -> int:
    """Refuse tokens that are not those of the sentence; return its number."""
    places = {n: i for i, n in enumerate(before)}
    end, last = 0, (tokens[0].number[0], 0)
    if last[0] <= number:
        problem = f"the number of the sentence is {last[0]}, behind {number}"
        raise source.fault(tokens[0].place, problem)
    for token, after in pairwise((*tokens, None)):
        assert token is not None
        expected = last if token.is_part else (last[0], last[1] + 1)
        if token.number != expected:
            found, wanted = ("-".join(map(str, pair)) for pair in (token.number, expected))
            raise source.fault(token.place, f"the token's number is {found}, not {wanted}")
        last = expected
        at = places.get(token.start - size), places.get(token.end - size)
        held = None if None in at else sentence[at[0] : at[1]]
        # Before its parts, a token may stand without its end.
        is_cut = held is not None and after is not None and after.is_part and not token.is_part
        if held != token.text and not (is_cut and str(held).startswith(token.text)):
            problem = f"the token is {token.text!r}, and its sentence has {shown(held)} there"
            raise source.fault(token.place, problem)
        if not token.is_part:
            if sentence[end : at[0]].strip():
                problem = f"no token holds {sentence[end : at[0]]!r} of its sentence"
                raise source.fault(token.place, problem)
            end = at[1] or 0
    if sentence[end:].strip():
        problem = f"no token holds {sentence[end:].strip()!r:.60} of its sentence"
        raise source.fault(tokens[-1].place, problem)
    return last[0]


def _place(sentence: str, token: _Token, before: Sequence[int], size: int) -> int:
    """Return the place of the first token in its sentence."""
    first = len(sentence) - len(sentence.lstrip())
    if token.text.strip():
        return first
    # White space that is a token: nearest to what stands before.
    places = [m.start() for m in re.finditer(f"(?={re.escape(token.text)})", sentence)]
    fitting = [at for at in places if token.start - before[at] >= size]
    return max(fitting, default=first)


def _chosen(source: Source, columns: list[_Column]) -> dict[str, list[int]]:
    """The columns of each layer to read, that of its labels first."""
    of_spans = list(dict.fromkeys(c.layer for c in columns if c.holds_values))
    if not of_spans:
        kinds = "chains, relations or nothing" if columns else "no layer"
        problem = f"holds {kinds}, and spans are read: export a span layer"
        raise ValueError(f"{str(source.path)!r} {problem}")
    if source.layer is not None:
        layers = [layer for layer in of_spans if source.layer in (layer, layer.rpartition(".")[2])]
        if not layers:
            has = f"which has {of_spans}"
            raise ValueError(f"layer={source.layer!r} is not in {str(source.path)!r}, {has}")
    else:
        every = [layer for layer in of_spans if not _OTHERS.search(layer)]
        layers = [layer for layer in every if layer == _LAYER] or every
        if len(layers) > 1:
            problem = f"the spans of the layers {layers} are read together: give layer= for one"
            warn(f"{str(source.path)!r}: {problem}", DataWarning)
    chosen = {}
    for layer in layers:
        at = {c.feature: i for i, c in enumerate(columns) if c.layer == layer and c.holds_values}
        usual = "value" if len(at) > 1 else next(iter(at))
        name = usual if source.feature is None else source.feature
        if name not in at:
            what = f"feature={name!r} is not in" if source.feature else "give feature= for"
            problem = f"{what} the layer {layer!r}, which has {list(at)}"
            raise ValueError(f"{str(source.path)!r}: {problem}")
        chosen[layer] = [at[name], *(i for n, i in at.items() if n != name)]
    return chosen


def _spans(source: Source, columns: list[_Column], tokens: list[_Token]) -> Iterator[Entity]:
    for layer, at in _chosen(source, columns).items():
        found: dict[Any, list[Any]] = {}  # tokens and label of each annotation
        for token in tokens:
            rows = [_values(token.cells[i]) for i in at]
            longest = max(rows, key=len)
            if any(value == "" for row in rows for value, _ in row):
                raise source.fault(token.place, f"the token {token.text!r} has an empty value")
            for row in rows:
                if [n for _, n in row] not in ([], [n for _, n in longest]):
                    cells = " and ".join(repr(token.cells[i]) for i in at)
                    raise source.fault(token.place, f"{cells} name other annotations")
            for k, (_, number) in enumerate(longest):
                value = rows[0][k][0] if rows[0] else None
                key = (number, "") if number else (token.place, k)
                label = layer.rpartition(".")[2] if value is None else value
                known, parts = found.setdefault(key, [label, []])
                if known != label:
                    problem = f"the annotation [{number}] is {label!r} here, and {known!r} before"
                    raise source.fault(token.place, problem)
                parts.append(token)
        if all(key[1] == "" for key in found):  # numbered, as we write them
            found = dict(sorted(found.items(), key=lambda item: int(item[0][0])))
        for label, parts in found.values():
            yield raw(min(t.start for t in parts), max(t.end for t in parts), label)


def _values(cell: str) -> list[tuple[str | None, str]]:
    """The values of a cell, each with the number of its annotation; None for one without."""
    if cell in ("", "_"):
        return []
    values = []
    for part in re.findall(r"(?:^|\|)((?:\\.|[^\\|])*)", cell):
        match = re.fullmatch(r"((?:\\.|[^\\])*?)\[(\d{1,9})\]", part)
        value, number = (match[1], match[2]) if match else (part, "")
        values.append((None if value == "*" else _unescaped(value), number))
    return values


def _unescaped(text: str) -> str:
    known = {"t": "\t", "n": "\n", "r": "\r"}
    return re.sub(r"\\(->|.)", lambda m: known.get(m[1], m[1]), text)


# ---- writing


def _escaped(text: str, table: dict[str, str]) -> str:
    pattern = "|".join(map(re.escape, sorted(table, key=len, reverse=True)))
    return re.sub(pattern, lambda match: table[match[0]], text)


def _lines(row: Row) -> Iterator[str]:
    """The lines of a file."""
    yield f"{_HEAD}.3\n#T_SP={_LAYER}|identifier|value\n\n"
    words = words_of(row.x, row.y)
    edges = _edges(row, words)
    before, every = units_before(row.x, "utf16"), sorted([*words, *edges])
    held_by: dict[tuple[int, int], list[tuple[int, Entity]]] = {place: [] for place in every}
    for number, entity in enumerate(row.y, 1):
        first = bisect_left(every, (entity.start, 0))
        for place in every[first : bisect_left(every, (entity.end, 0))]:
            held_by[place].append((number, entity))
    at = 0
    for n, (begin, end) in enumerate(_sentences(row, bool(edges)), 1):
        yield f"\n#Text={_escaped(row.x[begin:end], _ESCAPES)}\n"
        last = bisect_left(every, (end, 0))
        for k, (start, stop) in enumerate(every[at:last], 1):
            held = held_by[start, stop]
            ids = "|".join(f"*[{number}]" for number, _ in held) or "_"
            names = "|".join(f"{_escaped(str(e.label), _IN_CELLS)}[{i}]" for i, e in held) or "_"
            word = _escaped(row.x[start:stop], _ESCAPES)
            yield f"{n}-{k}\t{before[start]}-{before[stop]}\t{word}\t{ids}\t{names}\t\n"
        at = last


def _edges(row: Row, words: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The white space that begins or ends an entity, cut where others do."""
    starts, ends = {e.start for e in row.y}, {e.end for e in row.y}
    inside = set(words)
    free = [place for place in parts_between(row.x, row.y, words) if place not in inside]
    return [(a, b) for a, b in free if a in starts or b in ends]


def _sentences(row: Row, has_edges: bool) -> list[tuple[int, int]]:
    """Lines, if each holds a word and no entity goes on in the next; or else the whole text."""
    places, end = [], 0
    for match in re.finditer("[^\n]+", row.x):
        places.append(match.span())
        end = match.end()
    is_whole = not places or end < len(row.x) or any(not row.x[a:b].strip() for a, b in places)
    crossing = any("\n" in row.x[e.start : e.end] for e in row.y)
    return [(0, len(row.x))] if is_whole or crossing or has_edges else places
