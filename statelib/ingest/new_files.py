"""Which files are new: a path that was loaded is not, nor is the same content under another time or path."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import obstore

from statelib.errors.kinds import InputError
from statelib.ingest.ledger import IngestedFile
from statelib.ingest.sources.content import content_of
from statelib.ingest.sources.folders import folder_fields
from statelib.ingest.sources.opening import is_url, split_url
from statelib.storage.clients import client
from statelib.storage.errors import mapped_errors
from statelib.storage.transfers import in_parallel

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from statelib.ingest.sources.files import SourceFile

_READ_AT_ONCE = 4


def new_files(
    found: Sequence[SourceFile],
    loaded: Mapping[str, IngestedFile],
    options: Mapping[str, str],
    *,
    names_count: bool,
    topic: str,
) -> tuple[list[SourceFile], list[IngestedFile]]:
    """The files that have not been loaded; and those that have, and whose time or path is another one since.

    A file has moved if one of its content was loaded under a path where nothing is any more. Files whose folders tell
    other values of fields have other rows, so these have not.

    Args:
        found: The files of the sources.
        loaded: Those that were loaded, by path.
        options: Of the object store.
        names_count: Whether rows have fields that say which file they are of. Then none has moved.
        topic: Named by errors.

    Returns:
        The former as they were found; the latter as the ledger is going to know them.

    Raises:
        InputError: A file that was loaded has other content now; or a file cannot be read.
        RetryableError: The store did not answer.
    """
    others = [file for file in found if file.path not in loaded]
    touched = [file for file in found if file.path in loaded and not _is_as_before(file, loaded[file.path])]
    again = []
    for file, content in _with_contents(touched, (loaded[file.path] for file in touched)):
        if content is None or content != loaded[file.path].content:
            what = "a file has changed since it was loaded: its records are in the topic as they were"
            step = "move it out of the sources and put its new rows into another file, or load all into another topic"
            raise InputError(what, topic=topic, file=file.path, next_step=step)
        again.append(known_as(file, content))
    if not names_count:
        again += _moved(others, loaded, options)
    known = {file.path for file in again}
    return [file for file in others if file.path not in known], again


def known_as(file: SourceFile, content: str | None = None) -> IngestedFile:
    """How the ledger knows a file whose rows had been loaded."""
    kept = {"path": file.path, "size_bytes": file.size_bytes, "version": file.version, "content": content}
    return IngestedFile(**kept, records=0, bad_rows=0)


def _is_as_before(file: SourceFile, before: IngestedFile) -> bool:
    return (before.size_bytes, before.version) == (file.size_bytes, file.version)


def _moved(
    files: Sequence[SourceFile], loaded: Mapping[str, IngestedFile], options: Mapping[str, str]
) -> list[IngestedFile]:
    former: dict[tuple[str, int], list[IngestedFile]] = {}
    for before in loaded.values():
        if before.content is not None:
            former.setdefault((before.content, before.size_bytes), []).append(before)
    moved = []
    for file, content in _with_contents(files, loaded.values()):
        candidates = former.get((content or "", file.size_bytes), [])
        for n, before in enumerate(candidates):
            if folder_fields(before.path) == folder_fields(file.path) and not _is_there(before.path, options):
                moved.append(known_as(file, content))
                del candidates[n]
                break
    return moved


def _with_contents(
    files: Iterable[SourceFile], candidates: Iterable[IngestedFile]
) -> list[tuple[SourceFile, str | None]]:
    """The files with their contents, where one of the candidates has as many bytes."""
    sizes = {one.size_bytes for one in candidates if one.content is not None}

    def content(file: SourceFile) -> tuple[SourceFile, str | None]:
        return file, content_of(file) if file.size_bytes in sizes else None

    return in_parallel(content, list(files), _READ_AT_ONCE)


def _is_there(path: str, options: Mapping[str, str]) -> bool:
    if not is_url(path):
        return Path(path).exists()
    root, key = split_url(path)
    with mapped_errors("find", path, options):
        try:
            obstore.head(client(root, options), key)
        except FileNotFoundError:
            return False
    return True
