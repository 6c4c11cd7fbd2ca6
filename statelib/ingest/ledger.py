"""Which files a topic has been loaded from: each file once, whoever loads it how often.

::

    topics/<topic>/_ingests/<n, 20 digits>-<attempt, 15 hex digits>.json     load n of the topic, by one attempt at it

Before an attempt commits, it writes down what it has loaded. The Delta commit that adds the records moves two
application transactions, so that the records and this account of them become true together::

    hindstream.ingest            n: the number of the newest load
    hindstream.ingest/attempt    the attempt that it is of, as a number

A document names the attempt of the load before it. So documents of attempts that have lost, or were killed, are told
from those that count; the next load deletes them. Rows that could not be loaded are committed to the quarantine topic
afterwards, which the next load makes up for where this one was killed in between.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar

from statelib.commits.layout import topic_path
from statelib.documents.document import Data, Document
from statelib.errors.kinds import CorruptedDataError
from statelib.storage.transfers import in_parallel
from statelib.topics.files import ArchiveFile

if TYPE_CHECKING:
    from statelib.storage import Storage
    from statelib.topics.archive import TopicArchive

LOADS = "hindstream.ingest"
ATTEMPT = "hindstream.ingest/attempt"

_NAME = re.compile(r"(\d{20})-([0-9a-f]{15})\.json")


class IngestedFile(Data):
    """A file that has been loaded.

    Attributes:
        path: As of `statelib.ingest.sources.files.SourceFile`, as the next two.
        size_bytes: Its size.
        version: What changes when its content does.
        records: How many records it came to.
        bad_rows: How many of its rows went to the quarantine.
    """

    path: str
    size_bytes: int
    version: str
    records: int
    bad_rows: int


class Ingest(Document):
    """One load of a topic.

    Attributes:
        topic: The topic.
        number: The load's, from 1.
        attempt: The attempt that made it.
        previous: The attempt that made the load before; None: there is none.
        declaration: What was asked for, as `statelib.ingest.declared` writes it.
        timestamps: How timestamps were read, in words.
        files: In the order of their paths.
        rewritten: Files of tables that hold rows which were loaded from others: they are known, and never loaded.
        quarantined: The quarantine's files with the rows that could not be loaded.
        made_at_ms: When.
    """

    kind: ClassVar[str] = "record of a load"
    topic: str
    number: int
    attempt: str
    previous: str | None
    declaration: dict[str, object]
    timestamps: str
    files: tuple[IngestedFile, ...]
    rewritten: tuple[IngestedFile, ...] = ()
    quarantined: tuple[ArchiveFile, ...]
    made_at_ms: int


class Ledger:
    """The loads of a topic that count, as of one version of its archive.

    Args:
        warehouse: The warehouse.
        topic: The topic.
        archive: The version; None: the topic is not there yet.

    Raises:
        CorruptedDataError: A load's document is missing or damaged.
        RetryableError: The store did not answer.
    """

    def __init__(self, warehouse: Storage, topic: str, archive: TopicArchive | None) -> None:
        self.topic = topic
        self._storage = warehouse.within(topic_path(topic))
        self.number = (archive.last_transaction(LOADS) if archive else None) or 0
        attempt = archive.last_transaction(ATTEMPT) if archive else None
        self.attempt = None if attempt is None else f"{attempt:015x}"
        self.loads = self._read()

    def _read(self) -> tuple[Ingest, ...]:
        """The loads that count, the oldest first."""
        if not self.number:
            return ()
        paths = [path for path, number, _ in self._accounts() if number <= self.number]
        read = in_parallel(self._storage.get, paths, self._storage.requests_at_once)
        found = [Ingest.decode(data, file=self._storage.uri(path)) for path, data in zip(paths, read, strict=True)]
        documents = {(load.number, load.attempt): load for load in found}
        loads: list[Ingest] = []
        attempt = self.attempt
        for number in range(self.number, 0, -1):
            load = documents.get((number, attempt or ""))
            if load is None:
                what = f"the record of load {number} of the topic is missing: which files it was loaded from"
                path, step = ingest_path(number, attempt or ""), "restore the file from a copy of the warehouse"
                raise CorruptedDataError(what, topic=self.topic, file=self._storage.uri(path), next_step=step)
            loads.append(load)
            attempt = load.previous
        return tuple(reversed(loads))

    def _accounts(self) -> list[tuple[str, int, str]]:
        """The documents of all attempts: path, number of the load, attempt."""
        found = (
            (entry.path, _NAME.fullmatch(entry.path.rpartition("/")[2])) for entry in self._storage.list("_ingests")
        )
        return [(path, int(match[1]), match[2]) for path, match in found if match]

    @property
    def newest(self) -> Ingest | None:
        """The newest load; None: there is none."""
        return self.loads[-1] if self.loads else None

    def files(self) -> dict[str, IngestedFile]:
        """All files that have been loaded, by path."""
        return {file.path: file for load in self.loads for file in load.files}

    def known(self) -> dict[str, IngestedFile]:
        """The same, and the files into which tables have rewritten them; those of the first load first."""
        return {file.path: file for load in self.loads for file in (*load.files, *load.rewritten)}

    def write(self, load: Ingest) -> None:
        """Writes an attempt down, before its commit."""
        self._storage.put(ingest_path(load.number, load.attempt), load.encode())

    def clean_up(self, load: Ingest) -> None:
        """Deletes what attempts that do not count have written down, up to a load that has been committed."""
        count = {(one.number, one.attempt) for one in (*self.loads, load)}
        others = [path for path, n, attempt in self._accounts() if n <= load.number and (n, attempt) not in count]
        self._storage.delete(others)

    def moves(self, attempt: str) -> tuple[dict[str, tuple[int | None, int]], list[tuple[str, int]]]:
        """What the commit of the next load moves, and what it sets besides: see `TopicArchive.append_at`."""
        return {LOADS: (self.number or None, self.number + 1)}, [(ATTEMPT, int(attempt, 16))]


def ingest_path(number: int, attempt: str) -> str:
    """The document of an attempt at a load, below its topic's folder."""
    return f"_ingests/{number:020d}-{attempt}.json"
