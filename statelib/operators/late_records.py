"""Records that are dropped because they came too late: kept aside for the job's side topic, where it has one.

An operator says `OperatorContext.drop_late`, which accounts for the records in either case. A task collects what all
its operators have said, in the order of the source records, so that the side topic depends on nothing but the input.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from statelib.records.batch import NO_OFFSET
from statelib.serdes import serde_for
from statelib.serdes.json import json_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from statelib.records.batch import Batch, Uptake

VALUE_TYPE = pa.struct(
    [
        pa.field("node", pa.string()),
        pa.field("reason", pa.string()),
        pa.field("lateness_ms", pa.int64()),
        pa.field("clock", pa.string()),
        pa.field("clock_ms", pa.int64()),
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("key", pa.string()),
        pa.field("window_start", pa.int64()),
        pa.field("window_end", pa.int64()),
        pa.field("value", pa.string()),
    ]
)
"""What a late record says: the node that dropped it and why; by how much it was behind which clock, and what that clock
said; the place of the source record that caused it (null where it has none); its key and value as JSON, and the window
of its key, if it has one. Times are milliseconds; of a repartition topic the place counts from the job's beginning."""


class LateRecords:
    """Collects the late records of one task.

    Args:
        sources: The task's source topics, by `Uptake.source`.
    """

    def __init__(self, sources: Sequence[str]) -> None:
        self._sources = pa.array(sources, pa.string())
        self._collected: list[pa.RecordBatch] = []
        self._sequences: list[NDArray[np.int64]] = []

    def add(
        self, node: str, batch: Batch, uptake: Uptake, *, clock_ms: NDArray[np.int64], clock: str, reason: str
    ) -> None:
        """Takes records.

        Args:
            node: Who dropped them.
            batch: The records.
            uptake: Of the run of source records that caused them.
            clock_ms: int64, what the clock said at each record, ms.
            clock: The clock's name.
            reason: Why they were dropped.
        """
        count, row = len(batch), batch.sequence - uptake.first_sequence
        windows = batch.windows
        nowhere = uptake.offset[row] == NO_OFFSET
        columns = [
            pa.repeat(node, count),
            pa.repeat(reason, count),
            pa.array(clock_ms - batch.timestamp),
            pa.repeat(clock, count),
            pa.array(clock_ms),
            self._sources.take(pa.array(uptake.source[row], mask=nowhere)),
            pa.array(uptake.partition[row], mask=nowhere),
            pa.array(uptake.offset[row], mask=nowhere),
            json_text(batch.key),
            pa.nulls(count, pa.int64()) if windows is None else pa.array(windows.start),
            pa.nulls(count, pa.int64()) if windows is None else pa.array(windows.end),
            json_text(batch.value),
        ]
        key = serde_for(batch.key.type).serialize(batch.key).cast(pa.binary())
        value = pa.StructArray.from_arrays(columns, fields=list(VALUE_TYPE))
        rows = {"key": key, "value": value, "timestamp": pa.array(batch.timestamp)}
        self._collected.append(pa.RecordBatch.from_pydict(rows))
        self._sequences.append(uptake.causes_of(batch))

    def drain(self) -> pa.RecordBatch | None:
        """What was collected since the last call, in the order of the records that caused it; None if nothing was.

        Columns: key (binary), value (`VALUE_TYPE`), timestamp (int64 ms). Of equal causes the node comes first that
        runs first.
        """
        if not self._collected:
            return None
        rows, order = pa.concat_batches(self._collected), np.argsort(np.concatenate(self._sequences), kind="stable")
        self._collected, self._sequences = [], []
        return rows.take(pa.array(order))
