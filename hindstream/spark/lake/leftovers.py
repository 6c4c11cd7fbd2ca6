"""What loads that were killed have left in the warehouse, below their topics' folders."""

from __future__ import annotations

from typing import TYPE_CHECKING

from statelib.commits.layout import topic_path

if TYPE_CHECKING:
    from statelib.storage import Storage

_KEEP_MS = 7 * 86_400_000


def delete_all(storage: Storage) -> None:
    """Deletes all below a root."""
    storage.delete([entry.path for entry in storage.list()])


def delete_old(warehouse: Storage, topic: str, folder: str, time_ms: int) -> None:
    """Deletes what loads that were killed long ago have left: a newer one may still be under way."""
    found = warehouse.list(f"{topic_path(topic)}/{folder}")
    warehouse.delete([entry.path for entry in found if entry.modified_ms < time_ms - _KEEP_MS])
