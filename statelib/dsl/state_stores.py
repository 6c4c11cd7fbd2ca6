"""The stores of custom processors: added to a topology, then connected with the processor that uses them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from statelib.errors.kinds import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from statelib.state import StoreBuilder


class StateStores:
    """Those of one topology."""

    def __init__(self) -> None:
        self._builders: dict[str, StoreBuilder[Any]] = {}
        self._users: dict[str, str] = {}

    def has(self, builder: StoreBuilder[Any]) -> bool:
        """Whether this very builder has been added."""
        return self._builders.get(builder.name) is builder

    def add(self, builder: StoreBuilder[Any]) -> None:
        """Adds a store, under a name that nobody else has."""
        self._builders[builder.name] = builder

    def connect(self, names: Iterable[str], node: str) -> tuple[StoreBuilder[Any], ...]:
        """Gives stores to a processor.

        Raises:
            ConfigurationError: One has not been added, or another processor has it.
        """
        connected = []
        for name in names:
            if name not in self._builders:
                raise ConfigurationError(
                    "there is no such store for processors",
                    store=name,
                    node=node,
                    next_step="add its builder with add_state_store(); a table's or aggregation's store cannot be used",
                )
            if self._users.setdefault(name, node) != node:
                raise ConfigurationError(
                    f"the store belongs to {self._users[name]}, and a store can have only one processor",
                    store=name,
                    node=node,
                    next_step="merge() the streams into one processor, or send records to the one that has the store",
                )
            connected.append(self._builders[name])
        return tuple(connected)
