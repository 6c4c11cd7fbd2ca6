"""Compares rows field by field, and counts what differs. The order in which rows come does not matter."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from statelib.columns.arrow_buffers import valid_of
from statelib.comparison.common_key import CommonKey
from statelib.comparison.difference import Difference, FieldDifference
from statelib.comparison.differing_rows import PLACE
from statelib.comparison.examples import Examples, names_of, no_fields, sortable
from statelib.comparison.fields import TIMESTAMP, Field, is_number
from statelib.comparison.number_changes import NumberTally
from statelib.comparison.row_words import hash_columns
from statelib.comparison.times import TimeTally, times_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from statelib.comparison.difference import DifferingRowsTaker
    from statelib.comparison.fields import Fields
    from statelib.comparison.matches import Way
    from statelib.comparison.sides import Side

KEY = "key"
_DIGITS = 39  # of decimals: one more than an archive holds


class Tally:
    """What differs, as far as it has been found.

    Args:
        a: One side.
        b: The other one.
        fields: What is compared.
        way: How.
        examples: How many rows are kept of each kind.
        taker: Is given the rows that differ; None: nobody wants them.
        split_ms: See `statelib.comparison.compare.compare`.
    """

    def __init__(
        self,
        a: Side,
        b: Side,
        fields: Fields,
        way: Way,
        examples: int,
        taker: DifferingRowsTaker | None = None,
        split_ms: int | None = None,
    ) -> None:
        self._fields = fields
        self._taker = taker
        self._way = way
        own_key = [Field(KEY, (), fields.key)] if way == "order" and fields.key is not None else []
        self._compared = (*own_key, *fields.fields)
        self._changed_of = {field.path: 0 for field in self._compared}
        self._numbers = {field.path: NumberTally() for field in self._compared if _has_difference(field)}
        self._times = TimeTally()
        self._split_ms = split_ms
        self._behind = 0
        self._common_key = CommonKey()
        places = (a.place_of, b.place_of)
        self._examples = {kind: Examples(examples, places) for kind in ("changed", "only_a", "only_b")}
        self._first = {kind: Examples(1, places) for kind in self._examples}
        self.equal = 0
        self._counts = {"only_a": 0, "only_b": 0, "changed": 0}

    def add_only(self, kind: str, rows: pa.Table) -> None:
        """Counts rows that one side alone has; ``kind``: ``only_a`` or ``only_b``."""
        if not len(rows):
            return
        self._counts[kind] += len(rows)
        self._common_key.add(_whole(rows, KEY))
        self._count_times(kind, rows)
        sides = (rows, None) if kind == "only_a" else (None, rows)
        if self._taker is not None:
            self._taker.take(*sides)
        self._show(kind, sides, no_fields(len(rows)))

    def add_pairs(self, a: pa.Table, b: pa.Table) -> None:
        """Compares rows of both sides, row by row."""
        if not len(a):
            return
        columns = [(_column(field, a), _column(field, b)) for field in self._compared]
        changed = [_differ(field, *pair) for field, pair in zip(self._compared, columns, strict=True)]
        any_changed = np.any(changed, axis=0) if changed else np.zeros(len(a), np.bool_)
        rows = np.flatnonzero(any_changed)
        self.equal += len(a) - len(rows)
        if not len(rows):
            return
        self._counts["changed"] += len(rows)
        hashes = hash_columns([_whole(a, KEY)] if self._way != "order" else [_whole(a, PLACE)], len(a))
        for field, pair, differs in zip(self._compared, columns, changed, strict=True):
            self._changed_of[field.path] += int(np.count_nonzero(differs))
            if field.path in self._numbers and differs.any():
                numbers, are_there = _subtracted(pair[0], pair[1], differs)
                self._numbers[field.path].add(numbers, hashes[are_there])
        chosen = pa.array(rows)
        a, b = a.take(chosen), b.take(chosen)
        if self._taker is not None:
            self._taker.take(a, b)
        self._common_key.add(_whole(a, KEY))
        self._count_times("changed", a)
        names = [field.path for field in self._compared]
        fields = names_of([differs[rows] for differs in changed], names, len(rows))
        self._show("changed", (a, b), fields)

    def result(self, rows: tuple[int, int], shared: int) -> Difference:
        """All that was found.

        Args:
            rows: How many rows were read of each side.
            shared: How many both share.
        """
        found = [
            FieldDifference(path, changed, self._numbers[path].result() if path in self._numbers else None)
            for path, changed in self._changed_of.items()
            if changed
        ]
        by_time = [(one.least, one.result()[0]) for one in self._first.values() if one.result()]
        first_ms, first = min(by_time, key=lambda row: (row[0] is None, row[0] or 0), default=(None, None))
        return Difference(
            way=self._way,
            rows_a=rows[0],
            rows_b=rows[1],
            shared=shared,
            equal=self.equal,
            only_a=self._counts["only_a"],
            only_b=self._counts["only_b"],
            changed=self._counts["changed"],
            schema=self._fields.differences,
            fields=tuple(sorted(found, key=lambda field: (-field.changed, field.path))),
            examples={kind: examples.result() for kind, examples in self._examples.items()},
            times=self._times.result(),
            common_key=self._common_key.result(),
            first=first,
            first_ms=first_ms,
            behind=None if self._split_ms is None else self._behind,
        )

    def _show(self, kind: str, sides: tuple[pa.Table | None, pa.Table | None], fields: pa.Array) -> None:
        there = [rows for rows in sides if rows is not None]
        order, times = self._order(*there), times_of(there[0])
        self._examples[kind].add(order, sides, fields)
        if times is None:
            times = pa.nulls(len(fields), pa.int64())
        self._first[kind].add([times, *order], sides, fields)

    def _count_times(self, kind: str, rows: pa.Table) -> None:
        times = times_of(rows)
        if times is not None:
            times_ms = times.drop_null().to_numpy()
            self._times.add(kind, times_ms)
            if self._split_ms is not None:
                self._behind += int(np.count_nonzero(times_ms >= self._split_ms))

    def _order(self, *sides: pa.Table) -> list[pa.Array]:
        """What decides which examples come first: the key, then the time and the content; of ``order`` the place."""
        if self._way == "order":
            return [_whole(sides[0], PLACE)]
        key = _whole(sides[0], KEY)
        wanted = self._fields.key
        columns = sortable(key if wanted is None or key.type.equals(wanted) else key.cast(wanted))
        for rows in sides:
            if TIMESTAMP in rows.column_names:
                columns.append(_whole(rows, TIMESTAMP))
            columns.append(pa.array(hash_columns([_whole(rows, "value")], len(rows))))
        return columns


def _column(field: Field, rows: pa.Table) -> pa.Array:
    if field.path == KEY:
        key = _whole(rows, KEY)
        return key if key.type.equals(field.type) else key.cast(field.type)
    return field.of(rows)


def _whole(rows: pa.Table, name: str) -> pa.Array:
    column = rows.column(name)
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _has_difference(field: Field) -> bool:
    return is_number(field.type) or field.path == TIMESTAMP


def _differ(field: Field, a: pa.Array, b: pa.Array) -> NDArray[np.bool_]:
    """bool[n]: where a field differs; see `Rules` for what is equal."""
    differs: NDArray[np.bool_] = hash_columns([a], len(a)) != hash_columns([b], len(b))
    if field.tolerance is None or not differs.any():
        return differs
    rows = np.flatnonzero(differs)
    chosen = pa.array(rows)
    there, numbers = _difference(a.take(chosen), b.take(chosen))
    differs[rows] = ~(there & (np.abs(numbers) <= field.tolerance))
    return differs


def _subtracted(a: pa.Array, b: pa.Array, differs: NDArray[np.bool_]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """B - A where they differ and are finite numbers, and in which rows that is."""
    rows = np.flatnonzero(differs)
    chosen = pa.array(rows)
    there, numbers = _difference(a.take(chosen), b.take(chosen))
    there &= np.isfinite(numbers)
    return numbers[there], rows[there]


def _difference(a: pa.Array, b: pa.Array) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Whether both are there, and B - A as doubles: of integers and decimals exact before rounding.

    Row by row, so that no row depends on the others of its chunk.
    """
    there = valid_of(a) & valid_of(b)
    if pa.types.is_timestamp(a.type):
        a, b = (column.cast(pa.timestamp("ms", "UTC"), safe=False).cast(pa.int64()) for column in (a, b))
    if pa.types.is_decimal(a.type):
        wide = [column.cast(pa.decimal256(_DIGITS, a.type.scale)) for column in (a, b)]
        return there, _doubles(pc.subtract(wide[1], wide[0]))
    if pa.types.is_integer(a.type):
        one, other = (column.fill_null(0).cast(pa.int64()).to_numpy() for column in (a, b))
        exact = other - one
        is_exact = ((other ^ one) & (other ^ exact)) >= 0  # else it is beyond 64 bits
        return there, np.where(is_exact, exact.astype(np.float64), other.astype(np.float64) - one.astype(np.float64))
    with np.errstate(invalid="ignore", over="ignore"):
        return there, _doubles(b) - _doubles(a)


def _doubles(column: pa.Array) -> NDArray[np.float64]:
    found: NDArray[np.float64] = column.cast(pa.float64(), safe=False).fill_null(0.0).to_numpy(zero_copy_only=False)
    return found
