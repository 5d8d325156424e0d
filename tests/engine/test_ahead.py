"""Items that another thread makes."""

from __future__ import annotations

import pytest

from skdice.engine.ahead import ahead


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
