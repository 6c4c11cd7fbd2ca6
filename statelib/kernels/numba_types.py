"""What numba makes of types, kernels and instructions that are told without it; the first kernel that runs imports it.

numba meets them as globals of the functions that it compiles, and asks here for their types.
"""

from __future__ import annotations

import hashlib
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numba
import numba.core.cgutils
import numba.core.config
import numba.extending
from llvmlite import ir
from numba.core.registry import cpu_target

from statelib.kernels.cache_key import cache_key
from statelib.kernels.compiled import Instruction, Kernel
from statelib.kernels.signatures import Array, KernelType, RecordArray, Scalar, Tuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from statelib.kernels.signatures import Signature

# numba's own annotations do not tell what its decorators make of a function.
njit: Any = numba.njit
types: Any = numba.types
cgutils: Any = numba.core.cgutils
config: Any = numba.core.config
typeof_impl: Any = numba.extending.typeof_impl

_INSTRUCTIONS = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:8]
"""Of this file, whose instructions are in the code of kernels as well."""

_OPTIONS = {"nogil": True, "error_model": "numpy", "boundscheck": False}


def dispatcher_of(kernel: Kernel) -> Any:
    """What numba makes of a kernel: its code, compiled or from the cache; of a helper what is compiled into kernels."""
    if kernel.signatures is None:
        return njit(forceinline=True, **_OPTIONS)(kernel.function)
    signatures = [_signature(one) for one in kernel.signatures]
    with _own_cache(kernel):
        return njit(signatures, cache=True, _nrt=kernel.allocates, **_OPTIONS)(kernel.function)


@contextmanager
def _own_cache(kernel: Kernel) -> Iterator[None]:
    """Lets numba keep the code where only a kernel made of the very same looks for it, if it has a folder for all."""
    folder = config.CACHE_DIR
    if folder:
        config.CACHE_DIR = str(Path(folder) / f"{_INSTRUCTIONS}-{cache_key(kernel)}")
    try:
        yield
    finally:
        config.CACHE_DIR = folder


def _signature(of: Signature) -> Any:
    return _type(of.result)(*map(_type, of.arguments))


def _type(of: KernelType) -> Any:
    if isinstance(of, Array):
        return types.Array(_type(of.of), 1, "C", readonly=of.readonly)
    if isinstance(of, RecordArray):
        return types.Array(numba.from_dtype(of.of), 1, "C")
    if isinstance(of, Tuple):
        return types.Tuple(tuple(map(_type, of.of)))
    assert isinstance(of, Scalar)  # noqa: S101 - there are no others
    return getattr(types, of.name)


def _typeof_kernel(kernel: Kernel, context: Any) -> Any:
    return typeof_impl(kernel.dispatcher, context)


def _typeof_scalar(scalar: Scalar, context: Any) -> Any:
    return typeof_impl(_type(scalar), context)


def _typeof_instruction(instruction: Instruction, context: Any) -> Any:
    return cpu_target.typing_context.resolve_value_type(_INTRINSICS[instruction.name])


for _kind, _typeof in ((Kernel, _typeof_kernel), (Scalar, _typeof_scalar), (Instruction, _typeof_instruction)):
    typeof_impl.register(_kind)(_typeof)


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


_intrinsic: Any = numba.extending.intrinsic
_INTRINSICS: dict[str, Callable[..., Any]] = {
    "load_word": _intrinsic(_load_word),
    "store_word": _intrinsic(_store_word),
    "multiply_fold": _intrinsic(_multiply_fold),
    "prefetch": _intrinsic(_prefetch),
}
