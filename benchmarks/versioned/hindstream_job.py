"""Our store in a job: ``python -m benchmarks.versioned.hindstream_job OPERATIONS FOLDER RETENTION SEGMENT``.

The retention and the segment interval are in ms. A slice puts a topic into a versioned table; another joins a topic
with it, each record as of its own time. Prints, as JSON, the CPU seconds of their replay (which reads the topic,
checkpoints the state, writes the answer) and the digest of the answers, as ``VersionedJob.java`` does.
"""

from __future__ import annotations

import json
import sys
import uuid
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from benchmarks.scale.replays import Replays
from benchmarks.versioned.cases import Operations
from benchmarks.versioned.digests import NOTHING, digest_of
from benchmarks.versioned.hindstream_store import WARM_UP
from statelib import Job, Materialized, Produced, Stores, StreamsBuilder
from statelib.commits import topic_path
from statelib.topics.append import append_records
from statelib.topics.archive import TopicArchive, topic_schema

if TYPE_CHECKING:
    from numpy.typing import NDArray

UPDATES, ASKS, ANSWER = "updates", "asks", "answer"


def main(file: str, folder: str, retention_ms: str, segment_interval_ms: str) -> None:
    """The two slices; first two of some records that do not count."""
    asked = Operations.read(Path(file))
    job = joined(timedelta(milliseconds=int(retention_ms)), timedelta(milliseconds=int(segment_interval_ms)))
    for name, limit in (("warm-up", WARM_UP), ("measured", None)):
        figures = measured(Replays(Path(folder, name), job), asked, limit)
    print(json.dumps(figures))


def joined(retention: timedelta, segment_interval: timedelta) -> Job:
    """Asks, joined with the update that was valid at their time."""
    builder = StreamsBuilder("versioned")
    store = Stores.persistent_versioned_key_value_store("store", retention, segment_interval)
    table = builder.table(UPDATES, Materialized.as_(store))
    builder.stream(ASKS).left_join(table, {"found": "right"}).to(ANSWER, Produced(name="written"))
    return Job("versioned", builder.build())


def measured(replays: Replays, asked: Operations, limit: int | None) -> dict[str, dict[str, float | int]]:
    """By kind of operation its CPU seconds, those of all threads, and the digest of what the join has found."""
    names = pa.array([f"key-{n:08d}" for n in range(asked.keys)])
    archives = {
        topic: TopicArchive.create(
            replays.warehouse.uri(topic_path(topic)), topic_schema(pa.string(), pa.int64()), 1, topic=topic
        )
        for topic in (UPDATES, ASKS)
    }

    def seconds(topic: str, key: NDArray[np.int32], value: NDArray[np.int64], time: NDArray[np.int64]) -> float:
        columns = [names.take(pa.array(key[:limit])), pa.array(value[:limit])]
        columns.append(pa.array(time[:limit], pa.timestamp("ms", "UTC")))
        records = pa.table(columns, ["key", "value", "timestamp"])
        append_records(archives[topic], records, attempt=uuid.uuid4().hex[:8], app_id="benchmark", app_version=1)
        return replays.run().phases["replay"].cpu_seconds

    put = seconds(UPDATES, asked.put_key, asked.put_value, asked.put_time)
    join = seconds(ASKS, asked.read_key, np.zeros(len(asked.read_key), np.int64), asked.read_time)
    answer = TopicArchive.open_if_present(replays.warehouse.uri(topic_path(ANSWER)))
    assert answer is not None
    values = answer.reader(0).read_all()["value"].combine_chunks()
    digest = digest_of(NOTHING if found is None else found for found in values.field("found").to_pylist())
    return {"put in a job": {"cpu_seconds": put, "digest": digest}, "join": {"cpu_seconds": join, "digest": digest}}


if __name__ == "__main__":
    main(*sys.argv[1:])
