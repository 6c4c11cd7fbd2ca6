"""Where records go that cannot be used: nowhere (the run fails at the first one), or to the job's quarantine topic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
import pyarrow as pa

from statelib.columns.times import LAST_TIME_MS
from statelib.errors.kinds import InputError
from statelib.records.key_column import KeyColumn
from statelib.serdes import serde_for
from statelib.topics.quarantined import VALUE_TYPE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from statelib.metrics.node_metrics import NodeMetrics
    from statelib.task.source_records import Records


class Quarantine:
    """Collects unusable records of one task.

    Args:
        policy: ``fail`` or ``quarantine``.
        metrics: The sources' ledgers, by topic.
    """

    def __init__(self, policy: Literal["fail", "quarantine"], metrics: Mapping[str, NodeMetrics]) -> None:
        self._policy = policy
        self._metrics = metrics
        self._collected: list[pa.RecordBatch] = []

    def add(
        self, topic: str, partition: int, records: pa.RecordBatch, reasons: pa.Array, *, always: bool = False
    ) -> None:
        """Takes ``records`` (an archive's columns), each for the reason beside it; ``always``: whatever the policy is.

        Raises:
            InputError: The job does not quarantine.
        """
        if self._policy == "fail" and not always:
            raise InputError(
                f"a record cannot be used: {reasons[0].as_py()}",
                topic=topic,
                partition=partition,
                offset=records.column("offset")[0].as_py(),
                next_step="fix the topic, or set on_bad_record to quarantine, which sets such records apart",
            )
        self._metrics[topic].records_in += len(records)
        self._metrics[topic].drop("quarantined", len(records))
        self._collect(topic, partition, records, reasons)

    def add_failed(self, topic: str, partition: int, records: Records, reason: str) -> None:
        """Takes source records that were processed, and have caused what a function of the user's failed for."""
        columns = {
            "key": records.keys.plain,
            "value": records.value,
            "timestamp": pa.array(records.timestamp),
            "offset": pa.array(records.offset),
        }
        reasons = pa.array([reason] * len(records))
        self._collect(topic, partition, pa.RecordBatch.from_pydict(columns), reasons)

    def _collect(self, topic: str, partition: int, records: pa.RecordBatch, reasons: pa.Array) -> None:
        timestamp = records.column("timestamp").cast(pa.int64())
        value = pa.StructArray.from_arrays(
            [
                pa.array([topic] * len(records)),
                pa.array(np.full(len(records), partition, np.int32)),
                records.column("offset"),
                timestamp,
                reasons,
                _bytes(records.column("value")),
            ],
            fields=list(VALUE_TYPE),
        )
        known = pa.array(np.clip(timestamp.fill_null(0).to_numpy(zero_copy_only=False), 0, LAST_TIME_MS))
        key = _bytes(KeyColumn(records.column("key")).plain)
        columns = {"key": key, "value": value, "timestamp": known}
        self._collected.append(pa.RecordBatch.from_pydict(columns))

    def drop(self, topic: str, account: str, records: int) -> None:
        """Says that records of a source are dropped and counted, and go nowhere."""
        self._metrics[topic].records_in += records
        self._metrics[topic].drop(account, records)

    def count(self, topic: str, name: str, records: int) -> None:
        """Counts records of a source that were not as they should be, and are taken up all the same."""
        self._metrics[topic].count(name, records)

    def forget(self) -> None:
        """Drops what was collected: for those who only look on."""
        self._collected = []

    def drain(self) -> Iterator[pa.RecordBatch]:
        """What was collected since the last call: columns key (binary), value (`VALUE_TYPE`), timestamp (int64 ms)."""
        collected, self._collected = self._collected, []
        yield from collected


def _bytes(column: pa.Array) -> pa.Array:
    return column if pa.types.is_binary(column.type) else serde_for(column.type).serialize(column).cast(pa.binary())
