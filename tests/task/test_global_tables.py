"""Global tables through archives, slices and tasks: complete at the start, or followed in time if versioned."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from statelib import Consumed, InputError, Materialized, Stores, StreamsBuilder
from statelib.commits.archives import open_archive
from statelib.commits.layout import late_topic, quarantine_topic
from statelib.commits.run.plan import NothingToDo
from statelib.errors.kinds import ConfigurationError
from statelib.serdes import serde_for
from statelib.topics.partitioner import partition_for
from tests.reference.global_table import Row, joined, ordered
from tests.task.pipeline import Pipeline

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from statelib import Topology

pytestmark = pytest.mark.thorough

VISIT = pa.struct([("n", pa.int64()), ("place", pa.string())])
STREAM, TABLE = (pa.string(), VISIT), (pa.string(), pa.string())
STREAM_PARTITIONS, TABLE_PARTITIONS = 2, 3
JOINER = {"n": "left.n", "found": "right"}


def topology(retention_ms: int | None, *, left: bool = True) -> Topology:
    builder = StreamsBuilder("job")
    materialized = None
    if retention_ms is not None:
        retention = timedelta(milliseconds=retention_ms)
        materialized = Materialized.as_(Stores.persistent_versioned_key_value_store("places", retention))
    places = builder.global_table("places", materialized)
    visits = builder.stream("visits")
    (visits.left_join if left else visits.join)(places, "place", JOINER).to("joined")
    return builder.build()


def input_of(seed: int, count: int = 80) -> tuple[list[Row], list[Row]]:
    """Visits and places: out of order, with equal times, nulls, a hot key."""
    rng = random.Random(seed)
    names = ["a", "a", "a", "b", "c", "d", None]
    now, visits, places = 0, [], []
    for n in range(count):
        now += rng.choice([0, 0, 10, 20])
        timestamp = max(0, now - rng.choice([0, 0, 0, 10, 60]))
        if rng.random() < 0.4:
            places.append(Row(rng.choice(names), None if rng.random() < 0.2 else f"v{n}", timestamp))
        else:
            value = None if rng.random() < 0.1 else {"n": n, "place": rng.choice(names)}
            visits.append(Row(rng.choice([None, "x", "y", "z"]), value, timestamp))
    return visits, places


def partitioned(rows: Sequence[Row], partitions: int) -> list[list[Row]]:
    """As the archive has them; records without a key are in none of these."""
    by_partition: list[list[Row]] = [[] for _ in range(partitions)]
    keyed = [row for row in rows if row.key is not None]
    keys = serde_for(pa.string()).serialize(pa.array([row.key for row in keyed], pa.string()))
    for row, partition in zip(keyed, partition_for(keys, partitions).tolist(), strict=True):
        by_partition[partition].append(row)
    return by_partition


def replayed(folder: Path, topology: Topology, visits: Sequence[Row], places: Sequence[Row],
             cuts: Sequence[int] = (), **settings: Any) -> Pipeline:  # fmt: skip
    pipeline = Pipeline(folder, topology, **settings)
    pipeline.archive("visits", visits, STREAM, STREAM_PARTITIONS)
    pipeline.archive("places", places, TABLE, TABLE_PARTITIONS)
    for cut in [*cuts, None]:
        pipeline.run(cut)
    return pipeline


@pytest.mark.thorough
@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("retention_ms", [None, 50, 10_000])
@pytest.mark.parametrize("seed", range(2))
def test_the_models_answer(tmp_path: Path, seed: int, retention_ms: int | None, left: bool) -> None:
    visits, places = input_of(seed)
    keyed = [visit for visit in visits if visit.key is not None]
    pipeline = replayed(tmp_path, topology(retention_ms, left=left), keyed, places, [200], batch_records=7)
    expected = []
    for partition, rows in enumerate(partitioned(keyed, STREAM_PARTITIONS)):
        stream = [(time, row) for time, _, row in ordered([rows])]
        table = partitioned(places, TABLE_PARTITIONS)
        expected += [(partition, *result) for result in joined(stream, table, retention_ms, left=left)]
    found = [(p, key, value["n"], value["found"], at) for p, _, key, value, at in pipeline.output("joined")]
    assert found == expected
    assert any(row[3] for row in found)


@pytest.mark.thorough
@pytest.mark.parametrize("retention_ms", [None, 10_000])
def test_the_cut_of_the_history_does_not_matter(tmp_path: Path, retention_ms: int | None) -> None:
    """Nor do batches and memory; every task has the whole table."""
    visits, places = input_of(7)
    whole = replayed(tmp_path / "whole", topology(retention_ms), visits, places)
    for number, (cuts, settings) in enumerate(
        [([100, 250, 400], {}), ([], {"batch_records": 1}), ([300], {"batch_records": 3, "memory_budget_bytes": 1})]
    ):
        other = replayed(tmp_path / str(number), topology(retention_ms), visits, places, cuts, **settings)
        assert other.output("joined") == whole.output("joined")
        assert other.state() == whole.state()
    one, other_task = whole.state().values()
    assert one == other_task
    assert any(entries for entries in one.values())


def test_a_plain_table_is_complete_before_the_first_record(tmp_path: Path) -> None:
    """Reference data is mostly younger than the history that it is joined with."""
    pipeline = Pipeline(tmp_path, topology(None))
    pipeline.archive("visits", [("x", {"n": n, "place": "a"}, n) for n in (1, 5, 9)], STREAM)
    pipeline.archive("places", [("a", "new", 1_000)], TABLE)
    pipeline.run(5)
    pipeline.archive("places", [("a", "newer", 500)], TABLE)
    assert isinstance(pipeline.run(5), NothingToDo)
    pipeline.run(9)
    pipeline.run()
    assert [value["found"] for _, _, _, value, _ in pipeline.output("joined")] == ["new", "newer", "newer"]


def test_new_records_of_a_plain_table_alone_are_no_reason_to_run(tmp_path: Path) -> None:
    visits, places = input_of(3)
    pipeline = replayed(tmp_path, topology(None), visits, places)
    pipeline.archive("places", [("a", "later", 10_000)], TABLE, TABLE_PARTITIONS)
    planned = pipeline.run()
    assert isinstance(planned, NothingToDo)
    assert planned.reason == "no-new-records"
    pipeline.run(end_of_input="seal")
    pipeline.archive("places", [("a", "last", 10_000)], TABLE, TABLE_PARTITIONS)
    assert isinstance(pipeline.run(), NothingToDo)


def test_a_versioned_table_is_followed_as_time_goes_on(tmp_path: Path) -> None:
    """So its history may be much shorter than the slice; of equal times the table's update comes first."""
    pipeline = Pipeline(tmp_path, topology(10))
    pipeline.archive("visits", [("x", {"n": n, "place": "a"}, n) for n in range(0, 1_000, 100)], STREAM)
    pipeline.archive("places", [("a", f"v{n}", n) for n in range(0, 1_000, 200)], TABLE)
    pipeline.run()
    found = [value["found"] for _, _, _, value, _ in pipeline.output("joined")]
    assert found == [f"v{n // 200 * 200}" for n in range(0, 1_000, 100)]


def test_two_sub_topologies_share_a_table_and_are_not_tied_together(tmp_path: Path) -> None:
    builder = StreamsBuilder("job")
    places = builder.global_table("places")
    visits = builder.stream("visits")
    by_place = visits.select_key("place").repartition()
    by_place.map_values("n").to("numbers")
    by_place.join(places, "key", JOINER).to("joined")
    other = builder.stream("others")
    other.left_join(places, "key", {"n": "left", "found": "right"}).map_values("found").to("names")
    made = builder.build()
    assert len(made.sub_topologies) == 3
    tasks = {"visits": 2, "others": 1, "places": 3}
    assert sorted(made.partitions(tasks).values()) == [1, 2, 2]
    rows, table = input_of(1)
    pipeline = Pipeline(tmp_path, made)
    pipeline.archive("visits", rows, STREAM, 2)
    pipeline.archive("others", [("a", 1, 5), ("nowhere", 2, 6)], (pa.string(), pa.int64()))
    pipeline.archive("places", table, TABLE, 3)
    pipeline.run()
    last = [row.value for row in table if row.key == "a"][-1]
    assert [(key, value) for _, _, key, value, _ in pipeline.output("names")] == [("a", last), ("nowhere", None)]
    assert len(pipeline.output("joined")) > 0
    assert isinstance(pipeline.run(), NothingToDo)


def test_a_global_table_does_not_move_the_streams_clock(tmp_path: Path) -> None:
    """Kafka reads it beside the tasks: a younger record of it lets nothing expire."""
    builder = StreamsBuilder("job")
    places = builder.global_table("places")
    visits = builder.stream("visits").deduplicate_by_key(timedelta(milliseconds=100))
    visits.left_join(places, "place", JOINER).to("joined")
    pipeline = Pipeline(tmp_path, builder.build())
    pipeline.archive("visits", [("x", {"n": 1, "place": "a"}, 1), ("x", {"n": 2, "place": "a"}, 2)], STREAM)
    pipeline.archive("places", [("a", "v", 1_000_000)], TABLE)
    pipeline.run(2)
    pipeline.run()
    assert [value["n"] for _, _, _, value, _ in pipeline.output("joined")] == [1]
    assert open_archive(pipeline.warehouse, "joined").end_offsets() == {0: 1}


def test_a_table_that_nobody_looks_into_is_not_read(tmp_path: Path) -> None:
    builder = StreamsBuilder("job")
    builder.global_table("places")
    builder.stream("visits").to("copy")
    assert builder.build().source_topics == ("visits",)
    pipeline = Pipeline(tmp_path, builder.build())
    pipeline.archive("visits", [("x", {"n": 1, "place": "a"}, 1)], STREAM)
    pipeline.run()
    assert len(pipeline.output("copy")) == 1


def test_what_cannot_be_used_is_in_every_tasks_ledger(tmp_path: Path) -> None:
    """Unusable records go to the quarantine of each task that reads them; late versions are counted only."""

    def build(retention_ms: int | None) -> Topology:
        builder = StreamsBuilder("job")
        store = Stores.persistent_versioned_key_value_store("places", timedelta(milliseconds=10))
        materialized = Materialized.as_(store) if retention_ms else None
        places = builder.global_table("places", materialized, Consumed().with_timestamp_extractor("timestamp"))
        builder.stream("visits").left_join(places, "place", JOINER).to("joined")
        return builder.build()

    visits = [(key, {"n": n, "place": "a"}, 600 + n) for n, key in enumerate("xyzuvw")]
    for number, (retention_ms, policy) in enumerate([(None, "fail"), (None, "quarantine"), (10, "quarantine")]):
        pipeline = Pipeline(tmp_path / str(number), build(retention_ms), on_bad_record=policy, on_late_record="topic")
        pipeline.archive("visits", visits, STREAM, 2)
        pipeline.archive("places", [("a", "v", 500), ("a", "late", 400), ("a", "bad", None)], TABLE)
        if policy == "fail":
            with pytest.raises(InputError, match=r"no timestamp.*topic places.*partition 0"):
                pipeline.run()
            continue
        staged = pipeline.run()
        assert not isinstance(staged, NothingToDo)
        assert len(pipeline.output(quarantine_topic("job"))) == 2
        table = f"KTABLE-SOURCE-{1 if retention_ms else 2:010d}"  # a store without a name has a number, too
        written = [task.metrics[table].accounts for task in staged.tasks]
        assert written == [{"stored": 2}] * 2 if retention_ms is None else [{"stored": 1, "refused": 1}] * 2
        with pytest.raises(ConfigurationError, match="no topic archive|does not exist|there is no"):
            pipeline.output(late_topic("job"))


def test_keys_of_another_type_would_never_match(tmp_path: Path) -> None:
    builder = StreamsBuilder("job")
    places = builder.global_table("places")
    builder.stream("visits").join(places, pc.field("value", "n"), JOINER).to("joined")
    pipeline = Pipeline(tmp_path, builder.build())
    pipeline.archive("visits", [("x", {"n": 1, "place": "a"}, 1)], STREAM)
    pipeline.archive("places", [("a", "v", 1)], TABLE)
    with pytest.raises(ConfigurationError, match=r"looks for keys of type int64.*of type string.*cast"):
        pipeline.run()
