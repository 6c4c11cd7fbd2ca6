"""Rows that have their partition and offset themselves, as fields (``--partition``, ``--offset``)."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelib.errors.kinds import ConfigurationError, InputError
from statelib.job.lake_topic import LakeTopic
from tests.ingest.lake import load, records_of, write_file

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.thorough

AT = 1_356_998_400_000


def of_spark(folder: Path, rows: list[tuple[int, int]], name: str = "part-0.parquet") -> None:
    """What Spark's Kafka source has: binary keys and values beside where a record was."""
    table = pa.table(
        {
            "key": pa.array([f"k{offset}".encode() for _, offset in rows], pa.binary()),
            "value": pa.array([b'{"n": %d}' % offset for _, offset in rows], pa.binary()),
            "topic": ["t"] * len(rows),
            "partition": pa.array([partition for partition, _ in rows], pa.int32()),
            "offset": pa.array([offset for _, offset in rows], pa.int64()),
            "timestamp": [dt.datetime.fromtimestamp((AT + offset) / 1000, dt.UTC) for _, offset in rows],
            "timestampType": pa.array([0] * len(rows), pa.int32()),
        }
    )
    folder.mkdir(exist_ok=True)
    pq.write_table(table, folder / name)


def spark_topic(folder: Path, **options: Any) -> LakeTopic:
    parts: dict[str, Any] = {name: name for name in ("key", "value", "timestamp", "partition", "offset")}
    return LakeTopic("t", f"{folder}/lake", **{**parts, "key_serde": "string", "value_serde": "json", **options})


def test_rows_of_sparks_kafka_source(tmp_path: Path) -> None:
    of_spark(tmp_path / "lake", [(1, 9), (0, 4), (1, 7), (0, 2)])
    load(spark_topic(tmp_path), tmp_path / "w")
    of_spark(tmp_path / "lake", [(1, 12)], "part-1.parquet")
    load(spark_topic(tmp_path), tmp_path / "w")
    found = [
        (r["partition"], r["offset"], r["key"], r["value"], r["timestamp"]) for r in records_of(tmp_path / "w", "t")
    ]
    wanted = [(0, 2), (0, 4), (1, 7), (1, 9), (1, 12)]
    assert found == [(p, o, f"k{o}", {"n": o}, AT + o) for p, o in wanted]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([(1, 9)], "a record is older than the topic"),
        ([(1, 15), (1, 15)], "a record comes twice"),
        ([(5, 1)], "--partitions 6"),
    ],
)
def test_rows_that_cannot_be_where_they_say(tmp_path: Path, rows: list[tuple[int, int]], said: str) -> None:
    of_spark(tmp_path / "lake", [(1, 9), (0, 4)])
    load(spark_topic(tmp_path), tmp_path / "w")
    of_spark(tmp_path / "lake", rows, "part-1.parquet")
    with pytest.raises((InputError, ConfigurationError), match=said):
        load(spark_topic(tmp_path), tmp_path / "w")


def test_fields_that_tell_no_place(tmp_path: Path) -> None:
    of_spark(tmp_path / "lake", [(1, 9)])
    with pytest.raises(ConfigurationError, match="whole numbers"):
        load(spark_topic(tmp_path, offset="topic"), tmp_path / "w")
    with pytest.raises(ConfigurationError, match="no row has such a field"):
        load(spark_topic(tmp_path, partition="4"), tmp_path / "w")
    rows = [{"n": 1, "p": 0, "o": 3, "at": AT}, {"n": 2, "p": None, "o": 4, "at": AT}, {"n": 3, "p": 0, "at": AT}]
    write_file(tmp_path / "rows/a.jsonl", rows)
    topic = LakeTopic("u", f"{tmp_path}/rows", timestamp="at", partition="p", offset="o")
    done = load(topic, tmp_path / "w", "quarantine")
    assert (done.records, done.bad_rows) == (1, 2)
    assert [r["value"] for r in records_of(tmp_path / "w", "u")] == [{"n": 1}]


def connect(folder: Path, where: str, rows: list[dict[str, Any]], first: int) -> Path:
    return write_file(folder / f"topics/t/f={where}/t+0+{first:010d}.jsonl", rows)


@given(
    records=st.lists(
        st.tuples(st.integers(0, 3), st.integers(1, 3), st.integers(0, 9), st.booleans()), min_size=1, max_size=50
    ),
    rolls=st.sets(st.integers(0, 50)),
    budget_bytes=st.sampled_from([1, 400, 1 << 20]),
)
def test_records_keep_their_offsets_wherever_a_partitioner_puts_them(
    tmp_path_factory: pytest.TempPathFactory,
    records: list[tuple[int, int, int, bool]],
    rolls: set[int],
    budget_bytes: int,
) -> None:
    """Whatever folder, gaps by compaction, and timestamps; only tombstones have no field to tell."""
    folder = tmp_path_factory.mktemp("connect")
    open_files: dict[Any, list[tuple[int, int]]] = {}
    offset, sent = 6, []

    def flush() -> None:
        for where, of_file in open_files.items():
            rows: list[dict[str, Any]] = [{"o": own, "at": AT + time} for own, time in of_file]
            first = of_file[0][0]
            if where == "tombstones":
                keys = folder / f"topics/t/tombstone/t+0+{first:010d}.keys.jsonl"
                write_file(keys, [{"o": own} for own, _ in of_file])
            else:
                connect(folder, str(where), rows, first)
        open_files.clear()

    for n, (where, step, time, gone) in enumerate(records):
        if n in rolls:
            flush()
        offset += step
        sent.append((offset, gone))
        open_files.setdefault("tombstones" if gone else where, []).append((offset, time))
    flush()
    topic = LakeTopic("t", f"{folder}/topics", timestamp="at", offset="o")
    if all(gone for _, gone in sent):
        return
    load(topic, folder / "w", budget_bytes=budget_bytes)
    found = [(r["offset"], r["value"]) for r in records_of(folder / "w", "t")]
    assert [(at, value["o"]) for at, value in found if value is not None] == [(o, o) for o, gone in sent if not gone]
    assert sum(value is None for _, value in found) == sum(gone for _, gone in sent)


def test_fields_that_contradict_names(tmp_path: Path) -> None:
    path = connect(tmp_path, "a", [{"o": 7, "p": 0, "at": AT}, {"o": 9, "p": 0, "at": AT}], 7)
    options: dict[str, Any] = {"timestamp": "at"}
    load(LakeTopic("t", f"{tmp_path}/topics", offset="o", partition="p", **options), tmp_path / "w")
    assert [r["offset"] for r in records_of(tmp_path / "w", "t")] == [7, 9]
    for wrong, said in (
        ({"offset": "p"}, "a row says 0, and the place of its file 7"),
        ({"partition": "o"}, "a row says 7"),
    ):
        with pytest.raises(InputError, match=said) as caught:
            load(LakeTopic("u", f"{tmp_path}/topics", **options, **wrong), tmp_path / "w")
        assert (caught.value.place["file"], caught.value.place["row"]) == (str(path), 1)
    connect(tmp_path, "b", [{"o": 9, "p": 0, "at": AT}], 9)
    with pytest.raises(InputError, match="a record comes twice"):
        load(LakeTopic("v", f"{tmp_path}/topics", offset="o", **options), tmp_path / "w")
