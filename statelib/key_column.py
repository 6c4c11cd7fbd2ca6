"""The keys of a batch of records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import pyarrow as pa

from statelib.arrow_buffers import valid_of
from statelib.serdes import serde_for

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray


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

    @classmethod
    def deserialized(cls, serialized: pa.Array, key: pa.DataType) -> Self:
        """Keys of type ``key`` of which these are the bytes, or a dictionary of bytes: what `serialized` gives."""
        if isinstance(serialized, pa.DictionaryArray):
            keys = serde_for(key).deserialize(serialized.dictionary)
            return cls(pa.DictionaryArray.from_arrays(serialized.indices, keys))
        return cls(serde_for(key).deserialize(serialized))

    def __len__(self) -> int:
        return len(self._encoded)

    @property
    def type(self) -> pa.DataType:
        """Of each key."""
        return self._encoded.type.value_type if self._plain is None else self._plain.type

    @property
    def plain(self) -> pa.Array:
        """As an array of `type`."""
        if self._plain is None:
            self._plain = self._encoded.dictionary_decode()
        return self._plain

    @property
    def compact(self) -> pa.Array:
        """As they come, but plain if encoded ones bring more keys than there are records: a few out of many."""
        if isinstance(self._encoded, pa.DictionaryArray) and len(self._encoded.dictionary) > len(self):
            return self.plain
        return self._encoded

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


def concat_keys(columns: Sequence[KeyColumn]) -> KeyColumn:
    """One column after the other; encoded if all are."""
    arrays = [column._encoded for column in columns]  # noqa: SLF001 - of the same class
    if len({array.type for array in arrays}) > 1:
        arrays = [column.plain for column in columns]
    return KeyColumn(pa.concat_arrays(arrays))
