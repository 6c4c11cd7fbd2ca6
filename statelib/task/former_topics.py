"""Where repartition topics have got other names, with the stores that they are called after: their offsets go on.

A deduplication knows a record that it has seen by its offset, so offsets must not begin anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from statelib.documents.places import place_of, topic_and_partition
from statelib.topology import Source

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from statelib.documents.topologies import TopologyDescription
    from statelib.topology import SubTopology


def former_topics(now: SubTopology, nodes: Mapping[str, str], before: TopologyDescription) -> dict[str, str]:
    """The new names of repartition topics by their former ones: those by which records come to the stores that go on.

    Args:
        now: The sub-topology of the task.
        nodes: Of nodes whose stores go on, what each is called now, and what it was called (`Evolution.nodes`).
        before: The topology that made the state.
    """
    written = {node.settings["topic"] for node in before.nodes if node.settings["node"] == "sink"}
    parents_before = {node.name: node.parents for node in before.nodes}
    topics_before = {
        node.name: str(node.settings["topic"])
        for node in before.nodes
        if node.settings["node"] == "source" and node.settings["topic"] in written
    }
    parents_now = {node.name: node.parents for node in now.nodes}
    topics_now = {node.name: node.topic for node in now.nodes if isinstance(node, Source) and node.internal}
    renamed: dict[str, str] = {}
    for new, old in nodes.items():
        if new in parents_now and old in parents_before:
            was = _topics_above(old, parents_before, topics_before)
            is_ = _topics_above(new, parents_now, topics_now)
            if len(was) == len(is_):
                renamed |= dict(zip(was, is_, strict=True))
    return {was: is_ for was, is_ in renamed.items() if was != is_}


def renamed_places(places: Mapping[str, int], renamed: Mapping[str, str]) -> dict[str, int]:
    """Numbers by ``<topic>/<partition>``, under the new names of topics."""

    def now(place: str) -> str:
        topic, partition = topic_and_partition(place)
        return place_of(renamed.get(topic, topic), partition)

    return {now(place): number for place, number in places.items()}


def _topics_above(node: str, parents: Mapping[str, Sequence[str]], topics: Mapping[str, str]) -> list[str]:
    """The repartition topics by which records come to a node within its sub-topology, in order of nodes."""
    above: set[str] = set()
    waiting = [node]
    while waiting:
        found = waiting.pop()
        if found not in above:
            above.add(found)
            waiting += parents.get(found, ())
    return [topic for name, topic in topics.items() if name in above]
