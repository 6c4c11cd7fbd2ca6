"""What a host gets, in the bytes of Kafka's ``AssignmentInfo`` of version 4.

::

    version                     int32, 4
    commonly supported version  int32: what all hosts can write
    active tasks                array of (sub-topology int32, partition int32)
    standby tasks               array of (task, array of (topic text, partition int32))
    partitions by host          array of ((host text, port int32), array of (topic text, partition int32))
    error code                  int32, 0: none

The order of entries is the caller's; Kafka's own is that of its hash tables. (`statelib.assignment.wire` has the
primitives.)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

from statelib.assignment import wire
from statelib.errors.kinds import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from statelib.assignment.model import TaskId

VERSION = 4
"""The only version that is written and read."""

_WHAT = "an assignment (AssignmentInfo)"


class AssignorError(IntEnum):
    """Kafka's codes."""

    NONE = 0
    INCOMPLETE_SOURCE_TOPIC_METADATA = 1
    VERSION_PROBING = 2
    ASSIGNMENT_ERROR = 3
    SHUTDOWN_REQUESTED = 4


class TopicPartition(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int


class HostInfo(NamedTuple):
    """Where a host can be asked."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class AssignmentInfo:
    """An assignment of version 4.

    Attributes:
        active_tasks: What the host runs.
        standby_tasks: What it keeps copies of, each with the partitions of its changelogs.
        partitions_by_host: The partitions of all hosts with an end point.
        error_code: An `AssignorError`, or a code that is not known here.
        commonly_supported_version: The newest version that all hosts can write.
    """

    active_tasks: tuple[TaskId, ...] = ()
    standby_tasks: Mapping[TaskId, tuple[TopicPartition, ...]] = field(default_factory=dict)
    partitions_by_host: Mapping[HostInfo, tuple[TopicPartition, ...]] = field(default_factory=dict)
    error_code: int = AssignorError.NONE
    commonly_supported_version: int = VERSION

    def encode(self) -> bytes:
        """The bytes.

        Raises:
            ConfigurationError: A name cannot be written.
        """
        standbys = wire.array(self.standby_tasks.items(), lambda item: wire.task(item[0]) + _partitions(item[1]))
        hosts = wire.array(self.partitions_by_host.items(), lambda item: _host(item[0]) + _partitions(item[1]))
        return b"".join((
            wire.number(VERSION),
            wire.number(self.commonly_supported_version),
            wire.array(self.active_tasks, wire.task),
            standbys,
            hosts,
            wire.number(self.error_code),
        ))  # fmt: skip


def decode_assignment(data: bytes) -> AssignmentInfo:
    """An assignment.

    Raises:
        CorruptedDataError: The bytes are damaged.
        ConfigurationError: They are of another version.
    """
    reader = wire.Reader(data, _WHAT)
    version = reader.number()
    if version != VERSION:
        step = "run one release of Hindstream on all hosts"
        raise ConfigurationError(f"{_WHAT} has version {version}, not {VERSION}", next_step=step)
    commonly = reader.number()

    def partition() -> TopicPartition:
        return TopicPartition(reader.text(), reader.number())

    info = AssignmentInfo(
        tuple(reader.array(reader.task)),
        dict(reader.array(lambda: (reader.task(), tuple(reader.array(partition))))),
        dict(reader.array(lambda: (HostInfo(reader.text(), reader.number()), tuple(reader.array(partition))))),
        reader.number(),
        commonly,
    )
    reader.end()
    return info


def _partitions(partitions: tuple[TopicPartition, ...]) -> bytes:
    return wire.array(partitions, lambda one: wire.text(one.topic) + wire.number(one.partition))


def _host(host: HostInfo) -> bytes:
    return wire.text(host.host) + wire.number(host.port)
