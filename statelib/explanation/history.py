"""What a job has replayed, slice by slice, up to a commit: its state rests on this, and on nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from statelib.commits.archives import open_archive
from statelib.commits.layout import CommitLog, Runs, rolled_back
from statelib.commits.standing import standing_commit
from statelib.errors.kinds import ConfigurationError
from statelib.task import Stages

if TYPE_CHECKING:
    from collections.abc import Sequence

    from statelib.documents.manifests import Plan
    from statelib.storage import Storage
    from statelib.task import TaskSettings
    from statelib.topology import Topology


@dataclass(frozen=True, slots=True)
class Slice:
    """One run that counts.

    Attributes:
        commit: The number of its commit.
        plan: Its plan, of which the sources are read as they are now: offsets stay, whatever files hold them.
        sink_offsets: By sink topic and partition, the offset at which it began to write.
    """

    commit: int
    plan: Plan
    sink_offsets: dict[str, dict[int, int]]


def slices_until(warehouse: Storage, job: str, topology: Topology, commit: int | None) -> list[Slice]:
    """The runs on which the state of a commit rests, first one first; None: of the newest commit.

    Raises:
        ConfigurationError: There is no such commit, or it has been rolled back since; or not all that led there was
            replayed by this topology.
    """
    log, number = CommitLog(warehouse, job), standing_commit(warehouse, job, commit).commit
    commits = [log.read(n) for n in range(1, number + 1)]
    gone = rolled_back(commits)
    runs, found = Runs(warehouse, job), []
    versions: dict[str, int] = {}
    for before, one in zip([None, *commits], commits, strict=False):
        if one.commit in gone or one.rolled_back_to is not None:
            continue
        if one.forked_from is not None:
            base = one.forked_from
            what = f"results of forks cannot be explained yet, and the job is a fork of {base.job}@{base.commit}"
            step = (
                f"explain the result in {base.job}, as of --commit {base.commit} or later; or run the changed topology"
                " under a new name: it replays from the beginning, and can be explained"
            )
            raise ConfigurationError(what, job=job, next_step=step)
        if one.instead_of_replay is not None:
            what = f"commit {one.commit} was {one.instead_of_replay}: its state came from elsewhere"
            raise ConfigurationError(what, job=job, next_step="explain results of a job that began with an empty state")
        if one.fingerprint != topology.fingerprint:
            what = f"commit {one.commit} was made by another topology than the job has now"
            step = "explain it with the job's file of that time, or replay the job under a new name"
            raise ConfigurationError(what, job=job, next_step=step)
        plan = runs.plan_of(one)
        for topic in (source.topic for source in plan.sources):
            versions[topic] = versions.get(topic) or open_archive(warehouse, topic).version
        sources = tuple(source.model_copy(update={"delta_version": versions[source.topic]}) for source in plan.sources)
        found.append(
            Slice(
                one.commit,
                plan.model_copy(update={"sources": sources, "evolution": None}),
                {} if before is None else before.sink_offsets(),
            )
        )
    return found


def stages_of(slices: Sequence[Slice], topology: Topology, warehouse: Storage, settings: TaskSettings) -> list[Stages]:
    """The work of each slice; none of it begins with stored state."""
    return [Stages(topology, part.plan, None, warehouse, settings) for part in slices]
