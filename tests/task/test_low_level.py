"""Shared and global stores through archives, slices, checkpoints and commits."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from statelib import (
    BufferConfig,
    Processor,
    PunctuationType,
    Record,
    Stores,
    StreamsBuilder,
    Suppressed,
    TimeWindows,
    Topology,
    Windowed,
)
from tests.operators.processors.examples import RELAYED, Relay
from tests.task.pipeline import Pipeline

if TYPE_CHECKING:
    from pathlib import Path

    from statelib import ProcessorContext, StoreBuilder

STRING = pa.string()
TEXT = (STRING, STRING)
MS = timedelta(milliseconds=1)
ONE = [("ab"[i % 2], f"v{i}", max(0, i * 7 - (i % 5) * 6)) for i in range(40)]
OTHER = [("abc"[i % 3], f"w{i}", i * 11) for i in range(25)]
NAMES = [("a", "Ada", 7_000), ("b", "Bob", 1), ("a", "Al", 3)]


def store(name: str) -> StoreBuilder[Any]:
    return Stores.key_value_store_builder(Stores.persistent_key_value_store(name), STRING, STRING)


class Naming(Processor):
    """Puts the name of each key, which it finds in a store of all, before the value."""

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self.names = context.get_state_store("names")

    def process(self, record: Record) -> None:
        self.context.forward(record.with_value(f"{self.names.get(record.key)}: {record.value}"))


class Filling(Processor):
    def init(self, context: ProcessorContext) -> None:
        self.names = context.get_state_store("names")

    def process(self, record: Record) -> None:
        self.names.put(record.key, record.value)


def topology() -> Topology:
    return (
        Topology("job")
        .add_global_store(store("names"), "names-source", "names", "names-writer", Filling)
        .add_source("one", "one")
        .add_source("other", "other")
        .add_processor("first", lambda: Relay("first", 10), "one")
        .add_processor("second", lambda: Relay("second", 15), "first", "other")
        .add_processor("naming", Naming, "second")
        .add_state_store(RELAYED, "first", "second")
        .add_sink("named", "named", "naming", "one")
        .add_sink("first-alone", "first-alone", "first")
    )


def replayed(directory: Path, cuts: list[int], **settings: Any) -> tuple[Pipeline, dict[str, list[Any]]]:
    pipeline = Pipeline(directory, topology(), **settings)
    for topic, rows in (("one", ONE), ("other", OTHER), ("names", NAMES)):
        pipeline.archive(topic, rows, TEXT, 2)
    for cut in [*cuts, None]:
        pipeline.run(cut)
    return pipeline, {topic: pipeline.output(topic) for topic in ("named", "first-alone")}


def test_slices_and_batches_change_nothing(tmp_path: Path) -> None:
    whole, expected = replayed(tmp_path / "whole", [])
    assert len(expected["named"]) > 100
    assert {text.partition(":")[0] for _, _, _, text, *_ in expected["named"] if ":" in text} >= {"Al", "Bob", "None"}
    cut, found = replayed(tmp_path / "cut", [30, 90, 200], batch_records=3)
    assert found == expected
    assert cut.state() == whole.state()


class Telling(Processor):
    """Counts final results in a store that another processor has filled."""

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self.last = context.get_state_store("last")
        context.schedule(MS * 50, PunctuationType.STREAM_TIME, lambda _: None)

    def process(self, record: Record) -> None:
        key = record.key.key if isinstance(record.key, Windowed) else record.key
        self.context.forward(Record(key, f"{record.value} {self.last.get(key)}", record.timestamp))
        self.last.put(key, str(record.value))


def test_final_results_leave_a_turn_at_the_end_of_the_input(tmp_path: Path) -> None:
    """A suppression is between two processors that share a store."""
    builder = StreamsBuilder("job").add_state_store(store("last"))
    builder.stream("one").process(Telling, "last")
    windows = TimeWindows.of_size_with_no_grace(MS * 40)
    grouped = builder.stream("other").group_by_key().windowed_by(windows).count()
    final = grouped.suppress(Suppressed.until_window_closes(BufferConfig.unbounded())).to_stream()
    builder.stream("other").process(Telling, "last", value_type=STRING).to("told")
    final.process(Telling, "last", key_type=STRING, value_type=STRING).to("final")
    results = []
    for name, cuts in (("whole", []), ("cut", [60, 150])):
        pipeline = Pipeline(tmp_path / name, builder.build(), batch_records=4 if cuts else 1_000)
        for topic, rows in (("one", ONE), ("other", OTHER)):
            pipeline.archive(topic, rows, TEXT)
        for cut in cuts:
            pipeline.run(cut)
        pipeline.run(end_of_input="seal")
        results.append([pipeline.output("final"), pipeline.output("told")])
    assert results[0] == results[1]
    assert len(results[0][0]) == len({(key, time // 40) for key, _, time in OTHER})
