"""The files of a lake: found by path, folder, pattern or URL, or as those of a table.

A source is one of::

    data/2013.parquet                     a file
    data/flights                          a folder, with all files below it
    data/*/part-*.csv.gz                  a pattern: * and ? within a name, ** for any folders
    s3://lake/flights/**/*.parquet        the same in an object store (s3://, gs://, az://, abfss://)
    delta:s3://lake/orders@12             a Delta table, at a version (`statelib.ingest.sources.delta_tables`)
    iceberg:prod.shop.orders@3051729675   an Iceberg table, at a snapshot (`statelib.ingest.sources.iceberg_tables`)
    sql:SELECT * FROM orders              the result of a query (`statelib.ingest.sources.queries`)

Files are in the order of their paths. Names that begin with ``.`` or ``_`` are passed over below folders and by
patterns, as Spark and Hive do; a file that is named by itself is taken. Links are followed, and each file is taken
once: by its own path where that is below the folder too.
"""

from __future__ import annotations

import fnmatch
import os
import re
import stat
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import obstore

from statelib.errors.kinds import ConfigurationError, InputError, RetryableError
from statelib.ingest.sources import delta_tables, iceberg_tables
from statelib.ingest.sources.files import SourceFile
from statelib.ingest.sources.opening import is_url, local_path, split_url, unreadable_file
from statelib.ingest.sources.queries import is_query, query_files
from statelib.ingest.sources.tables import table_files
from statelib.storage.clients import client
from statelib.storage.errors import mapped_errors

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from obstore import ObjectMeta

    from statelib.ingest.sources.queries import RunQuery

_PATTERN = re.compile(r"[*?\[]")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
_HIDDEN = (".", "_")


def find_files(
    sources: Sequence[str],
    options: Mapping[str, str],
    loaded: Mapping[str, tuple[int, str]] = MappingProxyType({}),
    run_query: RunQuery | None = None,
) -> list[SourceFile]:
    """The files of all sources, each once, ordered by path.

    Args:
        sources: See the module's docstring.
        options: Of the object store, see `statelib.storage`.
        loaded: By path, size and version of files that were loaded before: tables say what has come since.
        run_query: Gives the result of a query; None: nobody here can.

    Raises:
        ConfigurationError: A source names no file, or is not understood.
        RetryableError: The store did not answer.
    """
    found: dict[str, SourceFile] = {}
    for source in sources:
        if is_query(source):
            found.update({file.path: file for file in query_files(source, loaded, run_query)})
            continue
        files = None if is_pattern(source) else table_files(source, options, loaded)
        if files is None:
            files = list(_in_store(source, options) if is_url(source) else _here(source))
        if not files:
            is_folder = not is_url(source) and Path(local_path(source)).is_dir()
            what = "the folder holds no files" if is_folder else "there is no such file"
            step = "check the path; quote a pattern, so that the shell does not change it"
            raise ConfigurationError(what, source=source, next_step=step)
        found.update({file.path: file for file in files})
    return [found[path] for path in sorted(found)]


def absolute(source: str) -> str:
    """A source that means the same in any current directory; one with a scheme does, and a table of a catalog."""
    prefix = next((one for one in (delta_tables.PREFIX, iceberg_tables.PREFIX) if source.startswith(one)), "")
    path = source.removeprefix(prefix)
    if _SCHEME.match(path) or (prefix == iceberg_tables.PREFIX and not iceberg_tables.is_path(path)):
        return source
    return prefix + local_path(path)


def is_pattern(path: str) -> bool:
    """Whether a path, or a part of one, stands for many."""
    return _PATTERN.search(path) is not None


def _here(source: str) -> list[SourceFile]:
    path = local_path(source)
    try:
        if Path(path).is_file():
            return [_of_path(Path(path))]
        is_folder = Path(path).is_dir()
    except OSError as error:
        raise unreadable_file(path, error) from error
    if not is_folder and not _PATTERN.search(path):
        return []
    base, pattern = (path, "**") if is_folder else _base_and_pattern(path)
    wanted = pattern.split("/")
    found: dict[tuple[int, int], Path] = {}
    links: list[Path] = []
    for inner in _below(base):
        if not _matches(inner.relative_to(base).parts, wanted):
            continue
        if inner.is_symlink():
            links.append(inner)
        else:
            found[_identity(inner)] = inner
    for link in sorted(links):
        found.setdefault(_identity(link), link)
    return [_of_path(path) for path in found.values()]


def _below(base: str) -> Iterator[Path]:
    """The files below a folder but for hidden ones; each folder once, by its own path rather than by a link to it.

    Raises:
        InputError: A folder may not be read.
    """
    seen: set[tuple[int, int]] = set()
    waiting = [base]
    while waiting:
        links: list[str] = []
        start = waiting.pop(0)
        if Path(start).exists() and _identity(Path(start)) in seen:
            continue
        for folder, folders, names in os.walk(start, onerror=_raise_unreadable):
            seen.add(_identity(Path(folder)))
            inner = {name: Path(folder, name) for name in folders if not name.startswith(_HIDDEN)}
            links += [str(path) for path in inner.values() if path.is_symlink()]
            folders[:] = [name for name, path in inner.items() if _identity(path) not in seen]
            yield from (Path(folder, name) for name in names if not name.startswith(_HIDDEN))
        waiting += sorted(links)


def _raise_unreadable(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):  # a folder that is not there holds no file
        raise unreadable_file(str(error.filename), error) from error


def _identity(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except OSError as error:
        raise unreadable_file(str(path), error) from error
    return found.st_dev, found.st_ino


def _of_path(path: Path) -> SourceFile:
    try:
        found = path.stat()
        str(path).encode()
    except OSError as error:
        raise unreadable_file(str(path), error) from error
    except UnicodeEncodeError:
        what, step = "the name of a file is no text in UTF-8", "rename the file"
        raise InputError(what, file=ascii(str(path)), next_step=step) from None
    if not stat.S_ISREG(found.st_mode):
        what, step = "what is to be loaded is no file", "name the files, or a pattern that leaves it out"
        raise InputError(what, file=str(path), next_step=step)
    return SourceFile(str(path), found.st_size, str(found.st_mtime_ns), modified_ms=found.st_mtime_ns // 1_000_000)


def check_unchanged(file: SourceFile, options: Mapping[str, str]) -> None:
    """Checks that a file is what it was when it was found; those of tables do not change.

    Raises:
        RetryableError: It has changed since, or the store did not answer.
    """
    if file.iceberg is not None or " " in file.version:
        return
    if is_url(file.path):
        root, key = split_url(file.path)
        with mapped_errors("find", file.path, options):
            now = next(_itself(root, key, options), None)
    else:
        now = _of_path(Path(file.path))
    if now is None or (now.size_bytes, now.version) != (file.size_bytes, file.version):
        what, step = "a file has changed while it was read", "run the same command again when it is complete"
        raise RetryableError(what, file=file.path, next_step=step)


def _in_store(source: str, options: Mapping[str, str]) -> Iterator[SourceFile]:
    root, key = split_url(source)
    has_pattern = _PATTERN.search(key) is not None
    base, pattern = _base_and_pattern(key) if has_pattern else (key.rstrip("/"), "**")
    wanted = pattern.split("/")
    with mapped_errors("list", source, options):
        if has_pattern and (named := next(_itself(root, key, options), None)) is not None:
            yield named  # the object's own name has brackets
            return
        store = client(root, options)
        for page in obstore.list(store, base or None):
            for meta in page:
                inner = meta["path"].removeprefix(base).lstrip("/")
                names = inner.split("/") if inner else []
                if names and (any(name.startswith(_HIDDEN) for name in names) or not _matches(names, wanted)):
                    continue
                yield _of_object(root, meta)
        if pattern == "**":
            yield from _itself(root, base, options)


def _itself(root: str, key: str, options: Mapping[str, str]) -> Iterator[SourceFile]:
    """An object that a source names without a pattern: a listing has only what lies below a folder."""
    try:
        meta = obstore.head(client(root, options), key)
    except FileNotFoundError:
        return
    yield _of_object(root, meta)


def _of_object(root: str, meta: ObjectMeta) -> SourceFile:
    modified = meta["last_modified"]
    version = meta["e_tag"] or str(modified)
    modified_ms = round(modified.timestamp() * 1000)
    return SourceFile(f"{root}/{meta['path']}", meta["size"], version, modified_ms=modified_ms)


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
