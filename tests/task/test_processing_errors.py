"""Records for which a function fails: left out there and nowhere else, counted, and set aside with their reason."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelib import (
    Branched,
    Materialized,
    Named,
    Processor,
    Produced,
    Record,
    SessionWindows,
    Stores,
    StreamsBuilder,
    per_record,
)
from statelib.commits.layout import quarantine_topic
from statelib.commits.run.plan import NothingToDo
from statelib.errors.kinds import ConfigurationError
from tests.task.pipeline import Pipeline

if TYPE_CHECKING:
    from pathlib import Path

    from statelib import ProcessorContext
    from statelib.topology import Topology

TYPES = (pa.string(), pa.int64())
ROWS = st.lists(st.tuples(st.sampled_from(["a", "b", None]), st.integers(0, 9)), max_size=30)


def fails_for(multiple: int, result: Any = None) -> Any:
    """A function that fails for multiples of a number."""

    def function(value: int) -> Any:
        if value % multiple == 0:
            raise ValueError(f"{value} is a multiple of {multiple}")
        return value if result is None else result(value)

    return function


def mapped(multiple: int, arrow_type: pa.DataType = TYPES[1], result: Any = None) -> Any:
    return per_record(fails_for(multiple, result), arrow_type, "value")


def topology() -> Topology:
    """A function that fails in each kind of step without state, each with a sink of its own."""
    builder = StreamsBuilder("app")
    stream = builder.stream("in")
    stream.map_values(mapped(2), Named.as_("map-values")).to("mapped")
    stream.filter(mapped(3, pa.bool_(), lambda value: value > 4), Named.as_("filter")).to("filtered")
    stream.select_key(mapped(5, pa.string(), str), Named.as_("select-key")).to("keyed")
    stream.flat_map_values(mapped(4, pa.list_(pa.int64()), lambda value: [value] * (value % 3)), Named.as_("flat")).to(
        "flat"
    )
    split = stream.split(Named.as_("split-")).branch(
        mapped(7, pa.bool_(), lambda value: value < 5), Branched.as_("low")
    )
    for name, branch in split.default_branch(Branched.as_("high")).items():
        branch.to(name)
    extractor = mapped(6, pa.string(), lambda value: f"to-{value % 2}")
    stream.to(extractor, Produced.as_("extractor"), topics=["to-0", "to-1"])
    stream.peek(whole_batches_fail, Named.as_("peek")).to("peeked")
    twice = stream.flat_map_values(per_record(lambda value: [value, value + 1], pa.list_(pa.int64()), "value"))
    twice.map_values(mapped(2), Named.as_("second-of-two")).to("one-of-two")
    return builder.build()


def whole_batches_fail(batch: pa.RecordBatch) -> None:
    if pc.any(pc.equal(batch["value"], 8)).as_py():
        raise RuntimeError("eight")


def expected(rows: list[tuple[Any, int]]) -> dict[str, list[Any]]:
    """By topic, values; and by node, those that failed."""
    values = [value for _, value in rows]

    def without(multiple: int) -> list[int]:
        return [value for value in values if value % multiple]

    return {
        "mapped": without(2),
        "filtered": [value for value in without(3) if value > 4],
        "keyed": without(5),
        "flat": [value for value in without(4) for _ in range(value % 3)],
        "split-low": [value for value in without(7) if value < 5],
        "split-high": [value for value in without(7) if value >= 5],
        "to-0": [value for value in without(6) if value % 2 == 0],
        "to-1": [value for value in without(6) if value % 2],
        "peeked": [value for value in values if value != 8],
        "one-of-two": [one for value in values for one in (value, value + 1) if one % 2],
    }


FAILING = {
    "map-values": lambda value: value % 2 == 0, "filter": lambda value: value % 3 == 0,
    "select-key": lambda value: value % 5 == 0, "flat": lambda value: value % 4 == 0,
    "split-": lambda value: value % 7 == 0, "extractor": lambda value: value % 6 == 0,
    "peek": lambda value: value == 8, "second-of-two": lambda _: True,
}  # fmt: skip
"""By node, the values of source records that fail there."""


@given(rows=ROWS, cuts=st.lists(st.integers(0, 30), max_size=2), batch_records=st.sampled_from([1, 4, 100]))
def test_what_fails_is_left_out_there_and_set_aside(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Any], cuts: list[int], batch_records: int
) -> None:
    pipeline = Pipeline(
        tmp_path_factory.mktemp("errors"), topology(), on_processing_error="quarantine", batch_records=batch_records
    )
    pipeline.archive("in", [(*row, 1_000 + number) for number, row in enumerate(rows)], TYPES)
    for cut in [*sorted(cuts), None]:
        pipeline.run(None if cut is None else 1_000 + cut)
    assert {topic: [row[3] for row in pipeline.output_if_present(topic)] for topic in expected(rows)} == expected(rows)
    aside = [(row[3]["reason"].partition(":")[0], row[3]["offset"]) for row in quarantined(pipeline)]
    should_be = [(node, at) for node, fails in FAILING.items() for at, (_, value) in enumerate(rows) if fails(value)]
    assert sorted(aside) == sorted(should_be)


def quarantined(pipeline: Pipeline) -> list[Any]:
    return pipeline.output_if_present(quarantine_topic("job"))


def test_what_is_set_aside_says_what_was_raised_where_and_of_which_record(tmp_path: Path) -> None:
    pipeline = Pipeline(tmp_path, topology(), on_processing_error="quarantine")
    pipeline.archive("in", [("a", 1, 1_000), ("b", 4, 2_000)], TYPES)
    staged = pipeline.run()
    rows = {row[3]["reason"]: row for row in quarantined(pipeline)}
    _, _, key, value, timestamp = rows["map-values: a mapper failed: ValueError: 4 is a multiple of 2"]
    assert (key, timestamp) == (b"b", 2_000)
    assert value | {"reason": ""} == {
        "topic": "in", "partition": 0, "offset": 1, "timestamp": 2_000, "reason": "", "value": (4).to_bytes(8)
    }  # fmt: skip
    node = staged.tasks[0].metrics["map-values"]
    assert (node.records_in, node.accounts, node.dropped) == (2, {"forwarded": 1, "quarantined": 1}, {"quarantined": 1})


def test_by_default_the_first_ends_the_run(tmp_path: Path) -> None:
    pipeline = Pipeline(tmp_path, topology())
    pipeline.archive("in", [("a", 1, 1_000), ("b", 4, 2_000)], TYPES)
    with pytest.raises(ConfigurationError, match="4 is a multiple of 2") as caught:
        pipeline.run()
    assert caught.value.place["offset"] == 1


def test_a_table_is_without_the_change_for_which_its_function_fails(tmp_path: Path) -> None:
    """So is what is made of its changes: the value before stays, and is what the next one replaces."""
    builder = StreamsBuilder("app")
    table = builder.table("in").map_values(mapped(2), materialized=Materialized.as_("odd"))
    table.group_by("key").sum("value").to_stream().to("out")
    pipeline = Pipeline(tmp_path, builder.build(), on_processing_error="quarantine", batch_records=2)
    pipeline.archive("in", [("a", value, 1_000 + value) for value in (1, 2, 3, 4, 5)], TYPES)
    pipeline.run()
    assert [row[3] for row in pipeline.output("out")][-1] == 5
    assert [row[3]["offset"] for row in quarantined(pipeline)] == [1, 3]


def test_of_several_results_of_a_record_only_the_one_fails_for_which_the_function_does(tmp_path: Path) -> None:
    """A session that another replaces is deleted, whatever becomes of the other; so is each piece of a record."""
    builder = StreamsBuilder("app")
    stream = builder.stream("in")
    sessions = stream.group_by_key().windowed_by(SessionWindows.of_inactivity_gap_with_no_grace(timedelta(seconds=10)))
    sessions.count().map_values(mapped(2), Named.as_("odd")).to_stream().to("counts")
    pieces = stream.flat_map_values(per_record(lambda value: [3, 6, 7], pa.list_(pa.int64()), "value"))
    branches = pieces.split(Named.as_("b-"))
    branches.branch(mapped(8, pa.bool_(), lambda value: value == 3), Branched.as_("3"))
    for name, branch in branches.branch(mapped(7, pa.bool_(), bool), Branched.as_("6")).no_default_branch().items():
        branch.to(name)
    pipeline = Pipeline(tmp_path, builder.build(), on_processing_error="quarantine")
    pipeline.archive("in", [("a", 1, 1_000), ("a", 1, 2_000)], TYPES)
    pipeline.run()
    assert [row[3] for row in pipeline.output("counts")] == [1, None]
    assert [row[3] for row in pipeline.output("b-3")] == [3, 3]
    assert [row[3] for row in pipeline.output("b-6")] == [6, 6]
    assert sorted(row[3]["reason"].partition(":")[0] for row in quarantined(pipeline)) == ["b-", "b-", "odd"]


class Counting(Processor):
    """Counts in a store, forwards, then fails for some."""

    def __init__(self, multiple: int) -> None:
        self._fails = fails_for(multiple)

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self._store = context.get_state_store("counts")

    def process(self, record: Record) -> None:
        self._store.put("n", (self._store.get("n") or 0) + 1)
        self.context.forward(record.with_value(100 * self._store.get("n") + record.value))
        self._fails(record.value)
        self.context.forward(record.with_value(-record.value))


COUNTS = Stores.key_value_store_builder(Stores.persistent_key_value_store("counts"), pa.string(), pa.int64())


@given(rows=ROWS, cuts=st.lists(st.integers(0, 30), max_size=2), batch_records=st.sampled_from([1, 4, 100]))
@pytest.mark.parametrize("together", [False, True])
def test_of_a_processor_stays_what_it_has_done_before_it_failed(
    tmp_path_factory: pytest.TempPathFactory, together: bool, rows: list[Any], cuts: list[int], batch_records: int
) -> None:
    """Also where a second one shares its store, and gets what it forwards at once: the first one goes on then."""
    builder = StreamsBuilder("app").add_state_store(COUNTS)
    first = builder.stream("in").process(partial(Counting, 3), "counts", named=Named.as_("first"))
    last = first.process(partial(Counting, 2), "counts", named=Named.as_("second")) if together else first
    last.to("out")
    pipeline = Pipeline(
        tmp_path_factory.mktemp("p"), builder.build(), on_processing_error="quarantine", batch_records=batch_records
    )
    pipeline.archive("in", [(*row, 1_000 + number) for number, row in enumerate(rows)], TYPES)
    tasks = []
    for cut in [*sorted(cuts), None]:
        staged = pipeline.run(None if cut is None else 1_000 + cut)
        tasks += [] if isinstance(staged, NothingToDo) else staged.tasks

    count, forwarded, aside = 0, [], []

    def process(multiples: tuple[int, ...], value: int, offset: int) -> None:
        nonlocal count
        if not multiples:
            forwarded.append(value)
            return
        count += 1
        process(multiples[1:], 100 * count + value, offset)
        if value % multiples[0] == 0:
            aside.append(("first" if multiples[0] == 3 else "second", offset))
        else:
            process(multiples[1:], -value, offset)

    for offset, (_, value) in enumerate(rows):
        process((3, 2) if together else (3,), value, offset)
    assert [row[3] for row in pipeline.output_if_present("out")] == forwarded
    told = [(row[3]["reason"].partition(":")[0], row[3]["offset"]) for row in quarantined(pipeline)]
    assert sorted(told) == sorted(aside)
    nodes = [task.metrics[name] for task in tasks for name in ("first", "second") if name in task.metrics]
    assert sum(node.dropped.get("quarantined", 0) for node in nodes) == len(aside)
    assert all(node.records_in == sum(node.accounts.values()) for node in nodes)


class Doubling(Processor):
    def process(self, record: Record) -> None:
        self.context.forward(record)
        self.context.forward(record.with_value(record.value * 2))


def test_behind_a_repartition_the_record_of_that_topic_is_set_aside(tmp_path: Path) -> None:
    builder = StreamsBuilder("app")
    moved = builder.stream("in").select_key(per_record(str, pa.string(), "value")).repartition()
    moved.process(Doubling).map_values(mapped(4), Named.as_("fails")).to("out")
    pipeline = Pipeline(tmp_path, builder.build(), on_processing_error="quarantine")
    pipeline.archive("in", [("a", 1, 1_000), ("a", 2, 2_000), ("a", 4, 3_000)], TYPES)
    pipeline.run()
    assert [row[3] for row in pipeline.output("out")] == [1, 2, 2]
    aside = [(row[2], row[3]["topic"], row[3]["offset"]) for row in quarantined(pipeline)]
    assert (
        aside
        == [(b"2", "app-KSTREAM-REPARTITION-0000000002-repartition", 1)]
        + [(b"4", "app-KSTREAM-REPARTITION-0000000002-repartition", 2)] * 2
    )
