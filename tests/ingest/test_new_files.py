"""Each content is loaded once, whatever becomes of the files' paths and times."""

from __future__ import annotations

import os
import shutil
import uuid
from typing import TYPE_CHECKING

import obstore
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from statelib.errors.kinds import InputError
from statelib.ingest import ledger
from statelib.job.lake_topic import LakeTopic
from statelib.storage.clients import client
from tests.ingest.lake import FIRST_MS, a_topic, load, records_of, write_file

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


BUCKET = "warehouse"


def a_file(path: Path, n: int) -> Path:
    return write_file(path, [{"user": f"u{n}", "at": FIRST_MS + n, "n": n}])


def numbers(warehouse: Path) -> list[int]:
    return sorted(record["value"]["n"] for record in records_of(warehouse, "t"))


def touch(path: Path) -> None:
    time_ns = path.stat().st_mtime_ns + 1_000_000_000
    os.utime(path, ns=(time_ns, time_ns))


ACTION = st.tuples(
    st.sampled_from(["add", "add", "copy", "touch", "move", "move away and back", "load"]), st.integers(0, 99)
)


@pytest.mark.thorough
@settings(max_examples=30)
@given(actions=st.lists(ACTION, min_size=3, max_size=14), suffix=st.sampled_from(["csv", "parquet", "jsonl.gz"]))
def test_whatever_becomes_of_the_files(
    tmp_path_factory: pytest.TempPathFactory, actions: list[tuple[str, int]], suffix: str
) -> None:
    folder = tmp_path_factory.mktemp("files")
    files: list[Path] = []
    expected: list[int] = []
    waiting: list[int] = []
    names = (folder / f"lake/{n % 3}/{n:03d}.{suffix}" for n in range(1000))
    content: dict[Path, int] = {}
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(ledger, "_FULL_EVERY", 3)
        for n, (action, which) in enumerate([("add", 0), *actions, ("load", 0)]):
            path = files[which % len(files)] if files else None
            if action == "add" or path is None:
                files.append(a_file(next(names), n))
                content[files[-1]] = n
                waiting.append(n)
            elif action == "copy":  # a file of its own, as far as anybody can tell
                files.append(next(names))
                files[-1].parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, files[-1])
                content[files[-1]] = content[path]
                waiting.append(content[path])
            elif action == "touch":
                touch(path)
            elif action == "move":
                to = next(names)
                to.parent.mkdir(parents=True, exist_ok=True)
                path.rename(to)
                files[files.index(path)] = to
                content[to] = content.pop(path)
            elif action == "move away and back":
                data = path.read_bytes()
                path.unlink()
                path.write_bytes(data)
            else:
                load(a_topic(folder), folder / "w")
                expected += waiting
                waiting = []
    assert numbers(folder / "w") == sorted(expected)


def test_a_moved_lake_is_known(tmp_path: Path) -> None:
    for n in range(5):
        a_file(tmp_path / f"lake/{n}.csv", n)
    load(a_topic(tmp_path), tmp_path / "w")
    (tmp_path / "lake").rename(tmp_path / "moved")
    a_file(tmp_path / "moved/5.csv", 5)
    topic = LakeTopic("t", f"{tmp_path}/moved", key="user", timestamp="at")
    loaded = load(topic, tmp_path / "w")
    assert (loaded.records, loaded.known, loaded.moved) == (1, 5, 5)
    assert numbers(tmp_path / "w") == [0, 1, 2, 3, 4, 5]
    a_file(tmp_path / "moved/6.csv", 6)
    loaded = load(topic, tmp_path / "w")
    assert (loaded.records, loaded.known, loaded.moved) == (1, 6, 0)  # and not asked for its content again


def test_a_copy_is_loaded_and_told(tmp_path: Path) -> None:
    first = a_file(tmp_path / "lake/a.csv", 1)
    load(a_topic(tmp_path), tmp_path / "w")
    shutil.copy(first, tmp_path / "lake/b.csv")
    loaded = load(a_topic(tmp_path), tmp_path / "w")
    assert numbers(tmp_path / "w") == [1, 1]
    assert loaded.copies == ((f"{tmp_path}/lake/b.csv", f"{tmp_path}/lake/a.csv"),)


def test_other_content_of_the_same_size_is_a_change(tmp_path: Path) -> None:
    file = a_file(tmp_path / "lake/a.csv", 1)
    load(a_topic(tmp_path), tmp_path / "w")
    size_bytes = file.stat().st_size
    a_file(file, 2)
    touch(file)
    assert file.stat().st_size == size_bytes
    with pytest.raises(InputError, match="has changed since it was loaded"):
        load(a_topic(tmp_path), tmp_path / "w")


def test_the_same_rows_in_the_folder_of_another_day_are_others(tmp_path: Path) -> None:
    """A folder's field is one of the rows."""
    file = a_file(tmp_path / "lake/day=2013-01-01/a.csv", 1)
    load(a_topic(tmp_path), tmp_path / "w")
    other = tmp_path / "lake/day=2013-01-02/a.csv"
    other.parent.mkdir()
    file.rename(other)
    assert load(a_topic(tmp_path), tmp_path / "w").records == 1


def test_names_that_are_values_make_others_of_the_same_rows(tmp_path: Path) -> None:
    topic = a_topic(tmp_path, key="file.name")
    file = a_file(tmp_path / "lake/a.csv", 1)
    load(topic, tmp_path / "w")
    file.rename(tmp_path / "lake/b.csv")
    assert load(topic, tmp_path / "w").records == 1
    assert sorted(record["key"] for record in records_of(tmp_path / "w", "t")) == ["a.csv", "b.csv"]


@pytest.mark.thorough
def test_objects_are_known_by_their_etags(tmp_path: Path, s3_options: Mapping[str, str]) -> None:
    store, root = client(f"s3://{BUCKET}", s3_options), uuid.uuid4().hex
    data = a_file(tmp_path / "a.csv", 1).read_bytes()
    obstore.put(store, f"{root}/a.csv", data)
    topic = LakeTopic("t", f"s3://{BUCKET}/{root}", key="user", timestamp="at")
    load(topic, tmp_path / "w", options=s3_options)
    obstore.put(store, f"{root}/a.csv", data)  # put back
    obstore.copy(store, f"{root}/a.csv", f"{root}/copied.csv")
    assert load(topic, tmp_path / "w", options=s3_options).records == 1  # both are there
    obstore.rename(store, f"{root}/a.csv", f"{root}/renamed.csv")
    assert load(topic, tmp_path / "w", options=s3_options).number is None
    assert numbers(tmp_path / "w") == [1, 1]
