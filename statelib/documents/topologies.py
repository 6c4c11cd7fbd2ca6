"""What topologies are made of, as data, and how the state of one is used by another.

::

    <warehouse>/jobs/<job>/topologies/<fingerprint>.json  what a topology is made of

Plans and commits name how a run goes on from a state that another topology made (`Evolution`).
"""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import Field

from statelib.documents.document import Data, Document


class StoreDescription(Data):
    """A store of a topology: what it takes to read it without the code that wrote it."""

    name: str
    kind: str = Field(description="see `statelib.stores.spec.StoreKind`")
    node: str = Field(description="that writes it, and under whose name its clocks are")
    sub_topology: int
    families: tuple[str, ...]
    settings: dict[str, Any] = Field(description="what decides which entries it has and what they mean")
    arrow_schema: str = Field(
        description="an Arrow schema as an IPC message, in base64: `key`, `value` (as readers are shown it), where they"
        " differ from it `stored` (as the store has it) and `row` (its columns), the `id` of a deduplication, and the"
        " `foreign_key` of subscriptions (whose `value` is the referring row)"
    )


class NodeDescription(Data):
    """A node of a topology, as plain data."""

    name: str
    sub_topology: int
    parents: tuple[str, ...]
    settings: dict[str, Any]


class TopologyDescription(Document):
    """What a topology is made of: written once, before the first run of it."""

    kind: ClassVar[str] = "description of a topology"
    fingerprint: str
    nodes: tuple[NodeDescription, ...]
    stores: tuple[StoreDescription, ...]


class Migration(Data):
    """A store that is made anew of what another one holds, of its name or a former one: see `statelib.migration`."""

    before: StoreDescription
    now: StoreDescription

    @property
    def asked_for(self) -> str:
        """As in ``migrate_stores``: the store's name, behind its former one and ``=`` where that was another."""
        return self.now.name if self.before.name == self.now.name else f"{self.before.name}={self.now.name}"


class Evolution(Data):
    """How a run goes on from a state that another topology made: see `statelib.commits.topologies.evolution`.

    Attributes:
        fingerprint: Of the topology that made the state.
        nodes: The nodes whose stores are kept: what each is called now, and what it was called.
        dropped_families: By sub-topology, the families of stores that do not come along.
        migrations: The stores that are of another kind, or have another retention, than those whose content they get.
        filled: The stores that get what they would hold if the job had always had them.
        changes: What is different, in words, a sentence each.
    """

    fingerprint: str
    nodes: dict[str, str]
    dropped_families: dict[int, tuple[str, ...]]
    migrations: tuple[Migration, ...] = ()
    filled: tuple[str, ...] = ()
    changes: tuple[str, ...]
