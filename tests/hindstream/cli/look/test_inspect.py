"""``hindstream inspect`` shows what every store of the surface holds, as of a commit and a time."""

from __future__ import annotations

import csv
import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from hindstream.cli.look.inspect import print_rows, print_stores
from statelib import ConfigurationError, Materialized, StreamsBuilder, TimeWindows
from statelib.operators.deduplication.operator import DeduplicateSpec
from statelib.settings.settings import Settings
from tests.effort import one_in
from tests.surface.records import PARTITIONS, TYPES, surface_records
from tests.surface.topology import surface
from tests.task.pipeline import Pipeline

if TYPE_CHECKING:
    from pathlib import Path

TOPOLOGY = surface()
STORES = {
    store.name: node
    for sub in TOPOLOGY.sub_topologies
    for node in sub.processors
    for store in node.spec.state_stores()
    if store.kind != "punctuation"
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two slices of the surface."""
    folder = tmp_path_factory.mktemp("inspect")
    pipeline = Pipeline(folder, TOPOLOGY, "surface")
    for topic, rows in surface_records(3, 80).items():
        pipeline.archive(topic, rows, TYPES, PARTITIONS)
    pipeline.run(200)
    pipeline.run()
    return folder


@pytest.fixture
def shown(folder: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    settings = Settings(warehouse=str(folder / "warehouse"), state_dir=str(folder / "local"))

    def show(store: str, key: str | None, as_of: str | None = None, commit: int | None = None, **how: Any) -> str:
        print_rows("surface", store, key, as_of, commit, settings, **how)
        return capsys.readouterr().out

    return show


@pytest.mark.slow
@pytest.mark.parametrize("store", one_in(8, STORES))
def test_every_store_can_be_looked_into(shown, store: str) -> None:
    spec = STORES[store].spec
    by_id = isinstance(spec, DeduplicateSpec) and spec.kind
    keys = {"by_id": ["i70", "i71"], "by_key_value": [json.dumps(["hot", f"i{n}"]) for n in range(60, 80)]}
    windows = [json.dumps(["hot", 40 * n, 40 * n + 40]) for n in range(30)]
    by_window = store in {"windows-counted", "session-sizes", "final-kept"}
    asked = windows if by_window else keys.get(str(by_id), ["hot", "a", "ab"])
    answers = [shown(store, key) for key in asked]
    assert all("as of commit 2" in answer or "holds nothing" in answer for answer in answers)
    assert shown(store, asked[0].replace("hot", "nobody"), None, 1)


def test_a_table_shows_its_value_and_a_versioned_one_that_of_a_time(shown) -> None:
    names = [(value, time) for key, value, time in surface_records(3, 80)["names"] if key == "hot"]
    last, _ = names[-1]
    assert shown("names", "hot") == "names holds nothing of hot there.\n" or last["id"] in shown("names", "hot")
    prices = [(value, time) for key, value, time in surface_records(3, 80)["prices"] if key == "hot" and value]
    value, time = prices[-1]
    at = f"1970-01-01T00:00:00.{time:03d}Z"
    assert f'"id": "{value["id"]}"' in shown("prices", "hot", at)


def test_a_history_has_all_versions(shown) -> None:
    lines = shown("prices", "hot", history=True, output="csv").splitlines()
    assert lines[0] == "key,value,valid_from,valid_to,is_tombstone,partition"
    assert len(lines) > 3
    starts = [line.rsplit(",", 4)[1] for line in lines[1:]]
    assert starts == sorted(starts)
    assert all(start.startswith("1970-01-01T00:00:00.") for start in starts)


def test_rows_of_all_keys_have_a_limit_and_formats(shown) -> None:
    store = next(name for name in STORES if "DISTINCT" in name)
    every = [json.loads(line) for line in shown(store, None, output="json").splitlines()]
    assert len(every) > 3
    assert {"key", "window_start", "window_end", "value", "timestamp", "partition"} == set(every[0])
    some = shown(store, None, limit=2)
    assert "The first 2 rows" in some
    assert len(some.splitlines()) == 8
    assert "The first" not in shown(store, None, limit=len(every))
    assert [json.loads(line) for line in shown(store, None, limit=2, output="json").splitlines()] == every[:2]
    of_a_key = [json.loads(line) for line in shown(store, every[0]["key"], output="json").splitlines()]
    assert of_a_key == [row for row in every if row["key"] == every[0]["key"]]


def test_stores_are_listed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = Settings(warehouse=str(folder / "warehouse"), state_dir=str(folder / "local"))
    print_stores("surface", None, settings, "json")
    listed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert set(STORES) <= {row["store"] for row in listed}
    assert {"store": "prices", "kind": "versioned", "partitions": 2, "columns": "key, value, timestamp"} in listed
    print_stores("surface", 1, settings)
    assert "as of commit 1" in capsys.readouterr().out


def test_what_is_no_time_key_or_store_is_refused(shown) -> None:
    with pytest.raises(ConfigurationError, match="no time zone"):
        shown("names", "hot", "2013-06-01T12:00")
    with pytest.raises(ConfigurationError, match="is no time"):
        shown("names", "hot", "yesterday")
    with pytest.raises(ConfigurationError, match="no such store"):
        shown("nothing", "hot")
    with pytest.raises(ConfigurationError, match="commits 1 to 2"):
        shown("names", "hot", None, 3)
    by_both = next(store for store, node in STORES.items() if getattr(node.spec, "kind", None) == "by_key_value")
    with pytest.raises(ConfigurationError, match="by key and id"):
        shown(by_both, "hot")


def test_a_stateless_job_says_so(tmp_path: Path) -> None:
    builder = StreamsBuilder("pass")
    builder.stream("events").to("out")
    pipeline = Pipeline(tmp_path, builder.build(), "pass")
    pipeline.archive("events", [("k", 1, 1)], (pa.string(), pa.int64()))
    pipeline.run()
    settings = Settings(warehouse=str(tmp_path / "warehouse"), state_dir=tmp_path / "local")
    with pytest.raises(ConfigurationError, match="stateless"):
        print_rows("pass", "s", "k", None, None, settings)
    with pytest.raises(ConfigurationError, match="stateless"):
        print_stores("pass", None, settings)


def test_json_is_json_whatever_a_store_holds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    odd = pa.struct(
        [
            ("x", pa.float64()),
            ("parts", pa.list_(pa.float32())),
            ("raw", pa.binary()),
            ("price", pa.decimal128(6, 2)),
            ("at", pa.timestamp("us", "UTC")),
            ("day", pa.date32()),
            ("named", pa.map_(pa.string(), pa.float64())),
        ]
    )
    value = {
        "x": float("nan"),
        "parts": [float("inf"), float("-inf"), 0.5],
        "raw": b"\xff\x00",
        "price": Decimal("1.10"),
        "at": datetime(2013, 1, 1, 5, 0, 0, 250, UTC),
        "day": date(2013, 1, 1),
        "named": [("a", float("nan"))],
    }
    builder = StreamsBuilder("odd")
    builder.table("odd", Materialized.as_("store")).to_stream().to("out")
    pipeline = Pipeline(tmp_path, builder.build(), "odd")
    pipeline.archive("odd", [(b"\xfe", value, 1)], (pa.binary(), odd))
    pipeline.run()
    settings = Settings(warehouse=str(tmp_path / "warehouse"), state_dir=tmp_path / "local")

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    print_rows("odd", "store", None, None, None, settings, output="json")
    row = json.loads(capsys.readouterr().out, parse_constant=refuse)
    assert row["key"] == "/g=="
    assert row["value"] == {
        "x": "NaN",
        "parts": ["Infinity", "-Infinity", 0.5],
        "raw": "/wA=",
        "price": "1.10",
        "at": "2013-01-01T05:00:00.000250+00:00",
        "day": "2013-01-01",
        "named": [["a", "NaN"]],
    }
    print_rows("odd", "store", None, None, None, settings, output="csv")
    (_, cells) = csv.reader(capsys.readouterr().out.splitlines())
    assert cells[0] == "/g=="
    assert json.loads(cells[1], parse_constant=refuse) == row["value"]


def test_a_windowed_key_is_the_key_and_its_bounds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    builder = StreamsBuilder("job")
    windows = TimeWindows.of_size_with_no_grace(timedelta(milliseconds=10))
    results = builder.stream("events").group_by_key().windowed_by(windows).count().to_stream()
    results.to_table(materialized=Materialized.as_("table"))
    pipeline = Pipeline(tmp_path, builder.build())
    pipeline.archive("events", [("a", 1, 0), ("a", 2, 11), ("a", 3, 12)], (pa.string(), pa.int64()))
    pipeline.run()
    settings = Settings(warehouse=str(tmp_path / "warehouse"), state_dir=str(tmp_path / "local"))
    for key in ('["a", 10, 20]', '{"key": "a", "window_start": 10, "window_end": 20}'):
        print_rows("job", "table", key, None, None, settings, output="json")
        (row,) = capsys.readouterr().out.splitlines()
        assert json.loads(row)["value"] == 2
        assert json.loads(row)["key"]["key"] == "a"
    with pytest.raises(ConfigurationError, match=r'or as \["KEY", START, END\] \(ms\)'):
        print_rows("job", "table", '"a"', None, None, settings)
