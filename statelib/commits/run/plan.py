"""First phase: fixes what a run will do, before anything is read.

A plan is a function of the head commit, the archives and the slice that was asked for. It is stored under the next
commit's number; a number may see several tries:

- no plan yet: the first try;
- the last try has the same slice: it is resumed, with all that it may have staged;
- the last try has another slice (the archives have grown, another end was asked for): it is superseded by the next;
- a check of the last try failed, of its sources or its results: it stays in quarantine, and the next begins afresh;
- something that the last try has staged is lost: it is given up, and the next try says so and begins afresh.

A superseded driver that is still alive does no harm: both tries want the same commit number and one will get it.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal

from statelib.columns.times import instant_text, unit_hint
from statelib.commits.fencing import fenced
from statelib.commits.hold import check_free
from statelib.commits.layout import CommitLog, Runs, run_id
from statelib.commits.publication.lost_plans import ensure_plan
from statelib.commits.publication.publish import check_published
from statelib.commits.run.planned_tasks import planned_tasks
from statelib.commits.run.sink_partitions import sink_partitions
from statelib.commits.sources.checks import goes_on, open_sources, source_topics
from statelib.commits.sources.schemas import settle_schemas, unseen
from statelib.commits.sources.unlisted import check_all_listed
from statelib.commits.stored_files import lost_files
from statelib.commits.topologies.fill import check_history
from statelib.commits.topologies.renamed_changelogs import copy_changelogs
from statelib.commits.topologies.settle import settle_topology
from statelib.documents.places import topic_and_partition
from statelib.documents.plans import Leeway, Plan, SourceRange
from statelib.errors.counted import counted
from statelib.errors.fault_points import step
from statelib.errors.kinds import ConfigurationError, CorruptedDataError
from statelib.settings.semantics import rules_of
from statelib.storage.dry_run import DryRunStorage
from statelib.topics.future_records import latest_ms
from statelib.topics.slices import plan_slice
from statelib.topics.time_leaps import first_leaps

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from statelib.commits.job_definition import JobDefinition, SourceNode
    from statelib.commits.sources.checks import EndOffsets
    from statelib.documents.manifests import Commit
    from statelib.documents.topologies import TopologyDescription
    from statelib.settings.max_future import MaxFuture
    from statelib.settings.semantics import EndOfInput, Semantics
    from statelib.storage import Storage
    from statelib.topics.archive import TopicArchive
    from statelib.topics.future_records import FutureRecord
    from statelib.topics.slices import SourceSlice


@dataclass(frozen=True, slots=True)
class NothingToDo:
    """There is nothing to plan, and nothing was changed.

    Attributes:
        reason: ``no-new-records``: the archives hold nothing more before the end that was asked for.
            ``replayed-further``: the job has already gone past that end; state does not go back.
            ``sealed``: the job has been sealed, and the archives hold nothing more.
        head: Number of the newest commit; 0 before the first.
        future_records: At which the slice ends, while records from before its end wait behind them.
        come_to: How far the job has come, where it has replayed further.
    """

    job: str
    reason: Literal["no-new-records", "replayed-further", "sealed"]
    head: int
    future_records: tuple[FutureRecord, ...] = ()
    come_to: str | None = dataclasses.field(default=None, compare=False)

    def __str__(self) -> str:
        """For a person."""
        if self.reason == "sealed":
            return f"{self.job}: sealed by commit {self.head}, and nothing new since; nothing was changed"
        if self.reason == "no-new-records":
            held_back = "".join(f"; {record}" for record in self.future_records)
            return f"{self.job}: nothing new since commit {self.head}; nothing was changed{held_back}"
        come_to = f" ({self.come_to})" if self.come_to else ""
        return (
            f"{self.job}: commit {self.head} has already replayed past this slice's end{come_to}; nothing was changed"
        )


def plan(
    job: JobDefinition,
    warehouse: Storage,
    *,
    now_ms: int,
    until_ms: int | None = None,
    end_offsets: EndOffsets | None = None,
    end_of_input: EndOfInput = "hold",
    semantics: Semantics = "kip",
    describe: Callable[[Mapping[str, TopicArchive]], TopologyDescription] | None = None,
    reset_stores: Collection[str] = (),
    migrate_stores: Collection[str] = (),
    fill_stores: Collection[str] = (),
    refill: bool = False,
    changelogs: Collection[str] = (),
    recreated_sources: Collection[str] = (),
    max_future: MaxFuture | None = None,
    sample_keys: float | None = None,
    leeway: Leeway | None = None,
    holder: str | None = None,
    dry_run: bool = False,
) -> Plan | NothingToDo:
    """Plans the slice from the head commit to ``until_ms``, to ``end_offsets``, or to the end of the archives.

    Args:
        job: The job.
        warehouse: Root of all durable data.
        now_ms: The wall clock, for the plan's ``created_at_ms``.
        until_ms: Replay what comes before each partition's first record with this timestamp or a later one.
        end_offsets: Replay what comes before these offsets; names every partition of every source.
        end_of_input: Whether the run seals the job: see `EndOfInput`. It may then have no new records.
        semantics: See `Semantics`.
        describe: Describes the job's topology, given the archives of its sources, for those who will have the state but
            not the code; None: nobody can tell what becomes of the state when the topology changes, and a changed one
            is refused.
        reset_stores: Names of stores that may begin empty if the topology has changed so that they cannot come along
            (`statelib.commits.topologies.evolution`); any other store that is named stays as it is.
        migrate_stores: Names of tables' stores that may be made anew of what they hold if only their kind or retention
            has changed.
        fill_stores: Names of stores that get what they would hold if the job had always had them, if the topology has
            changed (`statelib.commits.topologies.fill`).
        refill: Whether they are filled even if it has not.
        changelogs: Names of stores that keep a changelog, from the store's first run on. One that does goes on to.
        recreated_sources: Sources whose archives are other tables than those that the job has read, with the same
            records at the same offsets: who says so answers for it.
        max_future: Which records are from the future, and end no slice; None: none is.
        sample_keys: The share of the keys that are replayed (`statelib.topology.sampled`); None: all.
        leeway: What some operators let in that the topology does not (`statelib.topology.leeway`); None: nothing.
        holder: By which name the caller holds the job; None: it does not (`statelib.commits.hold`).
        dry_run: Nothing is stored: to see what would be planned.

    Returns:
        The plan, stored; or `NothingToDo`, and nothing was stored.

    Raises:
        ConfigurationError: Both ends are given; a pattern matches a topic that is not listed; the state does not fit
            the topology, or was made with other semantics; a store cannot be filled; a source's archive is another
            table, has lost a field since the head commit, or has other keys or partitions; a sink's archive is somebody
            else's; the job has been sealed or is held; the head is an unpublished rollback.
        InputError: A source no longer holds what is to be replayed, or has taken back what was replayed.
        FencedError: One of these, and another driver has made the commit meanwhile.
    """
    if until_ms is not None and end_offsets is not None:
        next_step = "give one of them"
        raise ConfigurationError("a slice cannot end at a time and at offsets", job=job.name, next_step=next_step)
    if dry_run:
        warehouse = DryRunStorage(warehouse.uri(""), warehouse.options)
    check_free(warehouse, job.name, holder)
    check_all_listed(job, warehouse)
    head = _head(job, warehouse, semantics)
    number, bootstrap = head.commit if head else 0, job.topology.bootstrap_topics
    if head is not None and _has_passed(head, until_ms, end_offsets, besides=bootstrap):
        return NothingToDo(job.name, "replayed-further", number, come_to=_come_to(head))
    with fenced(warehouse, job.name, number + 1):
        archives: Mapping[str, TopicArchive] = open_sources(warehouse, job.topology.source_topics, head)
        before = archives if head is None else goes_on(warehouse, head, archives, recreated_sources)
        tasks = job.topology.partitions({topic: archive.partitions for topic, archive in archives.items()})
        settle = partial(
            settle_topology,
            warehouse,
            job.name,
            job.topology.fingerprint,
            head,
            tasks=tasks,
            reset_stores=reset_stores,
            migrate_stores=migrate_stores,
            fill_stores=fill_stores,
            refill=refill,
        )
        evolution, archives = settle_schemas(
            settle, archives, before, describe, is_new=head is None or head.fingerprint != job.topology.fingerprint
        )
        if head is not None and evolution is not None:
            described = Runs(warehouse, job.name).topology(job.topology.fingerprint)
            check_history(warehouse, head, described, evolution, archives)
            if not dry_run:
                copy_changelogs(warehouse, head, evolution)
        slices = _cut(archives, head, until_ms, end_offsets, bootstrap, max_future, now_ms)
        future_records = tuple(part.stopped_by for part in slices if part.stopped_by is not None)
        # New records of a global table alone are no reason to run.
        new_records = sum(part.records for part in slices if part.topic not in bootstrap)
        if head is not None and head.end_of_input == "seal":
            return _nothing_but_sealed(job, number, new_records)
        migrates = evolution is not None and bool(evolution.migrations or evolution.filled)
        if not new_records and not migrates and (head is None or end_of_input == "hold"):
            return NothingToDo(job.name, "no-new-records", number, future_records)
        if max_future is None:
            future_records += first_leaps(archives, slices)
        return settle_plan(
            warehouse,
            Plan(
                job=job.name,
                run_id=run_id(number + 1, 1),
                commit=number + 1,
                fingerprint=job.topology.fingerprint,
                until_ms=until_ms,
                end_of_input=end_of_input,
                semantics=semantics,
                evolution=evolution,
                sources=source_topics(archives),
                unseen=unseen(archives),
                tasks=planned_tasks(job.topology, tasks, partial(_taken_up, slices)),
                sink_partitions=sink_partitions(job, warehouse, archives, head, changelogs, evolution),
                created_at_ms=now_ms,
                sample_keys=sample_keys,
                leeway=leeway,
                max_future=max_future,
                future_records=future_records,
            ),
        )


def _head(job: JobDefinition, warehouse: Storage, semantics: Semantics) -> Commit | None:
    """The job's newest commit, after checking that a run may follow it."""
    head = CommitLog(warehouse, job.name).head()
    if head is not None:
        check_published(warehouse, head)
        ensure_plan(warehouse, head)
        _check_semantics(job, head, semantics)
    return head


def _check_semantics(job: JobDefinition, head: Commit, semantics: Semantics) -> None:
    """Half a state from each of the two would give the answers of neither."""
    if head.semantics is not None and rules_of(head.semantics) != rules_of(semantics):
        raise ConfigurationError(
            f"the state of commit {head.commit} was made with the semantics {head.semantics}, not {semantics}",
            job=job.name,
            setting="semantics",
            next_step=f"set it to {head.semantics}, or give the job a new name: it then replays from the beginning",
        )


def _nothing_but_sealed(job: JobDefinition, head: int, new_records: int) -> NothingToDo:
    """What a sealed job has to do: its windows are closed, so there must be nothing."""
    if new_records:
        raise ConfigurationError(
            f"the job was sealed by commit {head}, so its windows are closed,"
            f" but {counted(new_records, 'record was', 'records were')} not replayed",
            job=job.name,
            next_step="give the job a new name: it then replays from the beginning; seal only the last slice",
        )
    return NothingToDo(job.name, "sealed", head)


def _has_passed(head: Commit, until_ms: int | None, end_offsets: EndOffsets | None, *, besides: Sequence[str]) -> bool:
    """Whether the head has taken up records that lie behind the end that is asked for, but for some topics."""
    offsets = {topic: ends for topic, ends in head.source_offsets().items() if topic not in besides}
    if end_offsets is not None:
        asked = [
            (end, offsets.get(topic, {}).get(partition, 0))
            for topic, ends in end_offsets.items()
            if topic not in besides
            for partition, end in ends.items()
        ]
        return all(end <= start for end, start in asked) and any(end < start for end, start in asked)
    if until_ms is None:
        return False
    if head.until_ms is not None and until_ms < head.until_ms:
        return True
    return any(
        time >= until_ms and topic_and_partition(place)[0] in offsets
        for task in head.tasks.values()
        for place, time in task.position.source_times.items()
    )


def _come_to(head: Commit) -> str | None:
    """The partition with the largest timestamp that a commit has taken up, for a person."""
    times = {place: time for task in head.tasks.values() for place, time in task.position.source_times.items()}
    place = max(times, key=lambda place: times[place], default=None)
    return None if place is None else f"{place} has come to {instant_text(times[place])}{unit_hint(times[place])}"


def _cut(
    archives: Mapping[str, TopicArchive],
    head: Commit | None,
    until_ms: int | None,
    end_offsets: EndOffsets | None,
    bootstrap: Sequence[str],
    max_future: MaxFuture | None,
    now_ms: int,
) -> list[SourceSlice]:
    """What is new of each topic: as far as the slice goes, of ``bootstrap`` topics as far as there is something."""
    starts = head.source_offsets() if head else {}
    if end_offsets is not None and end_offsets.keys() != archives.keys():
        odd = min(end_offsets.keys() ^ archives.keys())
        what = "end offsets name a topic that is no source" if odd in end_offsets else "end offsets lack a source"
        raise ConfigurationError(what, topic=odd, next_step=f"name exactly: {', '.join(archives)}")
    return [
        source_slice
        for topic, archive in archives.items()
        for source_slice in plan_slice(
            archive,
            starts.get(topic),
            until_ms=None if topic in bootstrap else until_ms,
            end_offsets=None if end_offsets is None else end_offsets[topic],
            latest_of=None if max_future is None else partial(latest_ms, max_future, archive, planned_at_ms=now_ms),
        )
    ]


def _taken_up(slices: Iterable[SourceSlice], source: SourceNode, partition: int) -> Iterator[SourceRange]:
    """What a task takes up of a source."""
    for part in slices:
        if part.topic == source.topic and (source.is_global or part.partition == partition):
            yield SourceRange(
                topic=part.topic,
                partition=part.partition,
                start_offset=part.start_offset,
                end_offset=part.end_offset,
                records=part.records,
            )


def settle_plan(warehouse: Storage, wanted: Plan) -> Plan:
    """The plan that stands for ``wanted``: the open try if it is the same, else the next try, stored here."""
    runs = Runs(warehouse, wanted.job)
    tries = list(runs.attempts(wanted.commit))
    while True:
        lost: str | None = None
        if tries and _is_same(tries[-1], wanted):
            resumable, lost = _is_resumable(warehouse, runs, tries[-1], wanted)
            if resumable:
                return tries[-1]
        new = wanted.model_copy(update={"run_id": run_id(wanted.commit, len(tries) + 1), "begun_anew": lost})
        step("plan.before-create")
        if warehouse.put_if_absent(runs.layout.plan(new.run_id), new.encode()):
            step("plan.created")
            return new
        tries = list(runs.attempts(wanted.commit))  # another driver planned meanwhile


def _is_same(last: Plan, wanted: Plan) -> bool:
    """Whether ``last`` does what is wanted."""
    last_slice, wanted_slice = (
        plan.model_copy(
            update={
                "run_id": "",
                "begun_anew": None,
                "created_at_ms": 0,
                "future_records": (),
                "sources": tuple(
                    source.model_copy(update={"delta_version": 0, "table_id": None}) for source in plan.sources
                ),
            }
        )
        for plan in (last, wanted)
    )
    return last_slice == wanted_slice


def _is_resumable(warehouse: Storage, runs: Runs, last: Plan, wanted: Plan) -> tuple[bool, str | None]:
    """Whether ``last`` can go on, and if not for a loss, which one: what it has staged is there, its audit passed.

    As long as nothing is staged its archive versions must be the newest too, since it has yet to read them.
    """
    try:
        staged, audit = runs.staged(last.run_id), runs.audit(last.run_id)
    except CorruptedDataError as error:
        return False, f"run {last.run_id} is given up: {error.message}"
    if audit is not None and not audit.success:
        return False, None
    if staged is None:
        return last.sources == wanted.sources, None
    for path, what in lost_files(warehouse, wanted.job, staged.tasks):
        return False, f"run {last.run_id} is given up: a file that it had staged {what} ({warehouse.uri(path)})"
    return True, None
