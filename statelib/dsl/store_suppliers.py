"""Where a live application keeps the stores of the DSL: an option that a port keeps, and that changes nothing here."""

from __future__ import annotations

from enum import Enum


class BuiltInDslStoreSuppliers(Enum):
    """Kafka's ``BuiltInDslStoreSuppliers`` (KIP-954), and its ``Materialized.StoreType`` (KIP-591).

    A task keeps all its state in one store, in memory as far as it fits, and results do not depend on where that is:
    they are those of Kafka's stores in RocksDB. docs/semantics.md says where Kafka's stores in memory differ.
    """

    ROCKS_DB = "on disk"
    """The live application has its stores in RocksDB, as by default."""
    IN_MEMORY = "in memory"
    """It has them in memory."""
