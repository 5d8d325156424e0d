"""Tables of tokens, or of sentences with the lists of their tags."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

from skdice.datasets.cells import rows_of, separator_of
from skdice.datasets.conll import TAG_NAMES, TOKEN_NAMES, has_entities
from skdice.datasets.files import fault, first_line, is_json

# Of columns whose cells hold a whole sentence, as a text or as a written list of tokens.
_SENTENCES = ("sentence", "text", "tokens", "words")


def token_table(
    path: Path,
    lines: list[str],
    separator: str | None = None,
    quoting: bool | None = None,
    with_tags: bool = True,
) -> tuple[Any, Any, dict[str, str]] | None:
    """Tokens, tags and columns of a table that names those of token, tag and sentence.

    Such is the NER corpus of Kaggle. A sentence begins where its cell changes; an empty cell goes
    on with the sentence above.
    """
    if is_json(path, lines):
        return None
    separator = separator or separator_of(path, lines)
    names = [cell.strip(' "').lower() for cell in first_line(lines).split(separator)]
    of_sentences = [n for n in names if re.fullmatch(r"sent(ence)?[ _]?(#|id|idx|no|number)", n)]
    of_tokens, of_tags = ([n for n in known if n in names] for known in (TOKEN_NAMES, TAG_NAMES))
    if not of_tokens or not of_tags:
        return None
    header, *rows = rows_of(path, lines, separator, quoting)
    if not of_sentences:
        gaps = any(not line.strip() for line in lines[:-1])
        if not gaps and has_entities([cells[names.index(of_tags[0])] for _, cells in rows]):
            problem = "no column says where a sentence begins: add one named 'Sentence #', or "
            raise fault(path, "line 1", problem + "write CoNLL columns (see write_conll)")
        return None
    wanted = [names.index(columns[0]) for columns in (of_tokens, of_tags, of_sentences)]
    X: list[list[str]] = []
    y: list[list[str]] = []
    sentence = None
    for place, cells in rows:
        token, tag, name = (cells[i].strip() for i in wanted)
        if not token or (with_tags and not tag):
            raise fault(path, place, "a token or a tag is missing: mend the line")
        if not X or (name and name != sentence):
            X.append([])
            y.append([])
            sentence = name
        X[-1].append(token)
        y[-1].append(tag)
    token, tag, name = (header[1][i].strip() for i in wanted)
    return X, y, {"token": token, "tag": tag, "sentence": name}


def list_table(
    path: Path,
    lines: list[str],
    separator: str | None = None,
    quoting: bool | None = None,
    with_tags: bool = True,
) -> tuple[Any, Any, dict[str, str]] | None:
    """Tokens and tags of a table whose cells hold the written list of a sentence's tags.

    Such is ``"['B-per', 'O']"`` beside ``Ann sings``, whose tokens stand between blanks.
    """
    if is_json(path, lines):
        return None
    separator = separator or separator_of(path, lines)
    names = [cell.strip(' "').lower() for cell in first_line(lines).split(separator)]
    of_tags = [name for name in (*TAG_NAMES, "tags", "ner_tags") if name in names]
    of_sentences = [name for name in _SENTENCES if name in names]
    if not of_sentences:
        return None
    header, *rows = rows_of(path, lines, separator, quoting)
    lists = [name for name in of_tags if all(_listed(c[names.index(name)]) for _, c in rows)]
    if not lists or not rows:
        return None
    tag, sentence = names.index(min(lists, key=lambda name: name == "pos")), -1
    sentence = names.index(of_sentences[0])
    X, y, n_wrong = [], [], 0
    for place, cells in rows:
        tokens, tags = _listed(cells[sentence]) or cells[sentence].split(), _listed(cells[tag])
        if tags is None or len(tags) != len(tokens):
            problem = f"{len(tokens)} tokens of {cells[sentence]!r:.40}, but {len(tags or [])} tags"
            if with_tags:
                remedy = "mend the line, or read lists of labels by task='classification'"
                raise fault(path, place, f"{problem}: {remedy}")
            n_wrong += 1
        X.append(tokens)
        y.append(tags)
    if 2 * n_wrong > len(rows):  # lists of labels of whole texts
        return None
    return X, y, {"token": header[1][sentence].strip(), "tag": header[1][tag].strip()}


def _listed(cell: str) -> list[str] | None:
    """The strings of a written list."""
    if not re.fullmatch(r"\s*\[.*\]\s*", cell, re.DOTALL):
        return None
    try:
        values = ast.literal_eval(cell.strip())
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None
    return values if all(isinstance(value, str) for value in values) else None
