"""What is left after a power cut: what was synced, and nothing else for certain."""

from __future__ import annotations

import errno
import os
import random
from pathlib import Path

import pytest

from tests.faults.calls import Call, Kill, why_unsupported
from tests.faults.children import Child
from tests.faults.disk import Disk

pytestmark = pytest.mark.skipif(why_unsupported() is not None, reason=f"{why_unsupported()}")


def after_a_cut(folder: Path, work, seeds: int = 12) -> set[str]:
    """What a file ``work/name`` may hold after a power cut; none: it is not there."""
    found = set()
    for seed in range(seeds):
        root, kept = folder / f"{seed}", folder / f"kept{seed}"
        root.mkdir()
        kept.mkdir()
        (root / "work").mkdir()
        disk = Disk(root, kept)
        assert Child(folder, lambda root=root: work(root / "work")).run_traced(root, disk.before, disk.after).code == 0
        disk.lose_power(random.Random(seed))
        file = root / "work" / "name"
        found.add(file.read_text() if file.exists() else "none")
    return found


def sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    os.fsync(handle)
    os.close(handle)


def test_what_is_not_synced_may_be_lost_in_all_ways(tmp_path: Path) -> None:
    found = after_a_cut(tmp_path, lambda work: (work / "name").write_text("ab"))
    assert {"none", "", "ab"} < found <= {"none", "", "a", "ab", "\0\0", "a\0"}


def test_a_synced_file_may_lose_its_name(tmp_path: Path) -> None:
    def work(folder: Path) -> None:
        (folder / "name").write_text("ab")
        sync(folder / "name")

    assert after_a_cut(tmp_path, work) == {"none", "ab"}


def test_a_synced_name_may_have_lost_its_content(tmp_path: Path) -> None:
    def work(folder: Path) -> None:
        (folder / "name").write_text("ab")
        sync(folder)

    assert {"", "ab"} < after_a_cut(tmp_path, work) <= {"", "a", "ab", "\0\0", "a\0"}


def test_a_file_that_is_replaced_is_the_old_one_or_the_new_one(tmp_path: Path) -> None:
    def work(folder: Path) -> None:
        for text in ("old", "new"):
            (folder / "part").write_text(text)
            sync(folder / "part")
            (folder / "part").rename(folder / "name")
            if text == "old":
                sync(folder)

    assert after_a_cut(tmp_path, work) == {"old", "new"}


def test_a_deleted_file_may_come_back(tmp_path: Path) -> None:
    def work(folder: Path) -> None:
        (folder / "name").write_text("ab")
        sync(folder / "name")
        sync(folder)
        (folder / "name").unlink()

    assert after_a_cut(tmp_path, work) == {"none", "ab"}


def test_a_call_is_killed_or_fails_instead_of_being_carried_out(tmp_path: Path) -> None:
    def at(name: str, answer: Kill | int):
        return lambda call: answer if call.name == name else None

    def write() -> None:
        (tmp_path / "root" / "there").write_text("ab")

    root = tmp_path / "root"
    root.mkdir()
    calls: list[Call] = []
    assert Child(tmp_path, write).run_traced(tmp_path / "elsewhere", calls.append).code == 0
    assert calls == []
    assert Child(tmp_path, write).run_traced(root, at("write", Kill.HERE)).killed
    assert (root / "there").read_text() == ""
    full = Child(tmp_path, write).run_traced(root, at("write", errno.ENOSPC))
    assert "No space left on device" in str(full.error)
