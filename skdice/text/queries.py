"""Entities as tags or as spans, and the questions that ask for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_NAMES = {
    "PER": "person",
    "LOC": "location",
    "ORG": "organization",
    "GPE": "geopolitical entity",
    "FAC": "facility",
    "VEH": "vehicle",
    "WEA": "weapon",
    "MISC": "miscellaneous name",
    "NORP": "nationality, religious or political group",
}


def default_query(label: str) -> str:
    """A question made from a label's name.

    Examples
    --------
    >>> from skdice.text.queries import default_query
    >>> default_query("PER"), default_query("creative-work")
    ('find every person', 'find every creative work')
    """
    name = _NAMES.get(label.upper(), label.replace("-", " ").replace("_", " ").lower())
    return f"find every {name}"


def check_queries(queries: Any, types: Sequence[str]) -> dict[str, str]:
    """A query for each type, in sorted order."""
    if queries is None:
        return {kind: default_query(kind) for kind in sorted(types)}
    if not isinstance(queries, Mapping) or not all(
        isinstance(text, str) and text.strip() for text in queries.values()
    ):
        raise TypeError(f"queries={queries!r} must be a dict from label to a question")
    missing = sorted(set(types) - set(queries))
    if missing:
        raise ValueError(
            f"queries has no question for the label {missing[0]!r} (it has {sorted(queries)}): "
            "add one, or give queries=None for questions made from the labels' names"
        )
    return {kind: queries[kind] for kind in sorted(queries)}
