"""The objects below one root.

A thin layer over obstore. A path is relative to the root, with ``/`` between its parts, and names an object, never a
directory. What an object store guarantees holds everywhere: a reader sees a whole object or none, and of several
writers that create the same path one wins. On local disk, what a call has written is on the disk when it returns.

The options are those of `statelib.settings.storage_options`, for example ``aws_endpoint_url``, ``aws_region``,
``allow_http``; one mapping serves a topic's files and its Delta log. What is not given there comes from the
environment, as usual (``AWS_ACCESS_KEY_ID``, ...). No error quotes an option's value, or a credential.
"""

from __future__ import annotations

import hashlib
import io
import re
import shutil
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import obstore
import pyarrow as pa
from obstore.exceptions import AlreadyExistsError, GenericError
from obstore.store import LocalStore, MemoryStore

from statelib.errors.kinds import ConfigurationError, InputError, RetryableError
from statelib.storage.clients import client
from statelib.storage.digests import sha256_of_file
from statelib.storage.errors import ObjectNotFoundError, mapped_errors
from statelib.storage.local_files import make_directories, sync_directory, sync_file, write_file
from statelib.storage.streams import Output, RangedInput

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from obstore.store import ObjectStore
    from typing_extensions import Buffer

_PATH = re.compile(r"[A-Za-z0-9._=+@,:~-]+(/[A-Za-z0-9._=+@,:~-]+)*")
"""Characters that no store encodes, so that a path has the same name everywhere."""

_CREATE_TRIES = 5

_REQUESTS_AT_ONCE = 16

_REQUEST_BYTES = 8 << 20
"""A request for more than this may not be done within its time."""

_SMALL_BYTES = 4 << 20
"""So many take an object store about as long as one more request."""

_STREAM_BYTES = 1 << 20
_PARTS_AT_ONCE = 4
_OUTPUT_PARTS_AT_ONCE = 2
_PART_BYTES = 5 << 20
"""The least that S3 takes. An output holds the parts that are under way and the one that it fills."""


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An entry of a listing: ``path`` relative to the storage's root."""

    path: str
    size_bytes: int
    modified_ms: int


class Storage:
    """The objects below one root.

    Args:
        root_uri: A local directory (path or ``file://`` URL; made if absent), ``memory://`` (tests: each instance has
            its own objects, shared with its `within`), ``s3://bucket/prefix``, ``gs://...``, ``az://...``, ``abfss://``.
        options: See the module's docstring.

    Raises:
        ConfigurationError: The URL or an option is not understood.

    Every method raises `RetryableError` for a passing fault of the store, and `ConfigurationError` for a path with
    characters that not all stores keep as they are, for missing permissions, or a bucket that is not there.
    """

    def __init__(self, root_uri: str, options: Mapping[str, str] | None = None) -> None:
        self.options = dict(options or {})
        self.root_uri, self._directory = _normalise(root_uri)
        self._prefix = ""
        with self._errors("open the storage"):
            self._store = self._open()

    def __repr__(self) -> str:
        return f"Storage({self.uri('')!r})"

    def __reduce__(self) -> tuple[object, ...]:
        """Pickles the address, not the connection."""
        if isinstance(self._store, MemoryStore):
            raise ConfigurationError("a storage in memory cannot leave its process", setting="storage root")
        return Storage, (self.uri(""), self.options)

    def within(self, prefix: str) -> Storage:
        """The storage whose root is ``prefix`` below this one's, over the same connection."""
        inner = Storage.__new__(Storage)
        inner.__dict__.update(self.__dict__, _prefix=f"{self._key(prefix)}/")
        return inner

    def uri(self, path: str) -> str:
        """The full address of ``path`` (`""`: of the root): a plain path on local disk, else a URL."""
        return f"{self.root_uri}/{self._prefix}{path}".rstrip("/")

    @property
    def requests_at_once(self) -> int:
        """How many small requests to make at a time: a local disk answers at once, any other store when it has time."""
        return 1 if self.is_local else _REQUESTS_AT_ONCE

    @property
    def is_local(self) -> bool:
        """Whether the root is a local directory."""
        return self._directory is not None

    def local_path(self, path: str) -> Path | None:
        """Where ``path`` is on local disk, for memory-mapping and hard links; None if the storage is elsewhere."""
        return None if self._directory is None else self._directory / self._key(path)

    def put(self, path: str, data: bytes) -> None:
        """Writes an object, in place of one that is there."""
        with self._errors("write", path):
            local = self.local_path(path)
            if local is None:
                obstore.put(self._store, self._key(path), data)
            else:
                write_file(local, lambda unfinished: unfinished.write_bytes(data), replace=True)

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Writes an object unless there is one already.

        Of any number of concurrent callers with contents of their own exactly one gets True. An object store may carry
        a create out and its answer get lost; the next try is then told that there is an object. So an object with this
        very content counts as written by this call, whoever wrote it.

        Returns:
            Whether the object is this call's.
        """
        with self._errors("create", path):
            local = self.local_path(path)
            if local is None:
                return self._create(path, data)
            return write_file(local, lambda unfinished: unfinished.write_bytes(data), replace=False)

    def _create(self, path: str, data: bytes) -> bool:
        """Creates an object in an object store.

        A store may refuse also while another create is under way, and fails. After a time-out or a broken connection
        nobody but the store knows what has become of the request. In each case the object itself tells.
        """
        failure: Exception = AlreadyExistsError()
        for _ in range(_CREATE_TRIES):
            try:
                obstore.put(self._store, self._key(path), data, mode="create", use_multipart=False)
            except (AlreadyExistsError, GenericError) as error:
                failure = error
                standing = self.get_if_present(path)
                if standing is not None:
                    return standing == data
            else:
                return True
        if not isinstance(failure, AlreadyExistsError):
            raise failure
        what = f"cannot create: the store has refused it {_CREATE_TRIES} times, and there is no such object"
        raise RetryableError(what, file=self.uri(path), next_step="run the same command again")

    def get(self, path: str) -> bytes:
        """An object's content.

        Raises:
            ObjectNotFoundError: There is none.
        """
        with self._errors("read", path):
            return bytes(obstore.get(self._store, self._key(path)).bytes())

    def get_range(self, path: str, start: int, length: int) -> bytes:
        """``length`` bytes of an object from ``start`` on; fewer at its end.

        Raises:
            ObjectNotFoundError: There is no object at ``path``.
        """
        with self._errors("read", path):
            return bytes(obstore.get_range(self._store, self._key(path), start=start, length=length))

    def get_if_present(self, path: str) -> bytes | None:
        """An object's content, or None if there is no such object."""
        try:
            return self.get(path)
        except ObjectNotFoundError:
            return None

    def size(self, path: str) -> int:
        """An object's size in bytes.

        Raises:
            ObjectNotFoundError: There is none.
        """
        with self._errors("look up", path):
            return obstore.head(self._store, self._key(path))["size"]

    def size_if_present(self, path: str) -> int | None:
        """An object's size in bytes, or None if there is no such object."""
        try:
            return self.size(path)
        except ObjectNotFoundError:
            return None

    def exists(self, path: str) -> bool:
        """Whether there is an object at ``path``."""
        return self.size_if_present(path) is not None

    def list(self, prefix: str = "", *, after: str | None = None) -> list[StoredObject]:
        """All objects below the directory ``prefix``, at any depth, ordered by path.

        Args:
            prefix: The directory; `""`: the root.
            after: Only objects whose path comes behind this one, which need not be there. Those before it cost nothing
                in an object store, and next to nothing on disk.
        """
        with self._errors("list", prefix):
            folder = self._key(prefix) if prefix else self._prefix or None
            found = obstore.list(self._store, folder, offset=self._key(after) if after else None)
            objects = [
                StoredObject(
                    meta["path"].removeprefix(self._prefix),
                    meta["size"],
                    int(meta["last_modified"].timestamp() * 1000),
                )
                for page in found
                for meta in page
            ]
        return sorted(objects, key=lambda entry: entry.path)

    def folders(self, prefix: str = "") -> tuple[str, ...]:
        """The directories right below the directory ``prefix`` (`""`: the root) that hold objects, ordered by path."""
        with self._errors("list", prefix):
            folder = self._key(prefix) if prefix else self._prefix or None
            found = obstore.list_with_delimiter(self._store, folder)["common_prefixes"]
        return tuple(sorted(path.rstrip("/").removeprefix(self._prefix) for path in found))

    def delete(self, paths: str | Sequence[str]) -> None:
        """Removes objects; one that is not there is no error."""
        keys = [self._key(path) for path in ([paths] if isinstance(paths, str) else paths)]
        with self._errors("delete", paths if isinstance(paths, str) else ""):
            if self._directory is None:
                obstore.delete(self._store, keys)
                return
            for key in keys:
                with suppress(FileNotFoundError):
                    obstore.delete(self._store, key)
            for folder in {(self._directory / key).parent for key in keys}:  # else a power cut brings them back
                sync_file(folder)

    def copy(self, path: str, to: str) -> None:
        """Copies an object to the path ``to``, in place of one that is there; an object store does so by itself."""
        local = self.local_path(path)
        if local is not None:
            self.upload(local, to)
            return
        with self._errors("copy", path):
            obstore.copy(self._store, self._key(path), self._key(to))

    def sync(self, directory: str) -> None:
        """Makes the names in a directory, and those above it, outlive a power cut; in an object store they do anyway.

        Who writes here does so itself. But a process may be killed before a name that it made is on the disk, and
        another find it and build upon it.
        """
        local = self.local_path(directory)
        if local is None or self._directory is None:
            return
        with self._errors("sync", directory):
            for folder in (local, *local.parents):
                if folder.is_dir():
                    sync_directory(folder)
                if folder == self._directory:
                    return

    def upload(self, local_path: Path, path: str) -> None:
        """Copies a local file to ``path`` in bounded memory, in place of an object that is there."""
        with self._errors("upload", path):
            local = self.local_path(path)
            if local is None:
                obstore.put(self._store, self._key(path), local_path, max_concurrency=_PARTS_AT_ONCE)
            else:
                write_file(local, partial(shutil.copyfile, local_path), replace=True)

    def download(self, path: str, local_path: Path) -> str:
        """Copies an object to a local file in bounded memory.

        The file appears complete, and on the disk, or not at all; its directory is made if absent.

        Returns:
            The SHA-256, in hex, of what has been written.

        Raises:
            ObjectNotFoundError: There is no object at ``path``.
        """
        with self._errors("download", path):
            digests: list[str] = []
            write_file(local_path, lambda unfinished: digests.append(self._fetch(path, unfinished)), replace=True)
            return digests[0]

    def digest(self, path: str) -> tuple[int, str]:
        """Size and SHA-256, in hex, of an object, which is read in bounded memory.

        Raises:
            ObjectNotFoundError: There is no object at ``path``.
        """
        with self._errors("read", path):
            local = self.local_path(path)
            if local is not None:
                return local.stat().st_size, sha256_of_file(local)
            size_bytes, digest = 0, hashlib.sha256()
            for chunk in self._chunks(path):
                size_bytes += memoryview(chunk).nbytes
                digest.update(chunk)
            return size_bytes, digest.hexdigest()

    def open_input(self, path: str, *, size_bytes: int | None = None) -> pa.NativeFile:
        """Opens an object for random access: memory-mapped on local disk, elsewhere by ranges, a small one at once.

        Args:
            path: The object.
            size_bytes: What it was when it was written; None: that is looked up first.

        Raises:
            ObjectNotFoundError: There is no object at ``path``.
        """
        with self._errors("open", path):
            local = self.local_path(path)
            if local is not None:
                return pa.memory_map(str(local))
            if size_bytes is None or size_bytes > _SMALL_BYTES:
                size_bytes = self.size(path)
            if size_bytes <= _SMALL_BYTES:
                return pa.BufferReader(self.get(path))
            return pa.PythonFile(RangedInput(size_bytes, partial(self.get_range, path)), mode="r")

    def open_output(self, path: str) -> io.RawIOBase:
        """Opens a new object for writing in bounded memory, under a name that nobody else writes.

        In an object store it appears when it is closed. On local disk it grows in place: only a path that nobody
        reads before it is committed may be written this way.

        Raises:
            InputError: There is an object at ``path`` already.
        """
        with self._errors("create", path):
            if self.exists(path):
                raise InputError("there is such an object already", file=self.uri(path))
            local = self.local_path(path)
            errors = partial(self._errors, "write", path)
            if local is None:
                writer = obstore.open_writer(
                    self._store, self._key(path), buffer_size=_PART_BYTES, max_concurrency=_OUTPUT_PARTS_AT_ONCE
                )
                return Output(writer, errors)
            make_directories(local.parent)
            return Output(io.FileIO(local, "x"), errors)

    def _key(self, path: str) -> str:
        if not _PATH.fullmatch(path) or any(part in {".", ".."} for part in path.split("/")):
            what = f"{path!r} is no path that every store can hold"
            raise ConfigurationError(what, next_step="use letters, digits and . _ = + @ , : ~ - in names")
        return self._prefix + path

    def _open(self) -> ObjectStore:
        if self._directory is not None:
            make_directories(self._directory)
            return LocalStore(self._directory)
        if self.root_uri.startswith("memory:"):
            return MemoryStore()
        return client(self.root_uri, self.options)

    def _fetch(self, path: str, target: Path) -> str:
        """Writes an object's content to a local file; its SHA-256."""
        local = self.local_path(path)
        if local is not None:  # the system copies a file by itself, which with a look at the copy is twice as fast
            shutil.copyfile(local, target)
            return sha256_of_file(target)
        digest = hashlib.sha256()
        with target.open("wb") as file:
            for chunk in self._chunks(path):
                file.write(chunk)
                digest.update(chunk)
        return digest.hexdigest()

    def _chunks(self, path: str) -> Iterator[Buffer]:
        """An object's content; a large one by requests of its own, each with its own time and tries."""
        key = self._key(path)
        found = obstore.get(self._store, key)
        size = found.meta["size"]
        if size <= _REQUEST_BYTES:
            yield from found.stream(min_chunk_size=_STREAM_BYTES)
            return
        for start in range(0, size, _REQUEST_BYTES):
            yield obstore.get_range(self._store, key, start=start, end=min(start + _REQUEST_BYTES, size))

    def _errors(self, verb: str, path: str = "") -> AbstractContextManager[None]:
        return mapped_errors(verb, self.uri(path), self.options)


def _normalise(root_uri: str) -> tuple[str, Path | None]:
    """The root without a trailing slash, and the directory that it names if it is a local one."""
    parts = urlsplit(root_uri)
    if parts.scheme in {"", "file"}:
        directory = Path(unquote(parts.path) if parts.scheme else root_uri).expanduser().resolve()
        return str(directory), directory
    names_a_user = parts.username is not None and parts.scheme not in {"abfs", "abfss"}  # there it is the container
    if names_a_user or parts.password or parts.query:
        what = f"the {parts.scheme} address holds credentials"
        raise ConfigurationError(what, next_step="pass them as storage options or in the environment")
    return root_uri.rstrip("/"), None
