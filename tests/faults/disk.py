"""What is left of files on a disk after the power went: all that was synced, and of the rest whatever chance has it.

What a process does is followed call by call (`tests.faults.calls`), with the least that POSIX promises: ``fsync`` of a
file brings its bytes to the disk, ``fsync`` of a directory its names, and nothing else brings anything there. So the
bytes of a file that were not synced may be lost from any place on, or read as zeros; names that were not synced may be
missing, or still be there, as they were after any number of the changes of their directory. Directories are
independent of each other, which journals of real file systems are not: this is harsher than those.
"""

from __future__ import annotations

import os
import random
import shutil
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tests.faults.calls import SYNCS

if TYPE_CHECKING:
    from tests.faults.calls import Call

_SHARES = {"names": ("none", "all", "some", "some"), "bytes": ("none", "all", "cut", "zeros", "any", "any")}


@dataclass(eq=False)
class _File:
    """``kept``: a link that stays when all names are gone; ``synced``: how many of its bytes are on the disk."""

    kept: Path
    synced: int = 0


@dataclass(eq=False)
class _Directory:
    """``changes``: what has happened to its names since they were synced; each replaces some, all at once."""

    synced: dict[str, _File | _Directory] = field(default_factory=dict)
    changes: list[dict[str, _File | _Directory | None]] = field(default_factory=list)

    def after(self, changes: int) -> dict[str, _File | _Directory]:
        names: dict[str, _File | _Directory | None] = dict(self.synced)
        for change in self.changes[:changes]:
            names |= change
        return {name: entry for name, entry in names.items() if entry is not None}

    @property
    def now(self) -> dict[str, _File | _Directory]:
        return self.after(len(self.changes))

    def sync(self, changes: int) -> None:
        self.synced, self.changes = self.after(changes), self.changes[changes:]


class Disk:
    """The files below ``root``; all that is there at the beginning is on the disk.

    ``kept`` must be an empty directory of the same file system. `before` and `after` are the observers of
    `tests.faults.calls.traced`.
    """

    def __init__(self, root: Path, kept: Path) -> None:
        self._root, self._kept = root.resolve(), kept
        self._files: dict[int, _File] = {}
        self._begun: tuple[_File | _Directory | None, int] = None, 0
        self._top = self._found(self._root)

    def before(self, call: Call) -> None:
        """Notes how much there is to be synced."""
        if call.name not in SYNCS or call.status is None:
            return
        if stat.S_ISDIR(call.status.st_mode):
            directory = self._directory(call.path)
            self._begun = directory, len(directory.changes)
        else:
            self._begun = self._file(call.status.st_ino), call.status.st_size

    def after(self, call: Call, result: int) -> None:
        """Follows a call that was carried out."""
        if call.name in SYNCS:
            synced, amount = self._begun
            if result == 0 and isinstance(synced, _File):
                synced.synced = max(synced.synced, amount)
            elif result == 0 and synced is not None:
                synced.sync(amount)
        elif result >= 0:
            self._follow(call)

    def lose_power(self, chance: random.Random) -> str:
        """Makes the files what might be left of them; says in a few words how much."""
        self._check()
        modes = {what: chance.choice(modes) for what, modes in _SHARES.items()}
        shutil.rmtree(self._root)
        for file in self._files.values():
            _lose_bytes(file, modes["bytes"], chance)
        self._restore(self._top, self._root, modes["names"], chance)
        shutil.rmtree(self._kept)
        return f"of what was not synced: names {modes['names']}, bytes {modes['bytes']}"

    def _found(self, path: Path) -> _Directory:
        directory = _Directory()
        for entry in os.scandir(path):
            found = Path(entry.path)
            directory.synced[entry.name] = self._found(found) if entry.is_dir() else self._keep(found, synced=True)
        return directory

    def _keep(self, path: Path, *, synced: bool) -> _File:
        status = path.stat()
        if status.st_ino not in self._files:
            kept = self._kept / str(status.st_ino)
            kept.hardlink_to(path)
            self._files[status.st_ino] = _File(kept, status.st_size if synced else 0)
        return self._files[status.st_ino]

    def _file(self, inode: int) -> _File:
        return self._files[inode]

    def _directory(self, path: str | Path) -> _Directory:
        directory = self._top
        for part in Path(path).relative_to(self._root).parts:
            found = directory.now[part]
            assert isinstance(found, _Directory), path
            directory = found
        return directory

    def _entry(self, path: str) -> tuple[_Directory, str]:
        return self._directory(Path(path).parent), Path(path).name

    def _follow(self, call: Call) -> None:
        if call.name in {"open", "creat"}:
            directory, name = self._entry(call.path)
            if name not in directory.now:
                directory.changes.append({name: self._keep(Path(call.path), synced=False)})
            elif call.flags & os.O_TRUNC:
                file = directory.now[name]
                assert isinstance(file, _File)
                file.synced = 0
        elif call.name == "mkdir":
            directory, name = self._entry(call.path)
            directory.changes.append({name: _Directory()})
        elif call.name in {"rmdir", "unlink"}:
            directory, name = self._entry(call.path)
            directory.changes.append({name: None})
        elif call.name in {"rename", "link"}:
            self._move(call)
        elif call.name == "ftruncate":
            assert call.status is not None
            file = self._file(call.status.st_ino)
            file.synced = min(file.synced, call.arguments[1])
        elif call.name == "pwrite64":
            assert call.status is not None
            assert call.arguments[3] >= self._file(call.status.st_ino).synced, "written over what was synced"
        elif call.name in {"truncate", "symlink"}:
            raise NotImplementedError(call)

    def _move(self, call: Call) -> None:
        assert call.target is not None
        (source, old), (target, new) = self._entry(call.path), self._entry(call.target)
        entry = source.now[old]
        if call.name == "link":
            target.changes.append({new: entry})
        elif source is target:
            source.changes.append({old: None, new: entry})
        else:
            target.changes.append({new: entry})
            source.changes.append({old: None})

    def _check(self) -> None:
        """Makes sure that nothing has been missed."""
        there = {str(path.relative_to(self._root)) for path in self._root.rglob("*")}
        known = set(_paths(self._top))
        assert there == known, f"not followed: {sorted(there ^ known)}"

    def _restore(self, directory: _Directory, path: Path, mode: str, chance: random.Random) -> None:
        path.mkdir()
        most = len(directory.changes)
        for name, entry in sorted(directory.after(_some(mode, most, chance)).items()):
            if isinstance(entry, _Directory):
                self._restore(entry, path / name, mode, chance)
            else:
                (path / name).hardlink_to(entry.kept)


def _some(mode: str, most: int, chance: random.Random) -> int:
    return {"none": 0, "all": most, "some": chance.randint(0, most)}[mode]


def _paths(directory: _Directory, above: str = "") -> list[str]:
    found = []
    for name, entry in directory.now.items():
        found.append(f"{above}{name}")
        if isinstance(entry, _Directory):
            found += _paths(entry, f"{above}{name}/")
    return found


def _lose_bytes(file: _File, mode: str, chance: random.Random) -> None:
    status = file.kept.stat()
    if mode == "any":
        mode = chance.choice(("none", "all", "cut", "zeros"))
    begin = file.synced if mode == "none" else chance.randint(file.synced, max(status.st_size, file.synced))
    if mode == "all" or begin >= status.st_size:
        return
    os.truncate(file.kept, begin)
    if mode == "zeros":
        os.truncate(file.kept, status.st_size)
    os.utime(file.kept, ns=(status.st_atime_ns, status.st_mtime_ns))  # the time tells nothing of it
