from __future__ import annotations

import signal
import subprocess
import sys

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelib.errors.kinds import ConfigurationError, RetryableError
from statelib.serdes import serde_for
from statelib.storage import Storage
from statelib.topics import append as append_module
from statelib.topics.append import append_records, distribute
from statelib.topics.archive import TopicArchive
from statelib.topics.delta.log import DeltaLog
from statelib.topics.parquet.schema import topic_schema
from statelib.topics.parquet.writer import FileLimits, PartitionWriter
from statelib.topics.partitioner import partition_for
from tests.topics.data import SCHEMA, batch_sizes, in_batches, topic_records


def without_offsets(rows):
    return topic_records(rows).drop_columns(["offset"])


def test_records_are_partitioned_and_numbered(tmp_path):
    archive = TopicArchive.create(str(tmp_path / "t"), SCHEMA, 3)
    records = without_offsets(range(50))
    assert append_records(archive, records.slice(0, 30), attempt="1", app_id="import", app_version=1)
    assert append_records(archive, records.slice(30).to_batches(), attempt="2", app_id="import", app_version=2)
    newest = archive.refresh()
    assert newest.rows == 50
    expected = {0: [], 1: [], 2: []}
    nulls = 0
    for row, record in enumerate(records.to_pylist()):
        nulls = 0 if row == 30 else nulls  # counted anew in each call
        key = serde_for(pa.string()).serialize(pa.array([record["key"]], pa.string()))
        partition = nulls % 3 if record["key"] is None else int(partition_for(key, 3)[0])
        nulls += record["key"] is None
        expected[partition].append({"offset": len(expected[partition]), **record})
    for partition in range(3):
        assert newest.reader(partition).read_all().to_pylist() == expected[partition]


@pytest.mark.parametrize("key", [pa.int64(), pa.int32(), pa.float64(), pa.binary(), pa.bool_()])
def test_keys_of_any_kind(tmp_path, key):
    schema = topic_schema(key, pa.int32())
    archive = TopicArchive.create(str(tmp_path / "t"), schema, 4)
    keys = pa.array(
        [b"a", b"b", b"c"] if key == pa.binary() else [0, 1, 2], pa.binary() if key == pa.binary() else None
    )
    records = pa.table({"key": keys.cast(key), "value": pa.array([1, 2, None], pa.int32()), "timestamp": [1, 2, 3]})
    assert append_records(archive, records, attempt="1", app_id="import", app_version=1)
    newest = archive.refresh()
    where = partition_for(serde_for(key).serialize(records["key"].combine_chunks()), 4)
    for partition in range(4):
        got = newest.reader(partition).read_all()
        assert got["key"].to_pylist() == [
            k for k, p in zip(records["key"].to_pylist(), where, strict=True) if p == partition
        ]


def test_a_repeat_adds_nothing_and_leaves_nothing(tmp_path):
    archive = TopicArchive.create(str(tmp_path / "t"), SCHEMA, 2)
    records = without_offsets(range(10))
    assert append_records(archive, records, attempt="1", app_id="import", app_version=1)
    files = archive.storage.list("partition=0") + archive.storage.list("partition=1")
    assert not append_records(archive, records, attempt="2", app_id="import", app_version=1)
    assert archive.storage.list("partition=0") + archive.storage.list("partition=1") == files


@pytest.mark.parametrize("same_transaction", [True, False])
def test_another_writer_is_quicker(tmp_path, monkeypatch, same_transaction):
    archive = TopicArchive.create(str(tmp_path / "t"), SCHEMA, 1)
    records = without_offsets(range(10))
    original = distribute

    def overtaken(*args):
        original(*args)
        monkeypatch.setattr(append_module, "distribute", original)
        assert append_records(
            archive, records, attempt="rival", app_id="import" if same_transaction else "x", app_version=1
        )

    monkeypatch.setattr(append_module, "distribute", overtaken)
    if same_transaction:
        assert not append_records(archive, records, attempt="1", app_id="import", app_version=1)
    else:
        with pytest.raises(RetryableError, match="another writer"):
            append_records(archive, records, attempt="1", app_id="import", app_version=1)
    assert archive.refresh().rows == 10
    assert [entry.path for entry in archive.storage.list("partition=0")] == [f.path for f in archive.refresh().files(0)]


@pytest.mark.parametrize("error", [ConfigurationError("may not be written"), RetryableError("does not answer")])
def test_the_files_of_a_commit_that_landed_stay(tmp_path, monkeypatch, error):
    archive = TopicArchive.create(str(tmp_path / "t"), SCHEMA, 1)

    def fail(log, version):
        raise error

    real = DeltaLog.sync
    monkeypatch.setattr(DeltaLog, "sync", fail)
    with pytest.raises(type(error), match=error.what):
        append_records(archive, without_offsets(range(10)), attempt="1", app_id="import", app_version=1)
    monkeypatch.setattr(DeltaLog, "sync", real)
    assert archive.refresh().reader(0).read_all().num_rows == 10
    assert not append_records(archive, without_offsets(range(10)), attempt="2", app_id="import", app_version=1)


@pytest.mark.parametrize(
    "change",
    [
        lambda table: table.append_column("offset", pa.array(range(5))),
        lambda table: table.append_column("partition", pa.array([0] * 5, pa.int32())),
        lambda table: table.drop_columns(["key"]),
        lambda table: table.append_column("colour", pa.array(range(5))),
        lambda table: table.set_column(2, "value", pa.array(range(5))),
    ],
    ids=["offsets given", "partitions given", "no key", "unknown column", "another type"],
)
def test_records_that_do_not_fit_leave_nothing(tmp_path, change):
    archive = TopicArchive.create(str(tmp_path / "t"), SCHEMA, 2)
    good = without_offsets(range(5))
    with pytest.raises(ConfigurationError):
        append_records(
            archive, [*good.to_batches(), *change(good).to_batches()], attempt="1", app_id="i", app_version=1
        )
    assert all(entry.path.startswith("_delta_log") for entry in archive.storage.list())


@given(st.data())
def test_batches_do_not_matter(data):
    rows = data.draw(st.integers(0, 60))
    records = without_offsets(range(rows))
    limits = FileLimits(row_group_rows=8, file_rows=16)
    descriptions = []
    for sizes in ([], data.draw(batch_sizes(rows))):
        storage = Storage("memory://")
        writers = {p: PartitionWriter(storage, SCHEMA, p, attempt="a", limits=limits) for p in range(3)}
        distribute(in_batches(records, sizes), writers, {0: 5, 1: 0, 2: 7})
        descriptions.append([writer.close() for writer in writers.values()])
    assert descriptions[0] == descriptions[1]


_APPEND_FOR_EVER = """
import itertools, sys
from statelib.topics.append import append_records
from statelib.topics.archive import TopicArchive
from tests.topics.data import topic_records
archive = TopicArchive.open(sys.argv[1])
for n in itertools.count():
    records = topic_records(range(n * 10, n * 10 + 10)).drop_columns(["offset"])
    append_records(archive, records, attempt=f"first-{n}", app_id="import", app_version=n)
    print(n, flush=True)
"""


@pytest.mark.parametrize("kill_after", [0, 3, 8])
def test_kill_and_run_again(tmp_path, kill_after):
    """A run that was killed and repeated from the start adds every record once."""
    archive = TopicArchive.create(str(tmp_path / "t"), SCHEMA, 2)
    command = [sys.executable, "-c", _APPEND_FOR_EVER, archive.uri]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        for line in process.stdout:
            if int(line) == kill_after:
                process.send_signal(signal.SIGKILL)
                break
    assert archive.refresh().last_transaction("import") >= kill_after, "what was acknowledged is there"
    for n in range(kill_after + 3):
        append_records(
            archive, without_offsets(range(n * 10, n * 10 + 10)), attempt=f"second-{n}", app_id="import", app_version=n
        )
    undisturbed = TopicArchive.create(str(tmp_path / "undisturbed"), SCHEMA, 2)
    for n in range(kill_after + 3):
        append_records(
            undisturbed, without_offsets(range(n * 10, n * 10 + 10)), attempt=str(n), app_id="import", app_version=n
        )
    ends = undisturbed.refresh().end_offsets()
    for partition in range(2):
        expected = undisturbed.refresh().reader(partition).read_all()
        assert archive.refresh().reader(partition, 0, ends[partition]).read_all().equals(expected)
