"""Items that another thread makes while the ones before them are used."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from skdice._warn import tell, told_later

T = TypeVar("T")


def ahead(items: Iterable[T]) -> Iterator[T]:
    """The same items, each made in another thread while the one before it is used.

    What it warns of is told when the item is taken, so that the warning names the taker's line.
    """
    source, nothing = iter(items), object()
    told: list[tuple[Any, Any]] = []

    def make() -> Any:
        with told_later(told):
            return next(source, nothing)

    with ThreadPoolExecutor(1) as worker:
        coming = worker.submit(make)
        while True:
            try:
                item = coming.result()
            finally:
                tell(told)
            if item is nothing:
                return
            coming = worker.submit(make)
            yield item
