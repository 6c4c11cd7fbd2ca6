"""What is said where a mapper names a column or a field that is not there."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pyarrow as pa

from statelib.errors.did_you_mean import did_you_mean
from statelib.errors.kinds import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Sequence

_CONDITION = re.compile(r"[<>=!*+/()]| - ")
_OF_SOURCE = {"topic", "partition", "offset"}
_NOT_IN_BATCH = re.compile(r'Field "(.*)" does not exist in schema')
_WITHOUT_WAY = {"left", "partition_time"}
"""Columns of joins and of timestamp extractors: what they are of is not one record of a stream or table."""


def missing_column(name: str, columns: pa.Schema) -> ConfigurationError:
    """The error about a path whose first name is neither a column nor a field of the value.

    Args:
        name: The name.
        columns: What the mapper sees; the key may have been left out, since no mapper looks at it.
    """
    seen = list(dict.fromkeys(("key", *columns.names)))
    inside = _fields_of(columns.field("value").type) if "value" in seen else []
    if "value" not in seen:
        what = f"there is no column {name!r}"
    else:
        what = f"there is no field {name!r}: {_described('value', columns.field('value').type)}"
    step = _where_it_is(name, seen) or did_you_mean(name, [*inside, *seen], "one of:")
    return ConfigurationError(f"{what}; the columns are {', '.join(seen)}", next_step=step)


def step_for_batch(error: BaseException, columns: pa.Schema) -> str | None:
    """What to do where a function has asked a batch for a column that it has not; None: the error is another one.

    Args:
        error: What the function has raised.
        columns: Of the batch.
    """
    asked = _NOT_IN_BATCH.fullmatch(str(error.args[0])) if isinstance(error, KeyError) and error.args else None
    if asked is None:
        return None
    name = asked.group(1).removeprefix("value.")
    if "value" in columns.names and name in _fields_of(columns.field("value").type):
        return f'it is a field of the value: write pc.struct_field(batch["value"], "{name}")'
    step = _where_it_is(name, columns.names) or did_you_mean(name, columns.names, "one of:")
    return f"the columns are {', '.join(columns.names)}; {step}"


def missing_field(name: str, path: Sequence[str], of: pa.DataType) -> ConfigurationError:
    """The error about a path whose first names are there.

    Args:
        name: The first one that is not.
        path: Those before it.
        of: The type of what they lead to.
    """
    before = ".".join(path)
    inside = _fields_of(of)
    step = did_you_mean(name, inside, "one of:") if inside else f'it has no fields: write "{before}"'
    return ConfigurationError(f"there is no field {name!r}: {_described(before, of)}", next_step=step)


def _fields_of(of: pa.DataType) -> list[str]:
    return [field.name for field in of] if pa.types.is_struct(of) else []


def _described(path: str, of: pa.DataType) -> str:
    inside = _fields_of(of)
    return f"{path} has the fields {', '.join(inside)}" if inside else f"{path} is of type {of}"


def _where_it_is(name: str, seen: Sequence[str]) -> str | None:
    """Where somebody finds what no mapper sees here, or how he writes it; None: that is not known."""
    if _CONDITION.search(name):
        return 'a text is a path; write a condition as an expression, such as pc.field("value", "amount") > 10'
    if name not in {"timestamp", "headers", *_OF_SOURCE} or not _WITHOUT_WAY.isdisjoint(seen):
        return None
    if "timestamp" not in seen:
        return f"transform_values_with() can put it into the value: its context has {name}()"
    if name in _OF_SOURCE:
        return f"process_values() can put it into the value: its context has record_metadata().{name}"
    return "leave it out: these records have no headers"
