"""Topic archives by name: where a warehouse keeps them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from statelib.commits.layout import topic_path
from statelib.topics.archive import TopicArchive
from statelib.topics.delta.log import ArchiveNotFoundError
from statelib.topics.places import with_nearest

if TYPE_CHECKING:
    from statelib.storage import Storage


def open_archive(warehouse: Storage, topic: str, version: int | None = None) -> TopicArchive:
    """The archive of ``topic``, the newest version unless one is given.

    Raises:
        ConfigurationError: There is none.
    """
    try:
        return TopicArchive.open(warehouse.uri(topic_path(topic)), version, options=warehouse.options)
    except ArchiveNotFoundError as error:
        raise with_nearest(error, warehouse, topic) from None


def open_archive_if_present(warehouse: Storage, topic: str) -> TopicArchive | None:
    """The newest version of the archive of ``topic``, or None if there is none yet."""
    return TopicArchive.open_if_present(warehouse.uri(topic_path(topic)), options=warehouse.options)
