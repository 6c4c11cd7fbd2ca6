"""Keys of a topic on their way into a file, plain or as a dictionary and indices: the same bytes either way.

Strings and bytes that repeat are stored as a dictionary anyway. Where they come as one (`KeyColumn.compact`), Parquet's
writer takes over the indices instead of hashing each key again. What it is given is then always the dictionary that it
would have made itself: of the keys of one row group alone, in the order in which they first come.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from statelib.arrow_buffers import valid_of

if TYPE_CHECKING:
    from collections.abc import Sequence

KEY = "key"


def is_encoded_as(found: pa.DataType, key: pa.DataType) -> bool:
    """Whether an array of type ``found`` is a dictionary of keys of type ``key`` that files can take over."""
    return bool(found.equals(pa.dictionary(pa.int32(), key))) and _is_encodable(key)


def concat_records(parts: Sequence[pa.Table]) -> pa.Table:
    """Records of one topic, one part after the other, nothing copied; keys stay encoded if all are."""
    filled = [part for part in parts if part.num_rows] or parts[:1]
    if len({part.schema.field(KEY).type for part in filled}) > 1:
        filled = [with_plain_keys(part) for part in filled]
    return pa.concat_tables(filled)


def with_plain_keys(records: pa.Table) -> pa.Table:
    """The records with each key written out."""
    keys = records.column(KEY)
    return _with_keys(records, keys.cast(keys.type.value_type)) if pa.types.is_dictionary(keys.type) else records


def with_encoded_keys(records: pa.Table) -> pa.Table:
    """The records of one row group, of one chunk, with their keys as described above, if those can be encoded."""
    keys = records.column(KEY)
    if not pa.types.is_dictionary(keys.type):
        return _with_keys(records, keys.dictionary_encode()) if _is_encodable(keys.type) else records
    (chunk,) = keys.chunks
    return _with_keys(records, _renumbered(chunk))


def _renumbered(keys: pa.DictionaryArray) -> pa.DictionaryArray:
    """The same keys, those of the dictionary that are there, as they first come."""
    from statelib.kernels.counting import renumber  # noqa: PLC0415 - numba, which readers of topics do without

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


def _with_keys(records: pa.Table, keys: pa.Array | pa.ChunkedArray) -> pa.Table:
    return records.set_column(records.schema.get_field_index(KEY), KEY, keys)
