"""The data files of an Iceberg table: written here, since pyiceberg writes a list that is null as an empty one.

A file has the rows of one partition of the sink. It has the fields that the sink has, with the ids that the table has
for them: fields that only the table has are null in it.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyiceberg.conversions import from_bytes
from pyiceberg.io.pyarrow import parquet_file_to_data_file
from pyiceberg.types import ListType, LongType, MapType, StructType

from statelib.errors.kinds import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyiceberg.manifest import DataFile
    from pyiceberg.table import FileScanTask, Table, Transaction
    from pyiceberg.types import IcebergType

_FILE_BYTES = 1 << 30
"""Of values as they are in memory: some hundred MB on disk."""


class DataFiles:
    """Writes and cuts files within a transaction, which may have widened the table."""

    def __init__(self, table: Table, transaction: Transaction) -> None:
        self._table = table
        self._metadata = transaction.table_metadata
        self._schema = self._metadata.schema()

    def written(self, batches: Iterable[pa.RecordBatch], columns: pa.Schema) -> Iterator[DataFile]:
        """Files with the rows of one partition of the sink."""
        described = pa.schema([_with_ids(field, self._schema.as_struct()) for field in columns])
        held: list[pa.RecordBatch] = []
        size = 0
        for batch in batches:
            held.append(batch)
            size += batch.nbytes
            if size >= _FILE_BYTES:
                yield self._file(pa.Table.from_batches(held).cast(described))
                held, size = [], 0
        if held:
            yield self._file(pa.Table.from_batches(held).cast(described))

    def cut(self, task: FileScanTask, kept: Sequence[int]) -> tuple[bool, DataFile | None]:
        """Whether a file goes, since rows of it do, and the file with those that stay (None: none does).

        Args:
            task: The file.
            kept: By partition of the sink, the first row that goes.

        Raises:
            ConfigurationError: Rows of it have been deleted by their places.
        """
        offset = self._schema.find_field("offset").field_id
        lower = (task.file.lower_bounds or {}).get(offset)
        first = None if lower is None else int(from_bytes(LongType(), lower))
        if first is not None and first >= max(kept):
            return True, None
        with self._table.io.new_input(task.file.file_path).open() as opened:
            rows = pq.read_table(pa.PythonFile(opened, "r"))
        stay = _before(rows, kept)
        if pc.all(stay).as_py():
            return False, None
        rest = rows.filter(stay)
        if rest.num_rows == 0:
            return True, None
        if task.delete_files:
            what = "rows of a file that is to be cut have been deleted by their places"
            step = "compact the table, then publish: CALL system.rewrite_data_files(table => '...')"
            raise ConfigurationError(what, file=task.file.file_path, next_step=step)
        return True, self._file(rest)

    def _file(self, rows: pa.Table) -> DataFile:
        path = self._table.location_provider().new_data_location(data_file_name=f"{uuid.uuid4()}.parquet")
        with self._table.io.new_output(path).create() as out:
            pq.write_table(rows, pa.PythonFile(out, "w"), compression="zstd", row_group_size=131_072)
        return parquet_file_to_data_file(self._table.io, self._metadata, path)


def _before(rows: pa.Table, kept: Sequence[int]) -> pa.ChunkedArray:
    """Which rows stay; those of others do that are in no partition of the sink."""
    stay = pa.chunked_array([pa.repeat(pa.scalar(value=True), rows.num_rows)])
    for partition, first in enumerate(kept):
        is_behind = pc.and_(pc.equal(rows["partition"], partition), pc.greater_equal(rows["offset"], first))
        stay = pc.and_(stay, pc.invert(pc.fill_null(is_behind, fill_value=False)))
    return stay


def check_partitioned_by(table: Table) -> None:
    """Makes sure that a file with rows of one partition of the sink is in one partition of the table.

    Raises:
        ConfigurationError: The table is partitioned by something else.
    """
    names = [table.schema().find_column_name(field.source_id) for field in table.spec().fields]
    if any(name != "partition" for name in names):
        what = f"the table is partitioned by {', '.join(map(str, names))}"
        step = "let Hindstream make the table: it is partitioned by partition, and files tell which times they have"
        raise ConfigurationError(what, next_step=step)


def _with_ids(field: pa.Field, struct: StructType) -> pa.Field:
    """A field with the id that it has in the table, and those below it."""
    found = {inner.name: inner for inner in struct.fields}[field.name]  # the table has been widened
    return _named(field.name, field.type, found.field_id, found.field_type)


def _named(name: str, type_: pa.DataType, id_: int, told: IcebergType) -> pa.Field:
    if isinstance(told, StructType):
        type_ = pa.struct([_with_ids(inner, told) for inner in type_])
    elif isinstance(told, ListType):
        type_ = pa.list_(_named("element", type_.value_type, told.element_id, told.element_type))
    elif isinstance(told, MapType):
        key = _named("key", type_.key_type, told.key_id, told.key_type).with_nullable(nullable=False)
        type_ = pa.map_(key, _named("value", type_.item_type, told.value_id, told.value_type))
    return pa.field(name, type_, metadata={"PARQUET:field_id": str(id_)})
