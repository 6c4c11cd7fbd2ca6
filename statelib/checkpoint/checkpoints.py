"""Incremental checkpoints of a task's RocksDB directory.

RocksDB never changes an SST once it is written, so a checkpoint is a list of files, each stored once under the SHA-256
of its content::

    <prefix>/<sha256>     in the warehouse, shared by all checkpoints of the task
    <cache>/<sha256>      on this host, see `statelib.checkpoint.cache`

Saving uploads what the previous checkpoint lacks. Restoring fetches what the host lacks and puts the directory
together from hard links. Every byte that comes from the warehouse is verified before it is used; what was verified here
before is used as long as it is the same file.

A file need not be hashed again if it *is* the cache's file: RocksDB's checkpoint and the restored directory are made of
hard links, so an SST that has lived through a slice is the very file that was verified. A name and a size would not
prove that: two attempts that start from one checkpoint give different files the same name.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from statelib.checkpoint.cache import FileCache, identity
from statelib.errors import CorruptedDataError, InternalError
from statelib.manifests import StateFile, StateManifest
from statelib.steps import step
from statelib.storage import ObjectNotFoundError
from statelib.storage.digests import sha256_of_file

if TYPE_CHECKING:
    from pathlib import Path

    from statelib.storage import Storage

_LEFT_OUT = ("LOG", "LOCK")
"""Prefixes of files that are no state: RocksDB's diary and its lock."""

_LINKED = ".sst"
"""What RocksDB only ever reads and deletes. Anything else is copied, lest the database write into the cache."""


class Checkpoints:
    """The checkpoints of one task, as seen from one host.

    Args:
        storage: The warehouse.
        prefix: The task's folder there (`statelib.commits.layout.JobLayout.state`).
        cache: A local directory for this task, best on the file system of the RocksDB directories. Several attempts
            may use it at once; losing it costs nothing but downloads.
    """

    def __init__(self, storage: Storage, prefix: str, cache: Path) -> None:
        self._storage = storage
        self._prefix = prefix
        self._cache = FileCache(cache)

    def save(self, directory: Path, previous: StateManifest | None) -> StateManifest:
        """Stores a checkpoint.

        What it makes must be committed, or at least planned, before maintenance runs again: see
        `statelib.commits.maintain`.

        Args:
            directory: Made by RocksDB's checkpoint, complete and no longer written to.
            previous: The checkpoint that the database was restored from, whose files are stored. None: a new one.

        Returns:
            The checkpoint's files by name.

        Raises:
            RetryableError: The storage did not answer.
        """
        stored = {file.sha256 for file in previous.files} if previous else set()
        cached = self._cache.contents(stored)
        files: list[StateFile] = []
        for path in sorted(directory.iterdir()):
            if path.name.startswith(_LEFT_OUT):
                continue
            found = identity(path)
            sha256 = (cached.get(found) if found else None) or sha256_of_file(path)
            if sha256 not in stored:
                step("checkpoint.before-upload")
                self._storage.upload(path, f"{self._prefix}/{sha256}")
                stored.add(sha256)
            if path.suffix == _LINKED:
                self._cache.keep(path, sha256)
            files.append(StateFile(name=path.name, sha256=sha256, size_bytes=path.stat().st_size))
        step("checkpoint.uploaded")
        before = previous.files if previous else ()
        self._cache.forget_all_but({file.sha256 for file in (*files, *before)})
        self._cache.write_down()
        return StateManifest(files=tuple(files))

    def restore(self, manifest: StateManifest, directory: Path) -> None:
        """Makes ``directory`` what it was when ``manifest`` was saved; it appears complete or not at all.

        Args:
            manifest: A checkpoint of this task.
            directory: For one attempt alone; must not exist. What an interrupted restore left beside it is removed.

        Raises:
            CorruptedDataError: A file is missing in the storage or is not what was saved; the error names it.
            RetryableError: The storage did not answer.
        """
        if directory.exists():
            raise InternalError("the directory to restore to exists already", file=directory)
        partial = directory.with_name(f"{directory.name}.partial")
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        for file in manifest.files:
            if "/" in file.name or file.name in {"", ".", ".."}:
                raise CorruptedDataError(f"{file.name!r} cannot be a file of a checkpoint", file=self._uri(file))
            self._put(file, partial / file.name)
            step("checkpoint.file-restored")
        self._cache.write_down()
        partial.rename(directory)
        step("checkpoint.restored")

    def distrust(self) -> bool:
        """To be called where a restored state turned out to be damaged: the next `restore` verifies every byte.

        Returns:
            Whether that may help: this one has trusted files that were verified before.
        """
        return self._cache.distrust()

    def _put(self, file: StateFile, target: Path) -> None:
        """Puts one verified file at ``target``, from the cache if it is good there, else from the storage."""
        if not file.name.endswith(_LINKED):
            self._fetch(file, target)
        elif not self._cache.place(file, target):
            self._fetch(file, target)
            self._cache.keep(target, file.sha256)

    def _fetch(self, file: StateFile, target: Path) -> None:
        next_step = "restore the file from a copy of the warehouse, or replay the job under a new name"
        try:
            self._storage.download(f"{self._prefix}/{file.sha256}", target)
        except ObjectNotFoundError:
            what = f"the checkpoint's file {file.name} is missing"
            raise CorruptedDataError(what, file=self._uri(file), next_step=next_step) from None
        if target.stat().st_size != file.size_bytes or sha256_of_file(target) != file.sha256:
            target.unlink()
            what = f"the checkpoint's file {file.name} is damaged: its SHA-256 is not that of its name"
            raise CorruptedDataError(what, file=self._uri(file), next_step=next_step)

    def _uri(self, file: StateFile) -> str:
        return self._storage.uri(f"{self._prefix}/{file.sha256}")
