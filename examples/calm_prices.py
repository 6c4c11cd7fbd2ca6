"""KIP-328's second example: a table that changes all the time, as one update every 30 seconds and key.

::

    ./dev run python examples/calm_prices.py                            # archives a quarter of an hour of prices
    ./dev run hindstream run examples/calm_prices.py:job                # calms them down

Who reads the result has each price at most 30 seconds late, and is spared the updates between. No more than 1,000 keys
wait at a time: were there more, those that have waited longest would leave early.
"""

from __future__ import annotations

import sys
from datetime import timedelta

import pyarrow as pa

from hindstream import BufferConfig, Job, StreamsBuilder, Suppressed, expect


def job() -> Job:
    """The latest price of each stock, when its first change is 30 seconds old."""
    builder = StreamsBuilder("calm-prices")
    (
        builder.table("prices")
        .suppress(Suppressed.until_time_limit(timedelta(seconds=30), BufferConfig.max_records(1_000)))
        .to_stream()
        .to("calm-prices")
    )
    expectations = (expect("expect_column_values_to_not_be_null", column="key"),)
    return Job("calm-prices", builder.build(), expectations={"calm-prices": expectations})


def prices() -> pa.Table:
    """A quarter of an hour: each of 40 stocks changes every second but the tenth, which changes once."""
    rows = [
        {"key": f"stock-{stock:02}", "value": 100.0 + (second * (stock + 3)) % 17, "timestamp": second * 1000}
        for second in range(15 * 60)
        for stock in range(40)
        if stock != 9 or second == 100
    ]
    schema = pa.schema([("key", pa.string()), ("value", pa.float64()), ("timestamp", pa.timestamp("ms", "UTC"))])
    return pa.Table.from_pylist(rows, schema=schema)


def main(warehouse: str = "warehouse") -> None:
    """Archives the prices as the topic ``prices`` with two partitions, once."""
    from hindstream import TopicArchive, append_records, topic_schema  # noqa: PLC0415  (only who archives needs them)

    records = prices()
    schema = topic_schema(records.schema.field("key").type, records.schema.field("value").type)
    archive = TopicArchive.ensure(f"{warehouse}/topics/prices", schema, partitions=2)
    added = append_records(archive, records, attempt="example", app_id="calm-prices-example", app_version=1)
    print(f"{'archived' if added else 'there are already'} {records.num_rows} records in {archive.uri}")


if __name__ == "__main__":
    main(*sys.argv[1:])
