"""What the run protocol needs to know of a job: a narrow view of `statelib.job.job.Job`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


class TopicNode(Protocol):
    """A source or a sink of a topology."""

    @property
    def name(self) -> str:
        """The node's name."""

    @property
    def topic(self) -> str:
        """What it takes up, or writes."""

    @property
    def internal(self) -> bool:
        """Whether that is a repartition topic."""


class SinkNode(TopicNode, Protocol):
    """A sink of a topology."""

    @property
    def partitions(self) -> int | None:
        """The topic's number of partitions, where the topology says it."""

    @property
    def is_placed(self) -> bool:
        """Whether a partitioner has placed its records, among as many partitions as the sink's tasks."""


class SourceNode(TopicNode, Protocol):
    """A source of a topology."""

    @property
    def is_global(self) -> bool:
        """Whether every task takes up all partitions."""


class Store(Protocol):
    """A store of a topology."""

    @property
    def name(self) -> str:
        """The store's name."""


class SubTopology(Protocol):
    """What one task runs."""

    @property
    def index(self) -> int:
        """The first half of its tasks' ids."""

    @property
    def all_sources(self) -> Sequence[SourceNode]:
        """Its sources, repartition topics included."""

    @property
    def all_sinks(self) -> Sequence[SinkNode]:
        """Its sinks, repartition topics included."""

    @property
    def stores(self) -> Sequence[Store]:
        """The stores that it writes."""


class Topology(Protocol):
    """What a run needs to know of a topology."""

    @property
    def fingerprint(self) -> str:
        """Of all that decides the answer."""

    @property
    def sub_topologies(self) -> Sequence[SubTopology]:
        """Each after those whose repartition topics it reads."""

    @property
    def source_topics(self) -> Sequence[str]:
        """Topics that are read from archives."""

    @property
    def bootstrap_topics(self) -> Sequence[str]:
        """Those that a run takes up to the archive's end, wherever its slice ends."""

    @property
    def has_patterns(self) -> bool:
        """Whether a source says which topics it reads by a pattern."""

    def matched_by_pattern(self, topics: Iterable[str]) -> Mapping[str, str]:
        """By topic that a pattern matches and that is not read, the source of the pattern; in order of ``topics``."""

    def partitions(self, of_sources: Mapping[str, int]) -> Mapping[int, int]:
        """Number of tasks of each sub-topology, by its index."""


class JobDefinition(Protocol):
    """What a run needs to know of a job; `statelib.job.job.Job` is one."""

    @property
    def name(self) -> str:
        """The job's name."""

    @property
    def topology(self) -> Topology:
        """What it runs."""
