"""Avro schemas: what the JSON says, with every name looked up.

Source: the Avro specification 1.12, "Schema Declaration" and "Logical Types".
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from statelib.errors.kinds import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")


class NoDefault:
    """Stands for the default of a field that has none, where null would be one."""


@dataclass(frozen=True, slots=True)
class Logical:
    """What a value stands for, of those that are known here: others are not looked at, as Avro wants it.

    Attributes:
        name: Such as ``timestamp-millis``.
        precision: Of a decimal.
        scale: Of a decimal.
    """

    name: str
    precision: int = 0
    scale: int = 0

    def __str__(self) -> str:
        """As in an error."""
        return f"decimal({self.precision}, {self.scale})" if self.name == "decimal" else self.name


@dataclass(frozen=True, slots=True)
class Primitive:
    """One of `PRIMITIVES`."""

    kind: str
    logical: Logical | None = None


@dataclass(frozen=True, slots=True)
class Fixed:
    """So many bytes; ``names`` are its full name and its aliases."""

    names: tuple[str, ...]
    size: int
    logical: Logical | None = None


@dataclass(frozen=True, slots=True)
class Enum:
    """One of the symbols; ``default`` stands for one that a writer has and a reader has not."""

    names: tuple[str, ...]
    symbols: tuple[str, ...]
    default: str | None


@dataclass(frozen=True, slots=True)
class Field:
    """A record's; ``default`` is JSON, or the class `NoDefault`."""

    names: tuple[str, ...]
    type: Node
    default: Any = field(default=NoDefault, hash=False)


@dataclass(frozen=True, slots=True)
class Record:
    """Fields, one after the other."""

    names: tuple[str, ...]
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class Array:
    """Any number of values of one type."""

    items: Node


@dataclass(frozen=True, slots=True)
class Map:
    """Values by strings."""

    values: Node


@dataclass(frozen=True, slots=True)
class Union:
    """A value of one of the members."""

    members: tuple[Node, ...]


Node: TypeAlias = Primitive | Fixed | Enum | Record | Array | Map | Union

_LOGICAL_OF = {
    "int": {"date", "time-millis"},
    "long": {
        "time-micros", "timestamp-millis", "timestamp-micros", "timestamp-nanos",
        "local-timestamp-millis", "local-timestamp-micros", "local-timestamp-nanos",
    },
    "string": {"uuid"},
    "bytes": {"decimal"},
    "fixed": {"decimal", "uuid"},
}  # fmt: skip


def parse(schema: str, references: Iterable[str] = ()) -> Node:
    """The schema that a text declares: JSON, or the bare name of a primitive type.

    Args:
        schema: As Avro's specification has it.
        references: Schemas whose named types ``schema`` uses, each after those that it uses itself.

    Raises:
        ConfigurationError: It is no Avro schema, or it is recursive.
    """
    parser = _Parser()
    try:
        for text in references:
            parser.node(_loaded(text), "", "")
        return parser.node(_loaded(schema), "", "")
    except (AttributeError, TypeError) as error:  # a number where a list is due, and the like
        raise _wrong(f"is malformed: {error}", "") from None


def _loaded(text: str) -> Any:
    if text.strip() in PRIMITIVES:
        return text.strip()
    try:
        return json.loads(text)
    except ValueError as error:
        raise _wrong(f"is not JSON: {error}", "") from None


def describe(node: Node) -> str:  # noqa: PLR0911 - one for each kind
    """A type in a few words, for errors."""
    match node:
        case Primitive(kind, logical):
            return f"{kind} ({logical})" if logical else kind
        case Fixed(names, size, logical):
            return f"fixed {names[0]}[{size}]" + (f" ({logical})" if logical else "")
        case Enum(names):
            return f"enum {names[0]}"
        case Record(names):
            return f"record {names[0]}"
        case Array(items):
            return f"array of {describe(items)}"
        case Map(values):
            return f"map of {describe(values)}"
        case Union(members):
            return f"union of {', '.join(describe(member) for member in members)}"


def _wrong(what: str, path: str) -> ConfigurationError:
    step = "compare it with https://avro.apache.org/docs/1.12.0/specification/"
    return ConfigurationError(f"the Avro schema {what}", field=path or None, next_step=step)


class _Parser:
    def __init__(self) -> None:
        self._known: dict[str, Node | None] = {}  # None: its declaration has begun

    def node(self, schema: Any, space: str, path: str) -> Node:  # noqa: PLR0911 - one for each kind
        """``space``: the namespace around it."""
        if isinstance(schema, list):
            members = tuple(self.node(member, space, path) for member in schema)
            if not members or any(isinstance(member, Union) for member in members):
                raise _wrong("has a union without members, or one in a union", path)
            return Union(members)
        if isinstance(schema, str):
            return self._named(schema, space, path)
        if not isinstance(schema, dict) or "type" not in schema:
            raise _wrong(f"has {json.dumps(schema)} where a type is due", path)
        kind = schema["type"]
        if not isinstance(kind, str):
            return self.node(kind, space, path)
        if kind == "array":
            return Array(self.node(_item(schema, "items", path), space, f"{path}[]"))
        if kind == "map":
            return Map(self.node(_item(schema, "values", path), space, f"{path}{{}}"))
        if kind in {"record", "error", "enum", "fixed"}:
            return self._declared(schema, kind, space, path)
        node = self._named(kind, space, path)
        return Primitive(node.kind, _logical(schema, kind)) if isinstance(node, Primitive) else node

    def _named(self, name: str, space: str, path: str) -> Node:
        if name in PRIMITIVES:
            return Primitive(name)
        for full in (name if "." in name or not space else f"{space}.{name}", name):
            if full in self._known:
                node = self._known[full]
                if node is None:
                    what = f"is recursive: {full} holds itself, and a column cannot"
                    step = "leave the field out of the schema that is declared; what writers have more is not read"
                    raise ConfigurationError(f"the Avro schema {what}", field=path or None, next_step=step)
                return node
        raise _wrong(f"uses the type {name}, which it does not declare", path)

    def _declared(self, schema: Mapping[str, Any], kind: str, around: str, path: str) -> Node:
        name = _item(schema, "name", path)
        space = schema.get("namespace", around) if "." not in name else name.rpartition(".")[0]
        full = name if "." in name or not space else f"{space}.{name}"
        aliases = schema.get("aliases", ())
        names = (full, *(alias if "." in alias or not space else f"{space}.{alias}" for alias in aliases))
        if full in self._known:
            raise _wrong(f"declares {full} twice", path)
        self._known[full] = None
        node: Node
        if kind == "enum":
            symbols = tuple(_item(schema, "symbols", path))
            if not all(isinstance(symbol, str) for symbol in symbols):
                raise _wrong(f"has an enum {full} with a symbol that is no string", path)
            if len(set(symbols)) != len(symbols) or not {schema.get("default", *symbols[:1])} <= set(symbols):
                raise _wrong(f"has an enum {full} with a symbol twice, or a default that is none", path)
            node = Enum(names, symbols, schema.get("default"))
        elif kind == "fixed":
            size = _item(schema, "size", path)
            if not isinstance(size, int) or size < 0:
                raise _wrong(f"has a fixed {full} of {size} bytes", path)
            node = Fixed(names, size, _logical(schema, "fixed", size))
        else:
            node = Record(names, tuple(self._field(item, space, path) for item in _item(schema, "fields", path)))
            called = [item.names[0] for item in node.fields]
            if len(set(called)) != len(called):
                raise _wrong(f"has a record {full} with a field twice", path)
        self._known[full] = node
        return node

    def _field(self, schema: Mapping[str, Any], space: str, path: str) -> Field:
        name = _item(schema, "name", path)
        node = self.node(_item(schema, "type", f"{path}.{name}".lstrip(".")), space, f"{path}.{name}".lstrip("."))
        return Field((name, *schema.get("aliases", ())), node, schema.get("default", NoDefault))


def _item(schema: Any, name: str, path: str) -> Any:
    if not isinstance(schema, dict) or name not in schema:
        raise _wrong(f"lacks {name} in {json.dumps(schema)}", path)
    return schema[name]


def _logical(schema: Mapping[str, Any], kind: str, size: int | None = None) -> Logical | None:
    name = str(schema.get("logicalType"))
    if name not in _LOGICAL_OF.get(kind, ()) or (name == "uuid" and size not in {None, 16}):
        return None
    if name != "decimal":
        return Logical(name)
    precision, scale = schema.get("precision"), schema.get("scale", 0)
    if not (isinstance(precision, int) and isinstance(scale, int) and 0 <= scale <= precision and precision):
        return None
    return Logical(name, precision, scale)


def nullable(node: Node) -> tuple[Node, bool]:
    """A type without null, and whether it has null: of a union of null and one other type, and of one type alone.

    A union of several other types comes back as it is.
    """
    if not isinstance(node, Union):
        return node, False
    others = [member for member in node.members if member != Primitive("null")]
    has_null = len(others) < len(node.members)
    if len(others) == 1:
        return others[0], has_null
    return (Primitive("null"), True) if not others else (node, has_null)


def declaration(node: Node) -> Any:
    """A type as JSON data without logical types, aliases and defaults: what bytes are written by."""
    return _declaration(node, set())


def _declaration(node: Node, declared: set[str]) -> Any:  # noqa: PLR0911 - one for each kind
    match node:
        case Primitive(kind):
            return kind
        case Array(items):
            return {"type": "array", "items": _declaration(items, declared)}
        case Map(values):
            return {"type": "map", "values": _declaration(values, declared)}
        case Union(members):
            return [_declaration(member, declared) for member in members]
    name = node.names[0]
    if name in declared:
        return name
    declared.add(name)
    match node:
        case Enum():
            return {"type": "enum", "name": name, "symbols": list(node.symbols)}
        case Fixed():
            return {"type": "fixed", "name": name, "size": node.size}
    fields = [{"name": item.names[0], "type": _declaration(item.type, declared)} for item in node.fields]
    return {"type": "record", "name": name, "fields": fields}
