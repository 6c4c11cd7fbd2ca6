"""What loads leave in the warehouse, below their topics' folders: nothing, or what a later one deletes."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from statelib.commits.layout import topic_path

if TYPE_CHECKING:
    from collections.abc import Iterator

    from statelib.storage import Storage

_KEEP_MS = 7 * 86_400_000
_UNDER_WAY = "_under_way"


@dataclass(frozen=True, slots=True)
class FilesOfLoad:
    """The folder of what the tasks of one load hand on to each other; travels to the workers.

    Spark cancels tasks without waiting for them, so that one may write when its load has ended and deleted all. A
    file in the folder says that the load is under way: the load deletes it before it lists what else is there, a task
    looks for it after it has written. So one of the two sees what is left, and deletes it.

    Attributes:
        storage: The folder, which is this load's alone.
    """

    storage: Storage

    @contextmanager
    def kept(self) -> Iterator[None]:
        """In the driver: keeps the files until the load has ended."""
        self.storage.put(_UNDER_WAY, b"")
        try:
            yield
        finally:
            self.storage.delete(_UNDER_WAY)
            delete_all(self.storage)

    @contextmanager
    def written(self) -> Iterator[None]:
        """In a worker: leaves no file of a task that the load has not waited for."""
        try:
            yield
        finally:
            if not self.storage.exists(_UNDER_WAY):
                delete_all(self.storage)


def delete_all(storage: Storage) -> None:
    """Deletes all below a root."""
    storage.delete([entry.path for entry in storage.list()])


def delete_old(warehouse: Storage, topic: str, folder: str, time_ms: int) -> None:
    """Deletes what loads that were killed long ago have left: a newer one may still be under way."""
    found = warehouse.list(f"{topic_path(topic)}/{folder}")
    warehouse.delete([entry.path for entry in found if entry.modified_ms < time_ms - _KEEP_MS])
