"""The same records give the same output, in however many slices, batches and bytes of memory; bad input is shown."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from statelib import Consumed, JsonSerde, per_record
from statelib.commits.run.plan import NothingToDo
from statelib.dsl import Materialized, Stores, StreamsBuilder
from statelib.errors.kinds import ConfigurationError, InputError
from statelib.operators.aggregation.sql_functions import count, mean_, sum_
from statelib.operators.deduplication import operator as deduplicate
from statelib.operators.suppress.definition import BufferConfig, Suppressed
from statelib.operators.windows.definition import TimeWindows
from tests.task.pipeline import Pipeline

if TYPE_CHECKING:
    from pathlib import Path

    from statelib.topology import Topology

VALUE = pa.struct([("id", pa.string()), ("amount", pa.float64())])
TYPES = (pa.string(), VALUE)
HOUR = timedelta(hours=1)


def sales(seed: int, records: int) -> list[tuple[Any, Any, int | None]]:
    """Out-of-order records of a few keys, some of them twice, some without key, id or value."""
    rng = np.random.default_rng(seed)
    time = np.maximum(0, np.arange(records) * 60_000 + rng.integers(-4_000_000, 1, records))
    rows: list[tuple[Any, Any, int | None]] = []
    for row in range(records):
        if rows and rng.random() < 0.1:
            rows.append(rows[rng.integers(len(rows))])
            continue
        key = None if rng.random() < 0.03 else f"key-{rng.integers(6)}"
        name = None if rng.random() < 0.03 else f"id-{row}"
        value = None if rng.random() < 0.03 else {"id": name, "amount": float(rng.integers(1, 100))}
        rows.append((key, value, int(time[row])))
    return rows


def topology(*, over_all_partitions: bool = False) -> Topology:
    builder = StreamsBuilder("job")
    stream = builder.stream("sales")
    once = (
        stream.deduplicate("id", timedelta(hours=2))
        if over_all_partitions
        else stream.deduplicate_by_key_value("id", timedelta(hours=2))
    )
    once.to("once")
    (
        once.group_by_key()
        .windowed_by(TimeWindows.of_size_and_grace(HOUR, timedelta(minutes=30)))
        .aggregate({"sales": count(), "total": sum_("amount"), "mean": mean_("amount")}, Materialized.as_("by-hour"))
        .suppress(Suppressed.until_window_closes(BufferConfig.unbounded()))
        .to_stream()
        .to("by-hour")
    )
    return builder.build()


def outputs(pipeline: Pipeline) -> dict[str, list[Any]]:
    return {topic: pipeline.output(topic) for topic in ("once", "by-hour")}


def replayed(
    directory: Path, cuts: list[int | None], *, over_all_partitions: bool = False, **settings: Any
) -> dict[str, list[Any]]:
    pipeline = Pipeline(directory, topology(over_all_partitions=over_all_partitions), **settings)
    pipeline.archive("sales", sales(1, 250), TYPES, partitions=3)
    for cut in cuts:
        pipeline.run(cut)
    assert isinstance(pipeline.run(), NothingToDo)
    return outputs(pipeline)


@pytest.mark.thorough
@pytest.mark.parametrize("over_all_partitions", [False, True])
def test_slices_batches_and_memory_do_not_matter(
    tmp_path: Path, over_all_partitions: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deduplicate, "_FEWEST_SPILLED", 3)
    whole = replayed(tmp_path / "whole", [None], over_all_partitions=over_all_partitions)
    assert len(whole["once"]) > 180
    assert len(whole["by-hour"]) > 10
    hours = [int(hour * 3_600_000) for hour in (1, 1.5, 4, 4.01, 8)]
    variants = {
        "slices": replayed(tmp_path / "slices", [*hours, None], over_all_partitions=over_all_partitions),
        "batches": replayed(tmp_path / "batches", [None], over_all_partitions=over_all_partitions, batch_records=1),
        "memory": replayed(
            tmp_path / "memory",
            [hours[2], None],
            over_all_partitions=over_all_partitions,
            batch_records=7,
            memory_budget_bytes=1,
        ),
    }
    for name, variant in variants.items():
        assert variant == whole, name


@pytest.mark.thorough
@pytest.mark.parametrize("left", [False, True])
def test_a_temporal_join_does_not_depend_on_slices(tmp_path: Path, left: bool) -> None:
    def joined(directory: Path, cuts: list[int | None]) -> list[Any]:
        builder = StreamsBuilder("job")
        store = Stores.persistent_versioned_key_value_store("prices", timedelta(hours=3))
        prices = builder.table("prices", Materialized.as_(store))
        stream = builder.stream("sales")
        join = stream.left_join if left else stream.join
        join(prices, {"id": "left.id", "price": "right.amount"}).to("priced")
        pipeline = Pipeline(directory, builder.build())
        pipeline.archive("sales", sales(3, 200), TYPES, partitions=2)
        pipeline.archive("prices", sales(4, 200), TYPES, partitions=2)
        for cut in cuts:
            pipeline.run(cut)
        return pipeline.output("priced")

    whole = joined(tmp_path / "whole", [None])
    assert any(value["price"] is not None for _, _, _, value, _ in whole)
    assert any(value["price"] is None for _, _, _, value, _ in whole) == left
    assert joined(tmp_path / "slices", [*range(1_000_000, 12_000_000, 2_000_000), None]) == whole


def test_the_example_of_kip_889_through_archives(tmp_path: Path) -> None:
    builder = StreamsBuilder("job")
    store = Stores.persistent_versioned_key_value_store("b", timedelta(seconds=1))
    table = builder.table("B", Materialized.as_(store))
    builder.stream("A").join(table, {"a": "left", "b": "right"}).to("out")
    pipeline = Pipeline(tmp_path, builder.build())
    texts = (pa.string(), pa.string())
    pipeline.archive("B", [("k", "b0", 0), ("k", "b3", 3)], texts)
    pipeline.archive("A", [("k", "a1", 1), ("k", "a4", 4), ("k", "a2", 2)], texts)
    pipeline.run()
    values = [tuple(value.values()) for _, _, _, value, _ in pipeline.output("out")]
    assert values == [("a1", "b0"), ("a4", "b3"), ("a2", "b0")]


def test_a_record_that_cannot_be_used_ends_the_run_at_its_place(tmp_path: Path) -> None:
    pipeline = Pipeline(tmp_path, topology())
    pipeline.archive("sales", [("a", {"id": "1", "amount": 1.0}, 5), ("a", {"id": "2", "amount": 1.0}, -5)], TYPES)
    with pytest.raises(
        InputError, match=r"negative timestamp.*topic sales, partition 0, offset 1, task 0_0.*quarantine"
    ):
        pipeline.run()


def test_records_that_cannot_be_used_go_to_the_quarantine_topic(tmp_path: Path) -> None:
    pipeline = Pipeline(tmp_path, topology(), on_bad_record="quarantine")
    good = ("a", {"id": "1", "amount": 1.0}, 5)
    pipeline.archive("sales", [good, ("a", {"id": "2", "amount": 1.0}, -5), ("b", None, None)], TYPES)
    staged = pipeline.run()
    assert not isinstance(staged, NothingToDo)
    (task,) = staged.tasks
    assert task.metrics["KSTREAM-SOURCE-0000000000"].accounts == {"forwarded": 1, "quarantined": 2}
    (negative, missing) = pipeline.output("job-quarantine")
    assert negative[3]["reason"] == "negative timestamp"
    assert (negative[3]["topic"], negative[3]["offset"], negative[3]["timestamp"], negative[2]) == (
        "sales",
        1,
        -5,
        b"a",
    )
    assert (missing[3]["reason"], missing[3]["timestamp"], missing[3]["value"]) == ("no timestamp", None, None)
    assert len(pipeline.output("once")) == 1


def test_json_is_decoded_and_what_is_no_json_goes_to_the_quarantine_topic(tmp_path: Path) -> None:
    builder = StreamsBuilder("job")
    consumed = Consumed.with_(value_serde=JsonSerde(VALUE))
    consumed = consumed.with_timestamp_extractor(per_record(int, pa.int64(), "amount"))
    builder.stream("sales", consumed).map_values("id").to("ids")
    pipeline = Pipeline(tmp_path, builder.build(), on_bad_record="quarantine")
    good, bad = b'{"id": "1", "amount": 7.0}', b"{never closed"
    pipeline.archive("sales", [("a", good, 1), ("a", bad, 2), ("a", good, 3)], (pa.string(), pa.binary()))
    pipeline.run()
    assert [record[3:] for record in pipeline.output("ids")] == [("1", 7), ("1", 7)]
    ((_, _, _, value, _),) = pipeline.output("job-quarantine")
    assert (value["offset"], value["value"]) == (1, bad)
    assert value["reason"].startswith("undecodable value: ")


def test_a_record_stays_in_its_partition_until_it_gets_another_key(tmp_path: Path) -> None:
    builder = StreamsBuilder("job")
    builder.stream("sales").to("copy")
    pipeline = Pipeline(tmp_path, builder.build())
    pipeline.archive("sales", [(None, {"id": "1", "amount": 1.0}, 5)] * 8, TYPES, partitions=2)
    pipeline.run()
    assert len(pipeline.output("copy")) == 8  # records without a key may be anywhere
    builder = StreamsBuilder("other")
    builder.stream("copy").select_key("id").to("keyed")
    Pipeline(tmp_path, builder.build(), name="other").run()
    keyed = pipeline.output("keyed")
    assert len({record[0] for record in keyed}) == 1  # all have the same key now
    third = StreamsBuilder("third")
    third.stream("keyed").map_values("amount").to("amounts")
    Pipeline(tmp_path, third.build(), name="third").run()
    assert [record[:3] for record in pipeline.output("amounts")] == [record[:3] for record in keyed]


def test_state_of_a_topology_with_other_tasks_is_not_used(tmp_path: Path) -> None:
    pipeline = Pipeline(tmp_path, topology())
    pipeline.archive("sales", sales(2, 20), TYPES)
    pipeline.run(60_000)
    changed = Pipeline(tmp_path, topology(over_all_partitions=True))
    with pytest.raises(ConfigurationError, match="tasks of its sub-topologies were 1 and are 1, 1, 1, 1"):
        changed.run()
