"""What makes a store of one topology another one than that of another: what it is, and the records that come to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from statelib.columns.schema_text import decode_schema
from statelib.columns.windowed_type import WindowedType
from statelib.commits.topologies.leading_nodes import lead_to

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from statelib.documents.topologies import NodeDescription, StoreDescription, TopologyDescription

_GIVE_KEYS = ("select_key", "map", "flat_map", "process", "table_select", "foreign_key_subscribe")
"""Operators whose records may have other keys than those they got; repartitions by another mapper than the key, too."""

_OF_CODE = {"function", "class", "code"}
"""What `statelib.operators.mappers.code_identity` tells of a function, where it knows its code."""
_OF_WAITING = {"held_ms"}
"""Only when entries leave depends on it."""
_OF_HISTORY = {"history_retention_ms", "segment_interval_ms"}


@dataclass(frozen=True, slots=True)
class StoreDifferences:
    """How stores of one topology differ from those of another.

    Attributes:
        before: What has made the state.
        now: What is to go on from it.
    """

    before: TopologyDescription
    now: TopologyDescription

    def difference(self, old: StoreDescription, new: StoreDescription) -> str | None:
        """Why a store cannot come along; None: it can."""
        if old.kind != new.kind:
            return f"it was a {old.kind} store and is a {new.kind} store"
        was, is_ = (_without(store.settings, _OF_WAITING) for store in (old, new))
        changed = next(_differences(was, is_, "its "), None)
        if changed is None and _endings(old) != _endings(new):
            return "it lies in other families"
        return changed or self._other_content(old, new)

    def fits(self, old: StoreDescription, new: StoreDescription) -> bool:
        """Whether a store can come along as another one."""
        return self.difference(old, new) is None

    def can_migrate(self, old: StoreDescription, new: StoreDescription) -> bool:
        """Whether a store can be made anew: a table's, of which only the kind or the retention has changed."""
        if {old.kind, new.kind} - {"key-value", "versioned"}:
            return False
        was, is_ = (_without(store.settings, _OF_HISTORY) for store in (old, new))
        return was == is_ and self._other_content(old, new) is None

    def _other_content(self, old: StoreDescription, new: StoreDescription) -> str | None:
        """What makes the records that come to a store others than those that came before; None: nothing."""
        (archives_before, keys_before), (archives_now, keys_now) = (
            _lineage(topology, store.node) for topology, store in ((self.before, old), (self.now, new))
        )
        came = topics_that_came(self.before, self.now)
        for what, was, is_ in (
            ("its sub-topology", old.sub_topology, new.sub_topology),
            ("the topics behind it", archives_before, [topic for topic in archives_now if topic not in came]),
        ):
            if was != is_:
                return f"{what} was {was} and is {is_}"
        if _without_window(old, new):
            return "its entries lie under keys without their windows, as an older release kept them"
        if _types(old, new) != _types(new, old):
            return "the types of its keys or values are others"
        return None if keys_before == keys_now else "the keys of the records that come to it are made otherwise"


def archives_of(topology: TopologyDescription, nodes: Iterable[NodeDescription]) -> set[Any]:
    """The topics of those of ``nodes`` that read archives: repartition topics are written, too."""
    written = {node.settings["topic"] for node in topology.nodes if node.settings["node"] == "sink"}
    return {node.settings["topic"] for node in nodes if node.settings["node"] == "source"} - written


def topics_that_came(before: TopologyDescription, now: TopologyDescription) -> set[Any]:
    """The topics that a pattern of ``now`` matches and ``before`` did not read: they are read from their beginning.

    As in Kafka Streams, what has been read of other topics stays.
    """
    matched = {node.settings["topic"] for node in now.nodes if "matched_by" in node.settings}
    return matched - archives_of(before, before.nodes)


def _endings(store: StoreDescription) -> list[str]:
    """What its families are called behind its name."""
    return [family.removeprefix(store.name) for family in store.families]


def _without(settings: Mapping[str, Any], names: Collection[str]) -> Any:
    """What decides what a store's entries mean, but for some settings, without code."""
    return without_code({name: setting for name, setting in settings.items() if name not in names})


def _without_window(old: StoreDescription, new: StoreDescription) -> bool:
    """Whether nothing but the windows of its keys tells the one's types from the other's."""
    key, windowed = (_key_type(store) for store in (old, new))
    if not isinstance(windowed, WindowedType):
        return False
    while isinstance(windowed, WindowedType):
        windowed = windowed.key_type
    return bool(windowed == key)


def _key_type(store: StoreDescription) -> object:
    schema = decode_schema(store.arrow_schema)
    return schema.field("key").type if "key" in schema.names else None


def _types(store: StoreDescription, other: StoreDescription) -> object:
    """A store's types; without those of its rows if ``other``, of an older release, does not tell them."""
    if store.kind not in {"suppression-buffer", "join-buffer", "held-records"}:
        return store.arrow_schema
    schema, known = decode_schema(store.arrow_schema), decode_schema(other.arrow_schema)
    return [(field.name, field.type) for field in schema if field.name != "row" or "row" in known.names]


def _differences(was: Any, is_: Any, what: str) -> Iterator[str]:
    """The parts of plain data that have changed, each with its path."""
    if isinstance(was, dict) and isinstance(is_, dict):
        for name in sorted(was.keys() | is_.keys()):
            yield from _differences(was.get(name), is_.get(name), f"{what}{' ' if what[-1] != ' ' else ''}{name}")
    elif was != is_:
        yield f"{what} was {was} and is {is_}"


def _lineage(topology: TopologyDescription, node: str) -> tuple[list[Any], list[Any]]:
    """The archives whose records come to a node, over all repartitions; and what gives them keys, in order of nodes."""
    lineage = [known for known in lead_to(topology, [node]) if known.name != node]
    keys = [key for known in lineage if (key := _key_of(known.settings)) is not None]
    return sorted(archives_of(topology, lineage)), keys


def _key_of(settings: Mapping[str, Any]) -> Any:
    """What gives a node's records their key, without code; None: they have the key that they came with."""
    if settings.get("operator") in _GIVE_KEYS:
        return without_code(settings)
    return without_code(settings.get("partition_by"))


def without_code(described: Any) -> Any:
    """``described`` without what is known of functions: their names and hashes."""
    if isinstance(described, dict):
        told = _OF_CODE if "code" in described else set()
        return {name: "a function" if name in told else without_code(part) for name, part in described.items()}
    if isinstance(described, list | tuple):
        return [without_code(part) for part in described]
    return described
