"""The type of windowed keys: a key and its window, as one value that knows what kind of window it is (``Windowed<K>``).

A windowed table's records, and those of its stream, have such keys. The kind decides their bytes
(`statelib.serdes.windowed`), so it is part of the type: keys of other windows are keys of another type.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Literal, Protocol, Self, runtime_checkable

import pyarrow as pa

from statelib.columns.window_grids import WindowGrid, described_grid, grid_of

TIME = pa.timestamp("ms", "UTC")
_NAME = "hindstream.windowed"


@dataclass(frozen=True, slots=True)
class KeyWindows:
    """What is known of the windows of keys.

    Attributes:
        kind: ``time``: of one size, so that the start tells the end: tumbling, hopping, sliding, without end.
            ``session``: of any length. ``mixed``: of several kinds or sizes, in a stream that was merged of such.
        size_ms: Of ``time``, from start to end; of the others None.
        grid: Of ``time``, what tells the end where that is not always so much later: days of a time zone, windows with
            an offset, of which the first is cut off. None elsewhere.
    """

    kind: Literal["time", "session", "mixed"]
    size_ms: int | None = None
    grid: WindowGrid | None = None

    def __str__(self) -> str:
        if self.kind == "time":
            return f"windows of {self.size_ms} ms" if self.grid is None else str(self.grid)
        return "sessions" if self.kind == "session" else "windows of several kinds"


@runtime_checkable
class AlignedKeys(Protocol):
    """Windows of time, of which a key's start tells the end."""

    @property
    def size_ms(self) -> int:
        """From a window's start to its end; of days the longest."""

    @property
    def of_keys(self) -> KeyWindows:
        """What is known of the windows of keys."""


def windowed_struct(key_type: pa.DataType) -> pa.StructType:
    """A key and its window as archives have them."""
    return pa.struct([("key", key_type), ("window_start", TIME), ("window_end", TIME)])


def is_windowed_struct(key_type: pa.DataType) -> bool:
    """Whether keys are such structs, by their names: those of a windowed result's archive."""
    return bool(pa.types.is_struct(key_type) and key_type.names == ["key", "window_start", "window_end"])


SESSIONS = KeyWindows("session")
MIXED = KeyWindows("mixed")


class WindowedType(pa.ExtensionType):  # type: ignore[misc]
    """See the module's docstring; stored as ``struct<key, window_start, window_end>``, as archives have such keys.

    Args:
        key_type: Of the keys without their windows; may be windowed itself.
        windows: What is known of the windows.
    """

    def __init__(self, key_type: pa.DataType, windows: KeyWindows) -> None:
        self.windows = windows
        super().__init__(windowed_struct(key_type), _NAME)

    @property
    def key_type(self) -> pa.DataType:
        """Of the keys without their windows."""
        return self.storage_type.field("key").type

    def __arrow_ext_serialize__(self) -> bytes:
        """What is written beside the storage type."""
        size = "" if self.windows.size_ms is None else str(self.windows.size_ms)
        grid = "" if self.windows.grid is None else f" {json.dumps(described_grid(self.windows.grid))}"
        return f"{self.windows.kind} {size}{grid}".encode()

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> Self:
        """The inverse of `__arrow_ext_serialize__`."""
        kind, size, *grid = serialized.decode().split(" ", 2)
        of_grid = grid_of(json.loads(grid[0])) if grid else None
        windows = KeyWindows(kind, int(size) if size else None, of_grid)  # type: ignore[arg-type]
        return cls(storage_type.field("key").type, windows)

    def __eq__(self, other: object) -> bool:
        """Also by the windows: Arrow compares the storage types of two types of one class alone."""
        return (
            isinstance(other, WindowedType)
            and self.storage_type == other.storage_type
            and self.windows == other.windows
        )

    def __hash__(self) -> int:
        return hash((self.storage_type, self.windows))

    def __str__(self) -> str:
        return f"windowed<{self.key_type}, {self.windows}>"


def archived_type(key_type: pa.DataType) -> pa.DataType:
    """The type that archives and people have for keys: of windowed ones the struct that they are stored as."""
    if not isinstance(key_type, WindowedType):
        return key_type
    return windowed_struct(archived_type(key_type.key_type))


def archived(keys: pa.Array) -> pa.Array:
    """Keys as archives have them; others than windowed ones as they are."""
    if not isinstance(keys.type, WindowedType):
        return keys
    stored = keys.storage
    mask = stored.is_null() if stored.null_count else None
    fields = list(archived_type(keys.type))
    return pa.StructArray.from_arrays(
        [archived(stored.field(0)), stored.field(1), stored.field(2)], fields=fields, mask=mask
    )


def as_windowed(keys: pa.Array, key_type: pa.DataType) -> pa.Array:
    """The inverse of `archived`, given the type of the keys."""
    if not isinstance(key_type, WindowedType):
        return keys
    mask = keys.is_null() if keys.null_count else None
    inner = as_windowed(keys.field(0), key_type.key_type)
    parts = [inner, keys.field(1), keys.field(2)]
    stored = pa.StructArray.from_arrays(parts, fields=list(key_type.storage_type), mask=mask)
    return pa.ExtensionArray.from_storage(key_type, stored)


pa.register_extension_type(WindowedType(pa.null(), SESSIONS))
