"""Files are merged when asked, in tiers: what many small commits leave behind, and what each of them costs."""

from __future__ import annotations

import os
import random
import shutil
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from rocksdict import Options, Rdict

from statelib.errors.kinds import CorruptedDataError
from statelib.stores import rocksdb_compaction
from statelib.stores.backend import WriteBatch
from statelib.stores.rocksdb import RocksDbBackend
from statelib.stores.rocksdb_compaction import MOST_NEW_FILES

if TYPE_CHECKING:
    from pathlib import Path

_COMMITS, _CHANGES, _KEYS = 60, 100, 5_000


def key(number: int) -> bytes:
    return b"key%06d" % number


def tables(folder: Path) -> dict[int, int]:
    """Size of each table file, by what it is on disk."""
    found = {}
    for file in folder.glob("*.sst"):
        with suppress(FileNotFoundError):  # RocksDB may be merging meanwhile
            found[file.stat().st_ino] = file.stat().st_size
    return found


def changed(backend: RocksDbBackend, values: dict[int, bytes]) -> None:
    batch = WriteBatch()
    for number, value in values.items():
        batch.put("f", key(number), value)
    backend.write(batch)
    backend.flush()


def resumed(checkpoint: Path, copy: Path) -> RocksDbBackend:
    """A database from the files of a checkpoint, as a task makes it."""
    copy.mkdir()
    for file in checkpoint.iterdir():
        (os.link if file.suffix == ".sst" else shutil.copyfile)(file, copy / file.name)
    return RocksDbBackend(copy, compacts_itself=False)


def test_files_and_what_is_written_anew_stay_bounded_over_many_small_commits(tmp_path: Path) -> None:
    chosen = random.Random(1)
    expected = {number: os.urandom(100) for number in range(_KEYS)}
    first = RocksDbBackend(tmp_path / "db0", compacts_itself=False)
    changed(first, expected)
    first.checkpoint(tmp_path / "0")
    first.close()
    whole = sum(tables(tmp_path / "0").values())
    new, most = [], 0
    for commit in range(1, _COMMITS + 1):
        before = tables(tmp_path / str(commit - 1))
        backend = resumed(tmp_path / str(commit - 1), tmp_path / f"db{commit}")
        change = {number: os.urandom(100) for number in chosen.sample(range(_KEYS), _CHANGES)}
        expected |= change
        changed(backend, change)
        backend.compact()
        backend.checkpoint(tmp_path / str(commit))
        assert backend.multi_get("f", [key(number) for number in expected]) == list(expected.values())
        backend.close()
        after = tables(tmp_path / str(commit))
        new.append(sum(size for file, size in after.items() if file not in before))
        most = max(most, len(after))
    # One flushed file a commit would be 61 files; merging all of them whenever they are five, twelve times the whole.
    assert most <= 2 * MOST_NEW_FILES
    assert max(new) > whole / 4, "nothing was ever merged"
    assert sum(new) < 7 * whole
    assert sum(tables(tmp_path / str(_COMMITS)).values()) < 3 * whole


@pytest.fixture(params=["tiers", "whole"])
def merged_as(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How families are merged, whatever their size."""
    monkeypatch.setattr(rocksdb_compaction, "_SMALL_BYTES", 0 if request.param == "tiers" else 1 << 40)
    return str(request.param)


@pytest.mark.usefixtures("merged_as")
def test_without_being_asked_nothing_is_merged_and_nobody_waits(tmp_path: Path) -> None:
    backend = RocksDbBackend(tmp_path / "db", compacts_itself=False)
    for number in range(50):  # more than where RocksDB would stop all writes, if it merged by itself
        changed(backend, {number: b"value"})
    assert len(tables(tmp_path / "db")) == 50
    backend.compact()
    backend.checkpoint(tmp_path / "checkpoint")
    assert len(tables(tmp_path / "checkpoint")) <= MOST_NEW_FILES
    assert backend.count("f") == 50
    backend.close()


@pytest.mark.usefixtures("merged_as")
def test_each_family_is_merged_by_itself(tmp_path: Path) -> None:
    backend = RocksDbBackend(tmp_path / "db", compacts_itself=False)
    for number in range(MOST_NEW_FILES + 1):
        batch = WriteBatch()
        for family in ("a", "b") if number else ("a", "b", "c"):
            batch.put(family, key(number), b"value")
        backend.write(batch)
        backend.flush()
    backend.compact()
    backend.checkpoint(tmp_path / "checkpoint")
    assert len(tables(tmp_path / "checkpoint")) == 3
    assert [backend.count(family) for family in "abc"] == [5, 5, 1]
    backend.close()


def test_a_small_family_is_merged_without_a_change_of_options(tmp_path: Path) -> None:
    backend = RocksDbBackend(tmp_path / "db", compacts_itself=False)
    for _ in range(MOST_NEW_FILES + 1):
        changed(backend, {number: os.urandom(50) for number in range(500)})
    before = sorted((tmp_path / "db").glob("OPTIONS-*"))
    backend.compact()
    assert sorted((tmp_path / "db").glob("OPTIONS-*")) == before
    backend.checkpoint(tmp_path / "checkpoint")
    assert len(tables(tmp_path / "checkpoint")) == 1
    backend.close()


@pytest.mark.usefixtures("merged_as")
def test_where_ranges_expire_merging_waits_for_the_checkpoint(tmp_path: Path) -> None:
    backend = RocksDbBackend(tmp_path / "db", compacts_itself=False)
    for number in range(50):
        changed(backend, {number: b"value"})
        if number % 10 == 9:
            batch = WriteBatch()
            batch.expire_range("f", key(0), key(number - 5))
            backend.write(batch)
        backend.compact(more_will_expire=number >= 9)
    assert len(tables(tmp_path / "db")) > 30
    assert [found for found, _ in backend.scan("f")] == [key(number) for number in range(44, 50)]
    backend.compact()
    backend.checkpoint(tmp_path / "checkpoint")
    assert len(tables(tmp_path / "checkpoint")) <= MOST_NEW_FILES
    assert [found for found, _ in backend.scan("f")] == [key(number) for number in range(44, 50)]
    backend.close()


@pytest.mark.usefixtures("merged_as")
def test_a_database_that_was_merged_by_levels_goes_on_in_tiers(tmp_path: Path) -> None:
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    with_levels = Rdict(str(tmp_path / "db"), options)
    family = with_levels.create_column_family("f", options)
    for number in range(40):
        family[key(number)] = b"old"
        if number % 10 == 9:
            family.flush()
            family.compact_range(None, None)
    family[key(40)] = b"old"
    family.flush()
    family.close()
    with_levels.close()
    backend = RocksDbBackend(tmp_path / "db", compacts_itself=False)
    for number in range(30, 50):
        changed(backend, {number: b"new"})
        backend.compact()
    assert backend.multi_get("f", [key(number) for number in range(51)]) == [b"old"] * 30 + [b"new"] * 20 + [None]
    backend.close()


@pytest.mark.usefixtures("merged_as")
def test_a_damaged_file_ends_the_merging_with_its_name(tmp_path: Path) -> None:
    backend = RocksDbBackend(tmp_path / "db", compacts_itself=False)
    for _ in range(MOST_NEW_FILES + 1):
        changed(backend, {number: os.urandom(50) for number in range(500)})
    backend.close()
    damaged = sorted((tmp_path / "db").glob("*.sst"))[1]
    content = bytearray(damaged.read_bytes())
    content[5000:5100] = bytes(100)
    damaged.write_bytes(content)
    backend = RocksDbBackend(tmp_path / "db", compacts_itself=False)
    with pytest.raises(CorruptedDataError, match="damaged") as caught:
        backend.compact()
    assert damaged.name in str(caught.value)
    backend.close()


def test_by_itself_it_merges_as_it_goes(tmp_path: Path) -> None:
    backend = RocksDbBackend(tmp_path / "db")
    for number in range(100):
        changed(backend, {number: b"value"})
    assert len(tables(tmp_path / "db")) < 100
    backend.compact()
    changed(backend, {100: b"value"})
    assert backend.count("f") == 101
    backend.close()
