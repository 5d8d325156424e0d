"""The same spans in another scheme."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from skdice._checks import check_choice, checked, shown
from skdice.tags.schemes import SCHEMES, get_spans, infer_scheme, to_tags


@checked
def convert_scheme(
    y: Iterable[Any], to: str = "iob2", *, scheme: str = "auto"
) -> list[list[str | None]]:
    """The same spans, tagged in another scheme.

    Parameters
    ----------
    y : list of lists of str
        Tags. Ill-formed ones are read leniently; None stays None.
    to : str, default="iob2"
        ``"plain"`` keeps types only: adjacent spans of a type can no longer be told apart.
    scheme : str, default="auto"
        The scheme of `y`; ``"auto"`` infers it.

    Returns
    -------
    list of lists of str or None

    Raises
    ------
    ValueError, TypeError
        If a tag is plain or not a string, or a scheme is unknown.

    Examples
    --------
    >>> from skdice.tags import convert_scheme
    >>> convert_scheme([["B-ORG", "E-ORG", "O", "S-PER"]])
    [['B-ORG', 'I-ORG', 'O', 'B-PER']]
    """
    check_choice("to", to, SCHEMES)
    check_choice("scheme", scheme, ("auto", *SCHEMES))
    rows = list(_tag_lists(y))
    scheme = infer_scheme(rows) if scheme == "auto" else scheme
    if scheme == "plain" and rows:
        raise ValueError("y holds plain tags, which do not say where spans begin and end")
    return [_converted(tags, scheme, to) for tags in rows]


def _converted(tags: list[str | None], scheme: str, to: str) -> list[str | None]:
    converted = to_tags(get_spans(tags, scheme), len(tags), to)
    return [None if tag is None else new for tag, new in zip(tags, converted, strict=True)]


def _tag_lists(y: Iterable[Any]) -> Iterator[list[str | None]]:
    for i, row in enumerate(y):
        tags = list(row)
        if isinstance(row, str) or not all(isinstance(tag, str | None) for tag in tags):
            wanted = "a list with one tag for each token; for a single sentence give [y]"
            raise TypeError(f"y[{i}] is {shown(row)}: give {wanted}")
        yield tags
