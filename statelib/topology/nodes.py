"""The nodes of a topology: immutable, picklable, named as Kafka Streams names them.

A repartition is two nodes with one internal topic between them: a `Sink` that ends a sub-topology and a `Source` that
begins the next one.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, cast

from statelib.calls import KafkasNames, arguments_checked
from statelib.calls.names import check_given_name
from statelib.errors.kinds import ConfigurationError
from statelib.topology.timestamp_extractors import FailOnInvalidTimestamp, TimestampExtractor

if TYPE_CHECKING:
    import re
    from collections.abc import Mapping

    import pyarrow as pa

    from statelib.errors.user_lines import Line
    from statelib.operators.base import OperatorSpec
    from statelib.operators.mappers.mapping import Mapper, MapperLike
    from statelib.serdes import Serde


@arguments_checked
@dataclass(frozen=True, slots=True)
class Consumed(KafkasNames):
    """How a source topic is read (Kafka's ``Consumed``).

    Attributes:
        key_serde: Decodes keys that the archive holds as bytes; None: the archive's columns are used as they are.
        value_serde: The same for values.
        timestamp: How the record's timestamp is extracted, and how an invalid one is handled. None: the record's own
            timestamp; an invalid one is an error.
        name: The name of the source's node.
    """

    key_serde: Serde | None = None
    value_serde: Serde | None = None
    timestamp: TimestampExtractor | MapperLike | None = None
    name: str | None = None

    def __post_init__(self) -> None:
        """Checks the name, as Kafka does (``Named.validate``), and makes an extractor of what stands for one."""
        check_given_name(self.name, "a node")
        if self.timestamp is not None and not isinstance(self.timestamp, TimestampExtractor):
            object.__setattr__(self, "timestamp", TimestampExtractor(self.timestamp))
        elif self.timestamp == FailOnInvalidTimestamp():
            object.__setattr__(self, "timestamp", None)

    @property
    def timestamp_extractor(self) -> TimestampExtractor:
        """Extracts the timestamps."""
        return FailOnInvalidTimestamp() if self.timestamp is None else cast("TimestampExtractor", self.timestamp)

    @classmethod
    def as_(cls, name: str) -> Consumed:
        """The source's node is called ``name``."""
        return cls(name=name)

    @classmethod
    def with_(
        cls,
        key_serde: Serde | None = None,
        value_serde: Serde | None = None,
        timestamp_extractor: TimestampExtractor | MapperLike | None = None,
    ) -> Consumed:
        """Keys and values are decoded by these serdes; timestamps: see `with_timestamp_extractor`."""
        return cls(key_serde, value_serde, timestamp_extractor)

    def with_name(self, name: str) -> Consumed:
        """A copy whose node is called ``name``."""
        return replace(self, name=name)

    def with_key_serde(self, serde: Serde) -> Consumed:
        """A copy with this serde for keys."""
        return replace(self, key_serde=serde)

    def with_value_serde(self, serde: Serde) -> Consumed:
        """A copy with this serde for values."""
        return replace(self, value_serde=serde)

    def with_timestamp_extractor(self, timestamp: TimestampExtractor | MapperLike) -> Consumed:
        """A copy that extracts timestamps from the record (``TimestampExtractor``).

        A mapper returns milliseconds, Arrow timestamps or dates; it sees the columns ``key``, ``value``, ``headers``,
        ``timestamp`` and ``partition_time`` (`TimestampExtractor`). As in Kafka, a record with a negative result is
        dropped and counted. To handle invalid timestamps differently, use `FailOnInvalidTimestamp`,
        `LogAndSkipOnInvalidTimestamp` or `UsePartitionTimeOnInvalidTimestamp`, with a mapper, or without one for the
        record's own timestamp. ::

            Consumed().with_timestamp_extractor(LogAndSkipOnInvalidTimestamp("sent_at"))
        """
        return replace(self, timestamp=timestamp)

    def describe(self) -> Mapping[str, object]:
        """As plain data."""
        return {
            "key_serde": self.key_serde.describe() if self.key_serde else None,
            "value_serde": self.value_serde.describe() if self.value_serde else None,
            "timestamp": None if self.timestamp is None else self.timestamp_extractor.describe(),
        }


Reading = Literal["partition", "bootstrap", "follow"]
"""Which records of a topic a task takes up, and when.

``partition``: those of its own partition, in the task's order. The other two are for global tables, of whose topics
every task takes up all partitions: ``bootstrap``: before everything else, as far as the archive goes when the run is
planned; ``follow``: in the task's order, as far as the slice goes.
"""


@dataclass(frozen=True, slots=True)
class Source:
    """Takes up one topic.

    Attributes:
        more_topics: Further topics whose records it takes up as if they were of one (Kafka's ``stream(Collection)``).
            Only in a topology as it was described: `statelib.topology.lowering` gives each topic a source of its own.
        pattern: What the names of its topics match (Kafka's ``stream(Pattern)``), which are all listed. Only in a
            topology as it was described, like ``more_topics``.
        matched_by: The pattern for which `statelib.topology.lowering` has made it; None: it was made for none.
        internal: A repartition topic, made and read within a run.
        by_partitioner: Of a repartition topic: whether a partitioner has placed its records.
        told_types: Of a repartition topic that stands for one which the topology writes: the types of keys and values
            that its reader's serdes tell, for circles whose types follow from nothing else.
        reading: See `Reading`.
        topic_in_text: What the topic is called where the topology is described, if that is another name: of a
            repartition topic, the name without the application's.
        line: Of the user's file, where it was added; None: not known. Told in errors.
    """

    name: str
    topic: str
    consumed: Consumed = field(default_factory=Consumed)
    internal: bool = False
    parents: tuple[str, ...] = ()
    reading: Reading = "partition"
    topic_in_text: str | None = None
    more_topics: tuple[str, ...] = ()
    by_partitioner: bool = False
    told_types: tuple[pa.DataType, pa.DataType] | None = None
    pattern: re.Pattern[str] | None = None
    matched_by: str | None = None
    line: Line | None = field(default=None, compare=False, repr=False)

    @property
    def topics(self) -> tuple[str, ...]:
        """All that it takes up."""
        return (self.topic, *self.more_topics)

    @property
    def is_global(self) -> bool:
        """Whether every task takes up the whole topic."""
        return self.reading != "partition"

    def describe(self) -> Mapping[str, object]:
        """As plain data."""
        reading = {"reading": self.reading} if self.is_global else {}
        matched_by = {} if self.matched_by is None else {"matched_by": self.matched_by}
        return {"node": "source", "topic": self.topic, **reading, **matched_by, **self.consumed.describe()}


def name_taken(name: str, **where: object) -> ConfigurationError:
    """The error where two nodes of what the DSL describes have one name."""
    step = "name one differently, with its Named, Consumed, Produced, Joined, Grouped or Branched"
    return ConfigurationError("two nodes have one name", **where, node=name, next_step=step)


@dataclass(frozen=True, slots=True)
class Described:
    """A processor that Kafka Streams has and this engine has not: for the topology's description alone.

    Attributes:
        name: Its name.
        parents: The nodes that forward to it.
        stores: The names of the stores that it is connected with.
    """

    name: str
    parents: tuple[str, ...]
    stores: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Processor:
    """Runs an operator over what its parents forward.

    Attributes:
        looks_into: How many of the parents, the last ones, are tables that it only looks into. Kafka draws no line from
            those: there an operator reads their stores, here it takes up their changes.
        described: What Kafka Streams has in its place, parents before their children; None: the same processor.
        changelog_topic: The source topic that is the changelog of its store in a live application (Kafka's
            ``reuse.ktable.source.topics``); None: that has a changelog of its own.
        line: See `Source`.
    """

    name: str
    parents: tuple[str, ...]
    spec: OperatorSpec
    stores: tuple[str, ...] = ()
    looks_into: int = 0
    described: tuple[Described, ...] | None = None
    changelog_topic: str | None = None
    line: Line | None = field(default=None, compare=False, repr=False)

    def describe(self) -> Mapping[str, object]:
        """As plain data."""
        reused = {} if self.changelog_topic is None else {"changelog_topic": self.changelog_topic}
        return {"node": "processor", "stores": list(self.stores), **reused, **self.spec.describe()}


@dataclass(frozen=True, slots=True)
class Sink:
    """Writes records to a topic, partitioned by key.

    Attributes:
        partitions: Number of partitions of the topic; None: those of the archive if it exists, else as many as the
            sub-topology has tasks.
        partition_by: What the partition is chosen by, instead of the key (internal topics of ``deduplicate`` only).
        partitioner: Chooses the partition in place of Kafka's default partitioner; see
            `statelib.topology.partitioners`.
        places_keys: Whether the partitioner is told keys alone, and gives each one partition: in foreign-key joins,
            whose values are the engine's own (KIP-775).
        topic_extractor: Chooses the topic of each record, among ``topics``; None: ``topic``. Only in a topology as it
            was described, like ``Source.more_topics``.
        more_topics: Further topics that the extractor may choose.
        internal: A repartition topic.
        key_kept: Whether records still have the key by which the sub-topology's sources are partitioned.
        is_placed: Whether the repartition before it has placed the records, so that none can be misplaced.
        drops_null_keys: For an internal topic: whether records without a key end here, and are counted.
        as_many_as: For an internal topic of which ``partitions`` does not say how many it has: a node; it has as many
            as that node's sub-topology has tasks.
        null_key_filter: Name of the processor that Kafka Streams has before it; None: it has none there.
        topic_in_text: See `Source`.
        line: See `Source`.
    """

    name: str
    parents: tuple[str, ...]
    topic: str
    partitions: int | None = None
    partition_by: Mapper | None = None
    partitioner: Mapper | None = None
    places_keys: bool = False
    topic_extractor: Mapper | None = None
    more_topics: tuple[str, ...] = ()
    internal: bool = False
    key_kept: bool = True
    is_placed: bool = False
    as_many_as: str | None = None
    drops_null_keys: bool = False
    null_key_filter: str | None = None
    topic_in_text: str | None = None
    line: Line | None = field(default=None, compare=False, repr=False)

    @property
    def topics(self) -> tuple[str, ...]:
        """All that it may write to."""
        return (self.topic, *self.more_topics)

    def describe(self) -> Mapping[str, object]:
        """As plain data."""
        by = self.partition_by.describe() if self.partition_by else None
        drops = {"drops_null_keys": True} if self.drops_null_keys else {}
        placed = {} if self.partitioner is None else {"partitioner": self.partitioner.describe()}
        return {
            "node": "sink",
            "topic": self.topic,
            "partitions": self.partitions,
            "partition_by": by,
            **drops,
            **placed,
        }


Node = Source | Processor | Sink


def senders(node: Node) -> tuple[str, ...]:
    """The parents whose records it takes: all but tables that it only looks into. Kafka draws lines from these."""
    return node.parents[: len(node.parents) - node.looks_into] if isinstance(node, Processor) else node.parents
