"""A new user: `docs/getting-started.md` followed to the letter; and its answer, recomputed in SQL from the files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb
from deltalake import DeltaTable

from tests.command import hindstream
from tests.conftest import ROOT
from tests.docs.typed import follow

if TYPE_CHECKING:
    from pathlib import Path

    from tests.docs.typed import Took

PAGE = ROOT / "docs" / "getting-started.md"
_RECOMPUTED = """
SELECT country, epoch_ms(day), count(*), sum(amount), max(amount)
FROM (
  SELECT DISTINCT order_id, country, amount::DOUBLE AS amount,
    date_trunc('day', try_cast(ordered_at AS TIMESTAMP)) AS day
  FROM read_csv('{files}', union_by_name=true, all_varchar=true)
)
WHERE day IS NOT NULL
GROUP BY ALL ORDER BY ALL
"""

Row = tuple[str, int, int, float, float]
"""Country, beginning of the day in milliseconds, orders, their sum, the largest."""


def followed(folder: Path) -> list[Took]:
    """Follows the page in an empty folder; how long each command took."""
    return follow(PAGE, folder)


def answer(folder: Path) -> list[Row]:
    """What the job says of all days, sorted; it is sealed for that, since the last days wait for late orders."""
    sealed = hindstream("run", "jobs/orders_by_day.py:job", "--seal", cwd=folder / "shop")
    assert sealed.returncode == 0, sealed.stderr
    sink = DeltaTable(str(folder / "shop/warehouse/topics/orders-by-day")).to_pyarrow_table()
    return sorted(
        (row["key"]["key"], int(row["key"]["window_start"].timestamp() * 1000), *row["value"].values())
        for row in sink.to_pylist()
    )


def recomputed(folder: Path) -> list[Row]:
    """The same from the CSV files alone."""
    return duckdb.sql(_RECOMPUTED.format(files=folder / "shop/data/*.csv")).fetchall()
