"""The four works a record at a time in plain Python: slow, and plain to see that it is right."""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

import pyarrow as pa

from benchmarks.dataset import CLICKS, RATES, Dataset
from benchmarks.works import DEDUPLICATION_INTERVAL, GRACE, WINDOW, WORKS
from statelib.commits.archives import open_archive
from statelib.storage import Storage

INTERVAL_MS, WINDOW_MS, GRACE_MS = (int(d.total_seconds() * 1000) for d in (DEDUPLICATION_INTERVAL, WINDOW, GRACE))


def answer(work: str, dataset: Dataset) -> pa.Table:
    """Of the columns of ``work``; each key's records in order."""
    rows = []
    for partition in range(dataset.parameters.partitions):
        records = read(dataset, CLICKS, partition)
        if work in {"W1", "W4"}:
            records = once(records)
        if work in {"W2", "W4"}:
            records = priced(records, read(dataset, RATES, partition))
        if work in {"W3", "W4"}:
            records = counted(records, "cost" if work == "W4" else "amount")
        rows += records
    return pa.Table.from_pylist([{n: row[n] for n in WORKS[work].answer.names} for row in rows], WORKS[work].answer)


def read(dataset: Dataset, topic: str, partition: int) -> list[dict[str, Any]]:
    table = open_archive(Storage(str(dataset.folder)), topic).reader(partition).read_all()
    times = table["timestamp"].cast(pa.int64()).to_pylist()
    keys, values = table["key"].to_pylist(), table["value"].to_pylist()
    return [{"key": k, "timestamp": t, **v} for k, t, v in zip(keys, times, values, strict=True)]


def once(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    stream_time, seen, kept = -1, {}, []
    for record in records:
        stream_time = max(stream_time, record["timestamp"])
        first = seen.get(record["id"])
        if first is None or first < stream_time - INTERVAL_MS or abs(record["timestamp"] - first) > INTERVAL_MS:
            kept.append(record)
            if record["timestamp"] >= stream_time - INTERVAL_MS:
                seen[record["id"]] = record["timestamp"]
    return kept


def priced(records: list[dict[str, Any]], rates: list[dict[str, Any]]) -> list[dict[str, Any]]:
    versions: dict[str, tuple[list[int], list[int]]] = {}
    for rate in rates:
        times, values = versions.setdefault(rate["key"], ([], []))
        times.append(rate["timestamp"])
        values.append(rate["rate"])
    joined = []
    for record in records:
        times, values = versions[record["key"]]
        joined.append(record | {"cost": record["amount"] * values[bisect_right(times, record["timestamp"]) - 1]})
    return joined


def counted(records: list[dict[str, Any]], column: str) -> list[dict[str, Any]]:
    stream_time, windows = -1, {}
    for record in records:
        stream_time = max(stream_time, record["timestamp"])
        start = record["timestamp"] - record["timestamp"] % WINDOW_MS
        if start + WINDOW_MS > stream_time - GRACE_MS:
            count, total = windows.get((start, record["key"]), (0, 0))
            windows[start, record["key"]] = (count + 1, total + record[column])
    return [
        {"key": key, "window_start": start, "clicks": count, column: total}
        for (start, key), (count, total) in sorted(windows.items())
        if start + WINDOW_MS <= stream_time - GRACE_MS
    ]
