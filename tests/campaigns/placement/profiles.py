"""Visits that are joined with versioned profiles, which are large and do not compress."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from statelib.commits import topic_path
from statelib.dsl import Materialized, Stores, StreamsBuilder
from statelib.job.job import Job
from statelib.topics.append import append_records
from statelib.topics.archive import TopicArchive
from statelib.topics.parquet.schema import topic_schema

if TYPE_CHECKING:
    from collections.abc import Iterator

    from statelib.storage import Storage

NAME = "visits"
SINK = "visits-with-profile"
STORE = "profiles"
SLICE_MS = 3_600_000
PARTITIONS = 8
_NOTE_BYTES = 1_000
_PROFILE = pa.struct([("note", pa.binary()), ("number", pa.int64())])
_AT_ONCE = 50_000


def job() -> Job:
    """Made anew by each call."""
    builder = StreamsBuilder(NAME)
    store = Stores.persistent_versioned_key_value_store(STORE, timedelta(days=1))
    profiles = builder.table("profiles", Materialized.as_(store))
    builder.stream("visits").join(profiles, {"visit": "left", "profile": "right.number"}).to(SINK)
    return Job(NAME, builder.build())


@dataclass(frozen=True, slots=True)
class Size:
    """How much there is.

    Attributes:
        profiles: All are made in the first slice; each has about a kilobyte.
        updates: Profiles that change in each other slice.
        visits: In each slice.
        slices: How many there are.
    """

    profiles: int
    updates: int
    visits: int
    slices: int


def archive_all(warehouse: Storage, size: Size, *, seed: int) -> None:
    """Makes the archives of both topics."""
    for topic, value, tables in (
        ("profiles", _PROFILE, _profiles(size, seed)),
        ("visits", pa.int64(), _visits(size, seed)),
    ):
        archive = TopicArchive.ensure(warehouse.uri(topic_path(topic)), topic_schema(pa.string(), value), PARTITIONS)
        for version, table in enumerate(tables, start=1):
            append_records(archive, table, attempt=f"{topic}-{version}", app_id="campaign", app_version=version)
            archive = archive.refresh()


def _profiles(size: Size, seed: int) -> Iterator[pa.Table]:
    random = np.random.default_rng(seed)
    for start in range(0, size.profiles, _AT_ONCE):
        numbers = np.arange(start, min(start + _AT_ONCE, size.profiles))
        yield _updates(random, numbers, np.sort(random.integers(0, SLICE_MS // 2, len(numbers))))
    for slice_number in range(1, size.slices):
        numbers = random.choice(size.profiles, size.updates, replace=False)
        yield _updates(random, numbers, slice_number * SLICE_MS + np.sort(random.integers(0, SLICE_MS, len(numbers))))


def _updates(random: np.random.Generator, numbers: np.ndarray, times_ms: np.ndarray) -> pa.Table:
    notes = pa.py_buffer(random.bytes(_NOTE_BYTES * len(numbers)))
    offsets = pa.py_buffer(np.arange(0, _NOTE_BYTES * len(numbers) + 1, _NOTE_BYTES, dtype=np.int32))
    note = pa.Array.from_buffers(pa.binary(), len(numbers), [None, offsets, notes])
    value = pa.StructArray.from_arrays(
        [note, pa.array(random.integers(0, 1 << 40, len(numbers)))], fields=list(_PROFILE)
    )
    return _table([f"person-{n}" for n in numbers], value, times_ms)


def _visits(size: Size, seed: int) -> Iterator[pa.Table]:
    random = np.random.default_rng(seed + 1)
    for slice_number in range(size.slices):
        who = random.integers(0, size.profiles, size.visits)
        times = slice_number * SLICE_MS + np.sort(random.integers(0, SLICE_MS, size.visits))
        yield _table([f"person-{n}" for n in who], pa.array(random.integers(0, 1 << 40, size.visits)), times)


def _table(keys: list[str], value: pa.Array, times_ms: np.ndarray) -> pa.Table:
    return pa.table({"key": pa.array(keys), "value": value, "timestamp": pa.array(times_ms, pa.timestamp("ms", "UTC"))})
