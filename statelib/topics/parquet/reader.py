"""Reads the records of one partition of a topic at rest, committed or staged, in offset order.

Only the files and the row groups that the wanted offsets need are opened. Nothing is taken on trust: a file that is
missing, cut off or damaged (pages carry checksums, the footer is sealed), that has other columns than the topic, other
offsets and times than the log says, or an offset twice, is an `InputError` with topic, partition and file, whoever
wrote it: to whoever reads a topic it is input. Holes in the offsets are in order; compaction and transaction markers
leave them. Where a sealed footer says that there are none, offsets are not read: see
`statelib.topics.parquet.sealed_statistics`. Files that other programs have merged are put in order: see
`statelib.topics.parquet.interleaved`.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import Schema as DeltaSchema

from statelib.errors.counted import counted
from statelib.errors.kinds import ConfigurationError, InputError
from statelib.storage import ObjectNotFoundError
from statelib.storage.row_groups import buffering
from statelib.topics.parquet.encodings import is_encoded
from statelib.topics.parquet.footer import read_sealed_footer
from statelib.topics.parquet.interleaved import groups_in_order, has_room, in_order, repeated_offset
from statelib.topics.parquet.repeated import values_in, values_in_footer
from statelib.topics.parquet.schema import HEADERS, HEADERS_COLUMN, TIMESTAMP, project, topic_schema
from statelib.topics.parquet.schema_changes import DoesNotFitError, read_as, united
from statelib.topics.parquet.sealed_statistics import first_of_dense_offsets, timestamp_bounds

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from statelib.storage import Storage
    from statelib.topics.files import ArchiveFile


class _Opened(NamedTuple):
    """A file that is open, its footer, and whether that is sealed."""

    source: pa.NativeFile
    metadata: pq.FileMetaData
    is_sealed: bool


class PartitionReader:
    """The records of one partition from ``start_offset`` (inclusive) to ``end_offset`` (exclusive).

    Iterating gives record batches; it can be done again. Memory is bounded by a row group and a batch, but for files
    that have to be put in order.

    Args:
        storage: Where the files' paths begin: the archive's root.
        files: All files that may hold such records, in any order.
        schema: The topic's columns, as `topic_schema` gives them. A file may lack fields of values, or hold narrower
            numbers: it was written before the topic had them (`statelib.topics.parquet.schema_changes`).
        wanted: The columns as they are to be read: those of an earlier version of the topic; None: as ``schema``.
        topic: For messages.
        partition: The Kafka partition.
        start_offset: The first offset wanted.
        end_offset: The offset after the last one wanted; None: no bound.
        columns: What to read: ``key``, ``value``, ``value.amount`` (only that field of the struct), ``timestamp``,
            ``offset``, ``headers``; None: all columns.
        batch_rows: The largest batch.
        encoded_keys: Whether keys are given as a dictionary and indices where their file has them so.

    Raises:
        ConfigurationError: There is no such column.
        InputError: Two files hold the same offsets.
    """

    def __init__(
        self,
        storage: Storage,
        files: Sequence[ArchiveFile],
        schema: pa.Schema,
        *,
        wanted: pa.Schema | None = None,
        topic: str,
        partition: int,
        start_offset: int = 0,
        end_offset: int | None = None,
        columns: Sequence[str] | None = None,
        batch_rows: int = 65_536,
        encoded_keys: bool = False,
    ) -> None:
        wanted = schema if wanted is None else wanted
        self.schema = wanted if columns is None else project(wanted, columns)
        """Of the batches: the topic's columns as far as they are read, in the topic's order."""
        self._storage = storage
        self._files = files_in_range(files, start_offset, end_offset)
        self._topic_schema = schema
        self._topic = topic
        self._partition = partition
        self._start = start_offset
        self._end = end_offset
        # Offsets are always there: they say which records are wanted, and that the file is in order.
        self._columns = None if columns is None else sorted({*columns, "offset"})
        self._with_offsets = schema if self._columns is None else project(schema, self._columns)
        self._batch_rows = batch_rows
        self._encoded_keys = encoded_keys
        self._groups = groups_in_order(self._files)
        for group in self._groups:
            if not has_room(group) and len(group) > 1:
                before, after = group[:2]
                step = f"if another program has added one of them, take that back: hindstream topic {self._topic} lists"
                step += " versions; else restore the file from another copy, or archive the topic again"
                what = f"holds offsets that are in {before.path} as well"
                self._fail(what, after, offset=after.first_offset, next_step=step)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Batches of 1 to ``batch_rows`` records.

        Raises:
            InputError: See the module's docstring.
        """
        for group in self._groups:
            if len(group) > 1:
                yield from self._put_in_order(group)
            else:
                yield from self._read_alone(group[0])

    def read_all(self) -> pa.Table:
        """All records at once."""
        return pa.Table.from_batches(list(self), schema=self.schema)

    def has_headers(self) -> bool:
        """Whether any of the files has a column for headers.

        Raises:
            InputError: See the module's docstring.
        """
        for file in self._files:
            with self._opened(file) as opened:
                if HEADERS_COLUMN in opened.metadata.schema.to_arrow_schema().names:
                    return True
        return False

    def _read_alone(self, file: ArchiveFile) -> Iterator[pa.RecordBatch]:
        """The records of a file that shares its offsets with no other. It is opened once: small files cost no more."""
        with self._opened(file) as opened:
            if _is_in_order(opened):
                yield from self._read_opened(opened, file, ascends=True)
                return
        yield from self._put_in_order([file])

    def _put_in_order(self, files: Sequence[ArchiveFile]) -> Iterator[pa.RecordBatch]:
        """The records of files whose offsets interleave, or do not ascend."""
        batches = [batch for file in files for batch in self._read_out_of_order(file)]
        if not batches:
            return
        again = repeated_offset(batches)
        if again is not None:
            self._fail("has offsets that do not ascend, and one that is there twice", files[-1], offset=again)
        for batch in in_order(batches, self._batch_rows):
            yield self._conformed(batch, files[-1])

    def _read_out_of_order(self, file: ArchiveFile) -> Iterator[pa.RecordBatch]:
        with self._opened(file) as opened:
            yield from self._read_opened(opened, file, ascends=False)

    def _read_opened(self, opened: _Opened, file: ArchiveFile, *, ascends: bool) -> Iterator[pa.RecordBatch]:
        keys_as_encoded = ascends and self._encoded_keys and is_encoded(opened.metadata, "key")
        with pq.ParquetFile(
            opened.source,
            metadata=opened.metadata,
            read_dictionary=["key"] if keys_as_encoded else None,
            page_checksum_verification=True,
            **buffering(opened.metadata, is_local=self._storage.is_local),
        ) as parquet:
            yield from self._read_parquet(parquet, file, is_sealed=opened.is_sealed, ascends=ascends)

    @contextmanager
    def _opened(self, file: ArchiveFile) -> Iterator[_Opened]:
        """A file and its footer; whatever cannot be read is told as an error of the input."""
        try:
            with self._storage.open_input(file.path, size_bytes=file.size_bytes) as source:
                if source.size() != file.size_bytes:
                    self._fail(f"has {source.size()} bytes instead of {file.size_bytes}", file)
                metadata, is_sealed = read_sealed_footer(source)
                self._check_metadata(metadata, file)
                yield _Opened(source, metadata, is_sealed)
        except ObjectNotFoundError:
            self._fail("is missing", file)
        except (pa.ArrowException, OSError) as error:
            self._fail(f"cannot be read: {error}", file, cause=error)

    def _read_parquet(
        self, parquet: pq.ParquetFile, file: ArchiveFile, *, is_sealed: bool, ascends: bool
    ) -> Iterator[pa.RecordBatch]:
        groups = self._row_groups(parquet.metadata)
        has_headers = HEADERS_COLUMN in parquet.schema_arrow.names or HEADERS_COLUMN not in self.schema.names
        unread = sum(parquet.metadata.row_group(group).num_rows for group in groups)
        unread_values = values_in_footer(parquet.metadata, groups, self._columns_of(parquet.schema_arrow))
        has_lists = unread_values > 0
        last_offset = file.first_offset - 1
        for batch in self._checked(parquet, groups, file, is_sealed=is_sealed, ascends=ascends):
            unread -= batch.num_rows
            unread_values -= values_in(batch) if has_lists else 0
            last_offset = batch.column("offset")[-1].as_py() if ascends else file.last_offset
            wanted = self._wanted(batch, ascends=ascends)
            if wanted.num_rows:
                if not has_headers:
                    wanted = wanted.append_column(HEADERS_COLUMN, pa.nulls(wanted.num_rows, HEADERS))
                yield self._conformed(wanted, file, None if ascends else self._with_offsets)
        # A page whose header is damaged may be left out without a word, and with it the end of the row group.
        is_to_end = parquet.num_row_groups - 1 in groups
        if unread or unread_values or (is_to_end and last_offset != file.last_offset):
            self._fail(f"is damaged: of its pages something was left out up to offset {last_offset}", file)

    def _checked(
        self, parquet: pq.ParquetFile, groups: Sequence[int], file: ArchiveFile, *, is_sealed: bool, ascends: bool
    ) -> Iterator[pa.RecordBatch]:
        """Batches whose offsets and timestamps are as they should be, by the footer if that can be believed."""
        columns = self._columns_of(parquet.schema_arrow) or parquet.schema_arrow.names
        others = [column for column in columns if column != "offset"]
        next_offset = first_of_dense_offsets(parquet.metadata, groups) if is_sealed and groups and others else None
        times = timestamp_bounds(parquet.metadata, groups) if is_sealed and groups else None
        if times is not None:
            self._check_times(*times, file)
        if next_offset is not None:
            columns = others
        last_offset = file.first_offset - 1
        for read in parquet.iter_batches(self._batch_rows, row_groups=groups, columns=columns, use_threads=False):
            batch = read
            if next_offset is None:
                self._check_ascent(batch.column("offset"), last_offset, file, ascends=ascends)
            else:
                offsets = np.arange(next_offset, next_offset + len(read))
                batch = read.append_column("offset", pa.array(offsets))
                next_offset += len(read)
            if ascends:
                last_offset = self._check_offsets(batch.column("offset"), last_offset, file)
            else:
                self._check_offsets(batch.column("offset").sort(), last_offset, file)
            if times is None and "timestamp" in batch.schema.names:
                found = pc.min_max(batch.column("timestamp"))
                first, last = (found[end].cast(TIMESTAMP, safe=False).value for end in ("min", "max"))
                self._check_times(first, last, file)
            yield batch

    def _columns_of(self, file: pa.Schema) -> list[str] | None:
        """Those of `_columns` that a file has. Of values at least one field: in any one a null value shows."""
        if self._columns is None or not pa.types.is_struct(file.field("value").type):
            return self._columns
        fields = [f"value.{field.name}" for field in file.field("value").type]
        wanted = {name: ".".join(name.split(".")[:2]) for name in self._columns}  # of nested fields, the one of values
        has = [name for name, field in wanted.items() if not name.startswith("value.") or field in fields]
        return has if len(has) == len(wanted) or any(wanted[name] in fields for name in has) else [*has, fields[0]]

    def _conformed(self, batch: pa.RecordBatch, file: ArchiveFile, schema: pa.Schema | None = None) -> pa.RecordBatch:
        """The batch with the columns of ``schema`` (None: that of the batches), except that keys may be encoded."""
        schema = self.schema if schema is None else schema
        types = dict(zip(schema.names, schema.types, strict=True))
        encoded = pa.dictionary(pa.int32(), types.get("key", pa.null()))
        if self._encoded_keys and "key" in types and batch.column("key").type == encoded:
            types["key"] = encoded
        try:
            columns = [
                read_as(batch.column(name), type_) if name == "value" else batch.column(name).cast(type_)
                for name, type_ in types.items()
            ]
        except DoesNotFitError as error:
            raise InputError(
                f"a record does not fit what the job reads of the topic: {error}",
                topic=self._topic,
                partition=self._partition,
                offset=batch.column("offset")[error.row].as_py() if "offset" in batch.schema.names else None,
                file=self._storage.uri(file.path),
                next_step="give the job a new name: it then replays all with the topic's present types",
            ) from None
        return pa.RecordBatch.from_arrays(columns, list(types))

    def _row_groups(self, metadata: pq.FileMetaData) -> list[int]:
        """The row groups that may hold wanted offsets."""
        position = metadata.schema.names.index("offset")
        chosen = []
        for group in range(metadata.num_row_groups):
            bounds = metadata.row_group(group).column(position).statistics
            known = bounds is not None and bounds.has_min_max
            if known and (bounds.max < self._start or (self._end is not None and bounds.min >= self._end)):
                continue
            chosen.append(group)
        return chosen

    def _wanted(self, batch: pa.RecordBatch, *, ascends: bool) -> pa.RecordBatch:
        offsets = batch.column("offset").to_numpy()
        if not ascends:
            return batch.filter(pa.array((offsets >= self._start) & (self._end is None or offsets < self._end)))
        first = int(np.searchsorted(offsets, self._start))
        end = len(offsets) if self._end is None else int(np.searchsorted(offsets, self._end))
        return batch.slice(first, max(end - first, 0))

    def _check_metadata(self, metadata: pq.FileMetaData, file: ArchiveFile) -> None:
        """Checks the number of records and the columns.

        A file of another writer may have another unit of time or large types: what is the same to Delta is cast. A file
        may have no headers, and values as they were before the topic's changed.
        """
        if metadata.num_rows != file.rows:
            self._fail(f"has {counted(metadata.num_rows, 'record')} instead of {file.rows}", file)
        found, expected = metadata.schema.to_arrow_schema(), self._topic_schema
        if HEADERS_COLUMN not in found.names:
            expected = pa.schema([field for field in expected if field.name != HEADERS_COLUMN])
        if found.equals(expected):
            return
        if found.names != expected.names or not _is_of(expected, found):
            of_topic = ", ".join(f"{field.name}: {field.type}" for field in self._topic_schema)
            of_file = ", ".join(f"{field.name}: {field.type}" for field in found)
            self._fail(f"has other columns than the topic ({of_file} instead of {of_topic})", file)

    def _check_ascent(self, column: pa.Array, last_offset: int, file: ArchiveFile, *, ascends: bool) -> None:
        """Checks that no offset is missing, and that they ascend where they are to."""
        if column.null_count:
            self._fail("has a record without an offset", file, offset=last_offset)
        offsets = column.to_numpy()
        ascend = offsets[1:] > offsets[:-1]
        if ascends and not ascend.all():
            wrong = int(offsets[int(np.argmin(ascend)) + 1])
            self._fail(f"has offsets that do not ascend from {last_offset}", file, offset=wrong)

    def _check_offsets(self, column: pa.Array, last_offset: int, file: ArchiveFile) -> int:
        """Checks that offsets, which ascend, are after ``last_offset`` and up to the file's own; gives the last one."""
        first, last = (int(column[at].as_py()) for at in (0, -1))
        if first <= last_offset:
            self._fail(f"has offsets that do not ascend from {last_offset}", file, offset=first)
        if last > file.last_offset:
            self._fail(f"has offsets after {file.last_offset}, its last one", file, offset=last)
        return last

    def _check_times(self, first: int | None, last: int | None, file: ArchiveFile) -> None:
        """Checks that timestamps, of which these (ms) are the first and the last, are within the bounds of the file."""
        least, most = file.min_timestamp_ms, file.max_timestamp_ms
        if least is None or most is None or first is None or last is None:
            return
        if not least <= first <= last <= most:
            self._fail(f"has timestamps from {first} to {last} ms, which the Delta log has as {least} to {most}", file)

    def _fail(
        self,
        what: str,
        file: ArchiveFile,
        *,
        offset: int | None = None,
        cause: Exception | None = None,
        next_step: str = "restore the file from another copy, or archive the topic again",
    ) -> NoReturn:
        raise InputError(
            f"a file of the topic archive {what}",
            topic=self._topic,
            partition=self._partition,
            offset=offset,
            file=self._storage.uri(file.path),
            next_step=next_step,
        ) from cause


def _is_in_order(opened: _Opened) -> bool:
    """Whether offsets ascend in a file: Hindstream's own writer sees to it, others may not."""
    if opened.is_sealed:
        return True
    with pq.ParquetFile(opened.source, metadata=opened.metadata, page_checksum_verification=True) as parquet:
        offsets = parquet.read(columns=["offset"], use_threads=False).column(0)
    return bool(offsets.null_count or np.all(np.diff(offsets.to_numpy()) > 0))


def files_in_range(files: Sequence[ArchiveFile], start_offset: int, end_offset: int | None) -> list[ArchiveFile]:
    """The files with offsets from ``start_offset`` (inclusive) to ``end_offset`` (exclusive), ascending."""
    chosen = [
        file
        for file in files
        if file.last_offset >= start_offset and (end_offset is None or file.first_offset < end_offset)
    ]
    return sorted(chosen, key=lambda file: file.first_offset)


def _is_of(topic: pa.Schema, file: pa.Schema) -> bool:
    """Whether a file has the columns of a topic, or had them before its values changed."""
    if _delta_types(topic) == _delta_types(file):
        return True
    position = file.get_field_index("value")
    try:
        value = topic_schema(pa.string(), file.field(position).type).field("value").type
        if not united(topic.field("value").type, value).equals(topic.field("value").type):
            return False
    except ConfigurationError:
        return False
    return _delta_types(topic) == _delta_types(file.set(position, topic.field("value")))


def _delta_types(schema: pa.Schema) -> str:
    return DeltaSchema.from_arrow(schema).to_json()
