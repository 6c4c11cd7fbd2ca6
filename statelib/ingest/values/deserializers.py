"""How keys and values that are bytes in the files become what they say: by a serde, or by a registry's schemas.

==================  =============================================================================================
name                bytes of
==================  =============================================================================================
``registry``        a schema registry's serializers, each read by the schema whose id it begins with
``json``            JSON in UTF-8
``string``          text in UTF-8
``int64``, ...      Kafka's serializer for a type, as `statelib.ingest.values.types.type_named` calls it
``FILE.py:NAME``    whatever the serde of this name reads
==================  =============================================================================================
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa

from statelib.errors.kinds import ConfigurationError
from statelib.ingest.values.types import stored, type_named
from statelib.job.user_code import load_attribute
from statelib.serdes import StringSerde, serde_for
from statelib.serdes.avro.decode import Decoder
from statelib.serdes.avro.framing import AvroFraming, framing_of
from statelib.serdes.avro.schema import parse
from statelib.serdes.avro.serde import AvroSerde
from statelib.serdes.base import Lenient
from statelib.serdes.spans import no_reasons, put_together, values_of
from statelib.serdes.wire_format import UnusableSchema, payloads
from statelib.topics.parquet.schema_changes import united

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from statelib.serdes import Serde
    from statelib.serdes.schema_source import RegisteredSchema, SchemaSource

REGISTRY, JSON = "registry", "json"


class Deserializer(Protocol):
    """What a `Serde` has to have to read; the type of the values may be another one in each call."""

    def deserialize_lenient(self, data: pa.BinaryArray) -> Lenient:
        """See `Serde`."""


def deserializer(asked: Serde | str, registry: SchemaSource | None) -> Deserializer:
    """What an option or a declaration asks for.

    Raises:
        ConfigurationError: There is none of this name, or it needs a registry and there is none.
    """
    if not isinstance(asked, str):
        return asked
    if asked == REGISTRY:
        if registry is None:
            step = "name it: --registry https://registry.example.com"
            raise ConfigurationError("it is not said which schema registry has the schemas", next_step=step)
        return RegisteredSchemas(registry)
    if asked == JSON:
        return JsonText()
    if ":" in asked:
        found = load_attribute(asked, "serde")
        if not hasattr(found, "deserialize_lenient"):
            step = "name a hindstream serde, as FILE.py:NAME or PACKAGE.MODULE:NAME"
            raise ConfigurationError("this is no serde", serde=asked, next_step=step)
        return found  # type: ignore[no-any-return]
    try:
        return serde_for(type_named(asked))
    except ConfigurationError as error:
        step = f"name one of {REGISTRY}, {JSON}, string, int64, ..., or FILE.py:NAME"
        raise ConfigurationError("there is no such serde", serde=asked, next_step=step) from error


def framing(of: Deserializer | None) -> AvroFraming | None:
    """How values tell where they end; None: they do not."""
    if isinstance(of, RegisteredSchemas):
        return AvroFraming(of.registry)
    return framing_of(of) if isinstance(of, AvroSerde) else None


@dataclass(frozen=True, slots=True)
class JsonText:
    """JSON, as text: its fields are found where it is taken apart."""

    def deserialize_lenient(self, data: pa.BinaryArray) -> Lenient:
        """See `Deserializer`."""
        return StringSerde().deserialize_lenient(data)


@dataclass(frozen=True, slots=True)
class RegisteredSchemas:
    """Values of a registry's wire format, each read as the schema that it was written with has it.

    Values of several schemas become one type by the rule for files (`statelib.topics.parquet.schema_changes`). Values
    with a JSON Schema are JSON, which is given as text.

    Attributes:
        registry: Has the schemas.
    """

    registry: SchemaSource

    def deserialize_lenient(self, data: pa.BinaryArray) -> Lenient:
        """See `Deserializer`.

        Raises:
            RetryableError: The registry does not answer.
            ConfigurationError: It does not let us in; or values of two schemas have no type in common.
        """
        rows, spans, ids, reasons = payloads(data)
        parts: list[tuple[NDArray[np.int64], Lenient]] = []
        type_: pa.DataType = pa.null()
        for schema_id in np.unique(ids).tolist():
            here = np.flatnonzero(ids == schema_id)
            try:
                part = _serde(self.registry, schema_id).deserialize_lenient(spans.take(here).binary())
            except UnusableSchema as problem:
                reasons[rows[here]] = f"schema {schema_id}: {problem}"
                continue
            type_ = united(type_, part.values.type)
            parts.append((rows[here], part))
        alike = [(here, Lenient(stored(values, type_), bad, why)) for here, (values, bad, why) in parts]
        return put_together(len(data), type_, alike, reasons)


@lru_cache(maxsize=1024)
def _serde(registry: SchemaSource, schema_id: int) -> Deserializer:
    """Reads what follows an id; remembered in the process, but for ids that the registry does not know."""
    found = registry.schema(schema_id)
    if found is None:
        raise UnusableSchema("the registry has none with this id")
    if found.kind == "JSON":
        return JsonText()
    if found.kind != "AVRO":
        raise UnusableSchema(f"it is {found.kind}: declare a LakeTopic with a serde for it (value_serde, key_serde)")
    try:
        return _avro(found)
    except ConfigurationError as error:
        raise UnusableSchema(error.what) from None


def _avro(schema: RegisteredSchema) -> Deserializer:
    node = parse(schema.text, schema.needed())
    if node == parse('"bytes"'):
        return serde_for(pa.binary())  # Confluent's serializer writes no length before these
    return _Avro(Decoder(node, node))


@dataclass(frozen=True, slots=True)
class _Avro:
    """Values of one schema, as they were written."""

    decoder: Decoder

    def deserialize_lenient(self, data: pa.BinaryArray) -> Lenient:
        """See `Deserializer`."""
        spans, rows = values_of(data)
        return put_together(
            len(data), self.decoder.arrow_type, [(rows, self.decoder.decode(spans))], no_reasons(len(data))
        )
