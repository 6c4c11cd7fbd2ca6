"""A topic, or a stream, as a table: every update goes into the table's store (Kafka's ``KTableSource``).

This operator alone writes the store; joins read it. What was put goes on to the children, tombstones included. A
versioned table refuses updates that are older than its store's retention. A plain table that nobody looks into has no
store at all, as in Kafka.

Accounts: ``stored`` (without a store ``forwarded``), ``refused``, ``null-key``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from statelib.operators.key_codes import key_codes
from statelib.operators.tables.writer import PlainStore, VersionedStore, WritingOperator
from statelib.records.batch import NULL_KEY, Batch

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from statelib.operators.base import OperatorContext
    from statelib.records.batch import Uptake
    from statelib.stores.spec import StoreSpec


@dataclass(frozen=True, slots=True)
class TableSource:
    """Materialises a topic in a versioned store.

    Attributes:
        store: Name of the store.
        history_retention_ms: How long older versions can be asked for, and how late an update may come.
        segment_interval_ms: Width of the store's segments; None: the store's default.
        needs_prior: Whether updates say what they replace, and whether they are the latest.
    """

    store: str
    history_retention_ms: int
    segment_interval_ms: int | None = None
    needs_prior: bool = False

    @property
    def table_store(self) -> VersionedStore:
        """The store."""
        return VersionedStore(self.store, self.history_retention_ms, self.segment_interval_ms)

    def build(self, context: OperatorContext) -> RunningTableSource:
        """The running operator."""
        return RunningTableSource(self.table_store, context, needs_prior=self.needs_prior)

    def describe(self) -> Mapping[str, object]:
        """Kind and parameters."""
        return {"operator": "table_source", **self.table_store.describe()}

    def state_stores(self) -> Sequence[StoreSpec]:
        """The store's."""
        return (self.table_store.spec(),)


@dataclass(frozen=True, slots=True)
class PlainTableSource:
    """A topic, or a stream, as a plain table.

    Attributes:
        store: Name of the store.
        materialized: Whether there is one: only if it was named, or if something looks into the table.
        needs_prior: Whether updates say what they replace; needs the store.
    """

    store: str
    materialized: bool = True
    needs_prior: bool = False

    def build(self, context: OperatorContext) -> RunningTableSource:
        """The running operator."""
        store = PlainStore(self.store) if self.materialized else None
        return RunningTableSource(store, context, needs_prior=self.needs_prior)

    def describe(self) -> Mapping[str, object]:
        """Kind and parameters."""
        return {"operator": "plain_table_source", "store": self.store if self.materialized else None}

    def state_stores(self) -> Sequence[StoreSpec]:
        """The store's."""
        return (PlainStore(self.store).spec(),) if self.materialized else ()


class RunningTableSource(WritingOperator):
    """The running operator."""

    def process(self, inputs: Sequence[Batch], uptake: Uptake) -> Batch:
        """The updates that are put."""
        (batch,) = inputs
        codes = key_codes(batch, self._context)
        updates = replace(batch, key_code=codes, prior=None, is_latest=None).filter(codes != NULL_KEY)
        metrics = self._context.metrics
        metrics.records_in += len(batch)
        metrics.drop("null-key", len(batch) - len(updates))
        if self._writer is None:
            metrics.account("forwarded", len(updates))
            metrics.records_out += len(updates)
            return updates
        changes = self._put(self._writer, updates, uptake).changes
        metrics.account("stored", len(changes))
        metrics.records_out += len(changes)
        return changes
