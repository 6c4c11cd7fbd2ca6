"""What a host has of a task's state files: verified or made here, sharing its blocks with RocksDB's directories.

::

    <cache>/<sha256>       a file of that content
    <cache>.verified.json  which file each one was when it was verified:
                           {"files": {"<sha256>": [device, inode, size_bytes, mtime_ns], ...}, "format_version": 1}

A file that is still the one that was verified is not read again: opening a state would cost as much as reading all of
it. Whatever is rewritten, replaced or cut off has another inode, size or time, and is hashed. What that cannot show,
bits that rot on the disk, RocksDB finds by its checksums in each block that it reads; then nothing here is trusted any
more (docs/decisions/0011-trusted-cache.md). Losing either the files or the record costs work, nothing else.
"""

from __future__ import annotations

import json
import os
import shutil
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, NamedTuple

from statelib.storage.digests import sha256_of_file

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from pathlib import Path

    from statelib.documents.manifests import StateFile

FORMAT_VERSION = 1


class Identity(NamedTuple):
    """Which file a path stands for, and in which state."""

    device: int
    inode: int
    size_bytes: int
    mtime_ns: int


def identity(path: Path) -> Identity | None:
    """The identity of the file at ``path``; None: there is none."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return Identity(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


def encode(verified: Mapping[str, Identity]) -> bytes:
    """The record of what was verified, by SHA-256; see the module's docstring."""
    files = {sha256: list(file) for sha256, file in verified.items()}
    return json.dumps({"files": files, "format_version": FORMAT_VERSION}, sort_keys=True).encode()


def decode(data: bytes) -> dict[str, Identity]:
    """What `encode` was given; nothing of a record that is damaged or of another version, which only costs hashing."""
    try:
        record = json.loads(data)
        if record["format_version"] != FORMAT_VERSION:
            return {}
        return {sha256: Identity(*map(int, file)) for sha256, file in record["files"].items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        return {}


class FileCache:
    """The cache of one task. Several attempts may use it at once.

    Args:
        folder: Where; made when the first file comes.

    Attributes:
        record: Where it is written down what has been verified.
        has_trusted: Whether `place` has given a file without hashing it.

    Every method raises `OSError` as the file system says.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.record = folder.with_name(f"{folder.name}.verified.json")
        self._known = self._recorded()
        self._verified: dict[str, Identity] = {}
        self.has_trusted = False

    def place(self, file: StateFile, target: Path) -> bool:
        """Puts a file at ``target``, by a hard link where that is possible; False: it is not here, or was damaged."""
        cached = self._folder / file.sha256
        if not _link_or_copy(cached, target):
            return False
        found = identity(target)
        if found is not None and found.size_bytes == file.size_bytes:
            if found == self._known.get(file.sha256):
                self.has_trusted = True
                return True
            if sha256_of_file(target) == file.sha256:
                self._verified[file.sha256] = found
                return True
        target.unlink()
        cached.unlink(missing_ok=True)
        return False

    def place_copy(self, file: StateFile, target: Path) -> bool:
        """As `place`, of a small file that the database may write to: it is copied, and always hashed."""
        cached = self._folder / file.sha256
        try:
            shutil.copyfile(cached, target)
        except FileNotFoundError:
            return False
        if sha256_of_file(target) == file.sha256:
            return True
        target.unlink()
        cached.unlink(missing_ok=True)
        return False

    def keep_copy(self, path: Path, sha256: str) -> None:
        """As `keep`, of a file that the database may write to."""
        self._folder.mkdir(parents=True, exist_ok=True)
        with suppress(FileNotFoundError), _put_in_place(self._folder / sha256) as part:  # others clear the cache too
            shutil.copyfile(path, part)

    def has(self, file: StateFile) -> bool:
        """Whether a file of that name and size is here; `place` tells whether it is good."""
        found = identity(self._folder / file.sha256)
        return found is not None and found.size_bytes == file.size_bytes

    def drop(self, sha256: str) -> None:
        """Removes a file, if it is here."""
        (self._folder / sha256).unlink(missing_ok=True)

    def keep(self, path: Path, sha256: str) -> None:
        """Links a verified file into the cache, where this is possible; a cache on another disk stays empty."""
        self._folder.mkdir(parents=True, exist_ok=True)
        kept = identity(path)
        try:
            (self._folder / sha256).hardlink_to(path)
        except FileExistsError:
            kept = kept if identity(self._folder / sha256) == kept else None
        except OSError:
            return
        if kept is not None:
            self._verified[sha256] = kept

    def contents(self, wanted: Collection[str]) -> dict[Identity, str]:
        """The SHA-256 of each file that is here, of those in ``wanted``, by its identity."""
        found = {sha256: identity(self._folder / sha256) for sha256 in wanted}
        return {file: sha256 for sha256, file in found.items() if file is not None}

    def forget_all_but(self, kept: Collection[str]) -> None:
        """Removes all other files."""
        for entry in self._folder.iterdir() if self._folder.exists() else ():
            if entry.name not in kept:
                entry.unlink(missing_ok=True)

    def clean(self, wanted: Collection[str]) -> tuple[int, int]:
        """Reads every file, and removes those that are not in ``wanted`` or not what their name says.

        Returns:
            How many files are left, and how many were removed.
        """
        left = removed = 0
        for entry in sorted(self._folder.iterdir()) if self._folder.exists() else ():
            with suppress(FileNotFoundError):  # other attempts clear the cache as well
                before = identity(entry)
                if entry.name in wanted and sha256_of_file(entry) == entry.name:
                    left += 1
                    if before is not None and before == identity(entry):
                        self._verified[entry.name] = before
                else:
                    entry.unlink()
                    removed += 1
        self.write_down()
        return left, removed

    def write_down(self) -> None:
        """Records what has been verified, beside what was before and is still here."""
        if not self._verified:
            return
        recorded = self._recorded() | self._verified  # other attempts have written since this one read it
        self._known = {sha256: file for sha256, file in recorded.items() if (self._folder / sha256).exists()}
        with _put_in_place(self.record) as part:
            part.write_bytes(encode(self._known))
        self._verified = {}

    def distrust(self) -> bool:
        """Forgets what has been verified, so that everything is hashed again; False: nothing was trusted anyway."""
        self._known, self._verified = {}, {}
        self.record.unlink(missing_ok=True)
        trusted, self.has_trusted = self.has_trusted, False
        return trusted

    def _recorded(self) -> dict[str, Identity]:
        try:
            return decode(self.record.read_bytes())
        except FileNotFoundError:
            return {}


@contextmanager
def _put_in_place(path: Path) -> Iterator[Path]:
    """A path of this thread's own; what is written there takes the place of ``path``, as a whole."""
    part = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}.part")
    try:
        yield part
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _link_or_copy(source: Path, target: Path) -> bool:
    """Puts ``source`` at ``target`` too; False if there is none, because other attempts clear the cache as well."""
    try:
        target.hardlink_to(source)
    except FileNotFoundError:
        return False
    except OSError:  # another file system, or one without hard links
        try:
            shutil.copyfile(source, target)
        except FileNotFoundError:
            return False
    return True
