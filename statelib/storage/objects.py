"""The objects below one root: their names, and what is written and read as a whole.

A path is relative to the root, with ``/`` between its parts, and names an object, never a directory.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self
from urllib.parse import unquote, urlsplit

import obstore
from obstore.exceptions import AlreadyExistsError, GenericError
from obstore.store import LocalStore, MemoryStore

from statelib.errors.kinds import ConfigurationError, HindstreamError, RetryableError
from statelib.storage.clients import client
from statelib.storage.errors import ObjectNotFoundError, mapped_errors
from statelib.storage.local_files import make_directories, sync_directory, sync_file, write_file

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractContextManager

    from obstore.store import ObjectStore

_PATH = re.compile(r"[A-Za-z0-9._=+@,:~-]+(/[A-Za-z0-9._=+@,:~-]+)*")
"""Characters that no store encodes, so that a path has the same name everywhere."""

_CREATE_TRIES = 5

_REQUESTS_AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An entry of a listing: ``path`` relative to the storage's root."""

    path: str
    size_bytes: int
    modified_ms: int


class Objects:
    """The objects below one root, each written and read as a whole; see `Storage` for arguments and errors."""

    def __init__(self, root_uri: str, options: Mapping[str, str] | None = None) -> None:
        self.options = dict(options or {})
        self.root_uri, self._directory = _normalise(root_uri)
        self._prefix = ""
        with self._errors("open the storage"):
            self._store = self._open()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.uri('')!r})"

    def __reduce__(self) -> tuple[object, ...]:
        """Pickles the address, not the connection."""
        if isinstance(self._store, MemoryStore):
            raise ConfigurationError("a storage in memory cannot leave its process", setting="storage root")
        return type(self), (self.uri(""), self.options)

    def within(self, prefix: str) -> Self:
        """The storage whose root is ``prefix`` below this one's, over the same connection."""
        inner = type(self).__new__(type(self))
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
        listed = [paths] if isinstance(paths, str) else paths
        keys = [self._key(path) for path in listed]
        with self._errors("delete", listed[0] if listed else ""):
            if self._directory is None:
                obstore.delete(self._store, keys)
                return
            for key in keys:
                with suppress(FileNotFoundError):
                    obstore.delete(self._store, key)
            for folder in {(self._directory / key).parent for key in keys}:  # else a power cut brings them back
                sync_file(folder)

    def discard(self, paths: str | Sequence[str]) -> None:
        """As `delete`, of what was written in vain, while the error that says why is on its way to the user.

        What cannot be deleted, for example since this process may not, is left to maintenance.
        """
        with suppress(HindstreamError):
            self.delete(paths)

    def remove_empty_folders(self, prefix: str) -> None:
        """Removes the directory ``prefix`` and those below it, where nothing is in them; an object store has none."""
        local = self.local_path(prefix)
        if local is None:
            return
        with self._errors("remove", prefix):
            for folder, _, _ in os.walk(local, topdown=False):
                with suppress(OSError):  # something is in it, or it is gone
                    Path(folder).rmdir()

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

    def _errors(self, verb: str, path: str = "") -> AbstractContextManager[None]:
        return mapped_errors(verb, self.uri(path), self.options)


def local_directory(root_uri: str) -> Path | None:
    """The directory that an address names; None: it is no local one."""
    return _normalise(root_uri)[1]


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
