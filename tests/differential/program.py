"""A program: a topology as a list of steps, and records to pipe into it. Plain data, so that two languages read it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

Step = dict[str, Any]
Row = tuple[str, Any, Any, int]
"""Topic, key, value, timestamp."""


@dataclass(frozen=True)
class Program:
    """See the module's docstring.

    Attributes:
        steps: Each makes a stream or a table, or ends one; it names those before it by their number (``of``,
            ``with``). What there is: `tests.differential.topology`.
        records: In the order in which they are taken up. Keys of bytes are written as digits of 16.
        rocksdb: Whether Kafka Streams keeps its stores in RocksDB instead of in memory.
        optimization: Kafka's setting ``topology.optimization``.
        keys: Of what type keys are: see `tests.differential.functions.KEYS`.
        numbers: Whether the values of topics, but for those of global tables, are 64-bit integers, and not strings.
    """

    steps: tuple[Step, ...]
    records: tuple[Row, ...]
    rocksdb: bool = False
    optimization: str = "none"
    keys: str = "string"
    numbers: bool = False

    def as_json(self) -> str:
        """One line, for people and for the Java side."""
        told = {"steps": self.steps, "records": self.records, "rocksdb": self.rocksdb}
        more = {"optimization": self.optimization, "keys": self.keys, "numbers": self.numbers}
        return json.dumps(told | {name: item for name, item in more.items() if item not in ("none", "string", False)})

    @classmethod
    def from_json(cls, line: str) -> Program:
        """The inverse."""
        read = json.loads(line)
        records = tuple(tuple(row) for row in read["records"])
        return cls(**(read | {"steps": tuple(read["steps"]), "records": records}))
