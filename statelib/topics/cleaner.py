"""Compacts a partition of a changelog: of each key the last record stays, as Kafka's log cleaner has it.

What is cleaned begins with the partition and consists of whole files. Records that stay keep their offsets, so holes
appear. The very last record stays in any case: it says where the partition ends, if what follows is taken back. What
lies before `Cleaning.dirty_offset` has been cleaned before: there each key has one record.

Kafka Streams' windowed stores have changelogs with ``cleanup.policy=compact,delete``: there records of windows that
the store has long expired go too. Here that holds for all stores that expire by time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from statelib.columns.arrow_buffers import valid_of
from statelib.columns.key_filter import hashes_of
from statelib.records.key_table import KeyTable
from statelib.stores.byte_columns import split_tail

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from statelib.stores.byte_columns import Column
    from statelib.topics.archive import TopicArchive
    from statelib.topics.cleaning import Cleaning, Expiry
    from statelib.topics.files import ArchiveFile
    from statelib.topics.parquet.writer import FileLimits

_NONE = np.iinfo(np.int64).min


def clean(
    archive: TopicArchive, cleaning: Cleaning, *, attempt: str, limits: FileLimits, memory_bytes: int
) -> tuple[ArchiveFile, ...]:
    """Writes the records that stay, to be put in the place of all of ``cleaning.files``.

    Args:
        archive: A version that has the files; keys are binary.
        cleaning: See `Cleaning`.
        attempt: As for `TopicArchive.writer`.
        limits: Of the files that are written.
        memory_bytes: For keys; where that is too little the files are read more often. Beside that it takes a bit a
            record, a row group and a batch.

    Returns:
        The files, ascending by offset.

    Raises:
        InputError: A file is missing or damaged.
    """
    work = _Cleaner(archive, cleaning)
    replaced = work.replaced(memory_bytes)
    at = 0
    with archive.writer(cleaning.partition, attempt=attempt, limits=limits, takes_all=True) as writer:
        for batch in archive.reader(cleaning.partition, 0, cleaning.end_offset):
            gone = replaced.marked(at, len(batch)) | work.outdated(batch)
            gone &= batch.column("offset").to_numpy() != cleaning.end_offset - 1
            writer.write(batch.filter(pa.array(~gone)))
            at += len(batch)
        return writer.close()


class _Cleaner:
    def __init__(self, archive: TopicArchive, cleaning: Cleaning) -> None:
        self._archive = archive
        self._cleaning = cleaning
        self._newest_ms = _NONE  # the largest time; of a store that expires by it

    def replaced(self, memory_bytes: int) -> _Marks:
        """Marks the records, by their place, that another one of their key takes the place of.

        The keys are taken up in as many portions, by their hash, as it takes to keep within the memory.
        """
        portions = 1
        while (marks := self._replaced(portions, memory_bytes)) is None:
            portions *= 2
        return marks

    def outdated(self, batch: pa.RecordBatch) -> NDArray[np.bool_]:
        """Old tombstones, and records of what has expired."""
        offsets = batch.column("offset").to_numpy()
        tombstones = ~valid_of(batch.column("value"))
        outdated: NDArray[np.bool_] = tombstones & (offsets < self._cleaning.tombstones_before)
        expiry = self._cleaning.expiry
        if expiry is not None and self._newest_ms != _NONE:
            time = self._times(batch, expiry)
            outdated &= time < self._newest_ms
            outdated |= time <= self._newest_ms - expiry.retention_ms
        return outdated

    def _replaced(self, portions: int, memory_bytes: int) -> _Marks | None:
        """None: the keys of a portion take more memory."""
        marks = _Marks(sum(file.rows for file in self._cleaning.files))
        dirty, end = self._cleaning.dirty_offset, self._cleaning.end_offset
        for portion in range(portions):
            keys, last = KeyTable(), _Last()
            for batch in self._read(dirty, end):
                chosen = _chosen(batch.column("key"), portion, portions)
                last.see(keys.encode(batch.column("key").take(pa.array(chosen))), self._ranks(batch, chosen))
                if keys.memory_bytes() + last.memory_bytes > memory_bytes and len(keys) > 1:
                    return None
                self._note_time(batch)
            if self._cleaning.by_timestamp:  # what was cleaned before may have a larger timestamp
                for batch in self._read(0, dirty):
                    codes = keys.find(batch.column("key"))
                    known = np.flatnonzero(codes >= 0)
                    last.see(codes[known], self._ranks(batch, known))
            at = 0
            for batch in self._read(0, end):
                codes = keys.find(batch.column("key"))
                known = np.flatnonzero(codes >= 0)
                offsets = batch.column("offset").to_numpy()[known]
                marks.mark(at + known[offsets != last.offsets[codes[known]]])
                at += len(batch)
        return marks

    def _read(self, start: int, end: int) -> Iterator[pa.RecordBatch]:
        if start < end:
            columns = ["key", "offset", "timestamp"]
            yield from self._archive.reader(self._cleaning.partition, start, end, columns=columns)

    def _ranks(self, batch: pa.RecordBatch, chosen: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(timestamp, offset) of the chosen records: the largest stays. The timestamp is 0 where it does not matter."""
        offsets = batch.column("offset").to_numpy()[chosen]
        if not self._cleaning.by_timestamp:
            return np.zeros(len(chosen), np.int64), offsets
        return _timestamps(batch)[chosen], offsets

    def _note_time(self, batch: pa.RecordBatch) -> None:
        if self._cleaning.expiry is not None:
            self._newest_ms = max(self._newest_ms, int(self._times(batch, self._cleaning.expiry).max()))

    def _times(self, batch: pa.RecordBatch, expiry: Expiry) -> NDArray[np.int64]:
        if expiry.key_tail is None:
            return _timestamps(batch)
        _, tails = split_tail(batch.column("key"), expiry.key_tail, self._archive.topic)
        return tails["time"].astype(np.int64)


class _Last:
    """By code, the record that stays."""

    def __init__(self) -> None:
        self.timestamps = np.empty(0, np.int64)
        self.offsets = np.empty(0, np.int64)

    @property
    def memory_bytes(self) -> int:
        return self.timestamps.nbytes + self.offsets.nbytes

    def see(self, codes: NDArray[np.int64], ranks: tuple[NDArray[np.int64], NDArray[np.int64]]) -> None:
        """Takes records of known keys, and of new ones, whose codes are the next."""
        if not len(codes):
            return
        missing = int(codes.max()) + 1 - len(self.offsets)
        if missing > 0:
            room = max(missing, len(self.offsets) // 2)
            self.timestamps = np.concatenate([self.timestamps, np.full(room, _NONE)])
            self.offsets = np.concatenate([self.offsets, np.full(room, -1)])
        timestamps, offsets = ranks
        order = np.lexsort((offsets, timestamps, codes))
        is_last = np.append(codes[order][1:] != codes[order][:-1], True)
        best = order[is_last]
        at = codes[best]
        is_more = (timestamps[best] > self.timestamps[at]) | (
            (timestamps[best] == self.timestamps[at]) & (offsets[best] > self.offsets[at])
        )
        self.timestamps[at[is_more]] = timestamps[best][is_more]
        self.offsets[at[is_more]] = offsets[best][is_more]


class _Marks:
    """A bit for each record, by its place."""

    def __init__(self, rows: int) -> None:
        self._bits = np.zeros((rows + 7) // 8, np.uint8)

    def mark(self, places: NDArray[np.int64]) -> None:
        np.bitwise_or.at(self._bits, places >> 3, np.left_shift(1, places & 7).astype(np.uint8))

    def marked(self, start: int, rows: int) -> NDArray[np.bool_]:
        places = np.arange(start, start + rows)
        marked: NDArray[np.bool_] = (self._bits[places >> 3] >> (places & 7)) & 1 == 1
        return marked


def _timestamps(batch: pa.RecordBatch) -> NDArray[np.int64]:
    timestamps: NDArray[np.int64] = batch.column("timestamp").cast(pa.int64()).fill_null(_NONE).to_numpy()
    return timestamps


def _chosen(keys: Column, portion: int, portions: int) -> NDArray[np.int64]:
    """Places of the keys of a portion."""
    if portions == 1:
        return np.arange(len(keys))
    return np.flatnonzero(hashes_of(keys) % np.uint64(portions) == portion)
