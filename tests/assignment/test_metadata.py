"""The bytes of reports and assignments; `tests.kafka.test_assignment_metadata` compares them with Kafka's."""

from __future__ import annotations

from uuid import UUID

import pytest

from statelib.assignment.assignment_info import (
    AssignmentInfo,
    AssignorError,
    HostInfo,
    TopicPartition,
    decode_assignment,
)
from statelib.assignment.model import TaskId
from statelib.assignment.subscription_info import (
    FutureSubscription,
    SubscriptionInfo,
    decode_subscription,
    negotiated_version,
)
from statelib.errors.kinds import ConfigurationError, CorruptedDataError

REPORT = SubscriptionInfo(
    UUID("00010203-0405-0607-0809-0a0b0c0d0e0f"), (TaskId(0, 1), TaskId(2, 0)), (TaskId(1, 3),), "a:1"
)
REPORT_BYTES = bytes.fromhex(
    "00000004 00000004 000102030405060708090a0b0c0d0e0f"
    "00000002 00000000 00000001 00000002 00000000"
    "00000001 00000001 00000003"
    "00000003 613a31"
)  # fmt: skip
ASSIGNMENT = AssignmentInfo(
    (TaskId(0, 1),),
    {TaskId(1, 0): (TopicPartition("t", 0), TopicPartition("t", 1))},
    {HostInfo("h", 80): (TopicPartition("t", 2),)},
    AssignorError.ASSIGNMENT_ERROR,
)
ASSIGNMENT_BYTES = bytes.fromhex(
    "00000004 00000004"
    "00000001 00000000 00000001"
    "00000001 00000001 00000000 00000002 0001 74 00000000 0001 74 00000001"
    "00000001 0001 68 00000050 00000001 0001 74 00000002"
    "00000003"
)  # fmt: skip


def test_golden_bytes():
    assert REPORT.encode() == REPORT_BYTES
    assert decode_subscription(REPORT_BYTES) == REPORT
    assert ASSIGNMENT.encode() == ASSIGNMENT_BYTES
    assert decode_assignment(ASSIGNMENT_BYTES) == ASSIGNMENT


def test_a_report_of_a_version_to_come_says_what_its_host_can_write():
    future = decode_subscription(bytes.fromhex("0000000b 0000000b") + b"whatever follows")
    assert future == FutureSubscription(11, 11)
    assert negotiated_version([REPORT, future]) == 4
    older = SubscriptionInfo(REPORT.process_id, (), (), None, latest_supported_version=3)
    assert negotiated_version([older, future]) == 3


def test_other_versions_are_refused():
    with pytest.raises(ConfigurationError, match="has version 3, not 4.*writes version 4"):
        decode_subscription(bytes.fromhex("00000003") + REPORT_BYTES[4:])
    for version in (3, 5):
        with pytest.raises(ConfigurationError, match=f"has version {version}, not 4.*one release"):
            decode_assignment(version.to_bytes(4, "big") + ASSIGNMENT_BYTES[4:])


@pytest.mark.parametrize(
    ("data", "decode"), [(REPORT_BYTES, decode_subscription), (ASSIGNMENT_BYTES, decode_assignment)]
)
def test_damaged_bytes_are_refused(data, decode):
    for length in range(len(data)):
        with pytest.raises(CorruptedDataError, match=r"cannot be read: .* bytes? .*of \d+"):
            decode(data[:length])
    with pytest.raises(CorruptedDataError, match="1 bytes too many"):
        decode(data + b"\0")
    with pytest.raises(CorruptedDataError, match="an array of -1 elements"):
        decode(data.replace(b"\0\0\0\1", b"\xff\xff\xff\xff").replace(b"\0\0\0\2", b"\xff\xff\xff\xff"))


def test_text_that_is_none():
    with pytest.raises(CorruptedDataError, match="no UTF-8"):
        decode_subscription(REPORT_BYTES[:-3] + b"\xff\xff\xff")
    for name in ("a\0b", "\U0001f600", "x" * 65_536):
        with pytest.raises(ConfigurationError, match="cannot be written as Java"):
            AssignmentInfo((), {}, {HostInfo(name, 1): ()}).encode()
