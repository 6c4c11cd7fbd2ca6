"""Where schemas are kept: what a serde needs of a schema registry."""

from __future__ import annotations

from typing import NamedTuple, Protocol


class RegisteredSchema(NamedTuple):
    """A schema as a registry has it.

    Attributes:
        kind: ``AVRO``, ``JSON`` or ``PROTOBUF``.
        text: The schema: JSON, or of Protobuf a ``.proto`` file or its ``FileDescriptorProto`` in base64.
        references: (name, schema) of what it uses itself; of Protobuf the files that it imports, by their paths.
    """

    kind: str
    text: str
    references: tuple[tuple[str, RegisteredSchema], ...] = ()

    def needed(self) -> tuple[str, ...]:
        """The texts of all that it uses, also by way of others, each after those that it uses itself."""
        found: dict[str, str] = {}

        def add(schema: RegisteredSchema) -> None:
            for name, used in schema.references:
                if name not in found:
                    add(used)
                    found[name] = used.text

        add(self)
        return tuple(found.values())


class SchemaSource(Protocol):
    """A schema registry; immutable, hashable and picklable, and what it has looked up it remembers in the process.

    `hindstream.kafka.registry.SchemaRegistry` asks one that speaks Confluent's API.
    """

    def __hash__(self) -> int:
        """What is looked up is remembered by it."""

    def schema(self, schema_id: int) -> RegisteredSchema | None:
        """The schema with an id; None: the registry has none.

        Raises:
            RetryableError: The registry does not answer.
            ConfigurationError: It does not let us in, or is none.
        """

    def id_of(self, subject: str, schema: RegisteredSchema, *, register: bool) -> int:
        """The id of a schema under a subject.

        Args:
            subject: Such as ``clicks-value``.
            schema: The schema.
            register: Whether it is registered if it is not yet.

        Raises:
            RetryableError: The registry does not answer.
            ConfigurationError: The schema is not there, or may not be registered.
        """
