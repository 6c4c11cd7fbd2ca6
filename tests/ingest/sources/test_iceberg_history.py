"""Rows that an Iceberg table has had since it was loaded come once; rows that are gone are told."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table.snapshots import Operation

from statelib.errors.fault_points import observed
from statelib.errors.kinds import InputError
from tests.ingest.iceberg import commit_files, data_files
from tests.ingest.lake import load, records_of
from tests.ingest.sources.iceberg_orders import NAME, numbers_in, rows, table_of, topic

if TYPE_CHECKING:
    from pathlib import Path

    from pyiceberg.table import Table

pytestmark = pytest.mark.thorough


@pytest.mark.parametrize("version", ["1", "2"])
def test_rows_that_were_added_are_loaded_once(tmp_path: Path, catalog: SqlCatalog, version: str) -> None:
    table = table_of(catalog, rows(50, 9), properties={"format-version": version})
    table.overwrite(rows(0, 3))
    done = load(topic(), tmp_path / "w")
    assert (done.records, len(done.files), numbers_in(tmp_path / "w")) == (3, 1, [0, 1, 2])
    assert {record["value"]["kind"] for record in records_of(tmp_path / "w", "t")} == {"a b", "ü"}
    table.append(rows(3, 2))
    table.append(rows(5, 1))
    done = load(topic(), tmp_path / "w")
    assert (done.records, done.known, numbers_in(tmp_path / "w")) == (3, 1, [0, 1, 2, 3, 4, 5])
    assert load(topic(), tmp_path / "w").number is None


def test_rows_that_were_rewritten_are_not_new(tmp_path: Path, catalog: SqlCatalog) -> None:
    """Neither those that were loaded, nor those that came since and were rewritten together with them."""
    table = table_of(catalog, rows(0, 3))
    load(topic(), tmp_path / "w")
    commit_files(table, Operation.REPLACE, data_files(table), [rows(0, 3)])
    assert load(topic(), tmp_path / "w").number is None
    table.append(rows(3, 2))
    table.append(rows(5, 2))
    commit_files(table, Operation.REPLACE, data_files(table)[1:], [rows(3, 4)])  # of new rows alone
    table.append(rows(7, 2))
    commit_files(table, Operation.REPLACE, data_files(table), [rows(0, 9)])
    table.append(rows(9, 1))
    done = load(topic(), tmp_path / "w")
    assert (done.records, numbers_in(tmp_path / "w")) == (7, list(range(10)))
    commit_files(table, Operation.REPLACE, data_files(table), [rows(0, 10)])
    assert load(topic(), tmp_path / "w").number is None
    table.append(rows(10, 1))
    load(topic(), tmp_path / "w")
    assert numbers_in(tmp_path / "w") == list(range(11))


@pytest.mark.parametrize("loads_between", [False, True])
def test_rows_that_were_deleted_after_they_were_loaded_are_told(
    tmp_path: Path, catalog: SqlCatalog, loads_between: bool
) -> None:
    """Also after they have been rewritten into another file, and after a load has been there since."""
    table = table_of(catalog, rows(0, 3), rows(3, 3))
    load(topic(), tmp_path / "w")
    commit_files(table, Operation.REPLACE, data_files(table), [rows(0, 6)])
    if loads_between:
        table.append(rows(6, 3))
        assert load(topic(), tmp_path / "w").records == 3
    table.refresh().delete("n = 1")
    newest = table.refresh().metadata.current_snapshot_id
    with pytest.raises(InputError, match=f"have been deleted or updated in snapshot {newest}") as caught:
        load(topic(), tmp_path / "w")
    assert "replace-" in caught.value.place["file"]
    assert caught.value.place["source"] == NAME


def test_rows_that_were_added_and_deleted_between_loads_never_come(tmp_path: Path, catalog: SqlCatalog) -> None:
    table = table_of(catalog, rows(0, 3))
    load(topic(), tmp_path / "w")
    table.append(rows(3, 3))
    table.append(rows(6, 3))
    table.delete("n = 4")
    table.delete("n >= 6")
    load(topic(), tmp_path / "w")
    assert numbers_in(tmp_path / "w") == [0, 1, 2, 3, 5]


def test_snapshots_may_expire_where_nothing_was_rewritten(tmp_path: Path, catalog: SqlCatalog) -> None:
    table = table_of(catalog, rows(0, 3))
    load(topic(), tmp_path / "w")
    for n in (3, 4):
        table.append(rows(n, 1))
    expire(table)
    load(topic(), tmp_path / "w")
    assert numbers_in(tmp_path / "w") == [0, 1, 2, 3, 4]
    commit_files(table, Operation.REPLACE, data_files(table), [rows(0, 5)])
    table.append(rows(5, 1))
    expire(table)
    with pytest.raises(InputError, match="does not tell any more"):
        load(topic(), tmp_path / "w")


def expire(table: Table) -> None:
    """All snapshots but the newest one."""
    old = [one.snapshot_id for one in table.refresh().snapshots()]
    old.remove(table.metadata.current_snapshot_id)
    table.maintenance.expire_snapshots().by_ids(old).commit()


def test_a_table_that_was_made_anew_or_rolled_back_is_told(tmp_path: Path, catalog: SqlCatalog) -> None:
    table = table_of(catalog, rows(0, 3), rows(3, 3))
    load(topic(), tmp_path / "w")
    table.manage_snapshots().rollback_to_snapshot(table.snapshots()[0].snapshot_id).commit()
    assert load(topic(), tmp_path / "w").number is None
    table.append(rows(6, 1))
    with pytest.raises(InputError, match="does not tell any more"):
        load(topic(), tmp_path / "w")
    catalog.drop_table("shop.orders")
    table_of(catalog, rows(0, 3))
    with pytest.raises(InputError, match="made anew"):
        load(topic(), tmp_path / "w")


class Killed(BaseException):
    """Ends a load at a step."""


@pytest.mark.parametrize("kill_at", ["ingest.before-account", "ingest.accounted", "ingest.committed"])
def test_a_load_that_is_killed_goes_on_with_the_same_call(tmp_path: Path, catalog: SqlCatalog, kill_at: str) -> None:
    table = table_of(catalog, rows(0, 3))
    load(topic(), tmp_path / "w")
    table.append(rows(3, 3))
    commit_files(table, Operation.REPLACE, data_files(table), [rows(0, 6)])

    def kill(name: str) -> None:
        if name == kill_at:
            raise Killed

    with observed(kill), pytest.raises(Killed):
        load(topic(), tmp_path / "w")
    table.refresh().append(rows(6, 1))
    load(topic(), tmp_path / "w")
    assert numbers_in(tmp_path / "w") == [0, 1, 2, 3, 4, 5, 6]
    assert load(topic(), tmp_path / "w").number is None
