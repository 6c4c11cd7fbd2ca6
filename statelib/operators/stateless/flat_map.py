"""One record in, none, one or many out (Kafka's ``flatMap`` and ``flatMapValues``).

The mapper gives a list for each record; all lists of a batch are unfolded at once. The results of a record come in the
order of its list, each with the record's timestamp, headers and sequence. A null list is an empty one.

The ledger counts the records that come in: ``forwarded`` with at least one result, ``empty-list`` without any. How many
results there are is in ``records_out``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from statelib.columns.lists import lengths_of
from statelib.errors.kinds import ConfigurationError
from statelib.errors.user_lines import defined_at
from statelib.operators.base import StorelessOperator, StorelessSpec
from statelib.operators.mappers.mapping import Mapper, evaluate, functions_of
from statelib.records.key_column import KeyColumn

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from statelib.operators.base import OperatorContext
    from statelib.records.batch import Batch, Uptake


@dataclass(frozen=True, slots=True)
class FlatMapValues(StorelessSpec):
    """Gives each record a list of new values; key and windows stay (``flatMapValues``).

    Attributes:
        values: A column of lists.
    """

    values: Mapper

    def build(self, context: OperatorContext) -> Unfolding:
        """The running operator."""
        return Unfolding(self.values, lambda results, values: replace(results, value=values), context)

    def describe(self) -> Mapping[str, object]:
        """Kind and mapper."""
        return {"operator": "flat_map_values", "values": self.values.describe()}


@dataclass(frozen=True, slots=True)
class FlatMap(StorelessSpec):
    """Makes a list of records of each; windows of the old key are gone (``flatMap``).

    Attributes:
        records: A column of lists of structs with the fields ``key`` and ``value``.
    """

    records: Mapper

    def build(self, context: OperatorContext) -> Unfolding:
        """The running operator."""

        def as_records(results: Batch, items: pa.Array) -> Batch:
            _check_records(items, context.node, self.records)
            key, value = (pc.struct_field(items, [name]) for name in ("key", "value"))
            return replace(results, keys=KeyColumn(key), key_code=None, value=value)

        return Unfolding(self.records, as_records, context)

    def describe(self) -> Mapping[str, object]:
        """Kind and mapper."""
        return {"operator": "flat_map", "records": self.records.describe()}


class Unfolding(StorelessOperator):
    """A running operator whose mapper gives lists. Accounts: ``forwarded``, ``empty-list``.

    Args:
        lists: The mapper.
        as_results: Makes the results, of the record that each of them comes from, and of the items.
        context: The operator's.
    """

    def __init__(self, lists: Mapper, as_results: Callable[[Batch, pa.Array], Batch], context: OperatorContext) -> None:
        self._lists = lists
        self._as_results = as_results
        self._context = context

    def process(self, inputs: Sequence[Batch], uptake: Uptake) -> Batch:
        """The results, in the order of the records, and of each in the order of its list."""
        del uptake
        (batch,) = inputs
        lists = evaluate(self._lists, batch.as_record_batch(), self._context.node, batch.sequence)
        _check_lists(lists, self._context.node, self._lists)
        lengths = lengths_of(lists)
        bare = replace(batch, value=pa.nulls(len(batch)), prior=None, is_latest=None)
        results = self._as_results(bare.take(np.repeat(np.arange(len(batch)), lengths)), pc.list_flatten(lists))
        metrics = self._context.metrics
        metrics.records_in += len(batch)
        metrics.records_out += len(results)
        metrics.account("forwarded", int(np.count_nonzero(lengths)))
        metrics.account("empty-list", int(np.count_nonzero(lengths == 0)))
        return results


def _check_lists(column: pa.Array, node: str, of: Mapper) -> None:
    kinds = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    if not any(is_kind(column.type) for is_kind in kinds):
        raise ConfigurationError(
            f"a mapper gave {column.type}, not lists",
            node=node,
            **defined_at(functions_of(of)),
            next_step="give a list for each record: a list field, a list array, or per_record(f, pa.list_(TYPE))",
        )


def _check_records(items: pa.Array, node: str, of: Mapper) -> None:
    fields = {field.name for field in items.type} if pa.types.is_struct(items.type) else set()
    if not fields.issuperset(("key", "value")):
        raise ConfigurationError(
            f"a mapper gave lists of {items.type}, not of records",
            node=node,
            **defined_at(functions_of(of)),
            next_step="give lists of structs with the fields key and value, or use flat_map_values()",
        )
    if items.null_count:
        raise ConfigurationError(
            "a mapper gave a list with a null in place of a record",
            node=node,
            **defined_at(functions_of(of)),
            next_step="leave it out of the list, or give a record whose value is null",
        )
