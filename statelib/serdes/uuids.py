"""Kafka's serde of UUIDs: their text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from statelib.errors.kinds import InputError
from statelib.serdes.base import StrictSerde
from statelib.serdes.plain import StringSerde
from statelib.serdes.spans import lenient

if TYPE_CHECKING:
    from collections.abc import Mapping

    from statelib.serdes.base import Lenient

_UUID = "^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$"


@dataclass(frozen=True, slots=True)
class UuidSerde(StrictSerde):
    """Kafka's ``UUIDSerializer``: the text of a UUID, such as ``123e4567-e89b-12d3-a456-426614174000``.

    Values are strings in lower case, as Java writes them. Java also reads texts with fewer digits, which no serializer
    writes; here they are undecodable.
    """

    @property
    def arrow_type(self) -> pa.DataType:
        """See `Serde`."""
        return pa.string()

    def serialize(self, values: pa.Array) -> pa.BinaryArray:
        """See `Serde`.

        Raises:
            InputError: A value is no UUID.
        """
        for value in values.to_pylist():
            if value is not None and not re.fullmatch(_UUID, value):
                raise InputError(f"{value!r} is no UUID", next_step="map it to one, or declare a string")
        return pc.utf8_lower(values).cast(pa.binary())

    def deserialize_lenient(self, data: pa.BinaryArray) -> Lenient:
        """See `Serde`."""
        texts, bad, reasons = StringSerde().deserialize_lenient(data)
        fits = pc.match_substring_regex(texts, _UUID).fill_null(True).to_numpy(zero_copy_only=False)
        said = np.where(~fits & ~bad, "not a UUID", reasons.to_numpy(zero_copy_only=False))
        return lenient(pc.utf8_lower(texts), said)

    def describe(self) -> Mapping[str, object]:
        """See `Serde`."""
        return {"serde": "uuid", "type": "string"}
