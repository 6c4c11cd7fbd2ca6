"""How the hot loops are compiled: ahead of the first record, once a machine, kept on disk.

A kernel is a function over flat arrays with an explicit signature. It is compiled when its module is imported for the
first time on a machine, and loaded from numba's cache (``NUMBA_CACHE_DIR``) afterwards; processes that compile at the
same time each write a whole file and rename it, so they do no harm. ``python -m statelib.kernels.compile`` fills the
cache beforehand. Kernels release the GIL.

Input arrays are declared read-only, because Arrow's buffers are; numba accepts a writable array there as well.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numba
import numba.core.cgutils
import numba.core.config
import numba.extending
from llvmlite import ir

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

Function = TypeVar("Function", bound="Callable[..., Any]")


# numba's own annotations do not tell what its decorators make of a function.
njit: Any = numba.njit
intrinsic: Any = numba.extending.intrinsic
types: Any = numba.types
cgutils: Any = numba.core.cgutils
config: Any = numba.core.config

SHARED = (
    "statelib/kernels/compiled.py",
    "statelib/columns/bytes_order.py",
    "statelib/columns/hashing.py",
    "statelib/columns/ordered_set.py",
    "statelib/operators/sessions/slot_lists_kernel.py",
    "statelib/columns/spans.py",
    "statelib/operators/suppress/heap_kernel.py",
)
"""Modules whose helpers are compiled into kernels of other modules."""


def _separate_caches() -> None:
    """Gives each state of the `SHARED` modules a cache of its own.

    numba looks only at a kernel's own file when it decides whether the cached code is stale.
    """
    if config.CACHE_DIR:
        sources = b"".join((Path(__file__).parents[2] / name).read_bytes() for name in SHARED)
        config.CACHE_DIR = str(Path(config.CACHE_DIR) / hashlib.sha256(sources).hexdigest()[:16])


_separate_caches()


def _array(dtype: Any, *, readonly: bool) -> Any:
    return types.Array(dtype, 1, "C", readonly=readonly)


i64: Any = types.int64
u64: Any = types.uint64
"""Of an index: it need not be looked at for being counted from the end, which takes a fifth of the shortest loops."""
boolean: Any = types.boolean
nothing: Any = types.void
Bytes = _array(types.uint8, readonly=True)
Bools = _array(types.boolean, readonly=True)
Int16s = _array(types.int16, readonly=True)
Int32s = _array(types.int32, readonly=True)
Int64s = _array(types.int64, readonly=True)
BytesOut = _array(types.uint8, readonly=False)
BoolsOut = _array(types.boolean, readonly=False)
Int32sOut = _array(types.int32, readonly=False)
Int64sOut = _array(types.int64, readonly=False)
UInt64sOut = _array(types.uint64, readonly=False)


def records_of(dtype: np.dtype[Any]) -> Any:
    """The type of an array of records, which a kernel may change."""
    return types.Array(numba.from_dtype(dtype), 1, "C")


def several(dtype: Any, count: int) -> Any:
    """The type of a tuple of ``count`` scalars of one type, as a kernel's result."""
    return types.Tuple((dtype,) * count)


_OPTIONS = {"nogil": True, "error_model": "numpy", "boundscheck": False}


def compiled(*signatures: Any, allocates: bool = False) -> Callable[[Function], Function]:
    """Compiles a kernel for ``signatures``, such as ``i64(Bytes, Int64s, Int64sOut)``, and keeps it on disk.

    Args:
        signatures: Of the kernel.
        allocates: Whether it makes arrays of its own. All others do without numba's runtime, which counts references
            to arrays atomically around each call of a helper, and that takes longer than most helpers do.
    """
    decorate: Callable[[Function], Function] = njit(list(signatures), cache=True, _nrt=allocates, **_OPTIONS)
    return decorate


def helper(function: Function) -> Function:
    """Compiles a small function into each kernel that calls it; it has no life of its own on disk.

    A helper that kernels of other modules use belongs into one of the `SHARED` modules.
    """
    decorated: Function = njit(forceinline=True, **_OPTIONS)(function)
    return decorated


def _word_address(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
    return builder.bitcast(builder.gep(data, [arguments[1]]), ir.IntType(64).as_pointer())


def _load_word(typing_context: Any, array: Any, index: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load(_word_address(context, builder, signature, arguments), align=1)

    return types.uint64(array, types.intp), generate


def _store_word(typing_context: Any, array: Any, index: Any, word: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.store(arguments[2], _word_address(context, builder, signature, arguments), align=1)
        return context.get_dummy_value()

    return types.void(array, types.intp, types.uint64), generate


def _prefetch(typing_context: Any, array: Any, index: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        address = builder.bitcast(builder.gep(data, [arguments[1]]), cgutils.voidptr_t)
        int32 = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, int32, int32, int32])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        builder.call(function, [address, int32(0), int32(3), int32(1)])  # read, keep in all levels, data
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


def _multiply_fold(typing_context: Any, a: Any, b: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        word, wide = ir.IntType(64), ir.IntType(128)
        product = builder.mul(*(builder.zext(argument, wide) for argument in arguments))
        high = builder.lshr(product, wide(64))
        return builder.xor(builder.trunc(product, word), builder.trunc(high, word))

    return types.uint64(types.uint64, types.uint64), generate


load_word: Callable[[NDArray[np.uint8], int], np.uint64] = intrinsic(_load_word)
"""The eight bytes of a uint8 array from an index on as one word, in the machine's byte order."""

store_word: Callable[[NDArray[np.uint8], int, np.uint64], None] = intrinsic(_store_word)
"""The inverse of `load_word`: writes eight bytes of a uint8 array at once."""

multiply_fold: Callable[[np.uint64, np.uint64], np.uint64] = intrinsic(_multiply_fold)
"""The two halves of the product of two words, 128 bits, as one word: each bit of either reaches all others."""

prefetch: Callable[[NDArray[Any], int], None] = intrinsic(_prefetch)
"""Asks the processor to bring the element at an index into its cache; changes nothing."""
