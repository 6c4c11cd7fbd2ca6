"""Aggregation by key, without windows: of a stream's records, or of a table's changes.

Of a stream every record updates the aggregate of its key (Kafka's ``KStreamAggregate``, ``KStreamReduce``); records
with a null key or value are dropped. Of a table every change takes its old value back and adds its new one, in one
update (``KTableAggregate``, ``KTableReduce``).

Each update is forwarded as a change of the aggregated table. Its timestamp is that of the record, or that of the
aggregate so far if that is younger. An aggregate that becomes null is deleted, and the key starts over.

In a versioned store each update is a version. An update that is older than the store's retention is refused: it is not
stored, not added to the aggregate, and not forwarded.

Accounts: ``aggregated``, ``refused``, ``null-key``, ``null-value``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from statelib.columns.arrow_buffers import valid_of
from statelib.columns.growing import grown
from statelib.operators.aggregation.accumulators.kernel import latest_timestamp
from statelib.operators.aggregation.aggregator import prepared, walked
from statelib.operators.aggregation.changelog import states
from statelib.operators.aggregation.cogroup import CogroupedStreams
from statelib.operators.aggregation.definition import count_of_streams, fields_of_aggregator
from statelib.operators.aggregation.key_slots import KeySlots
from statelib.operators.aggregation.prior_results import prior_results
from statelib.operators.aggregation.store import PlainAggregateStore, VersionedAggregateStore
from statelib.operators.aggregation.table_select import unpacked
from statelib.operators.key_codes import key_codes
from statelib.operators.mappers.fields import ALL
from statelib.operators.tables.writer import TableStore, VersionedStore
from statelib.records.batch import NO_TIMESTAMP, NULL_KEY, Batch
from statelib.stores.spec import settings_of
from statelib.stores.stored_rows import stored_rows, stored_value

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from statelib.operators.aggregation.definition import AggregatorSpec
    from statelib.operators.base import OperatorContext
    from statelib.operators.mappers.fields import Fields
    from statelib.records.batch import Uptake
    from statelib.stores.backend import WriteBatch
    from statelib.stores.spec import StoreSpec

_NOTHING_REMOVED = np.empty(0, dtype=np.bool_)


@dataclass(frozen=True, slots=True)
class KeyAggregate:
    """Aggregates by key.

    Attributes:
        store: Where the aggregates are kept.
        aggregator: What to compute.
        of_table: Whether the input is a table's changes (`statelib.operators.aggregation.table_select`), which the
            aggregator takes back and adds.
        needs_prior: Whether updates carry the value that they replace. Before a key's first update that is null; the
            shipped library (``semantics="kafka-4.3"``) gives the initializer's value, if it aggregates a stream.
    """

    store: TableStore
    aggregator: AggregatorSpec
    of_table: bool = False
    needs_prior: bool = False

    def build(self, context: OperatorContext) -> RunningKeyAggregate:
        """The running operator."""
        return RunningKeyAggregate(self, context)

    def describe(self) -> Mapping[str, object]:
        """Kind and parameters."""
        return {
            "operator": "table_aggregate" if self.of_table else "stream_aggregate",
            "store": self.store.describe(),
            "aggregator": self.aggregator.describe(),
        }

    def reads(self, parent: int, wanted: Fields) -> Fields:
        """See `FieldsSpec`."""
        del wanted
        return ALL if self.of_table else fields_of_aggregator(self.aggregator, parent)

    def state_stores(self) -> Sequence[StoreSpec]:
        """The store's."""
        return (self.store.spec(settings_of(self.describe())),)


class _Updates(NamedTuple):
    """Updates as columns: the record of each, its timestamp, the new value and, where needed, what that replaces."""

    rows: NDArray[np.int64]
    timestamp: NDArray[np.int64]
    value: pa.Array
    prior: pa.Array | None
    is_latest: NDArray[np.bool_] | None

    def nothing(self) -> _Updates:
        """None of them."""
        no_latest = None if self.is_latest is None else self.is_latest[:0]
        no_prior = None if self.prior is None else self.prior[:0]
        return _Updates(self.rows[:0], self.timestamp[:0], self.value[:0], no_prior, no_latest)


class RunningKeyAggregate:
    """A running `KeyAggregate`: the aggregates of the keys named since the last flush, as arrays by slot."""

    def __init__(self, spec: KeyAggregate, context: OperatorContext) -> None:
        self._spec = spec
        self._context = context
        self._aggregator = spec.aggregator.build(context.node, context.metrics)
        if isinstance(spec.store, VersionedStore):
            self._store: PlainAggregateStore | VersionedAggregateStore = VersionedAggregateStore(
                spec.store, context, deletes=self._aggregator.may_be_null
            )
        else:
            self._store = PlainAggregateStore(spec.store, context)
        self._changelog = context.changelogs.get(spec.store.name)
        self._remembers = self._changelog is not None or isinstance(spec.store, VersionedStore)
        self._streams = CogroupedStreams(context, count_of_streams(spec.aggregator))
        self._start_over()

    def _start_over(self) -> None:
        """An empty working set."""
        self._slots = KeySlots()
        self._timestamp = np.empty(0, dtype=np.int64)
        self._loaded = 0  # how many slots have been looked up in the store
        self._failed = np.empty(0, dtype=np.int64)  # records of the last batch for which a function has failed

    def process(self, inputs: Sequence[Batch], uptake: Uptake) -> Batch:
        """One change for each record or change that is aggregated."""
        batch = unpacked(inputs[0]) if self._spec.of_table else self._streams.taken_up(inputs)
        batch = prepared(self._aggregator, batch, self._context)  # of no records too: they have types
        codes = key_codes(batch, self._context)
        wanted = codes != NULL_KEY
        if not self._spec.of_table:
            wanted &= self._streams.has_value(batch)
        rows = np.flatnonzero(wanted)
        slots = self._slots.find(codes[rows])
        self._reserve_and_load()
        self._failed = rows[:0]
        made = [self._aggregate(batch, rows[part], slots[part]) for part in self._parts(batch.timestamp[rows])]
        updates = self._together(made)
        self._account(batch, codes, wanted, updates, uptake)
        chosen = pa.array(updates.rows)
        return Batch(
            keys=batch.keys.take(chosen),
            key_code=codes[updates.rows],
            value=updates.value,
            timestamp=updates.timestamp,
            sequence=batch.sequence[updates.rows],
            prior=updates.prior,
            headers=batch.headers_at(chosen),
            is_latest=updates.is_latest,
        )

    def flush(self, write: WriteBatch) -> None:
        """Writes the aggregates that have changed since the last flush."""
        schema = self._aggregator.schema
        if schema is not None and len(self._slots):
            slots = np.arange(len(self._slots))
            values = stored_value(self._aggregator.dump(slots))
            self._store.flush(self._slots.key_code, self._timestamp[slots], values, schema, write)
        self._aggregator.keep(np.empty(0, dtype=np.int64))
        self._start_over()

    def memory_bytes(self) -> int:
        """Size of the working set."""
        arrays = self._slots.memory_bytes() + self._timestamp.nbytes
        return int(arrays + self._aggregator.memory_bytes() + self._store.memory_bytes())

    def _reserve_and_load(self) -> None:
        """Makes room for the slots that this batch has opened, and looks their aggregates up in the store."""
        first, self._loaded = self._loaded, len(self._slots)
        self._aggregator.reserve(self._loaded)
        self._timestamp = grown(self._timestamp, self._loaded, NO_TIMESTAMP)
        schema = self._aggregator.schema
        if first == self._loaded or schema is None:
            return
        new = np.arange(first, self._loaded)
        timestamp, values = self._store.load(self._slots.key_code[new], schema)
        there = np.flatnonzero(timestamp != NO_TIMESTAMP)
        if len(there):
            self._aggregator.restore(new[there], stored_rows(values.take(pa.array(there)), schema))
            self._timestamp[new] = timestamp

    def _parts(self, timestamp: NDArray[np.int64]) -> Iterator[slice]:
        """The records in pieces; one whose update may come to nothing is by itself: what follows depends on it."""
        doubtful = np.flatnonzero(self._store.is_doubtful(timestamp))
        done = 0
        for row in doubtful.tolist():
            if row > done:
                yield slice(done, row)
            yield slice(row, row + 1)
            done = row + 1
        if done < len(timestamp):
            yield slice(done, len(timestamp))

    def _aggregate(self, batch: Batch, rows: NDArray[np.int64], slots: NDArray[np.int64]) -> _Updates:
        """Adds records; only one if its update may come to nothing."""
        before = None
        if isinstance(self._store, VersionedAggregateStore) and len(rows) == 1:
            before = self._timestamp[slots], self._aggregator.dump(slots)
        priors = None
        if self._spec.needs_prior:
            priors = prior_results(
                self._aggregator,
                slots,
                self._timestamp[slots] != NO_TIMESTAMP,
                count=len(self._slots),
                initial_of_new=self._context.semantics != "kip" and not self._spec.of_table,
            )
        made = walked(self._aggregator, rows, slots, priors, remembers=self._remembers)
        self._failed = np.append(self._failed, made.failed_rows)
        rows, slots, value = made.rows, made.slots, made.result
        removed = ~valid_of(value) if value.null_count else _NOTHING_REMOVED
        timestamp = np.empty(len(rows), dtype=np.int64)
        latest_timestamp(rows, slots, batch.timestamp, removed, self._timestamp, timestamp)
        updates = _Updates(rows, timestamp, value, made.prior, None)
        if isinstance(self._store, PlainAggregateStore):
            if self._changelog is not None:
                kept = states(made.rows_to_store, removed)
                since = np.where(valid_of(kept), timestamp, batch.timestamp[rows])
                self._changelog.add(self._context.keys.take(self._slots.key_code[slots]), kept, since)
            return updates
        versions = replace(
            batch.take(rows),
            key_code=self._slots.key_code[slots],
            value=states(made.rows_to_store, removed),
            timestamp=timestamp,
        )
        changes, refused, _ = self._store.put(versions)
        is_latest = changes.is_latest
        if before and (refused.any() or (is_latest is not None and not is_latest.all())):
            self._timestamp[slots] = before[0]
            self._aggregator.restore(slots, before[1])
        return updates.nothing() if refused.any() else updates._replace(is_latest=is_latest)

    def _together(self, made: list[_Updates]) -> _Updates:
        if len(made) == 1:
            return made[0]
        no_rows = np.empty(0, dtype=np.int64)
        nothing = pa.nulls(0, self._aggregator.result_type)
        latest = [part.is_latest for part in made if part.is_latest is not None]
        return _Updates(
            np.concatenate([no_rows, *(part.rows for part in made)]),
            np.concatenate([no_rows, *(part.timestamp for part in made)]),
            pa.concat_arrays([nothing, *(part.value for part in made)]),
            pa.concat_arrays([nothing, *(part.prior for part in made)]) if self._spec.needs_prior else None,
            np.concatenate(latest) if latest else None,
        )

    def _account(
        self,
        batch: Batch,
        codes: NDArray[np.int64],
        wanted: NDArray[np.bool_],
        updates: _Updates,
        uptake: Uptake,
    ) -> None:
        metrics = self._context.metrics
        null_key = int(np.count_nonzero(codes == NULL_KEY))
        metrics.records_in += len(batch)
        metrics.records_out += len(updates.rows)
        metrics.account("aggregated", len(updates.rows))
        metrics.drop("null-key", null_key)
        metrics.drop("null-value", len(batch) - int(np.count_nonzero(wanted)) - null_key)
        refused = wanted.copy()
        refused[updates.rows] = refused[self._failed] = False
        self._streams.drop_late(
            batch, np.flatnonzero(refused), uptake, self._store.clock - batch.timestamp,
            reason="older than the history retention", clock="store_time", account="refused",
        )  # fmt: skip
