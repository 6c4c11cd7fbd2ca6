"""The history of a topic's table: what Hindstream has committed to it, and what other programs have.

Each commit says in its entry of the log which operation it was. Hindstream's carry a digest
(`statelib.topics.delta.log`); the others' do not.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from statelib.errors.kinds import ConfigurationError
from statelib.storage import Storage
from statelib.topics.archive import TopicArchive
from statelib.topics.delta.log import DIGEST, ArchiveNotFoundError, DeltaLog, topic_of
from statelib.topics.files import not_as_written

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_APPENDS = frozenset({"WRITE", "STREAMING UPDATE", "CREATE TABLE"})
_AT_MOST = 200
"""Versions that are looked at, the newest."""


@dataclass(frozen=True, slots=True)
class TableCommit:
    """A version of a topic's table.

    Attributes:
        version: The Delta version.
        operation: Delta's name: ``WRITE``, ``DELETE``, ``OPTIMIZE``.
        by: The program, as it calls itself.
        is_ours: Whether Hindstream made it.
        time_ms: When, by the program's clock; None: it does not say.
        overwrites: Whether what it wrote took the place of what was there.
        restores: The former version that it made the newest again; None: it is no RESTORE to one.
    """

    version: int
    operation: str
    by: str
    is_ours: bool
    time_ms: int | None
    overwrites: bool = False
    restores: int | None = None

    @property
    def only_adds(self) -> bool:
        """Whether such an operation leaves what is there as it is."""
        return self.operation.startswith("VACUUM") or (self.operation in _APPENDS and not self.overwrites)


def history(uri: str, after: int = -1, *, options: Mapping[str, str] | None = None) -> Iterator[TableCommit]:
    """The versions of a topic's table after one, the newest first; those whose entries were cleaned up are left out.

    Args:
        uri: The table's root. It may have become something else than a topic archive.
        after: A Delta version.
        options: Of the store.

    Raises:
        ConfigurationError: There is no table.
        RetryableError: The store did not answer.
    """
    storage, newest = Storage(uri, options), _newest(uri, options)
    for version in range(newest, max(after, newest - _AT_MOST), -1):
        entry = storage.get_if_present(f"_delta_log/{version:020d}.json")
        if entry is not None:
            yield _commit(version, entry)


def changes_by_others(archive: TopicArchive, after: int | None = None) -> list[TableCommit]:
    """What other programs have done to the table, but for adding to it; the oldest first.

    What a RESTORE has taken back since is left out, and so is the RESTORE.

    Args:
        archive: The topic's.
        after: Since which Delta version; None: since Hindstream's newest commit.
    """
    if after is not None and archive.version <= after:
        return []
    found, stands_from = [], archive.version
    for commit in history(archive.uri, -1 if after is None else after, options=archive.storage.options):
        if commit.version > stands_from:
            continue
        if commit.is_ours and after is None:
            break
        if commit.restores is not None and commit.restores >= (after or 0):
            stands_from = commit.restores
        elif not commit.is_ours and not commit.only_adds:
            found.append(commit)
    return found[::-1]


def restore(uri: str, version: int, *, options: Mapping[str, str] | None = None) -> TopicArchive:
    """Makes the table what it was in a former version, by a new one (Delta's RESTORE); gives the newest.

    Raises:
        ConfigurationError: There is no such version, it was no topic archive, or files of it are gone.
        RetryableError: The store did not answer.
    """
    topic, newest = topic_of(uri), _newest(uri, options)
    if not 0 <= version < newest:
        what = f"there is no former version {version}: the archive has come to version {newest}"
        raise ConfigurationError(what, topic=topic, file=uri, next_step=f"hindstream topic {topic} lists them")
    former = TopicArchive.open(uri, version, options=options)
    for file, _ in not_as_written(former.storage, former.all_files()):
        raise ConfigurationError(
            f"version {version} of the archive cannot be restored: a file of it is gone",
            topic=topic,
            file=former.storage.uri(file.path),
            next_step="restore the topic's folder from a copy of the warehouse, or archive the topic again",
        )
    try:
        DeltaTable(uri, storage_options=dict(options or {})).restore(version)
    except DeltaError as error:
        raise ConfigurationError(
            f"version {version} of the archive cannot be restored: {error}",
            topic=topic,
            file=uri,
            next_step="restore the topic's folder from a copy of the warehouse, or archive the topic again",
        ) from None
    return TopicArchive.open(uri, options=options)


def _newest(uri: str, options: Mapping[str, str] | None) -> int:
    try:
        return DeltaTable(uri, storage_options=dict(options or {})).version()
    except TableNotFoundError:
        step = "check the warehouse's address, or archive the topic first"
        raise ArchiveNotFoundError("there is no topic archive", file=uri, next_step=step) from None
    except DeltaError as error:
        raise DeltaLog(uri, options or {}).store_error("read the topic archive's log", error) from None


def _commit(version: int, entry: bytes) -> TableCommit:
    info = {}
    for line in entry.splitlines():
        if b'"commitInfo"' in line:
            info = json.loads(line).get("commitInfo", {})
    parameters = info.get("operationParameters", {})
    restored = str(parameters.get("version") if info.get("operation") == "RESTORE" else "")
    return TableCommit(
        version=version,
        operation=str(info.get("operation", "?")),
        by=str(info.get("engineInfo") or info.get("clientVersion") or "another program"),
        is_ours=DIGEST in info,
        time_ms=info.get("timestamp"),
        overwrites=str(parameters.get("mode", "")).lower() == "overwrite",
        restores=int(restored) if restored.isdecimal() else None,
    )
