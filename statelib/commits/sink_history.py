"""Where the records of each sink lie, as of a commit.

A sink's history is a list of segments: offsets from one to another in a partition of a topic. Two histories that share
a segment have the same records there, which nobody need read to know it: a topic's records stay as they are until a
rollback takes them back, and a commit that has been taken back has no history.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from statelib.commits.layout import Runs
from statelib.commits.standing import standing_commit

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from statelib.documents.manifests import Commit
    from statelib.storage import Storage


@dataclass(frozen=True, slots=True)
class Segment:
    """Some records of a partition of a topic, at least one.

    Attributes:
        topic: The topic whose archive has them.
        partition: The partition.
        first_offset: Of the first record.
        end_offset: Behind the last one. A sink's offsets have no holes.
    """

    topic: str
    partition: int
    first_offset: int
    end_offset: int

    def __len__(self) -> int:
        """How many records it has."""
        return self.end_offset - self.first_offset


def sink_history(warehouse: Storage, job: str, commit: int | None = None) -> Mapping[str, tuple[Segment, ...]]:
    """The segments of each sink of a job at a commit, ordered by partition, in each in the order of the records.

    Topics for late and for quarantined records are sinks as well, changelogs are not. A sink is there from the run on
    that could have written to it; one without records has no segments. Records of a commit that has not been published
    yet are not yet in the archives.

    Args:
        warehouse: Root of all durable data.
        job: The job's name.
        commit: The commit; None: the newest.

    Raises:
        ConfigurationError: There is no such commit, or it has been rolled back since.
        CorruptedDataError: A document of the job is damaged.
    """
    made = standing_commit(warehouse, job, commit)
    return {topic: tuple(_own(topic, ends)) for topic, ends in sorted(_sink_offsets(warehouse, made).items())}


def _own(topic: str, ends: Mapping[int, int]) -> Iterator[Segment]:
    """What a job has written to a topic of its own."""
    for partition, end in sorted(ends.items()):
        if end:
            yield Segment(topic, partition, 0, end)


def _sink_offsets(warehouse: Storage, made: Commit) -> dict[str, dict[int, int]]:
    """Where the sinks end; stores that the job had once have left their changelogs, known by Kafka's name for them."""
    topology = Runs(warehouse, made.job).topology(made.fingerprint)
    nodes = topology.nodes if topology is not None else ()
    declared = {node.settings.get("topic") for node in nodes if node.settings.get("node") == "sink"}
    return {
        topic: ends
        for topic, ends in made.sink_offsets().items()
        if topic in declared or not (topic.startswith(f"{made.job}-") and topic.endswith("-changelog"))
    }
