"""KIP-328's first example: who has had fewer than three events in an hour? One alert each, and no false alarm.

::

    ./dev run python examples/quiet_users.py                            # archives a day of events
    ./dev run hindstream run examples/quiet_users.py:job                # finds the quiet hours

A count below three is true of every hour at some time, so only the final count may alarm: ten minutes after the hour
has ended, when late events have had their time. The counts of all users wait until then, in 5 MB of memory and, if that
is not enough, on disk.
"""

from __future__ import annotations

import sys
from datetime import timedelta

import pyarrow as pa
import pyarrow.compute as pc

from hindstream import BufferConfig, Job, StreamsBuilder, StrictBufferConfig, Suppressed, TimeWindows, count, expect

BUFFER = BufferConfig.max_bytes(5_000_000).spill_to_disk_when_full()


def job(buffer: StrictBufferConfig = BUFFER) -> Job:
    """The KIP's other buffers, ``unbounded()`` and ``max_bytes(5_000_000).shut_down_when_full()``, give the same."""
    builder = StreamsBuilder("quiet-users")
    (
        builder.stream("events")
        .group_by_key()
        .windowed_by(TimeWindows.of_size_and_grace(timedelta(hours=1), timedelta(minutes=10)))
        .aggregate({"events": count()})
        .suppress(Suppressed.until_window_closes(buffer))
        .to_stream()
        .filter(pc.field("value", "events") < 3)
        .to("alerts")
    )
    expectations = (expect("expect_column_values_to_be_between", column="value.events", min_value=1, max_value=2),)
    return Job("quiet-users", builder.build(), expectations={"alerts": expectations})


def events() -> pa.Table:
    """A day of 50 users: user ``n`` has an event every ``n`` minutes, and some come nine minutes late."""
    minute = 60_000
    noted = [(at * minute, user) for user in range(1, 51) for at in range(user, 24 * 60, user)]
    arrived = sorted((time + (9 * minute if time // minute % 7 == 0 else 0), time, user) for time, user in noted)
    rows = [{"key": user, "value": f"event at {time}", "timestamp": time} for _, time, user in arrived]
    schema = pa.schema([("key", pa.int32()), ("value", pa.string()), ("timestamp", pa.timestamp("ms", "UTC"))])
    return pa.Table.from_pylist(rows, schema=schema)


def main(warehouse: str = "warehouse") -> None:
    """Archives the events as the topic ``events`` with two partitions, once."""
    from hindstream import TopicArchive, append_records, topic_schema  # noqa: PLC0415  (only who archives needs them)

    records = events()
    schema = topic_schema(records.schema.field("key").type, records.schema.field("value").type)
    archive = TopicArchive.ensure(f"{warehouse}/topics/events", schema, partitions=2)
    added = append_records(archive, records, attempt="example", app_id="quiet-users-example", app_version=1)
    print(f"{'archived' if added else 'there are already'} {records.num_rows} records in {archive.uri}")


if __name__ == "__main__":
    main(*sys.argv[1:])
