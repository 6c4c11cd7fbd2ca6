"""The timestamped key-value store: of each key the value that arrived last, and that record's timestamp.

It overwrites by arrival: a put with an older timestamp wins all the same (Kafka's ``TimestampedKeyValueStore``; bytes:
`statelib.operators.tables.codec`).

Point access (Kafka's ``KeyValueStore``)::

    store = KeyValueStore(backend, "rates")
    store.put(b"EUR", b"1.08", 1_000)
    store.get(b"EUR")  # -> ValueAndTimestamp(b"1.08", 1000)
    store.range(b"A", b"F")  # keys from b"A" to b"F", both included, in bytewise order

Batch access, over the same bytes, is `load` and `store`: what an operator with a working set uses. A store in memory is
the same over a `MemoryBackend`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from statelib.columns.arrow_buffers import valid_of
from statelib.errors.kinds import InputError
from statelib.operators.tables.codec import FORMAT_VERSION, decode_value, encode_value, encode_values
from statelib.operators.tables.value_and_timestamp import ValueAndTimestamp
from statelib.records.batch import NO_TIMESTAMP
from statelib.serdes.single_values import from_bytes, to_bytes
from statelib.stores.backend import WriteBatch, end_of_prefix
from statelib.stores.header import Header

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from statelib.serdes import Serde
    from statelib.stores.backend import Backend
    from statelib.stores.byte_columns import Column


@dataclass(frozen=True, slots=True)
class KeyValueRows:
    """What a store holds of some keys, as columns of one length.

    Attributes:
        timestamp: int64, ms; `NO_TIMESTAMP`: the key has no value.
        rows: binary, the serialised values; null where there is none.
    """

    timestamp: NDArray[np.int64]
    rows: pa.Array


class KeyValueStore:
    """See the module's docstring.

    Keys and values of the point API are bytes, or what the serdes take. A key is never null, and a null value deletes.

    Args:
        backend: Where the families are.
        name: Of the store; its families are ``families(name)``.
        key_serde: Default: keys are bytes.
        value_serde: Default: values are bytes.

    Raises:
        ConfigurationError: The store was written in another format.
        CorruptedDataError: Its header cannot be read.
    """

    def __init__(
        self, backend: Backend, name: str, *, key_serde: Serde | None = None, value_serde: Serde | None = None
    ) -> None:
        self._backend = backend
        self._name = name
        self._values, header = self.families(name)
        self._key_serde = key_serde
        self._value_serde = value_serde
        self.header = Header(backend, header, FORMAT_VERSION, name)

    @staticmethod
    def families(name: str) -> tuple[str, str]:
        """The backend families of the store called ``name``: the values, and the header."""
        return name, f"{name}.header"

    # Point access

    def get(self, key: Any) -> ValueAndTimestamp | None:
        """The value of ``key``, or None.

        Raises:
            InputError: The key is null.
        """
        raw = self._backend.get(self._values, self._raw_key(key))
        return None if raw is None else self._decoded(raw)

    def put(self, key: Any, value: Any, timestamp: int) -> None:
        """Sets the value of ``key``; None deletes it.

        Raises:
            InputError: The key is null, or the timestamp negative.
        """
        self.put_all([(key, value, timestamp)])

    def put_all(self, entries: Iterable[tuple[Any, Any, int]]) -> None:
        """Sets many (key, value, timestamp), all of them or none."""
        write = WriteBatch()
        for key, value, timestamp in entries:
            if timestamp < 0:
                raise InputError(f"timestamp {timestamp} is negative", store=self._name)
            self.add(key, value, timestamp, write)
        self._backend.write(write)

    def add(self, key: Any, value: Any, timestamp: int, write: WriteBatch) -> None:
        """Adds a put to ``write``; `NO_TIMESTAMP` where the store keeps none.

        Raises:
            InputError: The key is null.
        """
        row = to_bytes(value, self._value_serde)
        if row is None:
            write.delete(self._values, self._raw_key(key))
        else:
            write.put(self._values, self._raw_key(key), encode_value(timestamp, row))

    def put_if_absent(self, key: Any, value: Any, timestamp: int) -> ValueAndTimestamp | None:
        """Sets the value of ``key`` if it has none; gives the one that it has."""
        there = self.get(key)
        if there is None:
            self.put(key, value, timestamp)
        return there

    def delete(self, key: Any) -> ValueAndTimestamp | None:
        """Removes ``key``, and gives what it had."""
        there = self.get(key)
        self.put(key, None, 0)
        return there

    def range(
        self, first: Any = None, last: Any = None, *, reverse: bool = False
    ) -> Iterator[tuple[Any, ValueAndTimestamp]]:
        """Keys from ``first`` to ``last``, both included, with their values, in bytewise order.

        Args:
            first: None: from the first key.
            last: None: to the last key.
            reverse: The last one first (Kafka's ``reverseRange``).
        """
        begin = b"" if first is None else self._raw_key(first)
        end = None if last is None else self._raw_key(last) + b"\x00"
        return self._scan(begin, end, reverse=reverse)

    def prefix_scan(self, prefix: bytes) -> Iterator[tuple[Any, ValueAndTimestamp]]:
        """Keys whose bytes begin with ``prefix``, with their values, in bytewise order."""
        return self._scan(prefix, end_of_prefix(prefix), reverse=False)

    def all(self, *, reverse: bool = False) -> Iterator[tuple[Any, ValueAndTimestamp]]:
        """All keys with their values, in bytewise order."""
        return self._scan(b"", None, reverse=reverse)

    def approximate_num_entries(self) -> int:
        """Roughly how many keys there are."""
        return self._backend.approximate_keys(self._values)

    # Batch access

    @property
    def is_empty(self) -> bool:
        """Whether there is no key at all: look-ups can be skipped."""
        return self._backend.is_empty(self._values)

    def load(self, keys: Sequence[bytes]) -> KeyValueRows:
        """What the store holds of ``keys`` (serialised, each once), in their order."""
        timestamp = np.full(len(keys), NO_TIMESTAMP, dtype=np.int64)
        rows: list[bytes | None] = [None] * len(keys)
        if not self.is_empty:
            for i, raw in enumerate(self._backend.multi_get(self._values, keys)):
                if raw is not None:
                    timestamp[i], rows[i] = decode_value(raw, self._name)
        return KeyValueRows(timestamp, pa.array(rows, pa.binary()))

    def store(self, keys: Column, changed: KeyValueRows, schema: pa.Schema, write: WriteBatch) -> None:
        """Adds to ``write`` what makes the values of ``keys`` those of ``changed``.

        Args:
            keys: Serialised, each once.
            changed: Their values, in that order.
            schema: The types of a row.
            write: The batch that also carries the task's position.
        """
        self.header.write(schema, write)
        there = valid_of(changed.rows)
        put, deleted = pa.array(there), pa.array(~there)
        values = encode_values(changed.timestamp[there], changed.rows.filter(put))
        write.put_columns(self._values, keys.filter(put), values)
        write.delete_columns(self._values, keys.filter(deleted))

    def _scan(self, first: bytes, end: bytes | None, *, reverse: bool) -> Iterator[tuple[Any, ValueAndTimestamp]]:
        for key, raw in self._backend.scan(self._values, first, end, reverse=reverse):
            yield from_bytes(key, self._key_serde), self._decoded(raw)

    def _decoded(self, raw: bytes) -> ValueAndTimestamp:
        timestamp, row = decode_value(raw, self._name)
        return ValueAndTimestamp(from_bytes(row, self._value_serde), timestamp)

    def _raw_key(self, key: Any) -> bytes:
        raw = to_bytes(key, self._key_serde)
        if raw is None:
            raise InputError("a key-value store has no null key", store=self._name)
        return raw
