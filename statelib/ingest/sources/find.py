"""The files of a lake: found by path, folder, pattern or URL, or as those of a table.

A source is one of::

    data/2013.parquet                     a file
    data/flights                          a folder, with all files below it
    data/*/part-*.csv.gz                  a pattern: * and ? within a name, ** for any folders
    s3://lake/flights/**/*.parquet        the same in an object store (s3://, gs://, az://, abfss://)
    delta:s3://lake/orders@12             a Delta table, at a version (`statelib.ingest.sources.delta_tables`)
    iceberg:prod.shop.orders@3051729675   an Iceberg table, at a snapshot (`statelib.ingest.sources.iceberg_tables`)

Files are in the order of their paths. Names that begin with ``.`` or ``_`` are passed over below folders and by
patterns, as Spark and Hive do; a file that is named by itself is taken.
"""

from __future__ import annotations

import fnmatch
import os
import re
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import obstore

from statelib.errors.kinds import ConfigurationError
from statelib.ingest.sources.delta_tables import PREFIX
from statelib.ingest.sources.files import SourceFile
from statelib.ingest.sources.opening import is_url, local_path, split_url, unreadable_file
from statelib.ingest.sources.tables import table_files
from statelib.storage.clients import client
from statelib.storage.errors import mapped_errors

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_PATTERN = re.compile(r"[*?\[]")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
_HIDDEN = (".", "_")


def find_files(
    sources: Sequence[str], options: Mapping[str, str], loaded: Mapping[str, tuple[int, str]] = MappingProxyType({})
) -> list[SourceFile]:
    """The files of all sources, each once, ordered by path.

    Args:
        sources: See the module's docstring.
        options: Of the object store, see `statelib.storage`.
        loaded: By path, size and version of files that were loaded before: tables say what has come since.

    Raises:
        ConfigurationError: A source names no file, or is not understood.
        RetryableError: The store did not answer.
    """
    found: dict[str, SourceFile] = {}
    for source in sources:
        files = None if _PATTERN.search(source) else table_files(source, options, loaded)
        if files is None:
            files = list(_in_store(source, options) if is_url(source) else _here(source))
        if not files:
            step = "check the path; quote a pattern, so that the shell does not change it"
            raise ConfigurationError("there is no such file", source=source, next_step=step)
        found.update({file.path: file for file in files})
    return [found[path] for path in sorted(found)]


def absolute(source: str) -> str:
    """A source that means the same in any current directory; one with a scheme does."""
    path = source.removeprefix(PREFIX)
    if _SCHEME.match(path):
        return source
    return source[: len(source) - len(path)] + local_path(path)


def _here(source: str) -> Iterator[SourceFile]:
    path = local_path(source)
    if Path(path).is_file():
        yield _of_path(Path(path))
        return
    if Path(path).is_dir():
        base, pattern = path, "**"
    elif _PATTERN.search(path):
        base, pattern = _base_and_pattern(path)
    else:
        return
    wanted = pattern.split("/")
    for folder, folders, names in os.walk(base):
        folders[:] = sorted(name for name in folders if not name.startswith(_HIDDEN))
        for name in sorted(names):
            inner = Path(folder, name)
            if not name.startswith(_HIDDEN) and _matches(inner.relative_to(base).parts, wanted):
                yield _of_path(inner)


def _of_path(path: Path) -> SourceFile:
    try:
        found = path.stat()
    except OSError as error:
        raise unreadable_file(str(path), error) from error
    return SourceFile(str(path), found.st_size, str(found.st_mtime_ns))


def _in_store(source: str, options: Mapping[str, str]) -> Iterator[SourceFile]:
    root, key = split_url(source)
    base, pattern = _base_and_pattern(key) if _PATTERN.search(key) else (key.rstrip("/"), "**")
    wanted = pattern.split("/")
    with mapped_errors("list", source, options):
        store = client(root, options)
        for page in obstore.list(store, base or None):
            for meta in page:
                inner = meta["path"].removeprefix(base).lstrip("/")
                names = inner.split("/") if inner else []
                if names and (any(name.startswith(_HIDDEN) for name in names) or not _matches(names, wanted)):
                    continue
                version = meta["e_tag"] or str(meta["last_modified"])
                yield SourceFile(f"{root}/{meta['path']}", meta["size"], version)
        if pattern == "**":
            yield from _itself(root, base, options)


def _itself(root: str, key: str, options: Mapping[str, str]) -> Iterator[SourceFile]:
    """An object that a source names without a pattern: a listing has only what lies below a folder."""
    try:
        meta = obstore.head(client(root, options), key)
    except FileNotFoundError:
        return
    yield SourceFile(f"{root}/{key}", meta["size"], meta["e_tag"] or str(meta["last_modified"]))


def _base_and_pattern(path: str) -> tuple[str, str]:
    """The folder before the first name that has a pattern, and the rest."""
    names = path.split("/")
    first = next(n for n, name in enumerate(names) if _PATTERN.search(name))
    return "/".join(names[:first]) or ("/" if path.startswith("/") else ""), "/".join(names[first:])


def _matches(names: Sequence[str], wanted: Sequence[str]) -> bool:
    """Whether the names of a path fit those of a pattern, in which ``**`` stands for any number of names."""
    if not wanted:
        return not names
    if wanted[0] == "**":
        return (len(wanted) == 1 and bool(names)) or any(_matches(names[n:], wanted[1:]) for n in range(len(names) + 1))
    return bool(names) and bool(_compiled(wanted[0]).match(names[0])) and _matches(names[1:], wanted[1:])


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(fnmatch.translate(pattern))
