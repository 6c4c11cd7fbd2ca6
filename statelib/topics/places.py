"""Where the archives of topics lie below a warehouse, ``topics/<topic>/``, and which there are."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from statelib.storage import Storage

_FOLDER = "topics"


def archive_path(topic: str) -> str:
    """The archive of a topic, below the warehouse."""
    return f"{_FOLDER}/{topic}"


def topics_in(warehouse: Storage) -> list[str]:
    """The topics that have a folder in the warehouse, by name; one request."""
    return [path.rpartition("/")[2] for path in warehouse.folders(_FOLDER)]
