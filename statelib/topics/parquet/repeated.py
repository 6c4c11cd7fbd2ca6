"""Counts the values of lists and maps, as the footer of a Parquet file does.

A page of a column that is no list has one value a record, so records show whether one was left out. Of a list they do
not: a damaged page header, which no checksum covers, may end the last list early.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow.parquet as pq


def values_in_footer(metadata: pq.FileMetaData, groups: Sequence[int], columns: Sequence[str] | None) -> int:
    """How many values the lists and maps of some row groups have, in all of ``columns`` (None: of all) together.

    As Parquet counts: a value for each leaf of each element, and one for each leaf where there is no element.
    """
    leaves = [metadata.schema.column(n) for n in range(metadata.num_columns)]
    chosen = [
        n
        for n, leaf in enumerate(leaves)
        if leaf.max_repetition_level > 0
        and (columns is None or any(f"{leaf.path}.".startswith(f"{column}.") for column in columns))
    ]
    return sum(metadata.row_group(group).column(n).num_values for group in groups for n in chosen)


def values_in(records: pa.RecordBatch) -> int:
    """How many values the lists and maps of ``records`` have, counted as `values_in_footer` does."""
    return sum(_values(column, is_repeated=False) for column in records.columns)


def _values(array: pa.Array, *, is_repeated: bool) -> int:
    type_ = array.type
    if pa.types.is_struct(type_):
        return sum(_values(inner, is_repeated=is_repeated) for inner in array.flatten())
    if pa.types.is_map(type_):
        return _values(array.cast(pa.list_(pa.struct([type_.key_field, type_.item_field]))), is_repeated=is_repeated)
    if pa.types.is_list(type_):
        filled = pc.sum(pc.greater(pc.list_value_length(array), 0)).as_py() or 0
        return (len(array) - filled) * _leaves(type_.value_type) + _values(array.flatten(), is_repeated=True)
    return len(array) if is_repeated else 0


def _leaves(type_: pa.DataType) -> int:
    if pa.types.is_nested(type_):
        return sum(_leaves(type_.field(n).type) for n in range(type_.num_fields))
    return 1
