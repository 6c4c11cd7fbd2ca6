"""What keys of a table have now, read from its store: a plain one or a versioned one."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from statelib.columns.arrow_buffers import valid_of
from statelib.columns.scatter import scatter
from statelib.operators.tables.store import KeyValueRows, KeyValueStore
from statelib.records.batch import NO_TIMESTAMP
from statelib.serdes import serde_for
from statelib.stores.stored_rows import stored_type

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from statelib.operators.base import OperatorContext
    from statelib.operators.versioned.store import VersionedKeyValueStore
    from statelib.records.batch import Batch
    from statelib.records.key_column import KeyColumn
    from statelib.stores.backend import WriteBatch
    from statelib.stores.byte_columns import Column
    from statelib.stores.stored_rows import StoredStates

_END_OF_TIME = np.iinfo(np.int64).max


class Found(NamedTuple):
    """What keys have: a value, null if nothing, and int64, ms, since when (`NO_TIMESTAMP`)."""

    value: pa.Array
    timestamp: NDArray[np.int64]


class StoredLatest(Protocol):
    """A store as it was last written."""

    @property
    def value_type(self) -> pa.DataType:
        """The type of a value."""

    @property
    def is_empty(self) -> bool:
        """Whether no key has anything: look-ups can be skipped."""

    def load(self, keys: Sequence[bytes]) -> Found:
        """What ``keys`` (serialised, each once) have."""


class Expiry(Protocol):
    """Which rows a store still has at each instant, of a store that forgets what has grown too old."""

    def alive(self, keys: KeyColumn, sequence: NDArray[np.int64], changes: Batch) -> NDArray[np.bool_]:
        """Takes up changes, which move the store's clock on, and answers questions, in order of sequence.

        Args:
            keys: The key of each question.
            sequence: int64, ascending, of the questions.
            changes: All that has been put; of the same sequence as a question: before it.

        Returns:
            bool, by question: whether the store has not forgotten what it has for the key.
        """


class LookedInto(Protocol):
    """A table's store, for those that look into it."""

    @property
    def name(self) -> str:
        """Its name."""

    def stored(
        self, context: OperatorContext, value_type: pa.DataType, aggregator: StoredStates | None = None
    ) -> StoredLatest:
        """What keys have, as it was last written; ``aggregator``: what has made the table, if that is so."""

    def expiry(self, context: OperatorContext) -> Expiry | None:
        """What it forgets as time goes on; None: nothing."""


class StoredPlain:
    """A plain store.

    Args:
        context: The operator's.
        store: Name of the store.
        value_type: The type of a value.
        shown: Gives the table's values of what is stored, where that is not the same.
    """

    def __init__(
        self,
        context: OperatorContext,
        store: str,
        value_type: pa.DataType,
        shown: Callable[[pa.Array], pa.Array] | None = None,
    ) -> None:
        self.value_type = value_type
        self._store = KeyValueStore(context.backend, store)
        self._shown = shown
        if shown is None:
            self._store.header.check(self._schema)

    @property
    def is_empty(self) -> bool:
        """See `StoredLatest`."""
        return self._store.is_empty

    def load(self, keys: Sequence[bytes]) -> Found:
        """See `StoredLatest`."""
        stored = self._store.load(keys)
        there = valid_of(stored.rows)
        kept = stored_type(self._store.header.schema or self._schema)
        values = serde_for(kept).deserialize(stored.rows.filter(pa.array(there)))
        return Found(scatter(values if self._shown is None else self._shown(values), there), stored.timestamp)

    def put(self, keys: Column, changed: Found, write: WriteBatch) -> None:
        """Adds to ``write`` what ``keys`` have from now on."""
        rows = serde_for(self.value_type).serialize(changed.value)
        self._store.store(keys, KeyValueRows(changed.timestamp, rows), self._schema, write)

    @property
    def _schema(self) -> pa.Schema:
        return pa.schema([("value", self.value_type)])


class StoredVersions:
    """The latest versions in a versioned store.

    Args:
        store: The store.
        is_empty: Whether it holds nothing at all.
        value_type: The type of a value.
        aggregator: What has made the table, if the store holds its states instead of values.
    """

    def __init__(
        self,
        store: VersionedKeyValueStore,
        *,
        is_empty: bool,
        value_type: pa.DataType,
        aggregator: StoredStates | None = None,
    ) -> None:
        self.value_type = value_type
        self.is_empty = is_empty
        self._store = store
        self._aggregator = aggregator

    def load(self, keys: Sequence[bytes]) -> Found:
        """See `StoredLatest`."""
        later = np.full(len(keys), _END_OF_TIME)
        versions = self._store.load(pa.array(keys, pa.binary()), later).versions
        last = versions.offsets[1:] - 1
        there = np.diff(versions.offsets) > 0
        there[there] = ~versions.is_tombstone[last[there]]
        timestamp = np.full(len(keys), NO_TIMESTAMP)
        timestamp[there] = versions.valid_from[last[there]]
        rows = versions.values.take(pa.array(last[there]))
        return Found(scatter(self._decoded(rows), there), timestamp)

    def _decoded(self, rows: pa.Array) -> pa.Array:
        if self._aggregator is None:
            return serde_for(self.value_type).deserialize(rows)
        stored = serde_for(stored_type(self._aggregator.stored_columns(self.value_type))).deserialize(rows)
        return self._aggregator.results_of(stored)
