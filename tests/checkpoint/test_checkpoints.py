from __future__ import annotations

import hashlib
import os
import shutil
from typing import TYPE_CHECKING

import pytest

from statelib.checkpoint import Checkpoints, cache, checkpoints
from statelib.checkpoint.retention import is_named_by_content, oldest_kept, unneeded_files
from statelib.documents.manifests import StateFile, StateManifest
from statelib.errors.kinds import CorruptedDataError, InternalError
from statelib.storage import Storage, StoredObject
from statelib.stores.backend import WriteBatch
from statelib.stores.rocksdb import RocksDbBackend

if TYPE_CHECKING:
    from pathlib import Path

JOB, TASK = "j", "0_0"
PREFIX = f"jobs/{JOB}/state/{TASK}"


class Task:
    """A task's state on one host, commit after commit."""

    def __init__(self, storage: Storage, host: Path) -> None:
        self.storage = storage
        self.host = host
        self.checkpoints = Checkpoints(storage, JOB, TASK, host / "cache")
        self.manifest: StateManifest | None = None
        self.attempts = 0

    def slice(self, **changes: str) -> StateManifest:
        """Restores the last checkpoint, writes some changes, saves the next one."""
        self.attempts += 1
        directory = self.host / f"attempt{self.attempts}"
        if self.manifest:
            self.checkpoints.restore(self.manifest, directory)
        backend = RocksDbBackend(directory)
        batch = WriteBatch()
        for key, value in changes.items():
            batch.put("store", key.encode(), value.encode() * 1000)
        backend.write(batch)
        backend.flush()
        backend.checkpoint(self.host / f"snapshot{self.attempts}")
        self.manifest = self.checkpoints.save(
            self.host / f"snapshot{self.attempts}", self.manifest, run_id=f"{self.attempts:08d}-1"
        )
        backend.close()
        return self.manifest


@pytest.fixture
def storage(tmp_path) -> Storage:
    return Storage(str(tmp_path / "warehouse"))


@pytest.fixture
def task(storage, tmp_path) -> Task:
    return Task(storage, tmp_path / "host")


@pytest.fixture
def requests(storage, monkeypatch):
    """Files that were hashed, uploaded and downloaded since the test looked last."""
    seen: dict[str, list[str]] = {"hashed": [], "uploaded": [], "downloaded": []}
    sha256, upload, download = cache.sha256_of_file, storage.upload, storage.download
    for module in (cache, checkpoints):
        monkeypatch.setattr(module, "sha256_of_file", lambda path: seen["hashed"].append(path.name) or sha256(path))
    monkeypatch.setattr(
        storage, "upload", lambda local, path: seen["uploaded"].append(local.name) or upload(local, path)
    )
    monkeypatch.setattr(storage, "download", lambda path, to: seen["downloaded"].append(to.name) or download(path, to))

    def take():
        taken = {name: sorted(names) for name, names in seen.items()}
        for names in seen.values():
            names.clear()
        return taken

    return take


def contents(directory: Path) -> dict[str, str]:
    backend = RocksDbBackend(directory, create=False)
    found = {key.decode(): value.decode() for key, value in backend.scan("store")}
    backend.close()
    return found


def ssts(manifest: StateManifest) -> list[str]:
    return sorted(file.name for file in manifest.files if file.name.endswith(".sst"))


def test_a_restored_state_is_what_was_saved(task, storage, tmp_path):
    first = task.slice(a="1", b="2")
    second = task.slice(b="3")
    elsewhere = Checkpoints(storage, JOB, TASK, tmp_path / "other")
    elsewhere.restore(first, tmp_path / "first")
    elsewhere.restore(second, tmp_path / "second")
    assert contents(tmp_path / "first") == {"a": "1" * 1000, "b": "2" * 1000}
    assert contents(tmp_path / "second") == {"a": "1" * 1000, "b": "3" * 1000}


def test_files_are_stored_under_the_hash_of_their_content(task, storage):
    manifest = task.slice(a="1")
    assert [file.name for file in manifest.files] == sorted(file.name for file in manifest.files)
    assert {entry.path.rpartition("/")[2] for entry in storage.list(PREFIX)} == {
        f"{f.sha256}.00000001-1" for f in manifest.files
    }
    for file in manifest.files:
        data = storage.get(f"{PREFIX}/{file.stored_name}")
        assert (hashlib.sha256(data).hexdigest(), len(data)) == (file.sha256, file.size_bytes)


def test_only_what_the_state_is_in_is_stored(task, tmp_path):
    """No diary, lock, options, empty log; CURRENT is written anew."""
    manifest = task.slice(a="1")
    assert {file.name.rstrip("0123456789") for file in manifest.files if not file.name.endswith(".sst")} == {
        "MANIFEST-"
    }
    task.checkpoints.restore(manifest, tmp_path / "there")
    (name,) = (file.name for file in manifest.files if file.name.startswith("MANIFEST-"))
    assert (tmp_path / "there" / "CURRENT").read_text() == f"{name}\n"


def test_a_checkpoint_of_the_older_layout_is_restored_and_carried_on(task, storage, tmp_path):
    """Every file of RocksDB's, named by its content alone."""
    task.slice(a="1")
    snapshot = task.host / "snapshot1"
    files = []
    for path in sorted(snapshot.iterdir()):
        if not path.name.startswith(("LOG", "LOCK")):
            file = StateFile(name=path.name, sha256=sha256_of(path), size_bytes=path.stat().st_size)
            storage.upload(path, f"{PREFIX}/{file.sha256}")
            files.append(file)
    for entry in storage.list(PREFIX):
        if entry.path.endswith("-1"):
            storage.delete(entry.path)
    task.manifest = StateManifest(files=tuple(files))
    task.checkpoints = Checkpoints(storage, JOB, TASK, tmp_path / "other" / "cache")
    new = task.slice(b="2")
    assert {file.run_id for file in new.files} == {None, "00000002-1"}
    task.checkpoints.restore(new, tmp_path / "there")
    assert contents(tmp_path / "there").keys() == {"a", "b"}


def sha256_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_only_new_files_are_uploaded_and_hashed(task, requests):
    first = task.slice(a="1")
    assert requests()["uploaded"] == sorted(file.name for file in first.files)
    second = task.slice(b="2")
    new = sorted(set(ssts(second)) - set(ssts(first)))
    assert set(ssts(first)) < set(ssts(second))
    seen = requests()
    assert [name for name in seen["uploaded"] if name.endswith(".sst")] == new
    # what was there is the very file that was hashed when it was made
    assert [name for name in seen["hashed"] if name.endswith(".sst")] == new
    assert not [name for name in seen["downloaded"] if name.endswith(".sst")]


def test_a_host_fetches_only_what_it_lacks(task, storage, tmp_path, requests):
    first = task.slice(a="1")
    other = Checkpoints(storage, JOB, TASK, tmp_path / "other")
    other.restore(first, tmp_path / "one")
    requests()
    second = task.slice(b="2")
    requests()
    other.restore(second, tmp_path / "two")
    downloaded = [name for name in requests()["downloaded"] if name.endswith(".sst")]
    assert downloaded == sorted(set(ssts(second)) - set(ssts(first)))


def test_a_lost_cache_costs_downloads_only(task, tmp_path):
    task.slice(a="1")
    shutil.rmtree(task.host / "cache")
    task.slice(b="2")
    task.checkpoints.restore(task.manifest, tmp_path / "there")
    assert contents(tmp_path / "there").keys() == {"a", "b"}


def test_an_impostor_with_the_same_name_and_size_is_noticed(task, storage, tmp_path):
    """Two attempts from one checkpoint give different files the same name: only the inode proves which one it is."""
    first = task.slice(a="1")
    name = ssts(first)[0]
    snapshot = tmp_path / "snapshot"
    task.checkpoints.restore(first, snapshot)
    content = (snapshot / name).read_bytes()
    (snapshot / name).unlink()
    (snapshot / name).write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    second = task.checkpoints.save(snapshot, first, run_id="00000002-1")
    told = {file.name: file for file in second.files}[name]
    assert told.size_bytes == len(content)
    assert told.sha256 == hashlib.sha256((snapshot / name).read_bytes()).hexdigest()
    assert storage.exists(f"{PREFIX}/{told.stored_name}")


@pytest.mark.parametrize("damage", ["missing", "truncated", "flipped", "longer"])
def test_damage_in_the_warehouse_is_never_used(task, storage, tmp_path, damage):
    manifest = task.slice(a="1", b="2")
    for number, file in enumerate(manifest.files):
        path = f"{PREFIX}/{file.stored_name}"
        good = storage.get(path)
        if not good:
            continue
        harm(storage, path, good, damage)
        checkpoints_elsewhere = Checkpoints(storage, JOB, TASK, tmp_path / f"cache{number}")
        target = tmp_path / f"target{number}"
        with pytest.raises(
            CorruptedDataError, match=f"{file.name} is (missing|damaged).*{file.stored_name}.*Next: see"
        ):
            checkpoints_elsewhere.restore(manifest, target)
        assert not target.exists()
        storage.put(path, good)
        checkpoints_elsewhere.restore(manifest, target)
        assert contents(target).keys() == {"a", "b"}


def harm(storage, path, good, damage):
    match damage:
        case "missing":
            storage.delete(path)
        case "truncated":
            storage.put(path, good[:-1])
        case "flipped":
            storage.put(path, good[:-1] + bytes([good[-1] ^ 0x10]))
        case "longer":
            storage.put(path, good + b"\0")


def test_damage_in_the_cache_is_mended_from_the_warehouse(task, tmp_path):
    manifest = task.slice(a="1")
    for cached in (task.host / "cache").iterdir():
        data = cached.read_bytes()
        cached.unlink()
        cached.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    task.checkpoints.restore(manifest, tmp_path / "there")
    assert contents(tmp_path / "there") == {"a": "1" * 1000}
    for cached in (task.host / "cache").iterdir():
        assert hashlib.sha256(cached.read_bytes()).hexdigest() == cached.name


def rot(cached: Path) -> None:
    """Changes a file as a failing disk does: nothing but its bytes."""
    before = cached.stat()
    with cached.open("r+b") as file:
        data = file.read()
        file.seek(0)
        file.write(bytes(byte ^ 0xFF for byte in data[: len(data) // 2]))
    os.utime(cached, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_bits_that_rot_in_the_cache_are_found_when_they_are_read_and_mended_after_that(task, tmp_path):
    manifest = task.slice(**{f"k{n}": str(n) for n in range(50)})
    for cached in (task.host / "cache").iterdir():
        rot(cached)
    task.checkpoints.restore(manifest, tmp_path / "rotten")
    with pytest.raises(CorruptedDataError):
        contents(tmp_path / "rotten")
    assert task.checkpoints.distrust()
    task.checkpoints.restore(manifest, tmp_path / "mended")
    assert len(contents(tmp_path / "mended")) == 50
    assert not task.checkpoints.distrust(), "that one was verified"


def test_what_was_verified_is_trusted_by_others_on_the_host_until_it_changes(task, storage, tmp_path, requests):
    def hashed_by_a_restore(name: str) -> list[str]:
        requests()
        Checkpoints(storage, JOB, TASK, task.host / "cache").restore(task.manifest, tmp_path / name)
        return [name for name in requests()["hashed"] if name.endswith(".sst")]

    manifest = task.slice(a="1")
    assert hashed_by_a_restore("one") == []
    (sst,) = (file for file in manifest.files if file.name.endswith(".sst"))
    cached = task.host / "cache" / sst.sha256
    os.utime(cached)
    assert hashed_by_a_restore("touched") == ssts(manifest)
    assert hashed_by_a_restore("again") == []
    copy = cached.read_bytes()
    cached.unlink()
    cached.write_bytes(copy)
    assert hashed_by_a_restore("replaced") == ssts(manifest)
    (task.host / "cache.verified.json").unlink()
    assert hashed_by_a_restore("without a record") == ssts(manifest)
    assert hashed_by_a_restore("with one again") == []


def test_what_the_database_writes_does_not_reach_the_cache(task, tmp_path):
    task.slice(a="1")
    for number in range(3):
        task.slice(**{f"k{number}": "x"})
        for cached in (task.host / "cache").iterdir():
            assert hashlib.sha256(cached.read_bytes()).hexdigest() == cached.name


def test_the_cache_keeps_two_checkpoints(task):
    manifests = [task.slice(**{f"k{number}": "x"}) for number in range(3)]
    kept = {file.sha256 for manifest in manifests[1:] for file in manifest.files}
    assert {entry.name for entry in (task.host / "cache").iterdir()} == kept


def test_without_hard_links_files_are_copied(task, tmp_path, monkeypatch):
    def refuse(self, target):
        raise OSError("no hard links here")

    first = task.slice(a="1")
    monkeypatch.setattr("pathlib.Path.hardlink_to", refuse)
    task.checkpoints.restore(first, tmp_path / "copied")
    assert contents(tmp_path / "copied") == {"a": "1" * 1000}
    again = task.checkpoints.save(tmp_path / "copied", first, run_id="00000002-1")
    assert {file for file in first.files if file.name.endswith(".sst")} <= set(again.files)


def test_an_interrupted_restore_leaves_nothing_that_counts(task, storage, tmp_path):
    manifest = task.slice(a="1")
    victim = f"{PREFIX}/{manifest.files[-1].stored_name}"
    data = storage.get(victim)
    storage.delete(victim)
    (task.host / "cache" / manifest.files[-1].sha256).unlink()
    target = tmp_path / "there"
    with pytest.raises(CorruptedDataError):
        task.checkpoints.restore(manifest, target)
    assert not (tmp_path / "there.partial").exists()
    (tmp_path / "there.partial").mkdir()
    (tmp_path / "there.partial" / "rubbish.sst").write_bytes(b"rubbish")
    storage.put(victim, data)
    task.checkpoints.restore(manifest, target)
    assert contents(target) == {"a": "1" * 1000}
    assert not (target / "rubbish.sst").exists()
    assert not (tmp_path / "there.partial").exists()


def test_a_directory_that_is_there_is_not_written_over(task, tmp_path):
    manifest = task.slice(a="1")
    (tmp_path / "there").mkdir()
    with pytest.raises(InternalError, match="exists already"):
        task.checkpoints.restore(manifest, tmp_path / "there")


@pytest.mark.parametrize("name", ["../escape", "a/b", "", ".", ".."])
def test_a_file_stays_in_its_directory(task, tmp_path, name):
    manifest = StateManifest(files=(StateFile(name=name, sha256="0" * 64, size_bytes=1),))
    with pytest.raises(CorruptedDataError, match="cannot be a file of a checkpoint"):
        task.checkpoints.restore(manifest, tmp_path / "there")


def test_inodes_are_shared(task, tmp_path):
    """One copy on disk for the cache, the directory of the database and RocksDB's own checkpoint."""
    manifest = task.slice(a="1")
    task.checkpoints.restore(manifest, tmp_path / "there")
    (name,) = ssts(manifest)
    sha256 = {file.name: file.sha256 for file in manifest.files}[name]
    assert (tmp_path / "there" / name).samefile(task.host / "cache" / sha256)


@pytest.mark.parametrize(
    ("head", "keep", "was", "oldest"),
    [(0, 3, 1, 1), (1, 3, 1, 1), (3, 3, 1, 1), (4, 3, 1, 2), (9, 1, 1, 9), (9, 0, 1, 9), (9, 5, 7, 7)],
)
def test_oldest_kept_by_count(head, keep, was, oldest):
    def unasked(n):
        raise AssertionError(n)

    assert oldest_kept(head, keep_commits=keep, oldest=was, made_ms=unasked, kept_since_ms=None) == oldest


@pytest.mark.parametrize(
    ("since", "keep", "was", "oldest"),
    [
        (0, 1, 1, 1),
        (19, 1, 1, 1),
        (20, 1, 1, 2),
        (49, 1, 1, 4),
        (90, 1, 1, 5),
        (90, 3, 1, 3),
        (0, 1, 4, 4),
        (90, 5, 2, 2),
    ],
)
def test_oldest_kept_by_age(since, keep, was, oldest):
    """Commit n of 5 is made at 10 n, and was the newest until commit n + 1."""
    found = oldest_kept(5, keep_commits=keep, oldest=was, made_ms=lambda n: 10 * n, kept_since_ms=since)
    assert found == oldest


def test_unneeded_files_are_told_apart_by_task_and_run():
    a, b = "a" * 64, "b" * 64
    names = [f"s/0_0/{a}.00000002-1", f"s/0_0/{b}.00000002-1", f"s/0_1/{a}.00000002-1", f"s/0_0/{a}.00000003-1"]
    stored = [StoredObject(path, 1, 0) for path in [*names, f"s/0_0/{a}", f"s/0_0/{a}.00000004-7"]]
    unneeded = unneeded_files(stored, {names[0]}, head=3)
    assert [entry.path for entry in unneeded] == [*names[1:], f"s/0_0/{a}"]
    assert [is_named_by_content(entry) for entry in unneeded] == [False, False, False, True]
    assert [e.path for e in unneeded_files(stored, {names[0], names[2]}, head=2)] == [names[1], f"s/0_0/{a}"]


def test_a_file_of_a_fork_lies_where_the_job_has_stored_it():
    own = StateFile(name="x", sha256="a" * 64, size_bytes=1, run_id="00000002-1")
    inherited = own.model_copy(update={"job": "other"})
    assert own.path("j", "0_0") == f"jobs/j/state/0_0/{own.stored_name}"
    assert inherited.path("j", "0_0") == f"jobs/other/state/0_0/{own.stored_name}"
