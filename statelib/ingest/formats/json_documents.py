"""Cuts JSON text into the objects that become rows: a line each, items of an array, or objects one behind the other."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

_BLOCK_BYTES = 4 << 20
_MARK = b"\xef\xbb\xbf"
_DECODER = json.JSONDecoder()
_GOES_ON = (b"{", b"[", b",", b":")


class Lines(NamedTuple):
    """Whole rows of a file, a line each.

    Attributes:
        text: The lines; each ends with a newline.
        first: The number of the first one, from 1; empty lines count.
    """

    text: bytes
    first: int


def json_lines(opened: pa.NativeFile) -> Iterator[Lines]:
    """The rows of a file in blocks of some 4 MiB, or of one row that is longer.

    Raises:
        ValueError: The text ends within a row.
    """
    head = bytes(opened.read(_BLOCK_BYTES)).removeprefix(_MARK)
    if _is_lines(head):
        yield from _by_line(head, opened)
    else:
        yield from _by_bracket(head, opened)


def _is_lines(head: bytes) -> bool:
    """Whether the first row ends with its line."""
    lines = head.lstrip().split(b"\n", 2)
    first = lines[0].strip()
    if not first or first.startswith(b"["):
        return not first
    try:
        text = first.decode(errors="replace")
        end = _DECODER.raw_decode(text)[1]
    except (ValueError, RecursionError):
        # A line that is damaged is one bad row; an object over several lines begins with a line that only opens it.
        is_open = first.count(b"{") != first.count(b"}")
        return not is_open or (not first.endswith(_GOES_ON) and len(lines) > 1 and _is_object(lines[1]))
    return not text[end:].lstrip().startswith("{")  # several objects on the line


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _by_line(head: bytes, opened: pa.NativeFile) -> Iterator[Lines]:
    first, left = 1, head
    while True:
        more = bytes(opened.read(_BLOCK_BYTES))
        end = left.rfind(b"\n") + 1
        if not more:
            if left:
                yield Lines(left if left.endswith(b"\n") else left + b"\n", first)
            return
        if end:
            yield Lines(left[:end], first)
            first += left.count(b"\n", 0, end)
        left = left[end:] + more


def _by_bracket(head: bytes, opened: pa.NativeFile) -> Iterator[Lines]:
    from statelib.ingest.formats.json_rows_kernel import find_rows  # noqa: PLC0415 - files with a row a line do without

    left, first, wanted = head.lstrip(), 1, _BLOCK_BYTES
    within = left.startswith(b"[")
    if within:
        left = left[1:]
    more = b"-"
    while more:
        more = bytes(opened.read(wanted))
        left += more or b"\n"  # the end of a number or a name is what stands behind it
        spans, place = np.empty(len(left) + 2, np.int64), np.array([within, 0], np.int64)
        count = find_rows(np.frombuffer(left, np.uint8), place, spans)
        rows = spans[: 2 * count].reshape(count, 2).tolist()
        if rows:
            yield Lines(b"".join(b"%b\n" % _one_line(left[start:end]) for start, end in rows), first)
        first += count
        within, left = bool(place[0]), left[place[1] :]
        wanted = _BLOCK_BYTES if rows else 2 * wanted
    if left.strip() or within:
        raise ValueError("it ends within a row, or without the bracket that closes all rows")


def _one_line(row: bytes) -> bytes:
    """Strings in JSON hold no line breaks as they are, so all of them stand between values."""
    return row.replace(b"\n", b" ").replace(b"\r", b" ")
