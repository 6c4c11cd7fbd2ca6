"""The job that the faults meet, and all that came of it, to be compared record by record and byte by byte.

Four stages with deduplication over all partitions, windows, suppress and two sinks, over real archives, RocksDB,
checkpoints and commits. Five scenarios: the first slice, the next one, a rollback with another slice after it, a slice
after which small files are merged and changelogs compacted, and one whose working sets do not fit their memory.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pyarrow as pa

from statelib.commits import (
    CommitLog,
    FilePolicy,
    Retention,
    Runs,
    commit,
    fenced,
    maintain,
    publish,
    published_through,
    read_staged,
    reconcile,
    record_audit,
    rollback,
    stage,
    topic_path,
)
from statelib.commits.archives import open_archive, open_archive_if_present
from statelib.commits.layout import changelog_topic
from statelib.documents.manifests import Audit
from statelib.documents.plans import Plan
from statelib.operators.deduplication import operator as deduplicate
from statelib.topics.append import append_records
from statelib.topics.archive import TopicArchive, topic_schema
from tests.task.pipeline import Pipeline
from tests.task.test_run import TYPES, sales, topology

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

JOB = "job"
SINKS = ("once", "by-hour")
CUTS = (3_600_000, 9_000_000)
SCENARIOS = ("first", "next", "rollback", "rewrite", "spill")
CHOSEN_BY_SEED = SCENARIOS[:4]
"""Those that a seed may choose, as it always has: cases that once failed keep their names."""

CHANGELOGS = ("by-hour",)
CHANGELOG_TOPICS = tuple(changelog_topic(JOB, store) for store in CHANGELOGS)
"""Of these stores, in the scenario ``rewrite``."""

_TARGET_BYTES = 4_000
"""Some files' sizes."""

_RECORDS = (140, 60)
"""How many records each call of `ingest` adds."""

PARTS = len(_RECORDS)


def pipeline(
    folder: Path,
    attempt: str,
    *,
    warehouse: str | None = None,
    options: Mapping[str, str] | None = None,
    changelogs: Sequence[str] = (),
) -> Pipeline:
    """The job, with its state below ``folder``, and its warehouse too unless that is elsewhere."""
    made, options = topology(over_all_partitions=True), dict(options or {})
    return Pipeline(folder, made, JOB, attempt, warehouse, changelogs, batch_records=50, storage_options=options)


def ingest(made: Pipeline, part: int) -> None:
    """Adds a part of the records to the job's topic, once, whoever has tried that before."""
    begin, end = sum(_RECORDS[:part]), sum(_RECORDS[: part + 1])
    keys, values, times = zip(*sales(5, sum(_RECORDS))[begin:end], strict=True)
    records = pa.table(
        {
            "key": pa.array(keys, TYPES[0]),
            "value": pa.array(values, TYPES[1]),
            "timestamp": pa.array(times, pa.timestamp("ms", "UTC")),
        }
    )
    uri, options = made.warehouse.uri(topic_path("sales")), made.warehouse.options
    archive = TopicArchive.ensure(uri, topic_schema(*TYPES), 2, topic="sales", options=options)
    append_records(archive, records, attempt=f"part{part}-{made.attempt}", app_id="sales", app_version=part + 1)


def replay_slice(
    made: Pipeline,
    until_ms: int | None,
    *,
    keep: int = 1,
    rewrites: bool = False,
    note: Callable[[str, int], None] = lambda *_: None,
) -> None:
    """One slice through all phases, from wherever an earlier try has come to, as ``hindstream run`` does."""
    warehouse = made.warehouse
    publish(warehouse, JOB)
    planned = made.plan(until_ms)
    if isinstance(planned, Plan):
        staged = read_staged(warehouse, planned)
        if staged is None:
            with fenced(warehouse, JOB, planned.commit):
                replayed = made.replay(planned)
            staged = stage(warehouse, planned, replayed)
        wrong = [row for row in reconcile(made.topology, planned, staged) if row.difference]
        assert not wrong, wrong
        if Runs(warehouse, JOB).audit(planned.run_id) is None:
            passed = Audit(run_id=planned.run_id, success=True, checks=(), data_docs=None, seconds=0)
            record_audit(warehouse, planned, passed)
        note("head", commit(warehouse, planned, now_ms=0).commit)
    publish(warehouse, JOB)
    note("published", CommitLog(warehouse, JOB).head_number())
    files = (
        FilePolicy(made.attempt, target_bytes=_TARGET_BYTES, keep_replaced_ms=0, every_commits=1) if rewrites else None
    )
    maintain(warehouse, JOB, Retention(keep), now_ms=0, files=files)


def before(folder: Path, scenario: str) -> None:
    """Makes what there is before a scenario."""
    made = pipeline(folder, "before", changelogs=CHANGELOGS if scenario == "rewrite" else ())
    ingest(made, 0)
    cuts = {
        "first": (),
        "next": CUTS[:1],
        "rollback": (CUTS[0], 2 * CUTS[0]),
        "rewrite": range(CUTS[0], CUTS[1], CUTS[0] // 4),
        "spill": CUTS[:1],
    }
    for cut in cuts[scenario]:
        replay_slice(made, cut, **_settings(scenario))


def drive(made: Pipeline, scenario: str, note: Callable[[str, int], None] = lambda *_: None) -> None:
    """Goes on with a scenario to its end; ``note`` is told what is durable from here on."""
    if scenario == "first":
        replay_slice(made, CUTS[0], note=note)
        return
    if scenario == "rollback":
        head = CommitLog(made.warehouse, JOB).head()
        assert head is not None
        if head.commit == 2 or head.rolled_back_to is not None:
            note("head", rollback(made.warehouse, JOB, 1, now_ms=0).commit)
            note("published", 3)
    ingest(made, 1)
    note("ingested", 2)
    if scenario == "spill":
        made = made.with_settings(memory_budget_bytes=1)
    with patch.object(deduplicate, "_FEWEST_SPILLED", 1):  # else so few ids go to RocksDB
        replay_slice(made, CUTS[1], **_settings(scenario), note=note)


def drive_further(made: Pipeline, scenario: str) -> None:
    """A slice after the scenario's end."""
    replay_slice(made, 4 * CUTS[1], **_settings(scenario))


def _settings(scenario: str) -> dict[str, Any]:
    return {"keep": 9 if scenario == "rollback" else 1, "rewrites": scenario == "rewrite"}


def promised(made: Pipeline) -> dict[str, int]:
    """What `drive` notes, as it is now."""
    source = open_archive_if_present(made.warehouse, "sales")
    return {
        "head": CommitLog(made.warehouse, JOB).head_number(),
        "published": published_through(made.warehouse, JOB),
        "ingested": (source.last_transaction("sales") or 0) if source else 0,
    }


@dataclass(frozen=True)
class Result:
    """All that readers, the next run or a person can see, but for the names of attempts and of tries.

    Attributes:
        records: Published, by (topic, partition, key, value, timestamp).
        files: Published, by topic, partition and first offset.
        state: As of the newest commit, by task, family and key.
        others: Commits, positions, and what was left behind.
    """

    records: Counter[tuple[Any, ...]]
    files: dict[tuple[Any, ...], bytes]
    state: dict[tuple[Any, ...], bytes]
    others: dict[str, Any]


@dataclass(frozen=True)
class Difference:
    """What an undisturbed run has made otherwise.

    Attributes:
        lost: Records that it published and that are not there.
        duplicated: Records that are there and that it did not publish, or less often.
        differing_bytes: Of published files and of state.
        others: What else is not the same.
    """

    lost: int = 0
    duplicated: int = 0
    differing_bytes: int = 0
    others: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.lost or self.duplicated or self.differing_bytes or self.others)

    def __add__(self, other: Difference) -> Difference:
        return Difference(
            self.lost + other.lost,
            self.duplicated + other.duplicated,
            self.differing_bytes + other.differing_bytes,
            self.others + other.others,
        )


def difference(expected: Result, found: Result) -> Difference:
    """Between an undisturbed run and another."""
    return Difference(
        (expected.records - found.records).total(),
        (found.records - expected.records).total(),
        _differing_bytes(expected.files, found.files) + _differing_bytes(expected.state, found.state),
        tuple(
            f"{name}: {found.others[name]} instead of {value}"
            for name, value in expected.others.items()
            if found.others[name] != value
        ),
    )


def _differing_bytes(expected: Mapping[Any, bytes], found: Mapping[Any, bytes]) -> int:
    return sum(_differing(expected.get(name, b""), found.get(name, b"")) for name in expected.keys() | found.keys())


def _differing(one: bytes, other: bytes) -> int:
    same_length = one != other and sum(a != b for a, b in zip(one, other, strict=False))
    return same_length + abs(len(one) - len(other))


def result_of(made: Pipeline, topics: Sequence[str] = (*SINKS, *CHANGELOG_TOPICS)) -> Result:
    """Of the job as it is; ``topics``: those that it writes, if they are there."""
    job = made.name
    warehouse = made.warehouse
    history = list(CommitLog(warehouse, job).history())
    sinks = {topic: open_archive(warehouse, topic) for topic in topics if open_archive_if_present(warehouse, topic)}
    published = {
        (topic, partition, file.first_offset): f"topics/{topic}/{file.path}"
        for topic, sink in sinks.items()
        for partition in range(sink.partitions)
        for file in sink.files(partition)
    }
    state = {
        (task_id, family, key): value
        for task_id, families in made.state().items()
        for family, entries in families.items()
        for key, value in entries
    }
    rolled_back = any(one.rolled_back_to is not None for one in history)
    needed = {
        f"jobs/{job}/state/{task_id}/{file.stored_name}"
        for one in (history if rolled_back else history[:1])
        for task_id, task in one.tasks.items()
        for file in task.state.files
    }
    in_topics = {entry.path for topic in sinks for entry in warehouse.list(f"topics/{topic}") if "=" in entry.path}
    in_state = {entry.path for entry in warehouse.list(f"jobs/{job}/state")}
    return Result(
        records=Counter(
            (topic, partition, repr(key), repr(value), timestamp)
            for topic in sinks
            for partition, _, key, value, timestamp in made.output(topic)
        ),
        files={place: warehouse.get(path) for place, path in published.items()},
        state=state,
        others={
            "commits": [one.commit for one in history],
            "positions": [{task_id: task.position for task_id, task in one.tasks.items()} for one in history],
            "published through": {topic: sink.last_transaction(job) for topic, sink in sinks.items()},
            "left behind": [len(in_topics - set(published.values())), len(in_state - needed)],
            "missing": len(needed - in_state),
        },
    )
