"""Sentences and texts with their spans highlighted."""

from __future__ import annotations

import html
import sys
from collections.abc import Callable, Sequence
from typing import Any

from skdice._checks import checked, naming, printable
from skdice._types import Rows
from skdice.inputs.sentences import as_sentences, read_tags
from skdice.inputs.texts import as_single_texts
from skdice.inspection.tagging_errors import spans_of_texts
from skdice.tags.schemes import get_spans
from skdice.tags.spans import flat_spans


class MarkedRows:
    """Sentences with their spans: HTML in a notebook, colours in a terminal, brackets elsewhere.

    A sentence is a list of tokens, or a text, whose spans are of characters. A span is (type,
    start, end), or with its score, which HTML shows.
    """

    # Light backgrounds under black text; the type is written beside each span as well.
    HTML = ("#cfe2f3", "#fce5cd", "#d9ead3", "#ead1dc", "#fff2cc", "#d9d2e9", "#d0e0e3", "#f4cccc")
    ANSI = (36, 33, 32, 35, 34, 31)

    def __init__(
        self, rows: list[tuple[list[str] | str, list[Any]]], types: Sequence[str] | None = None
    ) -> None:
        self.rows = rows
        types = types or sorted({span[0] for _, spans in rows for span in spans})
        self.index: dict[str, int] = {name: i for i, name in enumerate(types)}

    def _lines(self, show: Callable[[str, Any], str]) -> list[str]:
        """Each sentence as `show` gives its parts: texts with their span, or None."""
        lines = []
        for tokens, spans in self.rows:
            parts: list[Any] = []
            at = 0
            for span in sorted(spans, key=lambda span: span[1]):
                parts += [(tokens[at : span[1]], None), (tokens[span[1] : span[2]], span)]
                at = span[2]
            parts.append((tokens[at:], None))
            # A text is shown as it is, and tokens with blanks between them.
            join = ("" if isinstance(tokens, str) else " ").join
            lines.append(join(show(join(words), span) for words, span in parts if words))
        return lines

    def _repr_html_(self) -> str:
        def show(text: str, span: Any) -> str:
            text = html.escape(text).replace("\n", "<br>")
            if span is None:
                return text
            kind, colour = html.escape(span[0]), self.HTML[self.index[span[0]] % len(self.HTML)]
            score = "".join(f" {score:.2f}" for score in span[3:])
            return (
                f'<mark style="background:{colour};color:#000;padding:0 .25em;'
                f'border-radius:.25em">{text} <small><b>{kind}</b>{score}'
                "</small></mark>"
            )

        lines = self._lines(show)
        return "\n".join(f'<p style="line-height:1.7;margin:.3em 0">{line}</p>' for line in lines)

    def __str__(self) -> str:
        colours = sys.stdout.isatty()

        def show(text: str, span: Any) -> str:
            text = printable(text)
            if span is None:
                return text
            number = self.ANSI[self.index[span[0]] % len(self.ANSI)]
            start, end = (f"\x1b[{number}m", "\x1b[0m") if colours else ("", "")
            return f"{start}[{text} {printable(span[0])}]{end}"

        return "\n".join(self._lines(show))

    __repr__ = __str__


@checked
def show_tags(X: Rows, tags: Rows, *, scheme: str = "auto") -> Any:
    """Sentences with their entities highlighted.

    Parameters
    ----------
    X : list of lists of str
        Tokens of each sentence; or one sentence, a list of str.
    tags : as X
        True or predicted tags.
    scheme : str, default="auto"

    Returns
    -------
    object
        Shows highlighted HTML in a notebook, colours in a terminal, and brackets when printed
        elsewhere. ``_repr_html_()`` is the HTML, whose text is escaped.

    Raises
    ------
    ValueError
        If tokens and tags differ in number.

    Examples
    --------
    >>> from skdice.inspection import show_tags
    >>> show_tags(["Ann", "Lee", "rests"], ["B-PER", "I-PER", "O"])
    [Ann Lee PER] rests
    """
    if isinstance(X, (list, tuple)) and len(X) and isinstance(X[0], str):
        X, tags = [X], [tags]
    sentences = as_sentences(X)
    with naming({"y_true": "tags"}):
        rows, _, scheme = read_tags(tags, tags, scheme)
    if [len(row) for row in sentences] != [len(row) for row in rows]:
        raise ValueError("tags must hold one tag for each token of X, sentence by sentence")
    return MarkedRows([(x, get_spans(t, scheme)) for x, t in zip(sentences, rows, strict=True)])


@checked
def show_entities(X: Rows, entities: Rows) -> Any:
    """Texts with their entities highlighted.

    Parameters
    ----------
    X : list of str, or str
        Texts, or one text.
    entities : as X
        True entities, or those that `predict` of a `DiceEntityRecognizer` gives; the entities of
        one text if `X` is one. Of overlapping ones the first is shown, of nested ones the outer.

    Returns
    -------
    object
        As from `show_tags`.

    Examples
    --------
    >>> from skdice.inspection import show_entities
    >>> show_entities("Ann Lee rests.", [(0, 7, "PER")])
    [Ann Lee PER] rests.
    """
    if isinstance(X, str):
        X, entities = [X], [entities]
    texts = as_single_texts(X)
    with naming({"y": "entities (those of one text if X is one)"}):
        spans = spans_of_texts(texts, entities)
    return MarkedRows(list(zip(texts, map(outer, spans), strict=True)))


def outer(spans: list[Any]) -> list[Any]:
    """Spans that do not overlap: of nested ones, the outer."""
    return flat_spans(sorted(spans, key=lambda s: (s[1], -s[2])))
