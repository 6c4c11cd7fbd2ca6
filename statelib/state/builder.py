"""A store that can be built again and again (Kafka's ``StoreBuilder``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from statelib.calls import KafkasNames
from statelib.state.store import StateStore
from statelib.state.suppliers import describe_supplier
from statelib.stores.spec import StoreSpec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from statelib.serdes import Serde
    from statelib.state.suppliers import BytesStoreSupplier

Store = TypeVar("Store", bound=StateStore[Any])


@dataclass(frozen=True, slots=True)
class StoreBuilder(KafkasNames, Generic[Store]):
    """Kafka's ``StoreBuilder``, made by `Stores`. Immutable and picklable: each task builds its own store.

    Attributes:
        kind: The class of the stores.
        supplier: Name and settings.
        key_serde: The serde of keys.
        value_serde: The serde of values.
    """

    kind: type[Store]
    supplier: BytesStoreSupplier
    key_serde: Serde
    value_serde: Serde

    @property
    def name(self) -> str:
        """The store's name."""
        return self.supplier.name

    def build(self) -> Store:
        """A new store; ``init`` opens it."""
        return self.kind(self.supplier, self.key_serde, self.value_serde)

    def with_caching_disabled(self) -> Self:
        """Changes nothing: there is no record cache."""
        return self

    def with_logging_enabled(self, config: Mapping[str, str] | None = None) -> Self:
        """Changes nothing: a replay writes no changelog, its state is in checkpoints."""
        del config
        return self

    def with_logging_disabled(self) -> Self:
        """Changes nothing: a replay writes no changelog, its state is in checkpoints."""
        return self

    def spec(self) -> StoreSpec:
        """What the store is."""
        settings = {name: value for name, value in self.describe().items() if name != "name"}
        return StoreSpec(self.name, self.kind.store_kind, self.kind.family_names(self.name), settings)

    def describe(self) -> Mapping[str, object]:
        """Kind, settings and serdes as plain data, for the fingerprint."""
        return {
            "store": self.kind.__name__,
            **describe_supplier(self.supplier),
            "key_serde": self.key_serde.describe(),
            "value_serde": self.value_serde.describe(),
        }
