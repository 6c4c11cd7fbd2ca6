"""Reads the RocksDB of a versioned store that Kafka Streams has written (``RocksDBVersionedStore``).

The latest values are those of segment -1 (``LogicalKeyValueSegment``), in the column family ``default``; integers are
big-endian::

    key     segment i64 = -1, the record's key
    value   timestamp i64 in ms, the record's value
"""

from __future__ import annotations

import struct
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from rocksdict import AccessType, Options, Rdict

from statelib.stores.rocksdb_errors import mapped_errors

if TYPE_CHECKING:
    from collections.abc import Iterator

_SEGMENT = struct.pack(">q", -1)
_TIMESTAMP = struct.Struct(">q")


def latest_values(directory: Path) -> Iterator[tuple[bytes, int, bytes]]:
    """Keys, timestamps (ms) and values, in bytewise order of keys; nothing is changed in the directory.

    Raises:
        ConfigurationError: There is no database.
        CorruptedDataError: It is damaged.
    """
    with _opened(directory) as database, mapped_errors(directory):
        entries: Any = database.items(from_key=_SEGMENT)
        for key, value in entries:  # no segment's number is larger
            (timestamp_ms,) = _TIMESTAMP.unpack_from(value)
            yield key[len(_SEGMENT) :], timestamp_ms, value[_TIMESTAMP.size :]


@contextmanager
def _opened(directory: Path) -> Iterator[Rdict]:
    """The database, by links to its files: the library leaves a file of its own beside those that it opens."""
    with TemporaryDirectory() as links, mapped_errors(directory):
        for file in directory.iterdir():
            (Path(links) / file.name).symlink_to(file.resolve())
        options = Options(raw_mode=True)
        families = dict.fromkeys(Rdict.list_cf(links, options), options)
        with closing(Rdict(links, options, families, AccessType.read_only(False))) as database:
            yield database
