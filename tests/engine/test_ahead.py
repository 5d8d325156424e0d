"""Items that another thread makes, and what it warns of."""

from __future__ import annotations

import warnings

import pytest

from skdice._warn import warn
from skdice.engine.ahead import ahead
from skdice.exceptions import TruncationWarning


def test_items_made_ahead_are_the_same():
    assert list(ahead(iter(range(5)))) == [0, 1, 2, 3, 4]
    assert list(ahead([])) == []


def test_an_error_in_another_thread_reaches_the_caller():
    def items():
        yield 1
        raise ValueError("no more")

    made = ahead(items())
    assert next(made) == 1
    with pytest.raises(ValueError, match="no more"):
        next(made)


def test_what_is_made_ahead_ends_with_its_user():
    made = []

    def items():
        for i in range(1000):
            made.append(i)
            yield i

    for i in ahead(items()):
        if i == 3:
            break
    del i
    assert len(made) <= 6


def test_what_the_other_thread_warns_of_names_the_line_that_takes_it():
    def items():
        for i in range(2):
            warn(f"number {i}", TruncationWarning)
            yield i

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert list(ahead(items())) == [0, 1]
    assert [str(w.message) for w in told] == ["number 0", "number 1"]
    assert {w.filename for w in told} == {__file__}


def test_an_error_comes_after_what_was_told_before_it():
    def items():
        warn("soon", TruncationWarning)
        raise ValueError("no more")
        yield

    with pytest.warns(TruncationWarning, match="soon"), pytest.raises(ValueError, match="no more"):
        next(ahead(items()))
