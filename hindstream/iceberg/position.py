"""How far a sink has been published to an Iceberg table: a property of each snapshot that Hindstream makes.

::

    hindstream.position = {
        "format": 1,
        "job": "clicks",
        "made_at_ms": 1700000000000,
        "parts": [{"ends": [117, 98], "rollback": 0, "table_id": "6f...", "topic": "by-minute"}],
        "readers": "clicks",
    }

It is JSON with sorted keys and no white space. ``parts`` are the topics whose records the table has, one after the
other in each partition: of a fork those of the jobs before it come first. ``ends`` has by partition the offset behind
the last record, ``table_id`` tells the topic's archive from one that is made anew, and ``rollback`` is the commit of
the last rollback that it showed (0: none). ``readers`` is the job whose readers these are, with the time of its first
commit in ms (None: it had none), ``job`` the one that published: that job, or a fork that was promoted over it.

The table has it as a property besides, written with the snapshot, for when others expire that.
"""

from __future__ import annotations

import json
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from statelib.errors.kinds import ConfigurationError, CorruptedDataError

FORMAT_VERSION = 1

POSITION = "hindstream.position"
"""The property's name."""


class Part(BaseModel):
    """How far the records of one topic have been published."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
    topic: str
    table_id: str
    rollback: int
    ends: tuple[int, ...]


class TablePosition(BaseModel):
    """See the module."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
    readers: str
    made_at_ms: int | None
    job: str
    parts: tuple[Part, ...]

    @property
    def partitions(self) -> int:
        """How many partitions have records, or may have."""
        return max((len(part.ends) for part in self.parts), default=0)

    def records(self, partition: int) -> int:
        """How many records of a partition are published."""
        return sum(part.ends[partition] for part in self.parts if partition < len(part.ends))

    def encode(self) -> str:
        """The property's value."""
        return json.dumps({"format": FORMAT_VERSION, **self.model_dump()}, sort_keys=True, separators=(",", ":"))

    @classmethod
    def decode(cls, value: str, *, table: str) -> Self:
        """What a property says.

        Args:
            value: Its value.
            table: The table, for errors.

        Raises:
            ConfigurationError: A newer Hindstream wrote it.
            CorruptedDataError: It is none.
        """
        try:
            found: Any = json.loads(value)
            version = found.pop("format")
            if version == FORMAT_VERSION:
                return cls.model_validate_json(json.dumps(found))
        except (ValueError, TypeError, KeyError, AttributeError, ValidationError) as error:
            step = f"let nobody else write the property {POSITION}, or publish to a new table"
            raise CorruptedDataError("a published position cannot be read", table=table, next_step=step) from error
        what = f"a published position has format {version}, this Hindstream knows up to {FORMAT_VERSION}"
        raise ConfigurationError(what, table=table, next_step="install the newer Hindstream that wrote it")
