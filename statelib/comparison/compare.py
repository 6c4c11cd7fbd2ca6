"""Compares two sides."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from statelib.comparison.difference import Difference
from statelib.comparison.differing_rows import PLACE, DifferingRows, chunk_bits
from statelib.comparison.examples import sortable
from statelib.comparison.fields import Rules, common_fields
from statelib.comparison.in_order import in_order
from statelib.comparison.matches import has_time_in_identity, identity_columns, unmatched
from statelib.comparison.matching_kernel import NONE
from statelib.comparison.row_words import hash_columns
from statelib.comparison.tally import Tally
from statelib.comparison.times import ALL_TIMES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from statelib.comparison.difference import DifferingRowsTaker
    from statelib.comparison.fields import Fields
    from statelib.comparison.matches import Resources, Unmatched, Way
    from statelib.comparison.sides import Side
    from statelib.comparison.times import Interval

EXAMPLES = 10
_NO_RULES = Rules()


def compare(
    a: Side,
    b: Side,
    way: Way,
    resources: Resources,
    *,
    rules: Rules = _NO_RULES,
    examples: int = EXAMPLES,
    taker: DifferingRowsTaker | None = None,
    within: Interval = ALL_TIMES,
    split_ms: int | None = None,
) -> Difference:
    """Compares the rows that two sides do not share.

    ``latest``
        By key, and of windowed keys by key and window: the row with the highest place of each key. A null value stands
        for no row. Of a key that only one side has rows of, the other side's is its newest among the shared ones.
    ``set``
        As multisets of key, timestamp, value and headers. What is left of each side is paired by key and timestamp, in
        the order of the values: pairs are changed rows.
    ``order``
        In each partition record by record. Where one side has a record more, all behind it differ.

    Rows that are equal within the tolerances of ``rules`` count as equal. No result depends on ``resources``.

    Args:
        a: One side.
        b: The other one.
        way: How.
        resources: What the comparison may use.
        rules: What counts as equal.
        examples: How many rows are shown of each kind.
        taker: Is given all rows that differ; None: nobody wants them.
        within: Rows of another time are left out, on both sides.
        split_ms: A time; it is told how many rows that differ are of it or later: of a changed row that in A counts.
    """
    fields = common_fields((a.key, a.value), (b.key, b.value), rules, records=a.has_times and b.has_times)
    shared = sum((run.end or run.start) - run.start for run in a.shared)
    rows = tuple(sum((run.end or 0) - run.start for run in side.own) for side in (a, b))
    tally = Tally(a, b, fields, way, examples, taker, split_ms)
    if fields.key is None:
        return _incomparable(way, fields, rows, shared)
    if way == "order":
        in_order(a, b, tally, within)
        return tally.result((rows[0], rows[1]), shared)
    found = (resources.matcher or unmatched)(a, b, fields, way, resources, within)
    tally.equal = found.equal
    bits = chunk_bits(a, b, len(found.a) + len(found.b), resources) if len(found.a) or len(found.b) else 0
    differing = [
        DifferingRows(side, places[places != NONE], keys[places != NONE], bits, f"differing-{name}", resources.scratch)
        for name, side, places, keys in (("a", a, found.a, found.a_keys), ("b", b, found.b, found.b_keys))
    ]
    places_b = _pairs_by_place(found) if way == "latest" else None
    has_time = has_time_in_identity(a, b, fields, way)
    for chunk in range(1 << bits):
        rows_a, rows_b = (side.chunk(chunk) for side in differing)
        if rows_a is None or rows_b is None:
            pairs = np.empty(0, np.int64), np.empty(0, np.int64)
        elif places_b is not None:
            pairs = _of_same_key(rows_a, rows_b, places_b)
        else:
            pairs = _of_same_identity(rows_a, rows_b, fields, has_time=has_time)
        if rows_a is not None and rows_b is not None:
            tally.add_pairs(rows_a.take(pa.array(pairs[0])), rows_b.take(pa.array(pairs[1])))
        for kind, table, paired in (("only_a", rows_a, pairs[0]), ("only_b", rows_b, pairs[1])):
            if table is not None:
                tally.add_only(kind, table.take(pa.array(np.setdiff1d(np.arange(len(table)), paired))))
    return tally.result((rows[0], rows[1]), shared)


def _pairs_by_place(found: Unmatched) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Places of A in order, and those in B of the same keys."""
    both = (found.a != NONE) & (found.b != NONE)
    order = np.argsort(found.a[both])
    return found.a[both][order], found.b[both][order]


def _of_same_key(
    a: pa.Table, b: pa.Table, pairs: tuple[NDArray[np.int64], NDArray[np.int64]]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Which rows of A and which of B are a pair."""
    of_a, of_b = (table.column(PLACE).to_numpy() for table in (a, b))
    if not len(pairs[0]):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    at = np.minimum(np.searchsorted(pairs[0], of_a), len(pairs[0]) - 1)
    has_pair = pairs[0][at] == of_a
    return np.flatnonzero(has_pair), np.searchsorted(of_b, pairs[1][at[has_pair]])


def _of_same_identity(
    a: pa.Table, b: pa.Table, fields: Fields, *, has_time: bool
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pairs the first row of A that is left of a key and time with the first one of B, the second with the second."""
    ranked = [_ranked(table, fields, has_time=has_time) for table in (a, b)]
    keys, checks, ranks, rows = (np.concatenate(columns) for columns in zip(*ranked, strict=True))
    sides = np.repeat([0, 1], [len(a), len(b)])
    order = np.lexsort((sides, ranks, checks, keys))
    first, second = order[:-1], order[1:]
    pairs = np.ones(len(first), np.bool_)
    for column in (keys, checks, ranks):
        pairs &= column[first] == column[second]
    return rows[first[pairs]], rows[second[pairs]]


def _ranked(table: pa.Table, fields: Fields, *, has_time: bool) -> tuple[NDArray[Any], ...]:
    """Hashes of each row's key and time, other ones, its rank among the rows of these by content, and the row."""
    batch = table.combine_chunks().to_batches()[0]
    identity = identity_columns(batch, fields, has_time=has_time)
    keys, checks = (hash_columns(identity, len(batch), other=other) for other in (False, True))
    columns = [inner for field in fields.fields for inner in sortable(field.of(batch))]
    columns.append(pa.array(hash_columns([field.of(batch) for field in fields.fields], len(batch))))
    names = [f"c{n}" for n in range(len(columns))]
    by_content = pa.Table.from_arrays(
        [pa.array(keys), pa.array(checks), *columns, pa.array(np.arange(len(batch)))], ["key", "check", *names, "row"]
    ).sort_by([(name, "ascending") for name in ("key", "check", *names, "row")])
    rows = by_content.column("row").to_numpy()
    starts = np.concatenate([[True], (np.diff(keys[rows]) != 0) | (np.diff(checks[rows]) != 0)])
    begins = np.flatnonzero(starts)
    ranks = np.arange(len(rows)) - np.repeat(begins, np.diff([*begins, len(rows)]))
    return keys[rows], checks[rows], ranks, rows


def _incomparable(way: Way, fields: Fields, rows: tuple[int, ...], shared: int) -> Difference:
    nothing: dict[str, tuple[()]] = {"changed": (), "only_a": (), "only_b": ()}
    return Difference(
        way, rows[0], rows[1], shared, 0, 0, 0, 0, fields.differences, (), dict(nothing), None, is_compared=False
    )
