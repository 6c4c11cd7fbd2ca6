"""What a host reports of its disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from statelib.documents.manifests import StateFile, StateManifest
from statelib.placement.holdings import (
    CopyPosition,
    cache_folder,
    decode_position,
    encode_position,
    position_file,
)
from tests.placement.hosts import JOB, TASKS, Warehouse, report

if TYPE_CHECKING:
    from pathlib import Path

GOLDEN = b'{"commit": 12, "format_version": 1, "run_id": "00000012-2"}\n'


def test_golden_bytes() -> None:
    assert encode_position(CopyPosition(12, "00000012-2")) == GOLDEN
    assert decode_position(GOLDEN) == CopyPosition(12, "00000012-2")


@pytest.mark.parametrize("other", [b"", b"[]", b"{}", GOLDEN[:30], GOLDEN.replace(b'sion": 1', b'sion": 2')])
def test_a_position_that_cannot_be_read_is_none(tmp_path: Path, other: bytes) -> None:
    assert decode_position(other) is None
    cache_folder(tmp_path, JOB, "0_0").mkdir(parents=True)
    position_file(tmp_path, JOB, "0_0").write_bytes(other)
    assert report(tmp_path).positions == {}


def test_who_has_run_a_task_has_its_state(tmp_path: Path) -> None:
    """Files are left by an ordinary run; nobody has written a position."""
    warehouse = Warehouse.made(tmp_path)
    head = warehouse.run(1, tmp_path / "owner")
    found = report(tmp_path / "owner", rack="r1")
    assert (found.rack, found.positions) == ("r1", {})
    for task_id in TASKS:
        state = head.tasks[task_id].state
        assert found.lacks(task_id, state) == 0
        assert report(tmp_path / "nobody").lacks(task_id, state) == state.size_bytes > 0


def test_what_it_lacks_is_counted_in_bytes(tmp_path: Path) -> None:
    folder = cache_folder(tmp_path, JOB, "0_0")
    folder.mkdir(parents=True)
    (folder / "aa").write_bytes(b"12345")
    (folder / "bb").write_bytes(b"123")  # cut off
    files = [StateFile(name=f"{n}.sst", sha256=sha256, size_bytes=5) for n, sha256 in enumerate(("aa", "bb", "cc"))]
    assert report(tmp_path).lacks("0_0", StateManifest(files=tuple(files))) == 10


def test_what_is_no_task_is_left_out(tmp_path: Path) -> None:
    cache = cache_folder(tmp_path, JOB, "0_0").parent
    (cache / "lost+found").mkdir(parents=True)
    (cache / "0_1").write_bytes(b"a file")
    assert report(tmp_path).files == {}
