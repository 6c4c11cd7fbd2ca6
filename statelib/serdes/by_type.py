"""The default serde of an Arrow type."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from statelib.columns.arrow_buffers import fixed_width
from statelib.columns.windowed_type import WindowedType
from statelib.errors.kinds import ConfigurationError
from statelib.serdes.base import Lenient, StrictSerde
from statelib.serdes.plain import BytesSerde, FixedWidthSerde, StringSerde
from statelib.serdes.rows import RowSerde
from statelib.serdes.windowed import WindowedKeySerde

if TYPE_CHECKING:
    from collections.abc import Mapping

    from statelib.serdes.base import Serde


def serialized(values: pa.Array) -> pa.BinaryArray:
    """The bytes of values by `serde_for` their type."""
    return serde_for(values.type).serialize(values)


def serde_for(arrow_type: pa.DataType) -> Serde:
    """The default serde of an Arrow type: Kafka's own if it has one, such as ``LongSerializer`` (`statelib.serdes`).

    Raises:
        ConfigurationError: The type has none.
    """
    if pa.types.is_dictionary(arrow_type):
        return DictionarySerde(arrow_type)
    if isinstance(arrow_type, WindowedType):
        return WindowedKeySerde(arrow_type, serde_for(arrow_type.key_type))
    if pa.types.is_string(arrow_type) or pa.types.is_large_string(arrow_type) or pa.types.is_string_view(arrow_type):
        return StringSerde(arrow_type)
    if pa.types.is_binary(arrow_type) or pa.types.is_large_binary(arrow_type) or pa.types.is_binary_view(arrow_type):
        return BytesSerde(arrow_type)
    if fixed_width(arrow_type) is not None:
        return FixedWidthSerde(arrow_type)
    if pa.types.is_null(arrow_type) or (pa.types.is_nested(arrow_type) and not pa.types.is_union(arrow_type)):
        return RowSerde(arrow_type)
    raise ConfigurationError(
        f"there is no serde for values of type {arrow_type}", next_step="map them to another type, or name a serde"
    )


@dataclass(frozen=True, slots=True)
class DictionarySerde(StrictSerde):
    """A dictionary-encoded column has the bytes of its values."""

    arrow_type: pa.DataType

    def serialize(self, values: pa.Array) -> pa.BinaryArray:
        """See `Serde`."""
        return self._inner.serialize(values.dictionary_decode())

    def deserialize_lenient(self, data: pa.BinaryArray) -> Lenient:
        """See `Serde`."""
        values, bad, reasons = self._inner.deserialize_lenient(data)
        return Lenient(values.dictionary_encode().cast(self.arrow_type), bad, reasons)

    def describe(self) -> Mapping[str, object]:
        """See `Serde`."""
        return {"serde": "dictionary", "type": str(self.arrow_type)}

    @property
    def _inner(self) -> Serde:
        return serde_for(self.arrow_type.value_type)
