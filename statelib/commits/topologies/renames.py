"""Which stores of a topology are those of another one under other names."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from statelib.errors.kinds import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from statelib.documents.topologies import StoreDescription, TopologyDescription

_GENERATED = re.compile(r"K(STREAM|TABLE)-.*[0-9]{10}")
_NOT_OF_KAFKA = re.compile(r"K(STREAM|TABLE)-(?!DEDUPLICATE|DISTINCT)[A-Z-]+-[0-9]{10}-(STORE|SINK)")
"""What only releases called something that counted otherwise than Kafka Streams does."""


def asked_renames(
    migrate: Iterable[str], before: TopologyDescription, now: TopologyDescription, job: str
) -> dict[str, str]:
    """The new names of stores by their former ones, as ``FORMER=NAME`` says them.

    Raises:
        ConfigurationError: There was no such store or there is none, two get one name, or a name is still another's.
    """
    renamed = {former: name for former, is_rename, name in (entry.partition("=") for entry in migrate) if is_rename}
    was, is_ = ({store.name for store in topology.stores} for topology in (before, now))
    for former, name in renamed.items():
        is_taken = list(renamed.values()).count(name) > 1 or (name in was and name not in renamed)
        if former not in was or name not in is_ or is_taken:
            gone, new = (", ".join(sorted(names)) or "none" for names in (was - is_, is_ - was))
            raise ConfigurationError(
                f"store {former} cannot be renamed to {name}: {former} must be a store of the former topology, and"
                f" {name} a store of the new one that continues no other (gone: {gone}; new: {new})",
                job=job,
                next_step="name them as FORMER=NAME",
            )
    return renamed


def new_names(
    lost: Iterable[StoreDescription],
    now: Iterable[StoreDescription],
    fits: Callable[[StoreDescription, StoreDescription], bool],
) -> Iterator[tuple[str, str]]:
    """The former and the new names of stores that differ in nothing else; of several alike, in order of nodes.

    Args:
        lost: Former stores.
        now: Those that may be one of them.
        fits: Whether a former store can go on as the other.
    """
    free = list(now)
    for store in lost:
        fitting = next((other for other in free if fits(store, other)), None)
        if fitting is not None:
            free.remove(fitting)
            yield store.name, fitting.name


def counted_otherwise(
    before: TopologyDescription,
    now: TopologyDescription,
    fits: Callable[[StoreDescription, StoreDescription], bool],
) -> dict[str, str]:
    """Of a topology whose numbers are not Kafka's, the new names of the stores that were called by numbers.

    One of them may now be the number of another store that is alike, so names say nothing.
    """
    told = [*(node.name for node in before.nodes), *(store.name for store in before.stores)]
    told += [str(node.settings.get("store")) for node in before.nodes]
    if not any(_NOT_OF_KAFKA.search(name) for name in told):
        return {}
    numbered = [store for store in before.stores if _GENERATED.match(store.name)]
    return dict(new_names(numbered, [store for store in now.stores if _GENERATED.match(store.name)], fits))


def numbering_nodes(nodes: Mapping[str, str], before: TopologyDescription, now: TopologyDescription) -> dict[str, str]:
    """The nodes that number the changes of joins by foreign keys which go on: they have a clock, and no store.

    Args:
        nodes: Of those with stores what each is called now, and what it was called.
        before: What has made the state.
        now: What is to go on from it.
    """
    joins = {node.name for node in now.nodes if node.settings.get("operator") == "foreign_key_join"}
    return {_writer(now, new): _writer(before, old) for new, old in nodes.items() if new in joins}


def _writer(topology: TopologyDescription, join: str) -> str:
    """The node whose records go through a repartition topic to a node, to its first parent."""
    by_name = {node.name: node for node in topology.nodes}
    topic = by_name[by_name[join].parents[0]].settings["topic"]
    sinks = (node for node in topology.nodes if node.settings["node"] == "sink")
    return next(sink.parents[0] for sink in sinks if sink.settings["topic"] == topic)
