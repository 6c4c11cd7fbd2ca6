"""A small job whose topic is made from an Arrow table: how often was each page viewed, minute by minute?

::

    ./dev run python examples/page_views.py                             # archives some page views
    ./dev run hindstream run examples/page_views.py:job                 # counts them
"""

from __future__ import annotations

import sys
from datetime import timedelta

import pyarrow as pa

from hindstream import BufferConfig, Deduplicated, Job, StreamsBuilder, Suppressed, TimeWindows, count, expect, max_


def job() -> Job:
    """Views that were sent twice count once; a minute is final when it is ten minutes old."""
    builder = StreamsBuilder("page-views")
    (
        builder.stream("views")
        .deduplicate_by_key_value("view_id", timedelta(hours=1), Deduplicated.as_("views-once"))
        .group_by_key()
        .windowed_by(TimeWindows.of_size_and_grace(timedelta(minutes=1), timedelta(minutes=10)))
        .aggregate({"views": count(), "slowest_ms": max_("load_ms")})
        .suppress(Suppressed.until_window_closes(BufferConfig.unbounded()))
        .to_stream()
        .to("views-by-minute")
    )
    expectations = (
        expect("expect_column_values_to_not_be_null", column="key.key"),
        expect("expect_column_values_to_be_between", column="value.views", min_value=1),
    )
    return Job("page-views", builder.build(), expectations={"views-by-minute": expectations})


def views() -> pa.Table:
    """An hour of views, one every ten seconds: a twelfth is sent again, a fiftieth is a quarter of an hour late."""
    second = 10
    rows = [
        {
            "key": ("/", "/docs", "/blog")[n % 3],
            "value": {"view_id": f"v{n}", "load_ms": 40 + n % 90},
            "timestamp": 1_700_000_000_000 + n * second * 1000 - (900_000 if n % 50 == 49 else 0),
        }
        for n in range(360)
    ]
    delivered = [copy for n, row in enumerate(rows) for copy in ([row, row] if n % 12 == 0 else [row])]
    fields = pa.struct([("view_id", pa.string()), ("load_ms", pa.int64())])
    schema = pa.schema([("key", pa.string()), ("value", fields), ("timestamp", pa.timestamp("ms", "UTC"))])
    return pa.Table.from_pylist(delivered, schema=schema)


def main(warehouse: str = "warehouse") -> None:
    """Archives the views as the topic ``views`` with two partitions, once."""
    from hindstream import TopicArchive, append_records, topic_schema  # noqa: PLC0415  (only who archives needs them)

    records = views()
    schema = topic_schema(records.schema.field("key").type, records.schema.field("value").type)
    archive = TopicArchive.ensure(f"{warehouse}/topics/views", schema, partitions=2)
    added = append_records(archive, records, attempt="example", app_id="page-views-example", app_version=1)
    print(f"{'archived' if added else 'there are already'} {records.num_rows} records in {archive.uri}")


if __name__ == "__main__":
    main(*sys.argv[1:])
