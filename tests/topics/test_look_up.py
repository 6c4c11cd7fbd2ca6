"""Records by key, offset and time, against a filter over all of them; and which files are opened for that."""

from __future__ import annotations

import pyarrow as pa
import pytest

from statelib.records.key_column import KeyColumn
from statelib.topics.append import append_records
from statelib.topics.archive import TopicArchive
from statelib.topics.look_up import Stretch, find, partitions_of
from statelib.topics.parquet.schema import TIMESTAMP, topic_schema
from statelib.topics.partitioner import partition_for

VALUE = pa.struct([("n", pa.int64())])
KEYS = [None, "a", "b", "c", "long key", ""]


@pytest.fixture
def archive(tmp_path) -> TopicArchive:
    """Three commits of sixty records; the last ones of each are late."""
    schema = topic_schema(pa.string(), VALUE)
    made = TopicArchive.create(str(tmp_path / "events"), schema, 3)
    columns = pa.schema([("key", pa.string()), ("value", VALUE), ("timestamp", TIMESTAMP)])
    for commit in range(3):
        times = [1000 * commit + (n if n < 50 else n - 40) for n in range(60)]
        rows = [{"key": KEYS[n % 6], "value": {"n": 60 * commit + n}, "timestamp": times[n]} for n in range(60)]
        records = pa.Table.from_pylist(rows, columns)
        append_records(made, records, attempt=f"a{commit}", app_id="test", app_version=commit + 1)
    return made.refresh()


def numbers(archive, within: Stretch, keys=()) -> list[int]:
    found = []
    for partition in range(archive.partitions):
        for table in find(archive, partition, within, keys):
            assert table.num_rows
            found += [value["n"] for value in table["value"].to_pylist()]
    return sorted(found)


def expected(archive, keep) -> list[int]:
    rows = [row for p in range(archive.partitions) for row in archive.reader(p).read_all().to_pylist()]
    return sorted(row["value"]["n"] for row in rows if keep(row, int(row["timestamp"].timestamp() * 1000)))


@pytest.mark.parametrize(
    "within",
    [
        Stretch(),
        Stretch(start_offset=7),
        Stretch(start_offset=7, end_offset=22),
        Stretch(start_ms=1010),
        Stretch(start_ms=1010, end_ms=1020),
        Stretch(end_ms=12),
        Stretch(start_offset=3, end_offset=40, start_ms=5, end_ms=2005),
        Stretch(start_ms=99_999),
    ],
)
@pytest.mark.parametrize("keys", [[], ["a"], ["b", "long key"], ["nobody"], [None], [""]])
def test_it_finds_what_a_filter_finds(archive, within, keys) -> None:
    def keep(row, time_ms) -> bool:
        return (
            (not keys or row["key"] in keys)
            and within.start_offset <= row["offset"] < (within.end_offset or 10**9)
            and (within.start_ms or -1) <= time_ms < (within.end_ms or 10**9)
        )

    assert numbers(archive, within, keys) == expected(archive, keep)


def test_only_files_that_may_have_one_are_opened(archive, monkeypatch) -> None:
    opened = []
    reader = type(archive).reader

    def noted(self, partition, start, end, **how):
        opened.append((partition, start, end))
        return reader(self, partition, start, end, **how)

    monkeypatch.setattr(type(archive), "reader", noted)
    list(find(archive, 0, Stretch(start_ms=1000, end_ms=1999)))
    files = archive.files(0)
    assert len(files) == 3
    assert opened == [(0, files[1].first_offset, files[1].last_offset + 1)]
    opened.clear()
    list(find(archive, 0, Stretch(start_offset=files[2].first_offset + 1)))
    assert opened == [(0, files[2].first_offset + 1, files[2].last_offset + 1)]


def test_a_key_is_looked_for_in_its_own_partition_first(archive) -> None:
    own = int(partition_for(KeyColumn(pa.array(["a"])).serialized(), 3)[0])
    assert partitions_of(archive, ["a"])[0] == own
    assert sorted(partitions_of(archive, ["a"])) == [0, 1, 2]
    assert partitions_of(archive, []) == [0, 1, 2]


def test_of_a_windowed_key_the_plain_one_is_enough(tmp_path) -> None:
    time = pa.timestamp("us", "UTC")
    windowed = pa.struct([("key", pa.string()), ("window_start", time), ("window_end", time)])
    archive = TopicArchive.create(str(tmp_path / "counts"), topic_schema(windowed, pa.int64()), 2)
    own = int(partition_for(pa.array([b"a"]), 2)[0])
    schema = archive.schema
    rows = [
        {
            "offset": n,
            "timestamp": n,
            "key": {"key": key, "window_start": 10 * n, "window_end": 10 * n + 10},
            "value": n,
        }
        for n, key in enumerate("aba")
    ]
    with archive.writer(own, attempt="a") as writer:
        writer.write(pa.Table.from_pylist(rows, schema))
    archive.commit(writer.close(), app_id="x", app_version=1)
    archive = archive.refresh()
    assert partitions_of(archive, [{"key": "a"}])[0] == own
    found = [value for table in find(archive, own, Stretch(), [{"key": "a"}]) for value in table["value"].to_pylist()]
    assert found == [0, 2]
