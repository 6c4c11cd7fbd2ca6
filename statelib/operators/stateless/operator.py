"""Operators without state: map values, keys or both, filter, peek, foreach (Kafka's methods of ``KStream``).

What makes several records of one is in `statelib.operators.stateless.flat_map`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from statelib.calls.kinds import takes
from statelib.columns.windowed import Windowed
from statelib.operators.base import StorelessOperator, StorelessSpec
from statelib.operators.mappers.fields import both, columns_for, fields_of_mapper, narrowed
from statelib.operators.mappers.function_errors import Failing, all_that_fail, calling, first_that_fails
from statelib.operators.mappers.mapping import Mapper, evaluate, holds
from statelib.operators.mappers.python_values import items_of
from statelib.records.key_column import KeyColumn

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from statelib.operators.base import OperatorContext
    from statelib.operators.mappers.fields import Fields
    from statelib.records.batch import Batch, Uptake


@dataclass(frozen=True, slots=True)
class MapValues(StorelessSpec):
    """Gives each record a new value (``mapValues``); a table's prior values are mapped too."""

    value: Mapper

    def build(self, context: OperatorContext) -> Stateless:
        """The running operator."""

        def run(batch: Batch) -> Batch:
            mapped = evaluate(self.value, columns_for(self.value, batch), context.node, batch.sequence)
            prior = batch.prior
            if prior is not None:
                before = replace(batch, value=prior)
                prior = evaluate(self.value, columns_for(self.value, before), context.node, batch.sequence)
            return replace(batch, value=mapped, prior=prior)

        return Stateless(run, context)

    def describe(self) -> Mapping[str, object]:
        """Kind and mapper."""
        return {"operator": "map_values", "value": self.value.describe()}

    def reads(self, parent: int, wanted: Fields) -> Fields:
        """See `FieldsSpec`."""
        del parent, wanted
        return fields_of_mapper(self.value)


@dataclass(frozen=True, slots=True)
class SelectKey(StorelessSpec):
    """Gives each record a new key (``selectKey``); windows of the old key are gone."""

    key: Mapper

    def build(self, context: OperatorContext) -> Stateless:
        """The running operator."""
        return _rekeying(self.key, None, context)

    def describe(self) -> Mapping[str, object]:
        """Kind and mapper."""
        return {"operator": "select_key", "key": self.key.describe()}

    def reads(self, parent: int, wanted: Fields) -> Fields:
        """See `FieldsSpec`."""
        del parent
        return both([fields_of_mapper(self.key), wanted])


@dataclass(frozen=True, slots=True)
class MapKeyValue(StorelessSpec):
    """Gives each record a new key and a new value (``map``); windows of the old key are gone."""

    key: Mapper
    value: Mapper

    def build(self, context: OperatorContext) -> Stateless:
        """The running operator."""
        return _rekeying(self.key, self.value, context)

    def describe(self) -> Mapping[str, object]:
        """Kind and mappers."""
        return {"operator": "map", "key": self.key.describe(), "value": self.value.describe()}

    def reads(self, parent: int, wanted: Fields) -> Fields:
        """See `FieldsSpec`."""
        del parent, wanted
        return both([fields_of_mapper(self.key), fields_of_mapper(self.value)])


@dataclass(frozen=True, slots=True)
class Filter(StorelessSpec):
    """Keeps the records of a stream for which the predicate is true, or, ``negated``, all others (``filterNot``).

    Null is not true: see `holds`.
    """

    predicate: Mapper
    negated: bool = False

    def build(self, context: OperatorContext) -> Stateless:
        """The running operator."""

        def run(batch: Batch) -> Batch:
            kept = (
                holds(self.predicate, columns_for(self.predicate, batch), context.node, batch.sequence) != self.negated
            )
            return narrowed(batch, context.wanted).filter(kept)

        return Stateless(run, context)

    def describe(self) -> Mapping[str, object]:
        """Kind and predicate."""
        return {
            "operator": "filter_not" if self.negated else "filter",
            "predicate": self.predicate.describe(),
        }

    def reads(self, parent: int, wanted: Fields) -> Fields:
        """See `FieldsSpec`."""
        del parent
        return both([fields_of_mapper(self.predicate), wanted])


@dataclass(frozen=True, slots=True)
class Peek(StorelessSpec):
    """Shows each batch to a function and forwards it unchanged (``peek``).

    The function is called for batches with records only, and again when a task is tried again, and with parts of a
    batch that it has failed for: it must not matter how often.
    """

    action: Callable[[pa.RecordBatch], object]

    def build(self, context: OperatorContext) -> Stateless:
        """The running operator."""

        def run(batch: Batch) -> Batch:
            show(self.action, batch, context.node, "peek")
            return batch

        return Stateless(run, context)

    def describe(self) -> Mapping[str, object]:
        """Kind alone: the action has no say in the answer."""
        return {"operator": "peek"}


@dataclass(frozen=True, slots=True)
class ForEach(StorelessSpec):
    """Shows each batch to a function, and nothing comes after it (``foreach``). As often as `Peek`."""

    action: Callable[[pa.RecordBatch], object]

    def build(self, context: OperatorContext) -> Stateless:
        """The running operator."""

        def run(batch: Batch) -> Batch:
            show(self.action, batch, context.node, "foreach")
            return batch.take(np.empty(0, dtype=np.int64))

        return Stateless(run, context, taken="consumed")

    def describe(self) -> Mapping[str, object]:
        """Kind alone: the action has no say in the answer."""
        return {"operator": "foreach"}


@dataclass(frozen=True, slots=True)
class _EachRecord:
    """Calls a function for each record of a batch."""

    action: Callable[[Any, Any], object]

    def __call__(self, columns: pa.RecordBatch) -> None:
        """Calls it for each."""
        for key, value in zip(keys_of(columns), items_of(columns["value"]), strict=True):
            self.action(key, value)


def by_batch(
    action: Callable[[pa.RecordBatch], object] | Callable[[Any, Any], object],
) -> Callable[[pa.RecordBatch], object]:
    """An action itself, if it takes a batch; one of key and value, such as Kafka's ``ForeachAction``, for a batch."""
    return action if takes(action, 1) else _EachRecord(action)  # type: ignore[arg-type, return-value]


def keys_of(columns: pa.RecordBatch) -> list[Any]:
    """The keys as Python data; windowed ones as `Windowed`, as custom processors have them."""
    keys = items_of(columns["key"])
    if "window_start" not in columns.schema.names:
        return keys
    starts, ends = (columns[name].cast(pa.int64()).to_pylist() for name in ("window_start", "window_end"))
    return list(map(Windowed, keys, starts, ends))


class Stateless(StorelessOperator):
    """A running operator that is one function of a batch.

    Args:
        run: The function; it may leave records out.
        context: The operator's.
        taken: The account of what is left out; what is not goes to ``forwarded``.
    """

    def __init__(self, run: Callable[[Batch], Batch], context: OperatorContext, *, taken: str = "filtered") -> None:
        self._run = run
        self._metrics = context.metrics
        self._taken = taken

    def process(self, inputs: Sequence[Batch], uptake: Uptake) -> Batch:
        """The function's result for the one input."""
        del uptake
        (batch,) = inputs
        result = self._run(batch)
        self._metrics.records_in += len(batch)
        self._metrics.records_out += len(result)
        self._metrics.account("forwarded", len(result))
        self._metrics.account(self._taken, len(batch) - len(result))
        return result


def show(action: Callable[[pa.RecordBatch], object], batch: Batch, node: str, method: str) -> None:
    """Shows a batch with records to a function.

    Raises:
        HindstreamError: The function has failed: see `statelib.operators.mappers.function_errors.calling`.
    """
    if not len(batch):
        return
    columns = batch.as_record_batch()

    def failed_for(error: BaseException) -> int | None:
        row = first_that_fails(action, columns, error)
        return None if row is None else int(batch.sequence[row])

    of_user = action.action if isinstance(action, _EachRecord) else action
    what = f"a function of {method}"
    failing = Failing(what, lambda: all_that_fail(action, columns), columns.num_rows)
    with calling(what, [of_user], node=node, sequence=failed_for, failing=failing, columns=columns.schema):
        action(columns)


def _rekeying(key: Mapper, value: Mapper | None, context: OperatorContext) -> Stateless:
    def run(batch: Batch) -> Batch:
        columns = batch.as_record_batch()
        return replace(
            batch,
            keys=KeyColumn(evaluate(key, columns, context.node, batch.sequence)),
            key_code=None,
            value=batch.value if value is None else evaluate(value, columns, context.node, batch.sequence),
            prior=None,
        )

    return Stateless(run, context)
