"""What a job has replayed, slice by slice, up to a commit: its state rests on this, and on nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from statelib.commits.archives import open_archive
from statelib.commits.layout import Runs
from statelib.commits.lineage import lineage
from statelib.errors.kinds import ConfigurationError
from statelib.explanation.same_path import SamePath
from statelib.task import Stages

if TYPE_CHECKING:
    from collections.abc import Sequence

    from statelib.documents.manifests import Commit
    from statelib.documents.plans import Plan, SourceTopic
    from statelib.documents.topologies import TopologyDescription
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
        before: The commit that it went on from; None: it was the first one.
        evolves: Whether it went on from state that another topology made, or began some stores anew.
    """

    commit: int
    plan: Plan
    sink_offsets: dict[str, dict[int, int]]
    before: Commit | None
    evolves: bool


def slices_until(warehouse: Storage, job: str, topology: Topology, topic: str, commit: int | None) -> list[Slice]:
    """The runs on which the state of a commit rests, first one first; None: of the newest commit.

    Those of the jobs that were forked are among them. Former topologies may have led elsewhere in other ways.

    Raises:
        ConfigurationError: There is no such commit, or it has been rolled back since; or not all that led there was
            replayed, or what leads to the topic is not what it was.
    """
    commits, found = lineage(warehouse, job, commit), []
    same = SamePath(topology, topic, Runs(warehouse, job).topology(topology.fingerprint))
    sources = _sources(warehouse, commits)
    for before, one in zip([None, *commits], commits, strict=False):
        if one.instead_of_replay is not None:
            what = f"commit {one.commit} was {one.instead_of_replay}: its state came from elsewhere"
            step = "explain results of a job that began with an empty state"
            raise ConfigurationError(what, job=one.job, next_step=step)
        if one.fingerprint != topology.fingerprint:
            described = Runs(warehouse, one.job).topology(one.fingerprint)
            _check_same(same, one, described, _filled(commits, behind=one), topic)
        plan = Runs(warehouse, one.job).plan_of(one)
        known = {source.topic for source in plan.sources}
        newest = {name: source for name, source in sources.items() if name in topology.source_topics}
        read = [
            *(
                source.model_copy(update={"delta_version": sources[source.topic].delta_version})
                for source in plan.sources
            ),
            *(source for name, source in newest.items() if name not in known),
        ]
        update = {"sources": tuple(read), "evolution": None, "fingerprint": topology.fingerprint}
        begins = {} if before is None else before.sink_offsets()
        evolves = plan.evolution is not None
        found.append(Slice(one.commit, plan.model_copy(update=update), begins, before, evolves))
    return found


def _sources(warehouse: Storage, commits: Sequence[Commit]) -> dict[str, SourceTopic]:
    """By topic what the newest commit that has read it knows of it, at the archive's newest version."""
    known = {source.topic: source for one in commits for source in one.sources}
    return {
        topic: source.model_copy(update={"delta_version": open_archive(warehouse, topic).version})
        for topic, source in known.items()
    }


def _filled(commits: Sequence[Commit], *, behind: Commit) -> set[str]:
    """The stores that were filled by commits behind one."""
    later = commits[commits.index(behind) + 1 :]
    return {store for one in later if one.evolution is not None for store in one.evolution.filled}


def _check_same(
    same: SamePath, one: Commit, described: TopologyDescription | None, filled: set[str], topic: str
) -> None:
    """Makes sure that a commit's topology, which was another one, led to the topic as the present one does."""
    difference = same.difference(described, filled)
    if difference is None:
        return
    what = f"commit {one.commit} was made by another topology than the job has now ({difference})"
    step = (
        "explain it with the job's file of that time; or replay this one from the beginning, and explain the result of"
        " that fork: hindstream try FILE.py:NAME --keep NEW; results of stores that were filled (--set fill_stores=...)"
        " can be explained"
    )
    raise ConfigurationError(what, job=one.job, topic=topic, next_step=step)


def stages_of(
    slices: Sequence[Slice], state: Commit | None, topology: Topology, warehouse: Storage, settings: TaskSettings
) -> list[Stages]:
    """The work of each slice; the first one begins with the state of a commit, or with none."""
    return [
        Stages(topology, part.plan, None if number else state, warehouse, settings)
        for number, part in enumerate(slices)
    ]
