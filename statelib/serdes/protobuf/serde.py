"""Protobuf, plain and as a schema registry's serializers write it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from statelib.errors.kinds import ConfigurationError
from statelib.serdes.base import StrictSerde
from statelib.serdes.protobuf.codec import Codec
from statelib.serdes.protobuf.message_path import by_path, messages_at, path_to, written
from statelib.serdes.spans import Spans, no_reasons, put_together, values_of
from statelib.serdes.wire_format import (
    Identity,
    described,
    deserialize_by_id,
    head_of,
    registered,
    with_heads,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pyarrow as pa

    from statelib.serdes.base import Lenient
    from statelib.serdes.schema_source import SchemaSource


@dataclass(frozen=True, slots=True)
class ProtobufSerde(StrictSerde):
    """A Protobuf message. The Arrow type follows from its descriptor (`statelib.serdes.protobuf.kinds`).

    With a registry: the wire format of Confluent's ``KafkaProtobufSerializer``, in which each value names its schema
    and message. A value of another message than ``message`` is undecodable. As always in Protobuf, fields are read by
    number; fields that ``message`` does not have are ignored.

    Args:
        descriptors: A ``FileDescriptorSet``, or a file with one, which is read immediately:
            ``protoc --include_imports --descriptor_set_out=clicks.desc clicks.proto``.
        message: The message's full name, such as ``shop.Click``.
        registry: The schema registry; None: plain Protobuf.
        subject: The subject of the message's file in the registry, for writing, such as ``clicks-value``.
        schema_id: The schema's id, instead of ``subject``.
        register: Whether writing registers the schema if it is not registered yet.

    Raises:
        ConfigurationError: The descriptors cannot be read, or lack the message or an import; or the message contains
            itself.
    """

    descriptors: bytes | Path = field(repr=False)
    message: str
    registry: SchemaSource | None = None
    subject: str | None = None
    schema_id: int | None = None
    register: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.descriptors, Path):
            object.__setattr__(self, "descriptors", _read(self.descriptors))
        _identity(self)
        _codec(self)

    @property
    def arrow_type(self) -> pa.DataType:
        """See `Serde`."""
        return _codec(self).kind.arrow_type

    def serialize(self, values: pa.Array) -> pa.BinaryArray:
        """See `Serde`.

        Raises:
            InputError: A value that the message cannot hold.
            ConfigurationError: It is to be written with an id, and the schema is not under the subject.
            RetryableError: The registry does not answer.
        """
        codec = _codec(self)
        encoded = codec.encode(values)
        if self.registry is None:
            return encoded
        schema_id, path = _head_to_write(self)
        return with_heads(head_of(schema_id) + path, encoded)

    def deserialize_lenient(self, data: pa.BinaryArray) -> Lenient:
        """See `Serde`.

        Raises:
            RetryableError: The registry does not answer.
            ConfigurationError: It does not let us in.
        """
        codec = _codec(self)
        if self.registry is not None:
            return deserialize_by_id(data, self.arrow_type, lambda schema_id: _by_id(self, schema_id))
        spans, rows = values_of(data)
        return put_together(len(data), self.arrow_type, [(rows, codec.decode(spans))], no_reasons(len(data)))

    def describe(self) -> Mapping[str, object]:
        """See `Serde`; the descriptors without files that the message does not need."""
        return {
            "serde": "protobuf",
            "type": str(self.arrow_type),
            "message": self.message,
            "descriptors": _codec(self).described,
            **described(_identity(self)),
        }


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        what = f"the Protobuf descriptors cannot be read: {error.strerror}"
        raise ConfigurationError(what, file=path, next_step="check the path") from None


def _identity(serde: ProtobufSerde) -> Identity:
    return Identity(serde.registry, serde.subject, serde.schema_id, serde.register)


@lru_cache(maxsize=256)
def _head_to_write(serde: ProtobufSerde) -> tuple[int, bytes]:
    """The schema's id, and the path to the message in it."""
    identity, schema = _identity(serde), _codec(serde).schema
    path = path_to(serde.message, (identity.given("PROTOBUF") or schema).text)
    if path is None:
        what = f"the schema {serde.schema_id} of the registry has no message {serde.message}"
        raise ConfigurationError(what, next_step="give the serde another id, or a subject")
    return identity.id_of(schema), written(path)


@lru_cache(maxsize=256)
def _codec_of(descriptors: bytes, message: str) -> Codec:
    return Codec(descriptors, message)


def _codec(serde: ProtobufSerde) -> Codec:
    assert isinstance(serde.descriptors, bytes)  # noqa: S101 - read when it was declared
    return _codec_of(serde.descriptors, serde.message)


@lru_cache(maxsize=1024)
def _by_id(serde: ProtobufSerde, schema_id: int) -> Callable[[Spans], Lenient]:
    """What decodes values of an id; remembered in the process, but for ids that the registry does not know."""
    assert serde.registry is not None  # noqa: S101 - told by the caller, for the type checker
    text = registered(serde.registry, schema_id, "PROTOBUF").text
    return lambda spans: _decode(spans, serde, text)


def _decode(spans: Spans, serde: ProtobufSerde, text: str) -> Lenient:
    """Values of one schema: each says which of its messages it is."""
    reasons, parts = no_reasons(len(spans.start)), []
    for path, (rows, begin) in by_path(spans, reasons).items():
        names = messages_at(path, text)
        if serde.message in names:
            content, start, length = spans.take(rows)
            parts.append((rows, _codec(serde).decode(Spans(content, start + begin, length - begin))))
        elif names:
            reasons[rows] = f"a {names[0]}, not a {serde.message}"
        else:
            reasons[rows] = f"the schema has no message {list(path)}"
    return put_together(len(reasons), serde.arrow_type, parts, reasons)
