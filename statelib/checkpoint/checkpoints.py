"""Incremental checkpoints of a task's RocksDB directory.

RocksDB never changes an SST once it is written, so a checkpoint is a list of files, each stored once by the run that
made it::

    jobs/<job>/state/<task>/<sha256>.<run id>   in the warehouse, shared by that run's checkpoint of the task and those
                                                that follow it, a fork's too
    jobs/<job>/state/<task>/<sha256>            the same, as stored up to version 3 of the documents
    <cache>/<sha256>                            on this host, see `statelib.checkpoint.cache`

A name is written by one run only, so a file that no checkpoint needs can be deleted at any later time: nobody brings
its name back to life (docs/decisions/0014-state-files-of-a-run.md).

Saving uploads what the previous checkpoint lacks. Restoring fetches what the host lacks and puts the directory
together from hard links. Several files are on their way at once, each in bounded memory. Every byte that comes from the
warehouse is verified before it is used; what was verified here before is used as long as it is the same file.

A file need not be hashed again if it *is* the cache's file: RocksDB's checkpoint and the restored directory are made of
hard links, so an SST that has lived through a slice is the very file that was verified. A name and a size would not
prove that: two attempts that start from one checkpoint give different files the same name.

A checkpoint of RocksDB also has files that no state is in: its diary, the options (30 KB of text, and every process
opens it with options of its own), empty write-ahead logs, and CURRENT, which says no more than the name of MANIFEST.
They are not stored; CURRENT is written anew.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from statelib.checkpoint.cache import FileCache, identity
from statelib.checkpoint.local_errors import local_errors
from statelib.documents.manifests import StateFile, StateManifest
from statelib.errors.fault_points import step
from statelib.errors.kinds import CorruptedDataError, InternalError
from statelib.storage import ObjectNotFoundError
from statelib.storage.digests import sha256_of_file
from statelib.storage.transfers import in_parallel

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from statelib.storage import Storage

_LEFT_OUT = ("LOG", "LOCK", "OPTIONS", "rocksdict-config", "CURRENT")
"""Prefixes of files that are no state."""

_MANIFEST = "MANIFEST-"
_CURRENT = "CURRENT"

_LINKED = ".sst"
"""What RocksDB only ever reads and deletes. Anything else is copied, lest the database write into the cache."""


class Checkpoints:
    """The checkpoints of one task, as seen from one host.

    Args:
        storage: The warehouse.
        job: The job whose state it is.
        task_id: The task.
        cache: A local directory for this task, best on the file system of the RocksDB directories. Several attempts
            may use it at once; losing it costs nothing but downloads.
        at_once: How many files are fetched, stored or hashed at a time.
    """

    def __init__(self, storage: Storage, job: str, task_id: str, cache: Path, *, at_once: int = 4) -> None:
        self._storage = storage
        self._job = job
        self._task_id = task_id
        self._at_once = at_once
        self._fetched: list[int] = []
        with local_errors("look at the cache of state files", cache):
            self._cache = FileCache(cache)

    @property
    def fetched_bytes(self) -> int:
        """What has come from the warehouse so far."""
        return sum(self._fetched)

    def save(self, directory: Path, previous: StateManifest | None, *, run_id: str) -> StateManifest:
        """Stores a checkpoint.

        Args:
            directory: Made by RocksDB's checkpoint, complete and no longer written to.
            previous: The checkpoint that the database was restored from, whose files are stored. None: a new one.
            run_id: The run whose checkpoint this is; new files are stored under its name.

        Returns:
            The checkpoint's files by name.

        Raises:
            RetryableError: The storage did not answer, or the disk is full.
            ConfigurationError: The storage or the cache may not be written.
        """
        before = previous.files if previous else ()
        stored = {file.sha256: file for file in before}
        cached = self._cache.contents(stored)

        def put(path: Path) -> StateFile:
            found = identity(path)
            sha256 = (cached.get(found) if found else None) or sha256_of_file(path)
            known = stored.get(sha256)
            size_bytes = path.stat().st_size
            if known is not None:
                file = known.model_copy(update={"name": path.name, "size_bytes": size_bytes})
            else:
                file = StateFile(name=path.name, sha256=sha256, size_bytes=size_bytes, run_id=run_id)
                step("checkpoint.before-upload")
                self._storage.upload(path, self._path(file))
            self._keep(path, sha256)
            return file

        with local_errors("save the state", directory):
            files = in_parallel(put, [path for path in sorted(directory.iterdir()) if _is_state(path)], self._at_once)
            step("checkpoint.uploaded")
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
            RetryableError: The storage did not answer, or the disk is full.
            ConfigurationError: The directory or the cache may not be written.
        """
        if directory.exists():
            raise InternalError("the directory to restore to exists already", file=directory)
        self._check_names(manifest)
        partial = directory.with_name(f"{directory.name}.partial")
        with local_errors("restore the state", partial):
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir(parents=True)
            try:
                in_parallel(lambda file: self._put(file, partial / file.name), manifest.files, self._at_once)
                _complete(partial, manifest)
                self._cache.write_down()
                partial.rename(directory)
            except BaseException:
                shutil.rmtree(partial, ignore_errors=True)  # the disk may be full
                raise
        step("checkpoint.restored")

    def fetch(self, manifest: StateManifest, scratch: Path, *, is_over: Callable[[], bool]) -> int:
        """Brings what the cache lacks of a checkpoint here, so that `restore` need not, and makes no directory of it.

        Files are complete or not there; a call that was ended goes on where it was.

        Args:
            manifest: A checkpoint of this task.
            scratch: For this call alone, on the file system of the cache.
            is_over: Asked before each file but the first ones; True: the rest is left for another call.

        Returns:
            How many files have come.

        Raises:
            CorruptedDataError: A file is missing in the storage or is not what was saved; the error names it.
            RetryableError: The storage did not answer, or the disk is full.
            ConfigurationError: The cache may not be written.
        """
        self._check_names(manifest)
        missing = [file for file in manifest.files if not self._cache.has(file)]
        come = 0
        with local_errors("fetch a copy of the state", scratch):
            while missing and (not come or not is_over()):
                portion, missing = missing[: self._at_once], missing[self._at_once :]
                in_parallel(lambda file: self._take(file, scratch), portion, self._at_once)
                come += len(portion)
            self._cache.write_down()
        return come

    def lacks(self, manifest: StateManifest) -> int:
        """Bytes of a checkpoint that are not in the cache."""
        with local_errors("look at the cache of state files", self._cache.record):
            return sum(file.size_bytes for file in manifest.files if not self._cache.has(file))

    def distrust(self) -> bool:
        """To be called where a restored state turned out to be damaged: the next `restore` verifies every byte.

        Returns:
            Whether that may help: this one has trusted files that were verified before.
        """
        with local_errors("forget which files were verified", self._cache.record):
            return self._cache.distrust()

    def _check_names(self, manifest: StateManifest) -> None:
        for file in manifest.files:
            if "/" in file.name or file.name in {"", ".", ".."}:
                raise CorruptedDataError(f"{file.name!r} cannot be a file of a checkpoint", file=self._uri(file))

    def _put(self, file: StateFile, target: Path) -> None:
        """Puts one verified file at ``target``, from the cache if it is good there, else from the storage."""
        place = self._cache.place if file.name.endswith(_LINKED) else self._cache.place_copy
        if not place(file, target):
            self._fetch(file, target)
            self._keep(target, file.sha256)
        step("checkpoint.file-restored")

    def _take(self, file: StateFile, scratch: Path) -> None:
        """Puts one file into the cache."""
        target = scratch / file.name
        self._cache.drop(file.sha256)  # of another size
        self._fetch(file, target)
        self._keep(target, file.sha256)
        target.unlink()
        step("checkpoint.file-copied")

    def _keep(self, path: Path, sha256: str) -> None:
        """Puts a verified file into the cache."""
        keep = self._cache.keep if path.suffix == _LINKED else self._cache.keep_copy
        keep(path, sha256)

    def _fetch(self, file: StateFile, target: Path) -> None:
        next_step = "see what else is damaged: hindstream state verify; the ways out: docs/runbooks/damaged-data.md"
        try:
            sha256 = self._storage.download(self._path(file), target)
        except ObjectNotFoundError:
            what = f"the checkpoint's file {file.name} is missing"
            raise CorruptedDataError(what, file=self._uri(file), next_step=next_step) from None
        if target.stat().st_size != file.size_bytes or sha256 != file.sha256:
            target.unlink()
            what = f"the checkpoint's file {file.name} is damaged: its SHA-256 is not that of its name"
            raise CorruptedDataError(what, file=self._uri(file), next_step=next_step)
        self._fetched.append(file.size_bytes)

    def _path(self, file: StateFile) -> str:
        return file.path(self._job, self._task_id)

    def _uri(self, file: StateFile) -> str:
        return self._storage.uri(self._path(file))


def _is_state(path: Path) -> bool:
    """Whether a file of RocksDB's checkpoint has to be stored."""
    if path.name.startswith(_LEFT_OUT):
        return False
    return path.suffix != ".log" or path.stat().st_size > 0


def _complete(directory: Path, manifest: StateManifest) -> None:
    """Writes the file that says which one is RocksDB's MANIFEST, where it was not stored."""
    names = [file.name for file in manifest.files]
    manifests = [name for name in names if name.startswith(_MANIFEST)]
    if _CURRENT not in names and len(manifests) == 1:
        (directory / _CURRENT).write_text(f"{manifests[0]}\n")
