"""The serde of what has no bytes of Kafka's own: structs, lists, maps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from statelib.columns.row_format import decode_rows, encode_rows
from statelib.errors.kinds import HindstreamError
from statelib.serdes.base import Lenient, StrictSerde, all_good, without_bad

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class RowSerde(StrictSerde):
    """The native row format: for state, not for other applications."""

    arrow_type: pa.DataType

    def serialize(self, values: pa.Array) -> pa.BinaryArray:
        """See `Serde`."""
        if pa.types.is_null(self.arrow_type):
            return pa.nulls(len(values), pa.binary())
        if pa.types.is_struct(self.arrow_type):
            return encode_rows(values)
        mask = values.is_null() if values.null_count else None
        return encode_rows(pa.StructArray.from_arrays([values], names=["value"], mask=mask))

    def deserialize(self, data: pa.BinaryArray) -> pa.Array:
        """See `Serde`, except that bad bytes are damaged state.

        Raises:
            ConfigurationError: A row is written in another version of the format.
            CorruptedDataError: A row's bytes are not a row of this type.
        """
        if pa.types.is_null(self.arrow_type) and data.null_count == len(data):
            return pa.nulls(len(data))
        if pa.types.is_struct(self.arrow_type):
            return decode_rows(data, self.arrow_type)
        return decode_rows(data, pa.struct([("value", self.arrow_type)])).flatten()[0]

    def deserialize_lenient(self, data: pa.BinaryArray) -> Lenient:
        """See `Serde`."""
        try:
            return all_good(self.deserialize(data))
        except HindstreamError:
            reasons = [self._problem(data[row : row + 1]) for row in range(len(data))]
            good, bad = without_bad(data, reasons)
            return Lenient(self.deserialize(good), bad, pa.array(reasons, pa.string()))

    def describe(self) -> Mapping[str, object]:
        """See `Serde`."""
        return {"serde": "row", "type": str(self.arrow_type)}

    def _problem(self, row: pa.BinaryArray) -> str | None:
        try:
            self.deserialize(row)
        except HindstreamError as error:
            return error.what
        return None
