"""Partitioners of the user's own: where each record goes, against a plain model; and what they may not give."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelib import Materialized, Named, Produced, Repartitioned, StreamsBuilder, TableJoined, per_record
from statelib.errors.kinds import ConfigurationError
from statelib.snapshots import open_state
from statelib.topics.partitioner import partition_for
from tests.task.pipeline import Pipeline

if TYPE_CHECKING:
    from pathlib import Path

    from statelib.documents.manifests import Staged
    from statelib.topology import Topology

PARTITIONS = 3
TYPES = (pa.string(), pa.list_(pa.int32()))
"""A record's value says where it goes."""
WHERE = st.one_of(st.none(), st.lists(st.integers(0, PARTITIONS - 1), max_size=4))
ROWS = st.lists(st.tuples(st.one_of(st.none(), st.text("abc", max_size=2)), WHERE), max_size=25)
FIRST = per_record(lambda value: value[0] if value else None, pa.int32(), "value")


def writing(produced: Produced) -> Topology:
    builder = StreamsBuilder("app")
    builder.stream("in").to("out", produced.with_name("sink"))
    return builder.build()


def placed(folder: Path, topology: Topology, rows: list[tuple[Any, Any]], partitions: int = 1) -> tuple[Pipeline, Any]:
    pipeline = Pipeline(folder, topology)
    pipeline.archive("in", [(*row, 1_000 + number) for number, row in enumerate(rows)], TYPES, partitions)
    return pipeline, pipeline.run()


def default_of(key: str | None) -> int:
    """Records without a key stay with the task that writes them, here the only one."""
    return 0 if key is None else int(partition_for(pa.array([key.encode()]), PARTITIONS)[0])


@given(rows=ROWS)
def test_null_is_the_default_and_lists_are_several(tmp_path_factory: pytest.TempPathFactory, rows: list[Any]) -> None:
    for partitioner, targets in (
        ("value", lambda where, key: [default_of(key)] if where is None else where),
        (FIRST, lambda where, key: where[:1] or [default_of(key)] if where else [default_of(key)]),
    ):
        produced = Produced.with_partitions(PARTITIONS).with_stream_partitioner(partitioner)
        pipeline, staged = placed(tmp_path_factory.mktemp("placed"), writing(produced), rows)
        expected: list[list[Any]] = [[] for _ in range(PARTITIONS)]
        for number, (key, where) in enumerate(rows):
            for partition in targets(where, key):
                expected[partition].append((key, where, 1_000 + number))
        made: list[list[Any]] = [[] for _ in range(PARTITIONS)]
        for partition, _, *record in pipeline.output_if_present("out"):
            made[partition].append(tuple(record))
        assert made == expected
        if rows:
            assert_counted(staged, rows, [targets(where, key) for key, where in rows])


def assert_counted(staged: Staged, rows: list[Any], targets: list[list[int]]) -> None:
    """Each record is in one account, however many partitions it went to."""
    sink = next(task.metrics["sink-REPARTITION"] for task in staged.tasks if "sink-REPARTITION" in task.metrics)
    nowhere = sum(not of for of in targets)
    assert sink.accounts.get("no-partition", 0) == nowhere
    assert sink.accounts.get("written", 0) == len(rows) - nowhere
    assert sink.counters.get("further-partition", 0) == sum(map(len, targets)) - (len(rows) - nowhere)


@pytest.mark.parametrize(
    ("partitioner", "message"),
    [
        (per_record(lambda _: 3, pa.int32(), "value"), "chose partition 3, and the topic has partitions 0 to 2"),
        (per_record(lambda _: -1, pa.int64(), "value"), "chose partition -1"),
        (per_record(lambda _: [0, 7], pa.list_(pa.int32()), "value"), "chose partition 7"),
        (per_record(lambda _: [0, None], pa.list_(pa.int32()), "value"), "a list with a null in it"),
        (per_record(lambda _: "1", pa.string(), "value"), "gave string, not whole numbers"),
        (per_record(lambda value: value["n"], pa.int32(), "value"), "TypeError"),
    ],
)
def test_what_is_no_partition_ends_the_run_and_the_error_names_the_record(
    tmp_path: Path, partitioner: Any, message: str
) -> None:
    produced = Produced.with_partitions(PARTITIONS).with_stream_partitioner(partitioner)
    with pytest.raises(ConfigurationError, match=message) as caught:
        placed(tmp_path, writing(produced), [("a", [0])])
    if "gave string" not in message:
        assert {"topic": "in", "partition": 0, "offset": 0}.items() <= caught.value.place.items()


def test_an_archive_that_is_there_has_to_have_as_many(tmp_path: Path) -> None:
    pipeline = Pipeline(tmp_path, writing(Produced.stream_partitioner(FIRST)))
    pipeline.archive("in", [("a", [0], 1)], TYPES, 2)
    pipeline.archive("out", [], TYPES, 5)
    with pytest.raises(ConfigurationError, match=r"chooses among 2 partitions.*has 5.*with_partitions\(5\)"):
        pipeline.run()


def test_what_is_placed_stays_for_operators_and_state_is_found_wherever_it_is(tmp_path: Path) -> None:
    """Every key is in the partition that its first record's value says: none is where it belongs by its bytes."""
    builder = StreamsBuilder("app")
    elsewhere = Repartitioned.as_("elsewhere").with_number_of_partitions(PARTITIONS).with_stream_partitioner(FIRST)
    grouped = builder.stream("in").repartition(elsewhere).group_by_key()
    grouped.count(Materialized.as_("counts")).to_stream().to("out")
    keys = [key for key in map(str, range(30)) if default_of(key) != 2]
    pipeline, _ = placed(tmp_path, builder.build(), [(key, [2]) for key in keys * 2])
    made = pipeline.output("out")
    assert {(partition, key) for partition, _, key, *_ in made} == {(default_of(key), key) for key in keys}
    with open_state(tmp_path / "warehouse", "job", "counts", state_dir=tmp_path / "read") as state:
        found = {key: state.read(where={"key": key})["value"].to_pylist() for key in keys}
    assert found == {key: [2] for key in keys}


BY_LENGTH = per_record(lambda key, n: len(key) % n, pa.int32(), "key", "num_partitions")
ONE_MORE = per_record(lambda key, n: (len(key) + 1) % n, pa.int32(), "key", "num_partitions")


def joined_elsewhere(folder: Path, joined: TableJoined | None) -> Pipeline:
    """Orders with their customers; both tables are placed by partitioners."""
    builder = StreamsBuilder("app")
    orders, customers = (
        builder.stream(topic)
        .repartition(Repartitioned.as_(topic).with_number_of_partitions(PARTITIONS).with_stream_partitioner(by))
        .to_table(Named.as_(f"{topic}-table"), Materialized.as_(topic))
        for topic, by in (("orders", BY_LENGTH), ("customers", ONE_MORE))
    )
    placed = orders.join(customers, {"of": "left", "city": "right"}, joined, foreign_key="value")
    placed.join(orders, {"city": "left.city", "again": "right"}).to_stream().to("out")
    pipeline = Pipeline(folder, builder.build())
    types = (pa.string(), pa.string())
    pipeline.archive("customers", [("c" * n, f"city {n}", n) for n in range(1, 6)], types)
    pipeline.archive("orders", [("o" * n, "c" * (1 + n % 5), 10 + n) for n in range(1, 8)], types)
    pipeline.run()
    pipeline.archive("customers", [("cc", "moved", 30), ("ccc", None, 31)], types)
    pipeline.run()
    return pipeline


def test_partitioners_of_a_foreign_key_join_find_rows_wherever_they_are(tmp_path: Path) -> None:
    """And results are beside the left table's rows, which they are joined with again."""
    joined = TableJoined.as_("placed").with_partitioner(BY_LENGTH).with_other_partitioner(ONE_MORE)
    expected = [("o" * n, {"city": f"city {1 + n % 5}", "again": "c" * (1 + n % 5)}, 10 + n) for n in range(1, 8)]
    expected += [("o" * n, {"city": "moved", "again": "cc"}, 30) for n in (1, 6)]
    expected += [("o" * n, None, 31) for n in (2, 7)]
    made = joined_elsewhere(tmp_path / "by", joined).output("out")
    assert sorted(((key, value, at) for _, _, key, value, at in made), key=str) == sorted(expected, key=str)
    assert len(joined_elsewhere(tmp_path / "not", None).output_if_present("out")) < len(expected)


def test_a_partitioner_of_a_foreign_key_join_is_told_keys_and_gives_one_partition(tmp_path: Path) -> None:
    several = per_record(lambda _: [0, 1], pa.list_(pa.int32()), "key")
    with pytest.raises(ConfigurationError, match=r"gave list<item: int32>, not one partition.*test_partitioners"):
        joined_elsewhere(tmp_path / "several", TableJoined.with_(several))
    by_value = per_record(lambda key, value: 0 if value is None else 9, pa.int32())
    joined_elsewhere(tmp_path / "null", TableJoined.with_(by_value, by_value))
    builder = StreamsBuilder("app")
    one, other = builder.table("a"), builder.table("b")
    with pytest.raises(ConfigurationError, match="a TableJoined is of a join by a foreign key"):
        one.join(other, "left", TableJoined.as_("n"))


def test_a_route_to_a_topic_that_was_not_named(tmp_path: Path) -> None:
    builder = StreamsBuilder("app")
    builder.stream("in").to("key", topics=["a", "b"])
    pipeline, _ = placed(tmp_path / "right", builder.build(), [("a", None), ("b", [1]), ("a", [])])
    assert [row[2:] for row in pipeline.output("a")] == [("a", None, 1_000), ("a", [], 1_002)]
    with pytest.raises(
        ConfigurationError, match=r"gave 'bb', which to\(\) has not been told.*did you mean b"
    ) as caught:
        placed(tmp_path / "wrong", builder.build(), [("a", None), ("bb", None)])
    assert {"topic": "in", "partition": 0, "offset": 1}.items() <= caught.value.place.items()
    with pytest.raises(ConfigurationError, match="gave None, which"):
        placed(tmp_path / "none", builder.build(), [(None, [1])])
