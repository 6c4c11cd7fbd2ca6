"""What is read from a log at once is what delta-rs says of each application."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from statelib.errors.kinds import CorruptedDataError
from statelib.storage import Storage
from statelib.topics.archive import TopicArchive
from statelib.topics.delta.transactions import Transactions, read_transactions
from tests.topics.data import SCHEMA, topic_records

APPS = ["a", "b", "c/1", "none", "hindstream.digest.1", "hindstream.check.1/a"]


def commit(archive: TopicArchive, app_id: str, app_version: int) -> TopicArchive:
    with archive.writer(0, attempt=f"{app_id[0]}{app_version}") as writer:
        writer.write(topic_records([archive.end_offsets()[0]]))
    archive.commit(writer.close(), app_id=app_id, app_version=app_version)
    return archive.refresh()


def said_by_delta(uri: str, version: int | None = None, options: dict[str, str] | None = None) -> dict[str, int]:
    table = DeltaTable(uri, version, storage_options=options)
    found = {app: table.transaction_version(app) for app in APPS}
    return {app: last for app, last in found.items() if last is not None}


def read(uri: str, version: int, options: dict[str, str] | None = None) -> dict[str, int] | None:
    said = read_transactions(Storage(uri, options), version)
    return None if said is None else {app: last for app, last in said.items() if app in APPS}


def log(archive: TopicArchive) -> Path:
    return Path(archive.uri) / "_delta_log"


@pytest.fixture(scope="module")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Thirteen commits, and a checkpoint of the first ten."""
    made = TopicArchive.create(str(tmp_path_factory.mktemp("archive") / "t"), SCHEMA, 1)
    for version in range(1, 13):
        made = commit(made, "abc"[version % 3] if version % 3 < 2 else "c/1", 2 * version)
    assert sorted(path.name for path in log(made).glob("*.parquet")) == ["00000000000000000009.checkpoint.parquet"]
    return Path(made.uri)


@pytest.fixture
def archive(tmp_path: Path, made_once: Path) -> TopicArchive:
    return TopicArchive.open(str(shutil.copytree(made_once, tmp_path / "t")))


def test_it_is_what_delta_says_after_each_commit(tmp_path: Path) -> None:
    """Also where the last of an application is in a checkpoint, or in an entry that one has replaced."""
    archive = TopicArchive.create(str(tmp_path / "t"), SCHEMA, 1)
    for version in range(1, 23):
        archive = commit(archive, "a" if version == 4 else "b", version)
        assert archive.version == version
        assert read(archive.uri, version) == said_by_delta(archive.uri)
    for entry in log(archive).glob("*.json"):
        if int(entry.stem) < 20:  # as cleaning up does
            entry.unlink()
    assert read(archive.uri, 22) == said_by_delta(archive.uri)
    assert archive.refresh().last_transaction("a") == 4


def test_in_an_object_store(s3_options: dict[str, str], tmp_path: Path) -> None:
    options = s3_options
    archive = TopicArchive.create(f"s3://warehouse/{tmp_path.name}", SCHEMA, 1, options=options)
    for version in range(1, 13):
        archive = commit(archive, "a" if version == 4 else "b", version)
    assert read(archive.uri, 12, options) == said_by_delta(archive.uri, options=options)


def test_of_versions_before_the_checkpoint_delta_is_asked(archive: TopicArchive) -> None:
    for version in range(9):
        assert read(archive.uri, version) is None
        transactions = Transactions(DeltaTable(archive.uri, version), archive.storage)
        found = {app: last for app in APPS if (last := transactions.last(app)) is not None}
        assert found == said_by_delta(archive.uri, version)
    assert TopicArchive.open(archive.uri, 5).last_transaction("b") == 8


@pytest.mark.parametrize(
    "pointer",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"version": null}',
        '{"version": "x"}',
        '{"version": 4}',
        '{"version": 40}',
        '{"version": 9, "parts": 2}',
        '{"version": 9, "v2Checkpoint": {}}',
    ],
)
def test_where_the_checkpoint_is_not_what_is_expected_delta_is_asked(archive: TopicArchive, pointer: str) -> None:
    good = said_by_delta(archive.uri)
    (log(archive) / "_last_checkpoint").write_text(pointer)
    assert read(archive.uri, 12) is None
    transactions = Transactions(DeltaTable(archive.uri), archive.storage)
    assert {app: last for app in APPS if (last := transactions.last(app)) is not None} == good


def test_where_nobody_points_at_the_checkpoint_all_entries_are_read(archive: TopicArchive) -> None:
    (log(archive) / "_last_checkpoint").unlink()
    assert read(archive.uri, 12) == said_by_delta(archive.uri)


def test_a_checkpoint_may_have_no_column_for_transactions(archive: TopicArchive) -> None:
    (path,) = log(archive).glob("*.parquet")
    pq.write_table(pq.read_table(path).drop_columns(["txn"]), path)
    assert read(archive.uri, 12) == {"a": 24, "b": 20, "c/1": 22} | {
        app: said_by_delta(archive.uri)[app] for app in ("hindstream.digest.1", "hindstream.check.1/a")
    }


def test_a_commit_of_another_program_is_read(archive: TopicArchive) -> None:
    """Whatever it writes between the names, and also where it speaks of transactions elsewhere."""
    entry = log(archive) / f"{13:020d}.json"
    actions = [
        {"commitInfo": {"txn": "a", "operation": "WRITE"}},
        {"txn": {"appId": "a", "version": 77, "lastUpdated": 1}},
    ]
    entry.write_text("\n".join(json.dumps(action, indent=None, separators=(" , ", " : ")) for action in actions))
    said = read(archive.uri, 13)
    assert said == said_by_delta(archive.uri)
    assert said["a"] == 77


def test_a_table_of_another_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for version in range(3):
        properties = CommitProperties(app_transactions=[Transaction("a", version)] if version == 1 else None)
        write_deltalake("t", pa.table({"n": [version]}), mode="append", commit_properties=properties)
    assert read("t", 2) == {"a": 1} == said_by_delta("t")


def test_what_cannot_be_understood_is_damage(archive: TopicArchive) -> None:
    for damage in ('{"txn": 5}', '{"txn": {"appId": "a"}}', '{"txn": {'):
        entry = log(archive) / f"{12:020d}.json"
        good = entry.read_text()
        entry.write_text(f"{good}\n{damage}")
        with pytest.raises(ValueError, match=r"transaction|Expecting"):
            read_transactions(archive.storage, 12)
        with pytest.raises(CorruptedDataError, match=r"00012\.json"):
            archive.refresh()
        entry.write_text(good)
