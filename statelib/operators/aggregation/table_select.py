"""Regroups a table: each change under the key that a mapper makes of the row (Kafka's ``KTableRepartitionMap``).

A row that stays in its group is one change, with its old and its new value. One that moves is two: first the old value
leaves its group, then the new one enters the other. What has no row, or a null group or value, has no part in it. Late
updates of a versioned table do not change what holds now and are left out (KIP-914).

Changes travel through a repartition topic as values ``struct<new, old>`` (Kafka's ``ChangedSerializer``); `unpacked`
makes changes of them again.

Accounts: ``forwarded``, ``filtered`` (no group before and after), ``out-of-order``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from statelib.columns.arrow_buffers import valid_of
from statelib.columns.scatter import scatter
from statelib.errors.kinds import InternalError
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

    from statelib.operators.base import OperatorContext
    from statelib.records.batch import Batch, Uptake


@dataclass(frozen=True, slots=True)
class TableSelect(StorelessSpec):
    """Regroups a table whose changes say what they replace.

    Attributes:
        key: Makes the group of the columns ``key`` and ``value``, and of windowed keys ``window_start`` and
            ``window_end``. It takes the window off.
        value: Makes what is aggregated of them.
    """

    key: Mapper
    value: Mapper

    def build(self, context: OperatorContext) -> RunningTableSelect:
        """The running operator."""
        return RunningTableSelect(self, context)

    def describe(self) -> Mapping[str, object]:
        """Kind and mappers."""
        return {"operator": "table_select", "key": self.key.describe(), "value": self.value.describe()}


class RunningTableSelect(StorelessOperator):
    """The running operator."""

    def __init__(self, spec: TableSelect, context: OperatorContext) -> None:
        self._spec = spec
        self._context = context

    def process(self, inputs: Sequence[Batch], uptake: Uptake) -> Batch:
        """The changes of the groups, packed."""
        del uptake
        (forwarded,) = inputs
        changes, out_of_order = only_latest(forwarded)
        if changes.prior is None:
            raise InternalError("a table that is regrouped does not know its old values", node=self._context.node)
        with among(latest(forwarded)):
            (new_key, new), (old_key, old) = (self._selected(changes, of) for of in (changes.value, changes.prior))
        what = "the groups of new rows are {}, those of old ones {}"
        new_key, old_key, same = keys_of_rows(new_key, old_key, node=self._context.node, what=what)
        enters, leaves = (valid_of(values) for values in (new, old))
        stays = enters & leaves & same
        rows, has_new, has_old = _parts(enters, leaves, stays)

        key = pa.concat_arrays([new_key, old_key]).take(pa.array(np.where(has_new, rows, rows + len(changes))))
        packed = pa.StructArray.from_arrays(
            [new.take(pa.array(rows, mask=~has_new)), old.take(pa.array(rows, mask=~has_old))], ["new", "old"]
        )
        metrics = self._context.metrics
        metrics.records_in += len(forwarded)
        metrics.records_out += len(rows)
        metrics.account("forwarded", int((enters | leaves).sum()))
        metrics.account("filtered", int((~enters & ~leaves).sum()))
        metrics.account("out-of-order", out_of_order)
        return replace(replace(changes, prior=None).take(rows), keys=KeyColumn(key), key_code=None, value=packed)

    def _selected(self, changes: Batch, values: pa.Array) -> tuple[pa.Array, pa.Array]:
        """Group and value of each row; both null where there is no row, or either is null."""
        there = valid_of(values)
        columns = columns_of(changes.keys, values).filter(pa.array(there))
        sequence = changes.sequence[there]
        with among(there):
            key, value = (
                scatter(evaluate(of, columns, self._context.node, sequence), there)
                for of in (self._spec.key, self._spec.value)
            )
        both = valid_of(key) & valid_of(value)
        chosen = pa.array(np.arange(len(both)), mask=~both)
        return key.take(chosen), value.take(chosen)


def _parts(
    enters: NDArray[np.bool_], leaves: NDArray[np.bool_], stays: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.bool_]]:
    """The records that changes are sent as: the change of each, and whether it has the new and the old value."""
    removals, others = np.flatnonzero(leaves & ~stays), np.flatnonzero(enters)
    rows = np.concatenate([removals, others])
    order = np.argsort(rows, kind="stable")  # the removal first
    has_new = np.concatenate([np.zeros(len(removals), dtype=np.bool_), np.ones(len(others), dtype=np.bool_)])
    has_old = np.concatenate([np.ones(len(removals), dtype=np.bool_), stays[others]])
    return rows[order], has_new[order], has_old[order]


def unpacked(records: Batch) -> Batch:
    """The changes that records of a repartition topic are."""
    new, old = (pc.struct_field(records.value, [name]) for name in ("new", "old"))
    return replace(records, value=new, prior=old)
