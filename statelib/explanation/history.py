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
    from statelib.documents.topologies import Evolution, TopologyDescription
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
        evolution: How it went on from the state of another topology; None: the same one had made it.
        may_begin: Whether a replay with the present topology may begin with it, with the state before.
    """

    commit: int
    plan: Plan
    sink_offsets: dict[str, dict[int, int]]
    before: Commit | None
    evolution: Evolution | None
    may_begin: bool


@dataclass(frozen=True, slots=True)
class PastSlices:
    """The runs on which the state of a commit rests.

    Attributes:
        slices: Those that can be replayed, first one first.
        behind: How many there were before these, that which made the state with which they began included.
        refused: Why these cannot be replayed; None: there were none, and the first slice began with no state.
    """

    slices: list[Slice]
    behind: int
    refused: ConfigurationError | None


def slices_until(warehouse: Storage, job: str, topology: Topology, topic: str, commit: int | None) -> PastSlices:
    """The runs on which the state of a commit rests; None: of the newest commit.

    Those of the jobs that were forked are among them. Former topologies may have led elsewhere in other ways. Not all
    that led there may have been replayed, and what leads to the topic may not be what it was: then only the runs since
    can be replayed.

    Raises:
        ConfigurationError: There is no such commit, or it has been rolled back since; or the job's state is that of a
            live application, of which nobody knows how late its records in repartition topics were.
    """
    commits = lineage(warehouse, job, commit)
    found: list[Slice] = []
    same = SamePath(topology, topic, Runs(warehouse, job).topology(topology.fingerprint))
    sources = _sources(warehouse, commits)
    behind, refused = 0, None
    for number, (before, one) in enumerate(zip([None, *commits], commits, strict=False)):
        try:
            plan = _replayable(warehouse, commits, one, topology, topic, same)
        except ConfigurationError as problem:
            if one.taken_over is not None:
                raise
            found, behind, refused = [], number + 1, problem
            continue
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
        present = one.fingerprint == topology.fingerprint
        may_begin = before is not None and present and (plan.evolution is None or _keeps_names(plan.evolution))
        found.append(Slice(one.commit, plan.model_copy(update=update), begins, before, plan.evolution, may_begin))
    return PastSlices(found, behind, refused)


def _keeps_names(evolution: Evolution) -> bool:
    """Whether each store that goes on is called what it was called, and none is made over or filled."""
    is_plain = not (evolution.migrations or evolution.filled)
    return is_plain and all(now == was for now, was in evolution.nodes.items())


def _replayable(
    warehouse: Storage, commits: Sequence[Commit], one: Commit, topology: Topology, topic: str, same: SamePath
) -> Plan:
    """The plan of a commit's run.

    Raises:
        ConfigurationError: It cannot be replayed with the present topology.
    """
    if one.instead_of_replay is not None:
        what = f"commit {one.commit} was {one.instead_of_replay}: its state came from elsewhere"
        step = "explain results of a job that began with an empty state"
        if one.repaired_by is not None:
            step = (
                "explain a result that rests on later records alone, or one of before as of then:"
                f" --commit {one.commit - 1}"
            )
        raise ConfigurationError(what, job=one.job, next_step=step)
    runs = Runs(warehouse, one.job)
    if one.fingerprint != topology.fingerprint:
        described = runs.topology(one.fingerprint)
        problem = _different(same, one, described, _filled(commits, behind=one), topic)
        if problem is not None:
            raise problem
    plan = runs.plan_of(one)
    if plan.leeway is not None:
        what = f"the run of commit {one.commit} let late records in"
        step = "explain a result that rests on later records alone, or one of before as of then: --commit N"
        raise ConfigurationError(what, job=one.job, next_step=step)
    return plan


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


def _different(
    same: SamePath, one: Commit, described: TopologyDescription | None, filled: set[str], topic: str
) -> ConfigurationError | None:
    """Where a commit's topology, which was another one, led to the topic in another way than the present one."""
    difference = same.difference(described, filled)
    if difference is None:
        return None
    what = f"commit {one.commit} was made by another topology than the job has now ({difference})"
    step = (
        "explain it with the job's file of that time; or replay this one from the beginning, and explain the result of"
        " that fork: hindstream try FILE.py:NAME --keep NEW; results of stores that were filled (--set fill_stores=...)"
        " can be explained"
    )
    return ConfigurationError(what, job=one.job, topic=topic, next_step=step)


def stages_of(
    slices: Sequence[Slice], state: Commit | None, topology: Topology, warehouse: Storage, settings: TaskSettings
) -> list[Stages]:
    """The work of each slice; the first one begins with the state of a commit, as its run did, or with none."""
    first = slices[0].plan.model_copy(update={"evolution": None if state is None else slices[0].evolution})
    return [
        Stages(topology, first if number == 0 else part.plan, None if number else state, warehouse, settings)
        for number, part in enumerate(slices)
    ]
