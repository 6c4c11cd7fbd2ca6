"""Avro's bytes to Arrow: by the schema that they were written with, to the one that they are read with.

A batch is read twice. `statelib.serdes.avro.kernel` goes through the bytes by the writer's schema and leaves events;
then, for each place of the schema, all its events become a column of the reader's type at once. Avro's rules of schema
resolution are applied on the way (fields by name and alias, defaults, promotions, members of unions, symbols). Two
logical types that differ do not match: a number of milliseconds never becomes one of microseconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from statelib.columns.scatter import scatter
from statelib.serdes.avro import kernel
from statelib.serdes.avro.leaves import decimals, texts, uuids
from statelib.serdes.avro.program import compiled
from statelib.serdes.avro.schema import (
    Array,
    Enum,
    Field,
    Fixed,
    Map,
    NoDefault,
    Primitive,
    Record,
    Union,
    describe,
    nullable,
)
from statelib.serdes.avro.types import arrow_type_of, default_of
from statelib.serdes.spans import Spans, has_reason, lenient, list_offsets, no_reasons, put_together

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from statelib.serdes.avro.program import Place
    from statelib.serdes.avro.schema import Node
    from statelib.serdes.base import Lenient

_MOST_BYTES = 1 << 23
"""Values are decoded together up to here: each byte may be an event, which takes 16 bytes."""

_WRONG = {
    kernel.TRUNCATED: "truncated",
    kernel.TOO_LONG: "a number of more than 64 bits",
    kernel.INT_RANGE: "an int of more than 32 bits",
    kernel.NO_BOOLEAN: "a boolean that is neither 0 nor 1",
    kernel.NEGATIVE_LENGTH: "a negative length",
    kernel.NO_MEMBER: "a union's member that the schema does not have",
    kernel.NO_SYMBOL: "an enum's symbol that the schema does not have",
    kernel.TRAILING: "bytes after the value",
    kernel.BLOCK: "a block of more items than there are bytes",
}
_PROMOTIONS = {
    ("int", "long"), ("int", "float"), ("int", "double"), ("long", "float"), ("long", "double"), ("float", "double"),
    ("string", "bytes"), ("bytes", "string"),
}  # fmt: skip


class Decoder:
    """Decodes what is written by one schema.

    Args:
        writer: The schema of the bytes.
        reader: The schema of the values.

    Raises:
        ConfigurationError: The writer's schema has arrays of items that take no bytes, so that nothing bounds their
            number; or the reader's cannot be a column.
    """

    def __init__(self, writer: Node, reader: Node) -> None:
        self._program = compiled(writer)
        self._reader = reader
        self.arrow_type = arrow_type_of(reader)

    def decode(self, spans: Spans) -> Lenient:
        """The values, and why some are none."""
        count, size = len(spans.start), int(spans.length.sum())
        if size > _MOST_BYTES and count > 1:
            halves = np.array_split(np.arange(count), 2)
            parts = [(rows, self.decode(spans.take(rows))) for rows in halves]
            return put_together(count, self.arrow_type, parts, no_reasons(count))
        return self._decode(spans, count, size)

    def _decode(self, spans: Spans, count: int, size: int) -> Lenient:
        program = self._program
        room = size + 1  # each event takes a byte at least, and the last one may come before its byte is missed
        place, value = np.empty(room, np.int64), np.empty(room, np.int64)
        wrong, wrong_at = np.empty(count, np.int64), np.empty(count, np.int64)
        stack = np.empty(kernel.FRAME_WORDS * program.depth + 1, np.int64)
        events = kernel.read_events(program.code, *spans, stack, place, value, wrong, wrong_at)
        reasons = no_reasons(count)
        bad = wrong != kernel.GOOD
        if bad.any():
            reasons[bad] = [f"{_WRONG[what]} at byte {at}" for what, at in zip(wrong[bad], wrong_at[bad], strict=True)]
        columns = _Columns(spans.content, _by_place(place[:events], value[:events], program.places), reasons)
        values = columns.build(program.root, self._reader, np.flatnonzero(~bad))
        return lenient(scatter(values, ~bad), reasons)


def _by_place(place: NDArray[np.int64], value: NDArray[np.int64], places: int) -> list[NDArray[np.int64]]:
    """Each place's events, in order."""
    kind = np.uint8 if places <= 1 << 8 else np.uint16 if places <= 1 << 16 else np.int64
    order = np.argsort(place.astype(kind), kind="stable")
    ends = np.cumsum(np.bincount(place, minlength=places))
    return np.split(value[order], ends[:-1])


class _Columns:
    """Makes columns of events; ``rows`` is always int64[n]: in which of the values each is."""

    def __init__(
        self, content: NDArray[np.uint8], events: list[NDArray[np.int64]], reasons: NDArray[np.object_]
    ) -> None:
        self._content = content
        self._events = events
        self._reasons = reasons

    def build(self, place: Place, reader: Node, rows: NDArray[np.int64]) -> pa.Array:  # noqa: PLR0911 - one for each kind
        """All values at a place, as the reader's type."""
        if isinstance(place.node, Union):
            return self._union(place, reader, rows)
        reader, has_null = nullable(reader)
        if place.node == Primitive("null") and (has_null or reader == Primitive("null")):
            return pa.nulls(len(rows), arrow_type_of(reader))
        match place.node, reader:
            case Record(), Record() if _same_name(place.node, reader):
                return self._record(place, reader, rows)
            case Array(), Array():
                counts = self._events[place.number]
                items = self.build(place.children[0], reader.items, np.repeat(rows, counts))
                return pa.ListArray.from_arrays(list_offsets(counts), items, type=arrow_type_of(reader))
            case Map(), Map():
                counts = self._events[place.number]
                within = np.repeat(rows, counts)
                keys = self.build(place.children[0], Primitive("string"), within)
                if keys.null_count:  # the whole value is undecodable; a map's keys cannot be null until it is left out
                    keys = keys.fill_null("")
                values = self.build(place.children[1], reader.values, within)
                return pa.MapArray.from_arrays(list_offsets(counts), keys, values, type=arrow_type_of(reader))
            case Enum(), Enum() if _same_name(place.node, reader):
                return self._enum(place.node, reader, self._events[place.number], rows)
            case Fixed(), Fixed() if _same_name(place.node, reader) and place.node.size == reader.size:
                return self._leaf(place, reader, rows)
            case Primitive(), Primitive() if (
                place.node.kind == reader.kind or (place.node.kind, reader.kind) in _PROMOTIONS
            ):
                return self._leaf(place, reader, rows)
        return self._mismatch(place.node, reader, rows)

    def _union(self, place: Place, reader: Node, rows: NDArray[np.int64]) -> pa.Array:
        chosen = self._events[place.number]
        counts = np.bincount(chosen, minlength=len(place.children))
        source = np.full(len(rows), -1)
        parts, at = [], 0
        for index, child in enumerate(place.children):
            if counts[index]:
                here = np.flatnonzero(chosen == index)
                part = self.build(child, reader, rows[here])
                if counts[index] == len(rows):
                    return part
                if child.node != Primitive("null"):
                    parts.append(part)
                    source[here] = np.arange(at, at + len(part))
                    at += len(part)
        values = pa.concat_arrays([*parts, pa.nulls(0, arrow_type_of(reader))])
        return values.take(pa.array(source, mask=source < 0))

    def _record(self, place: Place, reader: Record, rows: NDArray[np.int64]) -> pa.Array:
        assert isinstance(place.node, Record)  # noqa: S101 - told by the caller, for the type checker
        written = {field.names[0]: child for field, child in zip(place.node.fields, place.children, strict=True)}
        columns = []
        for field in reader.fields:
            child = next((written[name] for name in field.names if name in written), None)
            columns.append(self._missing(field, rows) if child is None else self.build(child, field.type, rows))
        return pa.Array.from_buffers(arrow_type_of(reader), len(rows), [None], children=columns)

    def _missing(self, field: Field, rows: NDArray[np.int64]) -> pa.Array:
        if field.default is NoDefault:
            reason = f"the writer has no field {field.names[0]}, and the reader no default for it"
            return self._bad(arrow_type_of(field.type), rows, reason)
        one = pa.array([default_of(field)], arrow_type_of(field.type))
        return one.take(pa.array(np.zeros(len(rows), np.int64)))

    def _enum(self, writer: Enum, reader: Enum, chosen: NDArray[np.int64], rows: NDArray[np.int64]) -> pa.Array:
        symbols = [symbol if symbol in reader.symbols else reader.default for symbol in writer.symbols]
        for index, symbol in enumerate(symbols):
            if symbol is None:
                reason = f"the reader's enum {reader.names[0]} has neither {writer.symbols[index]} nor a default"
                self._note(rows[chosen == index], reason)
        return pa.array(symbols, pa.string()).take(pa.array(chosen))

    def _leaf(self, place: Place, reader: Primitive | Fixed, rows: NDArray[np.int64]) -> pa.Array:
        """A value that is one event, as the reader's type."""
        writer = place.node
        assert isinstance(writer, Primitive | Fixed)  # noqa: S101 - told by the caller, for the type checker
        if not _logical_types_match(writer, reader):
            return self._mismatch(writer, reader, rows)
        events, arrow_type = self._events[place.number], arrow_type_of(reader)
        if isinstance(writer, Fixed):
            size = np.full(len(rows), writer.size)
            return self._from_bytes(Spans(self._content, events if writer.size else size, size), reader, rows)
        if writer.kind in {"bytes", "string"}:
            return self._from_bytes(Spans(self._content, events >> 32, events & 0xFFFFFFFF), reader, rows)
        if writer.kind in {"float", "double"}:
            width = 4 if writer.kind == "float" else 8
            numbers = self._content[events[:, None] + np.arange(width)].view(f"<f{width}").reshape(-1)
        elif writer.kind == "boolean":
            return pa.array(events != 0, pa.bool_())
        else:
            numbers = events
        if reader.logical is None or pa.types.is_integer(arrow_type):
            return pa.array(numbers.astype(arrow_type.to_pandas_dtype()), arrow_type)
        stored = numbers.astype(f"i{arrow_type.bit_width // 8}")
        return pa.Array.from_buffers(arrow_type, len(stored), [None, pa.py_buffer(stored)])

    def _from_bytes(self, spans: Spans, reader: Primitive | Fixed, rows: NDArray[np.int64]) -> pa.Array:
        made: Callable[..., tuple[pa.Array, Any, str]] | None = None
        if reader.logical is not None and reader.logical.name == "decimal":
            made = decimals
        elif isinstance(reader, Primitive) and reader.kind == "string":
            made = texts
        elif reader.logical is not None:
            return uuids(spans)
        if made is None:
            return spans.binary()
        values, bad, reason = made(spans, arrow_type_of(reader))
        self._note(rows[bad], reason)
        return values

    def _mismatch(self, writer: Node, reader: Node, rows: NDArray[np.int64]) -> pa.Array:
        reason = f"written as {describe(writer)}, which cannot be read as {describe(reader)}"
        return self._bad(arrow_type_of(reader), rows, reason)

    def _bad(self, arrow_type: pa.DataType, rows: NDArray[np.int64], reason: str) -> pa.Array:
        self._note(rows, reason)
        return pa.nulls(len(rows), arrow_type)

    def _note(self, rows: NDArray[np.int64], reason: str) -> None:
        new = rows[~has_reason(self._reasons[rows])]
        self._reasons[new] = reason


def _same_name(writer: Record | Enum | Fixed, reader: Record | Enum | Fixed) -> bool:
    """Avro compares names without their namespaces; an alias of the reader's is as good."""
    name = writer.names[0]
    return name in reader.names or name.rpartition(".")[2] in {each.rpartition(".")[2] for each in reader.names}


def _logical_types_match(writer: Primitive | Fixed, reader: Primitive | Fixed) -> bool:
    a, b = writer.logical, reader.logical
    if a is None or b is None:
        return True
    return a.name == b.name and a.scale == b.scale and a.precision <= b.precision
