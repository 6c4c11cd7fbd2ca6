"""Some of the rows that differ: always the same ones, in whatever order they come."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from statelib.columns.time_columns import python_values
from statelib.comparison.difference import Example
from statelib.comparison.row_words import hash_columns

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

_SIDES = ("a", "b")
_CONTENT = ("value", "timestamp", "headers")


class Examples:
    """The first rows of a kind, by an order.

    Args:
        limit: How many.
        place_of: Of each side, what a place is called.
    """

    def __init__(self, limit: int, place_of: Sequence[Callable[[int], dict[str, object]]]) -> None:
        self._limit = limit
        self._place_of = place_of
        self._table: pa.Table | None = None

    def add(self, order: Sequence[pa.Array], rows: Sequence[pa.Table | None], fields: pa.Array) -> None:
        """Adds rows.

        Args:
            order: What they are ordered by: columns that Arrow can sort.
            rows: Of each side: ``key``, ``value``, ``place``, of records ``timestamp`` and ``headers``; None: it has
                none of them.
            fields: list<string>: which fields changed.
        """
        if not len(fields) or not self._limit:
            return
        names = [f"order{n}" for n in range(len(order))]
        keys = pa.Table.from_arrays(list(order), names)
        first = keys.add_column(0, "row", pa.array(np.arange(len(fields)))).sort_by(
            [(name, "ascending") for name in names]
        )
        chosen = first.column("row").slice(0, self._limit)
        columns = {name: keys.column(name).take(chosen) for name in names}
        for side, table in zip(_SIDES, rows, strict=True):
            if table is not None:
                columns |= {f"{side}.{name}": table.column(name).take(chosen) for name in table.column_names}
        made = pa.table({**columns, "fields": fields.take(chosen)})
        both = made if self._table is None else pa.concat_tables([self._table, made])
        self._table = both.sort_by([(name, "ascending") for name in names]).slice(0, self._limit)

    @property
    def least(self) -> Any:
        """What the first row has in the first column of the order; None: nothing, or there are no rows."""
        return None if self._table is None else self._table.column("order0")[0].as_py()

    def result(self) -> tuple[Example, ...]:
        """Those that come first."""
        if self._table is None:
            return ()
        columns = {name: python_values(self._table.column(name)) for name in self._table.column_names}
        return tuple(self._example(columns, row) for row in range(len(self._table)))

    def _example(self, columns: dict[str, list[Any]], row: int) -> Example:
        sides: list[dict[str, Any] | None] = []
        fields = tuple(columns["fields"][row])
        content_of = ("key", *_CONTENT) if "key" in fields else _CONTENT
        has_a = f"{_SIDES[0]}.place" in columns
        key = columns[f"{_SIDES[0] if has_a else _SIDES[1]}.key"][row]
        for side, place_of in zip(_SIDES, self._place_of, strict=True):
            if f"{side}.place" not in columns:
                sides.append(None)
                continue
            content = {name: columns[f"{side}.{name}"][row] for name in content_of if f"{side}.{name}" in columns}
            if content.get("headers", 0) is None:
                del content["headers"]
            sides.append({**content, **place_of(columns[f"{side}.place"][row])})
        return Example(key, sides[0], sides[1], fields)


def sortable(column: pa.Array) -> list[pa.Array]:
    """Columns that Arrow can sort and that order values as people would: a struct's fields, of lists hashes."""
    if pa.types.is_struct(column.type):
        return [inner for field in column.flatten() for inner in sortable(field)]
    if pa.types.is_nested(column.type):
        return [pa.array(hash_columns([column], len(column)))]
    return [] if pa.types.is_null(column.type) else [column]


def no_fields(rows: int) -> pa.Array:
    """For rows that only one side has."""
    return pa.array([[]], pa.list_(pa.string())).take(pa.array(np.zeros(rows, np.int64)))


def names_of(changed: Sequence[NDArray[np.bool_]], names: Sequence[str], rows: int) -> pa.Array:
    """list<string>: by row the names of what is true of it."""
    if not changed:
        return no_fields(rows)
    flags = np.stack(changed, axis=1)
    offsets = np.concatenate([[0], np.cumsum(flags.sum(axis=1))])
    where = pa.array(np.nonzero(flags)[1])
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(names, pa.string()).take(where))
