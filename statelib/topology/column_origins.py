"""Columns as symbols: what a mapper makes of columns, told by which fields of which topics it looks at.

Nothing is guessed: what cannot be told (a Python function) is made of all that it may read, and marked as assumed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, Protocol

from statelib.operators.mappers.fields import fields_of_mapper
from statelib.operators.mappers.mapping import JOINED, KEY_VALUE, Expression, Path, PerRecord, Struct

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from statelib.operators.mappers.mapping import Mapper

Use = Literal["identity", "transformation", "aggregation", "filter", "group_by", "join"]
"""What becomes of a field. The last three decide which records there are, and are no part of their values."""

_STRENGTH: tuple[Use, ...] = ("identity", "transformation", "aggregation", "filter", "group_by", "join")


@dataclass(frozen=True, slots=True, order=True)
class Origin:
    """A field of a source that something is made of.

    Attributes:
        topic: The source.
        path: The column of its archive, and the names of fields inside it.
        use: What becomes of it.
        is_assumed: Whether nobody can tell: a Python function may read it.
    """

    topic: str
    path: tuple[str, ...]
    use: Use = "identity"
    is_assumed: bool = False


class Value(Protocol):
    """A column, as a symbol."""

    def field(self, name: str) -> Value:
        """A field of it."""

    def origins(self) -> frozenset[Origin]:
        """What it is made of."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a source, or a field in one, as it is."""

    topic: str
    path: tuple[str, ...]

    def field(self, name: str) -> Value:
        """See `Value`."""
        return Column(self.topic, (*self.path, name))

    def origins(self) -> frozenset[Origin]:
        """See `Value`."""
        return frozenset([Origin(self.topic, self.path)])


@dataclass(frozen=True, slots=True)
class Made:
    """A struct of others."""

    fields: Mapping[str, Value]

    def field(self, name: str) -> Value:
        """See `Value`."""
        return self.fields.get(name, NOTHING)

    def origins(self) -> frozenset[Origin]:
        """See `Value`."""
        return frozenset().union(*(value.origins() for value in self.fields.values()))


@dataclass(frozen=True, slots=True)
class Computed:
    """Something new; any field of it may be made of all that it is made of."""

    of: frozenset[Origin]

    def field(self, name: str) -> Value:
        """See `Value`."""
        del name
        return self

    def origins(self) -> frozenset[Origin]:
        """See `Value`."""
        return self.of


@dataclass(frozen=True, slots=True)
class Either:
    """One or the other."""

    values: tuple[Value, ...]

    def field(self, name: str) -> Value:
        """See `Value`."""
        return Either(tuple(value.field(name) for value in self.values))

    def origins(self) -> frozenset[Origin]:
        """See `Value`."""
        return frozenset().union(*(value.origins() for value in self.values))


NOTHING = Computed(frozenset())


def computed(use: Use, values: Iterable[Value], *, is_assumed: bool = False) -> Computed:
    """Something that is made of all ``values``."""
    return Computed(used(use, values, is_assumed=is_assumed))


def used(use: Use, values: Iterable[Value], *, is_assumed: bool = False) -> frozenset[Origin]:
    """The origins of all ``values``, after one more use of them; what is furthest from the field itself counts."""
    origins = frozenset[Origin]().union(*(value.origins() for value in values))
    return frozenset(
        replace(origin, use=max(origin.use, use, key=_STRENGTH.index), is_assumed=origin.is_assumed or is_assumed)
        for origin in origins
    )


def mapped(of: Mapper, columns: Mapping[str, Value]) -> Value:
    """What a mapper makes of ``columns``, by the names that it knows them by: `statelib.operators.mappers.mapping`."""
    match of:
        case Path(names):
            first, *inside = names if names[0] in columns else ("value", *names)
            value = columns.get(first, NOTHING)
            for name in inside:
                value = value.field(name)
            return value
        case Struct(fields):
            return Made({name: mapped(field, columns) for name, field in fields})
        case PerRecord(_, _, arguments):
            default = JOINED if "left" in columns else KEY_VALUE
            return computed("transformation", [mapped(argument, columns) for argument in arguments or default])
        case Expression():
            looked_at = []
            for name, value in columns.items():
                found = fields_of_mapper(of, name)
                looked_at += [value] if found is None else [value.field(field) for field in sorted(found)]
            return computed("transformation", looked_at)
        case _:
            return computed("transformation", columns.values(), is_assumed=True)
