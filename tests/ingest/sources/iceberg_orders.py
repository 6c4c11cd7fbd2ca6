"""The Iceberg table ``shop.orders``, and a topic that is loaded from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog

from statelib.job.lake_topic import LakeTopic
from tests.ingest.lake import records_of

if TYPE_CHECKING:
    from pathlib import Path

    from pyiceberg.table import Table

AT = 1_356_998_400_000
NAME = "iceberg:lake.shop.orders"


def rows(first: int, count: int) -> pa.Table:
    numbers = range(first, first + count)
    kinds = ["a b" if n % 2 else "ü" for n in numbers]
    return pa.table({"n": list(numbers), "at": [AT + n for n in numbers], "kind": kinds})


def table_of(catalog: SqlCatalog, *parts: pa.Table, **options: Any) -> Table:
    table = catalog.create_table("shop.orders", rows(0, 1).schema, **options)
    for part in parts:
        table.append(part)
    return table


def topic(source: str = NAME, **options: Any) -> LakeTopic:
    return LakeTopic("t", source, **{"timestamp": "at", "partitions": 1, **options})


def numbers_in(warehouse: Path) -> list[int]:
    return sorted(record["value"]["n"] for record in records_of(warehouse, "t"))
