"""Whether stores can be filled: given what they would hold if the job had always had them.

A run whose topology has new or changed stores replays the job's history for these and for what leads to them, slice by
slice as it was planned, and gives them to the state before it takes up its own slice (`statelib.task.history`). So the
sources must still have all that the job has taken up of them.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from statelib.commits.layout import Runs
from statelib.commits.topologies.leading_nodes import lead_to
from statelib.commits.topologies.past_plans import past_plans
from statelib.commits.topologies.store_differences import archives_of
from statelib.errors.counted import counted
from statelib.errors.kinds import ConfigurationError
from statelib.storage.transfers import in_parallel
from statelib.topics.slices import count_records

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from statelib.documents.manifests import Commit
    from statelib.documents.plans import Plan, SourceRange
    from statelib.documents.topologies import Evolution, TopologyDescription
    from statelib.storage import Storage
    from statelib.topics.archive import TopicArchive


def check_history(
    warehouse: Storage,
    head: Commit,
    now: TopologyDescription | None,
    evolution: Evolution,
    archives: Mapping[str, TopicArchive],
) -> None:
    """Makes sure that the stores of a topology which are to be filled can be.

    Args:
        warehouse: Root of all durable data.
        head: The job's newest commit.
        now: The topology.
        evolution: How it goes on from the head; it says which stores are to be filled.
        archives: Of the sources.

    Raises:
        ConfigurationError: The history lacks something.
    """
    if now is None or not evolution.filled:
        return
    nodes = [store.node for store in now.stores if store.name in evolution.filled]
    topics = archives_of(now, lead_to(now, nodes, with_whole_input=True))
    plans = past_plans(warehouse, head.job, head.commit)
    _check_read_alike(warehouse, plans, now, topics)
    taken_up = _taken_up(plans, topics)
    places = sorted(taken_up)

    def there(place: tuple[str, int]) -> int:
        topic, partition = place
        ranges = taken_up[place]
        return count_records(archives[topic], partition, ranges[0].start_offset, ranges[-1].end_offset)

    for place, found in zip(places, in_parallel(there, places, warehouse.requests_at_once), strict=True):
        replayed = sum(part.records for part in taken_up[place])
        if found != replayed:
            (topic, partition), lost = place, replayed - found
            raise ConfigurationError(
                f"{', '.join(evolution.filled)} cannot be filled: the job has replayed"
                f" {counted(replayed, 'record')} of this partition, and its archive {_lacks(lost)}",
                job=head.job,
                topic=topic,
                partition=partition,
                next_step="restore the archive from a copy; or let the stores begin empty: leave them out of"
                " fill_stores, and name changed ones in reset_stores",
            )


def _check_read_alike(
    warehouse: Storage, plans: Iterable[Plan], now: TopologyDescription, topics: Collection[str]
) -> None:
    """Makes sure that global tables were read as they are now: plain ones ahead of the slices, others with them."""
    reads = _reading(now)
    for job, fingerprint in dict.fromkeys((plan.job, plan.fingerprint) for plan in plans):
        before = Runs(warehouse, job).topology(fingerprint)
        read = reads if before is None else _reading(before)
        for topic in sorted(topics):
            if read.get(topic) != reads.get(topic):
                raise ConfigurationError(
                    "stores that rest on this global table cannot be filled: its records were taken up at other times"
                    f" ({read.get(topic)}) than they would be now ({reads.get(topic)})",
                    job=job,
                    topic=topic,
                    next_step="keep the table plain or versioned as it was; or give the job a new name: it then replays"
                    " from the beginning",
                )


def _reading(topology: TopologyDescription) -> dict[str, str | None]:
    """By source topic, how it is read; None: each task reads its partition."""
    sources = (node.settings for node in topology.nodes if node.settings["node"] == "source")
    return {source["topic"]: source.get("reading") for source in sources}


def _lacks(lost: int) -> str:
    if lost < 0:
        return f"has {-lost} more at these offsets"
    return f"lacks {lost} of them (retention, compaction)"


def _taken_up(plans: Iterable[Plan], topics: set[str]) -> dict[tuple[str, int], list[SourceRange]]:
    """By topic and partition, what each run has taken up, first one first."""
    taken_up: defaultdict[tuple[str, int], list[SourceRange]] = defaultdict(list)
    for plan in plans:
        of_plan = {(part.topic, part.partition): part for task in plan.tasks for part in task.sources}
        for place, part in of_plan.items():
            if part.topic in topics:
                taken_up[place].append(part)
    return dict(taken_up)
