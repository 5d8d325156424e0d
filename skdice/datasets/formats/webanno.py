"""WebAnno TSV 3, of WebAnno and INCEpTION: a file for each text, a line for each token.

Read from "WebAnno TSV 3.3 File format" in INCEpTION's user's guide (appendix C). The file is one
text: sentences come with their texts, and what lies between two of them is taken for line breaks.
A line names a token, or a part of one (``2-2.1``), its offsets in UTF-16 code units as Java counts
them, and a cell for each feature of each layer. Annotations of several tokens have one number, as
in ``PER[1]``. Read are the spans of `layer`, of named entities, or of all layers but those of parts
of speech, lemmas and the like, with a warning if these are several; of a layer with several
features, `feature` or ``value``. Roles, relations and chains are read past. An annotation without a
value has the name of its layer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from skdice._checks import shown
from skdice._warn import warn
from skdice.datasets.formats._base import Format
from skdice.datasets.offsets import units_before
from skdice.datasets.row import Marks, Note, Row, Span, Wanted, span
from skdice.datasets.source import Source
from skdice.exceptions import DataWarning

_BEGIN = "#FORMAT=WebAnno TSV 3"  # begins a file
_LAYER = "de.tudarmstadt.ukp.dkpro.core.api.ner.type.NamedEntity"
_OTHERS = re.compile(r"\.(POS|Lemma|Stem|MorphologicalFeatures|SurfaceForm|Token|Sentence)$")
_OLD = r" *# ?[\w.]+ *\|.*\n#id=|#id=.*\n#text="  # of version 2
_TOKEN = re.compile(r"\d+-\d+(\.\d+)?\t(\d{1,15})-(\d{1,15})\t([^\t]*)(?:\t(.*))?")


class WebAnno(Format):
    """Tokens with layers of annotations."""

    unit = "utf16"

    begins = rf"\s*({_BEGIN}|{_OLD})"

    def is_folder(self, path: Path) -> bool:
        return any(map(is_webanno, path.rglob("*.tsv")))

    def read(self, source: Source, wanted: Wanted) -> Iterator[Row | Note]:
        if not source.path.is_dir():
            yield _row(source, source.path.name, {}, wanted)
            return
        paths = {p.relative_to(source.path).as_posix().removesuffix(".tsv"): p
                 for p in source.path.rglob("*.tsv") if is_webanno(p)}  # fmt: skip
        for name, path in sorted(paths.items()):
            yield _row(Source(path, source.encoding), f"{name}.tsv", {"id": name}, wanted)


def is_webanno(path: Path) -> bool:
    """Return True if a file begins as those of WebAnno do, which may stand beside brat's."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(64).removeprefix(b"\xef\xbb\xbf").lstrip().startswith(_BEGIN.encode())


class _Column(NamedTuple):
    layer: str
    feature: str
    holds_values: bool  # of annotations of spans, and not roles or their targets


class _Token(NamedTuple):
    place: str
    start: int
    end: int
    text: str
    cells: list[str]
    is_part: bool


def _row(source: Source, name: str, metadata: dict[str, Any], wanted: Wanted) -> Row:
    if not source.first_line.startswith(_BEGIN):
        problem = f"{source.first_line[:60]!r} is not '{_BEGIN}.3': export as WebAnno TSV 3"
        raise source.fault("line 1", problem)
    columns, sentences = _parsed(source)
    text = _joined(source, sentences)
    tokens = [token for _, some in sentences for token in some]
    spans = list(_spans(source, columns, tokens, wanted)) if wanted.labelled else []
    return Row(name, text, Marks(spans, unit="utf16"), metadata)


def _parsed(source: Source) -> tuple[list[_Column], list[tuple[str, list[_Token]]]]:
    """The columns, and the sentences with their tokens."""
    columns: list[_Column] = []
    sentences: list[tuple[str, list[_Token]]] = []
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
    return columns, sentences


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
    place, found = f"line {number}", _TOKEN.fullmatch(line.rstrip("\r"))
    if found is None:
        problem = f"{line[:60]!r} is no token: 'SENTENCE-TOKEN<tab>START-END<tab>text'"
        raise source.fault(place, problem)
    part, start, end, text, rest = found.groups()
    cells = [] if rest is None else rest.split("\t")
    if cells and cells[-1] == "" and len(cells) == n_columns + 1:
        cells.pop()
    if len(cells) != n_columns or "" in cells:
        problem = f"the token {text!r} has {len(cells)} cells for {n_columns} features"
        raise source.fault(place, f"{problem}, of which one without a value is _")
    return _Token(place, int(start), int(end), _unescaped(text), cells, part is not None)


def _joined(source: Source, sentences: list[tuple[str, list[_Token]]]) -> str:
    """The text of the sentences, where their offsets say that they stand."""
    text, size = "", 0
    for sentence, tokens in sentences:
        before = units_before(sentence, "utf16")
        gap = int(bool(text))
        if tokens:
            first = len(sentence) - len(sentence.lstrip())
            gap = tokens[0].start - before[first] - size
        if not 0 <= gap <= 10_000 + len(source.text):
            problem = f"the token {tokens[0].text!r} does not stand where its sentence does"
            raise source.fault(tokens[0].place, problem)
        _check(source, sentence, tokens, {size + gap + n: i for i, n in enumerate(before)})
        text += "\n" * gap + sentence
        size += gap + before[-1]
    return text


def _check(source: Source, sentence: str, tokens: list[_Token], places: dict[int, int]) -> None:
    """Refuse tokens that do not hold a sentence, each word once."""
    end = 0
    for token in tokens:
        start, stop = places.get(token.start, -1), places.get(token.end, -1)
        held = sentence[start:stop] if start >= 0 else ""
        # Before its parts, a token may stand without its end.
        if not held or not held.startswith(token.text):
            problem = f"the token is {token.text!r}, and its sentence has {shown(held)} there"
            raise source.fault(token.place, problem)
        if not token.is_part:
            if start < end or sentence[end:start].strip():
                problem = f"{sentence[end:start]!r} of its sentence stands before {token.text!r}"
                raise source.fault(token.place, f"{problem}: is a line missing, or there twice?")
            end = stop
    if rest := sentence[end:].strip():
        place = tokens[-1].place if tokens else "its lines '#Text='"
        raise source.fault(place, f"no token holds {rest!r:.60} of its sentence")


# ---- layers


def _layers(source: Source, columns: list[_Column], layer: str | None) -> list[str]:
    """The layers of spans to read: that of named entities, if none was asked for, or all."""
    of_spans = list(dict.fromkeys(column.layer for column in columns if column.holds_values))
    if not of_spans:
        problem = "holds chains, relations or nothing, and spans are read: export a span layer"
        raise ValueError(f"{str(source.path)!r} {problem}")
    if layer is not None:
        named = [each for each in of_spans if layer in (each, each.rpartition(".")[2])]
        if not named:
            problem = f"is not in {str(source.path)!r}, which has {of_spans}"
            raise ValueError(f"layer={layer!r} {problem}")
        return named
    if _LAYER in of_spans:
        return [_LAYER]
    layers = [each for each in of_spans if not _OTHERS.search(each)]
    if len(layers) > 1:
        problem = f"the spans of the layers {layers} are read together: give layer= for one"
        warn(f"{str(source.path)!r}: {problem}", DataWarning)
    return layers


def _columns_of(
    source: Source, columns: list[_Column], layer: str, feature: str | None
) -> list[int]:
    """The columns of a layer, that of its labels first."""
    at = {c.feature: i for i, c in enumerate(columns) if c.layer == layer and c.holds_values}
    name = feature or ("value" if len(at) > 1 else next(iter(at)))
    if name not in at:
        problem = f"give feature= for the layer {layer!r}, which has {list(at)}, and not {name!r}"
        raise ValueError(f"{str(source.path)!r}: {problem}")
    return [at[name], *(i for n, i in at.items() if n != name)]


def _spans(
    source: Source, columns: list[_Column], tokens: list[_Token], wanted: Wanted
) -> Iterator[Span]:
    """The annotations of all tokens, layer by layer."""
    for layer in _layers(source, columns, wanted.layer):
        at = _columns_of(source, columns, layer, wanted.feature)
        found: dict[Any, tuple[str, list[_Token]]] = {}  # label and tokens of each annotation
        for token in tokens:
            for i, (value, number) in enumerate(_annotations(source, token, at)):
                label = layer.rpartition(".")[2] if value is None else value
                known, held = found.setdefault(number or (token.place, i), (label, []))
                held.append(token)
                if known != label:
                    problem = f"the annotation [{number}] is {label!r} here, and {known!r} before"
                    raise source.fault(token.place, problem)
        for label, held in found.values():
            yield span(min(t.start for t in held), max(t.end for t in held), label)


def _annotations(source: Source, token: _Token, at: list[int]) -> list[tuple[str | None, int]]:
    """The label and the number of each annotation of a token: in all features the same."""
    rows = [_values(token.cells[i]) for i in at]
    numbers = [number for _, number in max(rows, key=len)]
    if any([number for _, number in row] not in ([], numbers) for row in rows):
        cells = " and ".join(repr(token.cells[i]) for i in at)
        raise source.fault(token.place, f"{cells} name other annotations")
    if any(value == "" for row in rows for value, _ in row):
        raise source.fault(token.place, f"the token {token.text!r} has an empty value")
    return rows[0] or [(None, number) for number in numbers]


def _values(cell: str) -> list[tuple[str | None, int]]:
    """The values of a cell, each with the number of its annotation; None and 0 where none is."""
    if cell == "_":
        return []
    values = []
    for part in re.findall(r"(?:^|\|)((?:\\.|[^\\|])*)", cell):
        match = re.fullmatch(r"((?:\\.|[^\\])*?)\[(\d{1,9})\]", part)
        value, number = (match[1], int(match[2])) if match else (part, 0)
        values.append((None if value == "*" else _unescaped(value), number))
    return values


def _unescaped(text: str) -> str:
    known = {"t": "\t", "n": "\n", "r": "\r"}
    return re.sub(r"\\(->|.)", lambda m: known.get(m[1], m[1]), text)
