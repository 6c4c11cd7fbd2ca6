"""What the footer of a staged file says of a column, as values: the extremes of what its rows can have.

A writer of Parquet keeps statistics of each column in each row group: how many values are missing, the least of the
others and the greatest. A condition on one column that some row meets only if the least value does, the greatest, a
missing one or NaN can be asked of these few values instead of the rows; where none of them meets it, no row does, and
the column need not be read. Of some columns the writer says only how many values are missing; that is enough for a
condition that asks nothing else.

A footer is as true as the code that wrote it, and as whole as the file's bytes: only ask it of files that this run has
written, and whose bytes have been compared with what was written (``check_bytes`` of `open_staged`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hindstream.spark.expectations.flat_tables import PARTITION
from statelib.topics.parquet.missing_counts import missing_values

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow.parquet as pq

    from hindstream.spark.expectations.flat_tables import Column

_TYPES = ("signed_integer", "floating", "boolean", "string", "binary", "timestamp", "date32")
"""Those whose statistics hold values as Arrow does, in the order that Arrow compares them."""


def bounds_of(parquet: pq.ParquetFile, column: Column, partition: int) -> pa.Table | None:
    """The extremes of a column, under its flat name, in a file of ``partition``.

    Returns:
        For each row group the least value and the greatest, and null if there is one; NaN for any column of floating
        point numbers, since statistics leave it out. None: the footer does not say.
    """
    if column == PARTITION:
        return _table(column, [partition])
    is_known = any(getattr(pa.types, f"is_{name}")(column.type) for name in _TYPES)
    leaf = _leaf_of(parquet, column)
    if not is_known or leaf is None:
        return None
    values: list[Any] = [float("nan")] if pa.types.is_floating(column.type) else []
    for group in range(parquet.num_row_groups):
        chunk = parquet.metadata.row_group(group).column(leaf)
        statistics = chunk.statistics
        if statistics is None or statistics.null_count is None:
            return None
        if statistics.null_count:
            values.append(None)
        if statistics.null_count < chunk.num_values:
            if not statistics.has_min_max:
                return None
            values += [statistics.min_raw, statistics.max_raw]
    return _table(column, values)


def presence_of(parquet: pq.ParquetFile, column: Column) -> pa.Table | None:
    """Whether values of a column are missing, and whether some are there, of strings or bytes without bounds.

    Returns:
        Under its flat name null if one is missing, and some value if one is there. None: the file does not say.
    """
    missing = missing_values(parquet.metadata, column.dotted)
    if missing is None or _leaf_of(parquet, column) is None:
        return None
    values = [None] * bool(missing) + [b""] * (missing < parquet.metadata.num_rows)
    return pa.table({column.name: pa.array(values, pa.binary()).cast(column.type)})


def _table(column: Column, values: Sequence[Any]) -> pa.Table:
    return pa.table({column.name: pa.array(values, column.type)})


def _leaf_of(parquet: pq.ParquetFile, column: Column) -> int | None:
    """The number of its Parquet column; None: there is none of its type, or another one of the same name."""
    leaves = [n for n in range(parquet.metadata.num_columns) if parquet.schema.column(n).path == column.dotted]
    is_it = len(leaves) == 1 and _type_of(parquet.schema_arrow, column.path) == column.type
    return leaves[0] if is_it else None


def _type_of(fields: pa.Schema | pa.StructType, path: Sequence[str]) -> pa.DataType | None:
    """Of the field at ``path``; None: there is none."""
    if fields.get_field_index(path[0]) < 0:
        return None
    found = fields.field(path[0]).type
    if len(path) == 1:
        return found
    return _type_of(found, path[1:]) if pa.types.is_struct(found) else None
