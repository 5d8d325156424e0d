"""Read and write annotations in the formats of the tools."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from skdice._checks import check_choice, check_lengths, checked, shown
from skdice._names import NOT_WRITTEN, TOOLS, WRITTEN
from skdice._types import Rows
from skdice._warn import warn
from skdice.datasets.detection import find, read_tool
from skdice.datasets.formats._base import JsonFormat, as_json, formats
from skdice.datasets.offsets import resolve, units_before
from skdice.datasets.row import UNITS, Reading, Row, Wanted, left_out, without, x_and_y
from skdice.datasets.source import Source, json_text, warn_of_notes
from skdice.exceptions import SkippedRowsWarning
from skdice.inputs.answers import MISALIGNED
from skdice.inputs.entities import Entity, check_inside, read_entity
from skdice.inputs.rows import as_row_list
from skdice.inputs.texts import check_characters
from skdice.whole_files import write_text


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
    path: str | Path,
    format: str = "auto",
    offsets: str = "auto",
    *,
    on_misaligned: str = "raise",
    text_column: str | None = None,
    layer: str | None = None,
    feature: str | None = None,
    encoding: str = "utf-8",
) -> Annotations:
    r"""Read texts with entities from the file of an annotation tool.

    Parameters
    ----------
    path : str or Path
        A file; for brat and WebAnno, a folder, or a file of it.
    format : str, default="auto"
        ``"doccano"``, ``"label-studio"``, ``"prodigy"``, ``"spacy"``, ``"brat"``, ``"webanno"``,
        ``"pubtator"``, ``"bioc"``, ``"jsonl"`` or
        ``"conll"``; ``"auto"`` looks at the file. The modules of `skdice.datasets.formats` say
        what is read of each.
    offsets : {"auto", "codepoints", "utf16"}, default="auto"
        What the offsets of the file count: code points, as Python does, or UTF-16 code units, as
        JavaScript does. ``"auto"`` takes code points, unless what the tool writes beside an offset
        (the entity's text, tokens, or our own mark) shows that it is UTF-16. Of Doccano, whose
        editor counts UTF-16 and whose files programs write too, it refuses what may be either. It
        matters in texts with emoji only.
    on_misaligned : {"raise", "drop", "expand"}, default="raise"
        What to do with an entity that is empty, lies outside its text, cuts a character, does not
        hold the text that the tool says, has no label, or is discontinuous: raise an error that
        names the file, the line and the entity; leave the entity out; or move it to the nearest
        place that holds its text, and read a discontinuous one from its start to its end. The
        last two count what they did in a warning.
    text_column : str or None, default=None
        The field of the text, where a record has another than usual.
    layer, feature : str or None, default=None
        Of WebAnno: the layer of spans to read, by its name or the last part of it, and the feature
        that holds their labels.
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
    SkippedRowsWarning, MisalignedWarning, DataWarning
        If records are left out (those of Prodigy that were rejected, of Label Studio that were
        cancelled or are not annotated), as described above, and if WebAnno's spans of several
        layers are read together.

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
    source = Source(Path(path), encoding)
    how: dict[str, Any] = {"format": format, "offsets": offsets, "on_misaligned": on_misaligned}
    read = entity_rows(source, Wanted(text_column=text_column, layer=layer, feature=feature), **how)
    warn_of_notes(source, read.notes, len(read.rows))
    return Annotations(*x_and_y(read.rows), [row.meta for row in read.rows])


def entity_rows(
    source: Source,
    wanted: Wanted,
    *,
    format: str = "auto",
    offsets: str = "auto",
    on_misaligned: str = "raise",
) -> Reading:
    """The texts that `read_annotations` reads, with their entities and metadata."""
    check_choice("format", format, ("auto", *TOOLS))
    check_choice("offsets", offsets, ("auto", *UNITS))
    check_choice("on_misaligned", on_misaligned, MISALIGNED)
    if format == "auto":
        found = find(source, "entities")
        if found.format is None or (wanted.labelled and found.task == "classification"):
            raise ValueError(f"{str(source.path)!r} {_unknown(source, found.task)}")
        format = found.format
    rows, notes = read_tool(source, format, wanted)
    if not rows:
        problem = f"holds no annotated text; left out: {left_out(notes) or 'none'}"
        raise ValueError(f"{str(source.path)!r} {problem}")
    if wanted.labelled and not any(row.y.spans for row in rows):
        _refuse_other(source, format)
    return Reading(resolve(source.path, rows, formats()[format], offsets, on_misaligned), notes)


def _refuse_other(source: Source, format: str) -> None:
    """Refuse a file that looks like one of another format than was asked for."""
    other = find(source, "entities").format
    if other not in (None, format):
        problem = f"format={format!r} finds no entity; the file looks like {other!r}"
        raise ValueError(f"{str(source.path)!r}: {problem}")


def _unknown(source: Source, task: str) -> str:
    """Return the message about a file that is in no format, or holds something else."""
    if task == "classification":
        remedy = "read them with read_dataset, by task='classification'"
        return f"holds labels of whole texts and no entities: {remedy}"
    what = f"the line {source.first_line[:60]!r}"
    if source.is_json:
        first = next((value for _, value in source.values), None)
        what = f"the fields {list(first)}" if isinstance(first, dict) else shown(first)
    remedy = "read labels, tags and questions with read_dataset, by task='auto'; "
    remedy += f"for entities, give the parameter format of read_annotations, one of {list(TOOLS)}"
    return f"is of no format that is known: it has {what}; {remedy}"


# ---- writing


@checked
def write_annotations(
    path: str | Path,
    texts: Rows,
    entities: Rows,
    format: str,
    metadata: Rows | None = None,
    *,
    predicted: bool | None = None,
) -> Path:
    """Write texts with entities as an annotation tool imports them.

    The file (for brat, the folder) appears when it is complete.

    Parameters
    ----------
    path : str or Path
    texts : list of str
    entities : list of lists of (start, end, label)
        Of each text, in code points; also mappings or objects with these names or those of spaCy,
        Flair, Presidio and others, such as the ``Entity`` of `DiceEntityRecognizer`. Scores are
        written where the tool has a place. A label of None marks a region that nobody annotated,
        which ``"jsonl"`` alone can hold.
    format : {"brat", "conll", "doccano", "jsonl", "label-studio", "prodigy"}
        ``"conll"`` cannot hold entities that overlap; a warning names those that are lost.
    metadata : list of dict or None, default=None
        Of each text: ids and whatever else should go along, of any names. A warning names those
        that a format has no place for. ``"entity_scores"``, one for each entity, are written as
        scores.
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
    if format in NOT_WRITTEN:
        raise ValueError(f"format={format!r} is read, and not written: {NOT_WRITTEN[format]}")
    check_choice("format", format, WRITTEN)
    path, texts = Path(path), as_row_list("texts", texts)
    entities = as_row_list("entities", entities)
    check_lengths("texts", texts=texts, entities=entities)
    metadata = [{} for _ in texts] if metadata is None else as_row_list("metadata", metadata)
    check_lengths("texts", texts=texts, metadata=metadata)
    every = enumerate(zip(texts, entities, metadata, strict=True))
    rows = [as_row(i, *row, format) for i, row in every]
    if predicted is None:
        predicted = any(entity.score is not None for row in rows for entity in row.y)
    _warn_of_lost(path, rows, formats()[format].keeps)
    if is_text(format):
        write_text(path, text_of(rows, format, path, bool(predicted)))
    else:
        formats()[format].write(path, rows)
    return path


def _warn_of_lost(path: Path, rows: list[Row], kept: tuple[str, ...] | None) -> None:
    """Name the metadata that a format has no place for."""
    if kept is None:
        return
    if lost := dict.fromkeys(shown(name) for row in rows for name in row.meta if name not in kept):
        problem = f"has no place for the metadata {', '.join(lost)}"
        warn(f"{str(path)!r} {problem}: they are not written", SkippedRowsWarning)


def format_of_name(path: Path) -> str | None:
    """The format that a file's name shows, if one does."""
    named = (name for name, form in formats().items() if path.suffix in form.suffixes)
    return next(named, None)


def is_text(format: str) -> bool:
    """Return True if a format is one text, as `text_of` gives it."""
    return isinstance(formats()[format], JsonFormat)


def text_of(rows: Iterable[Row], format: str, path: Path | None, predicted: bool) -> str:
    """The text of a file of JSON."""
    form = formats()[format]
    assert isinstance(form, JsonFormat)
    values = (as_json(_dumped(row, form, predicted)) for row in rows)
    return json_text(values, path, lines=form.lines)


def _dumped(row: Row, form: JsonFormat, predicted: bool) -> Any:
    """The JSON value of a text, whose offsets count the units of its tool.

    JSON lines say so where that matters, in a field ``offsets``.
    """
    before = units_before(row.x, form.unit)
    if not form.lines or before[-1] == len(row.x):
        return form.dump(row, predicted)
    moved = [e._replace(start=before[e.start], end=before[e.end]) for e in row.y]
    return {**form.dump(row._replace(y=moved), predicted), "offsets": form.unit}


def as_row(i: int, text: Any, entities: Any, metadata: Any, format: str) -> Row:
    """A text to write, checked."""
    if not isinstance(text, str):
        raise TypeError(f"texts[{i}] is {shown(text)}, not a string")
    check_characters(text, f"texts[{i}]")
    if not isinstance(metadata, Mapping):
        raise TypeError(f"metadata[{i}] is {shown(metadata)}, not a dict")
    items = as_row_list(f"entities[{i}]", entities)
    scores = metadata.get("entity_scores")
    if not isinstance(scores, list) or len(scores) != len(items):
        scores = [None] * len(items)
    row = []
    for j, (item, score) in enumerate(zip(items, scores, strict=True)):
        where = f"entities[{i}][{j}]"
        entity = read_entity(item, where)
        check_inside(entity, text, where, f"texts[{i}]")
        if entity.label is None and not formats()[format].knows_unlabelled:
            raise ValueError(f"{where} has the label None: it must be a name in {format}")
        row.append(_to_write(entity, score, text, where))
    return Row(f"texts[{i}]", text, row, without(metadata, "entity_scores"))


def _to_write(entity: Entity, score: Any, text: str, where: str) -> Entity:
    """An entity with its text, and its score in few digits."""
    if entity.start == entity.end:
        raise ValueError(f"{where} is {shown(tuple(entity[:3]))}, which is empty")
    if entity.score is None and score is not None:
        entity = read_entity(entity._replace(score=score), where)
    rounded = None if entity.score is None else round(entity.score, 6)
    return entity._replace(score=rounded, text=text[entity.start : entity.end])
