"""An explanation, as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from statelib.errors.user_lines import Line


@dataclass(frozen=True, slots=True)
class Place:
    """Where a record is, and what it says.

    Attributes:
        topic: The topic.
        partition: The partition; None: nobody knows (of a global table's topic all are read as one).
        offset: The offset.
        timestamp_ms: The timestamp.
        key: The key, as Python data.
        value: The value.
    """

    topic: str
    partition: int | None
    offset: int
    timestamp_ms: int
    key: Any
    value: Any

    @property
    def where(self) -> tuple[str, int | None, int]:
        """Topic, partition and offset."""
        return self.topic, self.partition, self.offset


@dataclass(frozen=True, slots=True)
class Result:
    """The record of a sink that is explained.

    Attributes:
        place: Where it is.
        commit: The commit that has it.
    """

    place: Place
    commit: int


@dataclass(frozen=True, slots=True)
class Contribution:
    """A source record that made the result.

    Attributes:
        record: The record.
        last: Whether the result was written when it was taken up.
    """

    record: Place
    last: bool


@dataclass(frozen=True, slots=True)
class Dropped:
    """A source record that did not count, or not at some node.

    Attributes:
        record: The record.
        node: Where it ended.
        line: Of the user's file, where that was added; None: not known.
        rule: The account of the node's ledger: ``duplicate``, ``late``, ``unmatched`` (see `NodeMetrics`).
        lateness_ms: Of a late record: by how much it was behind the clock.
        clock_ms: What the clock said.
        duplicate_of: Of a duplicate: the record that was forwarded.
    """

    record: Place
    node: str
    line: Line | None
    rule: str
    lateness_ms: int | None = None
    clock_ms: int | None = None
    duplicate_of: Place | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """What a node did with the records that made the result.

    Attributes:
        node: Its name.
        kind: Its operator, or ``source`` or ``sink``.
        parents: The names of its parents; of the source of a repartition topic the sink that writes that.
        sub_topology: The number of its sub-topology.
        line: Of the user's file, where it was added; None: not known.
        topic: Of a source or sink.
        forwarded: How many records it forwarded, of those that are looked at.
        last: The last of these, as Python data; None: there are none.
    """

    node: str
    kind: str
    parents: tuple[str, ...]
    sub_topology: int
    line: Line | None
    topic: str | None
    forwarded: int
    last: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class Explanation:
    """Where a result comes from.

    Attributes:
        result: The result.
        contributions: The source records that made it, by topic, partition and offset.
        dropped: Those that would have counted, but for a rule.
        looked_at: Those that were taken up on the way and change nothing: a value below the maximum, or one of a table
            that was replaced.
        steps: The nodes from the sources to the sink.
        reproduced: Whether ``contributions`` alone, with the clocks of the whole history, give the result.
        minimal: Whether leaving any one of them out changes it.
        drops_known: Whether ``dropped`` was looked for: not among very many records.
        replayed_records: How many records were replayed to tell.
        replayed_behind: The commit whose state the replay began with; None: it began with the history.
        spared_slices: How many slices before that were not replayed.
    """

    result: Result
    contributions: tuple[Contribution, ...]
    dropped: tuple[Dropped, ...]
    looked_at: tuple[Place, ...]
    steps: tuple[Step, ...]
    reproduced: bool
    minimal: bool
    drops_known: bool
    replayed_records: int
    replayed_behind: int | None
    spared_slices: int
