"""What becomes of memory that has been freed: a task's process holds what its budget says, and takes it up once.

Arrow's pool and the C library's allocator keep freed memory to hand it out again. What a task frees when it empties its
working sets is hundreds of megabytes, which the next batches need bit by bit only: it goes back to the system. What one
batch frees is a few megabytes, which the next one needs again: it stays.
"""

from __future__ import annotations

import ctypes
import os
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Callable

KEPT_BYTES = 32 << 20
"""So much that is freed at the end of its heap glibc's allocator keeps."""

MAPPED_BYTES = 4 << 20
"""From this size on an allocation is a mapping of its own, which goes back to the system as soon as it is freed."""

SCARCE_MAPPED_BYTES = 2 << 20
"""As `MAPPED_BYTES`, of a task that has exceeded its budget: what it frees at once are columns of such a size."""

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # of malloc.h
_OVERRIDES = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES")


def reuse_freed_memory(*, scarce: bool = False) -> None:
    """Lets glibc's allocator keep `KEPT_BYTES`, in this process and those forked from it, until it is called again.

    By itself it keeps twice the largest mapping that was freed before. So the smaller the arrays of a task, the more
    often the same pages go back and come again, at a page fault each: in 16 partitions four times as many as in 4.
    Other C libraries stay as they are, and so does one that the environment has set up.
    """
    if not any(name in os.environ for name in _OVERRIDES):
        _set_option(_M_TRIM_THRESHOLD, KEPT_BYTES)
        _set_option(_M_MMAP_THRESHOLD, SCARCE_MAPPED_BYTES if scarce else MAPPED_BYTES)


def release_freed_memory() -> None:
    """Gives back what Arrow's pool and glibc's allocator hold unused; other C libraries keep theirs."""
    pa.default_memory_pool().release_unused()
    _trim(0)


def _glibc_function(name: str, *arguments: type[ctypes._SimpleCData[int]]) -> Callable[..., int]:
    """A function of the C library that returns an int; without such a function, one that does nothing."""
    try:
        function: Callable[..., int] = getattr(ctypes.CDLL(None), name)
    except (AttributeError, OSError, TypeError):  # not glibc; no library to look into
        return lambda *_: 0
    function.argtypes, function.restype = arguments, ctypes.c_int  # type: ignore[attr-defined]
    return function


_trim = _glibc_function("malloc_trim", ctypes.c_size_t)
_set_option = _glibc_function("mallopt", ctypes.c_int, ctypes.c_int)
