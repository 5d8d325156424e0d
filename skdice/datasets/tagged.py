"""Tagged sentences in any of their forms: columns, a token in each row, or lists of tokens."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import islice, pairwise
from typing import Any

from skdice._checks import shown
from skdice.datasets.answers import accepted
from skdice.datasets.cells import cells_of, long_cells, records_in_cells, separator_of
from skdice.datasets.conll import (
    TokenLine,
    column_rows,
    conllu_rows,
    is_conllu,
    read_conll,
    sentences_of,
)
from skdice.datasets.formats._base import rest_of
from skdice.datasets.row import OF_CELLS, Reading, Row, check_options, refuse_unknown, without
from skdice.datasets.source import Placed, Source
from skdice.datasets.token_columns import DOCUMENT, TAG, TAG_NAMES, TOKEN_NAMES, has_entities
from skdice.tags.schemes import to_tags

_TOKENS = ("tokens", "words")
_TEXTS = (*_TOKENS, "sentence", "text")  # of strings, whose words stand between blanks
_TAGS = ("tags", "ner_tags", "ner", "tag", "labels", "label", "spans", "pos", "upos")
_OPTIONS = ("separator", "quoting", "token_column", "tag_column")  # the first two of cells alone
_SENTENCE = re.compile(r"sent(ence)?[ _]?(#|id|idx|no|number)")
_DOCUMENT = re.compile(r"doc(ument)?([ _]?(#|id|idx|no|number))?")


def is_tagged(source: Source) -> bool:
    """Return True if a file that is not JSON holds tokens with their tags."""
    return _reader_of(source) is not None


def tagged_rows(
    source: Source,
    options: Mapping[str, Any],
    *,
    labelled: bool = True,
    nested: bool = False,
) -> Reading:
    """The sentences of a file; spans of tokens are made tags, unless they may be `nested`."""
    if source.is_json:
        return _listed_rows(source, source.values, options, labelled, nested)
    read = _reader_of(source)
    is_named = isinstance(options.get("token_column"), str) and source.suffix == ".csv"
    if read is _table_rows or (read is None and is_named):
        return _table_rows(source, options, labelled)
    if read is records_in_cells:
        values = records_in_cells(source, always=True)
        return _listed_rows(source, values, options, labelled, nested)
    if read is conllu_rows and "token_column" not in options:
        refuse_unknown("the reader of CoNLL-U", ("tag_column",), options)
        return conllu_rows(source, **options, labelled=labelled)
    check_options(read_conll, options)
    return column_rows(source, **without(options, *OF_CELLS), labelled=labelled)


def _reader_of(source: Source) -> Callable[..., Any] | None:
    """What reads the tagged sentences of a file; None if nothing shows that it holds some."""
    if is_conllu(source.head):
        return conllu_rows
    first = source.first_line
    if first.startswith(("#begin document", DOCUMENT)) or _in_blocks(source.head):
        return column_rows
    if not any(sign in first for sign in (source.separator or "\t", ",", ";")):
        return None
    if _is_table(source):
        return _table_rows
    return records_in_cells if _has_words(source) else None


# ---- lists of tokens, with tags or with spans of tokens


def token_fields(value: Any) -> tuple[str, str | None] | None:
    """The fields of a record's tokens and of its tags or spans.

    Tokens may be a string of words, if the tags such as ``O`` and ``B-PER`` are as many, in a
    list or a string.
    """
    if not isinstance(value, dict) or isinstance(value.get("entities"), list):
        return None
    fields = {str(name).lower(): (name, held) for name, held in value.items()}
    return _listed(fields) or _written(fields)


Fields = dict[str, tuple[str, Any]]  # names and values by names in lower case


def _listed(fields: Fields) -> tuple[str, str | None] | None:
    """The fields of a list of tokens, and of a list of tags or spans, if there is one."""
    for name, tokens in (fields[n] for n in _TOKENS if n in fields):
        if isinstance(tokens, list) and all(isinstance(token, str) for token in tokens):
            tags = (fields[t][0] for t in _TAGS if t in fields and isinstance(fields[t][1], list))
            return name, next(tags, None)
    return None


def _written(fields: Fields) -> tuple[str, str | None] | None:
    """The fields of a string of words, and of as many tags."""
    for name, words in (fields[n] for n in _TEXTS if n in fields):
        if isinstance(words, str) and words.strip():
            tags = (fields[t][0] for t in _TAGS if t in fields and _fit(words, fields[t][1]))
            if (tag := next(tags, None)) is not None:
                return name, tag
    return None


def _fit(words: str, tags: Any) -> bool:
    """Return True if there are as many tags as words, or tags of which some are not O."""
    cells = _split(tags)
    if not isinstance(cells, list) or not cells or not all(map(_is_tag, cells)):
        return False
    return len(cells) == len(words.split()) or set(cells) != {"O"}


def _is_tag(cell: Any) -> bool:
    return isinstance(cell, str) and TAG.fullmatch(cell) is not None


def _split(tags: Any) -> Any:
    """The tags of a string with blanks or commas between them, or a list as it is."""
    return re.findall(r"[^,\s]+", tags) if isinstance(tags, str) else tags


def token_rows(
    source: Source, labelled: bool, asked: tuple[str | None, str | None] = (None, None)
) -> list[Row]:
    """The tokens of each record, with its tags or its spans, by the fields that were asked for."""
    rows = []
    token: Any
    tag: Any
    for place, record in source.records():
        token, tag = (a or b for a, b in zip(asked, token_fields(record) or asked, strict=True))
        tokens = record.get(token)
        tokens = tokens.split() if isinstance(tokens, str) else tokens
        tags = _split(record.get(tag)) if labelled else []
        if not isinstance(tokens, list) or not isinstance(tags, list):
            problem = f"no lists of tokens and tags, but {list(record)}"
            raise source.fault(place, f"{problem}: name them 'tokens' and 'tags'")
        rows.append(_token_row(source, place, tokens, tags, tag, rest_of(record, token, tag)))
    return rows


def _token_row(
    source: Source, place: Any, tokens: list[Any], tags: list[Any], name: Any, rest: dict[str, Any]
) -> Row:
    """The row of tokens with their tags or spans, checked."""
    if not all(tag is None or isinstance(tag, str) for tag in tags):
        spans = list(map(_token_span, tags))
        if None in spans:
            problem = f"{name!r} holds {shown(tags)}: write names of tags, and no ids, or spans "
            raise source.fault(place, f"{problem}(type, start, end)")
        return Row(place, tokens, spans, rest)
    if tags and len(tags) != len(tokens):
        raise source.fault(place, f"{len(tokens)} tokens, but {len(tags)} tags: mend the row")
    return Row(place, tokens, tags, rest)


def _token_span(item: Any) -> tuple[str, int, int] | None:
    if isinstance(item, dict):
        item = [item.get(name) for name in ("type", "start", "end")]
    if not isinstance(item, list) or [type(each) for each in item[:3]] != [str, int, int]:
        return None
    return item[0], item[1], item[2]  # without its score


def are_spans(y: Sequence[Any]) -> bool:
    """Return True if a row of `token_rows` has spans."""
    return bool(y) and isinstance(y[0], tuple)


def _has_words(source: Source) -> bool:
    """Return True if a table holds texts with as many tags as words."""
    return any(token_fields(value) for _, value in records_in_cells(source, 2, always=True))


def _listed_rows(
    source: Source, values: list[Placed], options: Mapping[str, Any], labelled: bool, nested: bool
) -> Reading:
    """Sentences of lists of tokens, from JSON or from cells."""
    refuse_unknown("lists and tables of tokens", _OPTIONS, options)
    asked = options.get("token_column"), options.get("tag_column")
    first = next((found for _, value in values if (found := token_fields(value))), None)
    if first is None and None in asked:
        remedy = "for texts with entities, give task='entities'"
        raise ValueError(f"{str(source.path)!r} holds no lists of tokens and tags: {remedy}")
    token, tag = (given or name for given, name in zip(asked, first or asked, strict=True))
    columns = None if source.is_json else {"token": token, "tag": tag}
    values, notes = accepted(values) if labelled else (values, [])
    rows = token_rows(source.holding(values), labelled, asked)
    return Reading(rows if nested else [_with_tags(source, row) for row in rows], notes, columns)


def _with_tags(source: Source, row: Row) -> Row:
    if row.y and not are_spans(row.y):
        return row
    try:
        return row._replace(y=to_tags(row.y, len(row.x)))
    except ValueError as error:
        raise source.fault(row.place, f"{error}; for nested spans, give task='mrc-ner'") from error


# ---- tables with a token in each row


def _header(source: Source) -> list[str]:
    cells = source.first_line.split(separator_of(source))
    return [cell.strip().strip('"') for cell in cells]


def _is_table(source: Source) -> bool:
    """Return True if the first line names columns of tokens and tags.

    Where none names the sentence, the tags are such as O and B-PER.
    """
    wanted = _named_columns(_header(source))
    if wanted is None or len(wanted) > 2:
        return wanted is not None
    rows = islice(cells_of(source), 1, 2000)
    return has_entities([cells[wanted[1]] for _, cells in rows if len(cells) > max(wanted)])


def _named_columns(header: list[str], token: Any = None, tag: Any = None) -> list[int] | None:
    """The columns of token, tag and sentence, as asked for or by their names."""
    names = [name.lower() for name in header]
    token = _first_of(TOKEN_NAMES, names) if token is None else str(token).lower()
    tag = _first_of(TAG_NAMES, names) if tag is None else str(tag).lower()
    if token not in names or tag not in names or token == tag:
        return None
    sentences = [name for name in names if _SENTENCE.fullmatch(name)]
    return [names.index(name) for name in (token, tag, *sentences[:1])]


def _first_of(known: Sequence[str], names: list[str]) -> str | None:
    return next((name for name in known if name in names), None)


@long_cells()
def _table_rows(source: Source, options: Mapping[str, Any], labelled: bool) -> Reading:
    """Sentences of a table, such as the NER corpus of Kaggle, in one pass.

    A sentence begins where its cell changes or that of its document, or behind a blank line; an
    empty cell goes on with the sentence above.
    """
    refuse_unknown("lists and tables of tokens", _OPTIONS, options)
    header, asked = _header(source), (options.get("token_column"), options.get("tag_column"))
    wanted = _named_columns(header, *asked)
    if wanted is None:
        problem = f"token_column={asked[0]!r} and tag_column={asked[1]!r} are not both in"
        raise ValueError(f"{problem} {str(source.path)!r}, which has the header {header}")
    lines = _with_starts(source, wanted, len(header))
    found = sentences_of(source, lines, wanted[0], wanted[1], labelled)
    names = (header[i] for i in wanted)
    return Reading(found, columns=dict(zip(("token", "tag", "sentence"), names, strict=False)))


def _with_starts(source: Source, wanted: list[int], width: int) -> Iterator[TokenLine]:
    """The rows below the header, and the ends of sentences."""
    sentence_at = wanted[2] if len(wanted) > 2 else None
    if sentence_at is None and "" not in (line.strip() for line in source.head[:-1]):
        problem = "no column says where a sentence begins: add one named 'Sentence #', or "
        raise source.fault("line 1", problem + "write CoNLL columns (see write_conll)")
    of_sentence = [] if sentence_at is None else [sentence_at, *_documents(source, wanted)]
    sentence, before = [""] * len(of_sentence), 0
    for place, cells in islice(cells_of(source), 1, None):
        if len(cells) != width:
            problem = f"{len(cells)} column(s), but {width} in the first line"
            raise source.fault(place, f"{problem}: mend it, or check the parameter separator")
        if sentence_at is None:
            begins, before = place > before + 1, place
        else:
            names = [cells[i] or above for i, above in zip(of_sentence, sentence, strict=True)]
            begins, sentence = names != sentence, names
        if begins:
            yield place, None
        yield place, cells


def _documents(source: Source, wanted: list[int]) -> list[int]:
    """The columns that name the document, whose cells do not change in every row."""
    header = enumerate(_header(source))
    named = [i for i, name in header if _DOCUMENT.fullmatch(name.lower()) and i not in wanted]
    rows = [cells for _, cells in islice(cells_of(source), 1, 2000)] if named else []
    pairs = [pair for pair in pairwise(rows) if min(map(len, pair)) > max(named)]
    return [i for i in named if any(a[i] == b[i] or not b[i] for a, b in pairs)]


# ---- lines


def _in_blocks(lines: list[str]) -> bool:
    """Return True if blank lines stand between blocks of lines of columns."""
    has_gaps = "\n\n" in "\n".join(map(str.strip, lines)).strip("\n")
    return has_gaps and holds_columns(lines, set("OBIES"))


def holds_columns(lines: list[str], tags: Collection[str]) -> bool:
    """Tell if lines are columns of single words: after tabs, or with a tag at one end of each."""
    filled = [line for line in lines if line.strip() and not line.startswith(("#", DOCUMENT))][:200]
    single = [len(line.split()) == len(line.rstrip().split("\t")) for line in filled]
    if 10 * sum(single) >= 9 * len(filled) and any("\t" in line for line in filled):
        return True
    rows = [line.split() for line in filled]
    return len(set(map(len, rows))) == 1 and any(
        all(row[i] in tags or TAG.fullmatch(row[i]) for row in rows) for i in (0, -1)
    )
