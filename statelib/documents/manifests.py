"""The documents of a run: small JSON objects that say what was planned, made, checked and made true.

::

    <warehouse>/topics/<topic>/                         topic archives (Delta tables), with staged files unseen
    <warehouse>/jobs/<job>/commits/<n, 20 digits>.json  Commit      created only if absent: what makes a run true
    <warehouse>/jobs/<job>/topologies/<fingerprint>.json    see `statelib.documents.topologies`
    <warehouse>/jobs/<job>/runs/<run id>/plan.json      see `statelib.documents.plans`
                                        /staged.json    Staged      what the winning attempts made
                                        /audit.json     Audit       what the checks said; of a run whose sources failed
                                                                    theirs there is nothing else
    <warehouse>/jobs/<job>/state/<task>/<sha256>.<run id>  state files: content and the run that stored them, shared
                                                        between commits
    <warehouse>/jobs/<job>/staging/<run id>/...         repartition topics between the stages of a run; KeptOutcome

A run id is ``<commit number, 8 digits>-<try>``: a run whose audit failed stays as it is, and the next plan for the
same commit number gets the next try. A rollback and a fork are runs with a plan and a commit and nothing in between,
a repair has an audit as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal
from uuid import UUID

from pydantic import Field

from statelib.documents.document import Data, Document
from statelib.documents.places import by_topic, state_folder
from statelib.documents.plans import RUN_WAY_OUT, ForkedFrom, RepairedBy, SourceTopic, TakenOver, instead_of_replay
from statelib.documents.topologies import Evolution
from statelib.metrics.node_metrics import NodeMetrics
from statelib.settings.semantics import EndOfInput, Semantics
from statelib.topics.files import ArchiveFile

if TYPE_CHECKING:
    from collections.abc import Iterable


class StateFile(Data):
    """One immutable file of a task's state: its name in RocksDB's directory, and its content."""

    name: str
    sha256: str
    size_bytes: int
    run_id: str | None = Field(default=None, description="of the run that stored it; None: not in its name (version 3)")
    job: str | None = Field(default=None, description="in whose folder it lies, of a fork's; None: in that of its own")

    @property
    def stored_name(self) -> str:
        """What it is called in the warehouse: a name that no other run of its job writes."""
        return self.sha256 if self.run_id is None else f"{self.sha256}.{self.run_id}"

    def path(self, job: str, task_id: str) -> str:
        """Where it lies below the warehouse, as a file of a task's state of ``job``."""
        return f"{state_folder(self.job or job, task_id)}/{self.stored_name}"


class StateManifest(Data):
    """All files of a task's state as of one commit."""

    files: tuple[StateFile, ...] = ()

    @property
    def size_bytes(self) -> int:
        """Sum of the files' sizes."""
        return sum(file.size_bytes for file in self.files)


class TaskPosition(Document):
    """How far a task has come: stored in the task's RocksDB in the same write as its data, and in the commit.

    Attributes:
        commit: Number of the commit whose run wrote it.
        fingerprint: Of the topology that wrote it.
        source_offsets: The next offset to take up, by ``<topic>/<partition>``.
        source_times: Largest timestamp taken up, by ``<topic>/<partition>``.
        stream_time: The task's stream time.
        clocks: Clocks of operators and stores, by node.
        sink_offsets: The next offset to write, by ``<topic>/<partition>``.
    """

    kind: ClassVar[str] = "task position"
    task_id: str
    commit: int
    fingerprint: str
    source_offsets: dict[str, int] = Field(default_factory=dict)
    source_times: dict[str, int] = Field(default_factory=dict)
    stream_time: int = -1
    clocks: dict[str, dict[str, int]] = Field(default_factory=dict)
    sink_offsets: dict[str, int] = Field(default_factory=dict)


class SinkFile(Data):
    """A file that a task staged for a sink's topic archive."""

    topic: str
    file: ArchiveFile


class RepartitionFile(Data):
    """A file that a task staged for one partition of a repartition topic."""

    topic: str
    partition: int
    path: str
    rows: int
    size_bytes: int
    sha256: str | None = Field(default=None, description="of the file's bytes, in hex; None: not known (version 2)")


class StoreSize(Data):
    """How much a store held when the task ended; both figures are RocksDB's estimates."""

    size_bytes: int
    keys: int


class ReplayedHistory(Data):
    """What a task replayed anew to fill stores: see `statelib.task.history`.

    Attributes:
        records: How many it has taken up, repartition topics included.
        repartitions: By slice, the files that it staged for those who come after it.
    """

    records: int
    repartitions: tuple[tuple[RepartitionFile, ...], ...]


class TaskOutcome(Data):
    """Everything that one attempt of a task made.

    ``metrics`` and ``position`` are the same for every attempt; ``seconds`` (by phase) and all below it are not.
    """

    task_id: str
    attempt: str
    sinks: tuple[SinkFile, ...]
    repartitions: tuple[RepartitionFile, ...]
    state: StateManifest
    position: TaskPosition
    metrics: dict[str, NodeMetrics]
    stores: dict[str, StoreSize]
    seconds: dict[str, float]
    peak_memory_bytes: int
    host: str
    process_id: UUID | None = Field(default=None, description="of the host, where hosts have one (statelib.placement)")
    history: ReplayedHistory | None = Field(default=None, description="where stores are filled; None: none leads there")
    fetched_bytes: int = Field(default=0, description="of state, from the warehouse, before the task could process")
    began_at_ms: int = Field(default=0, description="by the host's clock; 0: not known (before version 6)")


class KeptOutcome(Document):
    """What a task of a run made that is not complete yet: see `statelib.commits.run.kept`."""

    kind: ClassVar[str] = "outcome of a task"
    outcome: TaskOutcome


Severity = Literal["fail", "warn"]
"""What a check that fails does: ``fail`` ends the run, ``warn`` is counted and shown, and the run goes on."""


class AuditCheck(Data):
    """One expectation and what came of it."""

    topic: str
    expectation: str
    parameters: dict[str, Any]
    success: bool
    observed: Any = None
    unexpected_count: int = 0
    unexpected_rows: tuple[dict[str, Any], ...] = Field(default=(), description="a sample of the failing rows")
    error: str | None = None
    severity: Severity = "fail"
    share: float | None = Field(default=None, description="of a source's records that were looked at; None: all")

    @property
    def stops(self) -> bool:
        """Whether the run ends here."""
        return not self.success and self.severity == "fail"


class Staged(Document):
    """What a run made: the winning attempt of every task. Nothing of it is visible yet."""

    kind: ClassVar[str] = "staged result"
    way_out: ClassVar[str] = RUN_WAY_OUT
    run_id: str
    tasks: tuple[TaskOutcome, ...]
    seconds: float
    began_at_ms: int = Field(default=0, description="by the driver's clock; 0: not known (before version 6)")
    done_before: int = Field(default=0, description="how many tasks an earlier try at the replay had done")
    source_checks: tuple[AuditCheck, ...] = Field(
        default=(), description="what the checks of the sources said before the replay; part of the run's audit"
    )

    @property
    def fill(self) -> FillCost | None:
        """What it cost to fill stores; None: none was filled."""
        if not (replayed := [task for task in self.tasks if task.history is not None]):
            return None
        records = sum(task.history.records for task in replayed if task.history is not None)
        return FillCost(records, sum(task.seconds.get("fill", 0.0) for task in replayed))


@dataclass(frozen=True, slots=True)
class FillCost:
    """What it cost to fill stores.

    Attributes:
        records: How many all tasks replayed, those of repartition topics included.
        seconds: The time of all tasks together.
    """

    records: int
    seconds: float


class Audit(Document):
    """What the checks said of a staged run. A run whose audit failed is quarantined: its files are never published."""

    kind: ClassVar[str] = "audit"
    way_out: ClassVar[str] = RUN_WAY_OUT
    run_id: str
    success: bool
    checks: tuple[AuditCheck, ...]
    data_docs: str | None = Field(description="path of this validation's page of Data Docs, below the job's folder")
    seconds: float

    @property
    def warnings(self) -> tuple[AuditCheck, ...]:
        """The checks that failed and let the run pass."""
        return tuple(check for check in self.checks if not check.success and not check.stops)


class CommittedTask(Data):
    """A task's state as of a commit."""

    state: StateManifest
    position: TaskPosition
    job: str | None = Field(
        default=None, description="that made it, of a fork's first commit: sink offsets are that job's; None: its own"
    )

    written: dict[str, int] | None = Field(
        default=None, description="the job's own sink offsets, where the position has those of a fork that repaired it"
    )

    @property
    def sink_offsets(self) -> dict[str, int]:
        """The next offset to write, by ``<topic>/<partition>``: of topics that the commit's own job has written."""
        if self.written is not None:
            return self.written
        return self.position.sink_offsets if self.job is None else {}

    def within_fork(self, job: str) -> CommittedTask:
        """What it is in a fork of ``job``, a commit of which has it: the files stay where they are."""
        files = (file.model_copy(update={"job": file.job or job}) for file in self.state.files)
        state = StateManifest(files=tuple(files))
        return self.model_copy(update={"state": state, "job": self.job or job, "written": None})


class Commit(Document):
    """The numbered manifest that makes a run true. Number 1 is a job's first."""

    kind: ClassVar[str] = "commit"
    way_out: ClassVar[str] = (
        "restore the file from a copy of the warehouse; without one, give the job a new name: it then replays from the"
        " beginning"
    )
    job: str
    commit: int
    run_id: str
    fingerprint: str
    until_ms: int | None
    end_of_input: EndOfInput = Field(default="hold", description="of the run; after ``seal`` there is no next commit")
    semantics: Semantics | None = Field(default=None, description="of the run; None: not known (before version 4)")
    evolution: Evolution | None = Field(default=None, description="of the run: see `Plan`")
    sources: tuple[SourceTopic, ...]
    tasks: dict[str, CommittedTask]
    sinks: tuple[SinkFile, ...]
    created_at_ms: int
    rolled_back_to: int | None = Field(
        default=None,
        description="a rollback: state and positions are those of this commit, the records of those after it are gone",
    )
    taken_over: TakenOver | None = Field(default=None, description="state and positions are those of an application")
    forked_from: ForkedFrom | None = Field(default=None, description="state and positions are those of this commit")
    repaired_by: RepairedBy | None = Field(
        default=None, description="state and positions are those of this commit; the records correct what was written"
    )

    @property
    def rebuilds(self) -> bool:
        """See `Plan.rebuilds`."""
        return self.rolled_back_to == self.commit - 1

    @property
    def instead_of_replay(self) -> str | None:
        """See `Plan.instead_of_replay`."""
        return instead_of_replay(self)

    def source_offsets(self) -> dict[str, dict[int, int]]:
        """The next offset to replay, by source topic and partition."""
        taken_up = by_topic(task.position.source_offsets for task in self.tasks.values())
        names = {source.topic for source in self.sources}
        return {topic: offsets for topic, offsets in taken_up.items() if topic in names}

    def sink_offsets(self) -> dict[str, dict[int, int]]:
        """The next offset to write, by topic and partition; 0 where nothing has been written yet."""
        return by_topic(task.sink_offsets for task in self.tasks.values())

    def state_files(self) -> dict[str, int]:
        """The size in bytes of each file of its state, by its path below the warehouse."""
        return {
            file.path(self.job, task_id): file.size_bytes
            for task_id, task in self.tasks.items()
            for file in task.state.files
        }


def sink_files(commits: Iterable[Commit]) -> dict[str, list[ArchiveFile]]:
    """The files that commits have written, by topic, in the order of the commits."""
    files: dict[str, list[ArchiveFile]] = {}
    for commit in commits:
        for sink in commit.sinks:
            files.setdefault(sink.topic, []).append(sink.file)
    return files
