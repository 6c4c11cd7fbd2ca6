"""The descriptions of a job's topologies: written before the first run of each, compared when another follows."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from statelib.assignment.model import TaskId
from statelib.commits.layout import Runs, changelog_topic
from statelib.commits.topologies.evolution import Made, evolve
from statelib.errors.fault_points import step
from statelib.errors.kinds import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from statelib.documents.manifests import Commit
    from statelib.documents.topologies import Evolution, TopologyDescription
    from statelib.storage import Storage

_DESCRIBED_FROM_VERSION = 4


def settle_topology(
    warehouse: Storage,
    job: str,
    fingerprint: str,
    head: Commit | None,
    *,
    tasks: Mapping[int, int],
    describe: Callable[[], TopologyDescription] | None,
    reset_stores: Collection[str],
    migrate_stores: Collection[str],
    fill_stores: Collection[str] = (),
    refill: bool = False,
    write: bool = True,
) -> Evolution | None:
    """Writes the description of a job's topology down, and finds how it goes on from the head's state.

    Args:
        warehouse: Root of all durable data.
        job: The job's name.
        fingerprint: Of its topology.
        head: The newest commit.
        tasks: Of the topology, the number of tasks of each sub-topology.
        describe: Describes the topology; called only where the description is needed.
        reset_stores: See `statelib.commits.run.plan`.
        migrate_stores: The same.
        fill_stores: The same.
        refill: The same.
        write: False: nothing is written down, to see whether it would go on.

    Returns:
        How; None: the state is of the same topology and nothing is refilled, or there is none.

    Raises:
        ConfigurationError: The state does not fit the topology, or nobody can tell whether it does.
    """
    is_same = head is not None and head.fingerprint == fingerprint and not refill
    if is_same and head is not None and head.format_version >= _DESCRIBED_FROM_VERSION:
        return None
    now = None if describe is None else describe()
    if now is not None and write:
        warehouse.put_if_absent(Runs(warehouse, job).layout.topology(fingerprint), now.encode())
        step("plan.topology-described")
    if head is None or is_same:
        return None
    return follow_up(
        warehouse,
        head,
        now,
        fingerprint,
        tasks,
        reset_stores=reset_stores,
        migrate_stores=migrate_stores,
        fill_stores=fill_stores,
    )


def follow_up(
    warehouse: Storage,
    head: Commit,
    now: TopologyDescription | None,
    fingerprint: str,
    tasks: Mapping[int, int],
    *,
    reset_stores: Collection[str] = (),
    migrate_stores: Collection[str] = (),
    fill_stores: Collection[str] = (),
) -> Evolution:
    """How another topology goes on from the head's state; changes nothing. Args and errors as of `settle_topology`."""
    job = head.job
    before = Runs(warehouse, job).topology(head.fingerprint)
    if now is None or before is None:
        raise ConfigurationError(
            f"the state of commit {head.commit} was made by another topology"
            f" ({head.fingerprint[:12]}, this one is {fingerprint[:12]}), of which there is no description",
            job=job,
            next_step=f"go back to the topology of commit {head.commit}, or give the job a new name:"
            " it then replays from the beginning",
        )
    of_head = Counter(TaskId.parse(task_id).sub_topology for task_id in head.tasks)
    topics = head.sink_offsets()
    return evolve(
        Made(before, of_head),
        Made(now, tasks),
        reset=reset_stores,
        migrate=migrate_stores,
        fill=fill_stores,
        logged=[store.name for store in (*before.stores, *now.stores) if changelog_topic(job, store.name) in topics],
        job=job,
    )
