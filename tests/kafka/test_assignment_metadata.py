"""Kafka's own classes read what Hindstream reports and assigns, and Hindstream what they write."""

from __future__ import annotations

import random
import subprocess
from uuid import UUID

import pytest

from statelib.assignment.assignment_info import AssignmentInfo, HostInfo, TopicPartition, decode_assignment
from statelib.assignment.model import TaskId
from statelib.assignment.subscription_info import SubscriptionInfo, decode_subscription
from tests.kafka.java import java

pytestmark = pytest.mark.slow

MAIN = "hindstream.testbed.AssignmentMetadata"


def answers(kind: str, encoded: list[bytes]) -> list[list[bytes]]:
    """What Kafka writes of it, a list for each."""
    lines = "".join(f"{kind} {data.hex()}\n" for data in encoded)
    ended = subprocess.run(java(MAIN, heap_mb=128), input=lines, text=True, stdout=subprocess.PIPE, check=True)
    return [[bytes.fromhex(word) for word in line.split()] for line in ended.stdout.splitlines()]


def some_tasks(chance: random.Random) -> list[TaskId]:
    every = [TaskId(sub, partition) for sub in range(4) for partition in range(12)]
    return sorted(chance.sample(every, chance.randrange(len(every))))


def some_partitions(chance: random.Random) -> tuple[TopicPartition, ...]:
    topics = ("orders", "shop-orders-by-id-changelog", "grüße.v1")
    return tuple(
        sorted({TopicPartition(chance.choice(topics), chance.randrange(9)) for _ in range(chance.randrange(5))})
    )


def test_reports():
    chance = random.Random(1)
    reports = []
    for _ in range(200):
        its = some_tasks(chance)
        previous, standby = its[: len(its) // 2], its[len(its) // 2 :]
        end_point = chance.choice((None, "10.1.2.3:7000", "wörker:1"))
        reports.append(SubscriptionInfo(UUID(int=chance.getrandbits(128)), tuple(previous), tuple(standby), end_point))
    encoded = [report.encode() for report in reports]
    for report, data, (as_read, made_anew) in zip(reports, encoded, answers("S", encoded), strict=True):
        assert as_read == data
        theirs = decode_subscription(made_anew)
        assert theirs.encode() == made_anew
        ordered = (tuple(sorted(theirs.previous_tasks)), tuple(sorted(theirs.standby_tasks)))
        assert ordered == (report.previous_tasks, report.standby_tasks)
        assert (theirs.process_id, theirs.end_point) == (report.process_id, report.end_point)
        assert theirs.latest_supported_version == report.latest_supported_version


def test_assignments():
    chance = random.Random(2)
    infos = []
    for _ in range(200):
        its = some_tasks(chance)
        standbys = {task: some_partitions(chance) for task in its[len(its) // 2 :]}
        hosts = {HostInfo(f"worker-{n}", 7000 + n): some_partitions(chance) for n in range(chance.randrange(4))}
        infos.append(AssignmentInfo(tuple(its[: len(its) // 2]), standbys, hosts, chance.randrange(5)))
    for info, (theirs,) in zip(infos, answers("A", [info.encode() for info in infos]), strict=True):
        read = decode_assignment(theirs)
        assert read.encode() == theirs
        assert (read.active_tasks, read.error_code, read.commonly_supported_version) == (
            info.active_tasks, info.error_code, info.commonly_supported_version,
        )  # fmt: skip
        for mine, its in ((info.standby_tasks, read.standby_tasks), (info.partitions_by_host, read.partitions_by_host)):
            assert {key: set(value) for key, value in mine.items()} == {key: set(value) for key, value in its.items()}
