r"""Files of values as they were in Kafka, one behind the other: what Kafka Connect's ``ByteArrayFormat`` writes.

::

    +-------+-----------+-------+-----------+ ...
    | value | separator | value | separator |
    +-------+-----------+-------+-----------+

The separator (``format.bytearray.separator``) is a line break unless something else was configured. Nothing is escaped:
a value that holds the separator looks like two. Values of Avro tell where they end (`statelib.serdes.avro.framing`), so
that they come out whole; of others the files beside them, or the offset of the next file, tell that something is wrong.

Source: ``ByteArrayRecordWriterProvider`` of kafka-connect-storage-cloud.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa

from statelib.ingest.formats.compression import open_content
from statelib.ingest.formats.rows import Rows
from statelib.ingest.formats.unreadable import unreadable
from statelib.serdes.spans import Spans

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from statelib.ingest.sources.files import SourceFile
    from statelib.serdes.avro.framing import Found

ONLY_COLUMN = "value"
LINE_BREAK = "\n"

_BLOCK_BYTES = 1 << 20
_MOST_BYTES = 64 << 20
"""A value that goes on for longer is none."""


class Framing(Protocol):
    """How values tell where they end: see `statelib.serdes.avro.framing.AvroFraming`."""

    def find(self, data: NDArray[np.uint8], at: int, separator: bytes) -> Found:
        """Values from ``at`` on."""


def byte_rows(
    file: SourceFile, options: Mapping[str, str], separator: str = LINE_BREAK, framing: Framing | None = None
) -> Iterator[Rows]:
    """The values of a file, in one binary column.

    Args:
        file: The file.
        options: Of the object store.
        separator: What stands behind each value.
        framing: How they tell where they end; None: they do not.

    Raises:
        InputError: It cannot be read.
    """
    behind, done, rest = separator.encode(), 0, b""
    with unreadable(file, "bytes"), open_content(file, options) as opened:
        while True:
            more = bytes(opened.read(_BLOCK_BYTES))
            data, is_last = rest + more, not more
            start, end, used = _split(np.frombuffer(data, np.uint8), data, behind, framing, is_last=is_last)
            if len(start):
                values = Spans(np.frombuffer(data, np.uint8), start, end - start).binary()
                numbers = np.arange(done + 1, done + len(values) + 1)
                yield Rows(pa.RecordBatch.from_arrays([values], [ONLY_COLUMN]), numbers)
                done += len(values)
            rest = data[used:]
            if is_last:
                return


def _split(
    array: NDArray[np.uint8], data: bytes, separator: bytes, framing: Framing | None, *, is_last: bool
) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """Where values begin and end, and where what belongs to none yet begins."""
    if framing is None:
        return _by_separator(data, separator, is_last=is_last)
    starts, ends, at = [], [], 0
    while at < len(data):
        found = framing.find(array, at, separator)
        starts.append(found.start)
        ends.append(found.end)
        if found.next > at and not found.is_cut_off:
            at = found.next  # what follows may be of another schema
            continue
        at = found.next
        if found.is_cut_off and not is_last and len(data) - at < _MOST_BYTES:
            break
        end = data.find(separator, at)  # it is no value, as decoding will say
        if end < 0 and not is_last:
            break
        end = len(data) if end < 0 else end
        starts.append(np.array([at]))
        ends.append(np.array([end]))
        at = end + len(separator)
    nothing = np.empty(0, np.int64)
    return np.concatenate([nothing, *starts]), np.concatenate([nothing, *ends]), min(at, len(data))


def _by_separator(data: bytes, separator: bytes, *, is_last: bool) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    if len(separator) == 1:
        end = np.flatnonzero(np.frombuffer(data, np.uint8) == separator[0])
    else:
        end = np.array([found.start() for found in re.finditer(re.escape(separator), data)], np.int64)
    start = np.concatenate([np.zeros(1, np.int64), end + len(separator)])
    used = int(start[-1])
    if is_last and used < len(data):  # no separator behind the last one
        return start, np.append(end, len(data)), len(data)
    return start[:-1], end, used
