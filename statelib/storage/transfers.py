"""Several files at once: what waits for a store, a disk or a hash does not wait in a row."""

from __future__ import annotations

from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

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
    with ThreadPoolExecutor(at_once, thread_name_prefix="transfer") as pool:
        futures = [pool.submit(work, item) for item in items]
        try:
            wait(futures, return_when=FIRST_EXCEPTION)
        finally:
            pool.shutdown(cancel_futures=True)
        for future in futures:
            if not future.cancelled() and (error := future.exception()) is not None:
                raise error
    return [future.result() for future in futures]
