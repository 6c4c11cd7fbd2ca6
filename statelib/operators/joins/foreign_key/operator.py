"""The right side of a foreign-key join: where the rows of the left table meet the row that they refer to (KIP-213).

(Kafka's ``SubscriptionReceiveProcessorSupplier``, ``SubscriptionJoinProcessorSupplier`` and
``ForeignTableJoinProcessorSupplier``.) It remembers all subscriptions
(`statelib.operators.joins.foreign_key.subscribe`). A subscription is answered, as its instruction says, with what the
right table has now, at the later timestamp of both. A change of the right table is told to all subscriptions of its
key, in the order of the bytes of their primary keys, at the change's own timestamp.

Answers go back under the primary key, as values ``struct<value, number>``: the joined value, null for a deletion, and
the number of the left row's change. If the joiner fails, that is told, so that what comes later knows of the change:
`statelib.operators.joins.foreign_key.resolve`. Late updates of a versioned right table are dropped and counted
(KIP-914).

Accounts: ``joined`` (a subscription that was answered, a change that somebody was told), ``unmatched``,
``out-of-order``. What somebody was to be told of a change, and the joiner fails, counts as one more record.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from statelib.columns.arrow_buffers import valid_of
from statelib.operators.asking import Asking
from statelib.operators.joins.foreign_key.resolve import failed_number, have_failed
from statelib.operators.joins.foreign_key.store import SubscriptionStore
from statelib.operators.joins.foreign_key.subscribe import Instruction
from statelib.operators.joins.foreign_key.working_set import Subscribes, Subscriptions
from statelib.operators.key_codes import key_codes
from statelib.operators.key_types import check_types
from statelib.operators.tables.change import merged_changes, only_latest
from statelib.operators.tables.working_set import Lookups
from statelib.records.batch import NULL_KEY, Batch
from statelib.records.key_column import KeyColumn
from statelib.stores.spec import StoreSpec

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from statelib.operators.base import OperatorContext
    from statelib.operators.tables.view import AnyView, JoinedValues
    from statelib.records.batch import Uptake
    from statelib.stores.backend import WriteBatch


@dataclass(frozen=True, slots=True)
class ForeignKeyJoin:
    """Answers subscriptions, the first parent, and tells them the right table's changes, the second.

    The other parents are the tables that have the view's stores.

    Attributes:
        joined: How values are joined.
        store: Name of the subscription store.
        view: How the right table is looked up.
    """

    joined: JoinedValues
    store: str
    view: AnyView

    def build(self, context: OperatorContext) -> RunningForeignKeyJoin:
        """The running operator."""
        return RunningForeignKeyJoin(self, context)

    def describe(self) -> Mapping[str, object]:
        """Kind and parameters."""
        return {
            "operator": "foreign_key_join",
            "joined": self.joined.describe(),
            "store": self.store,
            "view": self.view.describe(),
        }

    def state_stores(self) -> Sequence[StoreSpec]:
        """Those of the subscription store."""
        return (StoreSpec(self.store, "subscriptions", SubscriptionStore.families(self.store)),)


class RunningForeignKeyJoin:
    """The running operator."""

    def __init__(self, spec: ForeignKeyJoin, context: OperatorContext) -> None:
        self._spec = spec
        self._context = context
        self._right = spec.view.lookup(context)
        self._subscriptions: Subscriptions | None = None

    def process(self, inputs: Sequence[Batch], uptake: Uptake) -> Batch:
        """The answers."""
        del uptake
        subscribes, forwarded, *tables = inputs
        check_types(
            subscribes.keys.type,
            forwarded.keys.type,
            node=self._context.node,
            what="the foreign keys are {}, and the keys of the other table {}",
            way_round="cast the foreign key to the type of the other table's keys",
        )
        changes, out_of_order = only_latest(forwarded)
        answers, left_out = self._answers(subscribes, tables)
        told, reached = self._told(subscribes, changes)
        metrics = self._context.metrics
        failed, failed_told = (int(np.count_nonzero(have_failed(of))) for of in (answers, told))
        metrics.records_in += len(subscribes) + len(forwarded) + failed_told
        metrics.records_out += len(answers) + len(told)
        metrics.account("joined", len(answers) - failed + reached)
        metrics.account("unmatched", len(subscribes) - len(answers) - left_out + len(changes) - reached)
        metrics.drop("out-of-order", out_of_order)
        return merged_changes([answers, told])

    def flush(self, write: WriteBatch) -> None:
        """Writes the subscriptions, and forgets the right table, which its own operator writes."""
        if self._subscriptions is not None:
            self._subscriptions.flush(write)
        self._subscriptions = None
        self._right.forget()

    def memory_bytes(self) -> int:
        """Subscriptions, and what the right table has."""
        known = 0 if self._subscriptions is None else self._subscriptions.memory_bytes()
        return known + self._right.memory_bytes()

    def _answers(self, subscribes: Batch, tables: Sequence[Batch]) -> tuple[Batch, int]:
        """What subscriptions are answered at once, and how many are not since a function fails for what is found."""
        codes = key_codes(subscribes, self._context)
        asking = Asking.of(self._context, subscribes.sequence)
        right = self._right.look_up(subscribes.keys, Lookups(subscribes.sequence, codes), tables, asking)
        instruction = np.asarray(pc.struct_field(subscribes.value, ["instruction"]))
        answered = (
            (instruction == Instruction.DELETE_KEY_AND_PROPAGATE)
            | (instruction == Instruction.PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE)
            | ((instruction == Instruction.PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE) & valid_of(right.value))
        ) & ~asking.failed
        chosen = pa.array(np.flatnonzero(answered))
        primary_key, left, number = (
            pc.struct_field(subscribes.value, [name]).take(chosen) for name in ("primary_key", "left", "number")
        )
        timestamp = np.maximum(subscribes.timestamp, right.timestamp)[answered]
        sequence = subscribes.sequence[answered]
        about = asking.among(answered)
        value = self._spec.joined.of(KeyColumn.of(primary_key), left, right.value.take(chosen), timestamp, about)
        headers = None if subscribes.headers is None else subscribes.headers.take(chosen)
        left_out = int(np.count_nonzero(asking.failed))
        return _responses(primary_key, value, number, timestamp, sequence, headers, about), left_out

    def _told(self, subscribes: Batch, changes: Batch) -> tuple[Batch, int]:
        """What subscriptions are told of the right table's changes, and how many changes reach any."""
        codes = key_codes(subscribes, self._context)
        stored = subscribes.filter(codes != NULL_KEY)
        primary_key, left, instruction, number = (
            pc.struct_field(stored.value, [name]) for name in ("primary_key", "left", "instruction", "number")
        )
        if self._subscriptions is None:  # opened here, after the last flush has been written
            self._subscriptions = Subscriptions(self._context, self._spec.store, primary_key.type, left.type)
        goes = np.asarray(instruction) <= Instruction.DELETE_KEY_AND_PROPAGATE
        reached = self._subscriptions.take_up(
            Subscribes(
                stored.sequence,
                codes[codes != NULL_KEY],
                primary_key,
                left,
                np.asarray(number),
                stored.timestamp,
                goes,
            ),
            changes.sequence,
            key_codes(changes, self._context),
        )
        chosen = pa.array(reached.change)
        timestamp, sequence = changes.timestamp[reached.change], changes.sequence[reached.change]
        about, right = Asking.of(self._context, sequence), changes.value.take(chosen)
        value = self._spec.joined.of(KeyColumn.of(reached.primary_key), reached.left, right, timestamp, about)
        headers = None if changes.headers is None else changes.headers.take(chosen)
        number = pa.array(reached.number)
        told = _responses(reached.primary_key, value, number, timestamp, sequence, headers, about)
        return told, len(np.unique(reached.change))


def _responses(
    primary_key: pa.Array,
    value: pa.Array,
    number: pa.Array,
    timestamp: NDArray[np.int64],
    sequence: NDArray[np.int64],
    headers: pa.Array | None,
    about: Asking,
) -> Batch:
    """The answers; one for which the joiner fails has no value, and a number that says so (`failed_number`)."""
    number = pa.array(np.where(about.failed, failed_number(np.asarray(number)), np.asarray(number)))
    response = pa.StructArray.from_arrays([value, number], ["value", "number"])
    return Batch(KeyColumn.of(primary_key), None, response, timestamp, sequence, headers=headers)
