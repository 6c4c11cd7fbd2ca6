"""Whether a job can go on from the state of another topology, and how.

A store is known by its name, wherever a changed topology has it. It comes along if what is in it still means the same:

- it is of the same kind, with the same settings (retention, windows, which aggregation) and types;
- its sub-topology has the same number, and the same source topics lead to it, over repartitions too;
- its records have the same keys: no step before it that gives records another key is new, gone or different.

A table's store that differs in nothing but whether it is versioned, its retention or its segment interval can be made
anew of its changelog, or of what it holds: it is *migrated* (KIP-889, its migration of stores that are not versioned).
A store that goes on under another name is migrated, too, whatever its kind: ``FORMER=NAME`` says so.

The tasks must be as many as before, and a sink that stays must be written by the same ones: offsets are theirs.

Then everything else may change: stateless steps, names, sinks, functions of the same kind. What a function *does* is
not known; where only its code differs the job goes on, as a live application does when it is deployed anew, and the
plan says so. A new store begins empty. Of a store that cannot come along somebody has to say that it may be reset.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from statelib.columns.schema_text import decode_schema
from statelib.columns.windowed_type import WindowedType
from statelib.commits.renames import asked_renames, counted_otherwise, new_names, numbering_nodes
from statelib.documents.manifests import Evolution, Migration
from statelib.errors.kinds import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from statelib.documents.manifests import NodeDescription, StoreDescription, TopologyDescription

_GIVE_KEYS = ("select_key", "map", "flat_map", "process", "table_select", "foreign_key_subscribe")
"""Operators whose records may have other keys than those they got; repartitions by another mapper than the key, too."""

_OF_CODE = {"function", "class", "code"}
"""What `statelib.operators.mappers.code_identity` tells of a function, where it knows its code."""
_OF_WAITING = {"held_ms"}
"""Only when entries leave depends on it."""
_OF_HISTORY = {"history_retention_ms", "segment_interval_ms"}
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Made:
    """A topology and the number of tasks of each of its sub-topologies."""

    topology: TopologyDescription
    tasks: Mapping[int, int]


def evolve(
    before: Made,
    now: Made,
    *,
    reset: Collection[str],
    migrate: Collection[str],
    logged: Collection[str] = (),
    job: str,
) -> Evolution:
    """How the state of ``before`` is used by ``now``.

    Args:
        before: What has made the state.
        now: What is to go on from it.
        reset: Names of stores that may begin empty if they cannot come along.
        migrate: Names of tables' stores that may be made anew of what they hold, if that is all it takes; and
            ``FORMER=NAME`` of stores that go on under another name.
        logged: Names of stores that have a changelog. They cannot be reset: the changelog would still have all that
            they held.
        job: For errors.

    Raises:
        ConfigurationError: A store cannot come along and is named in neither, or sources, tasks or who writes a sink
            have changed.
    """
    if (what := _other_shape(before, now)) is not None:
        raise ConfigurationError(
            f"the topology has changed so that the state does not fit it: {what}",
            job=job,
            next_step=f"go back to the former topology, {_one_topic(before, now)}or give the job a new name: it then"
            " replays from the beginning",
        )
    settled = _Settled()
    stores = {store.name: store for store in now.topology.stores}
    renamed = asked_renames(migrate, before.topology, now.topology, job)

    def fits(old: StoreDescription, new: StoreDescription) -> bool:
        return _difference(old, before, new, now) is None

    counted = counted_otherwise(before.topology, now.topology, fits)
    for store in before.topology.stores:
        other = store.name not in renamed and counted.get(store.name, store.name) != store.name
        kept = None if other else stores.get(renamed.get(store.name, store.name))
        why = "it is gone" if kept is None else _difference(store, before, kept, now)
        asked = store.name in renamed or store.name in migrate
        if kept is not None and asked and (why is None or _can_migrate(store, before, kept, now)):
            settled.migrate(store, kept, why)
        elif kept is not None and why is None:
            settled.nodes[kept.node] = store.node
        elif store.name in reset and store.name not in logged:
            settled.reset(store, str(why))
        else:
            cannot = ", and it has a changelog, so it cannot be reset" if store.name in reset else ""
            settled.lost[store.name] = f"{why}{cannot}"
    known = {store.name for store in before.topology.stores} | {*renamed.values(), *counted.values()}
    if settled.lost:
        old = {store.name: store for store in before.topology.stores}
        gone = [old[name] for name in settled.lost if name not in stores and name not in counted]
        others = [store for store in stores.values() if store.name not in known]
        called = counted | dict(new_names(gone, others, fits))
        alike = [name for name in settled.lost if name in stores and name not in called]
        migrates = [name for name in alike if _can_migrate(old[name], before, stores[name], now)]
        raise _refusal(settled.lost, called, migrates, [name for name in settled.lost if name not in logged], job)
    settled.changes += [f"store {name} is new and begins empty" for name in stores if name not in known]
    nodes = settled.nodes
    return Evolution(
        fingerprint=before.topology.fingerprint,
        nodes=nodes | numbering_nodes(nodes, before.topology, now.topology),
        dropped_families=settled.dropped,
        migrations=tuple(settled.migrations),
        changes=(*settled.changes, *_changed_nodes(before.topology, now.topology)),
    )


@dataclass(slots=True)
class _Settled:
    """What becomes of the stores.

    Attributes:
        nodes: See `Evolution`.
        dropped: The same, ``dropped_families``.
        migrations: The same.
        changes: The same.
        lost: Why stores cannot come along, by name.
    """

    nodes: dict[str, str] = field(default_factory=dict)
    dropped: dict[int, tuple[str, ...]] = field(default_factory=dict)
    migrations: list[Migration] = field(default_factory=list)
    changes: list[str] = field(default_factory=list)
    lost: dict[str, str] = field(default_factory=dict)

    def migrate(self, store: StoreDescription, kept: StoreDescription, why: str | None) -> None:
        """Makes one anew, or gives it its new name."""
        self.nodes[kept.node] = store.node
        if store.name == kept.name and why is None:
            return
        self.migrations.append(Migration(before=store, now=kept))
        called = "" if store.name == kept.name else f" is called {kept.name} from now on"
        made = "" if why is None else f" is migrated: {why}"
        self.changes.append(f"store {store.name}{called}{' and' if called and made else ''}{made}")

    def reset(self, store: StoreDescription, why: str) -> None:
        """Lets one begin empty."""
        self.dropped[store.sub_topology] = (*self.dropped.get(store.sub_topology, ()), *store.families)
        self.changes.append(f"store {store.name} is reset: {why}")


def _refusal(
    lost: Mapping[str, str], called: Mapping[str, str], migrates: Sequence[str], resets: Sequence[str], job: str
) -> ConfigurationError:
    """Says which stores cannot come along, and what can be done.

    Args:
        lost: Why, by name.
        called: The new names of those that have got one.
        migrates: The names of those that may be migrated.
        resets: The names of those that may begin empty.
        job: The job's name.
    """
    told = {name: f"it is called {called[name]} now" if name in called else why for name, why in lost.items()}
    migrates = [*migrates, *(f"{name}={called[name]}" for name in lost if name in called)]
    shown = "; ".join(f"{name}: {why}" for name, why in list(told.items())[:_SHOWN])
    more = f", and {len(lost) - _SHOWN} more" if len(lost) > _SHOWN else ""
    choices = ["go back to the former topology"]
    if migrates:
        asked = " ".join(f"--store {name}" for name in migrates)
        next_run = f"the next run with migrate_stores={','.join(migrates)}"
        choices.append(f"migrate (hindstream migrate plan JOB {asked}, then hindstream migrate run; or {next_run})")
    if resets:
        choices.append(f"let stores begin empty with reset_stores={','.join(resets)}")
    return ConfigurationError(
        f"the topology has changed so that the state does not fit it: store {shown}{more}",
        job=job,
        next_step=f"{', '.join(choices)}, or give the job a new name: it then replays from the beginning",
    )


def _other_shape(before: Made, now: Made) -> str | None:
    """What has changed that no store can be reset for."""
    old, new = (_archives(made.topology, made.topology.nodes) for made in (before, now))
    if old != new:
        odd = min(old ^ new)
        return f"source topic {odd} is {'gone' if odd in old else 'new'}"
    if before.tasks != now.tasks:
        shown = (", ".join(map(str, dict(sorted(made.tasks.items())).values())) for made in (before, now))
        return "the tasks of its sub-topologies were {} and are {}".format(*shown)
    writers, writers_now = (_writers(made.topology) for made in (before, now))
    for topic in sorted(writers.keys() & writers_now.keys()):
        if writers[topic] != writers_now[topic]:
            return f"topic {topic} is written by another sub-topology"
    return None


def _one_topic(before: Made, now: Made) -> str:
    """A way to have as few sub-topologies as before, where there are more; or nothing."""
    if len(now.tasks) <= len(before.tasks):
        return ""
    return (
        "name groupings (Grouped.as_) whose aggregations had one repartition topic together, so that they have one"
        " again, "
    )


def _writers(topology: TopologyDescription) -> dict[Any, int]:
    """The sub-topology that writes each topic."""
    return {node.settings["topic"]: node.sub_topology for node in topology.nodes if node.settings["node"] == "sink"}


def _archives(topology: TopologyDescription, nodes: Iterable[NodeDescription]) -> set[Any]:
    """The topics of those of ``nodes`` that read archives: repartition topics are written, too."""
    written = {node.settings["topic"] for node in topology.nodes if node.settings["node"] == "sink"}
    return {node.settings["topic"] for node in nodes if node.settings["node"] == "source"} - written


def _difference(old: StoreDescription, before: Made, new: StoreDescription, now: Made) -> str | None:
    """Why a store cannot come along; None: it can."""
    if old.kind != new.kind:
        return f"it was a {old.kind} store and is a {new.kind} store"
    changed = next(_differences(_of_content(old.settings), _of_content(new.settings), "its "), None)
    if changed is None and _endings(old) != _endings(new):
        return "it lies in other families"
    return changed or _other_content(old, before, new, now)


def _endings(store: StoreDescription) -> list[str]:
    """What its families are called behind its name."""
    return [family.removeprefix(store.name) for family in store.families]


def _of_content(settings: Mapping[str, Any]) -> Any:
    """What of a store's settings decides what its entries mean, without code."""
    return _without_code({name: setting for name, setting in settings.items() if name not in _OF_WAITING})


def _can_migrate(old: StoreDescription, before: Made, new: StoreDescription, now: Made) -> bool:
    """Whether a store can be made anew: a table's, of which only the kind or the retention has changed."""
    if {old.kind, new.kind} - {"key-value", "versioned"}:
        return False
    of_content = (
        {name: setting for name, setting in store.settings.items() if name not in _OF_HISTORY} for store in (old, new)
    )
    was, is_ = map(_without_code, of_content)
    return was == is_ and _other_content(old, before, new, now) is None


def _other_content(old: StoreDescription, before: Made, new: StoreDescription, now: Made) -> str | None:
    """What makes the records that come to a store others than those that came before; None: nothing."""
    (archives_before, keys_before), (archives_now, keys_now) = (
        _lineage(made.topology, store.node) for made, store in ((before, old), (now, new))
    )
    for what, was, is_ in (
        ("its sub-topology", old.sub_topology, new.sub_topology),
        ("the topics behind it", archives_before, archives_now),
    ):
        if was != is_:
            return f"{what} was {was} and is {is_}"
    if _without_window(old, new):
        return "its entries lie under keys without their windows, as an older release kept them"
    if _types(old, new) != _types(new, old):
        return "the types of its keys or values are others"
    return None if keys_before == keys_now else "the keys of the records that come to it are made otherwise"


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
    by_name = {known.name: known for known in topology.nodes}
    sinks: dict[Any, list[str]] = {}
    for known in topology.nodes:
        if known.settings["node"] == "sink":
            sinks.setdefault(known.settings["topic"], []).append(known.name)
    reached: set[str] = set()
    waiting = [node]
    while waiting:
        found = by_name[waiting.pop()]
        if found.name not in reached:
            reached.add(found.name)
            waiting += found.parents
            waiting += sinks.get(found.settings["topic"], []) if found.settings["node"] == "source" else []
    lineage = [known for known in topology.nodes if known.name in reached - {node}]
    keys = [key for known in lineage if (key := _key_of(known.settings)) is not None]
    return sorted(_archives(topology, lineage)), keys


def _key_of(settings: Mapping[str, Any]) -> Any:
    """What gives a node's records their key, without code; None: they have the key that they came with."""
    if settings.get("operator") in _GIVE_KEYS:
        return _without_code(settings)
    return _without_code(settings.get("partition_by"))


def _without_code(described: Any) -> Any:
    """``described`` without what is known of functions: their names and hashes."""
    if isinstance(described, dict):
        told = _OF_CODE if "code" in described else set()
        return {name: "a function" if name in told else _without_code(part) for name, part in described.items()}
    if isinstance(described, list | tuple):
        return [_without_code(part) for part in described]
    return described


def _changed_nodes(before: TopologyDescription, now: TopologyDescription) -> Iterator[str]:
    """What became of the nodes, by name."""
    old, new = ({node.name: node for node in topology.nodes} for topology in (before, now))
    same = [name for name in new if name in old]
    code = [name for name in same if _is_code_alone(old[name].settings, new[name].settings)]
    other = [name for name in same if old[name].settings != new[name].settings and name not in code]
    for names, became in (
        ([name for name in old if name not in new], "gone"),
        ([name for name in new if name not in old], "new"),
        (other, "different"),
        (code, "the same with other code"),
        ([name for name in same if old[name].parents != new[name].parents], "below other nodes"),
    ):
        if names:
            yield f"{_listed(names)} {'is' if len(names) == 1 else 'are'} {became}"


def _is_code_alone(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    return old != new and _without_code(dict(old)) == _without_code(dict(new))


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_SHOWN])
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"node{'s' if len(names) > 1 else ''} {shown}{more}"
