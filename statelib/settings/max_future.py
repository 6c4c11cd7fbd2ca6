"""From when on a record's timestamp is later than it can be, and what becomes of such a record."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

OnFutureRecord = Literal["quarantine", "partition-time"]
"""What becomes of a record from the future: it goes to the job's quarantine topic, or it is taken up with the largest
timestamp so far of its partition."""

NEVER_MS = (1 << 63) - 1
"""No timestamp is later."""


class MaxFuture(BaseModel):
    """From when on a record's timestamp is from the future: one of the two fields is given."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    span_ms: int | None = Field(default=None, description="how much later than its archiving a record may be")
    last_ms: int | None = Field(default=None, description="later than this time")

    def latest_of(self, archived_at_ms: int) -> int:
        """The latest timestamp that is not from the future, of records that an archive gets at a time."""
        return self.last_ms if self.last_ms is not None else min(archived_at_ms + (self.span_ms or 0), NEVER_MS)
