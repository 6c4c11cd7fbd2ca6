"""Deduplication by key, by key and id, or by id alone (KIP-655).

A record is a duplicate if a record of the same id was forwarded within ``interval_ms`` of it (both ends inclusive) and
is not yet older than the task's stream time minus the interval. The first one is forwarded, the others are dropped and
change nothing. A record too late to be remembered is forwarded all the same. A record with the offset that its entry
has is the same record once more (at-least-once re-processing) and is forwarded. Without a key or id a record is
always forwarded.

Accounts: ``forwarded``, ``duplicate``, ``null-key`` (forwarded too: no key or id). Counter: ``expired-entries``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from statelib.errors.kinds import ConfigurationError
from statelib.operators.deduplication.codec import Entries, encode_values
from statelib.operators.deduplication.format_1 import upgrade
from statelib.operators.deduplication.ids import DeduplicationIds, Kind
from statelib.operators.deduplication.kernel import deduplicate
from statelib.operators.deduplication.spill import DeduplicationSpill
from statelib.operators.deduplication.store import Changes, DeduplicationStore
from statelib.operators.deduplication.working_set import WorkingSet
from statelib.operators.mappers.fields import both, fields_of_mapper, narrowed
from statelib.records.batch import NO_TIMESTAMP
from statelib.stores.spec import StoreSpec, settings_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from statelib.operators.base import OperatorContext
    from statelib.operators.changelog import Changelog
    from statelib.operators.mappers.fields import Fields
    from statelib.operators.mappers.mapping import Mapper
    from statelib.records.batch import Batch, Uptake
    from statelib.serdes import Serde
    from statelib.stores.backend import WriteBatch

_FORGET_FROM = 1 << 16
_FORGET_FACTOR = 2
_MOST_SPILLED = 32
"""So many files on disk are asked for an id; RocksDB has ways to hold more."""

_FEWEST_SPILLED = 1 << 16
"""So few ids are not worth a file: there is hardly memory beside what is known of all that has been spilled."""


@dataclass(frozen=True, slots=True)
class DeduplicateSpec:
    """``deduplicateByKey``, ``deduplicateByKeyValue`` and ``deduplicate`` of KIP-655.

    Attributes:
        kind: What makes two records duplicates: ``by_key`` the key, ``by_key_value`` key and id, ``by_id`` the id (the
            topology has repartitioned the stream by it).
        id: Gives the id; None for ``by_key``.
        interval_ms: The deduplication interval.
        store: Name of the store.
        id_serde: Gives the bytes in which ids (``by_key``: keys) are compared and stored; None: `serde_for` their type.
    """

    kind: Kind
    id: Mapper | None
    interval_ms: int
    store: str
    id_serde: Serde | None = None

    def __post_init__(self) -> None:
        """Checks that the parts fit together."""
        if (self.kind == "by_key") != (self.id is None):
            raise ConfigurationError(
                f"deduplication {self.kind} {'needs an' if self.id is None else 'takes no'} id", store=self.store
            )
        if self.interval_ms < 0:
            raise ConfigurationError("a deduplication interval is negative", store=self.store)

    @property
    def takes_null_keys(self) -> bool:
        """Whether records without a key matter where the stream is partitioned by key: they are forwarded."""
        return self.kind != "by_id"

    def build(self, context: OperatorContext) -> Deduplicate:
        """The running operator."""
        return Deduplicate(self, context)

    def describe(self) -> Mapping[str, object]:
        """Kind and parameters."""
        return {
            "operator": f"deduplicate_{self.kind}",
            "id": None if self.id is None else self.id.describe(),
            "id_serde": None if self.id_serde is None else self.id_serde.describe(),
            "interval_ms": self.interval_ms,
            "store": self.store,
        }

    def reads(self, parent: int, wanted: Fields) -> Fields:
        """See `FieldsSpec`."""
        del parent
        return both([fields_of_mapper(self.id), wanted])

    def state_stores(self) -> Sequence[StoreSpec]:
        """The store's."""
        settings = {**settings_of(self.describe()), "kind": self.kind}
        families = DeduplicationStore.families(self.store)
        return (StoreSpec(self.store, "deduplication", families, settings),)


class Deduplicate:
    """The running operator: a column of entries by id code, over the store."""

    calls_first: ClassVar[bool] = True

    def __init__(self, spec: DeduplicateSpec, context: OperatorContext) -> None:
        self._spec = spec
        self._context = context
        upgrade(context.backend, spec.store, interval_ms=spec.interval_ms)
        self._store = DeduplicationStore(context.backend, spec.store, interval_ms=spec.interval_ms)
        self._stream_time = NO_TIMESTAMP
        self._stored = len(self._store)  # entries at the last flush
        self._new_entries = 0  # since then
        self._new_ids = 0  # of the last batch
        self._ids = DeduplicationIds(spec.kind, spec.id, spec.id_serde, context)
        self._working_set = WorkingSet()
        self._spill = DeduplicationSpill()
        self._changelog = context.changelogs.get(spec.store)

    def process(self, inputs: Sequence[Batch], uptake: Uptake) -> Batch:
        """The records that are no duplicates."""
        (batch,) = inputs
        known = len(self._ids)
        codes = self._ids.encode(batch)
        self._new_ids = len(self._ids) - known
        if len(uptake):
            self._stream_time = int(uptake.stream_time[-1])
            since_ms = self._store.kept_from(int(uptake.stream_time[0]))
            self._working_set.look_up(codes, self._ids, self._spill, self._store, since_ms)
        forwarded = np.empty(len(batch), dtype=np.bool_)
        logged = np.zeros(len(batch) if self._changelog is not None else 0, dtype=np.bool_)
        null, kept, new_entries = deduplicate(
            codes,
            batch.timestamp,
            batch.sequence,
            uptake.first_sequence,
            uptake.stream_time,
            uptake.source,
            uptake.partition,
            uptake.offset,
            self._spec.interval_ms,
            *self._working_set.columns,
            forwarded,
            logged,
        )
        self._new_entries += new_entries
        if self._changelog is not None:
            self._log(self._changelog, codes, np.flatnonzero(logged), batch, uptake)
        self._forget_expired()
        metrics = self._context.metrics
        metrics.records_in += len(batch)
        metrics.records_out += null + kept
        metrics.account("null-key", null)
        metrics.account("forwarded", kept)
        metrics.account("duplicate", len(batch) - null - kept)
        return narrowed(batch, self._context.wanted).filter(forwarded)

    def _log(
        self, changelog: Changelog, codes: NDArray[np.int64], logged: NDArray[np.int64], batch: Batch, uptake: Uptake
    ) -> None:
        """Logs the entries that the records ``logged`` have set."""
        rows, timestamp = batch.sequence[logged] - uptake.first_sequence, batch.timestamp[logged]
        source, partition = (column[rows].astype(np.int64) for column in (uptake.source, uptake.partition))
        entries = Entries(timestamp, uptake.offset[rows], source, partition)
        changelog.add(self._ids.take(codes[logged]), encode_values(entries), timestamp)

    def flush(self, write: WriteBatch) -> None:
        """Removes what the store does not keep any more, and writes those new entries that it does."""
        self._store.expire(self._stream_time, write)
        self._store.store(self._changes(), write)
        self._forget()
        self._keep_at_most(0, write)
        self._context.metrics.count("expired-entries", self._stored + self._new_entries - len(self._store))
        self._stored, self._new_entries = len(self._store), 0

    def spill(self, file: Path, write: WriteBatch) -> None:
        """See `SpillingOperator`."""
        self._store.expire(self._stream_time, write)
        changes = self._changes()
        if len(changes.codes) >= _FEWEST_SPILLED:
            self._spill.add(file, changes, self._working_set.words)
        else:
            self._store.store(changes, write)
        self._forget()
        self._keep_at_most(_MOST_SPILLED, write)

    def _changes(self) -> Changes:
        """Those entries of the working set that the store is to keep and does not have."""
        entries = self._working_set
        codes = entries.changed_since(self._store.kept_from(self._stream_time))
        return Changes(codes, entries.timestamp, entries.stored_ms, self._ids.parts, entries.of)

    def _forget(self) -> None:
        """Empties the working set."""
        self._working_set = WorkingSet()
        self._ids.clear()

    def _keep_at_most(self, files: int, write: WriteBatch) -> None:
        """Writes to the store what has been spilled, but for the newest files."""
        first_ms = self._store.kept_from(self._stream_time)
        self._spill.expire(first_ms)
        for changes in self._spill.drain(first_ms, most=files):
            self._store.store(changes, write)

    def _forget_expired(self) -> None:
        """Drops ids whose entries would not be stored, whenever the working set has grown to several times its size."""
        ids, entries = self._ids, self._working_set
        if not ids.are_keys and len(ids) >= max(_FORGET_FROM, _FORGET_FACTOR * entries.kept):
            alive = entries.alive(self._store.kept_from(self._stream_time))
            if len(alive) < len(ids):
                ids.keep(alive)
            entries.keep(alive)

    def memory_bytes(self) -> int:
        """The entries, what is known of the store and, unless they are the record keys, the ids."""
        more = self._new_ids
        parts = (self._working_set.memory_bytes(more), self._ids.memory_bytes(more))
        return sum(parts) + self._store.memory_bytes() + self._spill.memory_bytes()
