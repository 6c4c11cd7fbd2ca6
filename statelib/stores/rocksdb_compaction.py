"""When RocksDB merges its files, and how.

A task's database merges when `compact` is called, before a checkpoint, and then to the end. In the background it
would merge while a small slice runs, at half of that slice's CPU, and the checkpoint would come before its end: the
next slice begins anew. A store that lives on in a process of its own merges in the background, as RocksDB does.

The files are *tiers* ("universal" compaction): each flush adds a small one, and some of like size become one of the
next size. A byte is written, and uploaded by a checkpoint, once a tier: a number of times that grows with the logarithm
of the state in slices. By levels a few small files would be merged with the whole of a state whose keys lie anywhere.
A small family is merged as a whole: RocksDB keeps each change of its options on disk, which takes longer.
"""

from __future__ import annotations

from threading import Event
from typing import TYPE_CHECKING

from rocksdict import DBCompactionStyle, UniversalCompactOptions, WriteBatch

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rocksdict import Options, Rdict

MOST_NEW_FILES = 4
"""Beyond so many flushed files a family is merged: each is one more to ask for a key."""

MOST_EXPIRING_FILES = 64
"""As `MOST_NEW_FILES`, while a task runs, of families whose oldest keys leave as ranges all the time."""

_SMALL_BYTES = 1 << 18
"""Families up to this size are merged as a whole."""

_OFF = "disable_auto_compactions"
_LEVELS = 7  # RocksDB's default
_POLL_SECONDS = 0.001


def in_tiers(options: Options, *, in_background: bool) -> None:
    """Sets how a database merges. If not in the background, writes never wait, however many files there are."""
    options.set_disable_auto_compactions(not in_background)
    options.set_compaction_style(DBCompactionStyle.universal())
    options.set_universal_compaction_options(UniversalCompactOptions())
    options.set_level_zero_file_num_compaction_trigger(MOST_NEW_FILES)


def compact(database: Rdict, families: Iterable[Rdict], *, most_files: int = MOST_NEW_FILES) -> None:
    """Merges what has become too many files, family by family, and returns when nothing is merged any more.

    Args:
        database: All of it; it does not merge in the background.
        families: Of the database; nobody writes to them meanwhile.
        most_files: Of a family that has no more flushed files nothing is merged.

    Raises:
        Exception: RocksDB's own, about a file that it cannot read or write.
    """
    for family in families:
        if _files(family, 0) > most_files and _bytes(family) <= _SMALL_BYTES:
            family.compact_range(None, None)  # says nothing where it fails: then the files are still there
        if _files(family, 0) > most_files:
            family.set_options({_OFF: "false"})
            while _tiers(family) > MOST_NEW_FILES or _is_merging(database):  # RocksDB can wait itself, rocksdict not
                _pause(database)
            family.set_options({_OFF: "true"})
            while _is_merging(database):  # what began in between goes on
                _pause(database)


def _tiers(family: Rdict) -> int:
    """How many files may have a key: each of level 0, and one of each other level."""
    return _files(family, 0) + sum(_files(family, level) > 0 for level in range(1, _LEVELS))


def _bytes(family: Rdict) -> int:
    return family.property_int_value("rocksdb.total-sst-files-size") or 0


def _files(family: Rdict, level: int) -> int:
    return family.property_int_value(f"rocksdb.num-files-at-level{level}") or 0


def _is_merging(database: Rdict) -> bool:
    return bool(database.property_int_value("rocksdb.num-running-compactions"))


def _pause(database: Rdict) -> None:
    """A moment for RocksDB's threads. If they have failed, nothing would ever change, but every write raises why."""
    Event().wait(_POLL_SECONDS)
    database.write(WriteBatch(raw_mode=True))
