"""Getting started, followed to the letter; and its answer, recomputed in SQL from the files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb
import pytest
from deltalake import DeltaTable

from tests.command import hindstream
from tests.conftest import ROOT
from tests.docs.typed import follow

if TYPE_CHECKING:
    from pathlib import Path

PAGE = ROOT / "docs" / "getting-started.md"
RECOMPUTED = """
SELECT country, epoch_ms(day), count(*), sum(amount), max(amount)
FROM (
  SELECT DISTINCT order_id, country, amount::DOUBLE AS amount,
    date_trunc('day', try_cast(ordered_at AS TIMESTAMP)) AS day
  FROM read_csv('{files}', union_by_name=true, all_varchar=true)
)
WHERE day IS NOT NULL
GROUP BY ALL ORDER BY ALL
"""


@pytest.mark.slow
def test_its_commands_print_what_it_says_and_its_answer_is_right(tmp_path: Path) -> None:
    follow(PAGE, tmp_path)
    sealed = hindstream("run", "jobs/orders_by_day.py:job", "--seal", cwd=tmp_path / "shop")
    assert sealed.returncode == 0, sealed.stderr
    sink = DeltaTable(str(tmp_path / "shop/warehouse/topics/orders-by-day")).to_pyarrow_table()
    found = sorted(
        (row["key"]["key"], int(row["key"]["window_start"].timestamp() * 1000), *row["value"].values())
        for row in sink.to_pylist()
    )
    expected = duckdb.sql(RECOMPUTED.format(files=tmp_path / "shop/data/*.csv")).fetchall()
    assert len(expected) > 4_000
    assert found == expected
