"""How far a sink's archive has been published to Kafka: records of a compacted topic of its own.

A position is part of the transaction that publishes the records, so that the two cannot disagree::

    topic       <job>-<topic in Kafka>-published, with as many partitions as the sink's archive has
    partition   that of the archive
    key         "position"
    value       {"format":2,"job":"clicks","made_at_ms":1700000000000,"offset":117,"rollback":0}

    partition   0
    key         "begun", written once, before anything is published
    value       {"format":2,"topic":"<id of cluster>/<id of topic>"}

Values are JSON in UTF-8, with sorted keys and no white space. ``offset`` is the next one of the archive's to publish,
``rollback`` the commit of the last rollback that the archive showed (0: none). ``topic`` tells the topic from one of
its name in another cluster, or that is created after it.

``job`` is the one whose archive that is: the job itself, or a fork that was promoted over it, with
``made_at_ms``, the time of that one's first commit, since the name of a fork may become another one's. All partitions
pass from one job to another in one transaction. Positions of version 1 have neither: they are those of the job.
"""

from __future__ import annotations

import json
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from statelib.errors.kinds import ConfigurationError, CorruptedDataError

FORMAT_VERSION = 2


class _Value(BaseModel):
    """A value of the topic."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
    KEY: ClassVar[bytes]

    def encode(self) -> bytes:
        """The record's value."""
        said = {"format": FORMAT_VERSION, **self.model_dump()}
        return json.dumps(said, sort_keys=True, separators=(",", ":")).encode()

    @classmethod
    def decode(cls, value: bytes, **place: object) -> Self:
        """What a record's value says.

        Args:
            value: The value.
            place: Where it is, for errors.

        Raises:
            ConfigurationError: A newer Hindstream wrote it.
            CorruptedDataError: It is none.
        """
        try:
            found: Any = json.loads(value)
            version = found.pop("format")
            if version in range(1, FORMAT_VERSION + 1):
                return cls.model_validate(found)
        except (ValueError, TypeError, KeyError, AttributeError, ValidationError) as error:
            step = "let nobody else write to that topic, or publish to a new one"
            raise CorruptedDataError("a published position cannot be read", **place, next_step=step) from error
        what = f"a published position has format {version}, this Hindstream knows up to {FORMAT_VERSION}"
        raise ConfigurationError(what, **place, next_step="install the newer Hindstream that wrote it")


class PublishedPosition(_Value):
    """See the module."""

    KEY: ClassVar[bytes] = b"position"
    offset: int
    rollback: int
    job: str | None = None
    made_at_ms: int | None = None


class Begun(_Value):
    """See the module."""

    KEY: ClassVar[bytes] = b"begun"
    topic: str


def positions_topic(job: str, topic: str) -> str:
    """The name of the topic of positions, which has the name of the job that readers know."""
    return f"{job}-{topic}-published"
