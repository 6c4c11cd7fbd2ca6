"""Random tables to compare, as sides in memory, and the comparison in plain Python, record by record."""

from __future__ import annotations

import math
import struct
import zlib
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from statelib.comparison.difference import Difference
from statelib.comparison.sides import Side

TIME = pa.timestamp("ms", "UTC")
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
WINDOWED = pa.struct([("key", pa.string()), ("window_start", TIME), ("window_end", TIME)])
VALUE = pa.struct(
    [
        ("total", pa.float64()),
        ("n", pa.int64()),
        ("name", pa.string()),
        ("inner", pa.struct([("x", pa.float32()), ("items", pa.list_(pa.float64()))])),
        ("by", pa.map_(pa.string(), pa.int32())),
        ("price", pa.decimal128(10, 2)),
    ]
)
Row = tuple[Any, Any, int, Any]
"""Key, value, timestamp, headers."""


@dataclass(frozen=True)
class Memory:
    """A `Stretch` of rows in memory."""

    partition: int
    start: int
    rows: list[Row]
    types: tuple[pa.DataType, pa.DataType]
    batch_rows: int
    encoded: bool = False

    @property
    def end(self) -> int:
        return self.start + len(self.rows)

    def read(self, start: int, end: int | None):
        wanted = self.rows[start - self.start : None if end is None else end - self.start]
        for at in range(0, len(wanted), self.batch_rows):
            keys, values, times, headers = zip(*wanted[at : at + self.batch_rows], strict=True)
            key = pa.array(keys, self.types[0])
            if self.encoded and pa.types.is_string(key.type):
                key = key.dictionary_encode()
            yield pa.RecordBatch.from_pydict(
                {
                    "key": key,
                    "value": pa.array(values, self.types[1]),
                    "timestamp": pa.array(times, TIME),
                    "headers": pa.array(headers, HEADERS),
                }
            )


def side(
    shared: list[Row], own: list[Row], types: tuple[pa.DataType, pa.DataType], partitions: int = 1, batch_rows: int = 3
) -> Side:
    """Rows as a side: each key's in one partition, in their order."""
    stretches: dict[bool, list[Memory]] = {True: [], False: []}
    for partition in range(partitions):
        at = 0
        for is_shared, rows in ((True, shared), (False, own)):
            mine = [row for row in rows if zlib.crc32(repr(row[0]).encode()) % partitions == partition]
            if mine:
                stretches[is_shared].append(Memory(partition, at, mine, types, batch_rows, encoded=partition % 2 == 0))
            at += len(mine)
    return Side(types[0], types[1], tuple(stretches[False]), tuple(stretches[True]))


def without_places(found: Difference) -> Difference:
    """The same without what depends on the partitions."""
    kept = ("value", "timestamp", "headers")

    def content(row):
        return None if row is None else {name: row[name] for name in kept if name in row}

    examples = {
        kind: tuple(replace(example, a=content(example.a), b=content(example.b)) for example in rows)
        for kind, rows in found.examples.items()
    }
    first = found.first and replace(found.first, a=content(found.first.a), b=content(found.first.b))
    return replace(found, examples=examples, first=first)


FLOATS = st.sampled_from([0.0, -0.0, 1.0, 1.5, -2.0, 1e300, math.nan, math.inf, 0.1, 0.1 + 1e-12])
VALUES = st.fixed_dictionaries(
    {
        "total": st.none() | FLOATS,
        "n": st.none() | st.sampled_from([0, 1, 2, 2**62, -(2**62)]),
        "name": st.none() | st.sampled_from(["", "a", "b"]),
        "inner": st.none()
        | st.fixed_dictionaries(
            {
                "x": st.none() | st.sampled_from([0.0, 0.5]),
                "items": st.none() | st.lists(st.none() | FLOATS, max_size=2),
            }
        ),
        "by": st.none() | st.lists(st.tuples(st.sampled_from("xy"), st.sampled_from([1, 2])), max_size=2),
        "price": st.none() | st.sampled_from([pa.scalar(100, pa.decimal128(10, 2)).as_py()]),
    }
)
TEXTS = st.sampled_from(["", "a", "b", "c", "dd"])
KEYS = {
    "text": (pa.string(), st.none() | TEXTS),
    "number": (pa.int64(), st.sampled_from([0, 1, -1, 2**60])),
    "windowed": (
        WINDOWED,
        st.builds(
            lambda key, start: {"key": key, "window_start": start, "window_end": start + 1000},
            TEXTS,
            st.sampled_from([0, 3_600_000, 1_000_000_000_000]),
        ),
    ),
}
TIMES = st.sampled_from([0, 1, 5_000, 90_000_000])
HEADER_LISTS = st.none() | st.lists(
    st.fixed_dictionaries({"key": st.just("h"), "value": st.sampled_from([b"", b"1"])}), max_size=2
)


def rows_of(keys, most: int = 8):
    return st.lists(st.tuples(keys, st.none() | VALUES, TIMES, st.none() | HEADER_LISTS), max_size=most)


@st.composite
def mutated(draw, rows: list[Row]) -> list[Row]:
    """Rows of which some are left out, some come twice, and some are changed."""
    made = []
    for row in rows:
        action = draw(st.sampled_from(["keep"] * 4 + ["drop", "twice", "change", "delete"]))
        if action == "change":
            changed = (row[0], draw(st.none() | VALUES), *row[2:])
        else:
            changed = (row[0], None, *row[2:]) if action == "delete" else row
        made += [changed] * {"drop": 0, "twice": 2}.get(action, 1)
    return made


def within(rows: list[Row], since_ms: int | None, until_ms: int | None) -> list[Row]:
    """Those of a time: of a window its start counts, else the timestamp."""
    times = [row[0]["window_start"] if isinstance(row[0], dict) else row[2] for row in rows]
    return [
        row
        for row, time in zip(rows, times, strict=True)
        if (since_ms is None or time >= since_ms) and (until_ms is None or time < until_ms)
    ]


def plain(value: Any) -> Any:
    """A value such that == says whether two are equal: floats as bits, all NaN alike."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else struct.pack(">d", value)
    if isinstance(value, dict):
        return tuple((name, plain(inner)) for name, inner in value.items())
    if isinstance(value, list | tuple):
        return tuple(plain(inner) for inner in value)
    return value


def leaves(value: Any, type_: pa.DataType = VALUE, path: str = "value") -> dict[str, Any]:
    """By path what is compared of a value."""
    if not pa.types.is_struct(type_):
        return {path: value}
    found = {path: value is not None}
    for field in type_:
        found |= leaves(None if value is None else value[field.name], field.type, f"{path}.{field.name}")
    return found


def content(row: Row) -> dict[str, Any]:
    return {**leaves(row[1]), "timestamp": row[2], "headers": row[3]}


def changed_fields(a: Row, b: Row, tolerance: float | None = None, ignored: frozenset[str] = frozenset()) -> set[str]:
    """The fields that differ."""
    one, other = content(a), content(b)
    found = set()
    for path in one:
        if path in ignored or any(path.startswith(f"{name}.") for name in ignored):
            continue
        x, y = one[path], other[path]
        near = False
        if tolerance is not None and path in {"value.total", "value.n", "value.inner.x", "value.price"}:
            near = None not in (x, y) and abs(float(y) - float(x)) <= tolerance
        if plain(x) != plain(y) and not near:
            found.add(path)
    return found


@dataclass
class Brute:
    """What a comparison should find; ``fields``: None where pairs are not told apart by their identity."""

    equal: int
    only_a: list[Any]
    only_b: list[Any]
    changed: list[Any]
    fields: Counter[str] | None


def brute_latest(shared: list[Row], a: list[Row], b: list[Row], **rules: Any) -> Brute:
    newest = []
    for own in (a, b):
        rows = {plain(row[0]): row for row in [*shared, *own]}
        newest.append({key: row for key, row in rows.items() if row[1] is not None})
    keys = {plain(row[0]) for row in [*a, *b]}
    found = Brute(0, [], [], [], Counter())
    for key in keys:
        one, other = (rows.get(key) for rows in newest)
        if one is not None and other is not None:
            fields = changed_fields(one, other, **rules)
            if fields:
                found.changed.append(key)
                found.fields.update(fields)
            else:
                found.equal += 1
        elif one is not None:
            found.only_a.append(key)
        elif other is not None:
            found.only_b.append(key)
    return found


def brute_set(a: list[Row], b: list[Row]) -> Brute:
    counts = [Counter(plain(row) for row in rows) for rows in (a, b)]
    left = [counts[0] - counts[1], counts[1] - counts[0]]
    by_identity: dict[Any, list[list[Row]]] = {}
    for n, rows in enumerate((a, b)):
        remaining = left[n].copy()
        for row in rows:
            if remaining[plain(row)]:
                remaining[plain(row)] -= 1
                by_identity.setdefault((plain(row[0]), row[2]), [[], []])[n].append(row)
    found = Brute(len(a) - left[0].total(), [], [], [], Counter())
    for (key, _), (one, other) in by_identity.items():
        pairs = min(len(one), len(other))
        found.changed += [key] * pairs
        found.only_a += [key] * (len(one) - pairs)
        found.only_b += [key] * (len(other) - pairs)
        if pairs and max(len(one), len(other)) > 1:
            found.fields = None
        elif pairs and found.fields is not None:
            found.fields.update(changed_fields(one[0], other[0]))
    return found


def brute_order(a: list[Row], b: list[Row]) -> Brute:
    found = Brute(0, [], [], [], Counter())
    for one, other in zip(a, b, strict=False):
        fields = changed_fields(one, other) | ({"key"} if plain(one[0]) != plain(other[0]) else set())
        if fields:
            found.changed.append(plain(one[0]))
            found.fields.update(fields)
        else:
            found.equal += 1
    found.only_a = [plain(row[0]) for row in a[len(b) :]]
    found.only_b = [plain(row[0]) for row in b[len(a) :]]
    return found
