from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from statelib.errors.kinds import ConfigurationError, CorruptedDataError, RetryableError
from statelib.topics import archive as archive_module
from statelib.topics import version as version_module
from statelib.topics.archive import TopicArchive
from statelib.topics.parquet.schema import topic_schema
from tests.topics.data import SCHEMA, VALUE, topic_records


@pytest.fixture(params=["local", "s3"])
def archive(request, tmp_path) -> TopicArchive:
    if request.param == "s3":
        options = request.getfixturevalue("s3_options")
        return TopicArchive.create(f"s3://warehouse/{tmp_path.name}/flights", SCHEMA, 3, options=options)
    return TopicArchive.create(str(tmp_path / "flights"), SCHEMA, 3)


def write(archive, partition, offsets, timestamps=None, attempt="a"):
    with archive.writer(partition, attempt=attempt) as writer:
        writer.write(topic_records(offsets, timestamps))
    return list(writer.close())


def test_an_empty_archive(archive):
    assert (archive.topic, archive.partitions, archive.schema) == ("flights", 3, SCHEMA)
    assert archive.end_offsets() == archive.start_offsets() == {0: 0, 1: 0, 2: 0}
    assert archive.files(0) == []
    assert archive.max_timestamp_ms() is None
    assert archive.last_transaction("job") is None
    assert archive.reader(1).read_all().equals(SCHEMA.empty_table())


def test_commit_and_read(archive):
    files = write(archive, 0, range(5)) + write(archive, 2, [7, 9], [-5, 1_357_034_400_123])
    assert archive.refresh().files(0) == [], "nothing is visible before the commit"
    assert archive.commit(files, app_id="job", app_version=1)
    newest = archive.refresh()
    assert newest.version == archive.version + 1
    assert newest.end_offsets() == {0: 5, 1: 0, 2: 10}
    assert newest.start_offsets() == {0: 0, 1: 0, 2: 7}
    assert newest.rows == 7
    assert newest.max_timestamp_ms() == 1_357_034_400_123
    assert newest.last_transaction("job") == 1
    not_in_the_log = {"null_keys": None, "null_values": None, "sha256": None}
    assert newest.files(0) + newest.files(2) == [file.model_copy(update=not_in_the_log) for file in files]
    assert newest.reader(0, 2).read_all().equals(topic_records(range(2, 5)))
    assert newest.reader(2).read_all().equals(topic_records([7, 9], [-5, 1_357_034_400_123]))
    again = TopicArchive.open(archive.uri, archive.version, options=archive.storage.options)
    assert again.files(0) == [], "an older version stays as it was"


def test_a_repeated_commit_changes_nothing(archive):
    files = write(archive, 0, range(5))
    assert archive.commit(files, app_id="job", app_version=2)
    version = archive.refresh().version
    for opened in (archive, archive.refresh()):
        assert opened.commit(files, app_id="job", app_version=2), "they are part of the topic"
        assert not opened.commit(write(archive, 0, range(5), attempt="b"), app_id="job", app_version=2)
        assert not opened.commit(write(archive, 0, range(5, 9)), app_id="job", app_version=1)
        opened.storage.delete(
            ["partition=0/00000000000000000000-b.parquet", "partition=0/00000000000000000005-a.parquet"]
        )
    assert archive.refresh().version == version
    assert archive.commit([], app_id="another job", app_version=1), "an empty commit is one as well"
    assert archive.refresh().last_transaction("another job") == 1


def test_a_commit_that_landed_but_was_reported_failed(archive, monkeypatch):
    """The store takes the commit and then fails to say so: it is found there."""
    files = write(archive, 0, range(5))
    original = DeltaTable.create_write_transaction

    def lands_and_fails(self, *args, **settings):
        original(self, *args, **settings)
        raise OSError("connection reset")

    with monkeypatch.context() as patched:
        patched.setattr(DeltaTable, "create_write_transaction", lands_and_fails)
        assert archive.commit(files, app_id="job", app_version=1)
    assert archive.refresh().rows == 5


def test_a_commit_that_did_not_land_is_reported(archive, monkeypatch):
    files = write(archive, 0, range(5))

    def fails(self, *args, **settings):
        raise OSError("connection reset")

    with monkeypatch.context() as patched:
        patched.setattr(DeltaTable, "create_write_transaction", fails)
        with pytest.raises(RetryableError, match="connection reset"):
            archive.commit(files, app_id="job", app_version=1)
    assert archive.refresh().rows == 0
    assert archive.commit(files, app_id="job", app_version=1)


def test_a_lost_race_looks_again(archive):
    """Another writer commits after the archive was opened."""
    files = write(archive, 0, range(5))
    rival = write(archive, 1, range(3), attempt="rival")
    assert archive.refresh().commit(rival, app_id="rival", app_version=1)
    assert archive.end_offsets() == {0: 0, 1: 0, 2: 0}, "it still is as it was when it was opened"
    assert archive.commit(files, app_id="job", app_version=1)
    assert archive.refresh().end_offsets() == {0: 5, 1: 3, 2: 0}


def test_the_same_transaction_lost_by_a_hair(archive):
    """As above, but the rival is a twin: the same application transaction."""
    files, twins = write(archive, 0, range(5)), write(archive, 0, range(5), attempt="twin")
    assert archive.refresh().commit(twins, app_id="job", app_version=1)
    assert not archive.has_committed("job", 1)
    assert not archive.commit(files, app_id="job", app_version=1)
    assert [file.path for file in archive.refresh().files(0)] == [twins[0].path]


def test_offsets_that_the_topic_has_already(archive):
    assert archive.commit(write(archive, 1, range(5)), app_id="job", app_version=1)
    with pytest.raises(ConfigurationError, match=r"up to 4 already.*offset 4"):
        archive.commit(write(archive, 1, [4, 5], attempt="b"), app_id="other", app_version=1)
    twice = write(archive, 0, [3, 4]) + write(archive, 0, [4, 5])
    with pytest.raises(ConfigurationError, match="up to 4 already"):
        archive.commit(twice, app_id="other", app_version=1)


def test_files_that_are_not_there_or_have_changed(archive):
    (file,) = write(archive, 1, range(5))
    with pytest.raises(CorruptedDataError, match="has changed"):
        archive.commit([file.model_copy(update={"size_bytes": 1})], app_id="job", app_version=1)
    archive.storage.delete(file.path)
    with pytest.raises(CorruptedDataError, match="is missing"):
        archive.commit([file], app_id="job", app_version=1)
    assert archive.refresh().version == archive.version


def test_who_comes_so_late_that_its_files_were_merged_away_has_nothing_to_do(archive):
    """A driver that slept: another has done the same, and others have replaced the files and deleted them."""
    files = write(archive, 0, range(3)) + write(archive, 0, range(3, 5), attempt="b")
    merged, again = (write(archive, 0, range(5), attempt=attempt) for attempt in ("m", "n"))
    first = archive.refresh()
    archive.commit(files, app_id="job", app_version=1)
    second = archive.refresh()
    second.replace(files, merged, [("rewrites", 1)], time_ms=0)
    archive.refresh().replace(merged, again, [("rewrites", 2)], time_ms=0)
    archive.storage.delete([file.path for file in (*files, *merged)])
    assert first.commit(files, app_id="job", app_version=1) is False
    second.replace(files, merged, [("rewrites", 1)], time_ms=0)
    assert archive.refresh().rows == 5
    with pytest.raises(CorruptedDataError, match="a file to be committed is missing"):
        first.commit(files, app_id="job", app_version=2)


def test_partitions_that_are_not_there(archive):
    with pytest.raises(ConfigurationError, match="partitions 0 to 2"):
        archive.files(3)
    with pytest.raises(ConfigurationError, match="partitions 0 to 2"):
        archive.writer(-1, attempt="a")


def test_create_open_ensure(archive, tmp_path):
    options = archive.storage.options
    with pytest.raises(ConfigurationError, match="a table already"):
        TopicArchive.create(archive.uri, SCHEMA, 3, options=options)
    assert TopicArchive.ensure(archive.uri, SCHEMA, 3, options=options).version == archive.version
    assert TopicArchive.ensure(f"{archive.uri}-2", SCHEMA, 1, topic="two", options=options).topic == "two"
    with pytest.raises(ConfigurationError, match="3 partitions, not 4"):
        TopicArchive.ensure(archive.uri, SCHEMA, 4, options=options)
    with pytest.raises(ConfigurationError, match="column key is string, not int64"):
        TopicArchive.ensure(archive.uri, topic_schema(pa.int64(), VALUE), 3, options=options)
    with pytest.raises(ConfigurationError, match=r"no topic archive.*archive the topic first"):
        TopicArchive.open(f"{archive.uri}-3", options=options)
    with pytest.raises(ConfigurationError, match="no version 17"):
        TopicArchive.open(archive.uri, 17, options=options)
    with pytest.raises(ConfigurationError, match="0 partitions"):
        TopicArchive.create(f"{archive.uri}-4", SCHEMA, 0, options=options)


def test_opening_what_is_not_there_makes_nothing(tmp_path):
    with pytest.raises(ConfigurationError):
        TopicArchive.open(str(tmp_path / "typo"))
    assert list(tmp_path.iterdir()) == []


def test_tables_that_are_no_topic_archives(tmp_path):
    write_deltalake(tmp_path / "table", pa.table({"a": [1]}))
    with pytest.raises(ConfigurationError, match="not a topic archive"):
        TopicArchive.open(str(tmp_path / "table"))


def test_a_newer_format_is_refused(tmp_path, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(archive_module, "FIRST_FORMAT_VERSION", 3)
        patched.setattr(version_module, "FORMAT_VERSION", 3)
        TopicArchive.create(str(tmp_path / "t"), SCHEMA, 1)
    with pytest.raises(ConfigurationError, match=r"format 3.*up to 2.*newer Hindstream"):
        TopicArchive.open(str(tmp_path / "t"))


def test_an_archive_of_format_1_is_read():
    """Written by the first version of Hindstream, and never written again."""
    archive = TopicArchive.open(str(Path(__file__).parent / "data-format-1"))
    assert archive.partitions == 2
    assert archive.end_offsets() == {0: 24, 1: 12}
    assert archive.last_transaction("fixture") == 1
    assert archive.reader(0).read_all().equals(topic_records([*range(20), 23]))
    assert archive.reader(1).read_all().equals(topic_records([10, 11], [-1, None]))


def test_the_log_stays_cheap_to_read(tmp_path):
    """The log is summed up every ten commits, and nothing is lost by it."""
    archive = TopicArchive.create(str(tmp_path / "t"), SCHEMA, 1)
    for n in range(52):
        files = write(archive, 0, [n]) if n % 10 == 0 else []
        assert archive.commit(files, app_id=f"job-{n % 3}", app_version=n)
    log = tmp_path / "t" / "_delta_log"
    checkpoints = sorted(path.name.partition(".")[0] for path in log.glob("*.checkpoint*.parquet"))
    assert [int(version) for version in checkpoints] == [9, 19, 29, 39, 49]
    for path in log.glob("000*.json"):
        if path.stem < checkpoints[-1]:
            path.unlink()  # what a checkpoint replaces
    newest = archive.refresh()
    assert [newest.last_transaction(f"job-{n}") for n in range(3)] == [51, 49, 50]
    assert newest.reader(0).read_all().equals(topic_records([0, 10, 20, 30, 40, 50]))
    assert not newest.commit([], app_id="job-1", app_version=49)


def test_expired_entries_of_the_log_go_with_the_next_checkpoint(tmp_path):
    archive = TopicArchive.create(str(tmp_path / "t"), SCHEMA, 1)
    log = tmp_path / "t" / "_delta_log"

    def commit(n):
        assert archive.refresh().commit(write(archive, 0, [n]), app_id="job", app_version=n)
        return sorted(int(path.stem) for path in log.glob("0*.json"))

    for n in range(1, 15):
        commit(n)
    for path in log.iterdir():
        os.utime(path, (0, 0))  # older than any retention
    assert [commit(n) for n in range(15, 19)] == [list(range(n + 1)) for n in range(15, 19)]
    assert commit(19)[-1] == 19
    assert commit(19 + 1)[0] >= 9, "what the checkpoint at version 9 replaces"
    newest = archive.refresh()
    assert newest.reader(0).read_all().equals(topic_records(range(1, 21)))
    assert newest.last_transaction("job") == 20


def test_wide_values_do_not_push_offsets_out_of_the_statistics(tmp_path):
    value = pa.struct([(f"field_{n}", pa.int64()) for n in range(100)])
    schema = topic_schema(pa.string(), value)
    archive = TopicArchive.create(str(tmp_path / "t"), schema, 1)
    row = {f"field_{n}": n for n in range(100)}
    with archive.writer(0, attempt="a") as writer:
        columns = {"offset": [4, 5], "timestamp": [1, 2], "key": ["a", None], "value": [row, None]}
        writer.write(pa.table(columns, schema=schema.remove(4).set(1, pa.field("timestamp", pa.int64()))))
    archive.commit(writer.close(), app_id="job", app_version=1)
    (file,) = archive.refresh().files(0)
    assert (file.first_offset, file.last_offset, file.min_timestamp_ms, file.max_timestamp_ms) == (4, 5, 1, 2)


_COMMIT_MANY = """
import sys
from statelib.topics.archive import TopicArchive
from tests.topics.data import topic_records
uri, who, partition, app_id = sys.argv[1:]
archive = TopicArchive.open(uri)
sys.stdin.read(1)
for n in range(15):
    with archive.writer(int(partition), attempt=f"{who}-{n}") as writer:
        writer.write(topic_records([n]))
    print(n, int(archive.commit(writer.close(), app_id=app_id, app_version=n)), flush=True)
"""


def race(uri, app_ids, partitions):
    """Runs two processes that commit 15 times each; gives the versions that each of them made."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", _COMMIT_MANY, uri, f"writer-{i}", str(partitions[i]), app_ids[i]],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for i in range(2)
    ]  # fmt: skip
    for process in processes:
        process.stdin.write("!")
        process.stdin.flush()
    outputs = [process.communicate()[0].split("\n")[:-1] for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    return [[int(line.split()[0]) for line in output if line.endswith(" 1")] for output in outputs]


def test_two_processes_with_the_same_transactions(tmp_path):
    """Zombie and successor: each transaction lands once, whoever it was."""
    archive = TopicArchive.create(str(tmp_path / "t"), SCHEMA, 2)
    won = race(archive.uri, ["job", "job"], [0, 0])
    assert sorted(won[0] + won[1]) == list(range(15))
    assert archive.refresh().reader(0).read_all().equals(topic_records(range(15)))


def test_two_processes_with_transactions_of_their_own(tmp_path):
    archive = TopicArchive.create(str(tmp_path / "t"), SCHEMA, 2)
    won = race(archive.uri, ["job-0", "job-1"], [0, 1])
    assert won == [list(range(15)), list(range(15))]
    for partition in range(2):
        assert archive.refresh().reader(partition).read_all().equals(topic_records(range(15)))
