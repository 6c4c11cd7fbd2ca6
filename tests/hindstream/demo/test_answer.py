"""The demo's answer, recomputed in plain SQL over the same records, row by row."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pytest
from deltalake import DeltaTable

from hindstream.demo import DELAYS, FLIGHTS, FLIGHTS_ONCE, NAME, WEATHER
from hindstream.demo.job import DEDUPLICATION_INTERVAL, GRACE, HISTORY_RETENTION
from hindstream.report.documents import account_total, job_ledger, load_runs

if TYPE_CHECKING:
    from statelib.storage import Storage

pytestmark = pytest.mark.slow

ANSWER = Path(__file__).with_name("answer.sql")

PUBLISHED = """
CREATE TEMP TABLE published AS
SELECT partition, key.key AS key, epoch_ms(key.window_start) AS window_start, epoch_ms(key.window_end) AS window_end,
       epoch_ms(timestamp) AS timestamp, value.* , "offset" FROM {files}
"""

# Means are sums of floats in the order of the records, which SQL does not promise: all else is compared exactly.
DIFFERENCES = """
SELECT * FROM answer FULL JOIN published USING (partition, "offset")
WHERE (answer.key, answer.window_start, answer.window_end, answer.timestamp, answer.flights, answer.cancelled,
       answer.max_delay, answer.max_wind)
      IS DISTINCT FROM
      (published.key, published.window_start, published.window_end, published.timestamp, published.flights,
       published.cancelled, published.max_delay, published.max_wind)
   OR answer.mean_delay IS DISTINCT FROM published.mean_delay
   OR (answer.mean_wind IS NULL) <> (published.mean_wind IS NULL)
   OR abs(answer.mean_wind - published.mean_wind) > 1e-9
"""


@pytest.fixture(scope="module")
def sql(by_month: Storage) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    intervals = {
        "deduplication_interval": DEDUPLICATION_INTERVAL,
        "history_retention": HISTORY_RETENTION,
        "grace": GRACE,
    }
    for name, interval in intervals.items():
        connection.execute(f"SET VARIABLE {name} = {int(interval.total_seconds() * 1000)}")
    for topic in (FLIGHTS, WEATHER):
        connection.execute(
            f"CREATE TEMP TABLE {topic} AS "
            f'SELECT key, value, epoch_ms(timestamp) AS timestamp, "offset", partition FROM {files(by_month, topic)}'
        )
    connection.execute(ANSWER.read_text())
    connection.execute(PUBLISHED.format(files=files(by_month, DELAYS)))
    return connection


def files(warehouse: Storage, topic: str) -> str:
    """What DuckDB reads a topic's active files with; nothing of ours has a hand in it."""
    return f"read_parquet({DeltaTable(warehouse.uri(f'topics/{topic}')).file_uris()!r}, hive_partitioning = true)"


def one(connection: duckdb.DuckDBPyConnection, query: str) -> object:
    ((value,),) = connection.execute(query).fetchall()
    return value


def test_each_flight_is_published_once(sql: duckdb.DuckDBPyConnection, by_month: Storage) -> None:
    once = files(by_month, FLIGHTS_ONCE)
    assert one(sql, f"SELECT count(*) FROM {once}") == one(sql, "SELECT count(DISTINCT value.flight_id) FROM flights")
    differences = f"""
        SELECT count(*) FROM {once} AS published
        LEFT JOIN flights AS delivered ON published.value = delivered.value AND published.key = delivered.key
        WHERE delivered.value IS NULL
    """
    assert one(sql, differences) == 0


def test_every_row_is_that_of_the_sql(sql) -> None:
    assert sql.execute(DIFFERENCES).fetchall() == []
    assert one(sql, "SELECT count(*) FROM published") == one(sql, "SELECT count(*) FROM answer")
    assert one(sql, "SELECT count(*) FROM published") > 19_000


def test_the_sql_holds_for_this_data(sql) -> None:
    """What the query takes for granted."""
    assert one(sql, "SELECT max(delivery) FROM deliveries") == 2
    assert one(sql, "SELECT count(*) FROM joined WHERE observation_seq >= seq") == 0
    in_order = (
        "SELECT count(*) FROM (SELECT ts < lag(ts) OVER (PARTITION BY key ORDER BY seq) AS late FROM observations)"
    )
    assert one(sql, f"{in_order} WHERE late") == 0


def test_the_ledgers_tell_what_the_sql_finds(sql, by_month) -> None:
    nodes = job_ledger(load_runs(by_month, NAME))
    assert account_total(nodes, "duplicate") == one(sql, "SELECT count(*) FROM deliveries") - 336_776 > 6_000
    assert account_total(nodes, "late") == one(sql, "SELECT count(*) FROM counted WHERE NOT in_time") > 20
    assert account_total(nodes, "unmatched") == one(sql, "SELECT count(*) FROM counted WHERE NOT matched") > 1_000
    assert nodes["delays-by-hour"].accounts == {"written": one(sql, "SELECT count(*) FROM answer")}
    assert nodes["each-flight-once"].accounts == {"written": 336_776}
    held = sum(metrics.held_after for metrics in nodes.values())
    windows = "SELECT count(*) FROM (SELECT DISTINCT key, window_start FROM counted WHERE in_time)"
    assert held == one(sql, windows) - one(sql, "SELECT count(*) FROM answer") > 0


def test_every_record_is_accounted_for(by_month) -> None:
    for run in load_runs(by_month, NAME):
        assert {node: metrics.unaccounted for node, metrics in run.nodes.items() if metrics.unaccounted} == {}
