"""The stores of custom processors: added to a topology, then connected with the processors that use them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from statelib.errors.kinds import ConfigurationError
from statelib.errors.user_lines import place_of_call

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from statelib.state import StoreBuilder


class Connected(NamedTuple):
    """The stores of a processor.

    Attributes:
        own: Those that it was the first to be connected with.
        shared: Others of processors.
        tables: The names of those of tables and aggregations.
    """

    own: tuple[StoreBuilder[Any], ...]
    shared: tuple[StoreBuilder[Any], ...]
    tables: tuple[str, ...]


class StateStores:
    """Those of one topology."""

    def __init__(self) -> None:
        self._builders: dict[str, StoreBuilder[Any]] = {}
        self._first_users: dict[str, str] = {}

    def has(self, builder: StoreBuilder[Any]) -> bool:
        """Whether this very builder has been added."""
        return self._builders.get(builder.name) is builder

    def has_name(self, name: str) -> bool:
        """Whether a store of this name has been added."""
        return name in self._builders

    def add(self, builder: StoreBuilder[Any]) -> None:
        """Adds a store, under a name that nobody else has."""
        self._builders[builder.name] = builder

    def connect(self, names: Iterable[str], node: str, *, tables: Mapping[str, bool]) -> Connected:
        """Gives stores to a processor.

        Args:
            names: Of the stores.
            node: The processor's.
            tables: The names of the stores of tables and aggregations, and whether these are global.

        Raises:
            ConfigurationError: One has not been added, or is a global table's.
        """
        connected, of_tables = [], []
        for name in names:
            if tables.get(name):
                raise ConfigurationError(
                    "a processor is connected with the store of a global table",
                    **place_of_call(),
                    store=name,
                    node=node,
                    next_step="join with the global table, or use add_global_store(), which needs no connecting",
                )
            if name in tables:
                of_tables.append(name)
                continue
            if name not in self._builders:
                raise ConfigurationError(
                    "there is no such store",
                    **place_of_call(),
                    store=name,
                    node=node,
                    next_step="add_state_store() its builder before, or name that of a table with Materialized.as_()",
                )
            self._first_users.setdefault(name, node)
            connected.append(self._builders[name])
        own = tuple(builder for builder in connected if self._first_users[builder.name] == node)
        return Connected(own, tuple(builder for builder in connected if builder not in own), tuple(of_tables))
