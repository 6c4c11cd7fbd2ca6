"""What only a backend on disk has: reopening, checkpoints, locks and damage."""

from __future__ import annotations

import errno
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from statelib.errors.kinds import ConfigurationError, CorruptedDataError, InternalError, RetryableError
from statelib.stores.backend import WriteBatch
from statelib.stores.rocksdb import RocksDbBackend
from statelib.stores.rocksdb_errors import mapped

REPOSITORY = Path(__file__).parents[2]


def filled(path: Path, count: int = 100) -> RocksDbBackend:
    backend = RocksDbBackend(path)
    batch = WriteBatch()
    for number in range(count):
        batch.put("f", b"key%06d" % number, b"value%d" % number)
    batch.put("position", b"", b"7")
    backend.write(batch)
    return backend


def test_what_was_written_is_there_after_reopening(tmp_path: Path) -> None:
    filled(tmp_path / "db").close()
    backend = RocksDbBackend(tmp_path / "db", create=False)
    assert backend.get("f", b"key000042") == b"value42"
    assert backend.get("position", b"") == b"7"
    backend.close()


def test_scans_keep_their_bounds_whatever_happens_in_memory(tmp_path: Path) -> None:
    backend = filled(tmp_path / "db")
    scans = [(n, backend.scan("f", b"key", b"key%06d\0" % n)) for n in range(100)]  # nobody else keeps their ends
    overwritten = [bytes([255]) * (n % 32) for n in range(10_000)]
    assert [n for n, scan in scans if sum(1 for _ in scan) != n + 1] == []
    assert len(overwritten) == 10_000
    backend.close()


def test_families_can_be_made_beforehand(tmp_path: Path) -> None:
    filled(tmp_path / "db").close()
    backend = RocksDbBackend(tmp_path / "db", families=["f", "later", "never"])
    assert (backend.get("f", b"key000042"), backend.get("never", b"k")) == (b"value42", None)
    assert backend.is_empty("later")
    backend.write(WriteBatch([("later", b"k", b"v"), ("unforeseen", b"k", b"w")]))
    backend.close()
    reopened = RocksDbBackend(tmp_path / "db", read_only=True)
    found = {family: list(reopened.scan(family)) for family in ("later", "unforeseen", "never", "nowhere")}
    assert found == {"later": [(b"k", b"v")], "unforeseen": [(b"k", b"w")], "never": [], "nowhere": []}
    reopened.close()


def test_close_frees_the_lock_although_scans_live(tmp_path: Path) -> None:
    backend = filled(tmp_path / "db")
    scans = [backend.scan("f"), backend.scan("f", reverse=True)]
    for scan in scans:
        next(scan)
    backend.close()
    reopened = RocksDbBackend(tmp_path / "db")
    assert reopened.get("f", b"key000042") == b"value42"
    reopened.close()


def test_a_directory_in_use_is_a_clear_error(tmp_path: Path) -> None:
    backend = filled(tmp_path / "db")
    with pytest.raises(ConfigurationError, match="another process"):
        RocksDbBackend(tmp_path / "db")
    reader = RocksDbBackend(tmp_path / "db", read_only=True)
    assert reader.get("f", b"key000001") == b"value1"
    with pytest.raises(InternalError, match="read-only"):
        reader.write(WriteBatch([("f", b"a", b"b")]))
    reader.close()
    backend.close()


def test_a_directory_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no state directory"):
        RocksDbBackend(tmp_path / "db", create=False)
    with pytest.raises(ConfigurationError, match="no state directory"):
        RocksDbBackend(tmp_path / "db", read_only=True)
    assert not (tmp_path / "db").exists()


def test_checkpoints_are_consistent_independent_and_share_files(tmp_path: Path) -> None:
    backend = filled(tmp_path / "db")
    backend.checkpoint(tmp_path / "one")
    backend.write(WriteBatch([("f", b"key000001", b"changed"), ("position", b"", b"8")]))
    backend.checkpoint(tmp_path / "two")
    backend.close()

    one = RocksDbBackend(tmp_path / "one", read_only=True)
    two = RocksDbBackend(tmp_path / "two", read_only=True)
    assert (one.get("f", b"key000001"), one.get("position", b"")) == (b"value1", b"7")
    assert (two.get("f", b"key000001"), two.get("position", b"")) == (b"changed", b"8")
    one.close()
    two.close()
    inodes = [{file.stat().st_ino for file in (tmp_path / name).glob("*.sst")} for name in ("db", "one", "two")]
    assert inodes[1]
    assert inodes[1] <= inodes[2] <= inodes[0]


def test_a_checkpoint_does_not_overwrite(tmp_path: Path) -> None:
    backend = filled(tmp_path / "db")
    with pytest.raises(InternalError, match="exists already"):
        backend.checkpoint(tmp_path)
    backend.close()


def test_a_damaged_sst_is_named(tmp_path: Path) -> None:
    backend = filled(tmp_path / "db", 20_000)
    backend.flush()
    backend.close()
    damaged = max((tmp_path / "db").glob("*.sst"), key=lambda file: file.stat().st_size)
    content = bytearray(damaged.read_bytes())
    middle = len(content) // 4
    content[middle : middle + 64] = bytes(64)
    damaged.write_bytes(content)
    backend = RocksDbBackend(tmp_path / "db")
    with pytest.raises(CorruptedDataError, match=damaged.name):
        list(backend.scan("f"))
    with pytest.raises(CorruptedDataError, match=damaged.name):
        backend.multi_get("f", [b"key%06d" % number for number in range(20_000)])
    backend.close()


@pytest.mark.parametrize("pattern", ["*.sst", "MANIFEST-*", "CURRENT"])
def test_a_missing_file_is_named(tmp_path: Path, pattern: str) -> None:
    backend = filled(tmp_path / "db")
    backend.flush()
    backend.close()
    (lost, *_) = (tmp_path / "db").glob(pattern)
    lost.unlink()
    with pytest.raises(CorruptedDataError, match=lost.name):
        RocksDbBackend(tmp_path / "db")


WRITER = """
import os, signal, sys
from statelib.stores.backend import WriteBatch
from statelib.stores.rocksdb import RocksDbBackend
backend = RocksDbBackend(sys.argv[1])
for number in range(1000):
    batch = WriteBatch()
    batch.put("f", b"%d" % number, b"x" * 100)
    batch.put("position", b"", b"%d" % number)
    backend.write(batch)
    if number == 777:
        backend.flush()
    if number == 900:
        os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_process_leaves_data_and_position_together(tmp_path: Path) -> None:
    ended = subprocess.run([sys.executable, "-c", WRITER, str(tmp_path / "db")], cwd=REPOSITORY, check=False)
    assert ended.returncode == -signal.SIGKILL
    backend = RocksDbBackend(tmp_path / "db", create=False)
    assert backend.get("position", b"") == b"900"
    assert sum(1 for _ in backend.scan("f")) == 901
    backend.close()


@pytest.mark.parametrize(
    "text",
    [
        "IO error: No space left on device: While fdatasync: /s/db/000004.log",
        "IO error: No space left on device: While open a file for lock: /s/db/LOCK: No space left on device",
        "No space left on device (os error 28)",
    ],
)
def test_a_full_disk_is_to_be_freed(tmp_path: Path, text: str) -> None:
    error = mapped(Exception(text), tmp_path)
    assert isinstance(error, RetryableError)
    assert error.next_step == "free space on the disk, and run the same command again"


@pytest.mark.parametrize(
    "found",
    [
        Exception("IO error: While mkdir if missing: /s/db: Permission denied"),
        Exception("IO error: While open a file for lock: /s/db/LOCK: Permission denied"),
        PermissionError("Permission denied (os error 13)"),  # of its layer in Rust: without a number
        PermissionError(errno.EACCES, "Permission denied", "/s/db"),
    ],
)
def test_a_directory_of_somebody_else_is_not_tried_again(tmp_path: Path, found: Exception) -> None:
    error = mapped(found, tmp_path)
    assert isinstance(error, ConfigurationError)
    assert "who may write" in error.next_step
