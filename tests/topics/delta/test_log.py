"""Damage to a topic's Delta log: `tests.faults.corruption` has it in a whole job."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from statelib.errors.kinds import CorruptedDataError, HindstreamError
from statelib.topics.archive import TopicArchive
from statelib.topics.delta import log as delta_log
from statelib.topics.delta.file_index import FileIndex
from statelib.topics.delta.log import DIGEST, created
from tests.effort import every_other
from tests.topics.data import SCHEMA, topic_records

if TYPE_CHECKING:
    from collections.abc import Iterable


def add(archive: TopicArchive, offsets: Iterable[int], version: int) -> TopicArchive:
    with archive.writer(0, attempt=f"a{version}") as writer:
        writer.write(topic_records(offsets))
    archive.commit(writer.close(), app_id="app", app_version=version)
    return archive.refresh()


def seen(uri: str) -> Any:
    """All that anybody takes from a log."""
    archive = TopicArchive.open(uri)
    files = [file for partition in range(archive.partitions) for file in archive.files(partition)]
    schema = json.dumps(json.loads(archive.schema_json), sort_keys=True)
    return archive.version, archive.topic, archive.partitions, schema, files, archive.last_transaction("app")


def looked_at(archive: TopicArchive, path: Path, data: bytes) -> Any:
    """`seen` with these bytes in a file; None: an error names the file and the way out."""
    path.write_bytes(data)
    try:
        return seen(archive.uri)
    except CorruptedDataError as error:
        message = str(error)
    assert path.name in message
    assert "restore the file" in message
    return None


@pytest.fixture
def archive(tmp_path: Path) -> TopicArchive:
    made = TopicArchive.create(str(tmp_path / "t"), SCHEMA, 1)
    for version in (1, 2, 3):
        made = add(made, range(10 * version, 10 * version + 5), version)
    return made


def entry(archive: TopicArchive, version: int) -> Path:
    return Path(archive.uri) / "_delta_log" / f"{version:020d}.json"


def flipped(data: bytes, bit: int) -> bytes:
    damaged = bytearray(data)
    damaged[bit // 8] ^= 1 << bit % 8
    return bytes(damaged)


def test_golden_digests() -> None:
    """They never change, or archives that have them could not be read any more."""
    time = pa.array([1_000_000, None], pa.timestamp("us", "UTC"))
    add_actions = {
        "path": ["partition=1/b.parquet", "partition=0/a.parquet"], "size_bytes": [20, 10], "num_records": [2, 1],
        "partition.partition": [1, 0], "min.offset": [5, 7], "max.offset": [9, 7], "min.timestamp": time,
        "max.timestamp": time,
    }  # fmt: skip
    index = FileIndex(pa.table(add_actions), topic="t", uri="u")
    assert index.digest() == "dbde2927679274c13dd6ea2838c9dd33a519241ac8d6f3522bc1e77504e07a53"
    (transaction,) = created("t", ["partition"], '{"fields": [], "type": "struct"}').app_transactions or ()
    assert (transaction.app_id, transaction.version) == ("hindstream.digest.1", 2063752572)


def test_what_a_commit_says(archive: TopicArchive) -> None:
    said = transaction(archive, 3)
    assert list(said) == ["app", "hindstream.check.1/app", "hindstream.digest.1"]
    assert said["app"] == 3
    assert said["hindstream.check.1/app"] == 4053684150213216740
    assert said["hindstream.digest.1"] >> 32 == 3


def test_the_files_of_a_commit_are_digested_as_its_readers_see_them(archive: TopicArchive) -> None:
    """Also those without times, and those whose times the log cannot say."""
    for version, timestamps in enumerate([[None], [-1], [-(10**15)], [10**15]], 4):
        with archive.writer(0, attempt=f"b{version}") as writer:
            writer.write(topic_records([10 * version], timestamps))
        archive.commit(writer.close(), app_id="app", app_version=version)
        archive = archive.refresh()
    assert len(archive.files(0)) == 7


def transaction(archive: TopicArchive, version: int) -> dict[str, int]:
    """What an entry says of applications."""
    actions = [json.loads(line) for line in entry(archive, version).read_text().splitlines()]
    return {action["txn"]["appId"]: action["txn"]["version"] for action in actions if "txn" in action}


@pytest.mark.thorough
@pytest.mark.parametrize("version", every_other([1, 0, 3]))
def test_flipped_bits_of_an_entry_are_noticed_or_change_nothing(archive: TopicArchive, version: int) -> None:
    path, expected = entry(archive, version), seen(archive.uri)
    good = path.read_bytes()
    found = [looked_at(archive, path, flipped(good, bit)) for bit in range(version, 8 * len(good), 23)]
    assert all(content in (None, expected) for content in found)
    assert found.count(expected) < len(good) / 2 * 8 / 23


def test_the_first_entry_is_named_if_it_hides_the_statistics_of_others(archive: TopicArchive) -> None:
    path = entry(archive, 0)
    good = path.read_bytes()
    damaged = good.replace(b'NumIndexedCols":"2"', b'NumIndexedCols":"0"')
    assert damaged != good
    assert looked_at(archive, path, damaged) is None


@pytest.mark.parametrize("version", [1, 3])
def test_an_entry_that_is_cut_off_is_noticed(archive: TopicArchive, version: int) -> None:
    """Also where a line ends, which leaves a valid entry with less in it."""
    path, expected = entry(archive, version), seen(archive.uri)
    good = path.read_bytes()
    cuts = [0, 10, len(good) // 2, *(n for n, byte in enumerate(good) if byte == ord("\n")), len(good) - 3]
    for cut in cuts:
        content = looked_at(archive, path, good[:cut])
        assert content is None or (version == 1 and content == expected)  # of an older entry only digests are gone


def test_a_checkpoint_is_covered_as_well(archive: TopicArchive) -> None:
    DeltaTable(archive.uri).create_checkpoint()
    path, expected = entry(archive, 3).with_suffix(".checkpoint.parquet"), seen(archive.uri)
    good = path.read_bytes()
    found = [looked_at(archive, path, flipped(good, bit)) for bit in range(0, 8 * len(good), 801)]
    assert all(content in (None, expected) for content in found)
    assert found.count(None) > 20


def test_an_archive_of_an_older_version_has_no_digests(archive: TopicArchive) -> None:
    """It is read, believed, and gets them with the next commit."""
    for version in range(4):
        path = entry(archive, version)
        actions = [json.loads(line) for line in path.read_text().splitlines()]
        del actions[0]["commitInfo"][DIGEST]
        kept = [action for action in actions if not action.get("txn", {}).get("appId", "").startswith("hindstream.")]
        assert len(kept) < len(actions)
        path.write_text("\n".join(map(json.dumps, kept)))
    old = TopicArchive.open(archive.uri)
    assert [file.rows for file in old.files(0)] == [5, 5, 5]
    assert old.last_transaction("app") == 3
    add(old, [50], 4)
    assert transaction(archive, 4)[DIGEST] >> 32 == 4
    assert seen(archive.uri)[-1] == 4


def test_what_others_commit_is_believed_until_the_next_commit(archive: TopicArchive) -> None:
    records = archive.reader(0, 30).read_all().slice(0, 2).to_pylist()
    for offset, record in enumerate(records, 60):
        record["offset"] = offset
    more = archive.schema.empty_table().from_pylist(records, archive.schema)
    write_deltalake(
        archive.uri, more.append_column("partition", [[0, 0]]).cast(_with_partition(archive)), mode="append"
    )
    newest = archive.refresh()
    assert newest.end_offsets() == {0: 62}
    damaged = entry(archive, newest.version)
    newest = add(newest, [70], 4)
    damaged.write_text(damaged.read_text().replace('\\"offset\\":61', '\\"offset\\":63'))
    with pytest.raises(HindstreamError, match="does not say of the topic and its files what was committed"):
        seen(archive.uri)


def _with_partition(archive: TopicArchive) -> Any:
    return archive.schema.append(pa.field("partition", pa.int32()))


def test_a_digest_of_another_version_is_none(archive: TopicArchive, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if another program had committed: its transaction has another name, and so has what its commits say."""
    monkeypatch.setattr(delta_log, "DIGEST", "hindstream.digest.2")
    newer = add(archive, [50], 4)
    assert transaction(newer, 4).keys() == {"app", "hindstream.check.1/app", "hindstream.digest.2"}
    monkeypatch.undo()
    assert seen(archive.uri)[-1] == 4
