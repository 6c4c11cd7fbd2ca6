"""The path to a message in its schema's file, with which a Protobuf value begins in a registry's wire format.

The number of steps and the index at each, as zigzag varints; of ``[0]``, the first message, the one byte 0. Where a map
stands before a nested message, the serializers do not agree: a descriptor has a message for each map, which Python's
counts, and Java's only if the schema came from one. Both are understood; written is what the ``.proto`` file declares.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from statelib.serdes.protobuf.message_tree import declared_in
from statelib.serdes.spans import Spans

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from statelib.serdes.protobuf.message_tree import Declared

_FIRST: tuple[int, ...] = (0,)
_MOST_STEPS = 32


def by_path(
    spans: Spans, reasons: NDArray[np.object_]
) -> dict[tuple[int, ...], tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Of each path to a message: int64[m], which values have it, and int64[m]: where the message begins."""
    found: dict[tuple[int, ...], tuple[list[int], list[int]]] = {}
    heads = Spans(spans.content, spans.start, np.minimum(spans.length, 10 * (_MOST_STEPS + 1))).binary().to_pylist()
    for row, head in enumerate(heads):
        path, begin = (_FIRST, 1) if head[:1] == b"\0" else _read(head)
        if not begin:
            reasons[row] = "the path to the message cannot be read"
            continue
        rows, begins = found.setdefault(path, ([], []))
        rows.append(row)
        begins.append(begin)
    return {path: (np.array(rows, np.int64), np.array(begins, np.int64)) for path, (rows, begins) in found.items()}


def _read(head: bytes) -> tuple[tuple[int, ...], int]:
    """The path, and where it ends; 0: it cannot be read."""
    numbers: list[int] = []
    number = shift = 0
    for at, byte in enumerate(head):
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte >= 0x80:  # noqa: PLR2004 - the bit that says that there is more
            continue
        numbers.append((number >> 1) ^ -(number & 1))
        number = shift = 0
        if not 0 < numbers[0] <= _MOST_STEPS:
            break
        if len(numbers) == numbers[0] + 1:
            return tuple(numbers[1:]), at + 1
    return (), 0


def messages_at(path: Sequence[int], text: str) -> list[str]:
    """The full names that a path may stand for, the likelier first; none: the schema has no such message."""
    found = [_at(path, text, count_entries=counted) for counted in (False, True)]
    return [name for name in dict.fromkeys(found) if name is not None]


def _at(path: Sequence[int], text: str, *, count_entries: bool) -> str | None:
    messages, name = declared_in(text), None
    for index in path:
        counted = [message for message in messages if count_entries or not message.is_entry]
        if not 0 <= index < len(counted):
            return None
        name, messages = counted[index].name, counted[index].nested
    return name


def path_to(message: str, text: str) -> tuple[int, ...] | None:
    """The path to a message, given its full name; None: the schema has none."""
    return _path_to(message, declared_in(text))


def _path_to(message: str, messages: Sequence[Declared]) -> tuple[int, ...] | None:
    for index, declared in enumerate(one for one in messages if not one.is_entry):
        if declared.name == message:
            return (index,)
        if message.startswith(f"{declared.name}."):
            within = _path_to(message, declared.nested)
            return None if within is None else (index, *within)
    return None


def written(path: Sequence[int]) -> bytes:
    """A path's bytes."""
    return b"\0" if tuple(path) == _FIRST else b"".join(_varint(2 * number) for number in (len(path), *path))


def _varint(number: int) -> bytes:
    encoded = bytearray()
    while number >= 0x80:  # noqa: PLR2004 - the bit that says that there is more
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*encoded, number])
