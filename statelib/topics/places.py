"""Where the archives of topics lie below a warehouse, ``topics/<topic>/``, and which there are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from statelib.errors.did_you_mean import next_to

if TYPE_CHECKING:
    from statelib.errors.kinds import ConfigurationError
    from statelib.storage import Storage

_FOLDER = "topics"


def archive_path(topic: str) -> str:
    """The archive of a topic, below the warehouse."""
    return f"{_FOLDER}/{topic}"


def topics_in(warehouse: Storage) -> list[str]:
    """The topics that have a folder in the warehouse, by name; one request."""
    return [path.rpartition("/")[2] for path in warehouse.folders(_FOLDER)]


def with_nearest(error: ConfigurationError, warehouse: Storage, topic: str) -> ConfigurationError:
    """An error that says that a topic has no archive, with the names that may have been meant, if any is near."""
    topics = topics_in(warehouse)
    meant = "" if topic in topics else next_to(topic, topics)
    return type(error)(error.what, next_step=meant or error.next_step, **error.place)
