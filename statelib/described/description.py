"""A store as the description of its topology has it, and where a task has it.

Who describes is above (`statelib.documents.topologies`, ``StoreDescription`` and ``NodeDescription``): what is read of
that is said here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pyarrow as pa

    from statelib.settings.semantics import Semantics
    from statelib.stores.backend import Backend


class PartFacts(Protocol):
    """A store or a node of a topology, as plain data."""

    @property
    def sub_topology(self) -> int:
        """The number of its sub-topology."""

    @property
    def settings(self) -> dict[str, Any]:
        """What decides what it does or holds."""


class StoreFacts(PartFacts, Protocol):
    """A store: see ``StoreDescription``."""

    @property
    def name(self) -> str:
        """By which it is known from one topology to the next."""

    @property
    def kind(self) -> str:
        """See `statelib.stores.spec.StoreKind`."""

    @property
    def node(self) -> str:
        """The node that writes it, and under whose name its clocks are."""

    @property
    def families(self) -> tuple[str, ...]:
        """Its backend families."""


class NodeFacts(PartFacts, Protocol):
    """A node: see ``NodeDescription``."""

    @property
    def parents(self) -> tuple[str, ...]:
        """The nodes that it gets records from."""


def as_stored(states: pa.Array) -> pa.Array:
    """The results of a store that nothing is aggregated in."""
    return states


@dataclass(frozen=True, slots=True)
class Described:
    """A store as its description has it.

    Attributes:
        store: The description.
        schema: Its schema, decoded.
        siblings: The stores of the same node, itself included, by name, with their schemas.
        semantics: Of the commit.
        nodes: All nodes of the topology, by name.
        tasks: How many tasks each sub-topology has.
        results_of: What makes results of the states that an aggregation has stored: a mean of a sum and a count.
    """

    store: StoreFacts
    schema: pa.Schema
    siblings: Mapping[str, tuple[StoreFacts, pa.Schema]]
    semantics: Semantics
    nodes: Mapping[str, NodeFacts] = field(default_factory=dict)
    tasks: Mapping[int, int] = field(default_factory=dict)
    results_of: Callable[[pa.Array], pa.Array] = as_stored

    @property
    def name(self) -> str:
        """The store's name."""
        return self.store.name

    @property
    def settings(self) -> Mapping[str, Any]:
        """See `StoreDescription`."""
        return self.store.settings

    @property
    def is_global(self) -> bool:
        """Whether each task has the whole of it."""
        return any("reading" in self.nodes[parent].settings for parent in self.nodes[self.store.node].parents)

    @property
    def changelog_topic(self) -> str | None:
        """The source topic that is its changelog in a live application; None: it has one of its own."""
        node = self.nodes.get(self.store.node)
        return None if node is None else node.settings.get("changelog_topic")

    @property
    def is_of_processor(self) -> bool:
        """Whether a custom processor puts what it holds: under keys of its choice, in bytes of the job's serdes."""
        return "value_serde" in self.settings

    @property
    def is_repartitioned(self) -> bool:
        """Whether its records come through a repartition topic, where they are placed by their keys.

        Answers of foreign-key joins go back to where the question came from.
        """
        sinks = {of.settings["topic"]: of for of in self.nodes.values() if of.settings.get("node") == "sink"}
        waiting = [self.nodes[self.store.node]] if self.store.node in self.nodes else []
        while waiting:
            node = waiting.pop()
            waiting += [self.nodes[parent] for parent in node.parents]
            sink = sinks.get(node.settings.get("topic"))
            if node.settings.get("node") == "source" and sink is not None and sink.settings["partition_by"] is None:
                return all(self.nodes[parent].settings.get("operator") != "foreign_key_join" for parent in sink.parents)
        return False

    def type(self, name: str) -> pa.DataType:
        """The type of a field of the schema."""
        return self.schema.field(name).type


class Place(NamedTuple):
    """A task's state: its stores, and the clocks of the node that owns the store, and of the task (ms)."""

    backend: Backend
    clocks: Mapping[str, int]
    stream_time_ms: int
