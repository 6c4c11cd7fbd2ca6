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
import shutil
from functools import partial
from typing import TYPE_CHECKING

import obstore
import pyarrow as pa

from statelib.errors.kinds import ConfigurationError, InputError
from statelib.storage.digests import sha256_of_file
from statelib.storage.local_files import make_directories, write_file
from statelib.storage.objects import Objects, local_directory
from statelib.storage.streams import Output, RangedInput

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from typing_extensions import Buffer

_REQUEST_BYTES = 8 << 20
"""A request for more than this may not be done within its time."""

_SMALL_BYTES = 4 << 20
"""So many take an object store about as long as one more request."""

_STREAM_BYTES = 1 << 20
_PARTS_AT_ONCE = 4
_OUTPUT_PARTS_AT_ONCE = 2
_PART_BYTES = 5 << 20
"""The least that S3 takes. An output holds the parts that are under way and the one that it fills."""


def existing_storage(root_uri: str, options: Mapping[str, str] | None = None) -> Storage:
    """As `Storage`, of somebody who only looks: a local directory that is not there is not made.

    Raises:
        ConfigurationError: It is not there; or as for `Storage`.
    """
    directory = local_directory(root_uri)
    if directory is not None and not directory.is_dir():
        step = "check --warehouse, or the setting warehouse: hindstream settings"
        raise ConfigurationError("there is no such warehouse", file=str(directory), next_step=step)
    return Storage(root_uri, options)


class Storage(Objects):
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

    def copy(self, path: str, to: str) -> None:
        """Copies an object to the path ``to``, in place of one that is there; an object store does so by itself."""
        local = self.local_path(path)
        if local is not None:
            self.upload(local, to)
            return
        with self._errors("copy", path):
            obstore.copy(self._store, self._key(path), self._key(to))

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

    def chunks(self, path: str) -> Iterator[Buffer]:
        """An object's content, part by part, for who passes it on and need not hold it.

        Raises:
            ObjectNotFoundError: There is no object at ``path``.
        """
        with self._errors("read", path):
            yield from self._chunks(path)

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
