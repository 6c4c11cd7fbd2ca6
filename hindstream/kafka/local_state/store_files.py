"""What one task has of one store, made of the records of its changelog: what a restore of them would leave."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from hindstream.kafka.local_state.database import TO_RESTORE, Database
from statelib.checkpoint.local_errors import local_errors
from statelib.errors.fault_points import step
from statelib.errors.kinds import InternalError

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType
    from typing import Self

    from hindstream.kafka.local_state.layout import Layout
    from hindstream.kafka.producer import Outgoing

_WHOLE = -1


class StoreFiles:
    """The databases of a task's share of a store; leaving the context closes what is open.

    Args:
        task: The task's directory.
        store: The application's name of the store.
        layout: Where its entries lie. If the application is to restore it, it gets nothing but the note that says so.
    """

    def __init__(self, task: Path, store: str, layout: Layout) -> None:
        self._task, self._store, self._layout = task, store, layout
        self._databases: dict[int, Database] = {}
        self._newest_ms = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for database in self._databases.values():
            database.close()

    def add(self, record: Outgoing) -> None:
        """Takes a record of the changelog in, as the topic has it."""
        if self._layout.restored:
            return
        key, timestamp_ms = record.key, record.timestamp_ms
        if key is None or timestamp_ms is None:
            raise InternalError("a record of a changelog has no key or no timestamp", store=self._store)
        database = self._database(self._start_of(key))
        for entry, stored in self._layout.entries(key, record, timestamp_ms):
            database.put(entry, stored)

    def finish(self, changelog: str, partition: int, last_offset: int | None) -> None:
        """Completes the databases, once all records are in: they tell how much of the changelog they have.

        As a restore, it leaves nothing of segments that the newest record has expired. A store that has nothing yet
        gets an empty database: without one an application with exactly-once would not know its offset.

        Args:
            changelog: The topic.
            partition: Of the topic.
            last_offset: Of its last record; None: it has none.
        """
        offset = TO_RESTORE if self._layout.restored or last_offset is None else last_offset
        if not self._databases:
            self._database(_WHOLE if self._layout.segments is None else 0)
        for start, database in self._databases.items():
            database.finish(changelog, partition, offset)
            if self._is_expired(start):
                with local_errors("delete an expired segment", self._folder(start)):
                    shutil.rmtree(self._folder(start))
        self._databases = {}
        step("directory.store-written")

    def _start_of(self, key: bytes) -> int:
        segments = self._layout.segments
        if segments is None:
            return _WHOLE
        time_ms = segments.time_of(key)
        self._newest_ms = max(self._newest_ms, time_ms)
        return segments.start_of(time_ms)

    def _is_expired(self, start: int) -> bool:
        segments = self._layout.segments
        return segments is not None and start < segments.start_of(max(self._newest_ms - segments.retention_ms, 0))

    def _database(self, start: int) -> Database:
        if start not in self._databases:
            self._databases[start] = Database(self._folder(start), self._layout.family)
        return self._databases[start]

    def _folder(self, start: int) -> Path:
        if self._layout.segments is None:
            return self._task / "rocksdb" / self._store
        return self._task / self._store / f"{self._store}.{start}"
