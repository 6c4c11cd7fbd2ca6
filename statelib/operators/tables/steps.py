"""How one table's values are made from another's: filter, map, transform (Kafka's ``KTable`` methods of these names).

A step is a function of a key and its value alone, so it can be taken twice: over the changes that pass, old values as
well as new ones, and over what a join looks up in the store of the table that stands before it. Mappers see the columns
``key`` and ``value`` and, where keys are windowed, ``window_start`` and ``window_end``.

Null is what a key has that has nothing. A filter and a mapped value keep it as it is, without asking the mapper; a
transformation is asked for it too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from statelib.columns.scatter import scatter
from statelib.operators.mappers.function_errors import among
from statelib.operators.mappers.mapping import Mapper, evaluate, holds
from statelib.records.key_column import window_columns

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from statelib.records.key_column import KeyColumn


class TableStep(Protocol):
    """Makes a table's values from those of another; immutable and picklable."""

    @property
    def is_filter(self) -> bool:
        """Whether it may only keep a value or leave it out."""

    def apply(self, columns: pa.RecordBatch, node: str, sequence: NDArray[np.int64]) -> pa.Array:
        """One value for each row of ``columns`` (`columns_of`); null: nothing. ``sequence``: see `evaluate`."""

    def describe(self) -> Mapping[str, object]:
        """Kind and mapper as plain data."""


@dataclass(frozen=True, slots=True)
class FilterStep:
    """Leaves out values for which the predicate is not true, or, ``negated``, is (``KTableFilter``): see `holds`."""

    predicate: Mapper
    negated: bool = False
    is_filter = True

    def apply(self, columns: pa.RecordBatch, node: str, sequence: NDArray[np.int64]) -> pa.Array:
        """The values that pass."""
        value = columns.column("value")
        there = value.is_valid()
        is_there = np.asarray(there)
        rows = np.flatnonzero(is_there)
        with among(is_there):
            passes = holds(self.predicate, columns.filter(there), node, sequence[rows]) != self.negated
        kept = np.zeros(len(value), dtype=np.bool_)
        kept[rows[passes]] = True
        return value if kept.all() else value.take(pa.array(np.arange(len(value)), mask=~kept))

    def describe(self) -> Mapping[str, object]:
        """See `TableStep`."""
        return {"step": "filter_not" if self.negated else "filter", "predicate": self.predicate.describe()}


@dataclass(frozen=True, slots=True)
class MapStep:
    """Gives each value another (``KTableMapValues``)."""

    mapper: Mapper
    is_filter = False

    def apply(self, columns: pa.RecordBatch, node: str, sequence: NDArray[np.int64]) -> pa.Array:
        """The mapped values; nothing stays nothing."""
        there = columns.column("value").is_valid()
        rows = np.asarray(there)
        with among(rows):
            return scatter(evaluate(self.mapper, columns.filter(there), node, sequence[rows]), rows)

    def describe(self) -> Mapping[str, object]:
        """See `TableStep`."""
        return {"step": "map_values", "value": self.mapper.describe()}


@dataclass(frozen=True, slots=True)
class TransformStep:
    """Gives each value another, and also what has none (``KTableTransformValues``)."""

    mapper: Mapper
    is_filter = False

    def apply(self, columns: pa.RecordBatch, node: str, sequence: NDArray[np.int64]) -> pa.Array:
        """The transformed values."""
        return evaluate(self.mapper, columns, node, sequence)

    def describe(self) -> Mapping[str, object]:
        """See `TableStep`."""
        return {"step": "transform_values", "value": self.mapper.describe()}


def columns_of(keys: KeyColumn, value: pa.Array) -> pa.RecordBatch:
    """What the mapper of a step sees."""
    return pa.RecordBatch.from_pydict({"key": keys.plain, "value": value, **window_columns(keys)})


def through(
    steps: Sequence[TableStep], keys: KeyColumn, value: pa.Array, node: str, sequence: NDArray[np.int64]
) -> pa.Array:
    """The values that come out of all ``steps``, one by one, for ``value`` of ``keys``; a null key has none.

    ``sequence``: of the records that look them up, see `evaluate`.
    """
    for step in steps:
        value = step.apply(columns_of(keys, value), node, sequence)
    if steps and not (there := keys.valid()).all():
        value = pc.if_else(pa.array(there), value, pa.scalar(None, value.type))
    return value
