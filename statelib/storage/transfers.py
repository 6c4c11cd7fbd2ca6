"""Several files or requests at once: what waits for a store, a disk or a hash does not wait in a row."""

from __future__ import annotations

from collections import deque
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from threading import Event
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_parallel(work: Callable[[Item], Result], items: Sequence[Item], at_once: int) -> list[Result]:
    """Calls ``work`` with each item, with at most ``at_once`` at a time, and gives the results in the items' order.

    The first error ends it: what has not begun does not begin, what has is waited for. Of several errors the one of the
    first item is raised.
    """
    at_once = min(at_once, len(items))
    if at_once <= 1:
        return [work(item) for item in items]
    ended = Event()

    def begin(item: Item) -> Result:
        if ended.is_set():
            raise CancelledError
        try:
            return work(item)
        except BaseException:
            ended.set()
            raise

    with ThreadPoolExecutor(at_once, thread_name_prefix="transfer") as pool:
        futures = [pool.submit(begin, item) for item in items]
        try:
            return [future.result() for future in futures]  # what is cancelled comes after what has failed
        finally:
            ended.set()


def look_ahead(work: Callable[[Item], Result], items: Iterable[Item], at_once: int) -> Iterator[Result]:
    """Calls ``work`` with each item and gives the results in the items' order, one by one.

    It works on at most ``at_once`` items from the one whose result is waited for, so that a result that has been taken
    need not stay in memory. An error ends it; what has begun is waited for.
    """
    if at_once <= 1:
        yield from map(work, items)
        return
    ahead: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(at_once, thread_name_prefix="transfer") as pool:
        try:
            for item in items:
                ahead.append(pool.submit(work, item))
                if len(ahead) == at_once:
                    yield ahead.popleft().result()
            while ahead:
                yield ahead.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)
