"""Checks the ``partitioner`` trace: murmur2, and the partition of plain and windowed keys."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import pyarrow as pa

from statelib.serdes import StringSerde, serde_for
from statelib.serdes.windowed import TimeWindowedSerde
from statelib.topics.partitioner import hash_keys, partition_for

if TYPE_CHECKING:
    from tests.golden.scenario import Compare
    from tests.golden.trace import Case

_WINDOW_SIZE_MS = 1_000  # the bytes do not have it


def check(case: Case, compare: Compare) -> None:
    """All keys of a case at once, as an archive would have them."""
    if case.name == "windowed-key":
        _check_windowed_keys(case, compare)
    else:
        _check_key_bytes(case, compare)


def _check_key_bytes(case: Case, compare: Compare) -> None:
    keys = pa.array([base64.b64decode(step["key_b64"]) for step in case.steps], pa.binary())
    hashes = hash_keys(keys)
    partitions = [partition_for(keys, count) for count in range(1, 51)]
    for i, step in enumerate(case.steps):
        compare(i, "murmur2", step["murmur2"] & 0xFFFF_FFFF, int(hashes[i]))
        compare(i, "positive", step["positive"], int(hashes[i]) & 0x7FFF_FFFF)
        compare(i, "partitions", step["partitions"], [int(chosen[i]) for chosen in partitions])


def _check_windowed_keys(case: Case, compare: Compare) -> None:
    """A windowed key is partitioned by its plain key, which `Batch.key` and an archive's key column are."""
    keys = serde_for(pa.string()).serialize(pa.array([step["key"] for step in case.steps]))
    windowed = TimeWindowedSerde(StringSerde(), _WINDOW_SIZE_MS)
    data = pa.array([base64.b64decode(step["windowed_key_b64"]) for step in case.steps], pa.binary())
    read = windowed.deserialize(data)
    again = windowed.serialize(read)
    for i, step in enumerate(case.steps):
        chosen = int(partition_for(keys.slice(i, 1), step["n"])[0])
        compare(i, "partition_of_plain_key", step["partition_of_plain_key"], chosen)
        compare(i, "partition", step["partition"], chosen)
        compare(i, "key", step["key"], read.field("key")[i].as_py())
        compare(i, "start", step["start"], read.field("window_start")[i].value)
        compare(i, "windowed_key_b64", step["windowed_key_b64"], base64.b64encode(again[i].as_py()).decode())
