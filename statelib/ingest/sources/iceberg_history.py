"""Which rows an Iceberg table has had since it was loaded, by the snapshots that came since.

A snapshot adds files and takes files away, and says with which purpose:

=============  =====================================================================================================
``append``     new rows
``replace``    the same rows in other files. If some of them had been loaded, the new ones are read from the files to
               which they were added
``delete``,    rows are gone, or are others. If they had been loaded, that is said: a topic cannot take them back
``overwrite``
=============  =====================================================================================================

Source: the Iceberg specification, "Snapshots" and "Manifests".
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from statelib.errors.kinds import InputError
from statelib.ingest.sources.iceberg_deletes import files_with_deletes
from statelib.ingest.sources.opening import path_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyiceberg.manifest import DataFile, ManifestEntry
    from pyiceberg.table import FileScanTask, Table
    from pyiceberg.table.snapshots import Snapshot

_GONE = "load the table into another topic, or a query of Spark's over its changes (sql:SELECT ...)"


@dataclass
class Changes:
    """What has come since a load.

    Attributes:
        new: By path, the files with rows that have not been loaded.
        rewritten: By path, the files with rows that were loaded from others.
    """

    new: dict[str, FileScanTask] = field(default_factory=dict)
    rewritten: dict[str, DataFile] = field(default_factory=dict)


def tasks_at(table: Table, snapshot: Snapshot) -> dict[str, FileScanTask]:
    """By path, the files that hold the rows of a snapshot, with those that say which of their rows were deleted."""
    scan = table.scan(snapshot_id=snapshot.snapshot_id, options={"include_empty_files": "true"})
    return {path_of(task.file.file_path): task for task in scan.plan_files()}


def changes_since(table: Table, snapshot: Snapshot, since: int, loaded: Mapping[str, object]) -> Changes:
    """What a snapshot has that had not come with another one.

    Args:
        table: The table.
        snapshot: The snapshot that is loaded now.
        since: The one that was loaded last.
        loaded: By path, the files that have been loaded, and those into which they were rewritten.

    Raises:
        InputError: Rows that were loaded have been deleted or updated since, or the table does not tell any more.
    """
    steps = _between(table, since, snapshot)
    if steps is not None:
        return _walked(table, steps, snapshot, set(loaded))
    if _is_ancestor(table, snapshot.snapshot_id, since):
        return Changes()
    live = tasks_at(table, snapshot)
    if all(path in live and not live[path].delete_files for path in loaded):
        return Changes({path: task for path, task in live.items() if path not in loaded})
    what = f"the table does not tell any more what has changed since its snapshot {since}, which was loaded last"
    step = "load the table into another topic, and more often than its snapshots expire"
    raise InputError(what, file=table.metadata_location, next_step=step)


def _between(table: Table, since: int, snapshot: Snapshot) -> list[Snapshot] | None:
    """The snapshots after ``since``, the oldest first; None: some have expired, or it was none of their ancestors."""
    found: list[Snapshot] = []
    for one in _ancestors(table, snapshot):
        if one.snapshot_id == since:
            return found[::-1]
        found.append(one)
    return found[::-1] if found[-1].parent_snapshot_id == since else None


def _ancestors(table: Table, snapshot: Snapshot) -> Iterator[Snapshot]:
    """A snapshot and those before it, as far as they are there."""
    one: Snapshot | None = snapshot
    while one is not None:
        yield one
        parent = one.parent_snapshot_id
        one = None if parent is None else table.metadata.snapshot_by_id(parent)


def _is_ancestor(table: Table, snapshot_id: int, of: int) -> bool:
    later = table.metadata.snapshot_by_id(of)
    return later is not None and any(one.snapshot_id == snapshot_id for one in _ancestors(table, later))


def _walked(table: Table, steps: list[Snapshot], snapshot: Snapshot, holds_loaded: set[str]) -> Changes:
    changes = Changes()
    new: set[str] = set()
    for step in steps:
        added, removed, deletes = _entries(table, step)
        if _is_rewrite(step):
            if not removed.keys() & holds_loaded:
                new = (new - removed.keys()) | added.keys()
                continue
            if rewritten := new & removed.keys():
                before = tasks_at(table, _parent(table, step))
                changes.new |= {path: before[path] for path in rewritten}
            new -= removed.keys()
            holds_loaded = (holds_loaded - removed.keys()) | added.keys()
            kept = {path: file for path, file in changes.rewritten.items() if path not in removed}
            changes.rewritten = kept | added
            continue
        _check_kept(table, step, removed, deletes, holds_loaded)
        new = (new - removed.keys()) | added.keys()
    if new:
        live = tasks_at(table, snapshot)
        changes.new |= {path: live[path] for path in new}
    return changes


def _is_rewrite(snapshot: Snapshot) -> bool:
    return snapshot.summary is not None and snapshot.summary.operation.value == "replace"


def _parent(table: Table, snapshot: Snapshot) -> Snapshot:
    parent = snapshot.parent_snapshot_id
    found = None if parent is None else table.metadata.snapshot_by_id(parent)
    assert found is not None  # noqa: S101 - files of it were added by it, or before it, in a snapshot that was read
    return found


def _entries(table: Table, snapshot: Snapshot) -> tuple[dict[str, DataFile], dict[str, DataFile], list[DataFile]]:
    """By path, the data files that a snapshot has added and taken away; and the files of deletes that it has added."""
    added: dict[str, DataFile] = {}
    removed: dict[str, DataFile] = {}
    deletes: list[DataFile] = []
    for manifest in snapshot.manifests(table.io):
        if manifest.added_snapshot_id != snapshot.snapshot_id:
            continue
        for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=False):
            if entry.snapshot_id == snapshot.snapshot_id:
                _sort_in(entry, added, removed, deletes)
    return added, removed, deletes


def _sort_in(
    entry: ManifestEntry, added: dict[str, DataFile], removed: dict[str, DataFile], deletes: list[DataFile]
) -> None:
    from pyiceberg.manifest import DataFileContent, ManifestEntryStatus  # noqa: PLC0415 - an extra

    file = entry.data_file
    if entry.status == ManifestEntryStatus.EXISTING:
        return
    if file.content == DataFileContent.DATA:
        (added if entry.status == ManifestEntryStatus.ADDED else removed)[path_of(file.file_path)] = file
    elif entry.status == ManifestEntryStatus.ADDED:
        deletes.append(file)


def _check_kept(
    table: Table, snapshot: Snapshot, removed: Mapping[str, DataFile], deletes: list[DataFile], loaded: set[str]
) -> None:
    """Checks that a snapshot has taken no row away that was loaded.

    Raises:
        InputError: It has.
    """
    from pyiceberg.manifest import DataFileContent  # noqa: PLC0415 - an extra

    gone = sorted(removed.keys() & loaded)
    for delete in deletes:
        if delete.content == DataFileContent.EQUALITY_DELETES:
            gone.append(path_of(delete.file_path))
        else:
            named = map(path_of, files_with_deletes(table.io.new_input, delete.file_path, delete.file_format.value))
            gone += sorted(set(named) & loaded)
    if gone:
        what = f"rows of the table that were loaded have been deleted or updated in snapshot {snapshot.snapshot_id}"
        raise InputError(what, file=gone[0], next_step=_GONE)
