"""Data files of Iceberg tables: Parquet, with columns by their ids and without the rows that were deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from statelib.errors.kinds import InputError
from statelib.ingest.formats.parquet import parquet_batches
from statelib.ingest.formats.rows import Rows
from statelib.ingest.formats.unreadable import unreadable
from statelib.ingest.sources.iceberg_deletes import deleted_positions
from statelib.ingest.sources.opening import input_opener
from statelib.ingest.values.field_ids import by_field_ids, id_of, plain, with_mapped_ids

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from numpy.typing import NDArray

    from statelib.ingest.sources.files import IcebergFile, SourceFile


def iceberg_schema(iceberg: IcebergFile) -> pa.Schema:
    """The table's columns: a file's rows are read as rows of the table, whatever the file has."""
    return plain(iceberg.schema)


def iceberg_rows(
    file: SourceFile, iceberg: IcebergFile, options: Mapping[str, str], columns: Sequence[str] | None = None
) -> Iterator[Rows]:
    """The rows of a data file that have not been deleted.

    Args:
        file: The file.
        iceberg: What the table says of it.
        options: Of the object store.
        columns: Those of the table to read; None: all.

    Raises:
        InputError: It is no Parquet file, or damaged; or a file of deletes is.
        ConfigurationError: Deletes are of a format that is not known.
    """
    wanted = iceberg.schema
    if columns is not None:
        wanted = pa.schema([field for field in wanted if field.name in columns])
    ids = {id_of(field) for field in wanted}
    absent = dict(iceberg.absent)
    deleted = _deleted(file, iceberg, options)
    of_file: list[pa.Schema] = []

    def needed(schema: pa.Schema) -> list[str]:
        of_file.append(with_mapped_ids(schema, iceberg.name_mapping))
        if all(id_of(field) is None for field in of_file[0]):
            what = "the columns of a file have no ids, and the Iceberg table does not say which names are which columns"
            step = "set the table's property schema.name-mapping.default"
            raise InputError(what, file=file.path, next_step=step)
        return [field.name for field in of_file[0] if id_of(field) in ids]

    done = 0
    for batch in parquet_batches(file, options, needed):
        numbers = np.arange(done + 1, done + batch.num_rows + 1)
        done += batch.num_rows
        schema = pa.schema([of_file[0].field(name) for name in batch.schema.names])
        with unreadable(file, "a part of the Iceberg table"):
            rows = by_field_ids(batch, schema, wanted, absent)
        if len(deleted):
            kept = ~np.isin(numbers - 1, deleted)
            rows, numbers = rows.filter(pa.array(kept)), numbers[kept]
        yield Rows(rows, numbers)


def _deleted(file: SourceFile, iceberg: IcebergFile, options: Mapping[str, str]) -> NDArray[Any]:
    """Which rows are deleted, from 0."""
    if not iceberg.deletes:
        return np.empty(0, np.int64)
    new_input = input_opener(iceberg, options)
    with unreadable(file, "a part of the Iceberg table"):
        found = [deleted_positions(new_input, uri, kind, iceberg.uri) for uri, kind in iceberg.deletes]
    return np.unique(np.concatenate(found))
