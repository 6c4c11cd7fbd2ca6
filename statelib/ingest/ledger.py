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

Every 64th document also names all files that were loaded before. So no call reads more than 64 documents that count,
however many loads there have been. Older ones are deleted, but for the 64 before the newest of these: a call that began
earlier may be reading them.
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
    from collections.abc import Iterator, Sequence

    from statelib.storage import Storage
    from statelib.topics.archive import TopicArchive

LOADS = "hindstream.ingest"
ATTEMPT = "hindstream.ingest/attempt"

_FULL_EVERY = 64
"""Each load whose number is a multiple of this names all files."""

_NAME = re.compile(r"(\d{20})-([0-9a-f]{15})\.json")


class IngestedFile(Data):
    """A file that has been loaded.

    Attributes:
        path: As of `statelib.ingest.sources.files.SourceFile`, as the next two.
        size_bytes: Its size.
        version: What changes when its content does.
        records: How many records it came to.
        bad_rows: How many of its rows went to the quarantine.
        content: See `statelib.ingest.sources.content.content_of`.
    """

    path: str
    size_bytes: int
    version: str
    records: int
    bad_rows: int
    content: str | None = None


class KnownFile(IngestedFile):
    """A file of an earlier load.

    Attributes:
        is_rewritten: Whether it was not loaded, but holds rows that had been (see `Ingest.rewritten`).
    """

    is_rewritten: bool = False


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
        rewritten: Files that hold rows which had been loaded: a table has rewritten others into them, or they were
            loaded under another path or time. They are known, and never loaded.
        quarantined: The quarantine's files with the rows that could not be loaded.
        made_at_ms: When.
        earlier: The files of all loads before, those of the first load first; None: the documents of these say it.
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
    earlier: tuple[KnownFile, ...] | None = None


class Ledger:
    """The loads of a topic that count, as of one version of its archive.

    Attributes:
        topic: The topic.
        number: The newest load's; 0: there is none.
        attempt: The attempt that made it; None: there is none.
        loads: The newest loads, the oldest of them first, back to one that names all files before it.

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
        accounts = self._accounts() if self.number else []
        documents: dict[tuple[int, str], Ingest] = {}
        loads: list[Ingest] = []
        number, read_from, attempt = self.number, self.number + 1, self.attempt
        while number and not (loads and loads[-1].earlier is not None):
            if number < read_from:
                read_from = max(number - number % _FULL_EVERY, 1)
                documents = self._documents([path for path, n, _ in accounts if read_from <= n <= number])
            load = documents.get((number, attempt or ""))
            if load is None:
                what = f"the record of load {number} of the topic is missing: which files it was loaded from"
                path, step = ingest_path(number, attempt or ""), "restore the file from a copy of the warehouse"
                raise CorruptedDataError(what, topic=self.topic, file=self._storage.uri(path), next_step=step)
            loads.append(load)
            number, attempt = number - 1, load.previous
        return tuple(reversed(loads))

    def _documents(self, paths: Sequence[str]) -> dict[tuple[int, str], Ingest]:
        """Documents by the number of their load and their attempt."""
        read = in_parallel(self._storage.get, paths, self._storage.requests_at_once)
        found = [Ingest.decode(data, file=self._storage.uri(path)) for path, data in zip(paths, read, strict=True)]
        return {(load.number, load.attempt): load for load in found}

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
        return {file.path: file for file, is_rewritten in self._all() if not is_rewritten}

    def known(self) -> dict[str, IngestedFile]:
        """The same, and the files that hold their rows now; those of the first load first."""
        return {file.path: file for file, _ in self._all()}

    def _all(self) -> Iterator[tuple[IngestedFile, bool]]:
        """The files of all loads, and whether they hold rows that had been loaded."""
        for load in self.loads:
            yield from ((file, file.is_rewritten) for file in load.earlier or ())
            yield from ((file, False) for file in load.files)
            yield from ((file, True) for file in load.rewritten)

    @property
    def earlier(self) -> tuple[KnownFile, ...] | None:
        """What the next load says of all loads before it; None: nothing."""
        if (self.number + 1) % _FULL_EVERY:
            return None
        known = {(file.path, is_rewritten): file for file, is_rewritten in self._all()}
        return tuple(
            KnownFile(**file.model_dump(exclude={"is_rewritten"}), is_rewritten=is_rewritten)
            for (_, is_rewritten), file in known.items()
        )

    def write(self, load: Ingest) -> None:
        """Writes an attempt down, before its commit."""
        self._storage.put(ingest_path(load.number, load.attempt), load.encode())

    def clean_up(self, load: Ingest) -> None:
        """Deletes what nobody reads any more, once a load has been committed.

        That is what attempts that do not count have written down, and what is older than the load that names all files
        and the loads before it back to another such.
        """
        loads = (*self.loads, load)
        count, first = {(one.number, one.attempt) for one in loads}, loads[0].number
        full = max((one.number for one in loads if one.earlier is not None), default=0)
        unread = [
            path
            for path, n, attempt in self._accounts()
            if n < full - _FULL_EVERY or (first <= n <= load.number and (n, attempt) not in count)
        ]
        self._storage.delete(unread)

    def moves(self, attempt: str) -> tuple[dict[str, tuple[int | None, int]], list[tuple[str, int]]]:
        """What the commit of the next load moves, and what it sets besides: see `TopicArchive.append_at`."""
        return {LOADS: (self.number or None, self.number + 1)}, [(ATTEMPT, int(attempt, 16))]


def ingest_path(number: int, attempt: str) -> str:
    """The document of an attempt at a load, below its topic's folder."""
    return f"_ingests/{number:020d}-{attempt}.json"
