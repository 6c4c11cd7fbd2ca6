"""A registry in memory, for serdes; the real one is in tests/kafka."""

from __future__ import annotations

from dataclasses import dataclass

from statelib.errors.kinds import ConfigurationError, RetryableError
from statelib.serdes.schema_source import RegisteredSchema


@dataclass(frozen=True)
class Schemas:
    """Schemas by id; ``subjects`` is of pairs (subject, id)."""

    by_id: tuple[tuple[int, RegisteredSchema], ...] = ()
    subjects: tuple[tuple[str, int], ...] = ()
    is_down: bool = False

    def schema(self, schema_id: int) -> RegisteredSchema | None:
        if self.is_down:
            raise RetryableError("the registry does not answer")
        return dict(self.by_id).get(schema_id)

    def id_of(self, subject: str, schema: RegisteredSchema, *, register: bool) -> int:
        if self.is_down:
            raise RetryableError("the registry does not answer")
        for name, schema_id in self.subjects:
            if name == subject and dict(self.by_id)[schema_id] == schema:
                return schema_id
        if register:
            return 1_000 + len(self.by_id)
        raise ConfigurationError(f"the schema is not registered under {subject}")


def avro(schema_id: int, text: str, *references: tuple[str, RegisteredSchema]) -> tuple[int, RegisteredSchema]:
    return schema_id, RegisteredSchema("AVRO", text, references)
