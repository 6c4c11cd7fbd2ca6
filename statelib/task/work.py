"""What a task is told to do. All of it is immutable and picklable: it travels to a Spark worker."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from statelib.settings.local_dir import local_state_dir

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import pyarrow as pa

    from statelib.documents.manifests import CommittedTask, RepartitionFile
    from statelib.documents.plans import Leeway, PlannedTask
    from statelib.documents.topologies import Evolution
    from statelib.settings.max_future import OnFutureRecord
    from statelib.settings.semantics import EndOfInput, Semantics
    from statelib.topics.files import ArchiveFile
    from statelib.topology import SubTopology

_BUDGET_BYTES_A_RECORD = 640
_FEWEST_AT_ONCE = 1 << 14  # fewer cost more each, and hardly take less memory


@dataclass(frozen=True)
class TaskSettings:
    """What is the same for all tasks of a run.

    Attributes:
        warehouse: Root of all durable data, a path or URL (see `statelib.storage`).
        storage_options: Options of the object store, without credentials.
        state_dir: A local directory for the working copies of state; see `statelib.settings.local_dir`.
        memory_budget_bytes: Past it a task's working sets are written to RocksDB and emptied.
        batch_records: How many records are taken up at a time, but see `batch_records_beyond_budget`; no effect on
            results.
        semantics: See `Semantics`.
        on_bad_record: ``fail``: a record that cannot be used ends the run; ``quarantine``: it goes to the topic
            ``<job>-quarantine``, is counted and shown.
        on_processing_error: ``fail``: a record for which a function of the user's fails ends the run; ``quarantine``:
            see `statelib.task.processing_errors`.
        on_future_record: ``quarantine``: a record from the future goes to that topic, whatever is said of bad ones;
            ``partition-time``: it is taken up with the largest timestamp so far of its partition.
        on_late_record: ``drop``: a record that comes too late for an operator is counted and gone; ``topic``: it goes
            to the topic ``<job>-late`` as well (see `statelib.operators.late_records`).
        parallel_transfers: How many state files a task fetches or stores at a time.
    """

    warehouse: str
    state_dir: str
    storage_options: Mapping[str, str] = field(default_factory=dict)
    memory_budget_bytes: int = 512 * 2**20
    batch_records: int = 131_072
    semantics: Semantics = "kip"
    on_bad_record: Literal["fail", "quarantine"] = "fail"
    on_processing_error: Literal["fail", "quarantine"] = "fail"
    on_future_record: OnFutureRecord = "quarantine"
    on_late_record: Literal["drop", "topic"] = "drop"
    parallel_transfers: int = 4

    @property
    def local_state_dir(self) -> Path:
        """``state_dir`` on this host; raises `ConfigurationError` if it names a variable that is not set here."""
        return local_state_dir(self.state_dir)

    @property
    def batch_records_beyond_budget(self) -> int:
        """How many records are taken up at a time once the memory budget has been exceeded.

        What is made of them takes memory beside the budget, and more of it where state comes back from RocksDB.
        """
        return min(self.batch_records, max(self.memory_budget_bytes // _BUDGET_BYTES_A_RECORD, _FEWEST_AT_ONCE))


@dataclass(frozen=True)
class SourceFiles:
    """What a task needs to know of a source's archive, in place of opening the table, which has all of its files.

    Attributes:
        schema: The columns that its records are read as, as `statelib.topics.parquet.schema.topic_schema` gives them.
        table_schema: The columns of the table.
        by_partition: The files with records of the planned range.
        latest_ms: By partition, for each of these files the latest timestamp that is not from the future; of a
            partition without such records it may be missing.
    """

    schema: pa.Schema
    table_schema: pa.Schema
    by_partition: Mapping[int, tuple[ArchiveFile, ...]]
    latest_ms: Mapping[int, tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class TaskWork:
    """One task of one run.

    Attributes:
        job: The job's name.
        run_id: The run.
        commit: The number of the commit that the run prepares.
        fingerprint: Of the whole topology.
        sub_topology: What to run.
        planned: Which task this is, and the source ranges that it takes up.
        ordinal: The task's number among all tasks of the job: its partition of the topics for quarantined and late
            records.
        source_files: Of each source topic, what the planned version of its archive has for this task.
        repartitions: Files of the repartition topics' partition that this task reads.
        repartition_types: Schema with the fields ``key`` and ``value`` of each repartition topic that it reads.
        partitions: Number of partitions of each topic that the task writes, repartition topics and those
            for quarantined and late records included.
        restore: The task's state as of the last commit; None: it has none yet.
        settings: See `TaskSettings`.
        end_of_input: See `EndOfInput`.
        evolution: How the run goes on from a state that another topology made; None: the same one did.
        history: What the task replays before, slice by slice, so that stores can be filled: of its sub-topology what
            leads to these (`statelib.task.history`). Empty: nothing.
        sample_keys: The share of the keys of which results are wanted (`statelib.task.sampling`); None: all.
        leeway: What some of its operators let in that the topology does not; None: nothing.
        kept_as: The digest of all that decides what the task makes, under which its outcome is kept
            (`statelib.commits.run.kept`); None: it is not.
    """

    job: str
    run_id: str
    commit: int
    fingerprint: str
    sub_topology: SubTopology
    planned: PlannedTask
    ordinal: int
    source_files: Mapping[str, SourceFiles]
    repartitions: tuple[RepartitionFile, ...]
    repartition_types: Mapping[str, pa.Schema]
    partitions: Mapping[str, int]
    restore: CommittedTask | None
    settings: TaskSettings
    end_of_input: EndOfInput = "hold"
    evolution: Evolution | None = None
    history: tuple[TaskWork, ...] = ()
    sample_keys: float | None = None
    leeway: Leeway | None = None
    kept_as: str | None = None

    @property
    def records(self) -> int:
        """How many records it is going to read."""
        own = sum(source.records for source in self.planned.sources) + sum(file.rows for file in self.repartitions)
        return own + sum(past.records for past in self.history)
