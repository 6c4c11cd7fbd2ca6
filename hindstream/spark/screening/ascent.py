"""Whether the rows of a partition ascend: then no two of them agree, and they need not be compared with each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from statelib.columns.row_hash import hash_rows

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from hindstream.spark.expectations.flat_tables import Column


def is_whole_number(column: Column) -> bool:
    """Whether values of a column are whole numbers, to be compared as such."""
    return bool(pa.types.is_integer(column.type) or pa.types.is_timestamp(column.type))


def is_text(column: Column) -> bool:
    """Whether values of a column are strings or bytes, which a file may hold as a dictionary."""
    return bool(pa.types.is_string(column.type) or pa.types.is_binary(column.type))


def numbers_that_ascend(tables: Iterable[pa.Table]) -> list[str]:
    """The columns, all of whole numbers, in which each row has more than the one before.

    Args:
        tables: Of one partition, with rows, one after the other; no more are taken than it needs to know.
    """
    last: dict[str, int | None] | None = None
    for table in tables:
        names = table.column_names if last is None else last
        before = last or {}
        last = {name: end for name in names if (end := _end(table.column(name), before.get(name))) is not None}
        if not last:
            break
    return list(last or ())


def _end(numbers: pa.ChunkedArray, last: int | None) -> int | None:
    """The last of ``numbers``, at least one, if they ascend strictly from above ``last``; else None."""
    array = _whole(numbers)
    ascend = array is not None and (last is None or array[0] > last) and bool(np.all(array[1:] > array[:-1]))
    return int(array[-1]) if array is not None and ascend else None


def keys_of_ascending_rows(tables: Iterable[pa.Table], number: str, key: str) -> NDArray[np.uint64] | None:
    """The different keys, as hashes, if rows ascend strictly by ``number`` and, where that is the same, by ``key``.

    So do the final results of windows, which leave in the order of time and key.

    Args:
        tables: Of one partition, with rows, one after the other; no more are taken than it needs to know.
        number: A column of whole numbers.
        key: A column of strings or bytes.

    Returns:
        uint64, ascending; None: rows do not ascend, or it would take as long to see as to compare them: a value is
        missing, or the keys of a table are no dictionary.
    """
    hashes = []
    before: tuple[int, object] | None = None
    for table in tables:
        values, keys = _whole(table.column(number)), table.column(key).combine_chunks()
        rank = _ranks(keys)
        if values is None or rank is None:
            return None
        ascend = (values[1:] > values[:-1]) | ((values[1:] == values[:-1]) & (rank[1:] > rank[:-1]))
        first, last = ((int(values[at]), keys[at].as_py()) for at in (0, -1))
        if not ascend.all() or (before is not None and first <= before):
            return None
        before = last
        hashes.append(hash_rows([keys.dictionary]))
    return np.unique(np.concatenate(hashes)) if hashes else np.empty(0, np.uint64)


def _ranks(keys: pa.Array) -> NDArray[np.int32] | None:
    """For each key its place in the order of its dictionary's values; None if that is no dictionary to go by."""
    if not isinstance(keys, pa.DictionaryArray) or keys.null_count or keys.dictionary.null_count:
        return None
    values = keys.dictionary
    if len(pc.unique(values)) < len(values):
        return None
    place = np.empty(len(values), np.int32)
    place[pc.sort_indices(values).to_numpy()] = np.arange(len(values))
    ranks: NDArray[np.int32] = place[keys.indices.to_numpy()]
    return ranks


def _whole(numbers: pa.ChunkedArray) -> NDArray[np.integer] | None:
    """Whole numbers; None if they are no such numbers, or one is missing."""
    if pa.types.is_timestamp(numbers.type):
        numbers = numbers.cast(pa.int64())
    return None if numbers.null_count or not pa.types.is_integer(numbers.type) else numbers.to_numpy()
