"""What a serde is, and what strict and lenient decoding share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from statelib.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray


class Lenient(NamedTuple):
    """What could be decoded, and what could not.

    Attributes:
        values: Of the serde's Arrow type; null where undecodable.
        bad: bool[n]: undecodable.
        reasons: string[n]: why; null where decoded.
    """

    values: pa.Array
    bad: NDArray[np.bool_]
    reasons: pa.Array


class Serde(Protocol):
    """A serialiser and its deserialiser; immutable and picklable."""

    @property
    def arrow_type(self) -> pa.DataType:
        """The type of the values."""

    def serialize(self, values: pa.Array) -> pa.BinaryArray:
        """The values' bytes; null stays null."""

    def deserialize(self, data: pa.BinaryArray) -> pa.Array:
        """The values.

        Raises:
            InputError: One cannot be decoded; ``place["row"]`` is its index.
        """

    def deserialize_lenient(self, data: pa.BinaryArray) -> Lenient:
        """The values that can be decoded, and why the others cannot."""

    def describe(self) -> Mapping[str, object]:
        """Kind and type as plain data (JSON), for fingerprints and for people."""


class StrictSerde(ABC):
    """`Serde.deserialize` by way of `deserialize_lenient`."""

    def deserialize(self, data: pa.BinaryArray) -> pa.Array:
        """See `Serde`."""
        values, bad, reasons = self.deserialize_lenient(data)
        if bad.any():
            row = int(bad.argmax())
            raise InputError(f"a value cannot be decoded: {reasons[row].as_py()}", row=row)
        return values

    @abstractmethod
    def deserialize_lenient(self, data: pa.BinaryArray) -> Lenient:
        """See `Serde`."""


def all_good(values: pa.Array) -> Lenient:
    """What a serde that could decode everything answers."""
    return Lenient(values, np.zeros(len(values), np.bool_), pa.nulls(len(values), pa.string()))


def without_bad(data: pa.Array, reasons: list[str | None]) -> tuple[pa.Array, NDArray[np.bool_]]:
    """``data`` with null for each value that has a reason, and bool[n]: those."""
    bad = np.array([reason is not None for reason in reasons], np.bool_)
    rows = pa.array(np.arange(len(data)), mask=bad)
    return data.take(rows), bad
