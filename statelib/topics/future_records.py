"""Records from the future: those with a timestamp that is later than it can be.

One of them would hold back its partition for every slice that ends before its time, and then make late all that comes
after it. Which records are meant must not depend on where slices end, or a hundred slices would give other answers than
one: so it is a time that nothing but the archive says, that at which it got the record, or one that is given
(docs/decisions: "Records from the future").
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, Field

from statelib.columns.times import instant_text, unit_hint

if TYPE_CHECKING:
    from statelib.settings.max_future import MaxFuture
    from statelib.topics.files import ArchiveFile
    from statelib.topics.version import TopicVersion


def latest_ms(max_future: MaxFuture, archive: TopicVersion, file: ArchiveFile, planned_at_ms: int) -> int:
    """The latest timestamp of a file's records that is not from the future.

    Args:
        max_future: From when on it is.
        archive: The topic.
        file: The file.
        planned_at_ms: When the run was planned: stands for when the archive got the file where it does not say.
    """
    archived_at_ms = archive.archived_at_ms(file)
    return max_future.latest_of(planned_at_ms if archived_at_ms is None else archived_at_ms)


class FutureRecord(BaseModel):
    """A record whose time is so late that others are lost by it, or have to wait."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    in_slice: bool = Field(description="taken up by the slice; else the slice ends before it, and older records wait")

    def __str__(self) -> str:
        """For a person."""
        place = f"{self.topic}, partition {self.partition}, offset {self.offset}"
        stamped = f"is stamped {instant_text(self.timestamp_ms)}{unit_hint(self.timestamp_ms)}"
        if self.in_slice:
            return f"{place} {stamped}, later than its archive got it: it moves stream time, and what follows is late"
        return f"{place} {stamped}: the slice ends before it, and records from before the slice's end wait behind it"

    @property
    def next_step(self) -> str:
        """What to do."""
        return "see docs/runbooks/records-from-the-future.md, or set max_future to set such records apart"
