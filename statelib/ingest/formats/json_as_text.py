"""Fields of JSON that are to be text whatever they are: ``7`` becomes ``"7"``, an object its JSON."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Collection


def as_text(lines: bytes, names: Collection[str]) -> bytes:
    """Lines in which the values of some fields are text; those that are no JSON stay what they are."""
    return b"\n".join(_as_text(line, names) for line in lines.split(b"\n"))


def _as_text(line: bytes, names: Collection[str]) -> bytes:
    if not line.strip():
        return line
    try:
        row = json.loads(line, parse_float=_Float, parse_int=_Int, object_pairs_hook=_unique)
    except (ValueError, RecursionError):
        return line
    changed = {name: _text(row[name]) for name in names if row.get(name) is not None and type(row[name]) is not str}
    return json.dumps(row | changed, ensure_ascii=False).encode() if changed else line


def _text(value: Any) -> str:
    return value.text if isinstance(value, _Float | _Int) else json.dumps(value, ensure_ascii=False)


class _Float(float):
    """A number, and as what it stands in the file."""

    text: str

    def __new__(cls, text: str) -> Self:
        number = super().__new__(cls, text)
        if math.isinf(number):
            raise ValueError(text)
        number.text = text
        return number


class _Int(int):
    """A whole number, and as what it stands in the file."""

    text: str

    def __new__(cls, text: str) -> Self:
        number = super().__new__(cls, text)
        number.text = text
        return number


def _unique(fields: list[tuple[str, Any]]) -> dict[str, Any]:
    row = dict(fields)
    if len(row) < len(fields):
        raise ValueError("a field comes twice")
    return row
