"""What keys and values are in their bytes, or in their text: by the serdes that were declared for them.

In JSON and CSV, text stands for bytes in base64, as Connect's ``JsonConverter`` and Aiven's writers have it.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from statelib.errors.kinds import ConfigurationError
from statelib.ingest.envelopes import placed
from statelib.ingest.formats.rows import BadRow
from statelib.serdes import StringSerde
from statelib.serdes.base import within_reach

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from statelib.ingest.values.deserializers import Deserializer


@dataclass(frozen=True, slots=True)
class Contents:
    """How keys and values are read; travels to workers.

    Attributes:
        types: Of fields of values in JSON.
        key: Reads keys that are bytes; None: they are what they are.
        value: Reads values that are bytes; None: the same.
    """

    types: Mapping[str, pa.DataType] = field(default_factory=dict)
    key: Deserializer | None = None
    value: Deserializer | None = None

    @property
    def reads_bytes(self) -> bool:
        """Whether keys or values are bytes that are read."""
        return self.key is not None or self.value is not None

    def fields(self, value: pa.Array, numbers: NDArray[np.int64]) -> tuple[dict[str, pa.Array], pa.Array, list[BadRow]]:
        """The fields of values: see `statelib.ingest.envelopes.placed.expanded`."""
        if self.value is None:
            return placed.expanded(value, numbers, self.types)
        read, bad = _read(value, self.value, numbers, "value")
        if isinstance(self.value, StringSerde):
            return {placed.ONLY_FIELD: read}, read.is_null(), bad
        fields, nothing, worse = placed.expanded(read, numbers, self.types)
        known = {row.row for row in bad}
        return fields, nothing, [*bad, *(row for row in worse if row.row not in known)]

    def value_of(self, value: pa.Array, numbers: NDArray[np.int64]) -> tuple[pa.Array, list[BadRow]]:
        """Values as they are read, null where they cannot be, and the rows of these; JSON as structs."""
        read, bad = _read(value, self.value, numbers, "value")
        if not pa.types.is_string(read.type) or isinstance(self.value, StringSerde):
            return read, bad
        fields, nothing, bad = self.fields(value, numbers)
        names = [name for name, column in fields.items() if not pa.types.is_null(column.type)]
        if not names or (names == [placed.ONLY_FIELD] and fields[placed.ONLY_FIELD].equals(read)):
            return read, bad
        return pa.StructArray.from_arrays([fields[name] for name in names], names, mask=nothing), bad

    def keys(self, key: pa.Array, numbers: NDArray[np.int64]) -> tuple[pa.Array, list[BadRow]]:
        """The same of keys."""
        return _read(key, self.key, numbers, "key")


def _read(
    given: pa.Array, deserializer: Deserializer | None, numbers: NDArray[np.int64], which: str
) -> tuple[pa.Array, list[BadRow]]:
    if deserializer is None:
        return given, []
    data, reasons = _bytes_of(given, which)
    read, bad, why = within_reach(deserializer.deserialize_lenient(data))
    found = [reason or told for reason, told in zip(reasons, why.to_pylist(), strict=True)]
    if which == "key":  # what reads them was perhaps not named, but followed from that of values
        found = [reason and f"{reason} (--key-serde says how keys are read)" for reason in found]
    rows = np.flatnonzero(bad | np.array([reason is not None for reason in reasons], np.bool_))
    return read, [_bad(int(numbers[row]), which, found[row] or "", data[row], given[row]) for row in rows.tolist()]


def _bad(number: int, which: str, reason: str, data: pa.Scalar, given: pa.Scalar) -> BadRow:
    raw = data.as_py()
    return BadRow(number, which, reason, raw if raw is not None else str(given.as_py()).encode())


def _bytes_of(given: pa.Array, which: str) -> tuple[pa.BinaryArray, list[str | None]]:
    """The bytes of keys or values, and why some have none."""
    type_ = given.type
    if pa.types.is_null(type_):
        return pa.nulls(len(given), pa.binary()), [None] * len(given)
    if pa.types.is_string(type_) or pa.types.is_large_string(type_):
        texts = given.to_pylist()
        made = [None if text is None else _from_base64(text) for text in texts]
        no_base64 = [text is not None and data is None for text, data in zip(texts, made, strict=True)]
        return pa.array(made, pa.binary()), ["it is no base64" if wrong else None for wrong in no_base64]
    if not is_bytes(type_):
        what = f"a serde reads bytes, and the {which}s in the files are {type_}"
        raise ConfigurationError(what, field=which, next_step=f"leave --{which}-serde out")
    return given.cast(pa.binary()), [None] * len(given)


def is_bytes(type_: pa.DataType) -> bool:
    """Whether values of a type are bytes."""
    return bool(pa.types.is_binary(type_) or pa.types.is_large_binary(type_) or pa.types.is_fixed_size_binary(type_))


def _from_base64(text: str) -> bytes | None:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
