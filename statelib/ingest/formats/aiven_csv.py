"""What Aiven's sinks write as CSV: no header, no quotes, keys and headers in base64, the value in base64 or as it is.

::

    bzAw,djA=,0,1577836500000,dHJhY2U=:dDA=;dHJpZXM=:MA==;
    bzAx,{"a": 1, "b": 2},1,1577836600000,

The fields (``format.output.fields``) come in the order that was configured, which no file tells. A value that stands
there as it is (``format.output.fields.value.encoding=none``) may hold commas: there are none in the other fields, so it
is what they leave. A key or value that is empty is null.

Source: ``PlainOutputWriter`` and its writers of fields, in Aiven's commons-for-apache-kafka-connect.
"""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from statelib.ingest.formats.compression import open_content
from statelib.ingest.formats.rows import BadRow, Rows
from statelib.ingest.formats.unreadable import unreadable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from statelib.ingest.sources.files import SourceFile
    from statelib.job.lake_topic import ValueEncoding

_BLOCK_BYTES = 4 << 20
_SEPARATOR = b","
_TYPES = {
    "key": pa.binary(),
    "value": pa.binary(),
    "offset": pa.int64(),
    "timestamp": pa.int64(),
    "headers": pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
}


def aiven_csv_rows(
    file: SourceFile, options: Mapping[str, str], fields: Sequence[str], encoding: ValueEncoding
) -> Iterator[Rows]:
    """The rows of a file: keys and values as bytes.

    Args:
        file: The file.
        options: Of the object store.
        fields: In their order.
        encoding: Of values.

    Raises:
        InputError: It cannot be read.
    """
    done, left = 0, b""
    with unreadable(file, "CSV"), open_content(file, options) as opened:
        while True:
            more = bytes(opened.read(_BLOCK_BYTES))
            lines = (left + more).split(b"\n")
            left = lines.pop() if more else b""
            if not more and lines[-1] == b"":
                lines.pop()  # behind the last line break
            if lines:
                yield _rows(lines, done + 1, fields, encoding)
                done += len(lines)
            if not more:
                return


def _rows(lines: list[bytes], first: int, fields: Sequence[str], encoding: ValueEncoding) -> Rows:
    found: dict[str, list[Any]] = {name: [] for name in fields}
    numbers, bad = [], []
    for number, line in enumerate(lines, first):
        try:
            row = _row(line, fields, encoding)
        except _WrongError as error:
            bad.append(BadRow(number, error.field, str(error), line))
            continue
        numbers.append(number)
        for name, value in row.items():
            found[name].append(value)
    columns = [pa.array(found[name], _TYPES[name]) for name in fields]
    return Rows(pa.RecordBatch.from_arrays(columns, list(fields)), np.array(numbers, np.int64), tuple(bad))


class _WrongError(Exception):
    def __init__(self, field: str, reason: str) -> None:
        super().__init__(reason)
        self.field = field


def _row(line: bytes, fields: Sequence[str], encoding: ValueEncoding) -> dict[str, Any]:
    before = fields.index("value")
    behind = len(fields) - before - 1
    left = line.split(_SEPARATOR, before)
    right = left[-1].rsplit(_SEPARATOR, behind)
    parts = [*left[:-1], *right]
    if len(parts) != len(fields):
        raise _WrongError("", f"it has {len(parts)} values instead of {len(fields)}")
    return {name: _parsed(name, part, encoding) for name, part in zip(fields, parts, strict=True)}


def _parsed(name: str, text: bytes, encoding: ValueEncoding) -> Any:
    if name == "headers":
        pairs = [pair.split(b":") for pair in text.split(b";") if pair]
        if any(len(pair) != 2 for pair in pairs):  # noqa: PLR2004 - a name and a value
            raise _WrongError(name, "its headers are no pairs in base64")
        return [
            {"key": _decoded(name, key).decode(errors="replace"), "value": _decoded(name, value)}
            for key, value in pairs
        ]
    if not text:
        return None
    if name in {"offset", "timestamp"}:
        if not text.isdigit():
            raise _WrongError(name, f"{text[:40].decode(errors='replace')!r} is no number")
        return int(text)
    return text if name == "value" and encoding == "none" else _decoded(name, text)


def _decoded(name: str, text: bytes) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise _WrongError(name, "it is no base64") from None
