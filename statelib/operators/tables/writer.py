"""Writes tables: what every operator does that keeps its table in a store, and the two kinds of stores it may be.

A *plain* table has of each key the value that arrived last, also if an older timestamp comes later. A *versioned* one
has the history of each key (KIP-889); updates older than its retention are refused, and late ones are not the latest.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from statelib.columns.arrow_buffers import valid_of
from statelib.columns.counting import distinct
from statelib.operators.key_codes import key_codes
from statelib.operators.tables.store import KeyValueStore
from statelib.operators.tables.stored_latest import StoredPlain, StoredVersions
from statelib.operators.tables.working_set import LatestValues, Updates
from statelib.operators.versioned.kernel import NO_ROW, Timelines
from statelib.operators.versioned.store import VersionedKeyValueStore, VersionSet
from statelib.operators.versioned.working_set import VersionedValues, load_versions
from statelib.serdes import serde_for
from statelib.stores.byte_columns import in_order
from statelib.stores.spec import StoreSpec, settings_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from statelib.operators.base import OperatorContext
    from statelib.records.batch import Batch, Uptake
    from statelib.stores.backend import WriteBatch
    from statelib.stores.byte_columns import Column
    from statelib.stores.stored_rows import StoredStates


_END_OF_TIME = np.iinfo(np.int64).max - 1


class Written(NamedTuple):
    """What became of updates.

    Attributes:
        changes: Those that were put, as changes (`statelib.operators.tables.change`).
        refused: bool, for each update whether it was too old.
        lateness_ms: int64, how far each was behind the store's clock.
    """

    changes: Batch
    refused: NDArray[np.bool_]
    lateness_ms: NDArray[np.int64]


class TableWriter(Protocol):
    """Keeps a table in a store."""

    def put(self, updates: Batch) -> Written:
        """Puts updates, all of which have a key; their old values and flags are not looked at."""

    def flush(self, write: WriteBatch) -> None:
        """Adds every change since the last flush to ``write`` and forgets the working set."""

    def memory_bytes(self) -> int:
        """Size of the working set."""


class WritingOperator:
    """Base of the running operators that keep the table they make, if there is a store for it.

    Args:
        store: Where the table is kept; None: nowhere.
        context: The operator's.
        needs_prior: Whether changes say what they replace.
    """

    def __init__(self, store: TableStore | None, context: OperatorContext, *, needs_prior: bool) -> None:
        self._context = context
        self._writer = None if store is None else store.writer(context, needs_prior=needs_prior)

    def _put(self, writer: TableWriter, updates: Batch, uptake: Uptake) -> Written:
        """Puts updates, and says which are refused."""
        written = writer.put(updates)
        self._context.drop_late(
            updates, np.flatnonzero(written.refused), uptake, written.lateness_ms,
            reason="older than the history retention", clock="store_time", account="refused",
        )  # fmt: skip
        return written

    def flush(self, write: WriteBatch) -> None:
        """Writes what has changed."""
        if self._writer is not None:
            self._writer.flush(write)

    def memory_bytes(self) -> int:
        """The working set."""
        return 0 if self._writer is None else self._writer.memory_bytes()


@dataclass(frozen=True, slots=True)
class PlainStore:
    """A table's plain store (Kafka's ``TimestampedKeyValueStore``).

    Attributes:
        name: The store's.
    """

    name: str

    def stored(
        self, context: OperatorContext, value_type: pa.DataType, aggregator: StoredStates | None = None
    ) -> StoredPlain:
        """What keys have now, as it was last written; ``aggregator``: what has made the table, if that is so."""
        return StoredPlain(context, self.name, value_type, None if aggregator is None else aggregator.results_of)

    def expiry(self, context: OperatorContext) -> None:
        """It forgets nothing."""

    def writer(self, context: OperatorContext, *, needs_prior: bool) -> TableWriter:
        """Writes the table; ``needs_prior``: the changes say what they replace."""
        return _PlainTableWriter(self, context, needs_prior=needs_prior)

    def describe(self) -> Mapping[str, object]:
        """As plain data."""
        return {"store": self.name}

    def spec(self, settings: Mapping[str, object] | None = None) -> StoreSpec:
        """What the store is; ``settings``: beside its own, of whoever makes the table."""
        return StoreSpec(self.name, "key-value", KeyValueStore.families(self.name), {**(settings or {})})


@dataclass(frozen=True, slots=True)
class VersionedStore:
    """A table's versioned store (KIP-889).

    Attributes:
        name: The store's.
        history_retention_ms: How long older versions can be asked for, and how late an update may come.
        segment_interval_ms: Width of the store's segments; None: the store's default.
    """

    name: str
    history_retention_ms: int
    segment_interval_ms: int | None = None

    def open(self, context: OperatorContext) -> VersionedKeyValueStore:
        """The store, as it was last written."""
        return VersionedKeyValueStore(
            context.backend,
            self.name,
            history_retention_ms=self.history_retention_ms,
            segment_interval_ms=self.segment_interval_ms,
            semantics=context.semantics,
        )

    def values(
        self, context: OperatorContext, value_type: pa.DataType, aggregator: StoredStates | None = None
    ) -> VersionedValues:
        """A working set over the store, as it was last written; see `VersionedValues`."""
        store, is_empty = self.open(context), self._is_empty(context)
        return VersionedValues(context, store, is_empty=is_empty, value_type=value_type, aggregator=aggregator)

    def stored(
        self, context: OperatorContext, value_type: pa.DataType, aggregator: StoredStates | None = None
    ) -> StoredVersions:
        """What keys have now, as it was last written; ``aggregator``: what has made the table, if that is so."""
        store, is_empty = self.open(context), self._is_empty(context)
        return StoredVersions(store, is_empty=is_empty, value_type=value_type, aggregator=aggregator)

    def expiry(self, context: OperatorContext) -> None:
        """It forgets no latest value."""

    def _is_empty(self, context: OperatorContext) -> bool:
        return all(context.backend.is_empty(family) for family in VersionedKeyValueStore.families(self.name))

    def writer(self, context: OperatorContext, *, needs_prior: bool) -> VersionedTableWriter:
        """Writes the table; ``needs_prior``: the changes say what they replace and whether they are the latest."""
        return VersionedTableWriter(self, context, needs_prior=needs_prior)

    def describe(self) -> Mapping[str, object]:
        """As plain data."""
        return {
            "store": self.name,
            "history_retention_ms": self.history_retention_ms,
            "segment_interval_ms": self.segment_interval_ms,
        }

    def spec(self, settings: Mapping[str, object] | None = None) -> StoreSpec:
        """What the store is; ``settings``: beside its own, of whoever makes the table."""
        own = settings_of(self.describe())
        return StoreSpec(
            self.name, "versioned", VersionedKeyValueStore.families(self.name), {**(settings or {}), **own}
        )


TableStore = PlainStore | VersionedStore


class _PlainTableWriter:
    """Of each key the value that arrived last."""

    def __init__(self, store: PlainStore, context: OperatorContext, *, needs_prior: bool) -> None:
        self._store = store
        self._context = context
        self._needs_prior = needs_prior
        self._changelog = context.changelogs.get(store.name)
        self._stored: StoredPlain | None = None
        self._values: LatestValues | None = None

    def put(self, updates: Batch) -> Written:
        """See `TableWriter`; nothing is refused."""
        if self._values is None:
            self._stored = StoredPlain(self._context, self._store.name, updates.value.type)
            self._values = LatestValues(self._context, self._stored)
        codes = key_codes(updates, self._context)
        columns = Updates(updates.sequence, codes, updates.timestamp, updates.value)
        replaced = self._values.put(columns, look_up=self._needs_prior)
        if self._changelog is not None:
            self._changelog.add(updates.keys.serialized(), updates.value, updates.timestamp)
        changes = replace(updates, key_code=codes, prior=replaced and replaced.value, is_latest=None)
        return Written(changes, np.zeros(len(updates), dtype=np.bool_), np.zeros(len(updates), dtype=np.int64))

    def flush(self, write: WriteBatch) -> None:
        """See `TableWriter`."""
        if self._values is not None and self._stored is not None:
            keys, latest = self._values.changed()
            if len(keys):
                self._stored.put(keys, latest, write)
        self._stored = self._values = None

    def memory_bytes(self) -> int:
        """See `TableWriter`."""
        return 0 if self._values is None else self._values.memory_bytes()


class VersionedTableWriter:
    """A log of the updates since the last flush, and the versions of their keys where prior values are needed."""

    def __init__(self, store: VersionedStore, context: OperatorContext, *, needs_prior: bool) -> None:
        self._store = store
        self._context = context
        self._needs_prior = needs_prior
        self._changelog = context.changelogs.get(store.name)
        self._stream_time = store.open(context).stream_time
        self._log: list[Batch] = []
        self._values: VersionedValues | None = None

    def put(self, updates: Batch) -> Written:
        """See `TableWriter`."""
        clock = np.maximum.accumulate(np.concatenate([[self._stream_time], updates.timestamp]))
        # A refused update is older than the clock: it does not move it.
        refused = updates.timestamp < clock[:-1] - self._store.history_retention_ms
        self._stream_time = int(clock[-1])
        accepted = replace(updates, key_code=key_codes(updates, self._context), prior=None, is_latest=None)
        accepted = accepted.filter(~refused)
        if self._changelog is not None:
            logged = updates if self._context.semantics != "kip" else accepted  # the shipped one logs all
            self._changelog.add(logged.keys.serialized(), logged.value, logged.timestamp)
        if len(accepted):
            self._log.append(accepted)
        changes = accepted
        if self._needs_prior:
            prior, is_latest = self._known(updates).put(accepted)
            changes = replace(accepted, prior=prior, is_latest=is_latest)
        return Written(changes, refused, clock[1:] - updates.timestamp)

    def have_values(self, updates: Batch) -> NDArray[np.bool_]:
        """bool, of updates that have not been put: whether their keys have a value now; needs prior values."""
        codes, known = key_codes(updates, self._context), self._known(updates)
        now = replace(updates, timestamp=np.full(len(updates), _END_OF_TIME))
        there: NDArray[np.bool_] = known.meet(now, codes, updates.slice(0, 0)) != NO_ROW
        return there

    def _known(self, updates: Batch) -> VersionedValues:
        """What keys have, since the last flush."""
        if self._values is None:  # opened here, after the last flush has been written
            self._values = self._store.values(self._context, updates.value.type)
        return self._values

    def flush(self, write: WriteBatch) -> None:
        """Puts the logged updates into the stored timelines of their keys."""
        self._values = None
        if not self._log:
            return
        codes = np.concatenate([key_codes(batch, self._context) for batch in self._log])
        timestamps = np.concatenate([batch.timestamp for batch in self._log])
        values = pa.concat_arrays([batch.value for batch in self._log])
        serialized = serde_for(values.type).serialize(values)
        store = self._store.open(self._context)
        keys, puts = self._keys_in_order(codes)
        earliest = np.full(len(keys), np.iinfo(np.int64).max)
        np.minimum.at(earliest, puts, timestamps)
        loaded = store.load(keys, earliest)
        stored = loaded.versions

        kip = self._context.semantics == "kip"
        timelines = Timelines(self._store.history_retention_ms, store.stream_time, kip=kip)
        everyone = np.arange(len(keys))
        load_versions(timelines, everyone, stored, first_row=0)
        rows = np.where(valid_of(serialized), len(stored.values) + np.arange(len(puts)), NO_ROW)
        order = np.arange(len(puts))
        nothing = order[:0]
        timelines.apply((order, puts, timestamps, rows), (nothing, nothing, nothing))

        offsets, valid_from, rows, remembered = timelines.versions(everyone)
        bytes_of = pa.concat_arrays([stored.values, serialized.cast(stored.values.type)])
        is_tombstone = rows == NO_ROW
        versions = VersionSet(
            offsets, valid_from, is_tombstone, bytes_of.take(pa.array(rows, mask=is_tombstone)), remembered
        )
        store.store(loaded, versions, timelines.stream_time, write)
        self._log = []

    def _keys_in_order(self, codes: NDArray[np.int64]) -> tuple[Column, NDArray[np.int64]]:
        """The distinct keys, in bytewise order because stores are faster then; int64: which of them each update has."""
        found, update_of = distinct(codes)
        keys = self._context.keys.take(found)
        order = in_order(keys)
        rank = np.empty(len(keys), dtype=np.int64)
        rank[order.to_numpy()] = np.arange(len(keys))
        return keys.take(order), rank[update_of]

    def memory_bytes(self) -> int:
        """See `TableWriter`."""
        log: int = sum(batch.value.nbytes + batch.timestamp.nbytes * 3 for batch in self._log)
        return log + (0 if self._values is None else self._values.memory_bytes())
