"""A topic in short, against a look at all its records."""

from __future__ import annotations

import pyarrow as pa
import pytest

from statelib.errors.kinds import CorruptedDataError
from statelib.storage import Storage
from statelib.topics.archive import TopicArchive
from statelib.topics.delta.log import ArchiveNotFoundError
from statelib.topics.disorder import Bounds
from statelib.topics.places import archive_path, topics_in
from statelib.topics.summary import UnreadableTopic, records_before, scanned, summaries, summarize
from tests.topics.data import SCHEMA, VALUE, topic_records

TIMES = {0: [[10, 20, 30], [25, 40]], 2: [[7], [7], [3]]}


@pytest.fixture(params=["local", "s3"])
def warehouse(request, tmp_path) -> Storage:
    options = request.getfixturevalue("s3_options") if request.param == "s3" else {}
    return Storage(f"s3://warehouse/{tmp_path.name}" if options else str(tmp_path), options)


@pytest.fixture
def archive(warehouse) -> TopicArchive:
    made = TopicArchive.create(warehouse.uri(archive_path("flights")), SCHEMA, 3, options=warehouse.options)
    files = []
    for partition, parts in TIMES.items():
        start = 100 * partition
        for number, times in enumerate(parts):
            with made.writer(partition, attempt=f"a{number}") as writer:
                writer.write(topic_records(range(start, start + len(times)), times))
            files += writer.close()
            start += len(times)
    made.commit(files, app_id="job", app_version=1)
    return made.refresh()


def test_a_summary_says_what_the_log_says(archive) -> None:
    found = summarize(archive)
    assert (found.topic, found.version, found.key, found.value) == ("flights", 1, pa.string(), VALUE)
    total = found.total
    assert (total.records, total.files, total.first_ms, total.last_ms) == (8, 5, 3, 40)
    assert total.size_bytes == sum(file.size_bytes for file in archive.all_files())
    assert [one.records for one in found.partitions] == [5, 0, 3]
    assert [(offsets.start, offsets.end) for offsets in found.offsets] == [(0, 5), (0, 0), (200, 203)]
    assert found.partitions[2].disorder.late_records == Bounds(1, 1), "a record a file leaves nothing open"
    assert found.partitions[0].disorder.late_records == Bounds(1, 3)
    assert found.total.disorder.late_records == Bounds(2, 4)
    assert found.total.disorder.max_late_ms == Bounds(5, 20)


def test_a_scan_leaves_nothing_open(archive) -> None:
    found = scanned(archive, summarize(archive))
    assert [one.disorder.late_records for one in found.partitions] == [Bounds(1, 1), Bounds(0, 0), Bounds(1, 1)]
    assert found.total.disorder.late_records == Bounds(2, 2)
    assert found.total.disorder.max_late_ms == Bounds(5, 5)


def test_only_partitions_that_are_open_are_read(archive, monkeypatch) -> None:
    read = []
    monkeypatch.setattr(
        type(archive), "reader", lambda self, partition, **_: read.append(partition) or iter(()), raising=True
    )
    scanned(archive, summarize(archive))
    assert read == [0]


def test_records_before_offsets_are_counted_by_the_log(archive) -> None:
    assert records_before(archive, {0: 5, 1: 0, 2: 203}) == 8
    assert records_before(archive, {0: 4, 2: 201}) == 5
    assert records_before(archive, {0: 0, 2: 0}) == 0


def test_all_topics_are_listed_the_broken_ones_too(warehouse, archive) -> None:
    TopicArchive.create(warehouse.uri(archive_path("empty")), SCHEMA, 1, options=warehouse.options)
    warehouse.put("topics/staged/partition=0/1.parquet", b"x")
    broken = TopicArchive.create(warehouse.uri(archive_path("broken")), SCHEMA, 1, options=warehouse.options)
    warehouse.put("topics/broken/_delta_log/00000000000000000000.json", b"{}")
    assert topics_in(warehouse) == ["broken", "empty", "flights", "staged"]
    bad, empty, flights, staged = summaries(warehouse)
    assert isinstance(bad, UnreadableTopic)
    assert broken.topic == "broken"
    assert isinstance(bad.error, CorruptedDataError)
    assert (empty.total.records, empty.total.first_ms, empty.total.disorder.is_exact) == (0, None, True)
    assert flights.total.records == 8
    assert isinstance(staged.error, ArchiveNotFoundError)


def test_there_may_be_no_topics(tmp_path) -> None:
    assert summaries(Storage(str(tmp_path))) == []
