"""One RocksDB of an application, filled once, as Kafka Streams would have closed it in good order (KIP-1035).

Beside the families of the store it has ``offsets``; integers are big-endian::

    key                        value
    -------------------------  ------------------------------------------------------------------------
    <changelog>-<partition>    i64: offset of the last record that the store has; -4: it has to be restored
    status                     i64: 0, closed

Without an offset an application with exactly-once would take what lies there for torn, and delete the whole task. Where
a store stands in its sources (``position``, KIP-796) is not written: neither does a restore know it. Tables are as
``RocksDBStore`` sets them: in blocks of 4 KiB, without compression. RocksDB reads what an earlier version has written,
and that of rocksdict is earlier than that of Kafka Streams (`docs/tested-versions.md`).
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from rocksdict import (
    BlockBasedOptions,
    BottommostLevelCompaction,
    CompactOptions,
    DBCompactionStyle,
    DBCompressionType,
    Options,
    Rdict,
    WriteBatch,
    WriteOptions,
)

from hindstream.kafka.local_state.layout import DEFAULT
from statelib.stores.rocksdb_errors import mapped_errors

if TYPE_CHECKING:
    from pathlib import Path

OFFSETS = "offsets"
TO_RESTORE = -4
"""For an offset: nothing is known (``OffsetCheckpoint.OFFSET_UNKNOWN``)."""

_STATUS, _CLOSED = b"status", 0
_LONG = struct.Struct(">q")
_AT_ONCE = 1 << 12
_MEMORY_TABLE_BYTES = 32 << 20
_BLOCK_BYTES = 4096
_BLOOM_BITS_PER_KEY = 10


class Database:
    """A RocksDB that is made.

    Args:
        folder: Its directory, which must not be there.
        family: The family of its entries.

    Raises:
        ConfigurationError: It cannot be written there.
    """

    def __init__(self, folder: Path, family: str) -> None:
        self._folder = folder
        folder.parent.mkdir(parents=True, exist_ok=True)
        options = _options()
        self._unlogged = _unlogged()
        with mapped_errors(folder):
            self._database = Rdict(str(folder), options, dict.fromkeys({DEFAULT, family, OFFSETS}, options))
            self._entries = self._database.get_column_family(family)
            self._family = self._database.get_column_family_handle(family)
        self._batch = WriteBatch(raw_mode=True)

    def put(self, key: bytes, value: bytes | None) -> None:
        """Adds an entry; None: takes it away."""
        if value is None:
            self._batch.delete(key, self._family)
        else:
            self._batch.put(key, value, self._family)
        if self._batch.len() >= _AT_ONCE:
            self._write()

    def finish(self, changelog: str, partition: int, offset: int) -> None:
        """Merges what was put, notes how far the changelog is in it, and closes it.

        Args:
            changelog: The topic.
            partition: Of the topic.
            offset: Of its last record; `TO_RESTORE`: there is none, or the store does not have it.
        """
        self._write()
        with mapped_errors(self._folder):
            merging = CompactOptions()
            merging.set_bottommost_level_compaction(BottommostLevelCompaction.force())
            self._entries.compact_range(None, None, merging)
            offsets = self._database.get_column_family(OFFSETS)
            offsets[f"{changelog}-{partition}".encode()] = _LONG.pack(offset)
            offsets[_STATUS] = _LONG.pack(_CLOSED)
            offsets.flush()
        self.close()
        (self._folder / "rocksdict-config.json").unlink(missing_ok=True)  # the library's own, which nobody reads there

    def close(self) -> None:
        """Closes it as it is."""
        with mapped_errors(self._folder):
            self._database.close()

    def _write(self) -> None:
        with mapped_errors(self._folder):
            self._database.write(self._batch, self._unlogged)
        self._batch = WriteBatch(raw_mode=True)


def _unlogged() -> Any:
    """Without a log: what is not complete is thrown away."""
    options: Any = WriteOptions()
    setattr(options, "disable_wal", True)  # noqa: B010 - a property, whatever its stub says
    return options


def _options() -> Options:
    """As ``RocksDBStore`` has them; but nothing is merged before all is there, and then once."""
    table = BlockBasedOptions()
    table.set_block_size(_BLOCK_BYTES)
    table.set_bloom_filter(_BLOOM_BITS_PER_KEY, False)
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    options.create_missing_column_families(True)
    options.set_atomic_flush(True)  # without a log of what is written
    options.set_block_based_table_factory(table)
    options.set_optimize_filters_for_hits(True)
    options.set_compression_type(DBCompressionType.none())
    options.set_compaction_style(DBCompactionStyle.universal())
    options.set_disable_auto_compactions(True)
    options.set_write_buffer_size(_MEMORY_TABLE_BYTES)
    options.set_error_if_exists(True)
    return options
