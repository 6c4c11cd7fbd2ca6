"""How DuckDB and Spark write names, Delta tables and types, and how a value of one type is read as another.

Types are those of Delta's schemas as JSON: the name of a primitive one, an object for any other
(https://github.com/delta-io/delta/blob/master/PROTOCOL.md#schema-serialization-format).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from statelib.storage.hadoop import hadoop_uri

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


@dataclass(frozen=True)
class Dialect:
    """What is different in one engine.

    Attributes:
        quote: Stands around names.
        table: A Delta table, by its address.
        primitive: The engine's names of Delta's types that have another one.
        struct: A type, by its fields' names and types.
        array: A type, by that of the items.
        mapping: A type, by those of keys and values.
        make_struct: A value, by names and values.
        each: A list whose items are made of those of another: that one, and what is made of the item ``x``.
        begin: Said before several views that change at once; "": there is no such thing.
        end: Said behind them.
    """

    quote: str
    table: Callable[[str], str]
    primitive: Mapping[str, str]
    struct: Callable[[Mapping[str, str]], str]
    array: Callable[[str], str]
    mapping: Callable[[str, str], str]
    make_struct: Callable[[Mapping[str, str]], str]
    each: Callable[[str, str], str]
    begin: str = ""
    end: str = ""

    def name(self, text: str) -> str:
        """A name, quoted."""
        return f"{self.quote}{text.replace(self.quote, 2 * self.quote)}{self.quote}"

    def type_name(self, of: Any) -> str:
        """A type of Delta's."""
        if isinstance(of, str):
            return self.primitive.get(of, of.upper())
        if of["type"] == "struct":
            return self.struct({self.name(field["name"]): self.type_name(field["type"]) for field in of["fields"]})
        if of["type"] == "array":
            return self.array(self.type_name(of["elementType"]))
        return self.mapping(self.type_name(of["keyType"]), self.type_name(of["valueType"]))

    def read_as(self, value: str, have: Any, want: Any) -> str:
        """A value of the type ``have`` in the type ``want``: fields that it lacks are null, others are left out."""
        if _plain(have) == _plain(want):
            return value
        kinds = {of["type"] if isinstance(of, dict) else "" for of in (have, want)}
        if kinds == {"struct"}:
            types = {field["name"]: field["type"] for field in have["fields"]}
            fields = {
                field["name"]: self.read_as(f"{value}.{self.name(field['name'])}", types[field["name"]], field["type"])
                if field["name"] in types
                else f"CAST(NULL AS {self.type_name(field['type'])})"
                for field in want["fields"]
            }
            return f"CASE WHEN {value} IS NULL THEN NULL ELSE {self.make_struct(fields)} END"
        if kinds == {"array"}:
            return self.each(value, self.read_as("x", have["elementType"], want["elementType"]))
        return f"CAST({value} AS {self.type_name(want)})"


def _plain(of: Any) -> Any:
    """A type without what is said of it besides."""
    if isinstance(of, list):
        return [(field["name"], _plain(field["type"])) for field in of]
    if isinstance(of, dict):
        return {name: _plain(inner) for name, inner in of.items() if not name.endswith("Null")}
    return of


def text(value: str) -> str:
    """A string in SQL."""
    return "'" + value.replace("'", "''") + "'"


def _fields(fields: Mapping[str, str], between: str) -> str:
    return ", ".join(f"{name}{between}{of}" for name, of in fields.items())


DUCKDB = Dialect(
    quote='"',
    table=lambda uri: f"delta_scan({text(uri)})",
    primitive={
        "string": "VARCHAR",
        "long": "BIGINT",
        "short": "SMALLINT",
        "byte": "TINYINT",
        "binary": "BLOB",
        "timestamp": "TIMESTAMPTZ",
        "timestamp_ntz": "TIMESTAMP",
    },
    struct=lambda fields: f"STRUCT({_fields(fields, ' ')})",
    array=lambda item: f"{item}[]",
    mapping=lambda key, value: f"MAP({key}, {value})",
    make_struct=lambda fields: "{" + ", ".join(f"{text(name)}: {value}" for name, value in fields.items()) + "}",
    each=lambda items, made: f"list_transform({items}, lambda x: {made})",
    begin="BEGIN TRANSACTION;",
    end="COMMIT;",
)
"""With its extension ``delta``."""

SPARK = Dialect(
    quote="`",
    table=lambda uri: f"delta.`{hadoop_uri(uri).replace('`', '``')}`",
    primitive={},
    struct=lambda fields: f"STRUCT<{_fields(fields, ': ')}>",
    array=lambda item: f"ARRAY<{item}>",
    mapping=lambda key, value: f"MAP<{key}, {value}>",
    make_struct=lambda fields: (
        f"named_struct({', '.join(f'{_spark_text(n)}, {value}' for n, value in fields.items())})"
    ),
    each=lambda items, made: f"transform({items}, x -> {made})",
)
"""With Delta's package, ``delta-spark``."""


def _spark_text(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


DIALECTS = {"duckdb": DUCKDB, "spark": SPARK}
