r"""The bytes that a Schema Registry's serializers put before a value.

::

    +----------+---------------------------+----------------------------------+
    | 0x00, u8 | schema id i32, big-endian | the value: Avro, Protobuf, JSON  |
    +----------+---------------------------+----------------------------------+

A Protobuf value begins with the path to its message in the schema's file: the number of steps, and each step's index,
as zigzag varints; the first message of the file, ``[0]``, is the one byte 0.

Source: Confluent's "Formats, Serializers, and Deserializers", Wire Format.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from statelib.columns.arrow_buffers import binary_array, offsets_of, spans_of, valid_of
from statelib.columns.spans import copy_spans
from statelib.errors.kinds import ConfigurationError
from statelib.serdes.spans import Spans, no_reasons, put_together, values_of

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa
    from numpy.typing import NDArray

    from statelib.serdes.base import Lenient
    from statelib.serdes.schema_source import RegisteredSchema, SchemaSource

HEAD_BYTES = 5
_MAGIC = 0


class UnusableSchema(Exception):
    """A schema that values cannot be decoded by; the message says why."""


def payloads(data: pa.Array) -> tuple[NDArray[np.int64], Spans, NDArray[np.int64], NDArray[np.object_]]:
    """Takes the heads off.

    Returns:
        int64[m]: which values have one; what follows it; int64[m]: the ids; object[n]: why others have none.
    """
    spans, rows = values_of(data)
    reasons = no_reasons(len(data))
    short = spans.length < HEAD_BYTES
    first = np.zeros(len(rows), np.uint8)
    first[spans.length > 0] = spans.content[spans.start[spans.length > 0]]
    no_magic = (first != _MAGIC) & (spans.length > 0)
    reasons[rows[short]] = f"no schema id: less than {HEAD_BYTES} bytes"
    reasons[rows[no_magic]] = [f"the magic byte is {byte:#04x}, not 0x00" for byte in first[no_magic]]
    good = ~short & ~no_magic
    content, start, length = spans.take(good)
    ids = content[start[:, None] + np.arange(1, HEAD_BYTES)].view(">i4").reshape(-1).astype(np.int64)
    return rows[good], Spans(content, start + HEAD_BYTES, length - HEAD_BYTES), ids, reasons


def deserialize_by_id(
    data: pa.Array, arrow_type: pa.DataType, decoder: Callable[[int], Callable[[Spans], Lenient]]
) -> Lenient:
    """Decodes each value by the schema that its id stands for.

    Args:
        data: Binary.
        arrow_type: Of the values.
        decoder: Of an id; raises `UnusableSchema`.
    """
    rows, spans, ids, reasons = payloads(data)
    parts = []
    for schema_id in np.unique(ids).tolist():
        here = np.flatnonzero(ids == schema_id)
        try:
            decode = decoder(schema_id)
        except UnusableSchema as problem:
            reasons[rows[here]] = f"schema {schema_id}: {problem}"
            continue
        parts.append((rows[here], decode(spans.take(here))))
    return put_together(len(data), arrow_type, parts, reasons)


def registered(source: SchemaSource, schema_id: int, kind: str) -> RegisteredSchema:
    """A schema of the registry.

    Raises:
        UnusableSchema: There is none, or it is of another kind.
    """
    schema = source.schema(schema_id)
    if schema is None:
        raise UnusableSchema("the registry has none with this id")
    if schema.kind != kind:
        raise UnusableSchema(f"it is {schema.kind}, not {kind}")
    return schema


def with_heads(head: bytes, values: pa.BinaryArray) -> pa.BinaryArray:
    """``head`` before each value; null stays null."""
    content, start, length = spans_of(values)
    valid = valid_of(values)
    offsets = offsets_of((length + len(head)) * valid)
    data = np.empty(offsets[-1], np.uint8)
    at = offsets[:-1][valid]
    data[at[:, None] + np.arange(len(head))] = np.frombuffer(head, np.uint8)
    copy_spans(content, start[valid], length[valid], data, at + len(head))
    return binary_array(offsets, data, valid)


def head_of(schema_id: int) -> bytes:
    """Magic byte and id."""
    return bytes([_MAGIC]) + schema_id.to_bytes(4, "big", signed=True)


def id_in(head: bytes) -> int | None:
    """The id in the first bytes of a value; None: these are no magic byte and id."""
    return int.from_bytes(head[1:], "big", signed=True) if len(head) == HEAD_BYTES and head[0] == _MAGIC else None


@dataclass(frozen=True, slots=True)
class Identity:
    """By which id values are written.

    Args:
        registry: Where the schemas of values are; None: values begin with no id.
        subject: Under which the schema is.
        schema_id: The id, if it is given instead.
        register: Whether the schema is registered under the subject, if it is not yet.

    Raises:
        ConfigurationError: The arguments do not fit together.
    """

    registry: SchemaSource | None
    subject: str | None
    schema_id: int | None
    register: bool

    def __post_init__(self) -> None:
        if self.registry is None and (self.subject is not None or self.schema_id is not None):
            raise ConfigurationError("a serde with a subject or an id needs a registry", next_step="give it one")
        if self.subject is not None and self.schema_id is not None:
            raise ConfigurationError("a serde has either a subject or an id", next_step="leave one of them out")
        if self.register and self.subject is None:
            raise ConfigurationError("to register a schema the serde needs a subject", next_step="give it one")

    def id_of(self, schema: RegisteredSchema) -> int:
        """The id of the schema that values are written by; asked for once a process.

        Raises:
            ConfigurationError: Nothing says it, or the schema is not there.
            RetryableError: The registry does not answer.
        """
        if self.schema_id is not None:
            return self.schema_id
        if self.registry is None or self.subject is None:
            raise ConfigurationError(
                "to write values with a schema's id, the serde needs the subject that the schema is registered under",
                next_step='give it one: subject="clicks-value"',
            )
        return _looked_up(self.registry, self.subject, schema, self.register)

    def given(self, kind: str) -> RegisteredSchema | None:
        """The schema whose id is given; None: none is.

        Raises:
            ConfigurationError: There is none, or it is of another kind.
            RetryableError: The registry does not answer.
        """
        if self.schema_id is None or self.registry is None:
            return None
        try:
            return registered(self.registry, self.schema_id, kind)
        except UnusableSchema as problem:
            what = f"values cannot be written with the schema {self.schema_id}: {problem}"
            raise ConfigurationError(what, next_step="give the serde another id, or a subject") from None


@lru_cache(maxsize=1024)
def _looked_up(source: SchemaSource, subject: str, schema: RegisteredSchema, register: bool) -> int:  # noqa: FBT001 - a part of the key
    return source.id_of(subject, schema, register=register)


def described(identity: Identity) -> dict[str, Any]:
    """What a serde says of its registry: not where it is, which may change."""
    if identity.registry is None:
        return {}
    said = {"subject": identity.subject, "schema_id": identity.schema_id}
    return {"wire_format": "schema-registry"} | {name: value for name, value in said.items() if value is not None}
