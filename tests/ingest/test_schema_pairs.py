"""Every pair of types, in one load and in two: both values are in the topic as they were, or the file is named."""

from __future__ import annotations

import datetime as dt
import decimal
import itertools
import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from statelib.errors.kinds import ConfigurationError, InputError
from statelib.job.lake_topic import LakeTopic
from tests.effort import one_in
from tests.ingest.lake import load, records_of, without_nulls

if TYPE_CHECKING:
    from pathlib import Path

AT = pa.array([1_356_998_400_000], pa.timestamp("ms"))
ARRAYS: dict[str, pa.Array] = {
    "int8": pa.array([-(2**7)], pa.int8()),
    "int32": pa.array([2**31 - 1], pa.int32()),
    "int64": pa.array([2**62 + 1], pa.int64()),
    "uint64": pa.array([2**64 - 1], pa.uint64()),
    "float": pa.array([0.5], pa.float32()),
    "double": pa.array([0.1], pa.float64()),
    "decimal": pa.array([decimal.Decimal("1.25")]),
    "string": pa.array(["7"]),
    "dictionary": pa.array(["x"]).dictionary_encode(),
    "binary": pa.array([b"\xff"]),
    "bool": pa.array([True]),
    "date": pa.array([dt.date(2013, 1, 1)]),
    "timestamp": pa.array([dt.datetime(2013, 1, 1)]),  # noqa: DTZ001
    "instant": pa.array([dt.datetime(2013, 1, 1, tzinfo=dt.UTC)]),
    "list": pa.array([[1, None]], pa.list_(pa.int32())),
    "list of text": pa.array([["a"]]),
    "struct": pa.array([{"a": 1}]),
    "other struct": pa.array([{"b": "x", "a": 2}]),
    "struct of text": pa.array([{"a": "1"}]),
    "map": pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64())),
    "null": pa.nulls(1),
}
JSON: dict[str, Any] = {
    "int": 7, "decimal": 1.5, "text": "7", "bool": True, "list": [1], "list of text": ["a"], "struct": {"a": 1},
    "other struct": {"b": "x", "a": 2}, "struct of text": {"a": "1"}, "null": None, "day": "2013-01-01",
}  # fmt: skip


def same(found: Any, wanted: Any) -> bool:
    if isinstance(wanted, dict) and isinstance(found, dict):
        return all(same(found.get(name), value) for name, value in wanted.items())
    return bool(found == wanted)


def check(folder: Path, first: Any, second: Any, *, in_one: bool, options: dict[str, Any]) -> None:
    """Loads the second file with the first one or behind it."""
    topic = LakeTopic(
        "t", f"{folder}/lake", timestamp="at", order="arrival", partitions=1, value=("id", "n"), **options
    )
    later = sorted((folder / "lake").iterdir())[1]
    content = later.read_bytes()
    if not in_one:
        later.unlink()
        load(topic, folder / "w")
        later.write_bytes(content)
    try:
        load(topic, folder / "w")
    except (ConfigurationError, InputError) as error:
        assert error.place["file"] == str(later)  # noqa: PT017 - either may be
        assert str(error.place["field"]).split(".")[-1].strip("[]") in {"n", "a", "value"}  # noqa: PT017
        assert error.next_step  # noqa: PT017
        kept = [record["value"] for record in records_of(folder / "w", "t")] if not in_one else []
        assert [without_nulls(value).get("n") for value in kept] == ([without_nulls(first)] if not in_one else [])
        return
    values = [record["value"].get("n") for record in records_of(folder / "w", "t")]
    assert same(values[0], first), (values, first)
    assert same(values[1], second), (values, second)


@pytest.mark.thorough
@pytest.mark.parametrize(("first", "loads"), one_in(4, itertools.product(ARRAYS, [1, 2])))
def test_pairs_of_parquet(tmp_path: Path, first: str, loads: int) -> None:
    for second in ARRAYS:
        folder = tmp_path / second
        (folder / "lake").mkdir(parents=True)
        for n, name in enumerate((first, second)):
            pq.write_table(pa.table({"at": AT, "id": [n], "n": ARRAYS[name]}), folder / f"lake/{n}.parquet")
        one, two = (ARRAYS[name].to_pylist()[0] for name in (first, second))
        check(folder, one, two, in_one=loads == 1, options={})


@pytest.mark.thorough
@pytest.mark.parametrize(("first", "loads"), one_in(4, itertools.product(JSON, [1, 2])))
def test_pairs_of_json(tmp_path: Path, first: str, loads: int) -> None:
    for second, text in itertools.product(JSON, (False, True)):
        folder = tmp_path / f"{second}{text}"
        (folder / "lake").mkdir(parents=True)
        for n, name in enumerate((first, second)):
            row = {"at": "2013-01-01", "id": n, "n": JSON[name]}
            (folder / f"lake/{n}.jsonl").write_text(json.dumps(row) + "\n")
        wanted = [JSON[name] for name in (first, second)]
        if text:  # the way on that the error tells
            wanted = [value if value is None or isinstance(value, str) else json.dumps(value) for value in wanted]
        check(folder, *wanted, in_one=loads == 1, options={"types": {"n": "string"}} if text else {})
