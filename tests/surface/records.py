"""Input for the surface: out of order, with equal times, nulls everywhere, a hot key, ids twice."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

VALUE = pa.struct([("id", pa.string()), ("amount", pa.int64()), ("other", pa.string())])
TYPES = (pa.string(), VALUE)
TOPICS = ("events", "clicks", "prices", "names")
VISITS, CALLS = "visits", "calls"
GLOBAL_TOPICS = ("places", "tariffs")
PARTITIONS = 2

Row = tuple[Any, Any, int]


def surface_records(seed: int, records: int) -> dict[str, list[Row]]:
    """By topic, (key, value, timestamp): time moves on by 10 ms a record, and every fourth record is late."""
    rng = np.random.default_rng(seed)
    topics: dict[str, list[Row]] = {topic: [] for topic in TOPICS}
    now = 0
    for number in range(records):
        now += int(rng.choice([0, 5, 10, 10, 25]))
        late = int(rng.choice([0, 0, 0, 15, 40, 120], p=[0.3, 0.3, 0.15, 0.1, 0.1, 0.05]))
        key = None if rng.random() < 0.05 else str(rng.choice(["hot", "hot", "a", "ab", ""]))
        value = {"id": f"i{number - int(rng.integers(0, 3))}", "amount": int(rng.integers(1, 9)), "other": "b"}
        value["other"] = None if rng.random() < 0.2 else str(rng.choice(["a", "ab", "hot", "none"]))
        row: Row = (key, None if rng.random() < 0.12 else value, max(0, now - late))
        topics[str(rng.choice(TOPICS, p=[0.4, 0.2, 0.2, 0.2]))].append(row)
    others = np.random.default_rng((seed, 2))  # some of the same records once more
    again = {topic: [row for row in topics["events"] if others.random() < 0.6] for topic in (VISITS, CALLS)}
    return topics | again | _global_tables(np.random.default_rng((seed, 1)), records, until_ms=now)


def _global_tables(rng: np.random.Generator, records: int, *, until_ms: int) -> dict[str, list[Row]]:
    """Two more topics, their keys those of ``other``; the one that is not followed in time has any timestamps."""
    topics: dict[str, list[Row]] = {topic: [] for topic in GLOBAL_TOPICS}
    count = records // 4
    for number in range(count):
        value = {"id": f"g{number}", "amount": number, "other": None}
        time = until_ms * number // count - int(rng.choice([0, 0, 15, 40]))
        for topic, rows in topics.items():
            key = None if rng.random() < 0.05 else str(rng.choice(["a", "ab", "hot", "b"]))
            timestamp = int(rng.choice([0, until_ms // 2, 2 * until_ms])) if topic == "places" else max(0, time)
            rows.append((key, None if rng.random() < 0.12 else value, timestamp))
    return topics
