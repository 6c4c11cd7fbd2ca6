"""All files of a topic, as its Delta log lists them: columns that are searched, not an object a file.

A topic that is written by many small slices has a file a slice and partition. What a step of a run wants of them is a
sum, a bound or a few files; only those are described one by one.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from statelib.errors.kinds import InputError
from statelib.topics.files import ArchiveFile

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from numpy.typing import NDArray

_STATISTICS = {
    "partition": "partition.partition",
    "rows": "num_records",
    "first_offset": "min.offset",
    "last_offset": "max.offset",
    "min_timestamp_ms": "min.timestamp",
    "max_timestamp_ms": "max.timestamp",
}
"""By field of `ArchiveFile`, the column of the log."""

_UNKNOWN = np.iinfo(np.int64).min

_REQUIRED = ("partition", "rows", "first_offset", "last_offset")


@dataclass(frozen=True, slots=True)
class FileColumns:
    """Files of one partition, by their first offset: int64[files] each.

    Timestamps in ms; None: of some file they are not known.
    """

    rows: NDArray[np.int64]
    size_bytes: NDArray[np.int64]
    first_offset: NDArray[np.int64]
    last_offset: NDArray[np.int64]
    min_timestamp_ms: NDArray[np.int64] | None
    max_timestamp_ms: NDArray[np.int64] | None

    @property
    def are_apart(self) -> bool:
        """Whether no file has an offset that lies among those of another."""
        return bool(np.all(self.first_offset[1:] > np.maximum.accumulate(self.last_offset)[:-1]))


class FileIndex:
    """The files of one version of a topic, by partition and offset.

    Args:
        add_actions: As deltalake's ``get_add_actions(flatten=True)`` gives them.
        topic: For messages.
        uri: The table's root, for messages.

    Raises:
        InputError: A file lacks statistics of its offsets, so it was not written as a topic archive's.
    """

    def __init__(self, add_actions: pa.Table, *, topic: str, uri: str) -> None:
        columns = {"path": add_actions["path"], "size_bytes": add_actions["size_bytes"]}
        columns |= {field: _integers(add_actions, name) for field, name in _STATISTICS.items()}
        files = pa.table(columns)
        unusable = [pc.index(files[name].is_null(), True).as_py() for name in _REQUIRED if files[name].null_count]
        if unusable:
            what = "a file of the topic archive has no statistics of its offsets in the Delta log"
            step = "archive the topic again: other writers' files cannot be added to a topic archive"
            path = files["path"][min(unusable)].as_py()
            raise InputError(what, topic=topic, file=f"{uri}/{path}", next_step=step)
        order = np.lexsort((_numpy(files["first_offset"]), _numpy(files["partition"])))
        self._files = files.take(_indices(order))
        self._partition = _numpy(self._files["partition"])
        self._first = _numpy(self._files["first_offset"])
        self._last = _numpy(self._files["last_offset"])
        self._archived_at = _numpy(_integers(add_actions, "modification_time"))[order]

    def digest(self, more: Sequence[ArchiveFile] = (), gone: Collection[str] = ()) -> str:
        """The SHA-256, in hex, of the files as the log says them (`statelib.topics.delta.log`).

        It is over columns of the files in the order of partition and first offset: their partition, rows, first and
        last offset, least and greatest timestamp in ms and size in bytes as little-endian int64 (unknown: the least
        one), then the paths, joined by newlines, in UTF-8.

        Args:
            more: Files that come to these.
            gone: Paths of files that leave.
        """
        files = self._files
        if gone:
            files = files.filter(pc.invert(pc.is_in(files["path"], pa.array(gone, files["path"].type))))
        if more:
            added = [file.in_log.model_dump(include=set(files.column_names)) for file in more]
            files = pa.concat_tables([files, pa.Table.from_pylist(added, files.schema)])
            files = files.sort_by([("partition", "ascending"), ("first_offset", "ascending")])
        content = hashlib.sha256()
        for name in (*_STATISTICS, "size_bytes"):
            content.update(_numpy(files[name], _UNKNOWN).astype("<i8").tobytes())
        content.update("\n".join(files["path"].to_pylist()).encode())
        return content.hexdigest()

    @staticmethod
    def digest_of_none() -> str:
        """The digest where there are no files."""
        return hashlib.sha256().hexdigest()

    @property
    def rows(self) -> int:
        """Number of records of all files."""
        return int(_numpy(self._files["rows"]).sum())

    def max_timestamp_ms(self) -> int | None:
        """The largest timestamp that is known; None: there is none."""
        found: int | None = pc.max(self._files["max_timestamp_ms"]).as_py()
        return found

    def archived_at_ms(self, file: ArchiveFile) -> int | None:
        """When a file of this version became part of the topic; None: the log does not say."""
        place = self._of(file.partition)
        index = place.start + int(np.searchsorted(self._first[place], file.first_offset))
        return int(self._archived_at[index]) or None

    def columns_of(self, partition: int) -> FileColumns:
        """The files of a partition, by their first offset."""
        place = self._of(partition)
        files = self._files.slice(place.start, place.stop - place.start)
        least, most = files["min_timestamp_ms"], files["max_timestamp_ms"]
        has_times = not least.null_count and not most.null_count
        return FileColumns(
            rows=_numpy(files["rows"]),
            size_bytes=_numpy(files["size_bytes"]),
            first_offset=self._first[place],
            last_offset=self._last[place],
            min_timestamp_ms=_numpy(least) if has_times else None,
            max_timestamp_ms=_numpy(most) if has_times else None,
        )

    def start_offset(self, partition: int) -> int:
        """The first offset in a partition; 0 if it has no file."""
        first = self._first[self._of(partition)]
        return int(first[0]) if len(first) else 0

    def end_offset(self, partition: int) -> int:
        """The offset after the last one in a partition; 0 if it has no file."""
        return int(self._last[self._of(partition)].max(initial=-1)) + 1

    def in_range(self, partition: int, start_offset: int, end_offset: int | None) -> list[ArchiveFile]:
        """The files with offsets from ``start_offset`` to before ``end_offset`` (None: to the end), ascending."""
        place = self._of(partition)
        wanted = self._last[place] >= start_offset
        if end_offset is not None:
            wanted &= self._first[place] < end_offset
        return self._described(place.start + np.flatnonzero(wanted))

    def reaching(self, partition: int, timestamp_ms: int) -> Iterator[ArchiveFile]:
        """The files that may hold a record with this timestamp or a later one, ascending by offset."""
        place = self._of(partition)
        latest = self._files["max_timestamp_ms"].slice(place.start, place.stop - place.start)
        may = pc.greater_equal(latest, timestamp_ms).fill_null(True).to_numpy()
        for index in place.start + np.flatnonzero(may):
            yield from self._described(np.array([index]))

    def holds_before(self, partition: int, start_offset: int, timestamp_ms: int) -> bool:
        """Whether files that begin at ``start_offset`` or behind it are known to hold a timestamp before this one."""
        place = self._of(partition)
        behind = slice(place.start + int(np.searchsorted(self._first[place], start_offset)), place.stop)
        least = self._files["min_timestamp_ms"].slice(behind.start, behind.stop - behind.start)
        return bool(pc.any(pc.less(least, timestamp_ms)).as_py())

    def _of(self, partition: int) -> slice:
        """The files of a partition."""
        start, stop = np.searchsorted(self._partition, [partition, partition + 1])
        return slice(int(start), int(stop))

    def _described(self, indices: NDArray[np.int64]) -> list[ArchiveFile]:
        return [ArchiveFile(**fields) for fields in self._files.take(_indices(indices)).to_pylist()]


def _numpy(column: pa.ChunkedArray, instead_of_null: int = 0) -> NDArray[np.int64]:
    """A column of int64. By its buffer: pyarrow's `to_numpy`, `pa.array` and `fill_null` import pandas, 0.2 s."""
    if column.null_count:
        column = pc.coalesce(column, pa.scalar(instead_of_null, pa.int64()))
    array = column.combine_chunks()
    if not len(array):
        return np.zeros(0, np.int64)
    return np.frombuffer(array.buffers()[1], np.int64)[array.offset : array.offset + len(array)]


def _indices(rows: NDArray[np.int64]) -> pa.Array:
    return pa.Array.from_buffers(pa.int64(), len(rows), [None, pa.py_buffer(np.ascontiguousarray(rows, np.int64))])


def _integers(table: pa.Table, name: str) -> pa.ChunkedArray:
    """A column as int64, timestamps as milliseconds; all null if no file has that statistic."""
    if name not in table.column_names:
        return pa.chunked_array([pa.nulls(table.num_rows, pa.int64())])
    column = table[name]
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("ms", column.type.tz), safe=False)
    return column.cast(pa.int64())
