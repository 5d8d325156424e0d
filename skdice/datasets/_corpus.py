"""The corpus that ships with skdice."""

from __future__ import annotations

from importlib.resources import as_file, files

from skdice._checks import check_choice
from skdice.datasets.conll import read_conll

_SUBSETS = {"all": (0, 449), "train": (0, 270), "dev": (270, 340), "test": (340, 449)}


def load_town_notes(*, subset: str = "all") -> tuple[list[list[str]], list[list[str]]]:
    """Notes from an invented county: 449 English sentences with named entities.

    The sentences were written and annotated by hand for skdice and come under its licence
    (BSD-3-Clause); people, places and clubs are invented. Tags are IOB2 with the types PER, LOC,
    ORG and EVENT; titles (Dr., Sister) belong to a name; boats and pets are not tagged. As in real
    text, entities are rare, words are ambiguous (Hope and hope, Rose and rose, Marrow and
    marrows), and some names of the test sentences do not occur in the others.

    There are 5,056 tokens, 8.7 tagged O to one inside an entity, and 251 mentions: 100 PER, 64 LOC,
    62 ORG and 25 EVENT. Just over half of the sentences (56%) hold none.

    Parameters
    ----------
    subset : {"all", "train", "dev", "test"}, default="all"
        A fixed split of 270, 70 and 109 sentences.

    Returns
    -------
    X : list of lists of str
        Tokens.
    y : list of lists of str
        Tags.

    Raises
    ------
    ValueError
        If `subset` is unknown.

    Examples
    --------
    >>> from skdice.datasets import load_town_notes
    >>> X, y = load_town_notes(subset="train")
    >>> len(X), len(y)
    (270, 270)
    """
    check_choice("subset", subset, list(_SUBSETS))
    kept = slice(*_SUBSETS[subset])
    with as_file(files("skdice.datasets") / "data/town_notes.conll") as path:
        X, y = read_conll(path, separator="\t", comment=None)
    return X[kept], y[kept]
