"""Hashes of values of any type, for finding what is equal.

Other than in `statelib.columns.row_hash`, 0.0 and -0.0 are different here, in lists as well, and lists are hashed
without a loop over their rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from statelib.columns.arrow_buffers import byte_buffers, fixed_values, fixed_width, indices_of, is_any_list, valid_of
from statelib.columns.hashing import fold_words, hash_spans
from statelib.columns.lists import lengths_of, parents_of
from statelib.columns.murmur3 import murmur3

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_SEED = 0x9E3779B97F4A7C15
_OTHER_SEED = 0xC2B2AE3D27D4EB4F
_NUMBERS = (1, 2, 4, 8)
_EVERYWHERE = np.empty(0, np.bool_)


def hash_columns(columns: Sequence[pa.Array], rows: int, *, other: bool = False) -> NDArray[np.uint64]:
    """uint64[rows]: a hash of each row of ``columns``, which may be none. Null equals null, and NaN equals NaN.

    Args:
        columns: All ``rows`` long.
        rows: How many there are.
        other: By other functions, so that rows whose hashes of both kinds are equal are equal but for one case in
            10**20 even among billions.
    """
    hashes = np.full(rows, _OTHER_SEED if other else _SEED, np.uint64)
    for column in columns:
        plain = column
        if isinstance(column, pa.DictionaryArray) and column.dictionary.null_count:
            plain = column.dictionary_decode()
        valid = valid_of(plain) if plain.null_count else _EVERYWHERE
        fold_words(_words(plain, other=other), valid, hashes)
    return hashes


def _words(column: pa.Array, *, other: bool) -> NDArray[np.int64]:  # noqa: PLR0911 - a kind of types each
    """A word for each value: the value if it fits, else a hash of it; any word for a null."""
    if column.null_count == len(column):
        return np.zeros(len(column), np.int64)
    if isinstance(column, pa.DictionaryArray):
        of_dictionary = _words(column.dictionary, other=other) if len(column.dictionary) else np.zeros(1, np.int64)
        chosen: NDArray[np.int64] = of_dictionary[indices_of(column)]
        return chosen
    if isinstance(column.type, pa.BaseExtensionType):
        return _words(column.storage, other=other)
    if pa.types.is_struct(column.type):
        return hash_columns(column.flatten(), len(column), other=other).view(np.int64)
    if is_any_list(column.type) or pa.types.is_map(column.type):
        return _words_of_lists(column, other=other)
    if pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), pa.scalar(float("nan"), column.type), column)
    if fixed_width(column.type) in _NUMBERS:
        values = fixed_values(column)
        return values.view(np.int64) if values.dtype == np.uint64 else values.astype(np.int64)
    if fixed_width(column.type) is not None:
        column = pa.Array.from_buffers(
            pa.binary(fixed_width(column.type)), len(column), column.buffers()[:2], offset=column.offset
        )
    return _words_of_bytes(column, other=other)


def _words_of_bytes(column: pa.Array, *, other: bool) -> NDArray[np.int64]:
    data, offsets, _ = byte_buffers(column)
    hashes = np.empty(len(column), np.uint64)
    if other:
        murmur3(data, offsets, hashes, np.empty(len(column), np.uint64))
    else:
        spans = offsets.astype(np.int64)
        hash_spans(data, spans[:-1], np.diff(spans), hashes)
    return hashes.view(np.int64)


def _words_of_lists(column: pa.Array, *, other: bool) -> NDArray[np.int64]:
    """The elements' hashes, each mixed with its place, added up; with their number."""
    if pa.types.is_map(column.type):
        column = _entries(column)
    lengths, parents = lengths_of(column), parents_of(column)
    ends = np.cumsum(lengths)
    places = np.arange(len(parents)) - (ends - lengths)[parents]
    hashes = hash_columns([column.flatten(), pa.array(places)], len(parents), other=other)
    sums = np.zeros(len(hashes) + 1, np.uint64)
    np.cumsum(hashes, out=sums[1:])  # modulo 2**64, as its differences
    of_elements = sums[ends] - sums[ends - lengths]
    return hash_columns([pa.array(of_elements), pa.array(lengths)], len(column), other=other).view(np.int64)


def _entries(maps: pa.MapArray) -> pa.ListArray:
    """Maps as lists of keys and items; equal maps have them in the same order, as in Arrow and in Delta."""
    offsets = np.asarray(maps.offsets)
    first, last = int(offsets[0]), int(offsets[-1])
    parts = [maps.keys.slice(first, last - first), maps.items.slice(first, last - first)]
    entries = pa.StructArray.from_arrays(parts, ["key", "value"])
    mask = maps.is_null() if maps.null_count else None
    return pa.ListArray.from_arrays(pa.array(offsets - first, pa.int32()), entries, mask=mask)
