"""How the hot loops are compiled: once a machine, kept on disk, loaded when one of them runs for the first time.

A kernel is a function over flat arrays with an explicit signature. Its first call imports numba
(`statelib.kernels.numba_types`), and loads the code from numba's cache (``NUMBA_CACHE_DIR``), or compiles it where none
is kept that was made of the same (`statelib.kernels.cache_key`). Processes that compile at the same time each write a
whole file and rename it, so they do no harm.
``python -m statelib.kernels.compile`` fills the cache beforehand. Kernels release the GIL.
"""

from __future__ import annotations

import functools
from contextlib import contextmanager
from dataclasses import dataclass
from threading import RLock
from typing import TYPE_CHECKING, Any, TypeVar

from statelib.kernels.signatures import (
    Bools,
    BoolsOut,
    Bytes,
    BytesOut,
    Floats,
    FloatsOut,
    Int16s,
    Int32s,
    Int32sOut,
    Int64s,
    Int64sOut,
    Tuple,
    UInt32sOut,
    UInt64sOut,
    boolean,
    i64,
    nothing,
    records_of,
    several,
    u64,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from statelib.kernels.signatures import Signature

__all__ = [
    "Bools", "BoolsOut", "Bytes", "BytesOut", "Floats", "FloatsOut", "Int16s", "Int32s", "Int32sOut", "Int64s",
    "Int64sOut", "Tuple", "UInt32sOut", "UInt64sOut", "boolean", "compiled", "helper", "i64", "load_word",
    "multiply_fold", "nothing", "prefetch", "records_of", "several", "store_word", "u64",
]  # fmt: skip

Function = TypeVar("Function", bound="Callable[..., Any]")

_lock = RLock()


class Kernel:
    """A kernel or a helper, which numba makes code of when it is called for the first time.

    Attributes:
        function: In Python.
        signatures: What it is compiled for; None: it is a helper, and compiled into the kernels that call it.
        allocates: As for `compiled`.
    """

    def __init__(self, function: Callable[..., Any], signatures: Sequence[Signature] | None, allocates: bool) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.signatures = signatures
        self.allocates = allocates
        KERNELS.append(self)

    def __call__(self, *arguments: Any) -> Any:
        """Runs the code."""
        return self.dispatcher(*arguments)

    @functools.cached_property
    def dispatcher(self) -> Any:
        """What numba has made of it."""
        from statelib.kernels.numba_types import dispatcher_of  # noqa: PLC0415 - numba: half a second

        with _lock:
            if "dispatcher" in self.__dict__:
                return self.__dict__["dispatcher"]
            made = dispatcher_of(self)
            if made.stats.cache_misses:
                for listener in _listeners:
                    listener()
            return made


_listeners: list[Callable[[], object]] = []


@contextmanager
def compiling_told(listener: Callable[[], object]) -> Iterator[None]:
    """Calls ``listener`` meanwhile whenever a kernel has been compiled whose code was not kept: others may follow."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


KERNELS: list[Kernel] = []
"""All kernels and helpers of the modules that have been imported."""


def load_kernels() -> None:
    """Loads the code of all kernels that are imported, for a process that others are forked from."""
    for kernel in KERNELS:
        if kernel.signatures is not None:
            kernel.dispatcher  # noqa: B018 - makes it


def compiled(*signatures: Any, allocates: bool = False) -> Callable[[Function], Function]:
    """Makes a kernel for ``signatures``, such as ``i64(Bytes, Int64s, Int64sOut)``; its code is kept on disk.

    Args:
        signatures: Of the kernel.
        allocates: Whether it makes arrays of its own. All others do without numba's runtime, which counts references
            to arrays atomically around each call of a helper, and that takes longer than most helpers do.
    """

    def decorate(function: Function) -> Function:
        return Kernel(function, signatures, allocates)  # type: ignore[return-value]

    return decorate


def helper(function: Function) -> Function:
    """Compiles a small function into each kernel that calls it; it has no life of its own on disk."""
    return Kernel(function, None, allocates=False)  # type: ignore[return-value]


@dataclass(frozen=True)
class Instruction:
    """A few instructions of the processor, by the name that `statelib.kernels.numba_types` knows them by."""

    name: str

    def __call__(self, *_: Any) -> Any:
        """Only kernels call it."""
        raise TypeError(self.name)


load_word: Callable[[NDArray[np.uint8], int], np.uint64] = Instruction("load_word")
"""The eight bytes of a uint8 array from an index on as one word, in the machine's byte order."""

store_word: Callable[[NDArray[np.uint8], int, np.uint64], None] = Instruction("store_word")
"""The inverse of `load_word`: writes eight bytes of a uint8 array at once."""

multiply_fold: Callable[[np.uint64, np.uint64], np.uint64] = Instruction("multiply_fold")
"""The two halves of the product of two words, 128 bits, as one word: each bit of either reaches all others."""

prefetch: Callable[[NDArray[Any], int], None] = Instruction("prefetch")
"""Asks the processor to bring the element at an index into its cache; changes nothing."""
