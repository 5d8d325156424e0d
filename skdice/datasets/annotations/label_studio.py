"""Label Studio: JSON of tasks with their annotations, and JSON-MIN.

Read from the guides "Export annotations" and "Import pre-annotated data" of Label Studio 1.20, its
``label_studio_sdk/converter`` (JSON-MIN), and the tests of its editor. Offsets count code points
since its editor of 2022 (pull request 1559 of HumanSignal/label-studio) and UTF-16 before; the text
of each region shows which. The editor writes line breaks in that text as a backslash and an n.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from skdice._checks import shown
from skdice.datasets.annotations._format import (
    JsonFormat,
    Record,
    Row,
    Span,
    without,
    without_scores,
)
from skdice.datasets.labelled import answered, submitted
from skdice.datasets.source import Source

_OF_TASKS = ("annotations", "completions", "predictions")
_LISTS = ("entities", "spans", "ents", "label", "labels")  # of other formats


class LabelStudio(JsonFormat):
    """Tasks with the regions of their annotations or predictions."""

    rank = 50
    lines = False

    def fits(self, value: Any) -> bool:
        if not isinstance(value, dict):
            return False
        if isinstance(value.get("data"), dict) or any(map(_regions, value.values())):
            return True
        others = any(isinstance(value.get(name), list) for name in _LISTS)
        return {"annotation_id", "lead_time"} <= set(value) and not others

    def read(self, source: Source) -> Iterator[Record]:
        tasks = list(source.records())
        is_annotated = any(submitted(task) for _, task in tasks)
        for place, task in tasks:
            if not isinstance(task.get("data"), dict):
                yield _of_min(source, place, task)
                continue
            metadata = {**without(task, "data", "drafts", *_OF_TASKS), **task["data"]}
            name = "annotations" if "annotations" in task else "completions"
            every = source.listed(place, task, name)
            kept = submitted(task)
            cancelled = len(every) - len(answered(every))
            if not source.with_entities:
                kept = [{}]
            elif cancelled:
                source.skipped["cancelled"] += cancelled
            is_predicted = not kept and not cancelled and not is_annotated
            if is_predicted:
                kept = source.listed(place, task, "predictions")[-1:]
            if not kept and not cancelled:
                source.skipped["not annotated"] += 1
            for annotation in kept:
                if not isinstance(annotation, dict):
                    problem = f"the annotation {annotation!r} is an id: export as JSON"
                    raise source.fault(place, problem)
                names = {"id": "annotation_id", "completed_by": "annotator"}
                more = {names[name]: annotation[name] for name in names if annotation.get(name)}
                items = source.listed(place, annotation, "result")
                record = _record(source, place, task["data"], items, {**metadata, **more})
                yield record if is_predicted else without_scores(record)

    def metadata_of(self, value: Any) -> Any:
        return value.get("data") if isinstance(value, dict) else None

    def dump(self, row: Row) -> dict[str, Any]:
        ids = row.metadata.get("entity_ids")
        known = isinstance(ids, list) and len(ids) == len(row.entities)
        names = ids if known and ids else [f"e{i}" for i in range(len(row.entities))]
        result: list[Any] = []
        for name, entity in zip(names, row.entities, strict=True):
            score = {} if entity.score is None else {"score": entity.score}
            value: dict[str, Any] = {"start": entity.start, "end": entity.end, "text": entity.text}
            value["labels"] = [entity.label]
            tags = {"from_name": "label", "to_name": "text", "type": "labels"}
            result.append({"id": str(name), **tags, "value": value, **score})
        others = row.metadata.get("result")
        out: dict[str, Any] = {"data": {"text": row.text}}
        if not row.predicted:
            out["annotations"] = [{"result": result + (others if isinstance(others, list) else [])}]
        else:
            scores = [entity.score for entity in row.entities if entity.score is not None]
            mean = {"score": round(sum(scores) / len(scores), 6)} if scores else {}
            out["predictions"] = [{"model_version": "skdice", **mean, "result": result}]
        for name, value in without(row.metadata, "entity_ids", "result", "text").items():
            (out if name in ("id", "meta") else out["data"])[name] = value
        return out


def _regions(value: Any) -> bool:
    return isinstance(value, list) and any(
        isinstance(item, dict) and "start" in item and _labels(item) is not None for item in value
    )


def _labels(value: dict[str, Any]) -> list[Any] | None:
    """The labels of a region: of ``labels``, ``hypertextlabels`` and the like."""
    lists = (v for name, v in value.items() if name.endswith("labels") and isinstance(v, list))
    return next(lists, None)


def _is_html(value: Any) -> bool:
    return isinstance(value, str) and bool(re.search(r"<[a-zA-Z/!][^<>]*>", value))


def _is_of_labels(item: dict[str, Any]) -> bool:
    return str(item.get("type")).endswith("labels")


def _of_min(source: Source, place: str, task: dict[str, Any]) -> Record:
    fields = [name for name, value in task.items() if _regions(value)]
    items = [{"value": item} for name in fields for item in task[name]]
    data = without(task, *fields)
    return _record(source, place, data, items if source.with_entities else [], data)


def _record(
    source: Source, place: str, data: dict[str, Any], items: list[Any], metadata: dict[str, Any]
) -> Record:
    spans, others, ids, owners = [], [], [], set()
    for item in items:
        value = item.get("value") if isinstance(item, dict) else None
        labels = _labels(value) if isinstance(value, dict) else None
        if isinstance(value, dict) and "start" in value and _is_of_labels(item):
            labels = labels or []
        if value is None or labels is None:  # of a choice, a relation or a rating
            others.append(item)
            continue
        if "start" not in value:
            raise source.fault(place, f"a region of {item.get('type')!r} is no stretch of a text")
        part = (value.get("start"), value.get("end"))
        if not all(isinstance(offset, int) for offset in part) and isinstance(
            places := value.get("globalOffsets"), dict
        ):
            part = (places.get("start"), places.get("end"))
        if not labels:
            source.skipped["regions without a label"] += 1
        for label in labels:
            spans.append(Span((part,), label, value.get("text"), item.get("score")))
            ids.append(item.get("id"))
        owners.add(item.get("to_name"))
    if len(owners) > 1:
        problem = f"regions of several texts, {sorted(map(str, owners))}: export them apart"
        raise source.fault(place, problem)
    if any(isinstance(item, dict) and item.get("type") == "hypertextlabels" for item in items):
        html = next((value for value in data.values() if _is_html(value)), None)
        if html is not None:
            problem = f"its text is HTML, {shown(html)}, whose offsets count what a "
            problem += "browser shows: label plain text (<Text> in place of <HyperText>)"
            raise source.fault(place, problem)
    texts = [name for name, value in data.items() if isinstance(value, str)]
    wanted = [name for name in ("text", *owners) if name in texts]
    if source.text_column or wanted or len(texts) != 1:
        key = source.text_key(place, data, tuple(wanted or ["text"]))
    else:
        key = texts[0]
    if others:
        metadata = {**metadata, "result": others}
    if any(isinstance(item, dict) and item.get("type") == "relation" for item in others):
        metadata = {**metadata, "entity_ids": ids}
    return Record(place, (data[key],), spans, without(metadata, key))
