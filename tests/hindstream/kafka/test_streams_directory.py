from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from hindstream.kafka.streams_directory import StreamsDirectory
from statelib.errors.kinds import ConfigurationError

if TYPE_CHECKING:
    from pathlib import Path

LOCK = """
import fcntl, sys, time
file = open(sys.argv[1], "r+b")
fcntl.lockf(file, fcntl.LOCK_EX)
print("locked", flush=True)
time.sleep(60)
"""


def made(root: Path) -> StreamsDirectory:
    for place in (
        "app/0_0/rocksdb/s",
        "app/0_1/rocksdb/s",
        "app/1_0/rocksdb/t",
        "app/no-task/rocksdb/s",
        "other/0_0/rocksdb/s",
    ):
        (root / place).mkdir(parents=True)
    (root / "app" / "0_0" / ".checkpoint").touch()
    (root / "app" / ".lock").touch()
    return StreamsDirectory(root, "app")


def test_only_tasks_that_have_the_store_are_deleted(tmp_path: Path) -> None:
    directory = made(tmp_path)
    assert sorted(directory.stores("s")) == [0, 1]
    assert directory.delete_tasks("s") == ["0_0", "0_1"]
    assert directory.delete_tasks("s") == []
    assert sorted(path.name for path in (tmp_path / "app").iterdir()) == [".lock", "1_0", "no-task"]
    assert (tmp_path / "other" / "0_0").is_dir()


def test_nothing_is_there(tmp_path: Path) -> None:
    assert StreamsDirectory(tmp_path / "none", "app").delete_tasks("s") == []


def test_an_instance_that_runs(tmp_path: Path) -> None:
    directory = made(tmp_path)
    holder = subprocess.Popen([sys.executable, "-c", LOCK, tmp_path / "app" / ".lock"], stdout=subprocess.PIPE)
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"locked\n"
        with pytest.raises(ConfigurationError, match="an instance of the application is running in this directory"):
            directory.delete_tasks("s")
    finally:
        holder.kill()
        holder.communicate()
    assert (tmp_path / "app" / "0_0").is_dir()
    directory.check_free()
