"""Topologies whose repartition topics form a circle: a record comes back before the next one is taken up."""

from __future__ import annotations

from collections import Counter
from contextlib import nullcontext
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelib import (
    Consumed,
    Materialized,
    Processor,
    PunctuationType,
    Record,
    Repartitioned,
    StreamsBuilder,
    StringSerde,
    per_record,
    serde_for,
)
from statelib.errors.kinds import ConfigurationError
from statelib.task import circle
from tests.task.pipeline import Pipeline

if TYPE_CHECKING:
    from pathlib import Path

    from statelib.topology import Topology

PERSON = pa.struct([("name", pa.string()), ("boss", pa.string())])
TYPES = (pa.string(), PERSON)
KEYS = ["a", "b", "c", "d"]
PEOPLE = st.lists(
    st.tuples(
        st.sampled_from(KEYS),
        st.one_of(st.none(), st.tuples(st.sampled_from(["Ann", "Bob"]), st.sampled_from([None, *KEYS]))),
        st.integers(0, 3),
    ),
    max_size=20,
)
"""Key, name and boss, and how much later than the one before."""


def bosses() -> Topology:
    """A table that refers to itself."""
    builder = StreamsBuilder("app")
    people = builder.table("people", Materialized.as_("people"))
    named = people.left_join(people, {"name": "left.name", "boss": "right.name"}, foreign_key="boss")
    named.to_stream().to("named")
    return builder.build()


def rows_of(people: list[Any]) -> list[Any]:
    now, rows = 1_000, []
    for key, value, later in people:
        now += later
        rows.append((key, None if value is None else dict(zip(("name", "boss"), value, strict=True)), now))
    return rows


def replayed(folder: Path, topology: Topology, rows: list[Any], cuts: list[int], **settings: Any) -> Pipeline:
    pipeline = Pipeline(folder, topology, **settings)
    pipeline.archive("people", rows, TYPES, 2)
    for cut in [*sorted(cuts), None]:
        pipeline.run(cut)
    return pipeline


def last_of_each(pipeline: Pipeline, topic: str) -> dict[Any, Any]:
    return {key: value for _, _, key, value, _ in pipeline.output_if_present(topic)}


@given(people=PEOPLE, cuts=st.lists(st.integers(1_000, 1_060), max_size=3), batch_records=st.sampled_from([1, 3, 100]))
def test_a_table_that_refers_to_itself(
    tmp_path_factory: pytest.TempPathFactory, people: list[Any], cuts: list[int], batch_records: int
) -> None:
    """Whatever the slices and batches are, the same bytes; and in the end each row has the name of its boss."""
    rows, folder = rows_of(people), tmp_path_factory.mktemp("circle")
    whole = replayed(folder / "whole", bosses(), rows, [])
    cut = replayed(folder / "cut", bosses(), rows, cuts, batch_records=batch_records, memory_budget_bytes=1)
    assert cut.output_if_present("named") == whole.output_if_present("named")
    assert not rows or cut.state() == whole.state()
    latest = {key: value for key, value, _ in rows}
    expected = {
        key: value and {"name": value["name"], "boss": (latest.get(value["boss"]) or {}).get("name")}
        for key, value in latest.items()
    }
    made = last_of_each(whole, "named")
    assert {key: made.get(key) for key in expected} == expected


def counting_down(*, counted: bool = False) -> Topology:
    """What is written comes back, one less, until nothing is left."""
    builder = StreamsBuilder("app")
    all_ = builder.stream("in").merge(builder.stream("again"))
    all_.filter(per_record(lambda value: value > 0, pa.bool_(), "value")).map(
        per_record(lambda key: key[1:] + key[:1], pa.string(), "key"), per_record(_less, pa.int64(), "value")
    ).to("again")
    all_.to("out")
    if counted:
        all_.group_by_key().count(Materialized.as_("counts"))
    return builder.build()


def _less(value: int) -> int:
    return value - 1


@given(
    numbers=st.lists(st.tuples(st.sampled_from(["ab", "bc", "abc"]), st.integers(-1, 4)), max_size=12),
    cuts=st.lists(st.integers(1_000, 1_012), max_size=2),
)
def test_a_stream_that_comes_back_to_itself(
    tmp_path_factory: pytest.TempPathFactory, numbers: list[tuple[str, int]], cuts: list[int]
) -> None:
    pipeline = Pipeline(tmp_path_factory.mktemp("down"), counting_down(), batch_records=4)
    pipeline.archive("in", [(*row, 1_000 + at) for at, row in enumerate(numbers)], (pa.string(), pa.int64()), 2)
    for cut in [*sorted(cuts), None]:
        pipeline.run(cut)
    expected = []
    for at, (key, value) in enumerate(numbers):
        expected.append((key, value, 1_000 + at))
        for less in range(value - 1, -1, -1):
            key = key[1:] + key[:1]  # noqa: PLW2901
            expected.append((key, less, 1_000 + at))
    made = sorted(pipeline.output_if_present("out"), key=lambda row: (row[4], -row[3]))
    assert [row[2:] for row in made] == expected


def joined_with_its_own_aggregate() -> Topology:
    """Each record finds what those before it have made of the group that it names."""
    builder = StreamsBuilder("app")
    stream = builder.stream("people")
    sizes = stream.group_by("value.boss").count()
    stream.left_join(sizes, {"name": "left.name", "size": "right"}).to("sized")
    return builder.build()


def test_a_record_finds_what_those_before_it_have_made(tmp_path: Path) -> None:
    rows = [("a", {"name": "1", "boss": "a"}, 1_000), ("a", {"name": "2", "boss": "b"}, 1_000),
            ("a", {"name": "3", "boss": "a"}, 1_000), ("b", {"name": "4", "boss": "a"}, 1_001)]  # fmt: skip
    pipeline = replayed(tmp_path, joined_with_its_own_aggregate(), rows, [1_001])
    sizes = {row[3]["name"]: row[3]["size"] for row in pipeline.output("sized")}
    assert sizes == {"1": None, "2": 1, "3": 1, "4": 1}


def test_records_without_end_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(circle, "MOST_PASSED_ON", 50)
    builder = StreamsBuilder("app")
    builder.stream("people").merge(builder.stream("again")).to("again")
    with pytest.raises(ConfigurationError, match="caused 50 others in a circle.*no end.*filter") as caught:
        replayed(tmp_path, builder.build(), [("a", None, 1_000)], [])
    assert {"task", "topics"} <= caught.value.place.keys()


class TellsOften(Processor):
    """Tells every ten milliseconds, by the wall clock, how many were in a group so far."""

    def init(self, context: Any) -> None:
        super().init(context)
        context.schedule(timedelta(milliseconds=10), PunctuationType.WALL_CLOCK_TIME, self.tell)

    def process(self, record: Any) -> None:
        pass

    def tell(self, now_ms: int) -> None:
        counted = self.context.get_state_store("counts").get("x")
        self.context.forward(Record("x", counted and counted.value, now_ms))


@given(
    rows=st.lists(st.tuples(st.sampled_from("xy"), st.integers(0, 12)), min_size=1, max_size=12),
    cuts=st.lists(st.integers(1_000, 1_060), max_size=2),
    batch_records=st.sampled_from([1, 100]),
)
def test_calls_by_the_wall_clock_find_all_that_the_record_has_caused(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, int]], cuts: list[int], batch_records: int
) -> None:
    builder = StreamsBuilder("app")
    groups = builder.stream("people")
    groups.group_by("value").count(Materialized.as_("counts"))
    groups.process(TellsOften, "counts", value_type=pa.int64()).to("told")
    fed, told, now, count = [], [], 1_000, 0
    due = now + rows[0][1] + 10  # the clock begins with the first record
    for group, later in rows:
        now += later
        fed.append(("a", group, now))
        count += group == "x"
        if now >= due:
            told.append((count or None, now))
            due += ((now - due) // 10 + 1) * 10
    pipeline = Pipeline(tmp_path_factory.mktemp("told"), builder.build(), batch_records=batch_records)
    pipeline.archive("people", fed, (pa.string(), pa.string()), 1)
    for cut in [*sorted(cuts), None]:
        pipeline.run(cut)
    made = pipeline.output_if_present("told")
    assert [(value, timestamp) for _, _, _, value, timestamp in made] == told


class Closed(Processor):
    """Says whether it has been closed."""

    closed: ClassVar[list[str]] = []

    def process(self, record: Any) -> None:
        if record.value == 3:
            raise ValueError("three")
        if record.value > 0:
            self.context.forward(record.with_value(record.value - 1))

    def close(self) -> None:
        self.closed.append(self.context.task_id)


@pytest.mark.parametrize("value", [1, 3])
def test_processors_of_a_circle_are_closed_however_it_ends(tmp_path: Path, value: int) -> None:
    builder = StreamsBuilder("app")
    all_ = builder.stream("in").merge(builder.stream("again"))
    all_.process(Closed).to("again")
    pipeline = Pipeline(tmp_path, builder.build())
    pipeline.archive("in", [("a", value, 1_000)], (pa.string(), pa.int64()), 2)
    planned = pipeline.plan()
    Closed.closed.clear()
    with nullcontext() if value == 1 else pytest.raises(ConfigurationError, match="three") as caught:
        pipeline.replay(planned)
    assert Closed.closed.count("0_1") == 1  # as the first task they are also made to find types
    assert value == 1 or caught.value.place["task"] in {"0_0", "0_1"}


class Echo(Processor):
    def process(self, record: Any) -> None:
        self.context.forward(record)


def test_types_that_follow_from_nothing_but_themselves_are_asked_for(tmp_path: Path) -> None:
    builder = StreamsBuilder("app")
    builder.stream("again").process(Echo).to("again")
    builder.stream("people").to("out")
    with pytest.raises(ConfigurationError, match=r"types of what comes back.*again-repartition.*Consumed\.with_"):
        replayed(tmp_path, builder.build(), [("a", None, 1_000)], [])


def joined_with_what_comes_of_it(value: pa.DataType) -> Topology:
    """Each result counts for the next ones: no type is known before the others are."""
    builder = StreamsBuilder("app")
    results = builder.stream("results", Consumed.with_(StringSerde(), serde_for(value)))
    sizes = results.group_by(per_record(lambda key: key.upper(), pa.string(), "key")).count(Materialized.as_("sizes"))
    sized = per_record(lambda left, right: left + (right or 0), pa.int64())
    builder.stream("in").select_key(per_record(lambda key: key.upper(), pa.string(), "key")).left_join(sizes, sized).to(
        "results"
    )
    return builder.build()


@given(
    numbers=st.lists(st.tuples(st.sampled_from(["a", "b", "B", "c"]), st.integers(0, 9)), max_size=12),
    cuts=st.lists(st.integers(1_000, 1_012), max_size=2),
)
def test_serdes_tell_types_that_follow_from_nothing_but_themselves(
    tmp_path_factory: pytest.TempPathFactory, numbers: list[tuple[str, int]], cuts: list[int]
) -> None:
    pipeline = Pipeline(tmp_path_factory.mktemp("results"), joined_with_what_comes_of_it(pa.int64()), batch_records=4)
    pipeline.archive("in", [(*row, 1_000 + at) for at, row in enumerate(numbers)], (pa.string(), pa.int64()), 2)
    for cut in [*sorted(cuts), None]:
        pipeline.run(cut)
    sizes: Counter[str] = Counter()
    expected = []
    for at, (key, value) in enumerate(numbers):
        expected.append((key.upper(), value + sizes[key.upper()], 1_000 + at))
        sizes[key.upper()] += 1
    made = sorted(pipeline.output_if_present("results"), key=lambda row: row[4])
    assert [row[2:] for row in made] == expected


def test_serdes_that_tell_other_types_than_are_written_are_refused(tmp_path: Path) -> None:
    pipeline = Pipeline(tmp_path, joined_with_what_comes_of_it(pa.string()))
    pipeline.archive("in", [("a", 1, 1_000)], (pa.string(), pa.int64()))
    with pytest.raises(ConfigurationError, match="read with values of type string, and values of type int64 are wr"):
        pipeline.run()


def test_types_that_differ_each_time_are_refused(tmp_path: Path) -> None:
    builder = StreamsBuilder("app")
    wrapped = builder.stream("people").merge(builder.stream("again")).map_values({"name": "name", "boss": "value.boss"})
    wrapped.map_values({"name": "value"}).to("again")
    with pytest.raises(ConfigurationError, match="differ in type|other types each time"):
        replayed(tmp_path, builder.build(), [("a", None, 1_000)], [])


def test_a_circle_is_not_sealed(tmp_path: Path) -> None:
    pipeline = Pipeline(tmp_path, bosses())
    pipeline.archive("people", [("a", None, 1_000)], TYPES, 2)
    with pytest.raises(ConfigurationError, match="run that ends the input where repartition topics form a circle"):
        pipeline.run(end_of_input="seal")


def beside_a_circle(*counted: str) -> Topology:
    """What comes before a circle, and what has nothing to do with it, with the stores that are named."""
    builder = StreamsBuilder("app")
    first, beside = builder.stream("first"), builder.stream("beside")
    before = first.merge(beside).repartition(Repartitioned.as_("before"))
    all_ = builder.stream("in").merge(before).merge(builder.stream("again"))
    all_.filter(per_record(lambda value: value > 0, pa.bool_(), "value")).map_values(
        per_record(_less, pa.int64(), "value")
    ).to("again")
    behind = all_.repartition(Repartitioned.as_("behind"))
    for name, stream in {"ahead": first, "before": before, "in": all_, "behind": behind}.items():
        if name in counted:
            counts = stream.group_by_key().count(Materialized.as_(f"counts-{name}"))
            counts.to_stream().to(f"counted-{name}")
    return builder.build()


def filled(folder: Path, before: Topology, after: Topology, **options: Any) -> Pipeline:
    """A job that has its second topology from its third slice on."""
    pipeline = Pipeline(folder, before, batch_records=2)
    for shift, topic in enumerate(["first", "beside", "in"]):
        rows = [(key, n % 4, 1_000 + 10 * n + shift) for n, key in enumerate(["a", "b", "ab", "a", None, "b"] * 3)]
        pipeline.archive(topic, rows, (pa.string(), pa.int64()), 2)
    for cut in (1_040, 1_090):
        pipeline.run(cut)
    pipeline.topology = after
    pipeline.run(1_130, **options)
    pipeline.run()
    return pipeline


def test_a_store_that_comes_before_a_circle_is_filled_from_history(tmp_path: Path) -> None:
    always = filled(tmp_path / "always", beside_a_circle("ahead", "in"), beside_a_circle("ahead", "in"))
    later = filled(
        tmp_path / "later", beside_a_circle("in"), beside_a_circle("ahead", "in"), fill_stores=["counts-ahead"]
    )
    assert later.state() == always.state()
    assert later.output("counted-in") == always.output("counted-in")
    since = [row for row in always.output("counted-ahead") if row[-1] >= 1_090]
    assert [row[2:] for row in later.output("counted-ahead")] == [row[2:] for row in since]


@pytest.mark.parametrize("place", ["before", "in", "behind"])
def test_a_store_in_or_behind_a_circle_is_not_filled_from_history(tmp_path: Path, place: str) -> None:
    with pytest.raises(ConfigurationError, match=r"lies in or behind .* circle.*: again-repartition") as refused:
        filled(tmp_path, beside_a_circle(), beside_a_circle(place), fill_stores=[f"counts-{place}"])
    assert refused.value.place["store"] == f"counts-{place}"
    assert "new name" in str(refused.value.next_step)
    begins_empty = filled(tmp_path / "empty", beside_a_circle(), beside_a_circle(place))
    assert begins_empty.output(f"counted-{place}")


def test_tasks_of_a_circle_are_done_together_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pipeline = Pipeline(tmp_path, bosses(), code="of the job")
    pipeline.archive("people", rows_of([(key, ("Ann", "a"), 1) for key in KEYS]), TYPES, 2)
    planned = pipeline.plan()

    def one_fails(task: Any, *arguments: Any) -> Any:
        if task.work.planned.partition == 1:
            raise RuntimeError("at the second task")
        return finish(task, *arguments)

    finish = circle._Member.finish
    monkeypatch.setattr(circle._Member, "finish", one_fails)
    with pytest.raises(RuntimeError, match="at the second task"):
        pipeline.replay(planned)
    monkeypatch.setattr(circle._Member, "finish", finish)
    staged = pipeline.replay(planned)
    assert staged.done_before == 0
    assert pipeline.replay(planned).done_before == len(planned.tasks)
