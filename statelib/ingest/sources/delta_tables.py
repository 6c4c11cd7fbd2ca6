"""The files of a Delta table, at a version of it: those that hold its rows, and none that were replaced or deleted.

A source is ``delta:<path or URL>`` or ``delta:...@<version>``; a folder with a Delta log is one too. The first load
takes the rows of the version. A later one takes what commits have added since: files that were only rewritten
(``OPTIMIZE``) hold no new rows, and what was added and rewritten since is read from the file to which it was added. If
rows that were loaded have been deleted or updated since, that is said: a topic has no way to take them back.

What is read of the log, as Delta's protocol has it: ``add`` and ``remove`` with ``path``, ``dataChange``, ``size`` and
``partitionValues``. The version of a file in the ledger is ``delta <the table's version when it was loaded>``.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from statelib.errors.kinds import ConfigurationError, InputError
from statelib.ingest.sources.files import SourceFile
from statelib.storage import Storage

if TYPE_CHECKING:
    from collections.abc import Mapping

PREFIX = "delta:"
_PARTITION = "partition."
_VERSION = "delta "


def delta_files(source: str, options: Mapping[str, str], loaded: Mapping[str, tuple[int, str]]) -> list[SourceFile]:
    """The files of a table that hold rows which have not been loaded, and those that have been.

    Args:
        source: See the module's docstring.
        options: Of the object store.
        loaded: By path, size and version of files that were loaded before.

    Raises:
        ConfigurationError: There is no such table or version, or it needs what delta-rs cannot read.
        InputError: Rows that were loaded have been deleted or updated since, or the log does not tell any more.
    """
    uri, version = _parts(source)
    table = _opened(uri, version, options)
    root = table.table_uri.removeprefix("file://").rstrip("/")
    if "://" not in root:
        root = unquote(root)
    types = {field.name: field.type for field in pa.schema(table.schema().to_arrow())}
    known = {path: of for path, of in loaded.items() if path.startswith(f"{root}/") and of[1].startswith(_VERSION)}
    found = [SourceFile(path, size, told) for path, (size, told) in known.items()]
    now = f"{_VERSION}{table.version()}"
    if known:
        since = max(int(told.removeprefix(_VERSION)) for _, told in known.values())
        new, rewritten = _added(uri, options, root, since, table.version(), set(known))
        found += [SourceFile(path, size, now, is_rewritten=True) for path, size in rewritten.items()]
    else:
        new = {
            f"{root}/{unquote(action['path'])}": (action["size_bytes"], _partition_values(action))
            for action in pa.table(table.get_add_actions(flatten=True)).to_pylist()
        }
    for path, (size, values) in new.items():
        constants = tuple((name, _scalar(value, types[name])) for name, value in values.items())
        found.append(SourceFile(path, size, now, constants=constants))
    return sorted(found, key=lambda file: file.path)


def _parts(source: str) -> tuple[str, int | None]:
    uri = source.removeprefix(PREFIX)
    head, at, version = uri.rpartition("@")
    return (head, int(version)) if at and version.isdecimal() else (uri, None)


def _opened(uri: str, version: int | None, options: Mapping[str, str]) -> DeltaTable:
    try:
        table = DeltaTable(uri, version=version, storage_options=dict(options))
    except TableNotFoundError:
        step = "check the path: the folder of a Delta table has a folder _delta_log"
        raise ConfigurationError("there is no Delta table", source=uri, next_step=step) from None
    except DeltaError as error:
        what = f"the Delta table cannot be read: {' '.join(str(error).split())}"
        raise ConfigurationError(
            what, source=uri, next_step="name another version, or none: delta:PATH@VERSION"
        ) from None
    if features := sorted({*(table.protocol().reader_features or ())} - {"timestampNtz", "vacuumProtocolCheck"}):
        what = f"the Delta table uses {', '.join(features)}, so that its files alone do not tell its rows"
        step = "rewrite it without (REORG TABLE ... APPLY (PURGE)), or archive a frame of Spark's: docs/kafka.md"
        raise ConfigurationError(what, source=uri, next_step=step)
    return table


def _partition_values(action: Mapping[str, Any]) -> dict[str, Any]:
    return {name.removeprefix(_PARTITION): value for name, value in action.items() if name.startswith(_PARTITION)}


def _scalar(value: Any, type_: pa.DataType) -> pa.Scalar:
    """The value of a column that the table is partitioned by; in the log it is text."""
    return pa.scalar(value).cast(type_) if isinstance(value, str) else pa.scalar(value, type_)


def _added(
    uri: str, options: Mapping[str, str], root: str, since: int, version: int, loaded: set[str]
) -> tuple[dict[str, tuple[int, dict[str, Any]]], dict[str, int]]:
    """The files that hold the rows of later versions, and those into which others have been rewritten.

    Returns:
        By path, size and partition values of the first, and the size of the second.

    Raises:
        InputError: Rows that were loaded are gone, or the log does not tell any more.
    """
    log = Storage(uri, options).within("_delta_log")
    new: dict[str, tuple[int, dict[str, Any]]] = {}
    rewritten: dict[str, int] = {}
    for number in range(since + 1, version + 1):
        entry = log.get_if_present(f"{number:020d}.json")
        if entry is None:
            what = f"the table's log does not tell any more what version {number} added"
            step = "load the table into another topic, and more often than its log is cleaned up"
            raise InputError(what, file=uri, next_step=step)
        actions = [json.loads(line) for line in entry.splitlines() if line.strip()]
        for action in (one["remove"] for one in actions if "remove" in one):
            path = f"{root}/{unquote(action['path'])}"
            if not action.get("dataChange", True):
                rewritten.pop(path, None)
                continue
            if path in loaded or path in rewritten:
                what = f"rows of the table that were loaded have been deleted or updated in version {number}"
                step = "load the table into another topic, or its change feed as a topic of its own"
                raise InputError(what, file=path, next_step=step)
            new.pop(path, None)
        for action in (one["add"] for one in actions if "add" in one):
            path = f"{root}/{unquote(action['path'])}"
            if action.get("dataChange", True):
                new[path] = (action["size"], action.get("partitionValues", {}))
            else:
                rewritten[path] = action["size"]
    return new, rewritten
