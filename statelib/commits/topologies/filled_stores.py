"""Which stores of a changed topology are filled: asked for, of a node all together, with what comes behind them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from statelib.commits.topologies.leading_nodes import lead_to
from statelib.errors.did_you_mean import did_you_mean
from statelib.errors.kinds import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from statelib.documents.topologies import TopologyDescription


def filled_stores(
    now: TopologyDescription, fill: Iterable[str], *, migrate: Iterable[str], logged: Collection[str], job: str
) -> tuple[str, ...]:
    """The stores to fill, in order of the topology: those that are named, and the other ones of their nodes.

    Args:
        now: The topology.
        fill: Names of stores.
        migrate: What is to be migrated, which is another way to a store's content.
        logged: Names of stores that have a changelog.
        job: For errors.

    Raises:
        ConfigurationError: There is no such store, it is to be migrated as well, or it has a changelog.
    """
    by_name, migrated = {store.name: store for store in now.stores}, {name.rpartition("=")[2] for name in migrate}
    for name in fill:
        if name not in by_name:
            step = did_you_mean(name, by_name, "name stores of the topology in fill_stores:")
            raise ConfigurationError("there is no such store to fill", job=job, store=name, next_step=step)
    nodes = {by_name[name].node for name in fill}
    filled = tuple(store.name for store in now.stores if store.node in nodes)
    for name in filled:
        if name in migrated:
            step = "name it in one of migrate_stores and fill_stores"
            raise ConfigurationError("a store cannot be both migrated and filled", job=job, store=name, next_step=step)
        if name in logged:
            raise ConfigurationError(
                "the store has a changelog, which would not have what it is filled with, so it cannot be filled",
                job=job,
                store=name,
                next_step="go back to the former topology, or give the job a new name: it then replays from the"
                " beginning",
            )
    return filled


def filled_with(now: TopologyDescription, stores: Collection[str], kept: Collection[str]) -> list[str]:
    """Some stores, and those that have to be filled with them, in order of the topology: they hold what these gave.

    Args:
        now: The topology.
        stores: Names of stores that are filled.
        kept: The nodes whose stores would come along.
    """
    nodes = {store.node for store in now.stores if store.name in stores}
    return [
        store.name
        for store in now.stores
        if store.node in nodes
        or (store.node in kept and any(node.name in nodes for node in lead_to(now, [store.node])))
    ]


def check_whole(now: TopologyDescription, filled: Collection[str], kept: Collection[str], job: str) -> None:
    """Makes sure that no store is kept whose content was made of what a filled store gave before.

    Args:
        now: The topology.
        filled: Names of the stores that are filled.
        kept: The nodes whose stores come along.
        job: For the error.

    Raises:
        ConfigurationError: Some are.
    """
    wanted = filled_with(now, filled, kept)
    if left := [name for name in wanted if name not in filled]:
        behind = f"store {left[0]} comes" if len(left) == 1 else f"stores {', '.join(left)} come"
        raise ConfigurationError(
            f"{behind} behind {', '.join(filled)} and would keep what was made of the former content",
            job=job,
            next_step=f"fill all of them: fill_stores={','.join(wanted)}",
        )
