"""Tables of tokens, a token a row."""

from __future__ import annotations

import re
from itertools import islice
from pathlib import Path
from typing import Any

from skdice.datasets.cells import cells_of, long_cells, separator_of
from skdice.datasets.reading import fault, first_line
from skdice.datasets.source import Source
from skdice.datasets.token_columns import TAG_NAMES, TOKEN_NAMES, has_entities

_SENTENCE = re.compile(r"sent(ence)?[ _]?(#|id|idx|no|number)")


def token_columns(source: Source) -> tuple[list[int], list[str]] | None:
    """The columns of token, tag and sentence, if the first line names them, and all names.

    Where none names the sentence, blank lines end one.
    """
    separator = source.separator or separator_of(source.path, source.head)
    header = [cell.strip().strip('"') for cell in first_line(source.head).split(separator)]
    names = [name.lower() for name in header]
    of_tokens, of_tags = ([n for n in known if n in names] for known in (TOKEN_NAMES, TAG_NAMES))
    of_sentences = [name for name in names if _SENTENCE.fullmatch(name)]
    if not of_tokens or not of_tags or of_tokens[0] == of_tags[0]:
        return None
    wanted = [names.index(some[0]) for some in (of_tokens, of_tags, of_sentences) if some]
    if of_sentences:
        return wanted, header
    below = [cells[wanted[1]] for _, cells in _head_cells(source, separator, wanted)]
    if not has_entities(below[1:]):
        return None
    if "" not in (line.strip() for line in source.head[:-1]):
        problem = "no column says where a sentence begins: add one named 'Sentence #', or "
        raise fault(source.path, "line 1", problem + "write CoNLL columns (see write_conll)")
    return wanted, header


def _head_cells(source: Source, separator: str, wanted: list[int]) -> list[Any]:
    rows = cells_of(source.path, iter(source.head), separator, source.quoting)
    return [(place, cells) for place, cells in rows if len(cells) > max(wanted)]


@long_cells()
def token_table(source: Source, with_tags: bool = True) -> tuple[Any, Any]:
    """Tokens and tags of a table, such as the NER corpus of Kaggle, in one pass.

    A sentence begins where its cell changes, or behind a blank line; an empty cell goes on with
    the sentence above.
    """
    path: Path = source.path
    found = token_columns(source)
    assert found is not None
    wanted, header = found
    token_at, tag_at = wanted[:2]
    sentence_at = wanted[2] if len(wanted) > 2 else None
    separator = source.separator or separator_of(path, source.head)
    X: list[list[str]] = []
    y: list[list[str]] = []
    known: dict[str, str] = {}  # equal words are one string
    begins, sentence, before = True, None, 0
    rows = cells_of(path, source.iter_lines(), separator, source.quoting)
    for place, cells in islice(rows, 1, None):
        if len(cells) != len(header):
            problem = f"{len(cells)} column(s), but {len(header)} in the first line"
            raise fault(path, place, f"{problem}: mend it, or check the parameter separator")
        token, tag = cells[token_at].strip(), cells[tag_at].strip()
        if not token or (with_tags and not tag):
            raise fault(path, place, "a token or a tag is missing: mend the line")
        if sentence_at is None:
            begins = place > before + 1
            before = place
        elif (name := cells[sentence_at]) and name != sentence:
            begins, sentence = True, name
        if begins or not X:
            tokens: list[str] = []
            tags: list[str] = []
            X.append(tokens)
            y.append(tags)
            begins = False
        tokens.append(known.setdefault(token, token))
        tags.append(known.setdefault(tag, tag))
    names = "token", "tag", "sentence"
    source.columns = dict(zip(names, (header[i] for i in wanted), strict=False))
    return X, y
