"""JSON, read a whole Arrow array at a time: plain, and as a schema registry's serializers write it."""

from __future__ import annotations

import base64
import datetime as dt
import decimal
import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.json as pa_json

from statelib.columns.arrow_buffers import valid_of
from statelib.columns.scatter import scatter
from statelib.columns.time_columns import python_values
from statelib.errors.kinds import ConfigurationError
from statelib.serdes.base import Lenient, StrictSerde
from statelib.serdes.json_types import has_map, readable, restored, with_objects, with_pairs
from statelib.serdes.schema_source import RegisteredSchema
from statelib.serdes.spans import has_reason, no_reasons, put_together
from statelib.serdes.wire_format import Identity, described, head_of, payloads, with_heads

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from statelib.serdes.schema_source import SchemaSource


@dataclass(frozen=True, slots=True)
class JsonSerde(StrictSerde):
    """JSON in UTF-8, one value per record: an object for a struct, else a number, string or array.

    Reading: a missing field is null, an unknown field is ignored, and a field of another type makes the value
    undecodable. Times and dates are ISO 8601 strings, bytes are base64, maps are objects with any names. Fields are
    written in the order of the type's fields. Writing goes row by row; so does reading if there are maps.

    With a registry: the wire format of Confluent's ``KafkaJsonSchemaSerializer``. Reading ignores the schema's id,
    because the JSON is read as ``arrow_type`` in any case.

    Args:
        arrow_type: The type of the values. If it is not a struct, the JSON value ``null`` is null.
        registry: The schema registry; None: plain JSON.
        subject: The subject of ``json_schema`` in the registry, for writing, such as ``clicks-value``.
        schema_id: The id to write, instead of ``subject``.
        json_schema: The JSON Schema, for writing with a subject.
        register: Whether writing registers the schema if it is not registered yet.

    Raises:
        ConfigurationError: JSON has no values of this type, or the arguments do not fit together.
    """

    arrow_type: pa.DataType
    registry: SchemaSource | None = None
    subject: str | None = None
    schema_id: int | None = None
    json_schema: str | None = None
    register: bool = False

    def __post_init__(self) -> None:
        if pa.types.is_union(self.arrow_type) or pa.types.is_null(self.arrow_type):
            raise ConfigurationError(
                f"JSON is not read as {self.arrow_type}", next_step="declare a struct, a list or a plain type"
            )
        if (self.subject is None) != (self.json_schema is None):
            raise ConfigurationError(
                "to write JSON with a schema's id, the serde needs both the schema and its subject",
                next_step="give it subject and json_schema, or the schema_id",
            )
        self._identity()

    def serialize(self, values: pa.Array) -> pa.BinaryArray:
        """See `Serde`.

        Raises:
            ConfigurationError: It is to be written with an id, and the schema is not under the subject.
            RetryableError: The registry does not answer.
        """
        data = python_values(values)
        if has_map(values.type):
            data = [with_objects(value, values.type) for value in data]
        documents = _documents(data, _json_scalar).cast(pa.binary())
        if self.registry is None:
            return documents
        schema_id = self._identity().id_of(RegisteredSchema("JSON", self.json_schema or ""))
        return with_heads(head_of(schema_id), documents)

    def deserialize_lenient(self, data: pa.Array) -> Lenient:
        """See `Serde`; ``data`` may also be strings."""
        if self.registry is not None:
            rows, spans, _, reasons = payloads(data)
            return put_together(len(data), self.arrow_type, [(rows, self._read(spans.binary()))], reasons)
        return self._read(data)

    def describe(self) -> Mapping[str, object]:
        """See `Serde`."""
        return {"serde": "json", "type": str(self.arrow_type), **described(self._identity())}

    def _identity(self) -> Identity:
        return Identity(self.registry, self.subject, self.schema_id, self.register)

    def _read(self, data: pa.Array) -> Lenient:
        reasons, is_there = no_reasons(len(data)), valid_of(data)
        parts, reasons[is_there] = self._parse(data.cast(pa.binary()).drop_null().to_pylist())
        bad = has_reason(reasons)
        values = scatter(pa.concat_arrays([*parts, pa.nulls(0, self.arrow_type)]), is_there & ~bad)
        return Lenient(values, bad, pa.array(reasons, pa.string()))

    def _parse(self, documents: list[bytes]) -> tuple[list[pa.Array], list[str | None]]:
        """The decoded documents in order, and for each document what is wrong with it: halves until it is found."""
        if not documents:
            return [], []
        try:
            return [self._parse_all(documents)], [None] * len(documents)
        except (pa.ArrowException, RecursionError, ValueError) as error:
            if len(documents) == 1:
                return [], [str(error)]
        middle = len(documents) // 2
        left, left_problems = self._parse(documents[:middle])
        right, right_problems = self._parse(documents[middle:])
        return left + right, left_problems + right_problems

    def _parse_all(self, documents: list[bytes]) -> pa.Array:
        if has_map(self.arrow_type):
            documents = [
                json.dumps(with_pairs(json.loads(document.decode()), self.arrow_type)).encode()
                for document in documents
            ]
        # One document a line: a line break inside one can only be white space between its tokens. Each begins an
        # object, so if there are as many rows as documents, each is exactly one row.
        lines = [document.replace(b"\n", b" ").replace(b"\r", b" ").strip() for document in documents]
        if not pa.types.is_struct(self.arrow_type):
            for document in documents:
                json.loads(document)  # a part of the object below might hold anything
            lines = [b'{"value":%s}' % line for line in lines]
            return _rows(lines, pa.struct([("value", self.arrow_type)])).field("value")
        if not all(line.startswith(b"{") for line in lines):
            raise ValueError("not a JSON object")
        return _rows(lines, self.arrow_type)


def _rows(lines: list[bytes], struct: pa.DataType) -> pa.StructArray:
    content, read = b"\n".join(lines), readable(struct)
    if not content.isascii():
        content.decode("utf-8")
    table = pa_json.read_json(
        pa.BufferReader(content),
        read_options=pa_json.ReadOptions(use_threads=False, block_size=max(1 << 20, 2 * max(map(len, lines)))),
        parse_options=pa_json.ParseOptions(explicit_schema=pa.schema(list(read)), unexpected_field_behavior="ignore"),
    )
    if table.num_rows != len(lines):
        raise ValueError("not exactly one JSON object")
    return restored(table.to_struct_array().combine_chunks().cast(read), struct)


def json_text(values: pa.Array) -> pa.StringArray:
    """Values of any Arrow type as JSON, for people to read: see `readable_json`; null stays null."""
    documents = [None if value is None else readable_json(value) for value in python_values(values)]
    return pa.array(documents, pa.string())


def readable_json(value: object, separators: tuple[str, str] = (",", ":")) -> str:
    """A value as JSON (RFC 8259), whatever is in it.

    As in the JSON mapping of Protobuf, bytes are base64, times ISO 8601, and the numbers that JSON does not have the
    strings ``NaN``, ``Infinity`` and ``-Infinity``. A decimal is a string, as a number may lose its digits on the way.
    Anything else is its text.
    """

    def dumps(value: object) -> str:
        return json.dumps(value, default=_readable, ensure_ascii=False, separators=separators, allow_nan=False)

    try:
        return dumps(value)
    except ValueError:
        return dumps(_with_named_numbers(value))


def _with_named_numbers(value: object) -> object:
    if isinstance(value, dict):
        return {name: _with_named_numbers(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_with_named_numbers(inner) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def _documents(values: list[object], scalar: Callable[[object], str]) -> pa.StringArray:
    documents = [
        None if value is None else json.dumps(value, default=scalar, ensure_ascii=False, separators=(",", ":"))
        for value in values
    ]
    return pa.array(documents, pa.string())


def _readable(value: object) -> str:
    try:
        return _json_scalar(value)
    except ConfigurationError:
        return str(value)


def _json_scalar(value: object) -> str:
    if isinstance(value, dt.datetime):
        return value.isoformat(timespec=_precision(value))
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, decimal.Decimal):
        return str(value)
    raise ConfigurationError(f"JSON cannot hold a {type(value).__name__}", next_step="map the field to another type")


def _precision(time: dt.datetime) -> str:
    """As many decimals as needed: a reader whose type has fewer would refuse even zeros."""
    if getattr(time, "nanosecond", 0):  # Arrow gives nanoseconds as pandas' subclass of datetime
        return "nanoseconds"
    if time.microsecond % 1000:
        return "microseconds"
    return "milliseconds" if time.microsecond else "seconds"
