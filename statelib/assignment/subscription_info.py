"""What a host reports, in the bytes of Kafka's ``SubscriptionInfo`` of version 4.

::

    version                   int32, 4
    latest supported version  int32
    client UUID               16 bytes
    previous tasks            array of (sub-topology int32, partition int32)
    standby tasks             the same
    end point                 bytes: host:port in UTF-8, or none

A report of a newer version is not read but for its first two numbers: `negotiated_version` says what its sender is
asked to write instead. (`statelib.assignment.wire` has the primitives; Kafka ``SubscriptionInfoData.json``.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from statelib.assignment import wire
from statelib.errors.kinds import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

    from statelib.assignment.model import TaskId

VERSION = 4
"""The only version that is written and read."""

_WHAT = "a host's report (SubscriptionInfo)"


@dataclass(frozen=True, slots=True)
class SubscriptionInfo:
    """A report of version 4.

    Attributes:
        process_id: The host's, from its state directory.
        previous_tasks: Those that it has run to the end of their last commit, ascending.
        standby_tasks: Those of which it holds a copy, ascending.
        end_point: Where it can be asked, as ``host:port``; None: nowhere.
        latest_supported_version: The newest version that it could have written.
    """

    process_id: UUID
    previous_tasks: tuple[TaskId, ...]
    standby_tasks: tuple[TaskId, ...]
    end_point: str | None = None
    latest_supported_version: int = VERSION

    def encode(self) -> bytes:
        """The bytes."""
        end_point = (self.end_point or "").encode()
        return b"".join((
            wire.number(VERSION),
            wire.number(self.latest_supported_version),
            self.process_id.bytes,
            wire.array(self.previous_tasks, wire.task),
            wire.array(self.standby_tasks, wire.task),
            wire.number(len(end_point)),
            end_point,
        ))  # fmt: skip


@dataclass(frozen=True, slots=True)
class FutureSubscription:
    """What is read of a report of a version to come."""

    version: int
    latest_supported_version: int


def decode_subscription(data: bytes) -> SubscriptionInfo | FutureSubscription:
    """A report; one of a newer version in so far as it can be read.

    Raises:
        CorruptedDataError: The bytes are damaged.
        ConfigurationError: They are of an older version, which says less than is needed.
    """
    reader = wire.Reader(data, _WHAT)
    version = reader.number()
    if version < VERSION:
        step = f"let that host run a release that writes version {VERSION}"
        raise ConfigurationError(f"{_WHAT} has version {version}, not {VERSION}", next_step=step)
    latest = reader.number()
    if version > VERSION:
        return FutureSubscription(version, latest)
    info = SubscriptionInfo(
        reader.uuid(),
        tuple(reader.array(reader.task)),
        tuple(reader.array(reader.task)),
        reader.text_of_data() or None,
        latest,
    )
    reader.end()
    return info


def negotiated_version(reports: Iterable[SubscriptionInfo | FutureSubscription]) -> int:
    """The newest version that all hosts and this code can write: what all are asked to report in."""
    return min([VERSION, *(report.latest_supported_version for report in reports)])
