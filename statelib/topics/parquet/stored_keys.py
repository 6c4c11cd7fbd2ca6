"""Keys of a topic on their way into a file, plain or as a dictionary and indices: the same bytes either way.

Strings and bytes that repeat are stored as a dictionary anyway. Where they come as one (`KeyColumn.compact`), Parquet's
writer takes over the indices instead of hashing each key again. What it is given is then always the dictionary that it
would have made itself: of the keys of one row group alone, in the order in which they first come.

The key of a windowed record is a struct, of which its field ``key`` may be a dictionary.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from statelib.columns.arrow_buffers import valid_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

KEY = "key"
"""Name of the column, and in the struct of a windowed key of its field."""


def type_to_write(found: pa.DataType, key: pa.DataType) -> pa.DataType:
    """The type in which files take over keys of type ``found`` where a topic has the type ``key``: encoded, or that."""
    if not pa.types.is_struct(key):
        return _encoded_or_plain(found, key)
    if not pa.types.is_struct(found) or KEY not in found.names:
        return key
    inner = found.field(KEY).type
    return pa.struct([f.with_type(_encoded_or_plain(inner, f.type)) if f.name == KEY else f for f in key])


def _encoded_or_plain(found: pa.DataType, key: pa.DataType) -> pa.DataType:
    encoded = pa.dictionary(pa.int32(), key)
    return encoded if _is_encodable(key) and found.equals(encoded) else key


def stored_key(type_: pa.DataType) -> str:
    """The Parquet column that may hold keys of a type as a dictionary."""
    return f"{KEY}.{KEY}" if pa.types.is_struct(type_) else KEY


def concat_records(parts: Sequence[pa.Table]) -> pa.Table:
    """Records of one topic, one part after the other, nothing copied; keys stay encoded if all are."""
    filled = [part for part in parts if part.num_rows] or parts[:1]
    if len({part.schema.field(KEY).type for part in filled}) > 1:
        filled = [with_plain_keys(part) for part in filled]
    return pa.concat_tables(filled)


def with_plain_keys(records: pa.Table) -> pa.Table:
    """The records with each key written out."""
    return _with_keys(records, lambda keys: keys.dictionary_decode() if pa.types.is_dictionary(keys.type) else keys)


def with_encoded_keys(records: pa.Table) -> pa.Table:
    """The records of one row group, of one chunk, with their keys as described above, if those can be encoded."""
    return _with_keys(records, _encoded)


def _encoded(keys: pa.Array) -> pa.Array:
    if not pa.types.is_dictionary(keys.type):
        return keys.dictionary_encode() if _is_encodable(keys.type) else keys
    from statelib.columns.counting import renumber  # noqa: PLC0415 - numba, which readers of topics do without

    found, number = renumber(keys.indices.drop_null().to_numpy(), len(keys.dictionary))
    indices = pa.array(number)
    if keys.null_count:
        valid = valid_of(keys.indices)
        places = np.zeros(len(keys), np.int32)
        places[valid] = number
        indices = pa.array(places, mask=~valid)
    return pa.DictionaryArray.from_arrays(indices, keys.dictionary.take(pa.array(found)))


def _is_encodable(key: pa.DataType) -> bool:
    return bool(pa.types.is_string(key) or pa.types.is_binary(key))


def _with_keys(records: pa.Table, changed: Callable[[pa.Array], pa.Array]) -> pa.Table:
    """The records with their keys, or the field for them in those of windowed records, changed chunk by chunk."""
    chunks = records.column(KEY).chunks
    new = [_with_key(chunk, changed) for chunk in chunks]
    if all(a is b for a, b in zip(new, chunks, strict=True)):
        return records
    return records.set_column(records.schema.get_field_index(KEY), KEY, pa.chunked_array(new))


def _with_key(keys: pa.Array, changed: Callable[[pa.Array], pa.Array]) -> pa.Array:
    if not pa.types.is_struct(keys.type):
        return changed(keys)
    place = keys.type.get_field_index(KEY)
    if place < 0:
        return keys
    fields = keys.flatten()
    new = changed(fields[place])
    if new is fields[place]:
        return keys
    fields[place] = new
    mask = keys.is_null() if keys.null_count else None
    return pa.StructArray.from_arrays(fields, [field.name for field in keys.type], mask=mask)
