"""What a serde is, and what strict and lenient decoding share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from statelib.columns.time_columns import out_of_reach, out_of_reach_reason
from statelib.errors.kinds import InputError

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


def conformed(values: pa.Array, arrow_type: pa.DataType, schema: str) -> pa.Array:
    """Values of the Arrow type of a schema, cast without loss where they are of another.

    Args:
        values: To be written.
        arrow_type: The schema's.
        schema: What it is called, for the error.

    Raises:
        InputError: They do not fit.
    """
    if values.type == arrow_type:
        return values
    try:
        return values.cast(arrow_type)
    except pa.ArrowException as error:
        step = f"map the values to {arrow_type}"
        raise InputError(f"values of {values.type} do not fit {schema}: {error}", next_step=step) from None


def within_reach(decoded: Lenient) -> Lenient:
    """The same, but values with a time that no topic can hold are undecodable."""
    far = out_of_reach(decoded.values)
    if far is None:
        return decoded
    reasons = decoded.reasons.to_numpy(zero_copy_only=False)
    for row in np.flatnonzero(far & ~decoded.bad).tolist():
        reasons[row] = out_of_reach_reason(decoded.values, row)
    bad = decoded.bad | far
    values = decoded.values.take(pa.array(np.arange(len(bad)), mask=bad))
    return Lenient(values, bad, pa.array(reasons, pa.string()))


def all_good(values: pa.Array) -> Lenient:
    """What a serde that could decode everything answers."""
    return Lenient(values, np.zeros(len(values), np.bool_), pa.nulls(len(values), pa.string()))


def without_bad(data: pa.Array, reasons: list[str | None]) -> tuple[pa.Array, NDArray[np.bool_]]:
    """``data`` with null for each value that has a reason, and bool[n]: those."""
    bad = np.array([reason is not None for reason in reasons], np.bool_)
    rows = pa.array(np.arange(len(data)), mask=bad)
    return data.take(rows), bad
