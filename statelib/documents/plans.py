"""The plan of a run: what it will do, fixed before anything is read; see `statelib.documents.manifests`."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, TypeVar

from pydantic import Field

from statelib.documents.document import FORMAT_VERSION, Data, Document
from statelib.documents.topologies import Evolution
from statelib.settings.max_future import MaxFuture
from statelib.settings.semantics import EndOfInput, Semantics
from statelib.topics.future_records import FutureRecord

if TYPE_CHECKING:
    from statelib.documents.manifests import Commit

_Run = TypeVar("_Run", "Plan", "Commit")

RUN_WAY_OUT = (
    "restore the file from a copy of the warehouse; if its run has not been committed, you can also delete the run's"
    " folder and run the slice again"
)
"""What to do where a document of a run is damaged."""


class SourceRange(Data):
    """The records of one source partition that a run replays: ``start_offset`` inclusive, ``end_offset`` exclusive."""

    topic: str
    partition: int
    start_offset: int
    end_offset: int
    records: int = Field(description="how many there are: holes (compaction, transaction markers) are not counted")


class PlannedTask(Data):
    """One task (``<sub-topology>_<partition>``) and the source ranges that it takes up.

    A task's repartition sources are not listed: they are what the earlier stage of the same run makes.
    """

    task_id: str
    sub_topology: int
    partition: int
    sources: tuple[SourceRange, ...] = ()


class SourceTopic(Data):
    """What the plan found of a source's archive."""

    topic: str
    delta_version: int
    partitions: int
    delta_schema: str = Field(description="the Delta schema that the archive is read with: its own, or an earlier one")
    rollback: int = Field(default=0, description="commit number of its writer's last rollback that it shows; 0: none")
    table_id: str | None = Field(
        default=None, description="the archive's Delta table id, its own; None: not known (before version 7)"
    )


class TakenOver(Data):
    """A live application whose state becomes the job's: see `statelib.commits.run.takeover`.

    Attributes:
        application_id: The application's.
        changelogs: By store and partition, the offset before which its changelog is read.
        times: The stream time that the application has noted, by ``<topic>/<partition>`` of the job's sources.
    """

    application_id: str
    changelogs: dict[str, dict[int, int]]
    times: dict[str, int]


class ForkedFrom(Data):
    """The commit that a fork goes on from: see `statelib.commits.versions.fork`."""

    job: str
    commit: int


class RepairedBy(Data):
    """The fork whose answers become the job's: see `statelib.repair`."""

    job: str
    commit: int


class Leeway(Data):
    """How much longer than the topology says some windows are kept and stay open: see `statelib.topology.leeway`.

    Attributes:
        nodes: The operators that have it.
        kept_ms: How much longer windows stay in their stores.
        accepted_ms: How much longer windows take records, and final results wait; at most as long as they are kept.
        ends: Whether final results that wait for its sake alone are given at the end of the run.
    """

    nodes: tuple[str, ...]
    kept_ms: int
    accepted_ms: int = 0
    ends: bool = False


class Plan(Document):
    """What a run will do, fixed before it starts; a run that is resumed reads it back."""

    kind: ClassVar[str] = "plan"
    way_out: ClassVar[str] = RUN_WAY_OUT
    job: str
    run_id: str
    commit: int = Field(description="the number of the commit that the run will try to create")
    fingerprint: str = Field(description="of the topology")
    until_ms: int | None = Field(description="end of the slice in event time; None: all that the archives hold")
    end_of_input: EndOfInput = "hold"
    semantics: Semantics | None = Field(default=None, description="None: not known (before version 4)")
    evolution: Evolution | None = Field(default=None, description="where another topology made the state")
    sources: tuple[SourceTopic, ...]
    tasks: tuple[PlannedTask, ...]
    sink_partitions: dict[str, int] = Field(description="number of partitions of each topic that the job writes")
    created_at_ms: int
    rolled_back_to: int | None = Field(default=None, description="the run is a rollback to this commit, not a replay")
    unseen: tuple[str, ...] = Field(default=(), description="what the job does not see of its sources, in words")
    begun_anew: str | None = Field(default=None, description="why the last try at the same slice was given up")
    taken_over: TakenOver | None = Field(default=None, description="the run takes over from it, and replays nothing")
    forked_from: ForkedFrom | None = Field(default=None, description="the run forks it, and replays nothing")
    repaired_by: RepairedBy | None = Field(default=None, description="the run takes its answers, and replays nothing")
    sample_keys: float | None = Field(default=None, description="the share of the keys that it replays; None: all")
    leeway: Leeway | None = Field(default=None, description="what it lets in that the topology does not; None: nothing")
    max_future: MaxFuture | None = Field(default=None, description="which records are from the future; None: none is")
    future_records: tuple[FutureRecord, ...] = Field(
        default=(), description="the first of each partition at which the slice ends too early, or by which time leaps"
    )

    @property
    def rebuilds(self) -> bool:
        """Whether it makes the state of the commit before it anew (`statelib.task.rebuilt_head`): a rollback to it."""
        return self.rolled_back_to == self.commit - 1

    @property
    def instead_of_replay(self) -> str | None:
        """What the run does instead; None: it replays."""
        return instead_of_replay(self)

    @property
    def records(self) -> int:
        """Records to replay over all source partitions (holes not counted), however many tasks read them."""
        return sum({(s.topic, s.partition): s.records for task in self.tasks for s in task.sources}.values())


def made_again(of: _Run, **changed: object) -> _Run:
    """A plan or commit of a run that replays nothing: another one's, but for what it came from and what is changed."""
    origins = dict.fromkeys(("evolution", "rolled_back_to", "taken_over", "forked_from", "repaired_by"))
    return of.model_copy(update={**origins, "format_version": FORMAT_VERSION, **changed})


def instead_of_replay(of: Plan | Commit) -> str | None:
    """What a run does in place of replaying; None: it replays."""
    if of.taken_over is not None:
        return f"taken over from {of.taken_over.application_id}"
    if of.forked_from is not None:
        return f"forked from {of.forked_from.job}@{of.forked_from.commit}"
    if of.repaired_by is not None:
        return f"repaired by {of.repaired_by.job}@{of.repaired_by.commit}"
    if of.rolled_back_to is None:
        return None
    return ("rebuilt from" if of.rebuilds else "rollback to") + f" {of.rolled_back_to}"
