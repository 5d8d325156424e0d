"""Texts with entities, as annotation tools write them: a module without underscore for each."""

from skdice.datasets.annotations._api import (
    Annotations,
    annotated,
    as_row,
    format_of_name,
    is_saved,
    is_text,
    pieces_of,
    read_annotations,
    write_annotations,
)
from skdice.datasets.annotations._find import find, find_format
from skdice.datasets.annotations._format import without
from skdice.datasets.annotations._words import tagged_words

__all__ = [
    "Annotations",
    "annotated",
    "as_row",
    "find",
    "find_format",
    "format_of_name",
    "is_saved",
    "is_text",
    "pieces_of",
    "read_annotations",
    "tagged_words",
    "without",
    "write_annotations",
]
