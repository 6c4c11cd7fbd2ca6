"""The keys of a batch of records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from statelib.columns.arrow_buffers import valid_of
from statelib.columns.gather import compress
from statelib.columns.windowed_type import MIXED, TIME, KeyWindows, WindowedType, archived_type
from statelib.serdes import serde_for
from statelib.serdes.windowed import with_windows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Windows:
    """The window of each windowed key; int64 milliseconds, ``start`` inclusive.

    ``end`` is exclusive for tumbling and hopping windows, inclusive for sliding windows and sessions.
    """

    start: NDArray[np.int64]
    end: NDArray[np.int64]


class KeyColumn:
    """Keys that stay dictionary-encoded, if they come so, until somebody needs them plain.

    The files of a topic mostly hold each key once, and an index a record. What depends on the key alone, as its code
    and its partition, is then worked out once a key, and a choice of records copies indices.

    Args:
        keys: Of any Arrow type; a dictionary stands for an array of its values.
    """

    __slots__ = ("_encoded", "_plain")

    def __init__(self, keys: pa.Array) -> None:
        if isinstance(keys, pa.DictionaryArray) and keys.dictionary.null_count:  # Parquet has none, a mapper's may
            keys = keys.dictionary_decode()
        self._encoded = keys
        self._plain = None if isinstance(keys, pa.DictionaryArray) else keys

    @staticmethod
    def of(keys: pa.Array) -> KeyColumn:
        """The column of keys that may be windowed: an array of any type, a `WindowedType` among them."""
        return WindowedKeys.of(keys) if isinstance(keys.type, WindowedType) else KeyColumn(keys)

    @staticmethod
    def deserialized(serialized: pa.Array, key: pa.DataType) -> KeyColumn:
        """Keys of type ``key`` of which these are the bytes, or a dictionary of bytes: what `serialized` gives."""
        if isinstance(serialized, pa.DictionaryArray):
            if isinstance(key, WindowedType):
                return KeyColumn.of(serde_for(key).deserialize(serialized.dictionary_decode()))
            keys = serde_for(key).deserialize(serialized.dictionary)
            return KeyColumn(pa.DictionaryArray.from_arrays(serialized.indices, keys))
        return KeyColumn.of(serde_for(key).deserialize(serialized))

    def __len__(self) -> int:
        return len(self._encoded)

    @property
    def windows(self) -> Windows | None:
        """Those of windowed keys."""
        return None

    @property
    def without_windows(self) -> KeyColumn:
        """The keys alone."""
        return self

    @property
    def type(self) -> pa.DataType:
        """Of each key."""
        return self._encoded.type.value_type if self._plain is None else self._plain.type

    @property
    def array(self) -> pa.Array:
        """As an array of `type`."""
        return self.plain

    @property
    def plain(self) -> pa.Array:
        """As mappers see them: an array, of windowed keys without their windows."""
        if self._plain is None:
            self._plain = self._encoded.dictionary_decode()
        return self._plain

    @property
    def compact(self) -> pa.Array:
        """As they come, but plain if encoded ones bring more keys than there are records: a few out of many."""
        if isinstance(self._encoded, pa.DictionaryArray) and len(self._encoded.dictionary) > len(self):
            return self.plain
        return self._encoded

    @property
    def archived(self) -> pa.Array:
        """As archives have them: `compact`; windowed ones as structs of the key and the bounds of its window."""
        return self.compact

    def take(self, chosen: pa.Array) -> KeyColumn:
        """The keys at the indices ``chosen`` (int64)."""
        return KeyColumn(self._encoded.take(chosen))

    def filter(self, keep: pa.BooleanArray) -> KeyColumn:
        """The keys for which ``keep`` is true."""
        return KeyColumn(self._encoded.filter(keep))

    def slice(self, start: int, length: int) -> KeyColumn:
        """``length`` keys from ``start`` on, without copying."""
        return KeyColumn(self._encoded.slice(start, length))

    def valid(self) -> NDArray[np.bool_]:
        """bool[n]: which are not null."""
        return valid_of(self._encoded)

    def serialized(self) -> pa.Array:
        """The bytes of each key, by `serde_for` its type; a dictionary of bytes where keys are encoded."""
        if isinstance(self._encoded, pa.DictionaryArray):
            indices, keys = self._encoded.indices, self._encoded.dictionary
            return pa.DictionaryArray.from_arrays(indices, serde_for(keys.type).serialize(keys), safe=False)
        return serde_for(self._encoded.type).serialize(self._encoded)

    def placed_by(self) -> pa.Array:
        """The bytes that decide in which partition each is: all windows of a key are in one (``serializeBaseKey``)."""
        return self.serialized()


class WindowedKeys(KeyColumn):
    """Keys that have windows (Kafka's ``Windowed``): the window is part of the key.

    Args:
        keys: Without the windows; may be windowed themselves.
        windows: Of each.
        kind: What is known of them.
        code: int64, the code of each of ``keys`` in the task's `KeyTable`, if known. (That of the whole key is
            another: `statelib.operators.key_codes`.)
    """

    __slots__ = ("_array", "_keys", "_windows", "code", "kind")

    def __init__(
        self, keys: KeyColumn, windows: Windows, kind: KeyWindows, code: NDArray[np.int64] | None = None
    ) -> None:
        self._keys = keys
        self._windows = windows
        self._array: pa.Array | None = None
        self.kind = kind
        self.code = code

    @staticmethod
    def of(keys: pa.Array) -> WindowedKeys:
        """Of an array of a `WindowedType`."""
        stored = keys.storage
        start, end = (np.asarray(stored.field(i).cast(pa.int64()).fill_null(0)) for i in (1, 2))
        keys_alone = KeyColumn.of(pc.struct_field(stored, [0]))  # null where the whole is
        return WindowedKeys(keys_alone, Windows(start, end), keys.type.windows)

    def __len__(self) -> int:
        return len(self._windows.start)

    @property
    def windows(self) -> Windows:
        """See `KeyColumn`."""
        return self._windows

    @property
    def without_windows(self) -> KeyColumn:
        """See `KeyColumn`."""
        return self._keys

    @property
    def type(self) -> WindowedType:
        """See `KeyColumn`."""
        return WindowedType(self._keys.type, self.kind)

    @property
    def array(self) -> pa.Array:
        """See `KeyColumn`."""
        if self._array is None:
            key_type = self.type
            self._array = pa.ExtensionArray.from_storage(
                key_type, self._as_struct(self._keys.array, key_type.storage_type)
            )
        return self._array

    @property
    def plain(self) -> pa.Array:
        """See `KeyColumn`; those of keys that are windowed twice are structs, as `archived`."""
        return self._keys.plain if self._keys.windows is None else self._keys.archived

    @property
    def compact(self) -> pa.Array:
        """See `KeyColumn`."""
        return self.array

    @property
    def archived(self) -> pa.Array:
        """See `KeyColumn`."""
        keys = self._keys.archived
        if isinstance(keys, pa.DictionaryArray) and pa.types.is_nested(keys.type.value_type):
            keys = self._keys.plain  # no writer takes a dictionary of structs inside a struct
        fields = [pa.field("key", keys.type), *list(archived_type(self.type))[1:]]
        return self._as_struct(keys, pa.struct(fields))

    def take(self, chosen: pa.Array) -> WindowedKeys:
        """See `KeyColumn`."""
        indices = np.asarray(chosen)
        return self._chosen(self._keys.take(chosen), lambda numbers: numbers[indices])

    def filter(self, keep: pa.BooleanArray) -> WindowedKeys:
        """See `KeyColumn`."""
        kept = np.asarray(keep)
        return self._chosen(self._keys.filter(keep), lambda numbers: compress(numbers, kept))

    def slice(self, start: int, length: int) -> WindowedKeys:
        """See `KeyColumn`."""
        return self._chosen(self._keys.slice(start, length), lambda numbers: numbers[start : start + length])

    def valid(self) -> NDArray[np.bool_]:
        """See `KeyColumn`."""
        return self._keys.valid()

    def serialized(self) -> pa.Array:
        """See `KeyColumn`.

        Raises:
            ConfigurationError: The windows are of several kinds.
        """
        keys = self._keys.serialized()
        if isinstance(keys, pa.DictionaryArray):
            keys = keys.dictionary_decode()
        return with_windows(keys, self.kind, serde_for(self._keys.type), self._windows.start, self._windows.end)

    def placed_by(self) -> pa.Array:
        """See `KeyColumn`."""
        return self._keys.placed_by()

    def _chosen(self, keys: KeyColumn, of: Callable[[NDArray[np.int64]], NDArray[np.int64]]) -> WindowedKeys:
        windows = Windows(of(self._windows.start), of(self._windows.end))
        return WindowedKeys(keys, windows, self.kind, None if self.code is None else of(self.code))

    def _as_struct(self, keys: pa.Array, struct: pa.StructType) -> pa.StructArray:
        times = [pa.array(time).cast(TIME) for time in (self._windows.start, self._windows.end)]
        mask = keys.is_null() if keys.null_count else None
        return pa.StructArray.from_arrays([keys, *times], fields=list(struct), mask=mask)


def window_columns(keys: KeyColumn) -> dict[str, pa.Array]:
    """What mappers see of windowed keys beside ``key``: ``window_start`` and ``window_end``, int64 ms; else nothing."""
    if keys.windows is None:
        return {}
    return {"window_start": pa.array(keys.windows.start), "window_end": pa.array(keys.windows.end)}


def concat_keys(columns: Sequence[KeyColumn]) -> KeyColumn:
    """One column after the other; encoded if all are. Windows of different kinds are `MIXED` then."""
    windowed = [column for column in columns if isinstance(column, WindowedKeys)]
    if windowed:
        return _concat_windowed(windowed)
    arrays = [column._encoded for column in columns]  # noqa: SLF001 - of the same class
    if len({array.type for array in arrays}) > 1:
        arrays = [column.plain for column in columns]
    return KeyColumn(pa.concat_arrays(arrays))


def _concat_windowed(columns: Sequence[WindowedKeys]) -> WindowedKeys:
    start, end = (np.concatenate([getattr(column.windows, name) for column in columns]) for name in ("start", "end"))
    codes = [column.code for column in columns if column.code is not None]
    return WindowedKeys(
        concat_keys([column.without_windows for column in columns]),
        Windows(start, end),
        columns[0].kind if len({column.kind for column in columns}) == 1 else MIXED,
        np.concatenate(codes) if len(codes) == len(columns) else None,
    )
