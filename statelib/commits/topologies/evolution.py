"""Whether a job can go on from the state of another topology, and how.

A store is known by its name, wherever a changed topology has it. It comes along if what is in it still means the same:

- it is of the same kind, with the same settings (retention, windows, which aggregation) and types;
- its sub-topology has the same number, and the same source topics lead to it, over repartitions too;
- its records have the same keys: no step before it that gives records another key is new, gone or different.

A table's store that differs in nothing but whether it is versioned, its retention or its segment interval can be made
anew of its changelog, or of what it holds: it is *migrated* (KIP-889, its migration of stores that are not versioned).
A store that goes on under another name is migrated, too, whatever its kind: ``FORMER=NAME`` says so.

A store may be *filled*, whether it is new, cannot come along or only rests on other code: it is given what it would
hold if the job had always had it (`statelib.commits.topologies.fill`). What comes behind it has to be filled with it.

The tasks must be as many as before, and a sink that stays must be written by the same ones: offsets are theirs.

Then everything else may change: stateless steps, names, sinks, functions of the same kind. What a function *does* is
not known; where only its code differs the job goes on, as a live application does when it is deployed anew, and the
plan says so. A new store begins empty. Of a store that cannot come along somebody has to say that it may be reset.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from statelib.commits.layout import fork_topic
from statelib.commits.topologies.filled_stores import check_whole, filled_stores, filled_with
from statelib.commits.topologies.renames import asked_renames, counted_otherwise, new_names, numbering_nodes
from statelib.commits.topologies.store_differences import (
    StoreDifferences,
    archives_of,
    topics_that_came,
    without_code,
)
from statelib.documents.topologies import Evolution, Migration
from statelib.errors.kinds import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from statelib.documents.topologies import StoreDescription, TopologyDescription

_SHOWN = 3
_MERGING = "merge.repartition.topics (topology.optimization)"


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
    fill: Collection[str] = (),
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
        fill: Names of stores that are filled; with one of a node, all of its stores are.
        logged: Names of stores that have a changelog. They cannot be reset: the changelog would still have all that
            they held. Nor can they be filled: it would lack the beginning, or have another one.
        job: The job's name.

    Raises:
        ConfigurationError: A store cannot come along and is named in none of these, or sources, tasks or who writes a
            sink have changed; or a store cannot be filled as it is asked for.
    """
    _check_shape(before, now, job)
    filled = filled_stores(now.topology, fill, migrate=migrate, logged=logged, job=job)
    settled = _Settled(filled=filled)
    compared = StoreDifferences(before.topology, now.topology)
    stores = {store.name: store for store in now.topology.stores}
    renamed = asked_renames(migrate, before.topology, now.topology, job)
    counted = counted_otherwise(before.topology, now.topology, compared.fits)
    for store in before.topology.stores:
        other = store.name not in renamed and counted.get(store.name, store.name) != store.name
        kept = None if other else stores.get(renamed.get(store.name, store.name))
        why = "it is gone" if kept is None else compared.difference(store, kept)
        asked = store.name in renamed or store.name in migrate
        if kept is not None and kept.name in filled:
            settled.fill(store, kept, why)
        elif kept is not None and asked and (why is None or compared.can_migrate(store, kept)):
            settled.migrate(store, kept, why)
        elif kept is not None and why is None:
            settled.nodes[kept.node] = store.node
        elif store.name in reset and store.name not in logged:
            settled.reset(store, str(why))
        else:
            cannot = ", and it has a changelog, so it cannot be reset" if store.name in reset else ""
            settled.lost[store.name] = f"{why}{cannot}"
    known = {store.name for store in before.topology.stores} | {*renamed.values(), *counted.values()}
    new = [store for store in now.topology.stores if store.name not in known]
    if settled.lost:
        called, migrates = _ways_on(settled.lost, compared, counted, new)
        resets = [name for name in settled.lost if name not in logged]
        fills = filled_with(now.topology, {*filled, *(name for name in resets if name in stores)}, settled.nodes)
        gone = [name for name in resets if name not in stores and name not in called]
        raise _refusal(settled.lost, called, migrates, resets, [] if set(fills) & set(logged) else fills, gone, job)
    for store in new:
        settled.changes.append(
            f"store {store.name} is new and {'is filled from history' if store.name in filled else 'begins empty'}"
        )
    nodes = settled.nodes
    check_whole(now.topology, filled, nodes, job)
    return Evolution(
        fingerprint=before.topology.fingerprint,
        nodes=nodes | numbering_nodes(nodes, before.topology, now.topology),
        dropped_families=settled.dropped,
        migrations=tuple(settled.migrations),
        filled=filled,
        changes=(*settled.changes, *_changed_nodes(before.topology, now.topology, job)),
    )


@dataclass(slots=True)
class _Settled:
    """What becomes of the stores.

    Attributes:
        nodes: See `Evolution`.
        dropped: The same, ``dropped_families``.
        migrations: The same.
        filled: The same.
        changes: The same.
        lost: Why stores cannot come along, by name.
    """

    nodes: dict[str, str] = field(default_factory=dict)
    dropped: dict[int, tuple[str, ...]] = field(default_factory=dict)
    migrations: list[Migration] = field(default_factory=list)
    filled: tuple[str, ...] = ()
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
        self._drop(store)
        self.changes.append(f"store {store.name} is reset: {why}")

    def fill(self, store: StoreDescription, kept: StoreDescription, why: str | None) -> None:
        """Lets one get what it would hold if it had always been as it is."""
        self._drop(store)
        self.changes.append(f"store {kept.name} is filled from history{'' if why is None else f': {why}'}")

    def _drop(self, store: StoreDescription) -> None:
        self.dropped[store.sub_topology] = (*self.dropped.get(store.sub_topology, ()), *store.families)


def _ways_on(
    lost: Iterable[str], compared: StoreDifferences, counted: Mapping[str, str], new: Iterable[StoreDescription]
) -> tuple[dict[str, str], list[str]]:
    """Of stores that cannot come along: the new names of those that have got one, and which may be migrated.

    Args:
        lost: Their names.
        compared: The two topologies.
        counted: The new names of those that an older release has numbered otherwise.
        new: The stores that go on from no other.
    """
    old, stores = ({store.name: store for store in made.stores} for made in (compared.before, compared.now))
    gone = [old[name] for name in lost if name not in stores and name not in counted]
    called = {**counted, **dict(new_names(gone, new, compared.fits))}
    alike = [name for name in lost if name in stores and name not in called]
    return called, [name for name in alike if compared.can_migrate(old[name], stores[name])]


def _refusal(
    lost: Mapping[str, str],
    called: Mapping[str, str],
    migrates: Sequence[str],
    resets: Sequence[str],
    fills: Sequence[str],
    gone: Sequence[str],
    job: str,
) -> ConfigurationError:
    """Says which stores cannot come along, and what can be done.

    Args:
        lost: Why, by name.
        called: The new names of those that have got one.
        migrates: The names of those that may be migrated.
        resets: The names of those that may begin empty.
        fills: The names of those that may be filled, and of others that have to be filled with them.
        gone: The names of those that the topology no longer has: to fill the others, they have to be given up.
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
    if fills:
        given_up = f" --set reset_stores={','.join(gone)}" if gone else ""
        choices.append(f"fill stores from the job's history (--set fill_stores={','.join(fills)}{given_up})")
    if resets:
        choices.append(f"let stores begin empty (--set reset_stores={','.join(resets)})")
    return ConfigurationError(
        f"the topology has changed so that the state does not fit it: store {shown}{more}",
        job=job,
        next_step=f"{', '.join(choices)}, or give the job a new name: it then replays from the beginning",
    )


def _check_shape(before: Made, now: Made, job: str) -> None:
    """Refuses what no store can be reset for."""
    if (what := _other_shape(before, now)) is not None:
        raise ConfigurationError(
            f"the topology has changed so that the state does not fit it: {what}",
            job=job,
            next_step=f"go back to the former topology, {_topics_together(before, now)}or give the job a new name:"
            " it then replays from the beginning",
        )


def _other_shape(before: Made, now: Made) -> str | None:
    """What has changed that no store can be reset for."""
    old, new = (archives_of(made.topology, made.topology.nodes) for made in (before, now))
    if odd := sorted((old ^ new) - topics_that_came(before.topology, now.topology)):
        return f"source topic {odd[0]} is {'gone' if odd[0] in old else 'new'}"
    if before.tasks != now.tasks:
        shown = (", ".join(map(str, dict(sorted(made.tasks.items())).values())) for made in (before, now))
        return "the tasks of its sub-topologies were {} and are {}".format(*shown)
    writers, writers_now = (_writers(made.topology) for made in (before, now))
    for topic in sorted(writers.keys() & writers_now.keys()):
        if writers[topic] != writers_now[topic]:
            return f"topic {topic} is written by another sub-topology"
    return None


def _topics_together(before: Made, now: Made) -> str:
    """A way to have as many sub-topologies as before, where repartition topics have merged or parted; or nothing."""
    stores, stores_now = ({store.name for store in made.topology.stores} for made in (before, now))
    if len(now.tasks) < len(before.tasks) and stores <= stores_now:
        return f"build it without {_MERGING} as before, "
    if len(now.tasks) > len(before.tasks):
        return (
            f"build it with {_MERGING} if it had that, name groupings (Grouped.as_) whose aggregations had one"
            " repartition topic together, so that they have one again, "
        )
    return ""


def _writers(topology: TopologyDescription) -> dict[Any, int]:
    """The sub-topology that writes each topic."""
    return {node.settings["topic"]: node.sub_topology for node in topology.nodes if node.settings["node"] == "sink"}


def _changed_nodes(before: TopologyDescription, now: TopologyDescription, job: str) -> Iterator[str]:
    """What became of the nodes, by name; that a fork's sinks have names of their own is no change."""
    old, new = ({node.name: node for node in topology.nodes} for topology in (before, now))
    same = [name for name in new if name in old]
    code = [name for name in same if _is_code_alone(old[name].settings, new[name].settings)]
    other = [
        name
        for name in same
        if name not in code and new[name].settings not in (old[name].settings, _of_fork(old[name].settings, job))
    ]
    for names, became in (
        ([name for name in old if name not in new], "gone"),
        ([name for name in new if name not in old], "new"),
        (other, "different"),
        (code, "the same with other code"),
        ([name for name in same if old[name].parents != new[name].parents], "below other nodes"),
    ):
        if names:
            yield f"{_listed(names)} {'is' if len(names) == 1 else 'are'} {became}"


def _of_fork(settings: Mapping[str, Any], fork: str) -> dict[str, Any]:
    """A node's settings in a fork: a sink's topic has the fork's name."""
    is_sink = settings["node"] == "sink"
    return {**settings, "topic": fork_topic(str(settings["topic"]), fork)} if is_sink else dict(settings)


def _is_code_alone(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    return old != new and without_code(dict(old)) == without_code(dict(new))


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_SHOWN])
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"node{'s' if len(names) > 1 else ''} {shown}{more}"
