"""Changes of a database become a versioned table in one option: it answers what a row was at any time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st

from statelib import LakeTopic, Materialized, Stores, StreamsBuilder, open_state
from tests.ingest.lake import load, write_file
from tests.task.pipeline import Pipeline

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pytest

AT_MS = 1_700_000_000_000
CHANGES = st.lists(st.tuples(st.integers(1, 4), st.one_of(st.none(), st.integers(0, 9)), st.integers(0, 3)), min_size=1)
"""The id of a row, what it becomes (None: it is deleted), and the seconds since the change before."""


def history(changes: list[tuple[int, int | None, int]]) -> tuple[list[dict[str, Any]], list[Mapping[int, int]]]:
    """Debezium's events, and the table as it was at each second."""
    table: dict[int, int] = {}
    events, seconds, now = [], [dict(table)], 0
    for row, value, later in changes:
        seconds += [dict(table)] * later
        now += later
        before = {"id": row, "n": table[row]} if row in table else None
        if value is None:
            table.pop(row, None)
        else:
            table[row] = value
        seconds[-1] = dict(table)
        op = "d" if value is None else "c" if before is None else "u"
        after = None if value is None else {"id": row, "n": value}
        if before is not None or after is not None:
            source = {"ts_ms": AT_MS + 1000 * now, "table": "rows"}
            events.append({"before": before, "after": after, "source": source, "op": op, "ts_ms": source["ts_ms"] + 7})
    return events, seconds


@given(changes=CHANGES)
def test_it_is_the_table_as_it_was_at_any_time(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[int, int | None, int]]
) -> None:
    events, seconds = history(changes)
    if not any(event["after"] for event in events):
        return
    folder = tmp_path_factory.mktemp("lake")
    half = len(events) // 2
    for name, part in (("1.jsonl", events[:half]), ("2.jsonl", events[half:])):
        if part:
            write_file(folder / "changes" / name, part)
    load(
        LakeTopic("rows", str(folder / "changes"), key="id", envelope="debezium", order="arrival"), folder / "warehouse"
    )
    builder = StreamsBuilder("mirror")
    kept = Materialized.as_(Stores.persistent_versioned_key_value_store("rows-by-id", timedelta(days=1)))
    builder.table("rows", kept).to_stream().to("rows-seen")
    Pipeline(folder, builder.build(), "mirror").run()
    with open_state(str(folder / "warehouse"), "mirror", "rows-by-id") as state:
        for second, expected in enumerate(seconds):
            found = state.read(as_of=datetime.fromtimestamp(AT_MS / 1000 + second, UTC)).to_pylist()
            assert {row["key"]: row["value"]["n"] for row in found} == expected
