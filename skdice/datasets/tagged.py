"""Tagged sentences in any of their forms: columns, a token in each row, or lists of tokens."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from itertools import islice
from typing import Any

from skdice._checks import shown
from skdice.datasets.cells import cells_of, long_cells
from skdice.datasets.conll import column_rows, conllu_rows, is_conllu, read_conll, read_conllu
from skdice.datasets.formats._base import rest_of
from skdice.datasets.reading import fault, first_line
from skdice.datasets.row import Row
from skdice.datasets.source import Source, check_options, refuse_unknown, warn_of_skipped
from skdice.datasets.token_columns import DOCUMENT, TAG, TAG_NAMES, TOKEN_NAMES, has_entities
from skdice.tags.schemes import to_tags

_TOKENS = ("tokens", "words")
_TEXTS = (*_TOKENS, "sentence", "text")  # of strings, whose words stand between blanks
_TAGS = ("tags", "ner_tags", "ner", "tag", "labels", "label", "spans", "pos", "upos")
_SENTENCE = re.compile(r"sent(ence)?[ _]?(#|id|idx|no|number)")
_OPTIONS = {column_rows: read_conll, conllu_rows: read_conllu}  # the functions that tell them


def is_tagged(source: Source) -> bool:
    """Return True if a file holds tokens with their tags."""
    return _reader_of(source) is not None


def tagged_rows(source: Source, nested: bool = False, **options: Any) -> list[Row]:
    """The sentences of a file; spans of tokens are made tags, unless they may be `nested`."""
    source.separator = source.separator or options.get("separator")
    read: Any = _reader_of(source) or (_listed_rows if source.is_json else column_rows)
    if read in _OPTIONS:
        check_options(_OPTIONS[read], options)
        return list(read(source, **options))
    of_cells = () if source.is_json else ("separator", "quoting")
    refuse_unknown("lists and tables of tokens", of_cells, options)
    rows = list(read(source, nested))
    warn_of_skipped(source, len(rows))
    return rows


def _reader_of(source: Source) -> Callable[..., list[Row]] | None:
    """What reads the tagged sentences of a file; None if nothing shows that it holds some."""
    if source.is_json:
        return _listed_rows if any(token_fields(value) for _, value in source.values) else None
    lines = source.head
    first = first_line(lines)
    if is_conllu(lines):
        return conllu_rows
    if first.startswith(("#begin document", DOCUMENT)) or _in_blocks(lines):
        return column_rows
    if not any(sign in first for sign in (source.separator or "\t", ",", ";")):
        return None
    if _named_columns(source) is not None:
        return _table_rows
    return _listed_rows if _has_words(source) else None


# ---- lists of tokens, with tags or with spans of tokens


def token_fields(value: Any) -> tuple[str, str | None] | None:
    """The fields of a record's tokens and of its tags or spans.

    Tokens may be a string of words, if the tags such as ``O`` and ``B-PER`` are as many, in a
    list or a string.
    """
    if not isinstance(value, dict) or isinstance(value.get("entities"), list):
        return None
    named = {str(name).lower(): name for name in value}
    for name in _TOKENS:
        tokens = value.get(named.get(name, name))
        if isinstance(tokens, list) and all(isinstance(token, str) for token in tokens):
            lists = (named[t] for t in _TAGS if t in named and isinstance(value[named[t]], list))
            return named[name], next(lists, None)
    for name in _TEXTS:
        words = value.get(named.get(name, name))
        if not isinstance(words, str) or "_".join(words.split()) == "":
            continue
        for tag in _TAGS:
            cells = _tags_of(value.get(named.get(tag, tag)))
            if cells is None or not all(map(TAG.fullmatch, cells)):
                continue
            if len(cells) == len(words.split()) or set(cells) != {"O"}:
                return named[name], named[tag]
    return None


def _tags_of(cell: Any) -> list[str] | None:
    """The tags of a list, or of a string with blanks or commas between them."""
    cells = re.split(r"[,\s]+", cell.strip()) if isinstance(cell, str) else cell
    fits = isinstance(cells, list) and cells and all(isinstance(each, str) for each in cells)
    return cells if fits else None


def token_rows(source: Source) -> list[Row]:
    """The tokens of each record, with its tags or its spans."""
    rows = []
    for place, record in source.records():
        fields = token_fields(record)
        if fields is None or (source.labelled and fields[1] is None):
            problem = f"no lists of tokens and tags, but {list(record)}"
            raise source.fault(place, f"{problem}: name them 'tokens' and 'tags'")
        tokens, tags = record[fields[0]], []
        tokens = tokens.split() if isinstance(tokens, str) else tokens
        if fields[1] and source.labelled:
            tags = record[fields[1]]
            tags = _tags_of(tags) or [] if isinstance(tags, str) else tags
        if any(isinstance(tag, int) for tag in tags):
            problem = f"{fields[1]!r} holds ids: write the names of the tags, or give the "
            raise source.fault(place, problem + "data set of Hugging Face, which has them")
        if not all(tag is None or isinstance(tag, str) for tag in tags):
            spans = list(map(_token_span, tags))
            if None in spans:
                raise source.fault(place, f"{shown(tags)} are no tags, or spans (type, start, end)")
            tags = spans
        elif tags and len(tags) != len(tokens):
            problem = f"{len(tokens)} tokens, but {len(tags)} tags: mend the row"
            raise source.fault(place, problem)
        rows.append(Row(place, tokens, tags, rest_of(record, *fields)))
    return rows


def _token_span(item: Any) -> tuple[str, int, int] | None:
    if isinstance(item, dict):
        item = [item.get(name) for name in ("type", "start", "end")]
    if not isinstance(item, list) or [type(each) for each in item[:3]] != [str, int, int]:
        return None
    return item[0], item[1], item[2]  # without its score


def are_spans(y: list[Any]) -> bool:
    """Return True if a row of `token_rows` has spans."""
    return bool(y) and isinstance(y[0], tuple)


def _has_words(source: Source) -> bool:
    """Return True if a table holds texts with as many tags as words."""
    cells = {name.strip().lower() for name in _header(source)}
    if not (cells & {*_TEXTS} and cells & {*_TAGS}):
        return False
    return bool(source.values) and token_fields(source.values[0][1]) is not None


def _listed_rows(source: Source, nested: bool = False) -> list[Row]:
    """Sentences of lists of tokens, from JSON or from cells."""
    if not any(token_fields(value) for _, value in source.values):
        remedy = "for texts with entities, give task='entities'"
        raise ValueError(f"{str(source.path)!r} holds no lists of tokens and tags: {remedy}")
    if not source.is_json:
        names = token_fields(source.values[0][1]) or ("", None)
        source.columns = dict(zip(("token", "tag"), names, strict=True))
    rows = token_rows(source)
    return rows if nested else [_with_tags(source, row) for row in rows]


def _with_tags(source: Source, row: Row) -> Row:
    if row.y and not are_spans(row.y):
        return row
    try:
        return row._replace(y=to_tags(row.y, len(row.x)))
    except ValueError as error:
        raise source.fault(row.place, f"{error}; for nested spans, give task='mrc-ner'") from error


# ---- tables with a token in each row


def _header(source: Source) -> list[str]:
    cells = first_line(source.head).split(source.found_separator())
    return [cell.strip().strip('"') for cell in cells]


def _named_columns(source: Source) -> list[int] | None:
    """The columns of token, tag and sentence, if the first line names them.

    Where none names the sentence, blank lines end one.
    """
    names = [name.lower() for name in _header(source)]
    of_tokens, of_tags = ([n for n in known if n in names] for known in (TOKEN_NAMES, TAG_NAMES))
    of_sentences = [name for name in names if _SENTENCE.fullmatch(name)]
    if not of_tokens or not of_tags or of_tokens[0] == of_tags[0]:
        return None
    wanted = [names.index(some[0]) for some in (of_tokens, of_tags, of_sentences) if some]
    if of_sentences:
        return wanted
    rows = cells_of(source.path, iter(source.head), source.found_separator(), source.quoting)
    below = [cells[wanted[1]] for _, cells in rows if len(cells) > max(wanted)]
    if not has_entities(below[1:]):
        return None
    if "" not in (line.strip() for line in source.head[:-1]):
        problem = "no column says where a sentence begins: add one named 'Sentence #', or "
        raise fault(source.path, "line 1", problem + "write CoNLL columns (see write_conll)")
    return wanted


@long_cells()
def _table_rows(source: Source, _: bool = False) -> list[Row]:
    """Sentences of a table, such as the NER corpus of Kaggle, in one pass.

    A sentence begins where its cell changes, or behind a blank line; an empty cell goes on with
    the sentence above.
    """
    path, header, wanted = source.path, _header(source), _named_columns(source)
    assert wanted is not None
    token_at, tag_at = wanted[:2]
    sentence_at = wanted[2] if len(wanted) > 2 else None
    found: list[Row] = []
    known: dict[str, str] = {}  # equal words are one string
    begins, sentence, before = True, None, 0
    rows = cells_of(path, source.iter_lines(), source.found_separator(), source.quoting)
    for place, cells in islice(rows, 1, None):
        if len(cells) != len(header):
            problem = f"{len(cells)} column(s), but {len(header)} in the first line"
            raise fault(path, place, f"{problem}: mend it, or check the parameter separator")
        token, tag = cells[token_at].strip(), cells[tag_at].strip()
        if not token or (source.labelled and not tag):
            raise fault(path, place, "a token or a tag is missing: mend the line")
        if sentence_at is None:
            begins = place > before + 1
            before = place
        elif (name := cells[sentence_at]) and name != sentence:
            begins, sentence = True, name
        if begins or not found:
            tokens: list[str] = []
            tags: list[str] = []
            found.append(Row(place, tokens, tags, {}))
            begins = False
        tokens.append(known.setdefault(token, token))
        tags.append(known.setdefault(tag, tag))
    names = "token", "tag", "sentence"
    source.columns = dict(zip(names, (header[i] for i in wanted), strict=False))
    return found


# ---- lines


def _in_blocks(lines: list[str]) -> bool:
    """Return True if blank lines stand between blocks of lines of columns."""
    return _has_gaps(lines) and holds_columns(lines, set("OBIES"))


def holds_columns(lines: list[str], tags: Collection[str]) -> bool:
    """Tell if lines are columns of single words: after tabs, or with a tag at one end of each."""
    filled = _filled(lines)
    single = [len(line.split()) == len(line.rstrip().split("\t")) for line in filled]
    if 10 * sum(single) >= 9 * len(filled) and any("\t" in line for line in filled):
        return True
    ends = ([line.split()[i] for line in filled] for i in (0, -1))
    return len({len(line.split()) for line in filled}) == 1 and any(
        all(word in tags or TAG.fullmatch(word) for word in words) for words in ends
    )


def has_even_lines(lines: list[str]) -> bool:
    """Tell if blank lines separate lines that all have the same number of words, two or more."""
    filled = _filled(lines)
    widths = {1 if "\t" in line else len(line.split()) for line in filled}
    return _has_gaps(lines) and len(widths) == 1 and widths != {1}


def _has_gaps(lines: list[str]) -> bool:
    return "\n\n" in "\n".join(map(str.strip, lines)).strip("\n")


def _filled(lines: list[str]) -> list[str]:
    """The first lines of tokens or texts."""
    return [line for line in lines if line.strip() and not line.startswith(("#", DOCUMENT))][:200]
