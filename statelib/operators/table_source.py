"""A topic as a versioned table: every update becomes a version in the table's store (Kafka's ``KTableSource``).

This operator alone writes the store; joins read it, see `statelib.operators.stream_table_join`. An update that is older
than the store's retention is refused; what was put goes on to the children, tombstones included.

Accounts: ``stored``, ``refused``, ``null-key``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from statelib.batch import NULL_KEY
from statelib.kernels.versioned_join import NO_ROW, Timelines
from statelib.operators.key_codes import key_codes
from statelib.serdes import serde_for
from statelib.stores.versioned import VersionedKeyValueStore, VersionSet

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from statelib.batch import Batch, Uptake
    from statelib.operators.base import OperatorContext
    from statelib.stores.backend import WriteBatch


@dataclass(frozen=True, slots=True)
class TableSource:
    """Materialises a topic in a versioned store.

    Attributes:
        store: Name of the store.
        history_retention_ms: How long older versions can be asked for, and how late an update may come.
        segment_interval_ms: Width of the store's segments; None: the store's default.
    """

    store: str
    history_retention_ms: int
    segment_interval_ms: int | None = None

    def open(self, context: OperatorContext) -> VersionedKeyValueStore:
        """The store, as it was last written."""
        return VersionedKeyValueStore(
            context.backend,
            self.store,
            history_retention_ms=self.history_retention_ms,
            segment_interval_ms=self.segment_interval_ms,
            semantics=context.semantics,
        )

    def build(self, context: OperatorContext) -> RunningTableSource:
        """The running operator."""
        return RunningTableSource(self, context)

    def describe(self) -> Mapping[str, object]:
        """Kind and parameters."""
        return {
            "operator": "table_source",
            "store": self.store,
            "history_retention_ms": self.history_retention_ms,
            "segment_interval_ms": self.segment_interval_ms,
        }

    def families(self) -> Sequence[str]:
        """The store's."""
        return VersionedKeyValueStore.families(self.store)


class RunningTableSource:
    """The running operator: a log of the updates since the last flush."""

    def __init__(self, spec: TableSource, context: OperatorContext) -> None:
        self._spec = spec
        self._context = context
        self._stream_time = spec.open(context).stream_time
        self._log: list[Batch] = []

    def process(self, inputs: Sequence[Batch], uptake: Uptake) -> Batch:
        """The updates that are put."""
        (batch,) = inputs
        keyed = key_codes(batch, self._context) != NULL_KEY
        clock = np.concatenate([[self._stream_time], np.where(keyed, batch.timestamp, self._stream_time)])
        clock = np.maximum.accumulate(clock)  # a refused update is older than the clock: it would not move it
        accepted = keyed & (batch.timestamp >= clock[:-1] - self._spec.history_retention_ms)
        self._stream_time = int(clock[-1])
        result = batch.filter(accepted)
        if len(result):
            self._log.append(result)
        metrics = self._context.metrics
        metrics.records_in += len(batch)
        metrics.records_out += len(result)
        metrics.account("stored", len(result))
        metrics.drop("null-key", len(batch) - int(keyed.sum()))
        self._context.drop_late(
            batch, keyed & ~accepted, uptake, clock[1:] - batch.timestamp,
            reason="older than the history retention", clock="store_time", account="refused",
        )  # fmt: skip
        return result

    def flush(self, write: WriteBatch) -> None:
        """Puts the logged updates into the stored timelines of their keys."""
        if not self._log:
            return
        codes = np.concatenate([key_codes(batch, self._context) for batch in self._log])
        timestamps = np.concatenate([batch.timestamp for batch in self._log])
        values = pa.concat_arrays([batch.value for batch in self._log])
        serialized = serde_for(values.type).serialize(values)
        store = self._spec.open(self._context)
        changed, puts = np.unique(codes, return_inverse=True)
        keys = self._context.keys.take(changed).to_pylist()
        earliest = np.full(len(changed), np.iinfo(np.int64).max)
        np.minimum.at(earliest, puts, timestamps)
        loaded = store.load(keys, earliest)

        timelines = Timelines(self._spec.history_retention_ms, store.stream_time, kip=self._context.semantics == "kip")
        everyone = np.arange(len(changed))
        load_versions(timelines, everyone, loaded, first_row=0)
        rows = np.where(np.asarray(serialized.is_valid()), len(loaded.values) + np.arange(len(puts)), NO_ROW)
        order = np.arange(len(puts))
        nothing = order[:0]
        timelines.apply((order, puts, timestamps, rows), (nothing, nothing, nothing))

        offsets, valid_from, rows, remembered = timelines.versions(everyone)
        bytes_of = pa.concat_arrays([loaded.values, serialized.cast(loaded.values.type)])
        is_tombstone = rows == NO_ROW
        versions = VersionSet(
            offsets, valid_from, is_tombstone, bytes_of.take(pa.array(rows, mask=is_tombstone)), remembered
        )
        store.store(keys, versions, timelines.stream_time, write)
        self._log = []

    def memory_bytes(self) -> int:
        """The log."""
        return sum(batch.value.nbytes + batch.timestamp.nbytes * 3 for batch in self._log)


def load_versions(timelines: Timelines, codes: NDArray[np.int64], versions: VersionSet, *, first_row: int) -> None:
    """Takes stored versions into timelines; their values are the rows from ``first_row`` on."""
    timelines.make_room(int(codes.max(initial=-1)) + 1)
    rows = np.where(versions.is_tombstone, NO_ROW, first_row + np.arange(len(versions.is_tombstone)))
    timelines.load(codes, versions.offsets, versions.valid_from, rows, versions.remembered)
