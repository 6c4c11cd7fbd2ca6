"""Memory that has been freed goes back to the system, so that a task's process holds what its budget says.

Arrow's pool and the C library's allocator keep freed memory to hand it out again. What a task frees when it empties its
working sets is hundreds of megabytes, which the next batches need bit by bit only.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Callable


def release_freed_memory() -> None:
    """Gives back what Arrow's pool and glibc's allocator hold unused; other C libraries keep theirs."""
    pa.default_memory_pool().release_unused()
    _trim(0)


def _trim_function() -> Callable[[int], int]:
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):  # not glibc; no library to look into
        return lambda _: 0
    trim.argtypes, trim.restype = (ctypes.c_size_t,), ctypes.c_int
    return trim


_trim = _trim_function()
