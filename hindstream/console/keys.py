"""Keys as a person writes them: text, or JSON."""

from __future__ import annotations

import base64
import binascii
import json
from contextlib import suppress
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from statelib.columns.windowed_type import is_windowed_struct
from statelib.errors.kinds import ConfigurationError


def keys_of(text: str, type_: pa.DataType) -> list[Any]:
    """What a text may stand for as a key of a type: of bytes, UTF-8 and base64.

    Raises:
        ConfigurationError: It is no key of the type.
    """
    if pt.is_binary(type_):
        found = [text.encode()]
        with suppress(binascii.Error, ValueError):
            found.append(base64.b64decode(text, validate=True))
        return found
    if is_windowed_struct(type_) and pt.is_binary(type_.field("key").type) and text[:1] not in {"[", "{"}:
        return [{"key": key} for key in keys_of(text, type_.field("key").type)]
    try:
        return [_value(text, type_)]
    except (AttributeError, ValueError, TypeError, KeyError, InvalidOperation, pa.ArrowException) as error:
        fields = ', or as ["KEY", START, END] (ms)' if is_windowed_struct(type_) else ""
        step = f"give it as JSON of the type {type_}{fields}"
        raise ConfigurationError(f"{text!r} is no key of this topic", next_step=step) from error


def _value(text: str, type_: pa.DataType) -> Any:
    """The value that a text of the command line stands for."""
    if pt.is_string(type_):
        return text
    if is_windowed_struct(type_):
        return _windowed(text, type_)
    if pt.is_decimal(type_) or pt.is_timestamp(type_) or pt.is_date(type_):
        return _of_json(text.strip('"'), type_)
    return _of_json(json.loads(text), type_)


def _windowed(text: str, type_: pa.DataType) -> Any:
    """The key alone, whatever its window, or with start and end: as a list, or as an object."""
    try:
        given = json.loads(text)
    except ValueError:
        given = None
    if isinstance(given, list):
        given = dict(zip(type_.names, given, strict=True))
    if isinstance(given, dict) and given.keys() <= set(type_.names):
        return _of_json(given, type_)
    return {"key": _value(text, type_.field("key").type)}


def _of_json(given: Any, type_: pa.DataType) -> Any:
    """JSON data as a value of a type.

    Raises:
        ValueError: It is none, or another of those of `keys_of`.
    """
    if given is None:
        return None
    if pt.is_struct(type_):
        return {name: _of_json(inner, type_.field(name).type) for name, inner in given.items()}
    if pt.is_decimal(type_):
        given = Decimal(str(given))
    elif pt.is_timestamp(type_) and isinstance(given, str):
        given = datetime.fromisoformat(given)
    elif pt.is_timestamp(type_):
        return pa.scalar(given, pa.timestamp("ms", type_.tz)).cast(type_).as_py()
    elif pt.is_date(type_) and isinstance(given, str):
        given = date.fromisoformat(given)
    elif pt.is_integer(type_) and not isinstance(given, int):
        raise ValueError(given)
    return pa.scalar(given, type_).as_py()
