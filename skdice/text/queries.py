"""Entities as tags or as spans, and the questions that ask for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from skdice.inputs.texts import as_tags, target_rows
from skdice.metrics.span import read_spans
from skdice.tags.schemes import get_spans, infer_scheme
from skdice.tags.spans import Span

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


def as_entities(y: Any, sentences: list[list[str]]) -> tuple[list[list[Span]], str | None]:
    """Spans of each sentence, and the scheme if `y` holds tags (None if it holds spans).

    Parameters
    ----------
    y : list of lists of str, or list of lists of (type, start, end)
        Tags, or spans in tokens with the end exclusive, which may overlap.
    sentences : list of lists of str
    """
    rows = target_rows(y, len(sentences), "tags or spans", "sentences")
    first = next((next(iter(row)) for row in rows if hasattr(row, "__len__") and len(row)), None)
    if isinstance(first, str):
        tags = as_tags(rows, sentences, complete=True)
        scheme = infer_scheme(tags)
        if scheme == "plain":
            raise ValueError(
                "y holds plain tags, and a reader needs entities: give tags such as B-PER, or "
                "spans (type, start, end)"
            )
        return [list(get_spans(row, scheme)) for row in tags], scheme
    spans = read_spans(rows, "y")
    for i, (row, sentence) in enumerate(zip(spans, sentences, strict=True)):
        for span in row:
            if not 0 <= span[1] < span[2] <= len(sentence):
                raise ValueError(
                    f"y[{i}] holds {span!r}, which lies outside the {len(sentence)} tokens of "
                    f"X[{i}] ({' '.join(sentence)[:60]!r})"
                )
    return spans, None
