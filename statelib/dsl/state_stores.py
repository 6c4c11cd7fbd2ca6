"""The stores of custom processors: added to a topology, then connected with the processors that use them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from statelib.errors.kinds import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from statelib.state import StoreBuilder


class Connected(NamedTuple):
    """The stores of a processor.

    Attributes:
        own: Those that it was the first to be connected with.
        shared: The others.
    """

    own: tuple[StoreBuilder[Any], ...]
    shared: tuple[StoreBuilder[Any], ...]


class StateStores:
    """Those of one topology."""

    def __init__(self) -> None:
        self._builders: dict[str, StoreBuilder[Any]] = {}
        self._first_users: dict[str, str] = {}

    def has(self, builder: StoreBuilder[Any]) -> bool:
        """Whether this very builder has been added."""
        return self._builders.get(builder.name) is builder

    def add(self, builder: StoreBuilder[Any]) -> None:
        """Adds a store, under a name that nobody else has."""
        self._builders[builder.name] = builder

    def connect(self, names: Iterable[str], node: str) -> Connected:
        """Gives stores to a processor.

        Raises:
            ConfigurationError: One has not been added.
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
            self._first_users.setdefault(name, node)
            connected.append(self._builders[name])
        own = tuple(builder for builder in connected if self._first_users[builder.name] == node)
        return Connected(own, tuple(builder for builder in connected if builder not in own))
