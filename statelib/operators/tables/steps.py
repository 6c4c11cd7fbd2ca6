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

from statelib.columns.arrow_buffers import valid_of
from statelib.records.key_column import window_columns

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from statelib.operators.asking import Asking
    from statelib.operators.mappers.mapping import Mapper
    from statelib.records.key_column import KeyColumn


class TableStep(Protocol):
    """Makes a table's values from those of another; immutable and picklable."""

    @property
    def is_filter(self) -> bool:
        """Whether it may only keep a value or leave it out."""

    def apply(self, columns: pa.RecordBatch, asking: Asking) -> pa.Array:
        """One value for each row of ``columns`` (`columns_of`); null: nothing, or the function has failed."""

    def describe(self) -> Mapping[str, object]:
        """Kind and mapper as plain data."""


@dataclass(frozen=True, slots=True)
class FilterStep:
    """Leaves out values for which the predicate is not true, or, ``negated``, is (``KTableFilter``): see `holds`."""

    predicate: Mapper
    negated: bool = False
    is_filter = True

    def apply(self, columns: pa.RecordBatch, asking: Asking) -> pa.Array:
        """The values that pass."""
        value = columns.column("value")
        there = valid_of(value)
        kept = there & (asking.holds(self.predicate, columns, there) != self.negated) & ~asking.failed
        return value if kept.all() else value.take(pa.array(np.arange(len(value)), mask=~kept))

    def describe(self) -> Mapping[str, object]:
        """See `TableStep`."""
        return {"step": "filter_not" if self.negated else "filter", "predicate": self.predicate.describe()}


@dataclass(frozen=True, slots=True)
class MapStep:
    """Gives each value another (``KTableMapValues``)."""

    mapper: Mapper
    is_filter = False

    def apply(self, columns: pa.RecordBatch, asking: Asking) -> pa.Array:
        """The mapped values; nothing stays nothing."""
        return asking.evaluate(self.mapper, columns, valid_of(columns.column("value")))

    def describe(self) -> Mapping[str, object]:
        """See `TableStep`."""
        return {"step": "map_values", "value": self.mapper.describe()}


@dataclass(frozen=True, slots=True)
class TransformStep:
    """Gives each value another, and also what has none (``KTableTransformValues``)."""

    mapper: Mapper
    is_filter = False

    def apply(self, columns: pa.RecordBatch, asking: Asking) -> pa.Array:
        """The transformed values."""
        return asking.evaluate(self.mapper, columns)

    def describe(self) -> Mapping[str, object]:
        """See `TableStep`."""
        return {"step": "transform_values", "value": self.mapper.describe()}


def columns_of(keys: KeyColumn, value: pa.Array) -> pa.RecordBatch:
    """What the mapper of a step sees."""
    return pa.RecordBatch.from_pydict({"key": keys.plain, "value": value, **window_columns(keys)})


def through(steps: Sequence[TableStep], keys: KeyColumn, value: pa.Array, asking: Asking) -> pa.Array:
    """The values that come out of all ``steps``, one by one, for ``value`` of ``keys``; a null key has none.

    ``asking``: about the records that look them up.
    """
    for step in steps:
        value = step.apply(columns_of(keys, value), asking)
    if steps and not (there := keys.valid()).all():
        value = pc.if_else(pa.array(there), value, pa.scalar(None, value.type))
    return value
