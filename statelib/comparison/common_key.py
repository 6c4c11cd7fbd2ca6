"""What all rows that differ have in common: the one value of a key, or of a field of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from statelib.columns.time_columns import python_values
from statelib.columns.windowed_type import is_windowed_struct

if TYPE_CHECKING:
    from collections.abc import Iterator


class CommonKey:
    """Follows which fields of keys have had one value so far, in whatever order rows come."""

    def __init__(self) -> None:
        self._values: dict[str, Any] | None = None

    def add(self, keys: pa.Array) -> None:
        """Adds the keys of rows that differ."""
        found = {path: python_values(unique)[0] for path, unique in _unique(keys, "key") if len(unique) == 1}
        if self._values is None:
            self._values = found
        else:
            self._values = {path: v for path, v in self._values.items() if path in found and found[path] == v}

    def result(self) -> dict[str, Any]:
        """By path (``key``, ``key.origin``) the value that all have; no windows, no nulls."""
        return {path: value for path, value in (self._values or {}).items() if value is not None}


def _unique(keys: pa.Array, path: str) -> Iterator[tuple[str, pa.Array]]:
    if is_windowed_struct(keys.type):
        yield from _unique(pc.struct_field(keys, "key"), path)
    elif pa.types.is_struct(keys.type):
        for field in keys.type:
            yield from _unique(pc.struct_field(keys, field.name), f"{path}.{field.name}")
    elif len(keys) and not pa.types.is_nested(keys.type):
        yield path, pc.unique(keys)
