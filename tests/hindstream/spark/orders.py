"""Generated orders, and a warehouse with their topic."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hindstream.runs import open_warehouse
from statelib.commits.archives import open_archive
from statelib.settings.settings import Settings, load_settings
from statelib.topics.append import append_records
from statelib.topics.archive import TopicArchive
from statelib.topics.parquet.schema import topic_schema
from tests.hindstream.spark.orders_job import SINK

JOB_FILE = Path(__file__).with_name("orders_job.py")
DAY_MS = 86_400_000
HOUR_MS = 3_600_000
VALUE = pa.struct([("order_id", pa.string()), ("amount", pa.float64()), ("country", pa.string())])
PARTITIONS = 3


def orders(count: int = 3_000, *, days: int = 4, seed: int = 7) -> pa.Table:
    """Orders of some customers, out of order by up to half an hour; one in ten is delivered twice."""
    random = np.random.default_rng(seed)
    timestamp = np.sort(random.integers(0, days * DAY_MS, count)) - random.integers(0, HOUR_MS // 2, count)
    delivered = np.sort(np.concatenate([np.arange(count), np.arange(0, count, 10)]), kind="stable")
    value = pa.StructArray.from_arrays(
        [
            pa.array([f"order-{n}" for n in range(count)]),
            pa.array(random.integers(1, 500, count).astype(np.float64)),
            pa.array(np.array(["de", "fr", "us"])[random.integers(0, 3, count)]),
        ],
        fields=list(VALUE),
    )
    key = pa.array([f"customer-{n}" for n in random.integers(0, 50, count)])
    table = pa.table(
        {"key": key, "value": value, "timestamp": pa.array(np.maximum(timestamp, 0), pa.timestamp("ms", "UTC"))}
    )
    return table.take(pa.array(delivered))


def make_settings(folder: Path, **others: object) -> Settings:
    """Settings of a warehouse of its own."""
    command_line = {
        "warehouse": str(folder / "warehouse"),
        "state_dir": str(folder / "state"),
        "spark_master": "local[2]",
    }
    return load_settings(command_line | others, environ={})


def archive_orders(settings: Settings, table: pa.Table, version: int = 1) -> TopicArchive:
    """Appends orders to the topic, which is made if absent."""
    uri = open_warehouse(settings).uri("topics/orders")
    archive = TopicArchive.ensure(uri, topic_schema(pa.string(), VALUE), PARTITIONS, options=settings.store_options)
    append_records(archive, table, attempt=f"test-{version}", app_id="test", app_version=version)
    return archive.refresh()


def published(settings: Settings) -> list[dict[str, Any]]:
    """All records of the sink, with their partition."""
    archive = open_archive(open_warehouse(settings), SINK)
    rows: list[dict[str, Any]] = []
    for partition in range(archive.partitions):
        for batch in archive.reader(partition):
            rows += [{**row, "partition": partition} for row in batch.to_pylist()]
    return rows


def check_published(settings: Settings, table: pa.Table) -> None:
    """Checks that the sink has one right result for each hour of the orders in ``table`` that must be closed."""
    expected = expected_totals(table)
    rows = published(settings)
    found = {(row["key"]["key"], _ms(row["key"]["window_start"])): row["value"] for row in rows}
    assert len(found) == len(rows)
    assert {place: (value["orders"], value["amount"]) for place, value in found.items()} == {
        place: expected[place] for place in found
    }
    closed_ms = _ms(pc.max(table["timestamp"]).as_py()) - 4 * HOUR_MS
    assert set(found) >= {place for place in expected if place[1] < closed_ms}


def expected_totals(table: pa.Table) -> dict[tuple[str, int], tuple[int, float]]:
    """Orders and amount by country and hour (ms), each order once."""
    totals: dict[tuple[str, int], tuple[int, float]] = {}
    seen = set()
    for row in table.to_pylist():
        value = row["value"]
        if value["order_id"] not in seen:
            seen.add(value["order_id"])
            timestamp = _ms(row["timestamp"])
            place = value["country"], timestamp - timestamp % HOUR_MS
            count, amount = totals.get(place, (0, 0.0))
            totals[place] = count + 1, amount + value["amount"]
    return totals


def _ms(time: datetime) -> int:
    return int(time.timestamp() * 1000)
