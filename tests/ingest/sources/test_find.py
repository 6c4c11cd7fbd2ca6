"""Which files a source stands for, on disk and in an object store."""

from __future__ import annotations

import datetime as dt
import os
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

import obstore
import pyarrow as pa
import pytest
from deltalake import write_deltalake

from statelib.errors.kinds import ConfigurationError, InputError, RetryableError
from statelib.ingest.load import Load, load_here
from statelib.ingest.sources.find import absolute, find_files
from statelib.ingest.sources.opening import open_file
from statelib.ingest.stages import no_progress
from statelib.job.lake_topic import LakeTopic
from statelib.storage import Storage
from statelib.storage.clients import client
from tests.ingest.lake import NOW_MS, records_of, write_file

if TYPE_CHECKING:
    from collections.abc import Mapping

BUCKET = "warehouse"
FILES = ("a.csv", "b/c.csv", "b/d/e.csv.gz", "b/_hidden.csv", ".git/x.csv", "ü b/50 %+.csv", "notes.txt")
MEANT = {
    "": ["a.csv", "b/c.csv", "b/d/e.csv.gz", "notes.txt", "ü b/50 %+.csv"],
    "a.csv": ["a.csv"],
    "*.csv": ["a.csv"],
    "*/*.csv": ["b/c.csv", "ü b/50 %+.csv"],
    "**/*.csv": ["a.csv", "b/c.csv", "ü b/50 %+.csv"],
    "b/**": ["b/c.csv", "b/d/e.csv.gz"],
    "b/**/e.*": ["b/d/e.csv.gz"],
    "?.csv": ["a.csv"],
    "[ab]*/**": ["b/c.csv", "b/d/e.csv.gz"],
    "b/_hidden.csv": ["b/_hidden.csv"],
}


@pytest.mark.parametrize("source", MEANT)
def test_sources_on_disk(tmp_path: Path, source: str) -> None:
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("n\n1\n")
    found = find_files([f"{tmp_path}/{source}", f"file://{tmp_path}/a.csv"], {})
    names = [file.path.removeprefix(f"{tmp_path}/") for file in found]
    assert names == sorted({*MEANT[source], "a.csv"})
    for nothing in ("none.csv", "x/**", "none/"):
        with pytest.raises(ConfigurationError, match="there is no such file"):
            find_files([f"{tmp_path}/{nothing}"], {})


def found_below(folder: Path) -> list[str]:
    return [file.path.removeprefix(f"{folder}/") for file in find_files([str(folder)], {})]


def test_links_are_followed_and_each_file_is_taken_once(tmp_path: Path) -> None:
    lake, other = tmp_path / "lake", tmp_path / "other"
    for path in (lake / "2013/a.csv", other / "b.csv", other / "deep/c.csv"):
        path.parent.mkdir(parents=True)
        path.write_text("n\n1\n")
    (lake / "0000").symlink_to(lake / "2013")
    (lake / "2014").symlink_to(other)
    (lake / "2015").symlink_to(other / "deep")
    (other / "back").symlink_to(lake)
    (other / "deep/loop").symlink_to(other / "deep")
    (lake / "0.csv").symlink_to(lake / "2013/a.csv")
    (lake / "d.csv").symlink_to(other / "b.csv")
    assert found_below(lake) == ["2013/a.csv", "2014/b.csv", "2014/deep/c.csv"]
    (lake / "gone.csv").symlink_to(lake / "nothing.csv")
    with pytest.raises(InputError, match="No such file") as caught:
        found_below(lake)
    assert caught.value.place["file"] == str(lake / "gone.csv")


def test_what_is_no_file_is_told(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.csv")
    with pytest.raises(InputError, match="is no file"):
        found_below(tmp_path)


def test_a_name_that_is_no_text_is_told(tmp_path: Path) -> None:
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.csv")).write_text("n\n1\n")
    with pytest.raises(InputError, match="no text in UTF-8"):
        found_below(tmp_path)


def test_a_name_that_no_file_can_have_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="File name too long"):
        find_files([f"{tmp_path}/{'x' * 300}.csv"], {})


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_that_may_not_be_read_is_told(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir(mode=0)
    with pytest.raises(InputError, match="Permission denied"):
        found_below(tmp_path)


def test_a_folder_that_fails_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.csv").write_text("n\n1\n")
    (tmp_path / "b").mkdir()
    scan = os.scandir

    def fails(path: str) -> object:
        if str(path).endswith("/b"):
            raise PermissionError(13, "Permission denied", path)
        return scan(path)

    monkeypatch.setattr(os, "scandir", fails)
    with pytest.raises(InputError, match="Permission denied") as caught:
        found_below(tmp_path)
    assert caught.value.place["file"] == str(tmp_path / "b")


def test_a_file_that_changes_while_it_is_read_ends_the_load(tmp_path: Path) -> None:
    path = write_file(tmp_path / "lake/a.jsonl", [{"n": n, "at": NOW_MS} for n in range(3)])
    load = Load(LakeTopic("t", str(path), timestamp="at"), Storage(str(tmp_path / "w")), {}, "fail", "0" * 15, NOW_MS)
    with path.open("a") as file:
        file.write(f'{{"n": 4, "at": {NOW_MS}}}\n')
    with pytest.raises(RetryableError, match="has changed while it was read"):
        load_here(load, Storage(str(tmp_path / "spill")), 1 << 20, no_progress)
    load = Load(LakeTopic("t", str(path), timestamp="at"), Storage(str(tmp_path / "w")), {}, "fail", "1" * 15, NOW_MS)
    assert load_here(load, Storage(str(tmp_path / "spill")), 1 << 20, no_progress).records == 4


def test_a_file_that_is_gone_is_named(tmp_path: Path) -> None:
    path = write_file(tmp_path / "a.csv", [{"n": 1}])
    (file,) = find_files([str(path)], {})
    path.unlink()
    with pytest.raises(InputError, match="No such file") as caught:
        open_file(file, {})
    assert caught.value.place["file"] == str(path)


def test_sources_in_an_object_store(s3_options: Mapping[str, str], tmp_path: Path) -> None:
    root = f"s3://{BUCKET}/{uuid.uuid4().hex}"
    store = client(f"s3://{BUCKET}", s3_options)
    rows = {"a.csv": 1, "x[1] #?.csv": 9, "b/c.jsonl": 2, "b/d/e.parquet": 3, "b/_hidden.csv": 4, "ü b/50 %+.csv.gz": 5}
    rows |= {"f.avro": 6, "g.json": 7, "h.jsonl.zst": 8}
    for name, n in rows.items():
        path = write_file(tmp_path / "lake" / name, [{"n": n, "at": NOW_MS + n}])
        obstore.put(store, f"{root.removeprefix(f's3://{BUCKET}/')}/{name}", path.read_bytes())
    for source, meant in (
        ("", [1, 2, 3, 5, 6, 7, 8, 9]), ("/b", [2, 3]), ("/**/*.csv*", [1, 5, 9]), ("/b/c.jsonl", [2]),
        ("/x[1] #?.csv", [9]),
    ):  # fmt: skip
        topic = LakeTopic("t", f"{root}{source}", timestamp="at", partitions=1)
        warehouse = tmp_path / f"w{len(meant)}{meant[0]}"
        load = Load(topic, Storage(str(warehouse)), s3_options, "fail", "0" * 15, NOW_MS)
        load_here(load, Storage(str(tmp_path / "spill")), 1 << 20, no_progress)
        assert [record["value"]["n"] for record in records_of(warehouse, "t")] == meant
    with pytest.raises(ConfigurationError, match="there is no such file"):
        find_files([f"{root}/none"], s3_options)


def test_folders_and_objects_in_an_object_store_tell_fields(s3_options: Mapping[str, str], tmp_path: Path) -> None:
    name = f"{uuid.uuid4().hex}/dt=2013-01-01/country=a%2Fb/a.jsonl"
    store = client(f"s3://{BUCKET}", s3_options)
    obstore.put(store, name, b'{"n": 1}\n')
    written = obstore.head(store, name)["last_modified"]
    topic = LakeTopic("t", f"s3://{BUCKET}/{name.partition('/')[0]}", key="country", timestamp="file.modified")
    load = Load(topic, Storage(str(tmp_path / "w")), s3_options, "fail", "0" * 15, NOW_MS)
    load_here(load, Storage(str(tmp_path / "spill")), 1 << 20, no_progress)
    (record,) = records_of(tmp_path / "w", "t")
    found = (record["key"], record["timestamp"], record["value"])
    assert found == ("a/b", round(written.timestamp() * 1000), {"n": 1, "dt": dt.date(2013, 1, 1)})


def test_a_delta_table_in_an_object_store(s3_options: Mapping[str, str], tmp_path: Path) -> None:
    root = f"s3://{BUCKET}/{uuid.uuid4().hex}"
    for n in (1, 2):
        table = pa.table({"n": [n], "at": [NOW_MS + n]})
        write_deltalake(root, table, mode="overwrite" if n == 1 else "append", storage_options=dict(s3_options))
    topic = LakeTopic("t", root, timestamp="at", partitions=1)
    load = Load(topic, Storage(str(tmp_path / "w")), s3_options, "fail", "0" * 15, NOW_MS)
    load_here(load, Storage(str(tmp_path / "spill")), 1 << 20, no_progress)
    assert [record["value"]["n"] for record in records_of(tmp_path / "w", "t")] == [1, 2]


@pytest.mark.parametrize(
    ("source", "meant"),
    [
        ("a/*.csv", "{}/a/*.csv"),
        ("delta:a@3", "delta:{}/a@3"),
        ("iceberg:./a@3", "iceberg:{}/a@3"),
        ("iceberg:a", "iceberg:{}/a"),
        ("iceberg:prod.shop.a@3", "iceberg:prod.shop.a@3"),
        ("iceberg:s3://lake/a", "iceberg:s3://lake/a"),
        ("sql:SELECT * FROM a", "sql:SELECT * FROM a"),
        ("s3://lake/a", "s3://lake/a"),
    ],
)
def test_a_source_that_is_kept_means_the_same_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, meant: str
) -> None:
    (tmp_path / "a").mkdir()
    monkeypatch.chdir(tmp_path)
    assert absolute(source) == meant.format(tmp_path)
