"""Documents beside those of runs (see `statelib.documents.manifests`): of maintenance, rollbacks, holds, forks."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from statelib.documents.document import Data, Document
from statelib.topics.files import ArchiveFile


class Maintenance(Document):
    """What maintenance has done for a job: the one document that is overwritten. Losing it costs work.

    Attributes:
        oldest_restorable: The oldest commit to keep when state files were swept last. (Up to version 3 this alone said
            which states had expired; now see `statelib.commits.expiry`.)
        cleaned_through: Leftovers of runs up to this commit's are gone, and nobody looks for them again.
        swept_through: State files have been swept with this commit as the head.
        forks: The forks that stood on the job then.
    """

    kind: ClassVar[str] = "maintenance record"
    way_out: ClassVar[str] = (
        "restore the file from a copy of the warehouse, or delete it: maintenance then looks at all commits once more"
    )
    oldest_restorable: int = 1
    cleaned_through: int = 0
    swept_through: int = 0
    forks: tuple[str, ...] = ()


class Rollback(Document):
    """What a topic's readers are told when records are taken back that its writer had published.

    It is there before the records go. The archive's application transaction `ROLLBACKS` is the number of the last one.

    Attributes:
        topic: The topic.
        job: The job that writes it.
        commit: The number of the commit that took the records back.
        rolled_back_to: The commit at which the topic now ends.
        end_offsets: Where it ended then, by partition; without an entry: at 0.
    """

    kind: ClassVar[str] = "rollback notice"
    topic: str
    job: str
    commit: int
    rolled_back_to: int
    end_offsets: dict[int, int]


ROLLBACKS = "hindstream.rollbacks"
"""The application whose transaction in a sink's archive is the number of the last commit that took records back."""


class Rewrite(Document):
    """Files of a topic that are put in the place of others: see `statelib.commits.rewriting.rewrite_log`.

    Attributes:
        topic: The topic.
        job: The job that writes it.
        rewrite: Its number; a topic's first is 1.
        replaced: The files that leave, as the topic's log described them.
        files: Those that come.
        cleaned: Of a changelog that is compacted, by partition, the offset before which of each key one record is left.
        created_at_ms: When that was.
    """

    kind: ClassVar[str] = "rewrite of files"
    topic: str
    job: str
    rewrite: int
    replaced: tuple[ArchiveFile, ...]
    files: tuple[ArchiveFile, ...]
    cleaned: dict[int, int] = Field(default_factory=dict)
    created_at_ms: int


REWRITES = "hindstream.rewrites"
"""The application whose transaction in a sink's archive is the number of the last rewrite of its files."""


class Rewriting(Document):
    """How far the files of the topics that a job writes have been looked at. Overwritten; losing it costs work.

    Attributes:
        looked_through: The oldest restorable commit when they were looked at last.
        reclaimed: By topic, the rewrite up to which the files that were replaced are deleted.
    """

    kind: ClassVar[str] = "record of rewrites"
    way_out: ClassVar[str] = "delete it: maintenance then looks at all files once more"
    looked_through: int = 0
    reclaimed: dict[str, int] = Field(default_factory=dict)


class Hold(Document):
    """Who holds a job, so that nobody else plans a run of it: see `statelib.commits.hold`."""

    kind: ClassVar[str] = "hold"
    holder: str = Field(description="a name that the holder chose, and by which it goes on")
    reason: str
    since_ms: int


class Trial(Data):
    """Who tries a version of a job, so that others can tell whether anybody still does.

    Attributes:
        host: The host's name.
        process: The process there; None: it outlives processes, and whoever began it drops it.
        began_at_ms: When, by the host's clock.
        sample_keys: The share of the keys that is replayed; None: all. No other use is made of such a fork.
    """

    host: str
    process: int | None
    began_at_ms: int
    sample_keys: float | None = None


class ForkReference(Document):
    """That a fork stands on a commit of the job in whose folder this lies: see `statelib.commits.forks`.

    Attributes:
        fork: The fork.
        commit: The commit; 0: none, the fork replays from the beginning.
        trial: Of a fork that is dropped when it has been compared.
    """

    kind: ClassVar[str] = "reference of a fork"
    fork: str
    commit: int
    trial: Trial | None = None


class Promotion(Document):
    """Which job serves the readers of another one from now on: see `statelib.commits.versions.promotion`.

    Attributes:
        job: The job whose readers these are.
        number: Counts the promotions over the job, from 1.
        serving: The job that they read: a fork, or the job itself.
        commit: The newest commit of that one, which had been published.
        at_ms: When, by the host's clock.
        undoes: Of a way back: the first of the promotions that it takes back, with all behind it; None: it is none.
    """

    kind: ClassVar[str] = "promotion"
    way_out: ClassVar[str] = "restore the file from a copy of the warehouse, or promote the job's readers anew"
    job: str
    number: int
    serving: str
    commit: int
    at_ms: int
    undoes: int | None = None


class Dropping(Document):
    """That a fork is being dropped: what has to be known of it while its folder goes.

    Attributes:
        job: The fork.
        forked_from: The job that it stands on.
        topics: The topics that it has written.
    """

    kind: ClassVar[str] = "record of a dropped fork"
    job: str
    forked_from: str
    topics: tuple[str, ...]
