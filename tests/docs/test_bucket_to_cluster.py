"""What `docs/bucket-to-cluster.md` says is what happens: a real store, a Spark cluster, Airflow."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable

from tests.conftest import ROOT
from tests.docs.bucket import orders, place, upload
from tests.docs.typed import follow

if TYPE_CHECKING:
    from pathlib import Path

    from tests.ingest.connect_trees import Sent
    from tests.storage.s3 import S3Server

pytestmark = [pytest.mark.spark, pytest.mark.airflow, pytest.mark.long]

PAGE = ROOT / "docs" / "bucket-to-cluster.md"


MOST_HELD = 8
"""Windows of the last two days, of four countries: they wait for late orders."""

Answer = dict[tuple[str, int], tuple[int, float]]
"""By country and beginning of the day in milliseconds: how many orders, and their sum."""


def answer(s3: S3Server) -> Answer:
    table = DeltaTable("s3://lake/warehouse/topics/orders-by-day", storage_options=s3.options).to_pyarrow_table()
    return {
        (row["key"]["key"], int(row["key"]["window_start"].timestamp() * 1000)): (
            row["value"]["records"],
            row["value"]["total"],
        )
        for row in table.to_pylist()
    }


def recomputed(sent: list[Sent]) -> Answer:
    """From what Connect was given: each order once, however often it was sent."""
    made: Answer = {}
    for order in {one.value["order_id"]: one.value for one in sent}.values():
        day_ms = order["ordered_at"] // 86_400_000 * 86_400_000
        count, total = made.get((order["country"], day_ms), (0, 0.0))
        made[order["country"], day_ms] = (count + 1, total + order["amount"])
    return made


def test_its_commands_print_what_it_says_and_its_answer_is_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "servers").mkdir()
    (tmp_path / "orders").mkdir()
    with place(tmp_path / "servers", monkeypatch) as servers:
        april = partial(upload, servers.s3, tmp_path / "april", orders(range(1_500, 2_000)))
        follow(
            PAGE,
            tmp_path / "orders",
            servers.environ,
            replaced=servers.replaced,
            situations={"Connect has added April": april},
        )
        found = answer(servers.s3)
    expected = recomputed(orders(range(2_000)))
    assert found.items() <= expected.items()
    assert 0 < len(expected) - len(found) <= MOST_HELD
