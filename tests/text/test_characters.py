"""What is no text is refused by its row, before any tokenizer sees it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from skdice import TransformerFeatures
from skdice.inputs.sentences import as_sentences
from skdice.inputs.texts import as_texts, check_characters
from tests.data import LABELS, TEXTS
from tests.fits import ROWS_OF

BYTE = b"caf\xe9 zo\xeb".decode("utf-8", "surrogateescape")
HALF = "a\ud83d b"
PAIR = "a \ud83d\ude00 b"


@pytest.mark.parametrize(("text", "place"), [(BYTE, 3), (HALF, 1), (PAIR, 2)])
def test_the_place_is_named(text, place):
    message = f"^here holds half of a surrogate pair at character {place},"
    with pytest.raises(ValueError, match=message):
        check_characters(text, "here")


@pytest.mark.parametrize("bad", [BYTE, HALF, PAIR])
@pytest.mark.parametrize("box", [list, pd.Series, np.array])
def test_texts_pairs_and_tokens_name_the_row(bad, box):
    options = {} if box is list else {"dtype": object}
    with pytest.raises(ValueError, match=r"^X\[2\] holds"):
        as_texts(box(["a", "caf\xe9 \U0001f600", bad], **options))
    with pytest.raises(ValueError, match=r"^X\[1\]\[0\] holds"):
        as_texts([("a", "b"), (bad, "b")])
    with pytest.raises(ValueError, match=r"^X\[1\]\[2\] holds"):
        as_sentences([["a"], ["caf\xe9", "\U0001f600", bad]])


@pytest.mark.parametrize("cls", [*ROWS_OF, TransformerFeatures])
@pytest.mark.parametrize("bad", [BYTE, HALF])
def test_every_estimator_names_the_row(cls, bad):
    X, y = ROWS_OF.get(cls, (TEXTS, LABELS))
    X = list(X)
    X[5] = (X[5][0], f"{X[5][1]} {bad}") if isinstance(X[5], tuple) else (
        [*X[5][:-1], bad] if isinstance(X[5], list) else f"{X[5]} {bad}"
    )  # fmt: skip
    with pytest.raises(ValueError, match=r"^X\[5\](\[\d\])? holds (the byte|half)"):
        cls().fit(X, y)
