"""A report of entities that do not fit the words of their texts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from skdice._checks import check_choice, check_has, checked, naming
from skdice._tables import frame_of
from skdice._types import Rows
from skdice.backbones import DEFAULT_BACKBONE, load_tokenizer
from skdice.inputs.entities import read_entities
from skdice.inputs.texts import as_single_texts
from skdice.text.alignment import Misfit, align
from skdice.text.words import with_words


@checked
def alignment_report(
    texts: Rows,
    entities: Rows,
    words_of: Any = DEFAULT_BACKBONE,
    *,
    on_misaligned: str = "expand",
) -> Any:
    """Every entity that the tags of words cannot hold as it is, and what `fit` does with it.

    Parameters
    ----------
    texts : list of str
    entities : list of lists of entities
        As in `DiceEntityRecognizer.fit`.
    words_of : str, Path, tokenizer or DiceEntityRecognizer, default=the default backbone
        The backbone or its tokenizer, whose words are meant.
    on_misaligned : {"expand", "drop"}, default="expand"
        As in `DiceEntityRecognizer`.

    Returns
    -------
    pandas.DataFrame or list of Misfit
        A row for each such entity: ``row`` (of the text), ``entity`` (its number), ``start``,
        ``end``, ``label``, ``text``, ``reason``, such as "begins inside a word", and ``action``,
        such as "expanded to 'Anna'" or "dropped". A list of named tuples where pandas is not
        installed.

    Raises
    ------
    ValueError, TypeError
        For entities that are none, or a backbone that cannot be loaded.

    Examples
    --------
    >>> from skdice.inspection import alignment_report
    >>> report = alignment_report(["Anna's here"], [[(1, 4, "PER"), (5, 6, "X")]])
    >>> report[["text", "reason", "action"]].values.tolist()
    [['nna', 'begins inside a word', "expanded to 'Anna'"]]
    """
    check_choice("on_misaligned", on_misaligned, ("expand", "drop"))
    with naming({"X": "texts", "y": "entities"}):
        rows = as_single_texts(texts)
        spans = read_entities(entities, rows)
    source = getattr(words_of, "tokenizer_", getattr(words_of, "backbone", words_of))
    with naming({"backbone": "words_of"}):
        revision, tokenizer = getattr(words_of, "revision", None), source
        if isinstance(source, (str, Path)):
            tokenizer = load_tokenizer(str(source), revision)
    check_has("words_of", tokenizer, "backend_tokenizer")
    _, misfits = align(with_words(tokenizer, rows), spans, on_misaligned)
    return frame_of(misfits, Misfit._fields)
