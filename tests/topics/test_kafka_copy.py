"""What became of every offset of a topic that is copied, whoever was stopped where."""

from __future__ import annotations

import json

import pytest

from statelib.errors.kinds import ConfigurationError, CorruptedDataError, FencedError
from statelib.topics import archive as archive_module
from statelib.topics import kafka_copy
from statelib.topics.archive import TopicArchive
from statelib.topics.kafka_copy import CopiedRange, KafkaCopy, set_aside
from tests.topics.data import SCHEMA, topic_records

ORIGIN = "cluster/topic"


@pytest.fixture
def archive(tmp_path):
    return TopicArchive.create(str(tmp_path / "clicks"), SCHEMA, 2)


@pytest.fixture
def quarantine(tmp_path):
    return TopicArchive.create(str(tmp_path / "clicks-quarantine"), SCHEMA, 2)


def write(archive, partition, offsets, attempt="kafka.a"):
    with archive.writer(partition, attempt=attempt) as writer:
        writer.write(topic_records(offsets))
    return list(writer.close())


def figures(copy):
    return [(p.partition, p.begin, p.position, p.read, p.quarantined, p.lost, p.absent) for p in copy.partitions()]


def test_a_copy_that_has_not_begun(archive):
    copy = KafkaCopy(archive)
    assert copy.position(0) is None
    assert copy.quarantine_position(0) is None
    assert copy.partitions() == []
    copy.check_origin(ORIGIN)


def test_every_offset_is_accounted_for(archive, quarantine):
    ranges = {0: CopiedRange(5, 20), 1: CopiedRange(0, 3)}
    set_aside(quarantine, write(quarantine, 0, [6, 7]), {0: (None, 20), 1: (None, 3)})
    KafkaCopy(archive).advance(write(archive, 0, [5, 8, 19]), ranges, origin=ORIGIN)
    copy = KafkaCopy(archive.refresh(), quarantine.refresh())
    assert figures(copy) == [(0, 5, 20, 3, 2, 0, 10), (1, 0, 3, 0, 0, 0, 3)]
    copy.advance(write(archive, 0, [30]), {0: CopiedRange(20, 31, lost=6)}, origin=ORIGIN)
    copy = KafkaCopy(archive.refresh(), quarantine.refresh())
    assert figures(copy) == [(0, 5, 31, 4, 2, 6, 14), (1, 0, 3, 0, 0, 0, 3)]
    copy.advance([], {0: CopiedRange(31, 40, lost=9)}, origin=ORIGIN)
    assert figures(KafkaCopy(archive.refresh())) == [(0, 5, 40, 4, 0, 15, 16), (1, 0, 3, 0, 0, 0, 3)]


def test_of_two_copies_one_wins(archive):
    mine, other = KafkaCopy(archive), KafkaCopy(archive)
    ranges = {0: CopiedRange(0, 4)}
    mine.advance(write(archive, 0, range(4), "kafka.mine"), ranges, origin=ORIGIN)
    with pytest.raises(FencedError, match="somebody else has moved hindstream.kafka.position/0 from None to 4"):
        other.advance(write(archive, 0, range(4), "kafka.other"), ranges, origin=ORIGIN)
    longer = {0: CopiedRange(0, 6)}
    with pytest.raises(FencedError):
        other.advance(write(archive, 0, range(6), "kafka.longer"), longer, origin=ORIGIN)
    assert archive.refresh().rows == 4


def test_two_copies_of_different_partitions_both_count(archive):
    mine, other = KafkaCopy(archive), KafkaCopy(archive)
    mine.advance(write(archive, 0, range(4)), {0: CopiedRange(0, 4)}, origin=ORIGIN)
    other.advance(write(archive, 1, range(2)), {1: CopiedRange(0, 2)}, origin=ORIGIN)
    assert figures(KafkaCopy(archive.refresh())) == [(0, 0, 4, 4, 0, 0, 0), (1, 0, 2, 2, 0, 0, 0)]


def test_a_commit_that_landed_but_was_reported_failed_is_made_once(archive, monkeypatch):
    copy = KafkaCopy(archive)
    files = write(archive, 0, range(4))
    real = archive_module.DeltaLog.sync

    def lost_answer(self, version):
        monkeypatch.setattr(archive_module.DeltaLog, "sync", real)
        raise ConnectionError("no answer")

    monkeypatch.setattr(archive_module.DeltaLog, "sync", lost_answer)
    with pytest.raises(ConnectionError):
        copy.advance(files, {0: CopiedRange(0, 4)}, origin=ORIGIN)
    copy.advance(files, {0: CopiedRange(0, 4)}, origin=ORIGIN)
    assert archive.refresh().rows == 4


def test_undecodable_records_are_not_set_aside_twice(archive, quarantine):
    set_aside(quarantine, write(quarantine, 0, [1, 2]), {0: (None, 4)})  # and stopped here
    copy = KafkaCopy(archive, quarantine.refresh())
    assert (copy.position(0), copy.quarantine_position(0)) == (None, 4)
    assert figures(copy) == []
    set_aside(copy.quarantine, [], {0: (4, 3)})  # a copy of less than before moves nothing
    assert quarantine.refresh().version == copy.quarantine.version
    set_aside(copy.quarantine, write(quarantine, 0, [6]), {0: (4, 8)})
    with pytest.raises(FencedError):
        set_aside(copy.quarantine, write(quarantine, 0, [6], "kafka.b"), {0: (4, 8)})
    copy.advance(write(archive, 0, [0, 3]), {0: CopiedRange(0, 4)}, origin=ORIGIN)
    assert figures(KafkaCopy(archive.refresh(), quarantine.refresh())) == [(0, 0, 4, 2, 2, 0, 0)], "6 is beyond"


def test_another_topic_is_refused(archive):
    copy = KafkaCopy(archive)
    copy.advance([], {0: CopiedRange(0, 4)}, origin=ORIGIN)
    copy = KafkaCopy(archive.refresh())
    copy.check_origin(ORIGIN)
    with pytest.raises(ConfigurationError, match="copies another topic"):
        copy.check_origin("cluster/topic created again")


def test_golden_transactions(archive):
    KafkaCopy(archive).advance([], {1: CopiedRange(5, 40, lost=9)}, origin=ORIGIN)
    entry = archive.storage.get("_delta_log/00000000000000000001.json").decode()
    said = [json.loads(line)["txn"] for line in entry.splitlines() if '"txn"' in line]
    assert {one["appId"]: one["version"] for one in said if one["appId"].startswith("hindstream.kafka")} == {
        "hindstream.kafka.format": 1,
        "hindstream.kafka.topic": 3_118_761_889_355_315_219,
        "hindstream.kafka.begin/1": 5,
        "hindstream.kafka.position/1": 40,
        "hindstream.kafka.lost/1": 9,
    }


def test_a_newer_format_is_refused(archive, monkeypatch):
    monkeypatch.setattr(kafka_copy, "FORMAT_VERSION", 2)
    KafkaCopy(archive).advance([], {0: CopiedRange(0, 4)}, origin=ORIGIN)
    monkeypatch.undo()
    with pytest.raises(ConfigurationError, match="has format 2, this Hindstream knows up to 1"):
        KafkaCopy(archive.refresh()).check_origin(ORIGIN)


def test_an_archive_of_somebody_else_is_refused(archive):
    archive.commit(write(archive, 0, range(3)), app_id="job", app_version=1)
    with pytest.raises(ConfigurationError, match="has records of another origin"):
        KafkaCopy(archive.refresh()).check_origin(ORIGIN)


def test_files_must_be_there_and_follow(archive):
    copy = KafkaCopy(archive)
    files = write(archive, 0, range(4))
    archive.storage.delete(files[0].path)
    with pytest.raises(CorruptedDataError, match="missing"):
        copy.advance(files, {0: CopiedRange(0, 4)}, origin=ORIGIN)
    archive.commit(write(archive, 0, range(10)), app_id="job", app_version=1)
    with pytest.raises(ConfigurationError, match="somebody else writes to it"):
        copy.advance(write(archive, 0, range(4), "kafka.c"), {0: CopiedRange(0, 4)}, origin=ORIGIN)
