"""Writes the files of one partition of a topic archive.

A file is named after its first record, as Kafka's log segments are, and after the attempt that wrote it::

    partition=3/00000000000000000117-<attempt>.parquet

Nobody sees it until it is committed, and what an attempt leaves behind disturbs nobody. Equal records give equal bytes,
however they were handed over: settings are fixed, and where a row group or a file ends depends on the records alone.
Pages are compressed and carry checksums; the footer is sealed (`statelib.topics.parquet.footer`). A column gets a
dictionary if values repeat at the beginning of its file (`statelib.topics.parquet.encodings` has the others). A file
has no column ``headers`` while no record has any; the first row group with some begins a file that has.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from statelib.columns.time_columns import out_of_reach, out_of_reach_reason
from statelib.errors.kinds import ConfigurationError, InputError, InternalError
from statelib.storage.digests import DigestingOutput
from statelib.topics.files import ArchiveFile
from statelib.topics.parquet.encodings import column_encodings
from statelib.topics.parquet.footer import SealingOutput
from statelib.topics.parquet.leaf_columns import leaf_columns
from statelib.topics.parquet.missing_counts import MissingCounts
from statelib.topics.parquet.schema import HEADERS_COLUMN, TIMESTAMP, conform
from statelib.topics.parquet.stored_keys import KEY, concat_records, stored_key, with_encoded_keys, with_plain_keys

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

    from statelib.storage import Storage

_BUFFER_BYTES = 1 << 18

_BLOCK_ROWS = 8_192
"""Records are counted and weighed in blocks of this many, from the first record of a writer on."""


@dataclass(frozen=True, slots=True)
class FileLimits:
    """When a row group and a file end: whichever bound is reached first.

    Bytes are those of keys, values and headers before encoding. A row group is what a writer holds in memory.
    """

    row_group_rows: int = 131_072
    row_group_bytes: int = 64 << 20
    file_rows: int = 1 << 23
    file_bytes: int = 512 << 20


class PartitionWriter:
    """Writes one partition's records, ascending by offset, into files of its own.

    A context manager: leaving it without an error closes it, with an error aborts it.

    Args:
        storage: Rooted at the archive (`TopicArchive.storage`), or at any place for staged files.
        schema: The columns, as `topic_schema` gives them.
        partition: The Kafka partition.
        attempt: Unique to this attempt at this partition; letters, digits and ``._-``.
        limits: See `FileLimits`.
        has_headers: Whether files have the column from their first row group on, so that none has to end for it.
        topic: For messages.
        takes_all: Whether records may have times that no topic can hold: former versions let them in, and files with
            them may be merged.
    """

    def __init__(
        self,
        storage: Storage,
        schema: pa.Schema,
        partition: int,
        *,
        attempt: str,
        limits: FileLimits | None = None,
        has_headers: bool = False,
        topic: str | None = None,
        takes_all: bool = False,
    ) -> None:
        if not re.fullmatch(r"[A-Za-z0-9._-]+", attempt):
            raise ConfigurationError(f"{attempt!r} cannot be part of a file name", setting="attempt")
        self._storage = storage
        self._schema = schema
        self._partition = partition
        self._attempt = attempt
        self._limits = limits or FileLimits()
        self._has_headers = has_headers
        self._topic = topic
        self._takes_all = takes_all
        self._block_rows = min(_BLOCK_ROWS, self._limits.row_group_rows)
        self._last_offset = -1
        self._pending = schema.empty_table()
        self._row_group: list[pa.Table] = []
        self._row_group_rows = 0
        self._row_group_bytes = 0
        self._file: _OpenFile | None = None
        self._paths: list[str] = []
        self._files: list[ArchiveFile] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.abort()

    def write(self, records: pa.RecordBatch | pa.Table) -> None:
        """Adds records.

        Args:
            records: Columns ``offset`` (int64, ascending, also from call to call), ``key`` (strings and bytes may be a
                dictionary with int32 indices), ``value``, ``timestamp`` (a timestamp, or int64 milliseconds) and, if
                there are any, ``headers``, in any order.

        Raises:
            ConfigurationError: A column is missing, unknown or of a type that the archive cannot hold.
            InputError: A record has a time that the archive cannot hold, as its timestamp or in its key or value.
            InternalError: Offsets do not ascend.
        """
        if records.num_rows == 0:
            return
        if not self._takes_all:
            self._check_times(records)
        conformed = conform(records, self._schema)
        self._check_offsets(conformed["offset"])
        self._pending = concat_records([self._pending, conformed])
        while self._pending.num_rows >= self._block_rows:
            self._pending = self._pending.slice(self._take_blocks())

    def close(self) -> tuple[ArchiveFile, ...]:
        """Ends the last file.

        Returns:
            What was written, ascending by offset; the same at every call.
        """
        if self._pending.num_rows:
            self._take(self._pending, _weight(self._pending))
            self._pending = self._schema.empty_table()
        self._end_row_group()
        self._end_file()
        return tuple(self._files)

    def abort(self) -> None:
        """Removes everything that was written."""
        if self._file is not None:
            self._file.discard()
            self._file = None
        self._storage.discard(self._paths)
        self._files = []

    def _check_times(self, records: pa.RecordBatch | pa.Table) -> None:
        """Refuses the first record with a time that the archive cannot hold."""
        found = [
            (row, name, reason)
            for name in ("timestamp", "key", "value")
            if name in records.schema.names  # see `conform`
            for row, reason in _first_out_of_reach(records.column(name), name)
        ]
        if found:
            row, name, reason = min(found)
            what = f"a record cannot be archived: its {name}: {reason}"
            step = "times are milliseconds since 1970: fix what makes the record"
            place = {"topic": self._topic or self._storage.uri(""), "partition": self._partition}
            raise InputError(what, **place, offset=records["offset"][row].as_py(), next_step=step)

    def _check_offsets(self, column: pa.ChunkedArray) -> None:
        offsets = column.to_numpy()
        ascending = column.null_count == 0 and offsets[0] > self._last_offset and bool(np.all(np.diff(offsets) > 0))
        if not ascending:
            what = f"offsets written to a topic archive do not ascend from {self._last_offset}"
            raise InternalError(what, partition=self._partition, file=self._storage.uri(""))
        self._last_offset = int(offsets[-1])

    def _take_blocks(self) -> int:
        """Takes blocks of what is pending, many at once while no bound is near; gives the number of their records."""
        left = -(-(self._limits.row_group_rows - self._row_group_rows) // self._block_rows)
        blocks = self._pending.slice(0, self._block_rows * min(left, self._pending.num_rows // self._block_rows))
        weight = _weight(blocks)
        if self._row_group_bytes + weight >= self._limits.row_group_bytes:
            blocks = blocks.slice(0, self._block_rows)
            weight = _weight(blocks)
        self._take(blocks, weight)
        return int(blocks.num_rows)

    def _take(self, records: pa.Table, weight: int) -> None:
        self._row_group.append(records)
        self._row_group_rows += records.num_rows
        self._row_group_bytes += weight
        limits = self._limits
        if self._row_group_rows >= limits.row_group_rows or self._row_group_bytes >= limits.row_group_bytes:
            self._end_row_group()

    def _end_row_group(self) -> None:
        if not self._row_group:
            return
        # One chunk a column: pages break where chunks do, and chunks are as the caller happened to hand them over.
        records = concat_records(self._row_group).combine_chunks()
        has_headers = self._has_headers or records[HEADERS_COLUMN].null_count < records.num_rows
        if self._file is not None and has_headers and not self._file.has_headers:
            self._end_file()
        if self._file is None:
            first_offset = records["offset"][0].as_py()
            path = f"partition={self._partition}/{first_offset:020d}-{self._attempt}.parquet"
            first = records if has_headers else records.drop_columns(HEADERS_COLUMN)
            self._file = _OpenFile(self._storage, path, self._partition, first)
            self._paths.append(path)
        self._file.add(records, self._row_group_bytes)
        self._row_group = []
        self._row_group_rows = self._row_group_bytes = 0
        if self._file.rows >= self._limits.file_rows or self._file.payload >= self._limits.file_bytes:
            self._end_file()

    def _end_file(self) -> None:
        if self._file is not None:
            self._files.append(self._file.finish())
            self._file = None


class _OpenFile:
    """The file that is being written, and what will be said of it."""

    def __init__(self, storage: Storage, path: str, partition: int, first: pa.Table) -> None:
        """``first``: the first row group, which decides what columns there are and how they are encoded."""
        encodings = column_encodings(first)
        repeat = stored_key(first.schema.field(KEY).type) in encodings["use_dictionary"]
        self._with_keys = with_encoded_keys if repeat else with_plain_keys
        self.rows = 0
        self.payload = 0
        self.has_headers = HEADERS_COLUMN in first.column_names
        self._path = path
        self._partition = partition
        self._offsets: list[int] = []
        self._timestamps: list[int] = []
        self._null_keys = 0
        self._null_values = 0
        self._columns = first.column_names
        self._missing = MissingCounts({*leaf_columns(first.schema)} - {*encodings["write_statistics"]})
        self._output = DigestingOutput(storage.open_output(path))
        self._sealing = SealingOutput(self._output)
        # A file is hundreds of small pieces, each of which would go through three layers of Python.
        self._buffered = pa.BufferedOutputStream(pa.PythonFile(self._sealing, "w"), _BUFFER_BYTES)
        self._parquet = pq.ParquetWriter(
            self._buffered,
            self._with_keys(first.slice(0, 1)).schema,
            version="2.6",
            **encodings,
            write_page_checksum=True,
            store_schema=False,
        )

    def add(self, records: pa.Table, payload: int) -> None:
        """Writes a row group, of which the file may have no headers only if there are none."""
        self._parquet.write_table(self._with_keys(records.select(self._columns)), row_group_size=records.num_rows)
        self.rows += records.num_rows
        self.payload += payload
        offsets = records["offset"]
        self._offsets += [offsets[0].as_py(), offsets[-1].as_py()]
        bounds = pc.min_max(records["timestamp"].cast(pa.int64()))
        self._timestamps += [bound for bound in bounds.as_py().values() if bound is not None]
        self._missing.add(records)
        self._null_keys += records["key"].null_count
        self._null_values += records["value"].null_count

    def finish(self) -> ArchiveFile:
        """Ends the file and describes it."""
        self._buffered.flush()
        self._sealing.hold()
        self._parquet.add_key_value_metadata(self._missing.metadata())
        self._parquet.close()
        self._buffered.flush()
        self._sealing.end()
        self._output.close()
        return ArchiveFile(
            path=self._path,
            partition=self._partition,
            rows=self.rows,
            size_bytes=self._output.size,
            first_offset=self._offsets[0],
            last_offset=self._offsets[-1],
            min_timestamp_ms=min(self._timestamps, default=None),
            max_timestamp_ms=max(self._timestamps, default=None),
            null_keys=self._null_keys,
            null_values=self._null_values,
            sha256=self._output.sha256,
        )

    def discard(self) -> None:
        """Closes what is open; the caller deletes the file."""
        self._parquet.close()
        self._buffered.close()
        self._output.close()


def _first_out_of_reach(column: pa.Array | pa.ChunkedArray, name: str) -> Iterator[tuple[int, str]]:
    """The first row with a time that no topic can hold, and what it is; nothing if there is none."""
    if name == "timestamp" and pa.types.is_integer(column.type):
        column = column.cast(pa.int64()).cast(TIMESTAMP)
    at = 0
    for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
        if (far := out_of_reach(chunk)) is not None:
            row = int(far.argmax())
            yield at + row, out_of_reach_reason(chunk, row)
            return
        at += len(chunk)


def _weight(records: pa.Table) -> int:
    return sum(payload_bytes(chunk) for column in records.columns for chunk in column.chunks)


def payload_bytes(array: pa.Array) -> int:
    """How much data an array stands for: depends on its values alone, not on how their buffers were made."""
    type_ = array.type
    if pa.types.is_struct(type_):
        return sum(payload_bytes(field) for field in array.flatten())
    if pa.types.is_dictionary(type_):
        lengths = pc.binary_length(array.dictionary).take(array.indices)
        return 4 * len(array) + int(pc.sum(lengths).as_py() or 0)
    if pa.types.is_map(type_):
        return payload_bytes(array.cast(pa.list_(pa.struct([type_.key_field, type_.item_field]))))
    if pa.types.is_list(type_):
        is_missing = array.null_count == len(array)  # as headers mostly are
        return 4 * len(array) + (0 if is_missing else payload_bytes(array.drop_null().flatten()))
    if pa.types.is_string(type_) or pa.types.is_binary(type_):
        return 4 * len(array) + _content_bytes(array)
    return len(array) * max(int(type_.bit_width), 8) // 8


def _content_bytes(array: pa.StringArray | pa.BinaryArray) -> int:
    if array.null_count or len(array) == 0:  # what lies under a null does not count
        return int(pc.sum(pc.binary_length(array)).as_py() or 0)
    offsets = np.frombuffer(array.buffers()[1], np.int32)
    return int(offsets[array.offset + len(array)] - offsets[array.offset])
