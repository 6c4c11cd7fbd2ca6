"""Generated orders, and a warehouse with their topic."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from statelib.config import Settings, load_settings
from statelib.storage import Storage
from statelib.topics.append import append
from statelib.topics.archive import TopicArchive
from statelib.topics.schema import topic_schema

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
    uri = Storage(settings.warehouse).uri("topics/orders")
    archive = TopicArchive.ensure(uri, topic_schema(pa.string(), VALUE), PARTITIONS)
    append(archive, table, attempt=f"test-{version}", app_id="test", app_version=version)
    return archive.refresh()
