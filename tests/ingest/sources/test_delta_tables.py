"""A Delta table's rows are those of its log: what was replaced is not loaded, what was rewritten not twice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from statelib.errors.kinds import ConfigurationError, InputError
from statelib.job.lake_topic import LakeTopic
from tests.ingest.lake import load, records_of

if TYPE_CHECKING:
    from pathlib import Path

AT = 1_356_998_400_000


def rows(first: int, count: int) -> pa.Table:
    numbers = range(first, first + count)
    return pa.table(
        {"n": list(numbers), "at": [AT + n for n in numbers], "kind": ["a b" if n % 2 else "ü" for n in numbers]}
    )


def numbers_in(warehouse: Path) -> list[int]:
    return sorted(record["value"]["n"] for record in records_of(warehouse, "t"))


def topic(table: Path, **options: Any) -> LakeTopic:
    return LakeTopic("t", str(table), timestamp="at", partitions=1, **options)


@pytest.mark.parametrize("partition_by", [None, ["kind"]])
def test_rows_that_were_added_are_loaded_once(tmp_path: Path, partition_by: list[str] | None) -> None:
    table = tmp_path / "table"
    write_deltalake(table, rows(50, 9), partition_by=partition_by)
    write_deltalake(table, rows(0, 3), mode="overwrite", partition_by=partition_by)
    load(topic(table), tmp_path / "w")
    assert numbers_in(tmp_path / "w") == [0, 1, 2]
    assert {record["value"]["kind"] for record in records_of(tmp_path / "w", "t")} == {"a b", "ü"}
    write_deltalake(table, rows(3, 2), mode="append", partition_by=partition_by)
    DeltaTable(table).optimize.compact()
    write_deltalake(table, rows(5, 1), mode="append", partition_by=partition_by)
    done = load(topic(table), tmp_path / "w")
    assert (done.records, numbers_in(tmp_path / "w")) == (3, [0, 1, 2, 3, 4, 5])
    assert load(topic(table), tmp_path / "w").number is None


def test_rows_of_a_version(tmp_path: Path) -> None:
    table = tmp_path / "table"
    write_deltalake(table, rows(0, 3))
    write_deltalake(table, rows(3, 3), mode="append")
    load(LakeTopic("t", f"delta:{table}@0", timestamp="at"), tmp_path / "w")
    assert numbers_in(tmp_path / "w") == [0, 1, 2]
    load(LakeTopic("t", f"delta:{table}", timestamp="at"), tmp_path / "w")
    assert numbers_in(tmp_path / "w") == [0, 1, 2, 3, 4, 5]
    with pytest.raises(ConfigurationError, match="cannot be read"):
        load(LakeTopic("t", f"delta:{table}@7", timestamp="at"), tmp_path / "w")
    with pytest.raises(ConfigurationError, match="no Delta table"):
        load(LakeTopic("t", f"delta:{tmp_path}", timestamp="at"), tmp_path / "w")


def test_rows_that_were_deleted_after_they_were_loaded_are_told(tmp_path: Path) -> None:
    table = tmp_path / "table"
    write_deltalake(table, rows(0, 3))
    load(topic(table), tmp_path / "w")
    DeltaTable(table).delete("n = 1")
    with pytest.raises(InputError, match="have been deleted or updated in version 1"):
        load(topic(table), tmp_path / "w")


def test_rows_that_were_rewritten_and_then_deleted_are_told(tmp_path: Path) -> None:
    table = tmp_path / "table"
    write_deltalake(table, rows(0, 3))
    write_deltalake(table, rows(3, 3), mode="append")
    load(topic(table), tmp_path / "w")
    DeltaTable(table).optimize.compact()
    assert load(topic(table), tmp_path / "w").number is None
    DeltaTable(table).delete("n = 1")
    with pytest.raises(InputError, match="deleted or updated in version 3"):
        load(topic(table), tmp_path / "w")


def test_rows_that_were_added_and_deleted_between_loads_never_come(tmp_path: Path) -> None:
    table = tmp_path / "table"
    write_deltalake(table, rows(0, 3))
    load(topic(table), tmp_path / "w")
    write_deltalake(table, rows(3, 3), mode="append")
    DeltaTable(table).delete("n = 4")
    load(topic(table), tmp_path / "w")
    assert numbers_in(tmp_path / "w") == [0, 1, 2, 3, 5]


@pytest.mark.parametrize("rewritten_again", [False, True])
def test_rows_that_were_rewritten_are_known_to_later_loads_too(tmp_path: Path, *, rewritten_again: bool) -> None:
    """What an earlier load has found to be rewritten, a later one cannot see in the log any more."""
    table = tmp_path / "table"
    for n in range(3):
        write_deltalake(table, rows(n, 1), mode="append")
    load(topic(table), tmp_path / "w")
    DeltaTable(table).optimize.compact()
    write_deltalake(table, rows(3, 1), mode="append")
    assert load(topic(table), tmp_path / "w").records == 1
    if rewritten_again:
        DeltaTable(table).optimize.compact()
        write_deltalake(table, rows(4, 1), mode="append")
        assert load(topic(table), tmp_path / "w").records == 1
    DeltaTable(table).delete("n = 1")
    with pytest.raises(InputError, match="deleted or updated"):
        load(topic(table), tmp_path / "w")


def test_files_that_were_loaded_may_be_gone(tmp_path: Path) -> None:
    table = tmp_path / "table"
    write_deltalake(table, rows(0, 1))
    write_deltalake(table, rows(1, 1), mode="append")
    load(topic(table), tmp_path / "w")
    DeltaTable(table).optimize.compact()
    DeltaTable(table).vacuum(0, enforce_retention_duration=False, dry_run=False)
    write_deltalake(table, rows(2, 1), mode="append")
    load(topic(table), tmp_path / "w")
    assert numbers_in(tmp_path / "w") == [0, 1, 2]
    assert load(topic(table), tmp_path / "w").number is None
