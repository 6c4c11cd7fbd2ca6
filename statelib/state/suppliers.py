"""Suppliers: the kind and settings of a store, for ``Materialized`` and the store builders. Immutable."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from statelib.calls import arguments_checked
from statelib.calls.names import check_given_name

if TYPE_CHECKING:
    from collections.abc import Mapping


class _OfAName:
    """Base of suppliers: checks the name, as Kafka does (``Named.validate``)."""

    __slots__ = ()
    name: str

    def __post_init__(self) -> None:
        check_given_name(self.name, "a store")


@arguments_checked
@dataclass(frozen=True, slots=True)
class KeyValueBytesStoreSupplier(_OfAName):
    """A plain key-value store (Kafka's ``KeyValueBytesStoreSupplier``).

    Attributes:
        name: The store's name.
        persistent: Whether the store is in a folder when it is opened outside of a job. Inside a job this makes no
            difference: state is in memory while a slice runs, within the memory budget, and in the task's RocksDB
            between slices.
    """

    name: str
    persistent: bool = True


@arguments_checked
@dataclass(frozen=True, slots=True)
class VersionedStoreSupplier(_OfAName):
    """A versioned key-value store; `VersionedBytesStoreSupplier` also creates the store.

    Attributes:
        name: The store's name.
        history_retention_ms: How long old versions can be queried, and how late an update may be.
        segment_interval_ms: Width of the segments that expire as a whole; None: Kafka's choice (retention / 3 to / 24).
        persistent: See `KeyValueBytesStoreSupplier`.
    """

    name: str
    history_retention_ms: int
    segment_interval_ms: int | None = None
    persistent: bool = True


@arguments_checked
@dataclass(frozen=True, slots=True)
class WindowBytesStoreSupplier(_OfAName):
    """A window store (Kafka's ``WindowBytesStoreSupplier``).

    Attributes:
        name: The store's name.
        retention_ms: How long after its start a window is kept, by the store's own clock: the largest start put.
        window_size_ms: The windows' size.
        persistent: See `KeyValueBytesStoreSupplier`.
        retain_duplicates: Whether a key may have several values in a window, as in the stores of joins of two streams.
    """

    name: str
    retention_ms: int
    window_size_ms: int
    persistent: bool = True
    retain_duplicates: bool = False


@arguments_checked
@dataclass(frozen=True, slots=True)
class SessionBytesStoreSupplier(_OfAName):
    """A session store (Kafka's ``SessionBytesStoreSupplier``).

    Attributes:
        name: The store's name.
        retention_ms: How long after its end a session is kept, by the store's own clock: the largest end put.
        persistent: See `KeyValueBytesStoreSupplier`.
    """

    name: str
    retention_ms: int
    persistent: bool = True


BytesStoreSupplier = (
    KeyValueBytesStoreSupplier | VersionedStoreSupplier | WindowBytesStoreSupplier | SessionBytesStoreSupplier
)


def describe_supplier(supplier: BytesStoreSupplier) -> Mapping[str, object]:
    """The settings that decide the answer, as plain data: where the store is does not."""
    settings = asdict(supplier)
    del settings["persistent"]
    settings.pop("retain_duplicates", None)  # the store's class says so
    return settings
