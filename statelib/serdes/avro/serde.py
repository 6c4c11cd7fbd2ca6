"""Avro, plain and as a schema registry's serializers write it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import pyarrow as pa

from statelib.errors.kinds import ConfigurationError
from statelib.serdes.avro.decode import Decoder
from statelib.serdes.avro.leaves import texts
from statelib.serdes.avro.schema import Array, Map, NoDefault, Primitive, Record, declaration, describe, nullable, parse
from statelib.serdes.avro.types import arrow_type_of, default_of
from statelib.serdes.base import Lenient, StrictSerde, conformed
from statelib.serdes.schema_source import RegisteredSchema
from statelib.serdes.spans import lenient, no_reasons, put_together, values_of
from statelib.serdes.wire_format import (
    Identity,
    UnusableSchema,
    described,
    deserialize_by_id,
    head_of,
    registered,
    with_heads,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from statelib.serdes.avro.schema import Node
    from statelib.serdes.schema_source import SchemaSource
    from statelib.serdes.spans import Spans


@dataclass(frozen=True, slots=True)
class AvroSerde(StrictSerde):
    """Avro's binary encoding. The Arrow type follows from the schema (`statelib.serdes.avro.types`).

    With a registry: the wire format of Confluent's ``KafkaAvroSerializer``, in which each value names the schema it
    was written with. Values are read with that schema and resolved to ``schema`` by Avro's rules.

    Args:
        schema: The schema to read values as and to write them with: JSON, as in an ``.avsc`` file.
        writer_schema: The schema that plain values were written with, if it differs.
        registry: The schema registry; None: plain Avro.
        subject: The subject of ``schema`` in the registry, for writing, such as ``clicks-value``.
        schema_id: The schema's id, instead of ``subject``.
        register: Whether writing registers the schema if it is not registered yet.

    Raises:
        ConfigurationError: The schema cannot be an Arrow column, or the arguments do not fit together.
    """

    schema: str
    writer_schema: str | None = None
    registry: SchemaSource | None = None
    subject: str | None = None
    schema_id: int | None = None
    register: bool = False

    def __post_init__(self) -> None:
        node = _parsed(self.schema)
        arrow_type_of(node)
        _check_defaults(node)
        _identity(self)
        if self.writer_schema is not None:
            if self.registry is not None:
                what = "a serde with a registry gets the writers' schemas from there"
                raise ConfigurationError(what, next_step="leave writer_schema out")
            Decoder(_parsed(self.writer_schema), node)

    @property
    def arrow_type(self) -> pa.DataType:
        """See `Serde`."""
        return arrow_type_of(_parsed(self.schema))

    def serialize(self, values: pa.Array) -> pa.BinaryArray:
        """See `Serde`.

        Raises:
            InputError: A value that the schema does not allow.
            ConfigurationError: It is to be written with an id, and the schema is not under the subject.
            RetryableError: The registry does not answer.
        """
        from statelib.serdes.avro.encode import encode  # noqa: PLC0415 - only who writes needs fastavro

        node = _parsed(self.schema)
        values = conformed(values, arrow_type_of(node), "the Avro schema")
        if self.registry is not None and _is_raw(node):
            encoded = values.cast(pa.binary())
        else:
            encoded = pa.array(encode(_parsed(self.writer_schema or self.schema), values), pa.binary())
        if self.registry is None:
            return encoded
        return with_heads(head_of(_id_to_write(self)), encoded)

    def deserialize_lenient(self, data: pa.BinaryArray) -> Lenient:
        """See `Serde`.

        Raises:
            RetryableError: The registry does not answer.
            ConfigurationError: It does not let us in.
        """
        if self.registry is not None:
            return deserialize_by_id(data, self.arrow_type, lambda schema_id: _by_id(self, schema_id))
        spans, rows = values_of(data)
        part = _decoder(self.schema, self.writer_schema or self.schema).decode(spans)
        return put_together(len(data), self.arrow_type, [(rows, part)], no_reasons(len(data)))

    def describe(self) -> Mapping[str, object]:
        """See `Serde`."""
        return {
            "serde": "avro",
            "type": str(self.arrow_type),
            "schema": _compact(self.schema),
            **({"writer_schema": _compact(self.writer_schema)} if self.writer_schema else {}),
            **described(_identity(self)),
        }


def _identity(serde: AvroSerde) -> Identity:
    return Identity(serde.registry, serde.subject, serde.schema_id, serde.register)


@lru_cache(maxsize=256)
def _id_to_write(serde: AvroSerde) -> int:
    identity = _identity(serde)
    given = identity.given("AVRO")
    if given is not None and declaration(parse(given.text, given.needed())) != declaration(_parsed(serde.schema)):
        what = f"the schema {serde.schema_id} of the registry is another than that of the serde"
        raise ConfigurationError(what, next_step="declare the serde with the registry's schema to write by it")
    return identity.id_of(RegisteredSchema("AVRO", serde.schema))


@lru_cache(maxsize=256)
def _parsed(schema: str) -> Node:
    return parse(schema)


@lru_cache(maxsize=256)
def _decoder(reader: str, writer: str, references: tuple[str, ...] = ()) -> Decoder:
    return Decoder(parse(writer, references), _parsed(reader))


@lru_cache(maxsize=1024)
def _by_id(serde: AvroSerde, schema_id: int) -> Callable[[Spans], Lenient]:
    """What decodes values of an id; remembered in the process, but for ids that the registry does not know."""
    assert serde.registry is not None  # noqa: S101 - told by the caller, for the type checker
    found = registered(serde.registry, schema_id, "AVRO")
    references = found.needed()
    try:
        writer = parse(found.text, references)
        if _is_raw(writer):
            reader = _parsed(serde.schema)
            return lambda spans: _raw(spans, reader)
        return _decoder(serde.schema, found.text, references).decode
    except ConfigurationError as error:
        raise UnusableSchema(error.what) from None


def _is_raw(node: Node) -> bool:
    """Of bytes alone Confluent's serializer writes no length, and its deserializer expects none."""
    return isinstance(node, Primitive) and node.kind == "bytes"


def _raw(spans: Spans, reader: Node) -> Lenient:
    wanted, _ = nullable(reader)
    reasons = no_reasons(len(spans.start))
    if wanted == Primitive("bytes"):
        return lenient(spans.binary(), reasons)
    if wanted == Primitive("string"):
        values, bad, reason = texts(spans, pa.string())
        reasons[bad] = reason
        return lenient(values, reasons)
    reasons[:] = f"written as bytes, which cannot be read as {describe(reader)}"
    return lenient(pa.nulls(len(reasons), arrow_type_of(reader)), reasons)


def _check_defaults(node: Node) -> None:
    one, _ = nullable(node)
    match one:
        case Record(_, fields):
            for field in fields:
                _check_defaults(field.type)
                if field.default is not NoDefault:
                    _check_default(default_of(field), arrow_type_of(field.type), field.names[0])
        case Array(inner) | Map(inner):
            _check_defaults(inner)


def _check_default(value: object, arrow_type: pa.DataType, name: str) -> None:
    try:
        pa.array([value], arrow_type)
    except (pa.ArrowException, TypeError, ValueError) as error:
        what = f"the default of a field of the Avro schema does not fit its type: {error}"
        raise ConfigurationError(what, field=name, next_step="fix the default") from None


def _compact(schema: str) -> str:
    try:
        return json.dumps(json.loads(schema), separators=(",", ":"))
    except ValueError:
        return schema  # the bare name of a type
