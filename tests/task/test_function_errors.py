"""An error of a function says which record and which line of the user's function it was."""

from __future__ import annotations

import functools
import sys
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numba
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from statelib import (
    ConfigurationError,
    Consumed,
    FixedKeyProcessor,
    FixedKeyRecord,
    HindstreamError,
    JoinWindows,
    Materialized,
    Processor,
    ProcessorContext,
    PunctuationType,
    Record,
    SessionWindows,
    Stores,
    StreamsBuilder,
    TopologyTestDriver,
    per_record,
)
from tests.task.pipeline import Pipeline

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from statelib import KStream, KTable

pytestmark = pytest.mark.thorough

INT = pa.int64()
LIST = pa.list_(INT)
MINUTE = timedelta(minutes=1)
VERSIONED = Materialized.as_(Stores.persistent_versioned_key_value_store("versioned", MINUTE))


def whole(columns: pa.RecordBatch) -> pa.Array:
    if pc.any(pc.equal(columns.column("value"), 7)).as_py():
        raise ZeroDivisionError("seven")  # line of `whole`
    return columns.column("value")


def one(value: int) -> int:
    return 10 // (value - 7)  # line of `one`


def of_two(left: int, right: int) -> int:
    return 10 // ((left or 0) - 7)  # line of `of_two`


def of_key_too(key: str, value: int, sum_: int) -> int:
    return sum_ + 10 // (value - 7)  # line of `of_key_too`


def taking_back(key: str, value: int, sum_: int) -> int:
    return sum_ - value


def reducing(old: int, new: int) -> int:
    return old + 10 // (new - 7)  # line of `reducing`


def showing(columns: pa.RecordBatch) -> None:
    for value in columns.column("value").to_pylist():
        10 // (value - 7)  # line of `showing`


def unfolding(value: int) -> Iterator[int]:
    yield value
    yield 10 // (value - 7)  # line of `unfolding`


def outer() -> Callable[[int], int]:
    def inner(value: int) -> int:
        return 10 // (value - 7)  # line of `inner`

    return inner


class Called:
    def __call__(self, value: int) -> int:
        return 10 // (value - 7)  # line of `Called`


def exact(columns: pa.RecordBatch) -> pa.Array:
    return pc.divide(10, pc.subtract(columns.column("value"), 7))  # line of `exact`


def through_numpy(columns: pa.RecordBatch) -> pa.Array:
    made = np.frompyfunc(int, 1, 1)
    return pa.array(made(np.where(np.asarray(columns.column("value")) == 7, "x", "1")), INT)  # line of `numpy`


@numba.njit  # type: ignore[untyped-decorator]
def compiled(value: int) -> int:  # line of `compiled`
    if value == 7:
        raise ZeroDivisionError("seven")
    return value


class Fails(Processor):
    def process(self, record: Record) -> None:
        self.context.forward(record.with_value(10 // (record.value - 7)))  # line of `process`


class FailsOfValues(FixedKeyProcessor):
    def process(self, record: FixedKeyRecord) -> None:
        self.context.forward(record.with_value(10 // (record.value - 7)))  # line of `process_values`


class FailsWhenCalled(Processor):
    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        context.schedule(timedelta(milliseconds=5), PunctuationType.STREAM_TIME, self.tell)

    def process(self, record: Record) -> None: ...

    def tell(self, time_ms: int) -> None:
        10 // (time_ms // 1_005 - 1)  # line of `tell`


def line_of(marked: str) -> int:
    with Path(__file__).open(encoding="utf-8") as file:
        return next(n for n, line in enumerate(file, start=1) if line.rstrip().endswith(f"# line of `{marked}`"))


Step = "Callable[[StreamsBuilder, KStream], object]"


def failing(tmp_path: Path, step: Step, consumed: Consumed | None = None) -> HindstreamError:  # type: ignore[valid-type]
    """What a run says over 20 records whose values are their offsets, and a table ``other`` with one."""
    builder = StreamsBuilder("job")
    step(builder, builder.stream("in", consumed))  # type: ignore[misc]
    pipeline = Pipeline(tmp_path, builder.build())
    pipeline.archive("in", [("k", n, 1_000 + n) for n in range(20)], (pa.string(), INT))
    if "numbers" in pipeline.topology.source_topics:
        pipeline.archive("numbers", [(1, 1, 0)], (INT, INT))
    if "other" in pipeline.topology.source_topics:
        pipeline.archive("other", [("k", 1, 0)], (pa.string(), INT))
    with pytest.raises(ConfigurationError) as raised:
        pipeline.run()
    assert raised.value.exit_code == 78
    return raised.value


def check(error: HindstreamError, function: str) -> None:
    place = error.place
    assert (place["topic"], place["partition"], place["offset"]) == ("in", 0, 7)
    assert (place["file"], place["line"]) == (__file__, line_of(function))
    assert str(place["node"]).startswith("K")
    assert "ZeroDivisionError" in error.what
    assert error.next_step is not None
    assert "fix" in error.next_step


@pytest.mark.parametrize("function", ["whole", "one"])
@pytest.mark.parametrize(
    "step",
    [
        lambda _, s, of: s.map_values(of).to("out"),
        lambda _, s, of: s.filter(pc.field("value") > 3).map_values(of).to("out"),
        lambda _, s, of: s.map_values({"a": "value", "b": of}).to("out"),
        lambda _, s, of: s.select_key(of).to("out"),
        lambda _, s, of: s.deduplicate(of, MINUTE).to("out"),
        lambda _, s, of: s.group_by_key().sum(of).to_stream().to("out"),
        lambda _, s, of: s.group_by(of).count().to_stream().to("out"),
        lambda _, s, of: s.to_table().map_values(of).to_stream().to("out"),
        lambda _, s, of: s.to_table().transform_values(of).to_stream().to("out"),
        lambda _, s, of: s.to_table().group_by(of, "value").sum("value").to_stream().to("out"),
        lambda b, s, of: s.join(b.global_table("numbers"), of, "left").to("out"),
        lambda b, s, of: s.to_table().join(b.table("numbers"), "left", foreign_key=of).to_stream().to("out"),
    ],
    ids=[
        "map_values", "after a filter", "in a struct", "select_key", "deduplicate", "sum", "group_by", "table",
        "transform_values", "group_by of a table", "key of a global table", "foreign key",
    ],
)  # fmt: skip
def test_the_record_and_the_line(tmp_path: Path, step: Callable[..., object], function: str) -> None:
    mapper = whole if function == "whole" else per_record(one, INT, "value")
    check(failing(tmp_path, lambda builder, stream: step(builder, stream, mapper)), function)


JOINER = per_record(of_two, INT, "left", "right")
NEAR = JoinWindows.of_time_difference_with_no_grace(timedelta(milliseconds=1))


@pytest.mark.parametrize(
    "step",
    [
        lambda b, s: s.join(table(b), JOINER).to("out"),
        lambda b, s: s.left_join(table(b), JOINER).to("out"),
        lambda b, s: s.join(table(b, VERSIONED), JOINER).to("out"),
        lambda b, s: s.join(b.global_table("other"), "key", JOINER).to("out"),
        lambda b, s: s.join(b.global_table("other", VERSIONED), "key", JOINER).to("out"),
        lambda _, s: s.join(s.map_values("value"), JOINER, NEAR).to("out"),
        lambda _, s: s.outer_join(s.map_values("value"), JOINER, NEAR).to("out"),
        lambda b, s: s.to_table().join(table(b), JOINER).to_stream().to("out"),
        lambda b, s: s.to_table().left_join(table(b), JOINER).to_stream().to("out"),
        lambda b, s: s.to_table().outer_join(table(b), JOINER).to_stream().to("out"),
    ],
    ids=[
        "table", "left", "versioned", "global", "global versioned", "stream", "outer stream", "tables", "left tables",
        "outer tables",
    ],
)  # fmt: skip
def test_a_joiner(tmp_path: Path, step: Callable[..., object]) -> None:
    check(failing(tmp_path, step), "of_two")


@pytest.mark.parametrize(
    ("step", "function"),
    [
        (lambda s: s.peek(showing).to("out"), "showing"),
        (lambda s: s.foreach(showing), "showing"),
        (lambda s: s.group_by_key().reduce(reducing).to_stream().to("out"), "reducing"),
        (lambda s: s.group_by_key().aggregate_with(int, of_key_too, INT).to_stream().to("out"), "of_key_too"),
        (lambda s: sessions(s).aggregate_with(int, of_key_too, lambda k, a, b: a + b, INT).to_stream().to("out"),
         "of_key_too"),
        (lambda s: regrouped(s).aggregate_with(int, of_key_too, taking_back, INT).to_stream().to("out"), "of_key_too"),
        (lambda s: regrouped(s).reduce(reducing, reducing).to_stream().to("out"), "reducing"),
        (lambda s: s.process(Fails).to("out"), "process"),
        (lambda s: s.process_values(FailsOfValues).to("out"), "process_values"),
        (lambda s: s.flat_map_values(per_record(unfolding, LIST, "value")).to("out"), "unfolding"),
        (lambda s: s.split().branch(per_record(one, pa.bool_(), "value")).default_branch(), "one"),
    ],
    ids=["peek", "foreach", "reduce", "aggregate", "sessions", "table aggregate", "table reduce", "process",
         "process_values", "generator", "branch"],
)  # fmt: skip
def test_other_functions(tmp_path: Path, step: Callable[[KStream], object], function: str) -> None:
    error = failing(tmp_path, lambda _, stream: step(stream))
    if function in {"of_key_too", "reducing"} and "repartition" in str(error.place["topic"]):
        error.place["topic"] = "in"  # the aggregation reads what another stage has written
    check(error, function)


@pytest.mark.parametrize(
    ("mapper", "function"),
    [
        (per_record(outer(), INT, "value"), "inner"),
        (per_record(functools.partial(of_two, right=1), INT, "value"), "of_two"),
        (per_record(Called(), INT, "value"), "Called"),
        (per_record(lambda value: 10 // (value - 7), INT, "value"), "lambda"),  # line of `lambda`
        (per_record(compiled, INT, "value"), "compiled"),
    ],
    ids=["in a function", "partial", "object", "lambda", "numba"],
)
def test_functions_of_all_kinds(tmp_path: Path, mapper: Any, function: str) -> None:
    error = failing(tmp_path, lambda _, stream: stream.map_values(mapper).to("out"))
    if function == "compiled":
        assert error.place["line"] in (line_of(function), line_of(function) + 2)
        error.place["line"] = line_of(function)
    check(error, function)


@pytest.mark.parametrize(
    ("function", "line", "what"), [(exact, "exact", "ArrowInvalid: divide by zero"), (through_numpy, "numpy", "Value")]
)
def test_lines_of_libraries_are_not_the_users(tmp_path: Path, function: Any, line: str, what: str) -> None:
    error = failing(tmp_path, lambda _, stream: stream.map_values(function).to("out"))
    assert (error.place["file"], error.place["line"]) == (__file__, line_of(line))
    assert error.place["offset"] == 7
    assert what in error.what


def test_a_call_that_is_scheduled(tmp_path: Path) -> None:
    error = failing(tmp_path, lambda _, stream: stream.process(FailsWhenCalled).to("out"))
    assert (error.place["file"], error.place["line"]) == (__file__, line_of("tell"))
    assert "a processor failed: ZeroDivisionError" in error.what


@pytest.mark.parametrize("function", ["whole", "one"])
def test_a_timestamp_extractor(tmp_path: Path, function: str) -> None:
    mapper = whole if function == "whole" else per_record(one, INT, "value")
    extractor = Consumed().with_timestamp_extractor(mapper)
    check(failing(tmp_path, lambda _, stream: stream.to("out"), extractor), function)


def wrong(value: int) -> object:  # line of `wrong`
    return value if value != 7 else "seven"


def wrong_of_many(*values: Any) -> object:  # line of `wrong_of_many`
    return "seven" if 7 in values else 1


def wrong_list(value: int) -> list[object]:  # line of `wrong_list`
    return [value if value != 7 else "seven"]


class ForwardsWrong(Processor):
    def process(self, record: Record) -> None:  # line of `forwards`
        self.context.forward(record.with_value(wrong(record.value)))


@pytest.mark.parametrize(
    ("step", "function"),
    [
        (lambda _, s: s.map_values(per_record(wrong, INT, "value")).to("out"), "wrong"),
        (lambda _, s: s.filter(per_record(wrong, INT, "value")).to("out"), "wrong"),
        (lambda _, s: s.flat_map_values(per_record(wrong_list, LIST, "value")).to("out"), "wrong_list"),
        (lambda b, s: s.join(table(b), per_record(wrong_of_many, INT, "left", "right")).to("out"), "wrong_of_many"),
        (lambda _, s: s.group_by_key().aggregate_with(int, wrong_of_many, INT).to_stream().to("out"), "wrong_of_many"),
        (lambda _, s: s.group_by_key().reduce(wrong_of_many).to_stream().to("out"), "wrong_of_many"),
        (lambda _, s: s.process(ForwardsWrong).to("out"), "forwards"),
    ],
    ids=["map_values", "filter", "flat_map_values", "joiner", "aggregate", "reduce", "process"],
)  # fmt: skip
def test_results_of_another_type(tmp_path: Path, step: Callable[..., object], function: str) -> None:
    error = failing(tmp_path, step)
    if function == "wrong" and "predicate" in error.what:
        assert "not bool" in error.what  # already when the run is planned
    else:
        assert "seven" in error.what
        assert "int64" in error.what
        assert (error.place["topic"], error.place["offset"]) == ("in", 7)
    assert (error.place["file"], error.place["line"]) == (__file__, line_of(function))


def short(columns: pa.RecordBatch) -> pa.Array:  # line of `short`
    return columns.column("value").slice(1) if len(columns) else columns.column("value")


def no_column(columns: pa.RecordBatch) -> Any:  # line of `no_column`
    return None


@pytest.mark.parametrize(
    ("function", "what"),
    [(short, "a mapper gave 19 values for 20 records"), (no_column, "must be an Arrow or numpy array, not NoneType")],
)
def test_results_that_are_no_column_of_the_records(tmp_path: Path, function: Any, what: str) -> None:
    for mapper in (function, {"a": function}):
        error = failing(tmp_path / str(type(mapper)), lambda _, stream, of=mapper: stream.map_values(of).to("out"))
        assert what in error.what
        assert (error.place["file"], error.place["line"]) == (__file__, line_of(function.__name__))


@pytest.mark.parametrize("expression", [pc.field("value", "humidty") > 1, "humidty", {"a": "value.humidty"}])
def test_a_field_that_is_mistyped(tmp_path: Path, expression: Any) -> None:
    builder = StreamsBuilder("job")
    stream = builder.stream("in").filter(pc.field("value", "wind") > 0)
    stream.map_values(expression).to("out")  # line of `mistyped`
    pipeline = Pipeline(tmp_path, builder.build())
    weather = pa.struct([("wind", INT), ("humidity", INT), ("visibility", INT)])
    pipeline.archive("in", [], (pa.string(), weather))
    pipeline.archive("in", [("k", {"wind": 1}, 1)], (pa.string(), weather))
    with pytest.raises(ConfigurationError) as raised:
        pipeline.run()
    assert "no field 'humidty': value has the fields wind, humidity, visibility" in raised.value.what
    assert raised.value.next_step == "did you mean humidity?"
    assert (raised.value.place["file"], raised.value.place["line"]) == (__file__, line_of("mistyped"))


def test_the_test_driver_says_the_same(tmp_path: Path) -> None:
    builder = StreamsBuilder("job")
    builder.stream("in").foreach(showing)
    driver = TopologyTestDriver(builder.build(), tmp_path)
    topic = driver.create_input_topic("in", pa.string(), INT)
    for value in range(20):
        topic.pipe_input("k", value, 1_000 + value)
    with pytest.raises(ConfigurationError) as raised:
        driver.replay()
    check(raised.value, "showing")


def test_who_ends_the_process_fails_like_others(tmp_path: Path) -> None:
    error = failing(tmp_path, lambda _, stream: stream.map_values(per_record(leaving, INT, "value")).to("out"))
    assert "a mapper failed: SystemExit: 0" in error.what
    assert error.place["offset"] == 7


def leaving(value: int) -> int:
    return sys.exit(0) if value == 7 else value


def table(builder: StreamsBuilder, *how: Any) -> KTable:
    return builder.table("other", *how)


def sessions(stream: KStream) -> Any:
    gap = SessionWindows.of_inactivity_gap_with_no_grace(timedelta(milliseconds=1))
    return stream.group_by_key().windowed_by(gap)


def regrouped(stream: KStream) -> Any:
    return stream.select_key("value").to_table().group_by(pc.field("key") < 0, "value")
