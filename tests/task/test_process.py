"""Custom processors through archives, slices, checkpoints and commits."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from statelib import (
    BufferConfig,
    Named,
    Processor,
    Produced,
    PunctuationType,
    Record,
    Stores,
    StreamsBuilder,
    Suppressed,
    TimeWindows,
    TopologyTestDriver,
    ValueAndTimestamp,
    Windowed,
)
from tests.operators.processors.examples import COUNTS, INTERVAL, CountAndTell
from tests.reference import process as reference
from tests.task.pipeline import Pipeline

if TYPE_CHECKING:
    from pathlib import Path

    from statelib import ProcessorContext, Topology

STRING, LONG = pa.string(), pa.int64()
CLICKS = [(f"user-{i % 3}", f"v{i}", max(0, i * 7 + (i % 5) * 11 - (i % 7) * 6)) for i in range(120)]
MS = timedelta(milliseconds=1)

TIMESTAMPED = Stores.timestamped_key_value_store_builder(Stores.persistent_key_value_store("last"), STRING, STRING)
VERSIONED = Stores.versioned_key_value_store_builder(
    Stores.persistent_versioned_key_value_store("versions", 100 * MS), STRING, STRING
)
WINDOWS = Stores.window_store_builder(Stores.in_memory_window_store("windows", 150 * MS, 50 * MS), STRING, LONG)
SESSIONS = Stores.session_store_builder(Stores.in_memory_session_store("sessions", 100 * MS), STRING, LONG)


class Everything(Processor):
    """Uses a store of each kind; schedules and cancels as it goes."""

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self.last = context.get_state_store("last")
        self.versions = context.get_state_store("versions")
        self.windows = context.get_state_store("windows")
        self.sessions = context.get_state_store("sessions")
        self.every_40 = context.schedule(40 * MS, PunctuationType.STREAM_TIME, lambda time: self.tell("40", time))
        context.schedule(60 * MS, PunctuationType.STREAM_TIME, self.tell_60)
        context.schedule(35 * MS, PunctuationType.WALL_CLOCK_TIME, lambda time: self.tell("35", time))

    def process(self, record: Record) -> None:
        key, time = record.key, record.timestamp
        before = self.last.get(key)
        self.last.put(key, ValueAndTimestamp.make(record.value, time))
        put = self.versions.put(key, record.value, time)
        start = time - time % 50
        self.windows.put(key, (self.windows.fetch(key, start) or 0) + 1, start)
        session = Windowed(key, time, time)
        count = 1
        for merged, other in list(self.sessions.find_sessions(key, time - 20, time + 20)):
            count += other
            session = Windowed(
                key, min(session.window_start, merged.window_start), max(session.window_end, merged.window_end)
            )
            self.sessions.remove(merged)
        self.sessions.put(session, count)
        now = self.context.current_stream_time_ms()
        self.context.forward(record.with_value(f"{before} {put} {self.versions.get(key, now - 30)} {session} {now}"))
        if record.value == "v50":
            self.context.schedule(25 * MS, PunctuationType.STREAM_TIME, self.tell_60)
            self.context.schedule(45 * MS, PunctuationType.WALL_CLOCK_TIME, self.tell_45)
        if record.value == "v80":
            self.every_40.cancel()

    def tell_45(self, time_ms: int) -> None:
        assert self.context.current_system_time_ms() == time_ms
        self.tell("45", time_ms)

    def tell_60(self, time_ms: int) -> None:
        self.tell("60 or 25", time_ms)

    def tell(self, who: str, time_ms: int) -> None:
        told = [list(self.windows.all()), list(self.sessions.fetch_range(None, None)), list(self.versions.all(time_ms))]
        assert self.context.record_metadata() is None
        self.context.forward(Record(who, str(told), time_ms))


def topology() -> Topology:
    builder = StreamsBuilder("job")
    for store in (COUNTS, TIMESTAMPED, VERSIONED, WINDOWS, SESSIONS):
        builder.add_state_store(store)
    clicks = builder.stream("clicks")
    clicks.process(CountAndTell, "counts").to("counted")
    clicks.process(Everything, "last", "versions", "windows", "sessions").to("everything")
    return builder.build()


def replayed(directory: Path, cuts: list[int | None], **settings: Any) -> tuple[dict[str, list[Any]], Any]:
    pipeline = Pipeline(directory, topology(), **settings)
    pipeline.archive("clicks", CLICKS, (STRING, STRING))
    for cut in cuts:
        pipeline.run(cut)
    return {topic: pipeline.output(topic) for topic in ("counted", "everything")}, pipeline.state()


@pytest.mark.thorough
def test_slices_batches_and_memory_do_not_matter(tmp_path: Path) -> None:
    whole = replayed(tmp_path / "whole", [None])
    model = reference.CountAndTell(INTERVAL)
    expected = [row for click in CLICKS for row in model.take(*click, reaches=True)]
    assert [tuple(row[2:]) for row in whole[0]["counted"]] == expected
    told = [row[2] for row in whole[0]["everything"]]
    assert told.count("40") > 5, "until it was cancelled"
    assert told.count("60 or 25") > told.count("40")
    assert told.count("35") > told.count("45") > 5
    assert replayed(tmp_path / "slices", [*range(100, 900, 61), None]) == whole
    assert replayed(tmp_path / "memory", [200, 203, None], batch_records=7, memory_budget_bytes=1) == whole


class ByFirstLetter(Processor):
    """Sends to one child or to all, under another key."""

    def process(self, record: Record) -> None:
        child = {"a": "a-only", "b": "b-only"}.get(record.value[0])
        self.context.forward(record.with_key(record.value[0]).with_headers((*record.headers, ("seen", b"1"))), child)


def test_children_by_name(tmp_path: Path) -> None:
    builder = StreamsBuilder("routes")
    routed = builder.stream("words").process(ByFirstLetter)
    routed.filter(lambda columns: columns["value"].is_valid(), Named.as_("a-only")).to("a")
    routed.to("b", Produced().with_name("b-only"))
    driver = TopologyTestDriver(builder.build(), tmp_path)
    driver.create_input_topic("words").pipe_record_list([("k", word, 1) for word in ("at", "by", "cc", "an")])
    found = {topic: driver.create_output_topic(topic).read_key_values_to_list() for topic in ("a", "b")}
    assert found == {"a": [("a", "at"), ("c", "cc"), ("a", "an")], "b": [("b", "by"), ("c", "cc")]}


class Metadata(Processor):
    """Tells where records come from, and, every millisecond, that it was called."""

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        context.schedule(MS, PunctuationType.STREAM_TIME, self.called)

    def process(self, record: Record) -> None:
        metadata = self.context.record_metadata()
        place = "sealed" if metadata is None else f"{metadata.topic} {metadata.offset}"
        self.context.forward(Record(record.key.key, f"{place} {self.context.current_stream_time_ms()}", 0))

    def called(self, time_ms: int) -> None:
        self.context.forward(Record("called", str(time_ms), 0))


def test_what_a_seal_lets_go_reaches_a_processor_and_calls_nobody(tmp_path: Path) -> None:
    builder = StreamsBuilder("job")
    windows = TimeWindows.of_size_with_no_grace(10 * MS)
    counted = builder.stream("clicks").group_by_key().windowed_by(windows).count()
    final = counted.suppress(Suppressed.until_window_closes(BufferConfig.unbounded())).to_stream()
    final.process(Metadata, key_type=STRING, value_type=STRING).to("told")
    pipeline = Pipeline(tmp_path, builder.build())
    pipeline.archive("clicks", [("k", "v", 5), ("k", "w", 15)], (STRING, STRING))
    pipeline.run(end_of_input="seal")
    assert [tuple(row[2:4]) for row in pipeline.output("told")] == [
        ("called", "5"),
        ("k", "clicks 1 15"),
        ("called", "15"),
        ("k", "sealed 15"),
    ]


class Echo(Processor):
    """Forwards each record, and a header with the names of its headers."""

    def process(self, record: Record) -> None:
        names = ",".join(name for name, _ in record.headers)
        self.context.forward(record.with_headers((*record.headers, ("names", names.encode()))))


def test_headers(tmp_path: Path) -> None:
    builder = StreamsBuilder("job")
    echoed = builder.stream("clicks").process(Echo).process(Echo)
    echoed.map_values("headers.names").to("names")
    pipeline = Pipeline(tmp_path, builder.build())
    pipeline.archive("clicks", [("k", "v", 5)], (STRING, STRING))
    pipeline.run()
    assert [row[3] for row in pipeline.output("names")] == [b"names"]
