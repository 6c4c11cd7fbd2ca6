"""The left side of a foreign-key join: says which row of the right table each row refers to (KIP-213).

(Kafka's ``SubscriptionSendProcessorSupplier``.) Each change of the left table becomes records under the foreign key
that its row had and the one that it has, which go to where the right table's row is. There they are remembered, and
answered as their `Instruction` says. Where the foreign key changes the old subscription goes first, without an answer.

Their values are ``struct<primary_key, left, instruction, number>``. Kafka sends a hash of the left row, joins where the
answer comes back, and drops it if the row has another hash by then. Here the row itself travels and is joined where the
right row is, since a stage cannot come back to the one before; and each change of the task has a *number*, so that an
answer that was overtaken by a younger one is told by that (`statelib.operators.joins.foreign_key.resolve`).

Late updates of a versioned table are dropped and counted (KIP-914). An inner join drops and counts a row without a
foreign key, and takes back what was joined before; a left join answers it with null.

Accounts: ``forwarded``, ``filtered`` (nothing before and after), ``null-foreign-key``, ``out-of-order``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from statelib.columns.arrow_buffers import valid_of
from statelib.columns.scatter import scatter
from statelib.columns.windowed_type import WindowedType, is_windowed_struct
from statelib.errors.kinds import ConfigurationError, InternalError
from statelib.operators.base import StorelessOperator, StorelessSpec
from statelib.operators.key_types import keys_of_rows
from statelib.operators.mappers.function_errors import among
from statelib.operators.mappers.mapping import Mapper, evaluate
from statelib.operators.tables.change import latest, only_latest
from statelib.operators.tables.steps import columns_of
from statelib.records.key_column import KeyColumn

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from statelib.columns.windowed_type import KeyWindows
    from statelib.operators.base import OperatorContext
    from statelib.records.batch import Batch, Uptake

_COUNT = "changes"


class Instruction(IntEnum):
    """What the right side does with a subscription (Kafka's ``SubscriptionWrapper.Instruction``, in its bytes)."""

    DELETE_KEY_NO_PROPAGATE = 0
    DELETE_KEY_AND_PROPAGATE = 1
    PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE = 2
    PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE = 3


@dataclass(frozen=True, slots=True)
class ForeignKeySubscribe(StorelessSpec):
    """Sends subscriptions for a left table whose changes say what they replace.

    Attributes:
        foreign_key: Makes the foreign key of the columns ``key`` and ``value``.
        left: Whether rows without a match are joined with null.
        windows: Of the foreign keys, where the right table's are windowed: then the mapper gives such a key as a struct
            of ``key``, ``window_start`` and ``window_end``.
    """

    foreign_key: Mapper
    left: bool = False
    windows: KeyWindows | None = None

    def build(self, context: OperatorContext) -> RunningForeignKeySubscribe:
        """The running operator."""
        return RunningForeignKeySubscribe(self, context)

    def describe(self) -> Mapping[str, object]:
        """Kind and parameters."""
        windows = {} if self.windows is None else {"windows": str(self.windows)}
        foreign_key = self.foreign_key.describe()
        return {"operator": "foreign_key_subscribe", "foreign_key": foreign_key, "left": self.left, **windows}


class RunningForeignKeySubscribe(StorelessOperator):
    """The running operator."""

    def __init__(self, spec: ForeignKeySubscribe, context: OperatorContext) -> None:
        self._spec = spec
        self._context = context

    def process(self, inputs: Sequence[Batch], uptake: Uptake) -> Batch:
        """The subscriptions."""
        del uptake
        (forwarded,) = inputs
        changes, out_of_order = only_latest(forwarded)
        if changes.prior is None:
            raise InternalError("the left table of a join does not know its old values", node=self._context.node)
        with among(latest(forwarded)):
            new_key, old_key, same = self._foreign_keys(changes, changes.prior)
        refers, referred = (valid_of(keys) for keys in (new_key, old_key))
        is_row = valid_of(changes.value)

        goes = referred & ~same
        comes = is_row | valid_of(changes.prior) if self._spec.left else refers
        sent = self._records(changes, (old_key, new_key), goes, comes, self._instructions(refers, goes))
        lost = np.zeros_like(goes) if self._spec.left else is_row & ~refers
        metrics = self._context.metrics
        metrics.records_in += len(forwarded)
        metrics.records_out += len(sent)
        metrics.account("forwarded", int(((goes | comes) & ~lost).sum()))
        metrics.account("filtered", int((~goes & ~comes & ~lost).sum()))
        metrics.drop("null-foreign-key", int(lost.sum()))
        metrics.drop("out-of-order", out_of_order)
        return sent

    def _foreign_keys(self, changes: Batch, prior: pa.Array) -> tuple[pa.Array, pa.Array, NDArray[np.bool_]]:
        """The foreign keys of the new rows and of the old ones, null where there is none, or no row; which are same."""
        keys = []
        for values in (changes.value, prior):
            there = valid_of(values)
            columns = columns_of(changes.keys, values).filter(pa.array(there))
            with among(there):
                of_rows = evaluate(self._spec.foreign_key, columns, self._context.node, changes.sequence[there])
            if self._spec.windows is not None:
                of_rows = as_windowed_keys(of_rows, self._spec.windows, self._context.node)
            keys.append(scatter(of_rows, there))
        what = "the foreign keys of new rows are {}, those of old ones {}"
        return keys_of_rows(*keys, node=self._context.node, what=what)

    def _instructions(
        self, refers: NDArray[np.bool_], goes: NDArray[np.bool_]
    ) -> tuple[NDArray[np.int8], NDArray[np.int8]]:
        """What is said of the old foreign key, and what of the new one, wherever something is."""
        silent, told, always, if_there = Instruction
        if self._spec.left:
            return np.full(len(goes), silent, dtype=np.int8), np.full(len(goes), always, dtype=np.int8)
        old, new = np.where(refers, silent, told), np.where(goes, always, if_there)
        return old.astype(np.int8), new.astype(np.int8)

    def _records(
        self,
        changes: Batch,
        keys: tuple[pa.Array, pa.Array],
        goes: NDArray[np.bool_],
        comes: NDArray[np.bool_],
        instructions: tuple[NDArray[np.int8], NDArray[np.int8]],
    ) -> Batch:
        """The records, change by change, of each first the one that goes."""
        rows = np.concatenate([np.flatnonzero(goes), np.flatnonzero(comes)])
        part = np.repeat([0, 1], [goes.sum(), comes.sum()])
        order = np.argsort(rows, kind="stable")
        rows, part = rows[order], part[order]
        number = self._context.clocks.get(_COUNT, 0)
        self._context.clocks[_COUNT] = number + len(changes)
        value = pa.StructArray.from_arrays(
            [
                changes.keys.array.take(pa.array(rows)),
                changes.value.take(pa.array(rows, mask=part == 0)),
                pa.array(np.concatenate(instructions)[rows + part * len(changes)]),
                pa.array(number + rows),
            ],
            ["primary_key", "left", "instruction", "number"],
        )
        key = pa.concat_arrays(keys).take(pa.array(rows + part * len(changes)))
        return replace(replace(changes, prior=None).take(rows), keys=KeyColumn.of(key), key_code=None, value=value)


def as_windowed_keys(keys: pa.Array, windows: KeyWindows, node: str) -> pa.Array:
    """Windowed keys of structs that a mapper has given; null where there is no key.

    Raises:
        ConfigurationError: They are no such structs.
    """
    step = 'let the mapper give {"key": ..., "window_start": ..., "window_end": ...}, times as integers in ms'
    if not is_windowed_struct(keys.type):
        what = f"the keys of the other table have windows, and the foreign keys are {keys.type}"
        raise ConfigurationError(what, node=node, next_step=step)
    key_type = WindowedType(keys.field("key").type, windows)
    try:
        parts = [keys.field(field.name).cast(field.type) for field in key_type.storage_type]
    except pa.ArrowException as error:
        raise ConfigurationError(f"the foreign keys are no windowed keys: {error}", node=node, next_step=step) from None
    missing = keys.is_null() if keys.null_count else pa.array(np.zeros(len(keys), np.bool_))
    for part in parts:
        missing = pc.or_(missing, part.is_null())
    stored = pa.StructArray.from_arrays(parts, fields=list(key_type.storage_type), mask=missing)
    return pa.ExtensionArray.from_storage(key_type, stored)
