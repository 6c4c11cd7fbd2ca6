"""Options of operators: names, stores, serdes, numbers of partitions. Immutable, and named as in Kafka."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, NoReturn

from statelib.calls import KafkasNames, arguments_checked
from statelib.calls.names import check_given_name
from statelib.dsl.serde_options import OfSerdes, WithOtherSerde, WithSerdes
from statelib.dsl.store_suppliers import BuiltInDslStoreSuppliers
from statelib.errors.kinds import ConfigurationError
from statelib.operators.mappers.mapping import mapper
from statelib.operators.tables.writer import PlainStore, VersionedStore
from statelib.settings.durations import milliseconds
from statelib.state import (
    KeyValueBytesStoreSupplier,
    SessionBytesStoreSupplier,
    WindowBytesStoreSupplier,
)
from statelib.state.suppliers import BytesStoreSupplier
from statelib.state.versioned_bytes import VersionedBytesStoreSupplier

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import timedelta

    from statelib.operators.mappers.mapping import MapperLike
    from statelib.operators.tables.writer import TableStore
    from statelib.serdes import Serde


@arguments_checked
@dataclass(frozen=True, slots=True)
class Named(KafkasNames):
    """The name of a node (Kafka's ``Named``)."""

    name: str

    def __post_init__(self) -> None:
        """Checks the name, as Kafka does (``Named.validate``)."""
        check_given_name(self.name, "a node")

    @classmethod
    def as_(cls, name: str) -> Named:
        """A node called ``name``."""
        return cls(name)

    def with_name(self, name: str) -> Named:
        """A copy called ``name``."""
        return replace(self, name=name)


@arguments_checked
@dataclass(frozen=True, slots=True)
class Grouped(OfSerdes):
    """The name of a repartition topic that grouping may need (Kafka's ``Grouped``)."""

    name: str | None = None

    def __post_init__(self) -> None:
        """Checks the name, as Kafka does (``Named.validate``)."""
        check_given_name(self.name, "a node or of its repartition topic")

    @classmethod
    def as_(cls, name: str) -> Grouped:
        """The topic is called ``<application id>-<name>-repartition``."""
        return cls(name)

    def with_name(self, name: str) -> Grouped:
        """A copy whose topic has this name."""
        return replace(self, name=name)


@arguments_checked
@dataclass(frozen=True, slots=True)
class Joined(WithOtherSerde, OfSerdes):
    """Name and grace period of a join, and the name of the repartition topic that it may need (Kafka's ``Joined``)."""

    name: str | None = None
    grace_period_ms: int | None = None

    def __post_init__(self) -> None:
        """Checks the name, as Kafka does (``Named.validate``)."""
        check_given_name(self.name, "a node")

    @classmethod
    def as_(cls, name: str) -> Joined:
        """The node is called ``name``."""
        return cls(name)

    def with_name(self, name: str) -> Joined:
        """A copy whose node is called ``name``."""
        return replace(self, name=name)

    @classmethod
    def other_value_serde(cls, serde: Serde) -> Joined:
        """Without a name; nothing is converted between nodes."""
        del serde
        return cls()

    def with_grace_period(self, grace_period: timedelta) -> Joined:
        """Stream records wait this long, in stream time, for table updates that come late (KIP-923).

        Needs a versioned table with a history retention of at least the grace period.
        """
        return replace(self, grace_period_ms=milliseconds(grace_period, "grace_period"))


@arguments_checked
@dataclass(frozen=True, slots=True)
class TableJoined(KafkasNames):
    """Name and partitioners of a join of two tables by a foreign key (Kafka's ``TableJoined``, KIP-775).

    They are for tables that are not placed by Kafka's default partitioner. A partitioner is a mapper that returns a
    partition for each key, from 0: it sees the columns ``key`` and ``num_partitions``, and ``value`` is null. Null
    stands for the default partitioner. ::

        TableJoined.with_(partitioner=by_customer, other_partitioner=by_country)

    Attributes:
        name: The prefix of the names of nodes and topics.
        partitioner: Places keys of the left table: where its rows are, their results are.
        other_partitioner: Places keys of the right table, which are the foreign keys: where its rows are, those that
            refer to them are looked for.
    """

    name: str | None = None
    partitioner: MapperLike | None = None
    other_partitioner: MapperLike | None = None

    def __post_init__(self) -> None:
        """Checks the name, as Kafka does (``Named.validate``)."""
        check_given_name(self.name, "a node")

    @classmethod
    def as_(cls, name: str) -> TableJoined:
        """Nodes and topics have this prefix."""
        return cls(name)

    @classmethod
    def with_(cls, partitioner: MapperLike | None = None, other_partitioner: MapperLike | None = None) -> TableJoined:
        """Without a name; see the class."""
        return cls(None, partitioner, other_partitioner)

    def with_name(self, name: str) -> TableJoined:
        """A copy whose nodes and topics have this prefix."""
        return replace(self, name=name)

    def with_partitioner(self, partitioner: MapperLike) -> TableJoined:
        """A copy whose ``partitioner`` places keys of the left table."""
        return replace(self, partitioner=partitioner)

    def with_other_partitioner(self, partitioner: MapperLike) -> TableJoined:
        """A copy whose ``partitioner`` places keys of the right table."""
        return replace(self, other_partitioner=partitioner)


@arguments_checked
@dataclass(frozen=True, slots=True)
class Produced(KafkasNames):
    """How a sink topic is written (Kafka's ``Produced``)."""

    partitions: int | None = None
    name: str | None = None
    partitioner: MapperLike | None = None

    def __post_init__(self) -> None:
        """Checks the name, as Kafka does (``Named.validate``)."""
        check_given_name(self.name, "a node")

    @classmethod
    def as_(cls, name: str) -> Produced:
        """The node is called ``name``."""
        return cls(name=name)

    @classmethod
    def with_partitions(cls, partitions: int) -> Produced:
        """The topic gets this many partitions if it does not exist yet."""
        return cls(partitions)

    @classmethod
    def stream_partitioner(cls, partitioner: MapperLike) -> Produced:
        """Records go to the partitions that ``partitioner`` chooses: see `with_stream_partitioner`."""
        return cls(partitioner=mapper(partitioner))

    def with_name(self, name: str) -> Produced:
        """A copy whose node has this name."""
        return replace(self, name=name)

    def with_stream_partitioner(self, partitioner: MapperLike) -> Produced:
        """A copy in which ``partitioner`` chooses the partition of each record (Kafka's ``StreamPartitioner``).

        It is a mapper that gives numbers, from 0; beside the record's columns it sees ``num_partitions``. Null stands
        for Kafka's default partitioner. Lists send a record to several partitions, an empty list to none (KIP-837). ::

            per_record(lambda key, n: int(key[1:]) % n, pa.int32(), "key", "num_partitions")
        """
        return replace(self, partitioner=mapper(partitioner))


@arguments_checked
@dataclass(frozen=True, slots=True)
class Repartitioned(WithSerdes):
    """Name and number of partitions of a repartition topic (Kafka's ``Repartitioned``)."""

    name: str | None = None
    partitions: int | None = None
    partitioner: MapperLike | None = None

    def __post_init__(self) -> None:
        """Checks the name, as Kafka does (``Named.validate``)."""
        check_given_name(self.name, "a repartition topic")

    @classmethod
    def as_(cls, name: str) -> Repartitioned:
        """The topic is called ``<application id>-<name>-repartition``."""
        return cls(name)

    @classmethod
    def number_of_partitions(cls, partitions: int) -> Repartitioned:
        """The topic has this many partitions."""
        return cls(None, partitions)

    @classmethod
    def stream_partitioner(cls, partitioner: MapperLike) -> Repartitioned:
        """Records go to the partitions that ``partitioner`` chooses: see `with_stream_partitioner`."""
        return cls(partitioner=mapper(partitioner))

    def with_name(self, name: str) -> Repartitioned:
        """A copy whose topic has this name."""
        return replace(self, name=name)

    def with_number_of_partitions(self, partitions: int) -> Repartitioned:
        """A copy with this many partitions."""
        return replace(self, partitions=partitions)

    def with_stream_partitioner(self, partitioner: MapperLike) -> Repartitioned:
        """A copy in which ``partitioner`` chooses the partition of each record (Kafka's ``StreamPartitioner``).

        It is a mapper that gives numbers, from 0; beside the record's columns it sees ``num_partitions``. Null stands
        for Kafka's default partitioner. Lists send a record to several partitions, an empty list to none (KIP-837). ::

            per_record(lambda key, n: int(key[1:]) % n, pa.int32(), "key", "num_partitions")
        """
        return replace(self, partitioner=mapper(partitioner))


@arguments_checked
@dataclass(frozen=True, slots=True)
class Materialized(WithSerdes):
    """The store of a table or an aggregation (Kafka's ``Materialized``).

    Attributes:
        store_name: The store's name; None: generated from the node's name.
        supplier: The kind of store; None: the default.
        retention_ms: How long windows are kept; see `with_retention`.
        changelog: The live application's settings of the store's changelog topic; None: it has no changelog topic. A
            replay writes no changelog: its state is in checkpoints.
        StoreType: ``Materialized.StoreType.ROCKS_DB`` and ``IN_MEMORY``, for `with_store_type`.
    """

    StoreType: ClassVar = BuiltInDslStoreSuppliers

    store_name: str | None = None
    supplier: VersionedBytesStoreSupplier | KeyValueBytesStoreSupplier | None = None
    retention_ms: int | None = None
    changelog: tuple[tuple[str, str], ...] | None = ()

    def __post_init__(self) -> None:
        """Checks the name, as Kafka does (``Named.validate``)."""
        check_given_name(self.store_name, "a store")

    @classmethod
    def as_(
        cls,
        store: str
        | KeyValueBytesStoreSupplier
        | VersionedBytesStoreSupplier
        | WindowBytesStoreSupplier
        | SessionBytesStoreSupplier
        | BuiltInDslStoreSuppliers,
    ) -> Materialized:
        """A store of this name, or from this supplier (from a window or session supplier: its name and retention).

        Raises:
            ConfigurationError: It cannot be a store's name, or the supplier's store retains duplicates.
        """
        if isinstance(store, BuiltInDslStoreSuppliers):
            return cls().with_store_type(store)
        if not isinstance(store, BytesStoreSupplier):
            check_given_name(store, "a store")
            return cls(store)
        if isinstance(store, WindowBytesStoreSupplier) and store.retain_duplicates:
            raise ConfigurationError(
                "a window of an aggregation has one value, and this store would retain duplicates",
                store=store.name,
                next_step="leave retain_duplicates out",
            )
        if isinstance(store, (WindowBytesStoreSupplier, SessionBytesStoreSupplier)):
            return cls(store.name, retention_ms=store.retention_ms)
        return cls(store.name, store)

    def table_store(self, generated: str) -> TableStore:
        """The store of a table without windows: versioned if the supplier is, else plain.

        Args:
            generated: Its name if none was given.
        """
        if isinstance(self.supplier, VersionedBytesStoreSupplier):
            supplier = self.supplier
            return VersionedStore(supplier.name, supplier.history_retention_ms, supplier.segment_interval_ms)
        return PlainStore(self.store_name or generated)

    def with_retention(self, retention: timedelta) -> Materialized:
        """How long windows stay in the store after their start (KIP-328): at least window size plus grace period."""
        return replace(self, retention_ms=milliseconds(retention, "retention"))

    def with_store_type(self, store_suppliers: BuiltInDslStoreSuppliers) -> Materialized:
        """Where the live application has the store; changes nothing: see `BuiltInDslStoreSuppliers`."""
        del store_suppliers
        return self

    def with_logging_enabled(self, config: Mapping[str, str] | None = None) -> Materialized:
        """The live application's store has a changelog topic, with these settings of the topic."""
        return replace(self, changelog=tuple((config or {}).items()))

    def with_logging_disabled(self) -> Materialized:
        """The live application's store has no changelog topic."""
        return replace(self, changelog=None)

    def with_caching_disabled(self) -> Materialized:
        """Changes nothing: there is no record cache, and every update is forwarded."""
        return self

    def with_caching_enabled(self) -> NoReturn:
        """Refused: which updates a record cache forwards depends on its size, the commit interval and the threads.

        Raises:
            ConfigurationError: Always.
        """
        raise ConfigurationError(
            "there is no record cache: with one, which updates are forwarded would depend on when it is flushed",
            store=self.store_name,
            next_step="leave it out; if there are too many updates, use suppress(Suppressed.until_time_limit(...))",
        )


@arguments_checked
@dataclass(frozen=True, slots=True)
class Deduplicated(KafkasNames):
    """Name, store and serdes of a deduplication (KIP-655, ``Deduplicated``).

    Ids are compared and stored as the bytes of the key serde; by default the serde follows from their Arrow type. Two
    ids are equal if their bytes are. Values are not stored, and repartition topics hold them as Arrow columns, so the
    value serde is accepted but not used.
    """

    name: str | None = None
    store_name: str | None = None
    id_serde: Serde | None = field(default=None)
    record_serde: Serde | None = field(default=None)

    def __post_init__(self) -> None:
        """Checks the names, as Kafka does (``Named.validate``)."""
        check_given_name(self.name, "a node")
        check_given_name(self.store_name, "a store")

    @classmethod
    def as_(cls, name: str) -> Deduplicated:
        """The node, and its repartition topic if it needs one, are called ``name``."""
        return cls(name)

    @classmethod
    def key_serde(cls, serde: Serde) -> Deduplicated:
        """Ids are stored in the bytes of ``serde``."""
        return cls(id_serde=serde)

    @classmethod
    def value_serde(cls, serde: Serde) -> Deduplicated:
        """Values have the bytes of ``serde``."""
        return cls(record_serde=serde)

    @classmethod
    def with_(
        cls, key_serde: Serde | None = None, value_serde: Serde | None = None, store_name: str | None = None
    ) -> Deduplicated:
        """Serdes and the store's name."""
        return cls(None, store_name, key_serde, value_serde)

    def with_name(self, name: str) -> Deduplicated:
        """A copy whose node is called ``name``."""
        return replace(self, name=name)

    def with_key_serde(self, serde: Serde) -> Deduplicated:
        """A copy with this serde for ids."""
        return replace(self, id_serde=serde)

    def with_value_serde(self, serde: Serde) -> Deduplicated:
        """A copy with this serde for values."""
        return replace(self, record_serde=serde)
