"""Tables among the sources: folders whose files hold rows only as a log or metadata say, and tables of catalogs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import obstore

from statelib.ingest.sources import delta_tables, iceberg_tables
from statelib.ingest.sources.opening import is_url, local_path, split_url, unreadable_file
from statelib.storage.clients import client
from statelib.storage.errors import mapped_errors

if TYPE_CHECKING:
    from collections.abc import Mapping

    from statelib.ingest.sources.files import SourceFile


def table_files(
    source: str, options: Mapping[str, str], loaded: Mapping[str, tuple[int, str]]
) -> list[SourceFile] | None:
    """The files of a table that hold rows which have not been loaded, and those that have been; None: it is no table.

    Args:
        source: Without a pattern.
        options: Of the object store.
        loaded: By path, size and version of files that were loaded before, those of the first load first.

    Raises:
        ConfigurationError: There is no such table, or it cannot be read.
        InputError: Rows that were loaded have been deleted or updated since, or the table does not tell any more.
        RetryableError: A store or a catalog did not answer.
    """
    if source.startswith(delta_tables.PREFIX):
        return delta_tables.delta_files(source, options, loaded)
    if source.startswith(iceberg_tables.PREFIX):
        return iceberg_tables.iceberg_files(source, options, loaded)
    folders = _folders(source, options)
    if "_delta_log" in folders:
        return delta_tables.delta_files(source, options, loaded)
    if "metadata" in folders and iceberg_tables.is_iceberg_folder(source, options):
        return iceberg_tables.iceberg_files(source, options, loaded)
    return None


def _folders(source: str, options: Mapping[str, str]) -> set[str]:
    """The names of the folders in a folder; none where it is no folder."""
    if not is_url(source):
        path = Path(local_path(source))
        try:
            return {name for name in ("_delta_log", "metadata") if (path / name).is_dir()}
        except OSError as error:
            raise unreadable_file(str(path), error) from error
    root, key = split_url(source)
    with mapped_errors("list", source, options):
        below = obstore.list_with_delimiter(client(root, options), key.rstrip("/") or None)["common_prefixes"]
    return {prefix.rstrip("/").rpartition("/")[2] for prefix in below}
