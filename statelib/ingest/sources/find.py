"""The files of a lake: found by path, folder, pattern or URL, and opened.

A source is one of::

    data/2013.parquet                     a file
    data/flights                          a folder, with all files below it
    data/*/part-*.csv.gz                  a pattern: * and ? within a name, ** for any folders
    s3://lake/flights/**/*.parquet        the same in an object store (s3://, gs://, az://, abfss://)
    delta:s3://lake/orders@12             a Delta table, at a version (`statelib.ingest.sources.delta_tables`)

Files are in the order of their paths. Names that begin with ``.`` or ``_`` are passed over below folders and by
patterns, as Spark and Hive do; a file that is named by itself is taken.
"""

from __future__ import annotations

import fnmatch
import io
import os
import re
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import IO, TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import obstore
import pyarrow as pa

from statelib.errors.kinds import ConfigurationError, InputError
from statelib.ingest.sources.delta_tables import PREFIX, delta_files
from statelib.ingest.sources.files import SourceFile
from statelib.storage.clients import client
from statelib.storage.errors import mapped_errors
from statelib.storage.streams import RangedInput

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_PATTERN = re.compile(r"[*?\[]")
_HIDDEN = (".", "_")
_READ_AHEAD_BYTES = 8 << 20


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
        if source.startswith(PREFIX) or _is_delta_table(source, options):
            files = delta_files(source, options, loaded)
        else:
            files = list(_in_store(source, options) if _is_url(source) else _here(source))
        if not files:
            step = "check the path; quote a pattern, so that the shell does not change it"
            raise ConfigurationError("there is no such file", source=source, next_step=step)
        found.update({file.path: file for file in files})
    return [found[path] for path in sorted(found)]


def _is_url(source: str) -> bool:
    return "://" in source and not source.startswith("file:")


def _is_delta_table(source: str, options: Mapping[str, str]) -> bool:
    """Whether a folder is a Delta table: which of its files hold rows only its log tells.

    Raises:
        ConfigurationError: It is a table of another format.
    """
    if _PATTERN.search(source):
        return False
    if not _is_url(source):
        path = Path(_local_path(source))
        is_iceberg = any((path / "metadata").glob("*.metadata.json"))
        is_delta = (path / "_delta_log").is_dir()
    else:
        root, key = _split(source)
        with mapped_errors("list", source, options):
            below = obstore.list_with_delimiter(client(root, options), key.rstrip("/") or None)["common_prefixes"]
        names = {prefix.rstrip("/").rpartition("/")[2] for prefix in below}
        is_delta, is_iceberg = "_delta_log" in names, names >= {"metadata", "data"}
    if is_iceberg:
        what = "an Iceberg table cannot be loaded yet: which of its files hold rows only its metadata tells"
        step = "archive a frame of Spark's: docs/kafka.md#archiving-tables-and-files"
        raise ConfigurationError(what, source=source, next_step=step)
    return is_delta


def _local_path(source: str) -> str:
    path = unquote(urlsplit(source).path) if source.startswith("file:") else source
    return os.path.abspath(os.path.expanduser(path))  # noqa: PTH100, PTH111 - a Path loses the slash of a folder


def open_python(file: SourceFile, options: Mapping[str, str]) -> IO[bytes]:
    """Opens a file as Python's own, for reading anywhere in it, with a buffer.

    Raises:
        InputError: It is not there any more, or may not be read.
        RetryableError: The store did not answer.
    """
    if "://" not in file.path:
        try:
            return open(file.path, "rb", _READ_AHEAD_BYTES)  # noqa: PTH123 - the caller closes it
        except OSError as error:
            raise _unreadable(file.path, error) from error
    return io.BufferedReader(_ranged(file, options), _READ_AHEAD_BYTES)


def open_file(file: SourceFile, options: Mapping[str, str]) -> pa.NativeFile:
    """Opens a file as Arrow's, for reading anywhere in it. Errors as `open_python`."""
    if "://" not in file.path:
        try:
            return pa.OSFile(file.path)
        except OSError as error:
            raise _unreadable(file.path, error) from error
    return pa.PythonFile(_ranged(file, options), "r")


def open_stream(file: SourceFile, options: Mapping[str, str]) -> pa.NativeFile:
    """Opens a file for reading from its beginning to its end. Errors as `open_python`."""
    return pa.BufferedInputStream(open_file(file, options), _READ_AHEAD_BYTES)


def _ranged(file: SourceFile, options: Mapping[str, str]) -> RangedInput:
    root, key = _split(file.path)

    def read_range(start: int, length: int) -> bytes:
        with mapped_errors("read", file.path, options):
            return bytes(obstore.get_range(client(root, options), key, start=start, length=length))

    return RangedInput(file.size_bytes, read_range)


def _here(source: str) -> Iterator[SourceFile]:
    path = _local_path(source)
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
        raise _unreadable(str(path), error) from error
    return SourceFile(str(path), found.st_size, str(found.st_mtime_ns))


def _unreadable(path: str, error: OSError) -> InputError:
    step = "check that the file is there, and may be read"
    return InputError(f"a file of the lake cannot be read: {error.strerror or error}", file=path, next_step=step)


def _in_store(source: str, options: Mapping[str, str]) -> Iterator[SourceFile]:
    root, key = _split(source)
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


def _split(url: str) -> tuple[str, str]:
    """The bucket's URL, and the key in it."""
    parts = urlsplit(url)
    root = f"{parts.scheme}://{parts.netloc}"
    return root, url.removeprefix(root).lstrip("/")


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
