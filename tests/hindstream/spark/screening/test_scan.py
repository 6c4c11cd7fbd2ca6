"""A scan finds what there is, however little of the files it reads."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hindstream.spark.expectations.checks import Check
from hindstream.spark.expectations.flat_tables import flat_schema, open_staged, read_flat
from hindstream.spark.screening import scan as scan_module
from hindstream.spark.screening.scan import Scan
from hindstream.spark.screening.screen import screen_of
from hindstream.spark.screening.search import Kind, repeated_hashes
from statelib.columns.row_hash import hash_rows
from statelib.errors.kinds import CorruptedDataError
from statelib.storage import Storage
from statelib.topics.parquet.encodings import is_encoded
from statelib.topics.parquet.schema import topic_schema
from statelib.topics.parquet.writer import FileLimits, PartitionWriter

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from statelib.topics.files import ArchiveFile

INNER = pa.struct([("x", pa.float64()), ("s", pa.string())])
VALUE = pa.struct([("n", pa.int64()), ("in", INNER), ("tags", pa.list_(pa.string()))])
SCHEMA = topic_schema(pa.string(), VALUE)
UNIQUE, NOT_NULL, BETWEEN = (
    "compound_columns_to_be_unique",
    "column_values_to_not_be_null",
    "column_values_to_be_between",
)


def check(name: str, /, **kwargs: Any) -> Check:
    return Check(f"expect_{name}", kwargs, kwargs)


PLACES = check(UNIQUE, column_list=["partition", "offset"])


def staged(folder: Path, rows: Sequence[Any], step: int = 1, **limits: int) -> tuple[Storage, list[ArchiveFile]]:
    """The values of one partition, in files of 8 records and row groups of 4 unless ``limits`` says otherwise.

    ``step``: from one offset to the next.
    """
    warehouse = Storage(str(folder))
    table = pa.table({
        "offset": pa.array(range(0, step * len(rows), step), pa.int64()),
        "key": pa.array([f"k{n}" for n in range(len(rows))]),
        "value": pa.array(rows, VALUE),
        "timestamp": pa.array([0] * len(rows), pa.timestamp("ms", "UTC")),
    })  # fmt: skip
    sizes = FileLimits(**({"row_group_rows": 4, "file_rows": 8} | limits))
    with PartitionWriter(Storage(str(folder / "topics" / "t")), SCHEMA, 1, attempt="a", limits=sizes) as writer:
        writer.write(table)
        return warehouse, list(writer.close())


def scan(warehouse: Storage, *checks: Check) -> Scan:
    screen, screened, _ = screen_of(checks, flat_schema(SCHEMA))
    assert screened == list(checks)
    return Scan(warehouse, "t", SCHEMA, screen)


def found(scanned: Scan, files: Sequence[ArchiveFile], kind: Kind = Kind.ROWS) -> list[Any]:
    return [value for _, (what, _, value) in scanned(files) if what is kind]


def offsets(scanned: Scan, files: Sequence[ArchiveFile]) -> list[int]:
    return [offset for table in found(scanned, files) for offset in table.column("offset").to_pylist()]


def nothing_known(files: Sequence[ArchiveFile]) -> list[ArchiveFile]:
    return [file.model_copy(update={"sha256": None}) for file in files]


VALUES = st.none() | st.fixed_dictionaries({
    "n": st.none() | st.integers(-2, 2),
    "in": st.none()
    | st.fixed_dictionaries({
        "x": st.none() | st.sampled_from([float("nan"), -1.0, 0.0, 1.5]),
        "s": st.none() | st.sampled_from(["", "a", "b"]),
    }),
})  # fmt: skip
CHECKS = [
    *(check(NOT_NULL, column=name) for name in ("key", "value__n", "value__in__x", "value__in__s")),
    *(check("column_values_to_be_null", column=name) for name in ("key", "value__n", "value__in__x", "value__in__s")),
    check(BETWEEN, column="value__n", min_value=-1, max_value=1, strict_max=True),
    check(BETWEEN, column="value__in__x", min_value=0),
    check(BETWEEN, column="value__in__s", max_value="a"),
    check(BETWEEN, column="partition", min_value=2),
    check("column_values_to_be_in_set", column="value__in__s", value_set=["a", "b"]),
]


@given(rows=st.lists(VALUES, min_size=1, max_size=20))
def test_what_the_footer_rules_out_is_not_there(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, Any] | None]
) -> None:
    warehouse, files = staged(tmp_path_factory.mktemp("scan"), rows)
    for one in CHECKS:
        scanned = scan(warehouse, one)
        assert offsets(scanned, files) == offsets(scanned, nothing_known(files))
    everything = scan(warehouse, *CHECKS)
    assert pa.concat_tables(found(everything, files)).num_rows == len(rows)  # "partition" is out of bounds everywhere


def test_rows_that_are_found_are_whole(tmp_path: Path) -> None:
    rows = [{"n": n, "in": {"x": n / 2, "s": f"s{n}"}} for n in range(30)]
    warehouse, files = staged(tmp_path, rows)
    (table,) = found(scan(warehouse, check(BETWEEN, column="value__n", max_value=28)), files)
    whole = pa.concat_tables([flat for file in files for flat in read_flat(warehouse, "t", SCHEMA, file)])
    assert table == whole.slice(29)


FIRST_OF_FILE = 8  # the others are 4 and 5, the first and second row of a row group
ROWS = [{"n": n} for n in range(20)]


def test_offsets_ascend_and_need_no_hashes(tmp_path: Path) -> None:
    warehouse, files = staged(tmp_path, ROWS)
    assert list(scan(warehouse, PLACES)(files)) == []
    assert list(scan(warehouse, check(UNIQUE, column_list=["key", "value__n", "partition"]))(files)) == []


@pytest.mark.parametrize("step", [1, 2])
def test_offsets_without_holes_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    read: list[int] = []
    flat_row_group = scan_module.flat_row_group
    monkeypatch.setattr(scan_module, "flat_row_group", lambda *args: read.append(1) or flat_row_group(*args))
    warehouse, files = staged(tmp_path, ROWS, step)
    assert list(scan(warehouse, PLACES)(files)) == []
    assert len(read) == (0 if step == 1 else 5)


@pytest.mark.parametrize("at", [4, 5, FIRST_OF_FILE])
@pytest.mark.parametrize("value", ["the one before", "less", None, "no struct"])
def test_whole_numbers_that_do_not_ascend_are_hashed(tmp_path: Path, at: int, value: Any) -> None:
    instead = {"the one before": {"n": at - 1}, "less": {"n": -7}, None: {"n": None}, "no struct": None}[value]
    warehouse, files = staged(tmp_path, [*ROWS[:at], instead, *ROWS[at + 1 :]])
    scanned = scan(warehouse, check(UNIQUE, column_list=["partition", "value__n"], ignore_row_if="never"))
    (hashes,) = found(scanned, files, Kind.REPEATED)
    assert len(hashes) == (value == "the one before")
    if len(hashes):
        assert offsets(dataclasses.replace(scanned, repeated={0: hashes}), files) == [at - 1, at]


def test_a_row_that_fails_twice_is_found_once(tmp_path: Path) -> None:
    warehouse, files = staged(tmp_path, [*ROWS, {"n": 19}])
    scanned = scan(
        warehouse,
        check(UNIQUE, column_list=["partition", "value__n"]),
        check(BETWEEN, column="value__n", max_value=18),
    )
    (hashes,) = found(scanned, files, Kind.REPEATED)
    assert offsets(dataclasses.replace(scanned, repeated={0: hashes}), files) == [19, 20]


def test_files_in_another_order_do_not_ascend(tmp_path: Path) -> None:
    warehouse, files = staged(tmp_path, ROWS)
    (hashes,) = found(scan(warehouse, PLACES), files[::-1], Kind.REPEATED)
    assert list(hashes) == []
    (hashes,) = found(scan(warehouse, PLACES), [*files, files[0]], Kind.REPEATED)
    assert len(hashes) == 8


def test_uniqueness_over_all_partitions_takes_hashes(tmp_path: Path) -> None:
    warehouse, files = staged(tmp_path, ROWS)
    scanned = dataclasses.replace(scan(warehouse, check(UNIQUE, column_list=["offset"])), buckets=3)
    by_task: dict[int, list[int]] = {}
    for task, (kind, number, hashes) in scanned(files):
        assert (kind, number) == (Kind.HASHES, 0)
        by_task.setdefault(task, []).extend(hashes.tolist())
    assert sorted(by_task) == [0, 1, 2]
    assert all(value % 3 == task for task, values in by_task.items() for value in values)
    assert len({value for values in by_task.values() for value in values}) == len(ROWS)


def test_rows_in_order_of_number_and_key_take_hashes_of_their_keys_alone(tmp_path: Path) -> None:
    rows = [{"n": n // 4, "in": {"s": f"s{n % 4}"}} for n in range(16)]
    once = check(UNIQUE, column_list=["value__in__s", "value__n", "value__in__x"], ignore_row_if="never")
    warehouse, files = staged(tmp_path / "good", rows, row_group_rows=8)
    scanned = dataclasses.replace(scan(warehouse, once), buckets=3)
    ((task, (kind, number, keys)),) = scanned(files)
    assert (task, kind, number) == (0, Kind.KEYS, 0)
    assert keys.tolist() == sorted(hash_rows([pa.array(["s0", "s1", "s2", "s3"])]).tolist())
    undecided = dataclasses.replace(scanned, undecided=frozenset({0}), buckets=1)
    assert len(np.concatenate(found(undecided, files, Kind.HASHES))) == 16
    warehouse, files = staged(tmp_path / "bad", [*rows, rows[15]], row_group_rows=8)
    assert found(scan(warehouse, once), files, Kind.KEYS) == []
    assert len(repeated_hashes(found(scan(warehouse, once), files, Kind.HASHES))) == 1


def test_texts_are_the_same_however_a_file_has_them(tmp_path: Path) -> None:
    encoded = [{"n": n, "in": {"s": f"s{n % 4}"}} for n in range(8)]
    plain = [{"n": n, "in": {"s": f"s{n}"}} for n in range(3, 11)]
    warehouse, files = staged(tmp_path, encoded + plain, row_group_rows=8)
    has_dictionary = []
    for file in files:
        with open_staged(warehouse, "t", file) as parquet:
            has_dictionary.append(is_encoded(parquet.metadata, "value.in.s"))
    assert has_dictionary == [True, False]
    scanned = scan(warehouse, check(UNIQUE, column_list=["value__n", "value__in__s"]))
    hashes = repeated_hashes(found(scanned, files, Kind.HASHES))
    assert offsets(dataclasses.replace(scanned, repeated={0: hashes}), files) == [3, 8]


def test_a_hash_is_repeated_when_two_files_have_it() -> None:
    hashes = [np.array(values, np.uint64) for values in ([3, 1, 2], [], [3, 5, 5, 5])]
    assert list(repeated_hashes(hashes)) == [3, 5]


def test_a_column_that_the_files_lack_is_missing_everywhere(tmp_path: Path) -> None:
    warehouse, files = staged(tmp_path, ROWS)
    value = pa.struct([*VALUE, ("more", pa.int64())])
    schema = topic_schema(pa.string(), value)
    for of, expected in ((files, 20), (nothing_known(files), 20)):
        for name, rows in (("value__more", expected), ("value__n", 0)):
            screen, _, _ = screen_of([check(NOT_NULL, column=name)], flat_schema(schema))
            tables = found(Scan(warehouse, "t", schema, screen), of)
            assert sum(len(table) for table in tables) == rows


def error(scanned: Scan, files: Sequence[ArchiveFile]) -> CorruptedDataError | None:
    raised: list[CorruptedDataError] = found(scanned, files, Kind.ERROR)
    return raised[0] if raised else None


def test_damage_anywhere_is_found(tmp_path: Path) -> None:
    """Also in columns, pages and statistics that the scan does not look at."""
    warehouse, files = staged(tmp_path, [{"tags": ["a", "b"]}, {"tags": []}] * 4)
    path = tmp_path / "topics" / "t" / files[0].path
    whole = path.read_bytes()
    scanned = scan(warehouse, PLACES)
    assert error(scanned, files) is None
    for position in range(0, len(whole), 7):
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 1]) + whole[position + 1 :])
        assert "its bytes are not those that were written" in str(error(scanned, files)), position
    path.write_bytes(whole + b"\0")
    assert "its bytes are not those that were written" in str(error(scanned, files))


def test_without_a_digest_all_pages_are_checked(tmp_path: Path) -> None:
    warehouse, files = staged(tmp_path, [{"n": n, "in": {"x": n / 2, "s": "text"}} for n in range(8)])
    path = tmp_path / "topics" / "t" / files[0].path
    data = bytearray(path.read_bytes())
    data[data.index(b"text")] ^= 1
    path.write_bytes(data)
    assert "cannot be read" in str(error(scan(warehouse, PLACES), nothing_known(files)))
