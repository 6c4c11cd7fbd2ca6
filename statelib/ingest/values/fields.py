"""What an option says of a record's part: a field of the rows, or text that is put together from several.

::

    origin                          a column
    after.id                        a field of a struct
    {year}-{month:02}-{day:02}      text with columns in it; ``:02`` fills a number up with zeros
    file.modified                   what a file or its folders tell of all its rows, where there is no such field

A column that has the whole text as its name comes first, whatever it looks like.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from statelib.errors.did_you_mean import did_you_mean
from statelib.errors.kinds import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterable

OF_FILE = "@file:"
"""Before the name of a column that a file or its folders tell."""

_PART = re.compile(r"\{([^{}:]+)(?::0?(\d+))?\}")


def is_template(text: str) -> bool:
    """Whether columns stand in it."""
    return _PART.search(text) is not None


def columns_in(text: str) -> list[str]:
    """The columns that a field or a template needs."""
    return [found[1] for found in _PART.finditer(text)] or [text]


def type_at(schema: pa.Schema, path: str) -> pa.DataType | None:
    """The type of a field or template; None: there is no such field."""
    if path in schema.names:
        return schema.field(path).type
    if is_template(path):
        known = all(type_at(schema, name) is not None for name in columns_in(path))
        return pa.string() if known else None
    if OF_FILE + path in schema.names:
        return schema.field(OF_FILE + path).type
    first, dot, rest = path.partition(".")
    if not dot or first not in schema.names or not pa.types.is_struct(schema.field(first).type):
        return None
    return type_at(pa.schema(list(schema.field(first).type)), rest)


def check_known(path: str, schemas: Iterable[pa.Schema], option: str) -> None:
    """Checks that some file has a field.

    Raises:
        ConfigurationError: None has.
    """
    schemas = list(schemas)
    if any(path in schema.names for schema in schemas):
        return
    for name in columns_in(path):
        if not any(type_at(schema, name) is not None for schema in schemas):
            known = dict.fromkeys(field for schema in schemas for field in schema.names if not field.startswith("@"))
            step = did_you_mean(name, known, "the rows have")
            raise ConfigurationError("no row has such a field", setting=option, field=name, next_step=step)


def value_at(rows: pa.RecordBatch, path: str) -> pa.Array:
    """A field or template of each row; null where the row has none."""
    if path in rows.schema.names:
        return rows.column(path)
    if is_template(path):
        return _put_together(rows, path)
    if OF_FILE + path in rows.schema.names:
        return rows.column(OF_FILE + path)
    first, dot, rest = path.partition(".")
    if dot and first in rows.schema.names and pa.types.is_struct(rows.schema.field(first).type):
        struct = rows.column(first)
        names = [field.name for field in struct.type]
        return value_at(pa.RecordBatch.from_arrays(struct.flatten(), names), rest)
    return pa.nulls(rows.num_rows)


def _put_together(rows: pa.RecordBatch, template: str) -> pa.Array:
    """Text; null where a part of it is."""
    parts: list[pa.Array | str] = []
    end = 0
    for found in _PART.finditer(template):
        parts.append(template[end : found.start()])
        text = value_at(rows, found[1]).cast(pa.string())
        parts.append(pc.utf8_lpad(text, int(found[2]), "0") if found[2] else text)
        end = found.end()
    parts.append(template[end:])
    return pc.binary_join_element_wise(*parts, "")
