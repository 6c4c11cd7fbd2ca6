"""The join of two tables by key: each change of the one meets what the other has now.

Kafka has three nodes for it, and so it is here: one for the changes of each side (``KTableKTableInnerJoin`` and the
like), of which each looks into the other table, and one behind both, which may keep the result
(``KTableKTableJoinMerger``).

================  =================================  ================================================================
join              what a key has                     a change goes on if
================  =================================  ================================================================
inner             both sides joined, if both there   the other side is there
left, left side   left joined with right or null     the other side is there, or the old or new value
left, right side  as above                           the other side is there
outer, any side   what there is, joined with null    the other side is there, or the old or new value
================  =================================  ================================================================

So a change may forward a deletion of what was not there; it costs nothing to be sure. The result's timestamp is the
later of both sides'. The old value is the old value of the side that has changed, joined with what the other has now.

Late updates of a versioned table do not change what it has now: they are dropped and counted (KIP-914).

Accounts: ``joined``, ``unmatched``, ``out-of-order``; behind both sides ``forwarded``, with a store ``stored`` and
``refused``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from statelib.columns.arrow_buffers import valid_of
from statelib.operators.asking import Asking
from statelib.operators.base import StorelessSpec
from statelib.operators.key_codes import key_codes
from statelib.operators.key_types import check_types, with_keys_of_one_type
from statelib.operators.tables.change import merged_changes, only_latest
from statelib.operators.tables.working_set import Lookups
from statelib.operators.tables.writer import VersionedStore, WritingOperator

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from statelib.operators.base import OperatorContext
    from statelib.operators.tables.stored_latest import Found
    from statelib.operators.tables.view import AnyView, JoinedValues
    from statelib.operators.tables.writer import TableStore, TableWriter
    from statelib.records.batch import Batch, Uptake
    from statelib.stores.backend import WriteBatch
    from statelib.stores.spec import StoreSpec


@dataclass(frozen=True, slots=True)
class TableJoin(StorelessSpec):
    """Joins the changes of one side, the first parent, with the other; the other parents have the view's stores.

    Attributes:
        joined: How values are joined.
        view: How the other side is looked up.
        is_left: Whether the changes are those of the left side.
        needs_prior: Whether changes say what they replace.
    """

    joined: JoinedValues
    view: AnyView
    is_left: bool
    needs_prior: bool = False

    @property
    def keeps_own(self) -> bool:
        """Whether this side's values are there without the other side's."""
        return self.joined.keeps_left if self.is_left else self.joined.keeps_right

    def build(self, context: OperatorContext) -> RunningTableJoin:
        """The running operator."""
        return RunningTableJoin(self, context)

    def describe(self) -> Mapping[str, object]:
        """Kind and parameters."""
        return {
            "operator": "table_join",
            "joined": self.joined.describe(),
            "view": self.view.describe(),
            "is_left": self.is_left,
        }


class RunningTableJoin:
    """The running operator: what the other side has of the keys that either has named since the last flush."""

    def __init__(self, spec: TableJoin, context: OperatorContext) -> None:
        self._spec = spec
        self._context = context
        self._other = spec.view.lookup(context)

    def process(self, inputs: Sequence[Batch], uptake: Uptake) -> Batch:
        """The changes of the joined table that this side makes.

        Raises:
            ConfigurationError: The tables' keys are of types that cannot meet.
        """
        del uptake
        forwarded, *tables = inputs
        check_types(
            forwarded.keys.type,
            tables[0].keys.type,
            node=self._context.node,
            what="tables whose keys differ in type cannot be joined: {} and {}",
            way_round="bring the keys of one table to the other's type: to_stream().select_key(...).to_table()",
        )
        own, out_of_order = only_latest(forwarded)
        asking = Asking.of(self._context, own.sequence)
        other = self._other.look_up(own.keys, Lookups(own.sequence, key_codes(own, self._context)), tables, asking)

        goes_on = valid_of(other.value)
        if self._spec.keeps_own:
            goes_on = goes_on | valid_of(own.value)
            if own.prior is not None:
                goes_on = goes_on | valid_of(own.prior)
        changes = self._joined(own, other, goes_on, asking)
        metrics = self._context.metrics
        metrics.records_in += len(forwarded)
        metrics.records_out += len(changes)
        metrics.account("joined", len(changes))
        metrics.account("unmatched", int(np.count_nonzero(~goes_on & ~asking.failed)))
        metrics.drop("out-of-order", out_of_order)
        return changes

    def flush(self, write: WriteBatch) -> None:
        """Forgets what keys have; the tables' own operators write it."""
        del write
        self._other.forget()

    def memory_bytes(self) -> int:
        """What keys have."""
        return self._other.memory_bytes()

    def _joined(self, own: Batch, other: Found, goes_on: NDArray[np.bool_], asking: Asking) -> Batch:
        """What the changes that go on are for the joined table, without those for which the joiner fails."""
        goes_on = goes_on & ~asking.failed
        changes = replace(own, timestamp=np.maximum(own.timestamp, other.timestamp)).filter(goes_on)
        about, of_other = asking.among(goes_on), other.value if goes_on.all() else other.value.filter(goes_on)
        value, prior = self._values(changes, changes.value, of_other, about), None
        if self._spec.needs_prior and changes.prior is not None:
            prior = self._values(changes, changes.prior, of_other, about)
        changes, asking.failed[goes_on] = replace(changes, value=value, prior=prior), about.failed
        return changes.filter(~about.failed) if about.failed.any() else changes

    def _values(self, changes: Batch, own: pa.Array, other: pa.Array, asking: Asking) -> pa.Array:
        left, right = (own, other) if self._spec.is_left else (other, own)
        return self._spec.joined.of(changes.keys, left, right, changes.timestamp, asking)


@dataclass(frozen=True, slots=True)
class TableJoinMerge:
    """Brings the changes that both sides make together, and keeps the result if there is a store for it.

    Attributes:
        store: Where the joined table is kept; None: nowhere.
        needs_prior: Whether changes say what they replace. Of a versioned store that is what it had, or, as shipped
            (``semantics="kafka-4.3"``), what the join makes of the old value, although a late result may never have
            been what the table had.
    """

    store: TableStore | None = None
    needs_prior: bool = False

    def build(self, context: OperatorContext) -> RunningTableJoinMerge:
        """The running operator."""
        return RunningTableJoinMerge(self, context)

    def describe(self) -> Mapping[str, object]:
        """Kind and parameters."""
        return {"operator": "table_join_merge", "store": None if self.store is None else self.store.describe()}

    def state_stores(self) -> Sequence[StoreSpec]:
        """The store's."""
        return () if self.store is None else (self.store.spec(),)


class RunningTableJoinMerge(WritingOperator):
    """The running operator."""

    def __init__(self, spec: TableJoinMerge, context: OperatorContext) -> None:
        super().__init__(spec.store, context, needs_prior=spec.needs_prior)
        self._spec = spec

    def process(self, inputs: Sequence[Batch], uptake: Uptake) -> Batch:
        """The changes of the joined table."""
        changes = merged_changes(with_keys_of_one_type(inputs))
        metrics = self._context.metrics
        metrics.records_in += len(changes)
        if self._writer is not None:
            changes = self._stored(self._writer, changes, uptake)
        metrics.account("forwarded" if self._writer is None else "stored", len(changes))
        metrics.records_out += len(changes)
        return changes if self._spec.needs_prior else replace(changes, prior=None)

    def _stored(self, writer: TableWriter, changes: Batch, uptake: Uptake) -> Batch:
        """Keeps the changes; those that the store has taken."""
        written = self._put(writer, changes, uptake)
        if isinstance(self._spec.store, VersionedStore) and self._context.semantics == "kip":
            return written.changes
        return replace(written.changes, prior=changes.filter(~written.refused).prior)
