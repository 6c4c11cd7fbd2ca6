"""Rows of any type as 64-bit hashes: equal rows have equal ones, and different rows hardly ever."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from statelib.columns.arrow_buffers import fixed_values, fixed_width, indices_of, spans_of, valid_of
from statelib.columns.hashing import fold_words, hash_spans
from statelib.columns.row_format import encode_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


_SEED = 0x9E3779B97F4A7C15
_NUMBERS = (1, 2, 4, 8)
_EVERYWHERE = np.empty(0, np.bool_)


def hash_rows(columns: Sequence[pa.Array]) -> NDArray[np.uint64]:
    """uint64[n]: one hash for each row of ``columns``, at least one, all n values long.

    A dictionary stands for its values. Null equals null, NaN equals NaN, and 0.0 equals -0.0. The hash of a row is the
    same in every process of a machine with the same byte order; it is for comparing, not for storing.
    """
    hashes = np.full(len(columns[0]), _SEED, np.uint64)
    for column in columns:
        is_plain = not isinstance(column, pa.DictionaryArray) or not column.dictionary.null_count
        values = column if is_plain else column.dictionary_decode()
        valid = valid_of(values) if values.null_count else _EVERYWHERE
        fold_words(_words(values), valid, hashes)
    return hashes


def _words(column: pa.Array) -> NDArray[np.int64]:
    """A word for each value: the value if it fits, else a hash of its bytes; any word for a null."""
    if isinstance(column, pa.DictionaryArray):
        of_dictionary = _words(column.dictionary) if len(column.dictionary) else np.zeros(1, np.int64)
        words: NDArray[np.int64] = of_dictionary[indices_of(column)]
        return words
    column = _canonical(column)
    width = fixed_width(column.type)
    if width in _NUMBERS:
        values = fixed_values(column)
        return values.view(np.int64) if values.dtype == np.uint64 else values.astype(np.int64)
    if pa.types.is_string(column.type) or pa.types.is_binary(column.type):
        data, start, length = spans_of(column)
    else:
        data, start, length = spans_of(encode_rows(pa.StructArray.from_arrays([column], ["value"])))
    hashes = np.empty(len(column), np.uint64)
    hash_spans(data, start, length, hashes)
    return hashes.view(np.int64)


def _canonical(column: pa.Array) -> pa.Array:
    """Floating-point numbers that are equal get equal bytes."""
    if not pa.types.is_floating(column.type):
        return column
    positive = pc.add(column, pa.scalar(0.0, column.type))  # -0.0 + 0.0 is 0.0
    return pc.if_else(pc.is_nan(positive), pa.scalar(float("nan"), column.type), positive)
