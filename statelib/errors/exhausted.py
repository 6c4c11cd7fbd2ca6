"""Want of memory or of threads, which Python and Arrow report in several ways, as one error that says what to do."""

from __future__ import annotations

import errno
from contextlib import contextmanager
from typing import TYPE_CHECKING

from statelib.errors.kinds import RetryableError

if TYPE_CHECKING:
    from collections.abc import Iterator

_NO_THREAD = ("can't start new thread", "Failed to launch worker thread")


def is_exhaustion(error: BaseException) -> bool:
    """Whether an error says that the host has no memory or no threads left."""
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    return isinstance(error, MemoryError) or any(words in str(error) for words in _NO_THREAD)


def out_of_memory(error: BaseException, **place: object) -> RetryableError:
    """What to raise instead of such an error; ``place``: see `HindstreamError`."""
    reason = f": {error}" if str(error) else ""
    next_step = (
        "stop what else runs on this host, or set a smaller memory_budget_bytes or batch_records, and run the same"
        " command again"
    )
    return RetryableError(f"the host has no memory or no threads left{reason}", **place, next_step=next_step)


@contextmanager
def exhaustion_told() -> Iterator[None]:
    """Raises `RetryableError` where memory or threads have run out; other errors pass.

    Raises:
        RetryableError: See there.
    """
    try:
        yield
    except Exception as error:
        if is_exhaustion(error):
            raise out_of_memory(error) from error
        raise
