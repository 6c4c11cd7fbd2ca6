"""A program: a topology as a list of steps, and records to pipe into it. Plain data, so that two languages read it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

Step = dict[str, Any]
Row = tuple[str, str | None, str | None, int]
"""Topic, key, value, timestamp."""


@dataclass(frozen=True)
class Program:
    """See the module's docstring.

    Attributes:
        steps: Each makes a stream or a table, or ends one; it names those before it by their number (``of``,
            ``with``). What there is: `tests.differential.topology`.
        records: In the order in which they are taken up.
        rocksdb: Whether Kafka Streams keeps its stores in RocksDB instead of in memory.
        optimization: Kafka's setting ``topology.optimization``.
    """

    steps: tuple[Step, ...]
    records: tuple[Row, ...]
    rocksdb: bool = False
    optimization: str = "none"

    def as_json(self) -> str:
        """One line, for people and for the Java side."""
        told = {"steps": self.steps, "records": self.records, "rocksdb": self.rocksdb}
        return json.dumps(told if self.optimization == "none" else told | {"optimization": self.optimization})

    @classmethod
    def from_json(cls, line: str) -> Program:
        """The inverse."""
        read = json.loads(line)
        records = tuple(tuple(row) for row in read["records"])
        return cls(tuple(read["steps"]), records, read.get("rocksdb", False), read.get("optimization", "none"))
