"""Items that another thread makes while the ones before them are used."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")


def ahead(items: Iterable[T]) -> Iterator[T]:
    """The same items, each made in another thread while the one before it is used."""
    source = iter(items)
    end: Any = object()
    with ThreadPoolExecutor(1) as worker:
        coming = worker.submit(next, source, end)
        while (item := coming.result()) is not end:
            coming = worker.submit(next, source, end)
            yield item
