"""Sentences of tokens, with their tags or spans, checked."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set, Sized
from typing import Any

import numpy as np

from skdice._checks import check_choice, check_lengths, counted
from skdice.inputs.rows import as_row_list, check_ordered, is_ordered, plain_values, target_rows
from skdice.inputs.texts import check_characters, input_rows, is_text, is_whole_number, string_of
from skdice.tags.schemes import SCHEMES, get_spans, infer_scheme, refuse_strays, strict_spans
from skdice.tags.spans import Span

Tags = list[list[Any]]
Spans = list[list[Span]]

_TAGS = (
    "write 'O' for a token outside all spans, None (of a tagger) for one that was not annotated, "
    "and map numbers to the names of their tags"
)
_TOKENS = "a list of tokens (for texts as strings use DiceEntityRecognizer)"


def as_sentences(X: Any, *, may_be_empty: bool = False) -> list[list[str]]:
    """Sentences as lists of tokens; an empty sentence is legal, and an empty X if it may be.

    Examples
    --------
    >>> from skdice.inputs.sentences import as_sentences
    >>> as_sentences([["Anna", "sleeps"], []])
    [['Anna', 'sleeps'], []]
    """
    sentences = []
    for i, row in enumerate(input_rows(X, may_be_empty)):
        check_ordered(row, f"X[{i}]", _TOKENS)
        sentences.append(_strings(row, f"X[{i}]", string_of))
    return sentences


def _strings(row: Any, where: str, read: Callable[[Any, str], Any]) -> list[Any]:
    """The values of a row; a list of plain strings is not copied."""
    if type(row) is list and all(type(value) is str and "\x00" not in value for value in row):
        if not is_text("".join(row)):
            for j, value in enumerate(row):
                check_characters(value, f"{where}[{j}]")
        return row
    return [read(value, f"{where}[{j}]") for j, value in enumerate(row)]


# ---- tags


def first_item(*targets: Any) -> Any:
    """The first tag, span or answer in any row, which tells what the rows hold; None without any.

    A tag of None, which nobody annotated, tells nothing.
    """
    kinds = (list, tuple, np.ndarray, Set)
    of_all = (row for y in targets for row in (plain_values(y, "y") if is_ordered(y) else ()))
    rows = (row for row in of_all if isinstance(row, kinds) and getattr(row, "ndim", 1) > 0)
    return next((item for row in rows for item in row if item is not None), None)


def _tag(value: Any, where: str) -> str:
    tag = string_of(value, where, _TAGS)
    if "\x00" in tag:  # numpy would drop it at the end of a string
        raise ValueError(f"{where} is {tag!r}: a tag or label must not hold a null character")
    return tag


def _tag_or_none(value: Any, where: str) -> str | None:
    return None if value is None else _tag(value, where)


def as_names(name: str, values: Any) -> list[str]:
    """The tags or types that a parameter lists."""
    return [_tag(value, f"{name}[{i}]") for i, value in enumerate(as_row_list(name, values))]


def tag_rows(y: Any, name: str = "y", *, complete: bool = False) -> Tags:
    """Tags of sentences: strings, or None where nobody annotated unless they must be `complete`."""
    read, wanted = _tag if complete else _tag_or_none, "a list with one tag for each token"
    rows = as_row_list(name, y)
    for i, row in enumerate(rows):
        check_ordered(row, f"{name}[{i}]", f"{wanted}; for a single sentence give [{name}]")
        rows[i] = _strings(row, f"{name}[{i}]", read)
    return rows


def as_tags(y: Any, sentences: Tags, *, complete: bool = False) -> Tags:
    """Tags as in `tag_rows`, one for each token of `sentences`."""
    rows = target_rows(y, len(sentences), "a list of tag lists", "sentences")
    tags = tag_rows(rows, complete=complete)
    for i, (row, sentence) in enumerate(zip(tags, sentences, strict=True)):
        if len(row) != len(sentence):
            raise ValueError(
                f"y[{i}] has {counted(len(row), 'tag')}, but X[{i}] has "
                f"{counted(len(sentence), 'token')} ({' '.join(sentence)[:60]!r}): give one tag "
                "for each token"
            )
    return tags


def read_tags(y_true: Any, y_pred: Any, scheme: str) -> tuple[Tags, Tags, str]:
    """Tags of sentences that match in their lengths, and the name of their scheme.

    ``"auto"`` is the scheme of `y_true`, or of both if `y_true` holds no entity. Predicted tags are
    None where the true one is.
    """
    check_choice("scheme", scheme, ("auto", *SCHEMES))
    true, pred = tag_rows(y_true, "y_true"), tag_rows(y_pred, "y_pred")
    check_lengths("sentences", y_true=true, y_pred=pred)
    for i, (a, b) in enumerate(zip(true, pred, strict=True)):
        if len(a) != len(b):
            raise ValueError(f"y_true[{i}] has {len(a)} tags, but y_pred[{i}] has {len(b)}")
        pred[i] = [None if tag is None else found for tag, found in zip(a, b, strict=True)]
        if pred[i].count(None) > a.count(None):
            raise TypeError(f"y_pred[{i}] holds None: a predicted tag is a string")
    if scheme == "auto":
        scheme = infer_scheme(true if any({*row} - {"O", None} for row in true) else [*true, *pred])
    if scheme != "plain":
        refuse_strays(true, "y_true")
        refuse_strays(pred, "y_pred")
    return true, pred, scheme


# ---- spans


def read_spans(y: Any, name: str, **sentences: Sequence[Sized]) -> Spans:
    """Spans of each sentence as (type, start, end), in whole tokens and inside the sentence.

    Sentences come by the name of their parameter, as in ``X=sentences``.
    """
    rows: Spans = []
    for i, row in enumerate(as_row_list(name, y)):
        # The order of a sentence's spans does not matter.
        check_ordered([*row] if isinstance(row, Set) else row, f"{name}[{i}]", "a list of spans")
        for span in row:
            if not _is_span(span):
                raise TypeError(
                    f"{name}[{i}] holds {span!r}: a span is (type, start, end), in whole tokens"
                )
        rows.append([(str(kind), int(start), int(end)) for kind, start, end in row])
    for given in sentences.values():
        check_lengths("sentences", **sentences, **{name: rows})
        for i, (row, sentence) in enumerate(zip(rows, given, strict=True)):
            for span in row:
                if not 0 <= span[1] < span[2] <= len(sentence):
                    raise ValueError(
                        f"{name}[{i}] holds {span!r}, outside the {len(sentence)} tokens of its "
                        "sentence"
                    )
    return rows


def _is_span(span: Any) -> bool:
    is_triple = isinstance(span, (tuple, list)) and len(span) == 3 and isinstance(span[0], str)
    return is_triple and all(map(is_whole_number, span[1:]))


def spans_of(
    y_true: Any, y_pred: Any, scheme: str = "auto", *, strict: bool = False
) -> tuple[Spans, Spans]:
    """True and predicted spans of sentences, from tags or from spans."""
    if isinstance(first_item(y_true, y_pred), (tuple, list)):
        true, pred = read_spans(y_true, "y_true"), read_spans(y_pred, "y_pred")
        check_lengths("sentences", y_true=true, y_pred=pred)
        return true, pred
    *tags, scheme = read_tags(y_true, y_pred, scheme)
    read = strict_spans if strict else get_spans
    true, pred = ([read(row, scheme) for row in rows] for rows in tags)
    return true, pred


def as_entities(y: Any, sentences: list[list[str]]) -> tuple[list[list[Span]], str | None]:
    """Spans of each sentence, and the scheme if `y` holds tags (None if it holds spans).

    Parameters
    ----------
    y : list of lists of str, or list of lists of (type, start, end)
        Tags, or spans in tokens with the end exclusive, which may overlap.
    sentences : list of lists of str
    """
    rows = target_rows(y, len(sentences), "tags or spans", "sentences")
    if isinstance(first_item(rows), str):
        tags = as_tags(rows, sentences, complete=True)
        scheme = infer_scheme(tags)
        if scheme == "plain":
            raise ValueError(
                "y holds plain tags, and a reader needs entities: give tags such as B-PER, or "
                "spans (type, start, end)"
            )
        return [list(get_spans(row, scheme)) for row in tags], scheme
    return read_spans(rows, "y", X=sentences), None
