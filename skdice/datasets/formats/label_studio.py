"""Label Studio: JSON of tasks with their annotations, and JSON-MIN.

Read from the guides "Export annotations" and "Import pre-annotated data" of Label Studio 1.20, its
``label_studio_sdk/converter`` (JSON-MIN), and the tests of its editor. Offsets count code points
since its editor of 2022 (pull request 1559 of HumanSignal/label-studio) and UTF-16 before; the text
of each region shows which. The editor writes line breaks in that text as a backslash and an n.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from typing import Any

from skdice._checks import shown
from skdice.datasets.cells import TEXT_NAMES
from skdice.datasets.formats._base import (
    OWN,
    JsonFormat,
    if_any,
    parts_of,
    rest_of,
    without_scores,
)
from skdice.datasets.row import Marks, Note, Row, Span, Wanted, span, without
from skdice.datasets.source import Source

_OF_HTML = "hypertextlabels"
_HTML = re.compile(r"<[a-zA-Z/!][^<>]*>")
_OF_TASKS = ("annotations", "predictions")
_DIALOGUE = "is a dialogue, which is not read: write its turns as texts, one in each task"


class LabelStudio(JsonFormat):
    """Tasks with the regions of their annotations or predictions."""

    lines = False

    def tasks_of(self, value: Any) -> tuple[str, ...]:
        if not isinstance(value, dict):
            return ()
        if {"annotation_id", "lead_time"} <= set(value):  # of JSON-MIN, or of CSV
            return ("entities",) if any(map(_regions, value.values())) else ("classification",)
        if isinstance(value.get("data"), dict) and not isinstance(value.get("text"), str):
            return _tasks_of_task(value)
        return ("entities",) if _regions(value.get("label")) else ()  # of CSV and TSV

    def read(self, source: Source, wanted: Wanted) -> Iterator[Row | Note]:
        tasks = list(source.records())
        is_annotated = any(submitted(task) for _, task in tasks)
        unread: set[str] = set()  # kinds of answers
        n_read = 0
        for place, task in tasks:
            if not isinstance(task.get("data"), dict):
                yield _of_min(source, place, task, wanted)
                continue
            kept, notes = _kept(source, place, task, wanted, is_annotated)
            yield from notes
            for annotation, is_predicted in kept:
                row, notes = _annotated(source, place, task, annotation, wanted)
                if not wanted.of_labels and not is_predicted:
                    row = row._replace(y=Marks(without_scores(row.y.spans)))
                yield from notes
                yield row
                n_read += bool(row.y if wanted.of_labels else row.y.spans)
                unread |= {str(item.get("type")) for item in _results(annotation)} & _UNREAD
        if unread and not n_read:
            raise ValueError(
                f"{str(source.path)!r} holds answers of the type {' and '.join(sorted(unread))} "
                "alone, and choices and labels of stretches of text are read: export them as CSV, "
                "and give text_columns and label_column"
            )

    def dump(self, row: Row, predicted: bool) -> dict[str, Any]:
        result: list[Any] = []
        for i, entity in enumerate(row.y):
            value = {**parts_of(entity, "start", "end", "text"), "labels": [entity.label]}
            tags = {"from_name": "label", "to_name": "text", "type": "labels"}
            result.append({"id": f"e{i}", **tags, "value": value, **parts_of(entity, "score")})
        annotation: dict[str, Any] = {"result": result}
        if predicted:
            scores = [entity.score for entity in row.y if entity.score is not None]
            mean = {"score": round(sum(scores) / len(scores), 6)} if scores else {}
            annotation = {"model_version": "skdice", **mean, "result": result}
        out: dict[str, Any] = {"data": {"text": row.x}}
        out["predictions" if predicted else "annotations"] = [annotation]
        free = without(row.meta, "text", "result", OWN)
        for name, value in free.items():
            (out if name in ("id", "meta") else out["data"])[name] = value
        if others := without(row.meta, *free):
            out["data"][OWN] = others
        return out


def _kept(
    source: Source, place: Any, task: dict[str, Any], wanted: Wanted, is_annotated: bool
) -> tuple[list[tuple[Any, bool]], list[Note]]:
    """The annotations of a task to read, each with whether it is a prediction.

    The last prediction is read in files that nobody annotated.
    """
    if not wanted.labelled:
        return [({}, False)], []
    every = source.listed(place, task, "annotations")
    cancelled, kept = len(every) - len(answered(every)), submitted(task)
    if kept or cancelled or is_annotated or wanted.of_labels:
        pairs = [(each, False) for each in kept]
    else:
        pairs = [(each, True) for each in source.listed(place, task, "predictions")[-1:]]
    is_empty = not pairs and not cancelled
    return pairs, [Note("cancelled", cancelled), Note("not annotated", int(is_empty))]


def _tasks_of_task(value: dict[str, Any]) -> tuple[str, ...]:
    """The tasks of a task of Label Studio's, by its annotations or else its predictions."""
    items = list(chain.from_iterable(map(_results, submitted(value))))
    if not items and not answered(value.get("annotations")):
        items = list(chain.from_iterable(map(_results, value.get("predictions") or [])))
    held = ["entities"] if any("start" in _value(item) for item in items) else []
    held += ["classification"] if any(map(_choices, items)) else []
    return tuple(held) or ("empty",)


def _regions(value: Any) -> bool:
    return isinstance(value, list) and any(
        isinstance(item, dict) and "start" in item and _labels(item) is not None for item in value
    )


def _labels(value: dict[str, Any]) -> list[Any] | None:
    """The labels of a region: of ``labels``, ``hypertextlabels`` and the like."""
    lists = (v for name, v in value.items() if name.endswith("labels") and isinstance(v, list))
    return next(lists, None)


_OF_MIN = ("id", "annotator", "annotation_id", "created_at", "updated_at", "lead_time")
_UNREAD = {"taxonomy", "rating", "number", "textarea", "datetime", "pairwise", "ranker"}


def _of_min(source: Source, place: Any, task: dict[str, Any], wanted: Wanted) -> Row:
    """A record in which fields without other meanings hold regions, choices or the text."""
    if not wanted.of_labels:
        fields = [name for name, value in task.items() if _regions(value)]
        items = [{"value": item} for name in fields if wanted.labelled for item in task[name]]
        data = without(task, *fields)
        return _row(source, place, data, items, data, wanted)[0]
    key = source.text_key(place, task, TEXT_NAMES, wanted.text_column)
    others = without(task, key, *_OF_MIN).items()
    labels = {name: names for name, value in others if (names := _names(value)) is not None}
    return Row(place, task[key], labels or None, without(task, key, *labels))


def _annotated(
    source: Source, place: Any, task: dict[str, Any], annotation: Any, wanted: Wanted
) -> tuple[Row, list[Note]]:
    """The row of an annotation of a task."""
    if not isinstance(annotation, dict):
        problem = f"the annotation {annotation!r} is an id: export as JSON"
        raise source.fault(place, problem)
    names = {"id": "annotation_id", "completed_by": "annotator"}
    more = {names[name]: annotation[name] for name in names if annotation.get(name)}
    items = source.listed(place, annotation, "result", dict)
    metadata = {**without(task, "data", "drafts", *_OF_TASKS), **task["data"], **more}
    return _row(source, place, task["data"], items, metadata, wanted)


def _names(value: Any) -> list[str] | None:
    """The choices of a field: one, several, or none."""
    value = value.get("choices") if isinstance(value, dict) else value
    if isinstance(value, str):
        return [value] if value else []
    fits = isinstance(value, list) and all(isinstance(each, str) for each in value)
    return value if fits else None


def _results(annotation: Any) -> list[dict[str, Any]]:
    """The items of an annotation's result; nothing of an id, or of what is no list."""
    result = annotation.get("result") if isinstance(annotation, dict) else None
    return [item for item in result if isinstance(item, dict)] if isinstance(result, list) else []


def _value(item: dict[str, Any]) -> dict[str, Any]:
    """What an item of a result says; a relation says nothing."""
    value = item.get("value")
    return value if isinstance(value, dict) else {}


def _choices(item: dict[str, Any]) -> list[str]:
    names = _value(item).get("choices")
    return [str(name) for name in names] if isinstance(names, list) else []


def answered(annotations: Any) -> list[Any]:
    """Annotations that were submitted and not cancelled, or ids of some."""
    return [
        each
        for each in (annotations if isinstance(annotations, list) else [])
        if not isinstance(each, dict) or not (each.get("was_cancelled") or each.get("skipped"))
    ]


def submitted(task: dict[str, Any]) -> list[Any]:
    """The annotations of a task: those that were marked as true, or else all."""
    kept = answered(task.get("annotations"))
    return [each for each in kept if isinstance(each, dict) and each.get("ground_truth")] or kept


def _row(
    source: Source,
    place: Any,
    data: dict[str, Any],
    items: list[Any],
    metadata: dict[str, Any],
    wanted: Wanted,
) -> tuple[Row, list[Note]]:
    """The row of a text and the items of its result: regions, choices and others."""
    regions = [item for item in items if _is_region(source, place, item)]
    others = [item for item in items if item not in regions]
    labels = [_labels(_value(item)) or [] for item in regions]
    key = _text_of(source, place, data, items, regions, wanted)
    rest = rest_of({**metadata, **if_any("result", others)}, key)
    y: Any = Marks([_span(r, label) for r, of in zip(regions, labels, strict=True) for label in of])
    if wanted.of_labels:
        y = _of_choices(items) or None
    return Row(place, data[key], y, rest), [Note("regions without a label", labels.count([]))]


def _is_region(source: Source, place: Any, item: dict[str, Any]) -> bool:
    """Return True of a labelled stretch of a text, and not of a choice, a relation or a rating."""
    kind, value = item.get("type"), _value(item)
    if kind == "paragraphlabels":
        raise source.fault(place, f"{item.get('to_name')!r} {_DIALOGUE}")
    if "start" not in value and _labels(value) is not None:
        raise source.fault(place, f"a region of {kind!r} is no stretch of a text")
    return "start" in value and (_labels(value) is not None or str(kind).endswith("labels"))


def _span(item: dict[str, Any], label: Any) -> Span:
    value = _value(item)
    place = value.get("globalOffsets") if isinstance(value.get("start"), str) else value
    place = place if isinstance(place, dict) else value  # a region of a page has paths besides
    return span(place.get("start"), place.get("end"), label, value.get("text"), item.get("score"))


def _of_choices(items: list[dict[str, Any]]) -> dict[str, list[str]]:
    """The choices by the name of the question."""
    found: dict[str, list[str]] = {}
    for item in items:
        if names := _choices(item):
            found.setdefault(str(item.get("from_name", "choices")), []).extend(names)
    return found


def _text_of(
    source: Source,
    place: Any,
    data: dict[str, Any],
    items: list[Any],
    regions: list[Any],
    wanted: Wanted,
) -> str:
    """The field of the text to which regions and choices belong."""
    owners = dict.fromkeys(str(item.get("to_name")) for item in regions)
    if len(owners) > 1:
        problem = f"regions of several texts, {sorted(owners)}: export them apart"
        raise source.fault(place, problem)
    texts = {name: value for name, value in data.items() if isinstance(value, str)}
    if any(item.get("type") == _OF_HTML for item in items):
        _refuse_html(source, place, texts)
    asked = [str(item.get("to_name")) for item in items if _choices(item)]
    known = tuple(name for name in ("text", *owners, *asked) if name in texts)
    if not known and not wanted.text_column:
        _refuse_dialogue(source, place, data)
        known = tuple(texts) if len(texts) == 1 else ("text",)
    return source.text_key(place, data, known, wanted.text_column)


def _refuse_html(source: Source, place: Any, texts: dict[str, str]) -> None:
    for html in filter(_HTML.search, texts.values()):
        problem = f"its text is HTML, {shown(html)}, whose offsets count what a "
        problem += "browser shows: label plain text (<Text> in place of <HyperText>)"
        raise source.fault(place, problem)


def _refuse_dialogue(source: Source, place: Any, data: dict[str, Any]) -> None:
    for name, value in data.items():
        if isinstance(value, list) and any(isinstance(turn, dict) for turn in value):
            raise source.fault(place, f"{name!r} {_DIALOGUE}")
