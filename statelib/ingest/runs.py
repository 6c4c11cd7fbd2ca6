"""Sorted runs: records in as much order as fits into memory, by partition, in memory or in a file.

A load that does not fit into its budget is sorted as databases do it: what fits is sorted and written out, and the runs
are merged in the end (`merge`). A run's file is an Arrow IPC file; each of its batches belongs to one partition::

    batch 0 ... a      records of the first partition that has some, in order
    batch a + 1 ...    of the next one

It lives no longer than its load, so its layout has no version.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from statelib.ingest.records import ORDER, PARTITION
from statelib.ingest.values.types import stored, united_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from statelib.storage import Storage

_BATCH_ROWS = 1 << 15
_WRITING = pa.ipc.IpcWriteOptions(compression="lz4")


@dataclass(frozen=True, slots=True)
class Run:
    """Sorted records.

    Attributes:
        schema: Of its records: ``key``, ``value``, ``timestamp`` and perhaps ``order``, ``first``, ``headers``.
        batches: By partition, where its batches begin, and how many there are.
        path: Of its file; None: `held` has the batches.
        storage: Where the file is.
        held: The batches of a run in memory.
    """

    schema: pa.Schema
    batches: dict[int, tuple[int, int]]
    path: str | None = None
    storage: Storage | None = None
    held: tuple[pa.RecordBatch, ...] = ()

    def read(self, partition: int) -> Iterator[pa.RecordBatch]:
        """The records of a partition, in order."""
        first, count = self.batches.get(partition, (0, 0))
        if self.path is None or self.storage is None:
            yield from self.held[first : first + count]
            return
        if count:
            local = self.storage.local_path(self.path)  # mapped into memory, all that was read would count as used
            source = self.storage.open_input(self.path) if local is None else pa.OSFile(str(local))
            with source as opened, pa.ipc.open_file(opened) as file:
                for n in range(first, first + count):
                    yield file.get_batch(n)


@dataclass
class RunWriter:
    """Collects records and makes runs of them.

    Args:
        storage: Where to put runs that do not fit.
        prefix: Of the names of their files; unique to this writer.
        budget_bytes: What may be held in memory; sorting takes about as much again.
        is_sorted: Whether records are to be put in order; else they stay in that of their arrival.
    """

    storage: Storage
    prefix: str
    budget_bytes: int
    is_sorted: bool
    _runs: list[Run] = field(default_factory=list)
    _held: list[pa.RecordBatch] = field(default_factory=list)
    _held_bytes: int = 0

    def add(self, records: pa.RecordBatch) -> None:
        """Takes records: columns as of `Run`, and ``partition``."""
        if not records.num_rows:
            return
        self._held.append(records)
        self._held_bytes += records.get_total_buffer_size()
        if self._held_bytes > self.budget_bytes:
            self._spill()

    def finish(self, *, in_memory: bool) -> list[Run]:
        """The runs, in the order of arrival; the last one stays in memory if that is allowed."""
        if self._held:
            if in_memory:
                self._runs.append(_run_of(list(self._sorted())))
            else:
                self._spill()
        self._held = []
        return self._runs

    def _spill(self) -> None:
        path = f"{self.prefix}-{len(self._runs):06d}.arrow"
        batches: dict[int, tuple[int, int]] = {}
        writer: pa.ipc.RecordBatchFileWriter | None = None
        with self.storage.open_output(path) as raw, pa.PythonFile(raw, "w") as out:
            for n, (partition, batch) in enumerate(self._sorted()):
                writer = writer or pa.ipc.new_file(out, batch.schema, options=_WRITING)
                writer.write_batch(batch)
                first, count = batches.get(partition, (n, 0))
                batches[partition] = (first, count + 1)
            assert writer is not None  # noqa: S101 - something is held
            writer.close()
        self._runs.append(Run(batch.schema, batches, path, self.storage))
        self._held, self._held_bytes = [], 0

    def _sorted(self) -> Iterator[tuple[int, pa.RecordBatch]]:
        """What is held, by partition, in order, and let go."""
        held, self._held = self._held, []
        table = pa.Table.from_batches(_alike(held)).combine_chunks()
        del held
        partition = table[PARTITION].to_numpy()
        rows = arrangement(partition, table[ORDER] if self.is_sorted else None)
        table = table.drop_columns([PARTITION])
        counts = np.bincount(partition)
        start = 0
        for number in np.flatnonzero(counts).tolist():
            end = start + int(counts[number])
            while start < end:
                some = rows[start : min(start + _BATCH_ROWS, end)]
                taken = table.take(pa.array(some)).combine_chunks()
                yield number, taken.to_batches()[0]
                start += len(some)


def arrangement(partition: np.ndarray, order: pa.ChunkedArray | None) -> np.ndarray:
    """The rows by partition, and within one by ``order``; rows that are alike in both stay as they are.

    Args:
        partition: int32[n].
        order: Of any type with an order, without nulls; None: as they are.

    Returns:
        int64[n].
    """
    narrow = partition.astype(np.uint16) if len(partition) and partition.max() < 1 << 16 else partition  # radix sort
    if order is None:
        return np.argsort(narrow, kind="stable")
    first = in_order(order)
    return first[np.argsort(narrow[first], kind="stable")]


def in_order(order: pa.ChunkedArray | pa.Array) -> np.ndarray:
    """The rows in their order; equal ones stay as they are."""
    if pa.types.is_integer(order.type) or pa.types.is_temporal(order.type):
        numbers = order.cast(pa.int64()) if not pa.types.is_date32(order.type) else order.cast(pa.int32())
        values = numbers.to_numpy()
        is_sorted = len(values) < 2 or bool((values[1:] >= values[:-1]).all())  # noqa: PLR2004 - one is sorted
        return np.arange(len(values)) if is_sorted else np.argsort(values, kind="stable")
    return np.argsort(comparable(order), kind="stable")


def comparable(order: pa.ChunkedArray | pa.Array) -> np.ndarray:
    """The values as numpy compares them: numbers, or bytes."""
    if pa.types.is_string(order.type) or pa.types.is_binary(order.type):
        return np.array(order.cast(pa.binary()).to_pylist(), object)
    if pa.types.is_temporal(order.type) and not pa.types.is_date32(order.type):
        return np.asarray(order.cast(pa.int64()))
    return np.asarray(order)


def _run_of(parts: list[tuple[int, pa.RecordBatch]]) -> Run:
    batches: dict[int, tuple[int, int]] = {}
    for n, (partition, _) in enumerate(parts):
        first, count = batches.get(partition, (n, 0))
        batches[partition] = (first, count + 1)
    return Run(parts[0][1].schema, batches, held=tuple(batch for _, batch in parts))


def _alike(batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """The same records with values of one type, which all of theirs are read as."""
    value = batches[0].schema.field("value").type
    for batch in batches[1:]:
        value = united_text(value, batch.schema.field("value").type, "value")
    alike = [with_value_type(batch, value) for batch in batches]
    if len({batch.num_columns for batch in alike}) == 1:
        return alike
    tables = [pa.Table.from_batches([batch]) for batch in alike]
    together: pa.Table = pa.concat_tables(tables, promote_options="default")  # headers are missing where none has any
    return list(together.to_batches())


def with_value_type(batch: pa.RecordBatch, value: pa.DataType) -> pa.RecordBatch:
    """The records with their values as another type."""
    at = batch.schema.get_field_index("value")
    if batch.schema.field(at).type.equals(value):
        return batch
    return batch.set_column(at, "value", stored(batch.column(at), value))
