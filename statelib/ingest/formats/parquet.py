"""Parquet files: their schema from the footer, their rows one row group after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from statelib.ingest.formats.rows import Rows
from statelib.ingest.formats.unreadable import unreadable
from statelib.ingest.sources.opening import open_file
from statelib.storage.row_groups import buffering

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from statelib.ingest.sources.files import SourceFile

_BATCH_ROWS = 1 << 16


def parquet_schema(file: SourceFile, options: Mapping[str, str]) -> pa.Schema:
    """The columns of a file, with Arrow's types.

    Raises:
        InputError: It is no Parquet file, or damaged.
    """
    with unreadable(file, "Parquet"), open_file(file, options) as opened, pq.ParquetFile(opened) as parquet:
        return parquet.schema_arrow.remove_metadata()


def parquet_row_count(file: SourceFile, options: Mapping[str, str]) -> int:
    """How many rows a file has, by its footer. Errors as `parquet_schema`."""
    with unreadable(file, "Parquet"), open_file(file, options) as opened, pq.ParquetFile(opened) as parquet:
        return int(parquet.metadata.num_rows)


def parquet_rows(file: SourceFile, options: Mapping[str, str], columns: Sequence[str] | None = None) -> Iterator[Rows]:
    """The rows of a file.

    Args:
        file: The file.
        options: Of the object store.
        columns: Those to read; None: all.

    Raises:
        InputError: It is no Parquet file, or damaged.
    """
    done = 0

    def known(schema: pa.Schema) -> list[str] | None:
        return None if columns is None else [name for name in columns if name in schema.names]

    for batch in parquet_batches(file, options, known):
        numbers = np.arange(done + 1, done + batch.num_rows + 1)
        yield Rows(pa.RecordBatch.from_arrays(batch.columns, names=batch.schema.names), numbers)
        done += batch.num_rows


def parquet_batches(
    file: SourceFile, options: Mapping[str, str], needed: Callable[[pa.Schema], list[str] | None]
) -> Iterator[pa.RecordBatch]:
    """The rows of a file as they stand in it, with the metadata of their columns.

    Args:
        file: The file.
        options: Of the object store.
        needed: Chooses columns of the file's; None: all.

    Raises:
        InputError: It is no Parquet file, or damaged.
    """
    with unreadable(file, "Parquet"), open_file(file, options) as opened, _opened(opened, file) as parquet:
        columns = needed(parquet.schema_arrow)
        if columns == []:
            columns = parquet.schema_arrow.names[:1]  # without a column nobody knows how many rows there are
        yield from parquet.iter_batches(_BATCH_ROWS, columns=columns, use_threads=False)


def _opened(source: pa.NativeFile, file: SourceFile) -> pq.ParquetFile:
    metadata = pq.read_metadata(source)
    return pq.ParquetFile(source, metadata=metadata, **buffering(metadata, is_local="://" not in file.path))
