"""The format of a file, by what it is."""

from __future__ import annotations

from itertools import islice
from typing import Any

from skdice.datasets.annotations._format import JsonFormat, formats
from skdice.datasets.labelled import without_labels
from skdice.datasets.source import Source

APART = "skdice"  # the field in which metadata stand apart, beside the name of the format


def mark_of(value: Any) -> str | None:
    """The format that a JSON value names, which we write where nothing else shows it."""
    for name, form in formats().items():
        if isinstance(form, JsonFormat):
            metadata = form.metadata_of(value)
            mark = metadata.get(APART) if isinstance(metadata, dict) else None
            if isinstance(mark, dict) and mark.get("format") == name:
                return name
    return None


def find_format(source: Source, with_labels: bool = False, with_tags: bool = True) -> str | None:
    """The format of a file, by its name and its first thousand values; None if none fits.

    Values that hold labels of whole texts are of none, unless asked for `with_labels`; nor are
    tagged sentences, unless asked for `with_tags`.
    """
    names = fitting(source, with_labels)
    return next((name for name in names if with_tags or not formats()[name].is_tagged), None)


def fitting(source: Source, with_labels: bool = False) -> list[str]:
    """The formats that fit a file, the most particular first."""
    every = formats()
    if "values" not in vars(source):
        claiming = next((name for name, form in every.items() if form.claims(source)), None)
        if claiming or not source.is_json:
            return [claiming] if claiming else []
    values = [value for _, value in islice(source.values, 1000)]
    if marked := next(filter(None, map(mark_of, values)), None):
        return [marked]
    if not with_labels:
        values = without_labels(values)
    fitting = [name for name, form in every.items() if any(map(form.fits, values))]
    empty = (name for name, form in every.items() if values and all(map(form.is_empty, values)))
    return fitting or list(empty)
