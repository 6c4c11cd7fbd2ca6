"""A store that a processor may read, and another one writes (Kafka's ``GlobalStateStore``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from statelib.errors.kinds import ConfigurationError

if TYPE_CHECKING:
    from statelib.state import StateStore

_WRITES = frozenset({"put", "put_all", "put_if_absent", "delete", "remove"})


class ReadOnlyStore:
    """Has the methods of the store, but for those that write.

    Args:
        store: The store.
    """

    def __init__(self, store: StateStore[Any]) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        """A method of the store.

        Raises:
            ConfigurationError: It writes.
            AttributeError: There is none of this name.
        """
        if name.startswith("_"):
            raise AttributeError(name)
        if name in _WRITES:
            raise ConfigurationError(
                "a global store can only be read: its own processor writes it",
                store=self._store.name,
                next_step="send records to the store's topic, or put into a store of add_state_store()",
            )
        return getattr(self._store, name)
