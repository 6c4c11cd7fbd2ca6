"""How timestamps of a source's records are extracted, and how invalid ones are handled (``TimestampExtractor``).

A timestamp is invalid if it is negative, missing, not a whole number of milliseconds, or later than a topic can hold.

====================================  ================================================================================
extractor                             a record with an invalid timestamp
====================================  ================================================================================
none: the record's own timestamp      is an error: ends the run, or goes to quarantine (``on_bad_record``)
`FailOnInvalidTimestamp`              the same
`LogAndSkipOnInvalidTimestamp`        is dropped and counted
`UsePartitionTimeOnInvalidTimestamp`  gets the largest timestamp of its partition so far
a mapper                              is dropped and counted if it is negative, else is an error
====================================  ================================================================================

This follows Kafka Streams: the first is its default, and it drops records for which a user's extractor returns a
negative timestamp; its skipping extractors rely on that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias, cast

from statelib.calls import arguments_checked
from statelib.operators.mappers.mapping import mapper

if TYPE_CHECKING:
    from statelib.operators.mappers.mapping import Mapper, MapperLike

PARTITION_TIME = "partition_time"
"""The column of the largest timestamp of the partition before each record, int64 ms; -1 before the first."""

OnInvalid: TypeAlias = Literal["fail", "skip", "skip-negative", "partition-time"]


@arguments_checked
@dataclass(frozen=True, slots=True)
class TimestampExtractor:
    """Extracts a source's timestamps with a mapper (Kafka's interface of this name).

    As in Kafka, a record with a negative result is dropped and counted, in the account ``invalid-timestamp``.

    Attributes:
        timestamp: A mapper that returns whole milliseconds, Arrow timestamps or dates. It sees the columns ``key``,
            ``value``, ``headers``, ``timestamp`` and ``partition_time``: the largest extracted timestamp of the
            partition so far, in milliseconds; -1 before the first. None: the record's own timestamp.
    """

    timestamp: MapperLike | None = None
    on_invalid: ClassVar[OnInvalid] = "skip-negative"

    def __post_init__(self) -> None:
        """Makes a mapper of what stands for one."""
        if self.timestamp is not None:
            object.__setattr__(self, "timestamp", mapper(self.timestamp))

    @property
    def mapper(self) -> Mapper | None:
        """Gives timestamps; None: they are the records' own."""
        return cast("Mapper | None", self.timestamp)

    def describe(self) -> object:
        """As plain data."""
        return None if self.mapper is None else self.mapper.describe()


class _Named(TimestampExtractor):
    """One of Kafka's."""

    __slots__ = ()

    def describe(self) -> object:
        """As plain data."""
        return {"extractor": type(self).__name__, "of": super().describe()}


@arguments_checked
class FailOnInvalidTimestamp(_Named):
    """A record with an invalid timestamp is an error: Kafka's class of this name, its default."""

    __slots__ = ()
    on_invalid: ClassVar[OnInvalid] = "fail"


@arguments_checked
class LogAndSkipOnInvalidTimestamp(_Named):
    """A record with an invalid timestamp is dropped and counted: Kafka's class of this name.

    It is in the account ``invalid-timestamp`` of the source.
    """

    __slots__ = ()
    on_invalid: ClassVar[OnInvalid] = "skip"


@arguments_checked
class UsePartitionTimeOnInvalidTimestamp(_Named):
    """A record with an invalid timestamp gets the largest of its partition so far: Kafka's class of this name.

    It is an error if the partition has had no record with a valid timestamp yet.
    """

    __slots__ = ()
    on_invalid: ClassVar[OnInvalid] = "partition-time"
