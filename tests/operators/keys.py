"""Keys as the files of a topic give them: now plain, now as a dictionary."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from statelib.records.key_column import KeyColumn

if TYPE_CHECKING:
    from collections.abc import Sequence


def key_column(keys: Sequence[object], key_type: pa.DataType) -> KeyColumn:
    """A column of these keys: strings and bytes are encoded where there is an odd number of them.

    The dictionary has its keys in reverse, and one that no record has, as that of a file may.
    """
    plain = pa.array(keys, key_type)
    if len(plain) % 2 == 0 or not (pa.types.is_string(key_type) or pa.types.is_binary(key_type)):
        return KeyColumn(plain)
    encoded = plain.dictionary_encode()
    last = len(encoded.dictionary)
    dictionary = pa.concat_arrays([encoded.dictionary, pa.array(["nobody's"], key_type)])
    indices = [None if index is None else last - index for index in encoded.indices.to_pylist()]
    return KeyColumn(pa.DictionaryArray.from_arrays(pa.array(indices, pa.int32()), dictionary[::-1]))
