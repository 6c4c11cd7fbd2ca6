"""However the year is cut, and whoever runs the tasks: the same records."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from hindstream.demo import NAME
from hindstream.demo.run import MONTH_ENDS_MS
from statelib.commits import CommitLog, NothingToDo
from tests.hindstream.demo.replay import equal_bytes, published, replay

if TYPE_CHECKING:
    import pyarrow as pa

    from statelib.storage import Storage

pytestmark = pytest.mark.slow


def test_one_slice_gives_the_records_of_twelve(by_month, new_warehouse, tmp_path) -> None:
    whole = new_warehouse("whole")
    replay(whole, MONTH_ENDS_MS[-1], tmp_path / "state")
    assert CommitLog(whole, NAME).head_number() == 1
    assert equal_bytes(published(whole), published(by_month))


def first_records(of: Storage, like: Storage) -> dict[int, pa.Table]:
    """As many records of each partition as ``like`` has published."""
    lengths = {p: table.num_rows for p, table in published(like).items()}
    return {p: table.slice(0, lengths[p]) for p, table in published(of).items()}


@pytest.mark.parametrize(
    "settings", [{"batch_records": 997}, {"memory_budget_bytes": "1MiB", "batch_records": 2_000}], ids=str
)
def test_batches_and_memory_have_no_effect(by_month, new_warehouse, tmp_path, settings) -> None:
    warehouse = new_warehouse("other")
    for end in (MONTH_ENDS_MS[0], MONTH_ENDS_MS[1]):
        replay(warehouse, end, tmp_path / "state", **settings)
    assert sum(table.num_rows for table in published(warehouse).values()) > 3_000
    assert equal_bytes(published(warehouse), first_records(by_month, warehouse))


@pytest.mark.spark
@pytest.mark.long
def test_spark_gives_the_same(by_month, new_warehouse, tmp_path) -> None:
    warehouse = new_warehouse("on-spark")
    command = [sys.executable, "-m", "tests.spark_replay", warehouse.uri(""), str(tmp_path / "state")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ends = [str(end) for end in MONTH_ENDS_MS]
    done = subprocess.run(
        [*command, "local[4]", "hindstream.demo.job:job", *ends],
        env=environment, cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert CommitLog(warehouse, NAME).head_number() == len(MONTH_ENDS_MS)
    assert equal_bytes(published(warehouse), published(by_month))


def test_a_thirteenth_slice_has_nothing_to_do(by_month, tmp_path) -> None:
    for end in (None, MONTH_ENDS_MS[-1] + 86_400_000):
        assert isinstance(replay(by_month, end, tmp_path / "state"), NothingToDo)
    assert CommitLog(by_month, NAME).head_number() == 12


def test_a_slice_out_of_order_has_nothing_to_do(by_month, tmp_path) -> None:
    assert isinstance(replay(by_month, MONTH_ENDS_MS[3], tmp_path / "state"), NothingToDo)
