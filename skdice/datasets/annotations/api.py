"""Read and write annotations in the formats of the tools."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from math import isfinite
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from skdice._checks import KINDS, as_row_list, check_choice, check_lengths, checked, counted, shown
from skdice._warn import warn
from skdice.datasets.annotations import brat, conll, doccano, jsonl, label_studio, prodigy, spacy
from skdice.datasets.annotations.offsets import UNITS, resolve, units_before
from skdice.datasets.annotations.records import (
    Entity,
    Row,
    Source,
    as_json,
    marks,
    span_of,
    without,
)
from skdice.datasets.files import first_line, is_json, suffix_of, write_text
from skdice.datasets.hub import named_rows

# In the order in which they are tried: the most particular first.
FORMATS: dict[str, ModuleType] = {
    "label-studio": label_studio,
    "spacy": spacy,
    "prodigy": prodigy,
    "doccano": doccano,
    "jsonl": jsonl,
    "brat": brat,
    "conll": conll,
}
LINES = ("doccano", "prodigy", "jsonl")  # of JSON, one for each text


class Annotations(NamedTuple):
    """Texts with their entities.

    Attributes
    ----------
    texts : list of str
    entities : list of lists of (start, end, label)
        Of each text, in code points: ``text[start:end]`` is the entity.
    metadata : list of dict
        Of each text: its id, and all else that the tool wrote.
    """

    texts: list[str]
    entities: list[list[tuple[int, int, Any]]]
    metadata: list[dict[str, Any]]


@checked
def read_annotations(
    path: Any,
    format: str = "auto",
    offsets: str = "auto",
    *,
    on_misaligned: str = "raise",
    text_column: str | None = None,
    with_entities: bool = True,
    encoding: str = "utf-8",
) -> Annotations:
    r"""Read texts with entities from the file of an annotation tool.

    Parameters
    ----------
    path : str, Path or datasets.Dataset
        A file; for brat, a folder of ``.txt`` and ``.ann`` files, or one of them; a data set of
        Hugging Face (one split), or the folder that its ``save_to_disk`` wrote.
    format : str, default="auto"
        ``"doccano"``, ``"label-studio"``, ``"prodigy"``, ``"spacy"``, ``"brat"``, ``"jsonl"`` or
        ``"conll"``; ``"auto"`` looks at the file. The modules of `skdice.datasets.annotations` say
        what is read of each.
    offsets : {"auto", "codepoints", "utf16", "bytes"}, default="auto"
        What the offsets of the file count: code points, as Python does; UTF-16 code units, as
        JavaScript does; or bytes of UTF-8. ``"auto"`` takes code points, unless what the tool
        writes beside an offset (the entity's text, tokens, or our own mark) shows that it is
        UTF-16. Of Doccano, whose editor counts UTF-16, it takes what cuts fewer words, and warns
        where neither fits. It matters in texts with emoji only.
    on_misaligned : {"raise", "drop", "fix"}, default="raise"
        What to do with an entity that is empty, lies outside its text, cuts a character, does not
        hold the text that the tool says, has no label, or is discontinuous: raise an error that
        names the file, the line and the entity; leave the entity out; or move it to the nearest
        place that holds its text, and read a discontinuous one from its start to its end. The
        last two count what they did in a warning.
    text_column : str or None, default=None
        The field of the text, where a record has another than usual.
    with_entities : bool, default=True
        False reads the texts alone, of records that are not annotated, too.
    encoding : str, default="utf-8"

    Returns
    -------
    Annotations
        A named tuple of texts, entities and metadata, each a list with one entry for each text. The
        scores of predictions are in the metadata, under ``"entity_scores"``, one for each entity. A
        text that several people annotated in Label Studio comes once for each, unless one
        annotation is marked as the truth.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If no format fits the file, a record has another form, or an entity is misaligned.

    Warns
    -----
    UserWarning
        If records are left out (those of Prodigy that were rejected, of Label Studio that were
        cancelled or are not annotated), and as described above.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from skdice.datasets import read_annotations
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "notes.jsonl")
    ...     _ = path.write_text('{"id": 7, "text": "Ann sings.", "label": [[0, 3, "PER"]]}\n')
    ...     read_annotations(path)
    Annotations(texts=['Ann sings.'], entities=[[(0, 3, 'PER')]], metadata=[{'id': 7}])
    """
    check_choice("format", format, ("auto", *FORMATS))
    check_choice("offsets", offsets, ("auto", *UNITS))
    check_choice("on_misaligned", on_misaligned, ("raise", "drop", "fix"))
    source = _source(path, encoding)
    source.text_column, source.with_entities = text_column, with_entities
    name = find_format(source) if format == "auto" else format
    if name is None:
        raise ValueError(
            f"{str(source.path)!r} is of no format that is known: it has {_described(source)}; "
            f"name the format (--from), one of {list(FORMATS)}"
        )
    records = list(FORMATS[name].read(source))
    left_out = ", ".join(f"{n} {what}" for what, n in source.skipped.items()) or "none"
    if not records:
        raise ValueError(f"{str(source.path)!r} holds no annotated text; left out: {left_out}")
    if with_entities and name in ("label-studio", "prodigy", "spacy", "doccano"):
        other = None if any(record.spans for record in records) else find_format(source)
        if other not in (None, name):
            problem = f"format={name!r} (--from {name}) finds no entity"
            raise ValueError(f"{str(source.path)!r}: {problem}; the file looks like {other!r}")
    if source.skipped:
        warn(f"{str(source.path)!r}: left out {left_out}; {counted(len(records), 'text')} read")
    how = offsets, on_misaligned, FORMATS[name].UNIT, name == "jsonl"
    rows = resolve(source.path, records, *how)
    return Annotations(*rows, [record.metadata for record in records])


def _source(path: Any, encoding: str) -> Source:
    """The file, or the rows of a data set of Hugging Face."""
    if KINDS["Path"][1](path):
        path = Path(path)
        if not path.is_dir() or not any((path / name).is_file() for name in _SAVED):
            return Source(path, encoding)
        try:
            import datasets
        except ImportError as error:
            raise ImportError(f"{str(path)!r} needs the package datasets: install it") from error
        values, name = named_rows(datasets.load_from_disk(str(path))), path
    else:
        values, name = named_rows(path), Path("dataset")
    source = Source(name, encoding)
    source.values = [(f"row {i}", value) for i, value in enumerate(values)]
    return source


_SAVED = ("state.json", "dataset_dict.json")  # files of `save_to_disk`


def find_format(source: Source) -> str | None:
    """The format of a file, by its name and its first thousand values; None if none fits."""
    path = source.path
    if "values" not in vars(source):
        if path.is_dir() or path.suffix == ".ann" or _beside_ann(path):
            return "brat"
        if suffix_of(path) == ".spacy":
            return "spacy"
        if not is_json(path, source.lines):
            begins = first_line(source.lines).startswith(conll.MARK)
            named = begins or suffix_of(path) == ".conll"
            return "conll" if named or _has_tags(source) else None
    values = [value for _, value in islice(source.values, 1000)]
    names = (name for name in FORMATS if hasattr(FORMATS[name], "fits"))
    found = next((name for name in names if any(map(FORMATS[name].fits, values))), None)
    return found or ("doccano" if values and all(map(doccano.is_empty, values)) else None)


def _beside_ann(path: Path) -> bool:
    return path.suffix == ".txt" and path.with_suffix(".ann").is_file()


def _has_tags(source: Source) -> bool:
    from skdice.datasets.auto import find_task

    return find_task(source.path, source.encoding) == "tagging"


def _described(source: Source) -> str:
    """The fields of the first record, or the first line."""
    if "values" in vars(source) and source.values:
        value = source.values[0][1]
        return f"the fields {list(value)}" if isinstance(value, dict) else shown(value)
    return f"the line {source.lines[0][:60]!r}"


# ---- writing


@checked
def write_annotations(
    path: str | Path,
    texts: Any,
    entities: Any,
    format: str,
    metadata: Any = None,
    *,
    offsets: str = "auto",
    predicted: bool | None = None,
) -> Path:
    """Write texts with entities as an annotation tool imports them.

    The file (for brat, the folder) appears when it is complete.

    Parameters
    ----------
    path : str or Path
    texts : list of str
    entities : list of lists of (start, end, label)
        Of each text, in code points; also mappings or objects with these names, such as the
        ``Entity`` of `DiceEntityRecognizer`, whose scores are written where the tool has a place.
    format : {"doccano", "label-studio", "prodigy", "spacy", "brat", "jsonl", "conll"}
        ``"spacy"`` writes JSON, or, through spaCy, a file whose name ends in ``.spacy``.
        ``"conll"`` cannot hold entities that overlap; a warning names those that are lost.
    metadata : list of dict or None, default=None
        Of each text: ids and whatever else should go along. ``"entity_scores"``, one for each
        entity, are written as scores.
    offsets : {"auto", "codepoints", "utf16", "bytes"}, default="auto"
        What offsets shall count. ``"auto"`` is what the tool counts: UTF-16 in Doccano, and code
        points elsewhere. JSON lines say so, in texts where it differs, in a field ``offsets``.
    predicted : bool or None, default=None
        Whether entities are a model's, which Label Studio keeps apart from annotations. None is
        yes if one has a score.

    Returns
    -------
    Path

    Raises
    ------
    TypeError, ValueError
        If the lists differ in length, or a text, an entity or a label is not one; the message
        names the first.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from skdice.datasets import write_annotations
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "notes.jsonl")
    ...     _ = write_annotations(path, ["Ann sings."], [[(0, 3, "PER")]], "doccano")
    ...     print(path.read_text())
    {"text": "Ann sings.", "label": [[0, 3, "PER"]]}
    """
    check_choice("format", format, tuple(FORMATS))
    check_choice("offsets", offsets, ("auto", *UNITS))
    path, texts = Path(path), as_row_list("texts", texts)
    entities = as_row_list("entities", entities)
    check_lengths("texts", texts=texts, entities=entities)
    metadata = [{} for _ in texts] if metadata is None else as_row_list("metadata", metadata)
    check_lengths("texts", texts=texts, metadata=metadata)
    rows = [
        as_row(i, *row, format) for i, row in enumerate(zip(texts, entities, metadata, strict=True))
    ]
    if predicted is None:
        predicted = any(entity.score is not None for row in rows for entity in row.entities)
    rows = [row._replace(predicted=bool(predicted)) for row in rows]
    if format not in LINES and offsets not in ("auto", "codepoints"):
        raise ValueError(f"offsets={offsets!r} is for {LINES}: {format} counts code points")
    if is_text(path, format):
        write_text(path, "".join(pieces_of(rows, format, offsets)))
    else:
        FORMATS[format].write(path, rows)
    return path


def is_text(path: Path | None, format: str) -> bool:
    """Whether a format is text that can be written row by row, as `pieces_of` gives it."""
    is_binary = path is not None and suffix_of(path) == ".spacy"
    return hasattr(FORMATS[format], "dump") and not (format == "spacy" and is_binary)


def pieces_of(rows: Iterable[Row], format: str, offsets: str = "auto") -> Iterator[str]:
    """The text of a file of JSON, in pieces that each end with a row."""
    if format in LINES:
        yield from (f"{line}\n" for line in _lines(rows, format, offsets))
        return
    begin = "[\n"
    for row in rows:
        yield begin + as_json(FORMATS[format].dump(row))
        begin = ",\n"
    yield "\n]\n" if begin == ",\n" else "[]\n"


def _lines(rows: Iterable[Row], format: str, offsets: str) -> Iterator[str]:
    for row in rows:
        unit = FORMATS[format].UNIT if offsets == "auto" else offsets
        before = units_before(row.text, unit)
        if before[-1] == len(row.text):
            yield as_json(FORMATS[format].dump(row))
            continue
        moved = [e._replace(start=before[e.start], end=before[e.end]) for e in row.entities]
        yield as_json({**FORMATS[format].dump(row._replace(entities=moved)), "offsets": unit})


def as_row(i: int, text: Any, entities: Any, metadata: Any, format: str) -> Row:
    """A text to write, checked."""
    if not isinstance(text, str):
        raise TypeError(f"texts[{i}] is {shown(text)}, not a string")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"texts[{i}] holds half of a surrogate pair: {error}") from error
    if not isinstance(metadata, Mapping):
        raise TypeError(f"metadata[{i}] is {shown(metadata)}, not a dict")
    row, items = [], as_row_list(f"entities[{i}]", entities)
    scores = metadata.get("entity_scores")
    if not isinstance(scores, list) or len(scores) != len(items):
        scores = [None] * len(items)
    for j, item in enumerate(items):
        where, span = f"entities[{i}][{j}]", span_of(item)
        if span is None or not all(KINDS["int"][1](offset) for offset in span.parts[0]):
            raise TypeError(f"{where} is {shown(item)}: it must be (start, end, label)")
        start, end = map(int, span.parts[0])
        if not 0 <= start < end <= len(text):
            held = f"texts[{i}], which has {counted(len(text), 'character')}"
            raise ValueError(f"{where} is {shown(item)}, outside {held}")
        label = span.label
        if not (isinstance(label, str) and label.strip()) and (
            label is not None or format != "jsonl"
        ):
            raise ValueError(f"{where} has the label {shown(label)}: it must be a name")
        score = scores[j] if span.score is None else span.score
        if score is not None and not (KINDS["float"][1](score) and isfinite(score)):
            raise TypeError(f"{where} has the score {shown(score)}: it must be a finite number")
        score = None if score is None else round(float(score), 6)
        row.append(Entity(start, end, label, text[start:end], score))
    return Row(text, row, without(metadata, "entity_scores", *marks(metadata)))
