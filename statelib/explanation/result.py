"""Finds the record of a sink that is to be explained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from statelib.columns.times import instant_text
from statelib.columns.windowed_type import is_windowed_struct
from statelib.commits.archives import open_archive
from statelib.commits.standing import standing_commit
from statelib.errors.kinds import ConfigurationError
from statelib.serdes.json import readable_json
from statelib.topics.look_up import Stretch, find, partitions_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from statelib.explanation.history import Slice
    from statelib.storage import Storage
    from statelib.topics.archive import TopicArchive


@dataclass(frozen=True, slots=True)
class Found:
    """A record of a sink.

    Attributes:
        topic: The sink's topic.
        partition: The partition.
        offset: The offset.
        row: Its columns, one row.
    """

    topic: str
    partition: int
    offset: int
    row: pa.RecordBatch


def find_result(
    warehouse: Storage,
    job: str,
    topic: str,
    keys: Sequence[Any],
    *,
    commit: int | None = None,
    window_start_ms: int | None = None,
) -> Found:
    """The newest record of a key.

    Args:
        warehouse: Root of all durable data.
        job: The job's name.
        topic: The sink's topic.
        keys: What the key may be, as Python data; of a windowed one an object of which fields may be left out.
        commit: As of which commit; None: the newest.
        window_start_ms: Of a windowed key, the start of its window.

    Raises:
        ConfigurationError: There is no such record, commit or topic; or keys are not windowed.
    """
    standing = standing_commit(warehouse, job, commit)
    ends = standing.sink_offsets().get(topic, {})
    archive = open_archive(warehouse, topic)
    if window_start_ms is not None:
        key_type = archive.table_schema.field("key").type
        if not is_windowed_struct(key_type):
            raise ConfigurationError(
                "the keys of the sink have no windows", topic=topic, next_step="leave --window out"
            )
        start_type = key_type.field("window_start").type
        start = pa.scalar(window_start_ms, pa.timestamp("ms", start_type.tz)).cast(start_type).as_py()
        within = [{**key, "window_start": start} for key in keys]
        if (found := _newest(archive, topic, within, ends)) is not None:
            return found
    found = _newest(archive, topic, keys, ends)
    if found is not None and window_start_ms is None:
        return found
    place = {"topic": topic, "key": ", ".join(map(readable_json, keys[:1])), "commit": standing.commit}
    if found is not None and window_start_ms is not None:
        what = "the sink has records of this key, but none of a window that begins then"
        step = f"hindstream show {topic} KEY shows its windows; leave --window out for its newest record"
        raise ConfigurationError(what, **place, window=instant_text(window_start_ms), next_step=step)
    step = f"hindstream show {topic} shows which keys there are"
    raise ConfigurationError("the sink has no record of this key there", **place, next_step=step)


def _newest(archive: TopicArchive, topic: str, keys: Sequence[Any], ends: dict[int, int]) -> Found | None:
    """The newest record of some keys before the ends of the partitions."""
    for partition in partitions_of(archive, keys):
        newest = None
        for table in find(archive, partition, Stretch(end_offset=ends.get(partition, 0)), keys):
            newest = table.slice(table.num_rows - 1).combine_chunks().to_batches()[0]
        if newest is not None:
            return Found(topic, partition, newest.column("offset")[0].as_py(), newest)
    return None


def result_at(warehouse: Storage, topic: str, partition: int, offset: int) -> Found:
    """The record at an offset.

    Raises:
        ConfigurationError: There is none.
    """
    archive = open_archive(warehouse, topic)
    if 0 <= partition < archive.partitions:
        for table in find(archive, partition, Stretch(start_offset=offset, end_offset=offset + 1)):
            return Found(topic, partition, offset, table.combine_chunks().to_batches()[0])
    step = f"hindstream show {topic} shows what there is"
    raise ConfigurationError(
        "the sink has no such record", topic=topic, partition=partition, offset=offset, next_step=step
    )


def made_by(slices: Sequence[Slice], ends: dict[int, int], found: Found) -> tuple[int, int]:
    """Which slice wrote a record, and which row of that slice's it is.

    Args:
        slices: Those that count.
        ends: By partition, the offset at which the last one ended.
        found: The record.

    Raises:
        ConfigurationError: None of them did.
    """
    begins = [part.sink_offsets.get(found.topic, {}).get(found.partition, 0) for part in slices]
    at = int(np.searchsorted(np.array(begins), found.offset, side="right")) - 1
    if at < 0 or found.offset >= ends.get(found.partition, 0):
        raise ConfigurationError(
            "the record is not of these commits",
            topic=found.topic,
            partition=found.partition,
            offset=found.offset,
            next_step="name a later commit, or leave --commit out: hindstream state JOB lists them",
        )
    return at, found.offset - begins[at]
