"""What other programs do to archives, with the real Delta client: what happened is said, and each way on works."""

from __future__ import annotations

import itertools
import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import deltalake
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from statelib.commits import CommitLog, NothingToDo, Runs, plan, publish, rollback
from statelib.commits.archives import open_archive
from statelib.commits.layout import JobLayout
from statelib.commits.publication.republish import republish
from statelib.commits.sources.changed_archives import changed_by_others
from statelib.errors.kinds import ConfigurationError, CorruptedDataError, InputError
from statelib.topics.archive import TopicArchive
from statelib.topics.other_writers import history, restore
from tests.commits import toy
from tests.commits.toy import DAY
from tests.effort import every_other

if TYPE_CHECKING:
    from collections.abc import Callable

    from statelib.storage import Storage

pytestmark = pytest.mark.thorough

SOURCE, SINK = "events", "counts"


@pytest.fixture
def two_commits(warehouse: Storage, run_slice: Callable[..., Any]) -> None:
    """Three days are archived, each by itself; two have been replayed."""
    for day in range(3):
        toy.archive_events(warehouse, day)
    run_slice(until_ms=DAY)
    run_slice(until_ms=2 * DAY)


def table(warehouse: Storage, topic: str) -> DeltaTable:
    return DeltaTable(warehouse.uri(f"topics/{topic}"))


def folder(warehouse: Storage, path: str) -> Path:
    return Path(warehouse.uri(path).removeprefix("file://"))


def published(warehouse: Storage) -> list[pa.Table]:
    archive = open_archive(warehouse, SINK)
    return [archive.reader(partition).read_all() for partition in range(archive.partitions)]


def said(warehouse: Storage) -> str:
    head = CommitLog(warehouse, "counting").head()
    assert head is not None
    return "\n".join(changed_by_others(warehouse, head))


@pytest.fixture
def expected(warehouse: Storage, scratch: Path, tmp_path: Path) -> list[pa.Table]:
    """What the sink has after the third day where nobody has touched anything."""
    from statelib.commits import commit, record_audit, stage  # noqa: PLC0415
    from statelib.storage import Storage as Store  # noqa: PLC0415

    other = Store(str(tmp_path / "untouched"))
    for day in range(3):
        toy.archive_events(other, day)
    for until in (DAY, 2 * DAY, 3 * DAY):
        planned = plan(toy.job(), other, now_ms=1, until_ms=until)
        stage(other, planned, toy.replay(other, planned, tmp_path / "untouched-scratch"))
        record_audit(other, planned, toy.passed(planned))
        commit(other, planned, now_ms=2)
        publish(other, "counting")
    return published(other)


# Sources


REARRANGED = {
    "compact": lambda table: table.optimize.compact(),
    "z_order": lambda table: table.optimize.z_order(["key"]),
    "vacuum": lambda table: (
        table.optimize.compact(),
        table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False),
    ),
}


@pytest.mark.parametrize("how", every_other(REARRANGED))
def test_an_optimized_source_is_read_in_the_order_of_offsets(
    warehouse: Storage, two_commits: None, run_slice: Callable[..., Any], expected: list[pa.Table], how: str
) -> None:
    REARRANGED[how](table(warehouse, SOURCE))
    assert "OPTIMIZE by delta-rs" in said(warehouse)
    run_slice()
    assert published(warehouse) == expected


def test_a_source_that_was_deleted_and_made_anew_is_refused(
    warehouse: Storage, two_commits: None, run_slice: Callable[..., Any], tmp_path: Path, expected: list[pa.Table]
) -> None:
    shutil.copytree(folder(warehouse, f"topics/{SOURCE}"), tmp_path / "copy")
    shutil.rmtree(folder(warehouse, f"topics/{SOURCE}"))
    toy.archive_events(warehouse, 0, days=4)
    with pytest.raises(ConfigurationError, match="deleted and created again.*topic events.*recreated_sources=events"):
        plan(toy.job(), warehouse, now_ms=1)
    begun = plan(toy.job("other", sink="elsewhere"), warehouse, now_ms=1)
    assert not isinstance(begun, NothingToDo), "who has read nothing of it may begin"

    with_day_4 = plan(toy.job(), warehouse, now_ms=1, until_ms=3 * DAY, recreated_sources=[SOURCE])
    assert not isinstance(with_day_4, NothingToDo), "who says that the records are the same goes on"
    assert with_day_4.sources[0].table_id == open_archive(warehouse, SOURCE).table_id

    shutil.rmtree(folder(warehouse, f"topics/{SOURCE}"))
    shutil.copytree(tmp_path / "copy", folder(warehouse, f"topics/{SOURCE}"))
    run_slice()
    assert published(warehouse) == expected, "the former archive comes back from a copy"


def test_the_id_is_recorded_from_the_next_commit_on(
    warehouse: Storage, two_commits: None, run_slice: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    log = CommitLog(warehouse, "counting")
    head = log.head()
    assert head is not None
    of_old = head.model_copy(
        update={
            "format_version": 6,
            "sources": tuple(source.model_copy(update={"table_id": None}) for source in head.sources),
        }
    )
    warehouse.put(log.layout.commit(2), of_old.encode())
    shutil.rmtree(folder(warehouse, f"topics/{SOURCE}"))
    toy.archive_events(warehouse, 0, days=4)
    assert run_slice().sources[0].table_id == open_archive(warehouse, SOURCE).table_id
    shutil.rmtree(folder(warehouse, f"topics/{SOURCE}"))
    toy.archive_events(warehouse, 0, days=5)
    with pytest.raises(ConfigurationError, match="created again"):
        run_slice()


LOST = {
    "restored": lambda table: table.restore(1),
    "partition deleted": lambda table: table.delete("partition = 0"),
    "all deleted": lambda table: table.delete(),
}


@pytest.mark.parametrize("how", every_other(LOST, first=1))
def test_a_source_that_lost_what_was_replayed_comes_back_from_its_former_version(
    warehouse: Storage, two_commits: None, run_slice: Callable[..., Any], expected: list[pa.Table], how: str
) -> None:
    LOST[how](table(warehouse, SOURCE))
    with pytest.raises(InputError, match="but the job has replayed up to.*hindstream topic events"):
        run_slice()
    assert "hindstream topic restore events --to 3 brings it back" in said(warehouse)
    restore(warehouse.uri(f"topics/{SOURCE}"), 3)
    assert said(warehouse) == "", "what was taken back is no matter any more"
    run_slice()
    assert published(warehouse) == expected


def test_a_restore_to_before_what_was_replayed_is_said(warehouse: Storage, two_commits: None) -> None:
    table(warehouse, SOURCE).delete("offset = 2")
    table(warehouse, SOURCE).restore(1)
    assert "RESTORE by delta-rs" in said(warehouse)
    restore(warehouse.uri(f"topics/{SOURCE}"), 4)
    assert "DELETE by delta-rs" in said(warehouse)
    assert "RESTORE" not in said(warehouse)


def test_records_that_another_program_has_added_once_more_can_be_taken_back(
    warehouse: Storage, two_commits: None, run_slice: Callable[..., Any], expected: list[pa.Table]
) -> None:
    records = table(warehouse, SOURCE).to_pyarrow_table()
    write_deltalake(warehouse.uri(f"topics/{SOURCE}"), records, mode="append")
    with pytest.raises(
        InputError, match=r"holds offsets that are in .* as well.*hindstream topic events lists versions"
    ):
        run_slice()
    restore(warehouse.uri(f"topics/{SOURCE}"), 3)
    run_slice()
    assert published(warehouse) == expected


@pytest.mark.parametrize("path", [f"topics/{SOURCE}", f"topics/{SOURCE}/_delta_log"])
def test_a_source_that_is_gone_is_named_with_the_commit_that_rests_on_it(
    warehouse: Storage, two_commits: None, run_slice: Callable[..., Any], expected: list[pa.Table], path: str,
    tmp_path: Path,
) -> None:  # fmt: skip
    shutil.copytree(folder(warehouse, f"topics/{SOURCE}"), tmp_path / "copy")
    shutil.rmtree(folder(warehouse, path))
    with pytest.raises(ConfigurationError, match="no topic archive any more.* commit 2 depends on it .*topic events"):
        run_slice()
    shutil.copytree(tmp_path / "copy", folder(warehouse, f"topics/{SOURCE}"), dirs_exist_ok=True)
    run_slice()
    assert published(warehouse) == expected


def test_a_log_that_has_lost_its_newest_entries_is_said(warehouse: Storage, two_commits: None) -> None:
    newest = max(folder(warehouse, f"topics/{SOURCE}/_delta_log").glob("*.json"))
    newest.unlink()
    assert "has come to version 2, and had come to 3 at commit 2: entries of its log, and records, are gone" in said(
        warehouse
    )


def test_a_log_with_a_gap_names_the_entry(
    warehouse: Storage, two_commits: None, run_slice: Callable[..., Any], tmp_path: Path
) -> None:
    entry = folder(warehouse, f"topics/{SOURCE}/_delta_log/{1:020d}.json")
    shutil.move(entry, tmp_path / "entry")
    with pytest.raises(CorruptedDataError, match=r"an entry is missing \(topic events, file .*/0{19}1\.json\)") as told:
        run_slice()
    assert "ParsedLogPath" not in told.value.message
    shutil.move(tmp_path / "entry", entry)
    run_slice()


def test_a_hint_at_a_checkpoint_that_is_gone_can_be_deleted(
    warehouse: Storage, two_commits: None, run_slice: Callable[..., Any], expected: list[pa.Table]
) -> None:
    table(warehouse, SOURCE).create_checkpoint()
    log = folder(warehouse, f"topics/{SOURCE}/_delta_log")
    next(log.glob("*.checkpoint.parquet")).unlink()
    with pytest.raises(CorruptedDataError, match=r"topic events, file .*/_last_checkpoint\). Next: delete that file"):
        run_slice()
    (log / "_last_checkpoint").unlink()
    run_slice()
    assert published(warehouse) == expected


ONE_OFFSET = pa.table({"o": pa.array([2], pa.int64())})
CHANGED = {
    "deleted": ("DELETE", lambda table: table.delete("offset = 2")),
    "updated": ("UPDATE", lambda table: table.update(new_values={"value": 7}, predicate="offset = 2")),
    "merged": (
        "MERGE",
        lambda table: (
            table.merge(
                pa.table({"o": pa.array([2], pa.int64())}), "t.offset = s.o", source_alias="s", target_alias="t"
            )
            .when_matched_update({"t.value": "7"})
            .execute()
        ),
    ),
}


@pytest.mark.parametrize("how", every_other(CHANGED))
def test_what_another_program_changed_in_a_source_is_said(
    warehouse: Storage, two_commits: None, run_slice: Callable[..., Any], expected: list[pa.Table], how: str
) -> None:
    operation, change = CHANGED[how]
    change(table(warehouse, SOURCE))
    assert f"{operation} by delta-rs" in said(warehouse)
    assert "the state rests on what was there before" in said(warehouse)
    restore(warehouse.uri(f"topics/{SOURCE}"), 3)
    run_slice()
    assert published(warehouse) == expected


def mark_as_deleted(warehouse: Storage, topic: str) -> None:
    """A deletion vector, as Spark writes it; delta-rs cannot."""
    table(warehouse, topic).alter.add_feature(
        [deltalake.TableFeatures.DeletionVectors], allow_protocol_versions_increase=True
    )
    log = folder(warehouse, f"topics/{topic}/_delta_log")
    lines = [json.loads(line) for entry in sorted(log.glob("*.json")) for line in entry.read_text().splitlines()]
    add = [line["add"] for line in lines if "add" in line][-1]
    vector = {"storageType": "i", "pathOrInlineDv": "^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L"}
    actions = [
        {"commitInfo": {"operation": "DELETE", "engineInfo": "Apache-Spark"}},
        {"remove": {"path": add["path"], "deletionTimestamp": 1, "dataChange": True}},
        {"add": {**add, "deletionVector": {**vector, "sizeInBytes": 40, "cardinality": 6}}},
    ]
    entry = log / f"{table(warehouse, topic).version() + 1:020d}.json"
    entry.write_text("".join(json.dumps(action) + "\n" for action in actions))


def rename_value(warehouse: Storage, topic: str) -> None:
    """A field that is renamed by column mapping, as Spark does it; delta-rs cannot."""
    log = folder(warehouse, f"topics/{topic}/_delta_log")
    lines = [json.loads(line) for entry in sorted(log.glob("*.json")) for line in entry.read_text().splitlines()]
    metadata = [line["metaData"] for line in lines if "metaData" in line][-1]
    ids = itertools.count(1)

    def mapped(inner: Any) -> Any:
        match inner:
            case {"name": str(name), "type": kind}:
                mapping = {"id": next(ids), "physicalName": "was" if name == "value" else name}
                annotated = {f"delta.columnMapping.{part}": what for part, what in mapping.items()}
                return inner | {"metadata": inner["metadata"] | annotated, "type": mapped(kind)}
            case {"type": "struct", "fields": fields}:
                return inner | {"fields": [mapped(each) for each in fields]}
            case {"type": "array", "elementType": kind}:
                return inner | {"elementType": mapped(kind)}
            case _:
                return inner

    metadata["schemaString"] = json.dumps(mapped(json.loads(metadata["schemaString"])))
    metadata["configuration"] |= {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": str(next(ids))}
    actions = [
        {"commitInfo": {"operation": "RENAME COLUMN", "engineInfo": "Apache-Spark"}},
        {"protocol": {"minReaderVersion": 2, "minWriterVersion": 5}},
        {"metaData": metadata},
    ]
    entry = log / f"{table(warehouse, topic).version() + 1:020d}.json"
    entry.write_text("".join(json.dumps(action) + "\n" for action in actions))


UNREADABLE = {
    "renamed": ("renamed fields of the topic.*was to value", rename_value),
    "column": (
        "has added extra",
        lambda warehouse, topic: table(warehouse, topic).alter.add_columns([deltalake.Field("extra", "string")]),
    ),
    "deletion vector": ("by deletion vectors.*REORG TABLE", mark_as_deleted),
    "overwritten": (
        "not a topic archive|lost",
        lambda warehouse, topic: write_deltalake(
            warehouse.uri(f"topics/{topic}"),
            pa.table({"a": [1], "partition": pa.array([0], pa.int32())}),
            mode="overwrite",
            schema_mode="overwrite",
        ),
    ),
}


@pytest.mark.parametrize("topic", [SOURCE, SINK])
@pytest.mark.parametrize("how", every_other(UNREADABLE, first=1))
def test_what_is_no_topic_any_more_comes_back_from_its_former_version(
    warehouse: Storage,
    two_commits: None,
    run_slice: Callable[..., Any],
    expected: list[pa.Table],
    how: str,
    topic: str,
) -> None:
    uri = warehouse.uri(f"topics/{topic}")
    message, harm = UNREADABLE[how]
    before = table(warehouse, topic).version()
    harm(warehouse, topic)
    with pytest.raises((ConfigurationError, InputError), match=message):
        open_archive(warehouse, topic).end_offsets()
    (latest, *_) = history(uri)
    assert not latest.is_ours
    restore(uri, before)
    run_slice()
    assert published(warehouse) == expected


def test_a_version_that_was_vacuumed_cannot_be_restored(warehouse: Storage, two_commits: None) -> None:
    REARRANGED["vacuum"](table(warehouse, SOURCE))
    with pytest.raises(ConfigurationError, match="a file of it is gone.*from a copy"):
        restore(warehouse.uri(f"topics/{SOURCE}"), 3)
    for version in (-1, 99):
        with pytest.raises(ConfigurationError, match="no former version"):
            restore(warehouse.uri(f"topics/{SOURCE}"), version)


# Sinks


def no_log(warehouse: Storage) -> None:
    shutil.rmtree(folder(warehouse, f"topics/{SINK}/_delta_log"))


SINK_CHANGES = {
    "a record deleted": lambda warehouse: table(warehouse, SINK).delete("offset = 2"),
    "all deleted": lambda warehouse: table(warehouse, SINK).delete(),
    "updated": lambda warehouse: table(warehouse, SINK).update(new_values={"value": 7}, predicate="offset = 2"),
    "restored": lambda warehouse: table(warehouse, SINK).restore(1),
    "optimized": lambda warehouse: table(warehouse, SINK).optimize.compact(),
    "log deleted": no_log,
}


@pytest.mark.parametrize("how", every_other(SINK_CHANGES))
def test_a_sink_is_published_anew_from_the_commits(
    warehouse: Storage, two_commits: None, run_slice: Callable[..., Any], expected: list[pa.Table], how: str
) -> None:
    before = published(warehouse)
    SINK_CHANGES[how](warehouse)
    if "deleted" in how and how != "log deleted":
        assert "missing that the job has written" in said(warehouse)
        assert "hindstream state republish counting counts" in said(warehouse)
    looked_at = republish(warehouse, "counting", SINK, now_ms=5, dry_run=True)
    assert looked_at.added
    assert republish(warehouse, "counting", SINK, now_ms=5) == looked_at
    assert published(warehouse) == before
    assert said(warehouse) == ""
    assert republish(warehouse, "counting", SINK, now_ms=6).added == 0
    run_slice()
    assert published(warehouse) == expected


def test_a_sink_that_lost_its_newest_records_names_the_command(
    warehouse: Storage, two_commits: None, run_slice: Any
) -> None:
    table(warehouse, SINK).restore(1)
    with pytest.raises(
        CorruptedDataError, match="that were published before are gone.*state republish counting counts"
    ):
        run_slice()


def add_once_more(archive: DeltaTable) -> None:
    write_deltalake(archive.table_uri, archive.to_pyarrow_table(), mode="append")


TOUCHED = {
    "updated": ("UPDATE by delta-rs", CHANGED["updated"][1]),
    "added to": (" records are there that the job has not written", add_once_more),
}


@pytest.mark.parametrize("how", every_other(TOUCHED, first=1))
def test_what_another_program_changed_in_a_sink_is_said_and_taken_back(
    warehouse: Storage, two_commits: None, run_slice: Callable[..., Any], expected: list[pa.Table], how: str
) -> None:
    message, change = TOUCHED[how]
    change(table(warehouse, SINK))
    assert message in said(warehouse)
    assert "hindstream state republish counting counts" in said(warehouse)
    republish(warehouse, "counting", SINK, now_ms=5)
    assert said(warehouse) == ""
    run_slice()
    assert published(warehouse) == expected


def test_a_sink_that_was_deleted_with_its_files_says_so(warehouse: Storage, two_commits: None) -> None:
    shutil.rmtree(folder(warehouse, f"topics/{SINK}"))
    with pytest.raises(CorruptedDataError, match="the topic's archive is gone.*commit 1.*a copy of the warehouse"):
        publish(warehouse, "counting")
    with pytest.raises(CorruptedDataError, match="of the 4 files that the job has written.*4 are gone"):
        republish(warehouse, "counting", SINK, now_ms=5)


def test_a_sink_that_was_made_anew_without_its_files_says_so(
    warehouse: Storage, two_commits: None, run_slice: Callable[..., Any], expected: list[pa.Table], tmp_path: Path
) -> None:
    schema = open_archive(warehouse, SINK).schema
    shutil.move(folder(warehouse, f"topics/{SINK}"), tmp_path / "copy")
    TopicArchive.create(warehouse.uri(f"topics/{SINK}"), schema, 2, topic=SINK)
    with pytest.raises(
        CorruptedDataError,
        match=r"is missing, which commit 1 has written \(job counting, topic counts.*Next: restore the",
    ):
        publish(warehouse, "counting")
    shutil.rmtree(folder(warehouse, f"topics/{SINK}"))
    shutil.move(tmp_path / "copy", folder(warehouse, f"topics/{SINK}"))
    run_slice()
    assert published(warehouse) == expected


def test_only_a_topic_of_the_job_is_published_anew(warehouse: Storage, two_commits: None) -> None:
    with pytest.raises(ConfigurationError, match="written nothing to this topic.*name one of: counts"):
        republish(warehouse, "counting", SOURCE, now_ms=5)


def test_what_was_rolled_back_is_not_published_anew(
    warehouse: Storage, two_commits: None, run_slice: Callable[..., Any], expected: list[pa.Table]
) -> None:
    rollback(warehouse, "counting", 1, now_ms=3)
    before = published(warehouse)
    no_log(warehouse)
    assert republish(warehouse, "counting", SINK, now_ms=5).removed == 0
    assert published(warehouse) == before
    run_slice()
    assert published(warehouse) == expected


def test_a_rollback_asks_for_files_that_another_program_has_merged(
    warehouse: Storage, two_commits: None, run_slice: Callable[..., Any], expected: list[pa.Table]
) -> None:
    table(warehouse, SINK).optimize.compact()
    with pytest.raises(ConfigurationError, match="another program has merged.*state republish counting counts"):
        rollback(warehouse, "counting", 1, now_ms=3)
    republish(warehouse, "counting", SINK, now_ms=5)
    rollback(warehouse, "counting", 1, now_ms=3)
    run_slice()
    assert published(warehouse) == expected


# Documents of runs


def test_a_commit_whose_document_is_gone_is_not_made_once_more(
    warehouse: Storage, two_commits: None, run_slice: Callable[..., Any], expected: list[pa.Table], tmp_path: Path
) -> None:
    document = folder(warehouse, JobLayout("counting").commit(2))
    shutil.move(document, tmp_path / "commit")
    with pytest.raises(
        CorruptedDataError,
        match=r"shows commit 2, whose document is gone: the newest is 1.*file jobs/counting/commits/0+2.json.*put",
    ):
        publish(warehouse, "counting")
    shutil.move(tmp_path / "commit", document)
    run_slice()
    assert published(warehouse) == expected


@pytest.mark.parametrize("gone", ["runs", "runs/00000002-1", "runs/00000001-1"])
def test_a_plan_that_was_deleted_is_made_anew(
    warehouse: Storage, two_commits: None, run_slice: Callable[..., Any], expected: list[pa.Table], gone: str
) -> None:
    runs = Runs(warehouse, "counting")
    before = [runs.plan(f"0000000{n}-1") for n in (1, 2)]
    shutil.rmtree(folder(warehouse, f"jobs/counting/{gone}"))
    run_slice()
    assert published(warehouse) == expected
    after = runs.plan("00000002-1")
    assert before[1] is not None
    assert after is not None
    ours = {"counts": 2}
    assert after == before[1].model_copy(
        update={
            "created_at_ms": after.created_at_ms,
            "sink_partitions": ours if gone != "runs/00000001-1" else before[1].sink_partitions,
        }
    )
    rollback(warehouse, "counting", 1, now_ms=3)
    assert runs.plan("00000001-1") is not None
    no_log(warehouse)
    publish(warehouse, "counting")
    run_slice()
    assert published(warehouse) == expected
