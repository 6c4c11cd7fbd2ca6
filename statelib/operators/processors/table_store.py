"""The store of a table or an aggregation, as a custom processor is given it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from statelib.errors.kinds import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable

    from statelib.state import StateStore


class StoreOfTable:
    """Stands for a store until the types of its keys and values are known: when the first records come.

    It has the methods of the store. Each call opens the store anew, so that it sees what the table has put.

    Args:
        name: The store's name.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._open: Callable[[], StateStore[Any]] | None = None

    def bind(self, open_store: Callable[[], StateStore[Any]]) -> None:
        """From now on the store is what ``open_store`` gives."""
        self._open = open_store

    def __getattr__(self, name: str) -> Any:
        """A method of the store.

        Raises:
            ConfigurationError: No records have come yet: this is in ``init``.
            AttributeError: It has none of this name.
        """
        if name.startswith("_"):
            raise AttributeError(name)
        if self._open is None:
            raise ConfigurationError(
                "the store of a table cannot be used in init(): its types are not known yet",
                store=self.name,
                next_step="get the store in init(), and use it in process() or in a callback",
            )
        return getattr(self._open(), name)
