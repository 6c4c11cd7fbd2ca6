"""What kind of store, and its settings: what the DSL's ``Materialized`` and the store builders take. Immutable."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from statelib.calls import arguments_checked
from statelib.calls.names import check_name

if TYPE_CHECKING:
    from collections.abc import Mapping


@arguments_checked
@dataclass(frozen=True, slots=True)
class KeyValueBytesStoreSupplier:
    """A plain key-value store (Kafka's ``KeyValueBytesStoreSupplier``).

    Attributes:
        name: The store's name.
        persistent: Whether it is in a folder where it is opened by itself. In a job the state of a task is one,
            whatever this is: it lives in memory while a slice runs, as far as that goes, and in the task's RocksDB from
            slice to slice.
    """

    name: str
    persistent: bool = True

    def __post_init__(self) -> None:
        """Checks the name, as Kafka does (``Named.validate``)."""
        check_name(self.name, "a store")


@arguments_checked
@dataclass(frozen=True, slots=True)
class VersionedStoreSupplier:
    """A versioned key-value store; `VersionedBytesStoreSupplier` gives the store itself, too.

    Attributes:
        name: The store's name.
        history_retention_ms: How long old versions can be asked for, and how late an update may come.
        segment_interval_ms: Width of the segments that expire as a whole; None: Kafka's choice (retention / 3 to / 24).
        persistent: See `KeyValueBytesStoreSupplier`.
    """

    name: str
    history_retention_ms: int
    segment_interval_ms: int | None = None
    persistent: bool = True

    def __post_init__(self) -> None:
        """Checks the name, as Kafka does (``Named.validate``)."""
        check_name(self.name, "a store")


@arguments_checked
@dataclass(frozen=True, slots=True)
class WindowBytesStoreSupplier:
    """A window store (Kafka's ``WindowBytesStoreSupplier``).

    Attributes:
        name: The store's name.
        retention_ms: How long after its start a window is kept, by the store's own clock: the largest start put.
        window_size_ms: From a window's start to its end.
        persistent: See `KeyValueBytesStoreSupplier`.
    """

    name: str
    retention_ms: int
    window_size_ms: int
    persistent: bool = True

    def __post_init__(self) -> None:
        """Checks the name, as Kafka does (``Named.validate``)."""
        check_name(self.name, "a store")


@arguments_checked
@dataclass(frozen=True, slots=True)
class SessionBytesStoreSupplier:
    """A session store (Kafka's ``SessionBytesStoreSupplier``).

    Attributes:
        name: The store's name.
        retention_ms: How long after its end a session is kept, by the store's own clock: the largest end put.
        persistent: See `KeyValueBytesStoreSupplier`.
    """

    name: str
    retention_ms: int
    persistent: bool = True

    def __post_init__(self) -> None:
        """Checks the name, as Kafka does (``Named.validate``)."""
        check_name(self.name, "a store")


BytesStoreSupplier = (
    KeyValueBytesStoreSupplier | VersionedStoreSupplier | WindowBytesStoreSupplier | SessionBytesStoreSupplier
)


def describe_supplier(supplier: BytesStoreSupplier) -> Mapping[str, object]:
    """The settings that decide the answer, as plain data: where the store is does not."""
    settings = asdict(supplier)
    del settings["persistent"]
    return settings
