"""Labels of whole texts in the JSON of annotation tools, as records of a table.

Read are Prodigy's ``label`` or ``accept`` with its ``answer``, the choices of Label Studio (JSON
and JSON-MIN), and the ``cats`` of spaCy. Doccano's lists of labels are a table as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from skdice._checks import counted, shown
from skdice._warn import warn
from skdice.datasets.files import fault
from skdice.datasets.multilabel import NamedRows
from skdice.datasets.source import ANSWERS
from skdice.exceptions import SkippedRowsWarning

Placed = tuple[str, Any]  # a value with its place in the file


_ENTITIES = ("spans", "ents", "entities")


class Labelled(NamedTuple):
    """Records whose labels are lists of names."""

    records: list[Placed]
    columns: list[str]  # that hold labels
    told: list[str]  # what was left out


def holds_labels(value: Any) -> bool:
    """Return True if a tool wrote labels of the whole text, and no entities."""
    if _is_task(value):
        results = [item for each in submitted(value) for item in _results(each)]
        return any(map(_choices, results)) and not any(map(_is_region, results))
    if isinstance(value, list):
        return len(value) > 1 and _has_cats(value[1]) and not value[1].get("entities")
    if not isinstance(value, dict):
        return False
    if any(value.get(name) for name in _ENTITIES):
        return False
    is_named = any(map(_is_label, (value.get("label"), value.get("labels"))))
    is_named = is_named and any(value.get(name) == [] for name in _ENTITIES)
    return is_named or _has_cats(value) or _is_answered(value) or _is_min(value)


def without_labels(values: Sequence[Any]) -> list[Any]:
    """Values that do not hold labels; where some do, those in which nothing is marked go, too."""
    others = [value for value in values if not holds_labels(value)]
    if len(others) == len(values):
        return others
    return [value for value in others if not _is_unmarked(value)]


def _is_unmarked(value: Any) -> bool:
    lists = [value[name] for name in _ENTITIES if name in value] if isinstance(value, dict) else []
    return bool(lists) and not any(lists)


def _is_label(value: Any) -> bool:
    """Return True if a value is a label, or a list of some."""
    if isinstance(value, list):
        return bool(value) and all(isinstance(each, str) for each in value)
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return is_number or (isinstance(value, str) and bool(value))


def labelled(path: Path, values: Sequence[Placed]) -> Labelled | None:
    """The records of a file in which a tool wrote labels of texts; None if none did."""
    some = [value for _, value in values[:1000]]
    for owns, read in ((_is_task, _tasks), (_is_min, _minimal), (_cats_of, _cats)):
        if any(map(owns, some)):
            return read(path, values)
    if sum(map(_is_answered, some)) and all(_may_be_answered(value) for value in some):
        return _answered(path, values)
    return None


def texts_of(values: Sequence[Placed]) -> list[Placed]:
    """The records of the texts alone, of what a tool wrote and people did not label yet."""
    return [(place, _unlabelled(value)) for place, value in values]


def _unlabelled(value: Any) -> Any:
    if _is_task(value):
        return value["data"]
    if isinstance(value, list) and len(value) > 1 and isinstance(value[1], dict):
        return {"text": value[0]}
    if _is_answered(value) and isinstance(value.get("text"), str):
        return {"text": value["text"]}
    return value


# ---- Prodigy


def _is_answered(value: Any) -> bool:
    if not isinstance(value, dict) or value.get("answer") not in ANSWERS:
        return False
    return isinstance(value.get("label"), str) or isinstance(value.get("accept"), list)


def are_answers(values: Sequence[Any]) -> bool:
    """Return True if values are answers of Prodigy, which some rows may lack."""
    return all(v in (*ANSWERS, None, "") for v in values) and any(v in ANSWERS for v in values)


def obey(path: Path, y: list[Any], answers: Sequence[Any], n_ignored: int) -> list[Any]:
    """Labels of rows that were not ignored; one that was rejected has none."""
    n_rejected = answers.count("reject")
    if told := _told(n_ignored, n_rejected):
        warn(
            f"{str(path)!r}: {', '.join(told)}; {counted(len(y), 'text')} read", SkippedRowsWarning
        )
    if not n_rejected:
        return y
    lists = [row if isinstance(row, list) else [row] for row in y]
    rows = [[] if answer == "reject" else row for answer, row in zip(answers, lists, strict=True)]
    return NamedRows(y.columns, rows) if isinstance(y, NamedRows) else rows


def _told(n_ignored: int, n_rejected: int) -> list[str]:
    """Say what became of answers."""
    ignored = f"left out {counted(n_ignored, 'row')} whose answer is ignore"
    rejected = f"{counted(n_rejected, 'row')} kept without the labels that were rejected"
    return [text for n, text in ((n_ignored, ignored), (n_rejected, rejected)) if n]


def _may_be_answered(value: Any) -> bool:
    return isinstance(value, dict) and value.get("answer") in (*ANSWERS, None)


def _answered(path: Path, values: Sequence[Placed]) -> Labelled:
    """Return what was accepted of each text; a rejected label is left out."""
    n_ignored = 0
    rows: dict[Any, tuple[str, dict[str, Any], dict[str, None]]] = {}
    rejected: dict[Any, set[str]] = {}
    for i, (place, value) in enumerate(values):
        if not isinstance(value, dict):
            raise fault(path, place, f"{shown(value)} is not a JSON object, as each must be")
        answer = value.get("answer")
        if answer == "ignore":
            n_ignored += 1
            continue
        column = "accept" if isinstance(value.get("accept"), list) else "label"
        names: list[Any] = value[column] if column == "accept" else [value.get("label")]
        if not all(isinstance(name, str) and name.strip() for name in names):
            raise fault(path, place, f"{column!r} is {shown(value.get(column))}, not names")
        # A question about one label is asked once for each label of a text.
        text = value.get("text")
        name = text if column == "label" and isinstance(text, str) else i
        record = {**value, "label": []}
        record.pop("answer", None)  # is obeyed here
        _, _, kept = rows.setdefault(name, (place, record, {}))
        if answer == "reject":
            rejected.setdefault(name, set()).update(names)
        else:
            kept.update(dict.fromkeys(names))
    told = _told(n_ignored, len(rejected))
    if n_both := sum(len(labels.intersection(rows[name][2])) for name, labels in rejected.items()):
        told.append(f"{counted(n_both, 'label')} accepted and rejected, which is kept")
    records = [(place, {**value, "label": list(kept)}) for place, value, kept in rows.values()]
    return Labelled(records, ["label"], told)


# ---- Label Studio


def _is_task(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("data"), dict)


def _is_min(value: Any) -> bool:
    """Return True if a value is a record of JSON-MIN without regions."""
    return (
        isinstance(value, dict)
        and {"annotation_id", "lead_time"} <= set(value)
        and not any(isinstance(each, list) for each in value.values())
    )


def answered(annotations: Any) -> list[Any]:
    """Annotations that were submitted and not cancelled, or ids of some."""
    return [
        each
        for each in (annotations if isinstance(annotations, list) else [])
        if not isinstance(each, dict) or not (each.get("was_cancelled") or each.get("skipped"))
    ]


def submitted(task: dict[str, Any]) -> list[Any]:
    """The annotations of a task: those that were marked as true, or else all."""
    kept = answered(task.get("annotations") or task.get("completions") or [])
    return [each for each in kept if isinstance(each, dict) and each.get("ground_truth")] or kept


def _results(annotation: Any) -> list[Any]:
    result = annotation.get("result") if isinstance(annotation, dict) else None
    return result if isinstance(result, list) else []


def _choices(item: Any) -> list[str]:
    value = item.get("value") if isinstance(item, dict) else None
    names = value.get("choices") if isinstance(value, dict) else None
    return [str(name) for name in names] if isinstance(names, list) else []


def _is_region(item: Any) -> bool:
    value = item.get("value") if isinstance(item, dict) else None
    return isinstance(value, dict) and "start" in value


def _tasks(path: Path, values: Sequence[Placed]) -> Labelled | None:
    n_left = 0
    records: list[Placed] = []
    columns: list[str] = []
    if not any(
        any(map(_choices, _results(a))) for _, v in values if _is_task(v) for a in submitted(v)
    ):
        return None
    for place, task in values:
        if not _is_task(task):
            raise fault(path, place, f"{shown(task)} is no task of Label Studio")
        kept = submitted(task)
        n_left += not kept
        for annotation in kept:
            found: dict[str, list[str]] = {}
            for item in _results(annotation):
                if names := _choices(item):
                    found.setdefault(str(item.get("from_name", "choices")), []).extend(names)
            columns += [name for name in found if name not in columns]
            records.append((place, {"id": task.get("id"), **task["data"], **found}))
    for _, record in records:
        for name in columns:  # a question without an answer
            record.setdefault(name, [])
    told = [f"left out {counted(n_left, 'task')} that nobody annotated"] if n_left else []
    return Labelled(records, columns, told)


_OF_MIN = ("id", "annotator", "annotation_id", "created_at", "updated_at", "lead_time")


def _minimal(path: Path, values: Sequence[Placed]) -> Labelled:
    records = []
    names: list[str] = []
    for place, value in values:
        if not isinstance(value, dict):
            raise fault(path, place, f"{shown(value)} is not a JSON object, as each must be")
        record = {}
        for name, cell in value.items():
            if isinstance(cell, dict) and isinstance(cell.get("choices"), list):
                cell = list(map(str, cell["choices"]))
            if name not in _OF_MIN:
                record[name] = cell
                names += [name] * (name not in names)
        records.append((place, record))
    columns = [name for name in names if name != "text"]
    rows = [
        (place, {n: _listed(r.get(n)) if n in columns else r.get(n) for n in names})
        for place, r in records
    ]
    return Labelled(rows, columns, [])


def _listed(cell: Any) -> Any:
    if isinstance(cell, str):
        return [cell]
    return [] if cell is None else cell


# ---- spaCy


def _has_cats(value: Any) -> bool:
    cats = value.get("cats") if isinstance(value, dict) else None
    return isinstance(cats, dict) and bool(cats)


def _cats_of(value: Any) -> bool:
    return _has_cats(value[1] if isinstance(value, list) and len(value) > 1 else value)


def _cats(path: Path, values: Sequence[Placed]) -> Labelled:
    """The categories of a score of at least a half, as spaCy's own trainer takes them."""
    records = []
    for place, value in values:
        text, fields = None, value
        if isinstance(value, list) and len(value) > 1:
            text, fields = value[:2]
        cats = fields.get("cats") if isinstance(fields, dict) else None
        if not isinstance(cats, dict) or not all(
            isinstance(score, (int, float)) for score in cats.values()
        ):
            raise fault(path, place, f"'cats' is {shown(cats)}, not a score for each category")
        text = fields.get("text") if text is None else text
        names = [name for name, score in cats.items() if score >= 0.5]
        answer = {"answer": fields["answer"]} if "answer" in fields else {}
        records.append((place, {"text": text, "cats": names, **answer}))
    return Labelled(records, ["cats"], [])
