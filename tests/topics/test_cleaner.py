"""What is left of a partition that is compacted."""

from __future__ import annotations

import struct

import numpy as np
import pyarrow as pa
import pytest

from statelib.topics.archive import TopicArchive
from statelib.topics.cleaner import clean
from statelib.topics.cleaning import Cleaning, Expiry
from statelib.topics.parquet.schema import topic_schema
from statelib.topics.parquet.writer import FileLimits

SCHEMA = topic_schema(pa.binary(), pa.binary())
WINDOW = np.dtype([("time", ">i8"), ("sequence", ">i4")])


@pytest.fixture
def archive(tmp_path) -> TopicArchive:
    return TopicArchive.create(str(tmp_path / "log"), SCHEMA, 1)


def filled(archive, *parts):
    """A file for each part: (offset, key, value, timestamp)."""
    for n, part in enumerate(parts):
        offsets, keys, values, timestamps = zip(*part, strict=True)
        with archive.writer(0, attempt=f"a{n}") as writer:
            writer.write(pa.table({
                "offset": pa.array(offsets, pa.int64()),
                "timestamp": pa.array(timestamps, pa.timestamp("ms", "UTC")),
                "key": pa.array(keys, pa.binary()),
                "value": pa.array(values, pa.binary()),
            }))  # fmt: skip
        archive.commit(writer.close(), app_id="job", app_version=n + 1)
    return archive.refresh()


def left(archive, *, limits=None, memory_bytes=1 << 20, **settings):
    """Offsets of the records that stay, by file."""
    cleaning = Cleaning(tuple(archive.files(0)), **{"dirty_offset": 0, **settings})
    files = clean(archive, cleaning, attempt="m", limits=limits or FileLimits(), memory_bytes=memory_bytes)
    before = archive.reader(0).read_all()
    archive.replace(cleaning.files, files, [("clean", 1)], time_ms=0, drops_records=True)
    after = archive.refresh()
    stays = pa.array(
        [offset in after.reader(0).read_all()["offset"].to_pylist() for offset in before["offset"].to_pylist()]
    )
    assert after.reader(0).read_all() == before.filter(stays)
    assert after.end_offsets() == archive.end_offsets()
    return [file_offsets(after, file) for file in after.files(0)]


def file_offsets(archive, file):
    return archive.reader(0, file.first_offset, file.last_offset + 1).read_all()["offset"].to_pylist()


def test_the_last_record_of_each_key_stays(archive):
    log = filled(archive, [(0, b"a", b"1", 9), (1, b"b", b"1", 9)], [(2, b"a", b"2", 5), (3, b"c", None, 5)])
    assert left(log) == [[1, 2, 3]]


def test_of_a_versioned_store_that_of_the_largest_timestamp_stays(archive):
    clean_part = [(0, b"a", b"1", 9), (1, b"b", b"1", 9), (2, b"c", b"1", 9)]
    log = filled(archive, clean_part, [(3, b"a", b"2", 9), (4, b"b", b"2", 5), (5, b"c", b"2", 10), (6, b"d", b"2", 1)])
    assert left(log, dirty_offset=3, by_timestamp=True) == [[1, 3, 5, 6]]


def test_a_tombstone_that_readers_have_seen_goes_but_not_the_end(archive):
    log = filled(archive, [(0, b"a", b"1", 0), (1, b"a", None, 0), (2, b"b", None, 0)], [(3, b"c", None, 0)])
    assert left(log, tombstones_before=2) == [[2, 3]]


def test_the_end_stays_even_as_an_old_tombstone(archive):
    log = filled(archive, [(0, b"a", b"1", 0), (1, b"b", None, 0)])
    assert left(log, tombstones_before=2) == [[0, 1]]


def test_windows_that_have_expired_go(archive):
    def key(start):
        return b"key" + struct.pack(">qi", start, 0)

    log = filled(
        archive, [(0, key(0), b"1", 50), (1, key(90), b"1", 50), (2, key(91), b"1", 50), (3, key(101), b"1", 50)]
    )
    assert left(log, expiry=Expiry(11, WINDOW)) == [[2, 3]]


def test_records_expire_by_their_own_time_where_keys_have_none(archive):
    log = filled(archive, [(0, b"a", b"1", 89), (1, b"b", b"1", 90)], [(2, b"c", b"1", 100), (3, b"d", b"1", 95)])
    assert left(log, expiry=Expiry(11, None)) == [[1, 2, 3]]


@pytest.mark.parametrize("dirty_offset", [0, 3])
def test_the_record_of_the_largest_time_stays_even_as_an_old_tombstone(archive, dirty_offset):
    def key(start):
        return b"key" + struct.pack(">qi", start, 0)

    rows = [
        (0, key(4), None, 0),
        (1, key(9), None, 0),
        (2, key(8), b"1", 0),
        (3, key(5), None, 0),
        (4, key(6), b"1", 0),
    ]
    log = filled(archive, rows[:3], rows[3:])
    assert left(log, dirty_offset=dirty_offset, tombstones_before=3, expiry=Expiry(100, WINDOW)) == [[1, 2, 3, 4]]


@pytest.mark.thorough
def test_little_memory_and_small_files_change_no_record(archive):
    rows = [(n, b"key-%d" % (n * n % 3_001), b"x", 0) for n in range(5_000)]
    last = {key: offset for offset, key, _, _ in rows}
    log = filled(archive, rows[:2_000], rows[2_000:])
    limits = FileLimits(row_group_rows=500, file_rows=700)
    files = left(log, memory_bytes=30_000, limits=limits)
    assert len(files) > 1
    assert [offset for file in files for offset in file] == sorted(last.values())
