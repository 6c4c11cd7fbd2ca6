"""Custom processors: records, scheduled calls, stores, errors."""

from __future__ import annotations

import functools
import pickle
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelib import (
    ConfigurationError,
    FixedKeyProcessor,
    FixedKeyRecord,
    InputError,
    Processor,
    ProcessorContext,
    PunctuationType,
    Record,
    RecordMetadata,
    Stores,
    StreamsBuilder,
    TopologyTestDriver,
)
from statelib.operators.processors.process import Process
from statelib.stores.spec import families_of
from tests.operators.processors.examples import COUNTS, INTERVAL, CountAndTell, CountAndTellSupplier
from tests.operators.task import Record as SourceRecord
from tests.operators.task import Task
from tests.reference import process as reference

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

STRING = pa.string()
INTERVAL_10 = timedelta(milliseconds=10)


def spec(supplier: Any, *stores: Any, key_type: pa.DataType | None = None, value_type: pa.DataType | None = None,
         fixed_key: bool = False) -> Process:  # fmt: skip
    return Process(supplier, stores, "NODE", "app", key_type, value_type, fixed_key)


def rows(batches: list[Any]) -> list[tuple[Any, Any, int]]:
    return [
        row
        for batch in batches
        for row in zip(batch.key.to_pylist(), batch.value.to_pylist(), batch.timestamp.tolist(), strict=True)
    ]


source_records = st.lists(
    st.builds(
        SourceRecord,
        st.sampled_from(["a", "b", None]),
        st.sampled_from(["x", None]),
        st.integers(0, 60),
        st.just(0),
        parent=st.sampled_from([0, 0, None]),
    ),
    max_size=25,
)


@given(source_records, st.lists(st.integers(0, 25), max_size=4), st.integers(0, 2))
def test_every_answer_is_the_models_whatever_the_batches(
    records: list[SourceRecord], cuts: list[int], flush_every: int
) -> None:
    model = reference.CountAndTell(INTERVAL)
    expected = [row for r in records for row in model.take(r.key, r.value, r.timestamp, reaches=r.parent is not None)]
    task = Task(spec(CountAndTell, COUNTS), STRING, [STRING])
    assert rows(task.run(records, cuts, flush_every=flush_every)) == expected
    whole = Task(spec(CountAndTell, COUNTS), STRING, [STRING])
    whole.run(records)
    assert task.content() == whole.content()
    assert task.metrics.unaccounted == 0
    assert task.metrics.accounts.get("processed", 0) == sum(r.parent is not None for r in records)


def run_with(process: Callable[..., None], *records: SourceRecord, **settings: Any) -> list[tuple[Any, Any, int]]:
    """Runs a processor that is one function of context and record."""

    class One(Processor):
        def process(self, record: Record) -> None:
            process(self.context, record)

    task = Task(spec(One, **settings), STRING, [STRING])
    return rows(task.run(records or [SourceRecord("k", "v", 5, 3)]))


def test_the_context() -> None:
    told: list[Any] = []

    def tell(context: Any, record: Record) -> None:
        told.append((context.application_id, context.task_id, context.current_stream_time_ms()))
        told.append((context.record_metadata(), record))

    run_with(tell, SourceRecord("k", "v", 5, 3), SourceRecord("l", None, 4, 7), SourceRecord(None, "v", 9, -1))
    assert told == [
        ("app", "0_0", 5),
        (RecordMetadata("", 0, 3), Record("k", "v", 5)),
        ("app", "0_0", 5),
        (RecordMetadata("", 0, 7), Record("l", None, 4)),
        ("app", "0_0", 9),
        (None, Record(None, "v", 9)),
    ]


class Anchored(Processor):
    """Schedules calls that have a start: in ``init``, and behind and before stream time."""

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        context.schedule(INTERVAL_10, PunctuationType.STREAM_TIME, self.init_, start_time=25)

    def process(self, record: Record) -> None:
        starts = {"s": (self.late, 12), "f": (self.future, datetime.fromtimestamp(0.055, UTC))}
        if record.key in starts:
            callback, start = starts[record.key]
            self.context.schedule(INTERVAL_10, PunctuationType.STREAM_TIME, callback, start)
        self.context.commit()

    def init_(self, time: int) -> None:
        self.context.forward(Record("init", str(time), time))

    def late(self, time: int) -> None:
        self.context.forward(Record("late", str(time), time))

    def future(self, time: int) -> None:
        self.context.forward(Record("future", str(time), time))


@pytest.mark.parametrize("cuts", [[], [1, 1, 1, 1, 1, 1, 1, 1]])
def test_calls_with_a_start_are_those_of_kafka_streams(cuts: list[int]) -> None:
    records = [
        SourceRecord(key, "v", time, 0)
        for key, time in zip("abcsdfegh", (3, 24, 25, 26, 41, 42, 60, 62, 90), strict=True)
    ]
    task = Task(spec(Anchored), STRING, [STRING])
    forwarded = [(key, time) for key, _, time in rows(task.run(records, cuts, flush_every=1 if cuts else 0))]
    assert forwarded == [  # what the test driver of Kafka Streams 4.4.0 gives (KIP-1146)
        ("init", 25), ("late", 41), ("init", 41), ("late", 42), ("init", 60), ("late", 60), ("future", 60),
        ("late", 62), ("future", 90), ("init", 90), ("late", 90),
    ]  # fmt: skip


def test_what_the_context_has_not_says_what_to_use() -> None:
    def ask(context: Any, record: Record) -> None:
        getattr(context, record.key)()

    for name, step in {
        "stateDir": "keep state in a store",
        "app_configs": "functools.partial(MyProcessor, limit=10)",
        "metrics": "a run's report has the metrics",
        "headers": "it is the attribute headers of the record",
    }.items():
        with pytest.raises(ConfigurationError, match=f"ProcessorContext has no {name}") as raised:
            run_with(ask, SourceRecord(name, "v", 1, 0))
        assert step in (raised.value.next_step or "")


def test_a_processor_is_closed_with_its_task(tmp_path: Path) -> None:
    class Opened(Processor):
        told: ClassVar[list[str]] = []

        def init(self, context: ProcessorContext) -> None:
            super().init(context)
            self.told.append("init")

        def process(self, record: Record) -> None:
            if record.value == "bad":
                raise ValueError(record.value)
            self.told.append(record.value)

        def close(self) -> None:
            self.told.append("close")
            if "worse" in self.told:
                raise RuntimeError("cannot be closed")

    builder = StreamsBuilder("app")
    builder.stream("in").process(Opened).to("out")
    driver = TopologyTestDriver(builder.build(), tmp_path)
    topic = driver.create_input_topic("in")
    for values in (["x", "y"], ["z"]):
        topic.pipe_value_list(values)
        Opened.told.clear()
        driver.replay()
        assert " ".join(["init", *values, "close"]) in " ".join(Opened.told)
        assert Opened.told.count("init") == Opened.told.count("close"), "also where types are found out"
    topic.pipe_value_list(["worse"])
    with pytest.raises(ConfigurationError, match="a processor failed: RuntimeError: cannot be closed"):
        driver.replay()
    topic.pipe_value_list(["bad"])
    with pytest.raises(ConfigurationError, match="ValueError: bad"):
        driver.replay()
    assert Opened.told[-1] == "close"


def test_records_are_immutable_values() -> None:
    record = Record("k", 1, 2, (("h", b"x"),))
    assert record.with_key("l").with_value(3).with_timestamp(4).with_headers(()) == Record("l", 3, 4)
    assert record == Record("k", 1, 2, (("h", b"x"),))
    assert FixedKeyRecord("k", 1, 2).with_value(3) == FixedKeyRecord("k", 3, 2)
    assert not hasattr(FixedKeyRecord, "with_key")
    for make in (lambda: Record("k", 1, -1), lambda: record.with_timestamp(-1)):
        with pytest.raises(InputError, match="negative"):
            make()


def test_what_was_forwarded_may_change_afterwards() -> None:
    def forward(context: Any, record: Record) -> None:
        value = {"n": 1}
        context.forward(record.with_value(value))
        value["n"] = 2
        context.forward(record.with_value(value))

    found = run_with(forward, value_type=pa.struct([("n", pa.int64())]))
    assert [value for _, value, _ in found] == [{"n": 1}, {"n": 2}]


def test_types_are_those_declared() -> None:
    def forward(context: Any, record: Record) -> None:
        context.forward(Record(len(record.key), float(record.timestamp), record.timestamp))

    assert run_with(forward, key_type=pa.int32(), value_type=pa.float64()) == [(1, 5.0, 5)]
    with pytest.raises(ConfigurationError, match="forwarded the key 1, which is not of type string.*another key_type"):
        run_with(forward, value_type=pa.float64())
    with pytest.raises(ConfigurationError, match="forwarded the value 5.0, which is not of type string"):
        run_with(forward, key_type=pa.int32())


def test_errors_say_where() -> None:
    def fail(context: Any, record: Record) -> None:
        raise KeyError(record.value)

    with pytest.raises(ConfigurationError, match=r"a processor failed: KeyError: 'v' .*node NODE") as raised:
        run_with(fail)
    assert isinstance(raised.value.__cause__, KeyError)
    assert (raised.value.place["file"], raised.value.place["line"]) == (__file__, fail.__code__.co_firstlineno + 1)
    assert raised.value.sequence == 0


def test_what_cannot_be_is_refused() -> None:
    refused: dict[str, Callable[[Any, Record], object]] = {
        "there is no child 'x'.*Next: one of: there are none": lambda context, record: context.forward(record, "x"),
        "no store of this name; of its own: it has none": lambda context, _: context.get_state_store("x"),
        "a FixedKeyRecord cannot be forwarded here": lambda context, record: context.forward(FixedKeyRecord(1, 2, 3)),
        "start at -1.*Next: start in 1970": lambda context, _: context.schedule(
            timedelta(seconds=1), PunctuationType.STREAM_TIME, print, start_time=-1
        ),
        "less than 1 ms": lambda context, _: context.schedule(timedelta(0), PunctuationType.STREAM_TIME, print),
        "must be a method": lambda context, _: context.schedule(
            timedelta(seconds=1), PunctuationType.STREAM_TIME, print
        ),
    }
    for message, call in refused.items():
        with pytest.raises(ConfigurationError, match=message):
            run_with(call)


def test_a_topology_with_an_impossible_init_is_refused() -> None:
    class Early(Processor):
        def process(self, record: Record) -> None:
            """Nothing."""

        def init(self, context: Any) -> None:
            assert context.current_stream_time_ms() == -1
            assert context.record_metadata() is None
            context.forward(Record(1, 2, 3))

    class Storeless(Early):
        def init(self, context: Any) -> None:
            context.get_state_store("counts")

    for supplier, message in (
        (Early, "nothing to forward"),
        (Storeless, "no store of this name"),
        (dict, "the supplier gives a dict, not a Processor"),
        (FixedKeys, "the supplier gives a FixedKeys, not a Processor"),
    ):
        with pytest.raises(ConfigurationError, match=message):
            spec(supplier).check("NODE")
    spec(CountAndTell, COUNTS).check("NODE")


class FixedKeys(FixedKeyProcessor):
    def process(self, record: FixedKeyRecord) -> None:
        self.context.forward(record.with_value(f"{record.value}!").with_timestamp(record.timestamp + 1))


def test_fixed_keys() -> None:
    task = Task(spec(FixedKeys, fixed_key=True), STRING, [STRING])
    assert rows(task.run([SourceRecord("k", "v", 5, 0), SourceRecord(None, None, 6, 1)])) == [
        ("k", "v!", 6),
        (None, "None!", 7),
    ]

    class AnyKey(FixedKeyProcessor):
        def process(self, record: FixedKeyRecord) -> None:
            self.context.forward(Record("other", 1, 2))

    with pytest.raises(ConfigurationError, match="a Record cannot be forwarded here"):
        Task(spec(AnyKey, fixed_key=True), STRING, [STRING]).run([SourceRecord("k", "v", 5, 0)])


class Threshold(Processor):
    def __init__(self, least: int) -> None:
        self.least = least

    def process(self, record: Record) -> None:
        """Nothing."""


def test_it_travels_to_workers() -> None:
    process = spec(CountAndTellSupplier(), COUNTS, value_type=STRING)
    there = pickle.loads(pickle.dumps(process))
    assert there.describe() == process.describe()
    there.check("NODE")


def test_the_fingerprint_knows_code_parameters_stores_and_types() -> None:
    described = [
        spec(supplier, *stores, **types).describe()
        for supplier, stores, types in (
            (CountAndTell, (COUNTS,), {}),
            (CountAndTell, (), {}),
            (FixedKeys, (), {}),
            (FixedKeys, (), {"fixed_key": True}),
            (CountAndTellSupplier(), (COUNTS,), {}),
            (lambda: Threshold(1), (), {}),
            (lambda: Threshold(2), (), {}),
            (functools.partial(Threshold, 1), (), {}),
            (functools.partial(Threshold, 2), (), {}),
            (functools.partial(Threshold, least=2), (), {"value_type": STRING}),
            (functools.partial(Threshold, least=2), (), {"key_type": STRING}),
        )
    ]
    assert all(one != other for at, one in enumerate(described) for other in described[:at])
    by_object, by_another = (spec(functools.partial(Threshold, object())).describe() for _ in range(2))
    assert by_object == by_another
    window = Stores.window_store_builder(
        Stores.in_memory_window_store("w", timedelta(days=1), timedelta(hours=1)), STRING, STRING
    )
    assert window.describe()["retention_ms"] == 86_400_000
    assert families_of(spec(Threshold, COUNTS, window).state_stores()) == (
        "counts", "counts.header", "w", "w.by-start", "w.clock", "NODE.punctuation",
    )  # fmt: skip
