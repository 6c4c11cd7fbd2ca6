"""The types of kernels' arguments and results, told without numba, which takes half a second to import.

Input arrays are declared read-only, because Arrow's buffers are; numba accepts a writable array there as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class Signature:
    """Of a kernel.

    Attributes:
        result: The type of what it gives.
        arguments: Those of what it takes.
    """

    result: KernelType
    arguments: tuple[KernelType, ...]


@dataclass(frozen=True)
class KernelType:
    """A type; called with those of arguments, it is the signature of a kernel with this result."""

    def __call__(self, *arguments: Any) -> Any:
        """The signature. Inside a kernel, where numba calls it, a value as this type."""
        return Signature(self, arguments)


@dataclass(frozen=True)
class Scalar(KernelType):
    """A number, by numba's name for its type; ``void``: nothing."""

    name: str


@dataclass(frozen=True)
class Array(KernelType):
    """A contiguous array of one dimension."""

    of: Scalar
    readonly: bool


@dataclass(frozen=True)
class RecordArray(KernelType):
    """An array of records of numpy's, which a kernel may change."""

    of: np.dtype[Any]


@dataclass(frozen=True)
class Tuple(KernelType):
    """Several values."""

    of: tuple[KernelType, ...]


i64: Any = Scalar("int64")
u64: Any = Scalar("uint64")
"""Of an index: it need not be looked at for being counted from the end, which takes a fifth of the shortest loops."""
boolean: Any = Scalar("boolean")
nothing: Any = Scalar("void")
_u8, _u32, _i16, _i32, _f64 = (Scalar(name) for name in ("uint8", "uint32", "int16", "int32", "float64"))

Bytes = Array(_u8, readonly=True)
Bools = Array(boolean, readonly=True)
Int16s = Array(_i16, readonly=True)
Int32s = Array(_i32, readonly=True)
Int64s = Array(i64, readonly=True)
Floats = Array(_f64, readonly=True)
BytesOut = Array(_u8, readonly=False)
BoolsOut = Array(boolean, readonly=False)
Int32sOut = Array(_i32, readonly=False)
Int64sOut = Array(i64, readonly=False)
UInt32sOut = Array(_u32, readonly=False)
UInt64sOut = Array(u64, readonly=False)
FloatsOut = Array(_f64, readonly=False)


def records_of(dtype: np.dtype[Any]) -> RecordArray:
    """The type of an array of records, which a kernel may change."""
    return RecordArray(dtype)


def several(dtype: KernelType, count: int) -> Tuple:
    """The type of a tuple of ``count`` scalars of one type, as a kernel's result."""
    return Tuple((dtype,) * count)
