"""``process``, ``process_values``, ``add_state_store``: names, repartition, refusals."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from statelib import (
    ConfigurationError,
    FixedKeyProcessor,
    FixedKeyRecord,
    Materialized,
    Named,
    Processor,
    Record,
    Stores,
    StreamsBuilder,
    TimeWindows,
    TopologyTestDriver,
    Windowed,
)
from tests.operators.processors.examples import COUNTS, CountAndTell, CountAndTellSupplier

if TYPE_CHECKING:
    from pathlib import Path


class Length(FixedKeyProcessor):
    def process(self, record: FixedKeyRecord) -> None:
        self.context.forward(record.with_value(len(record.value)))


def test_described_as_kafka_does() -> None:
    builder = StreamsBuilder("app").add_state_store(COUNTS)
    words = builder.stream("words").process_values(Length, value_type=pa.int64())
    words.process(CountAndTell, "counts", value_type=pa.string(), named=Named.as_("count")).to("told")
    described = builder.build().describe()
    assert "Processor: KSTREAM-PROCESSVALUES-0000000001 (stores: [])\n      --> count" in described
    assert "Processor: count (stores: [counts])" in described
    unnamed = StreamsBuilder("app")
    unnamed.stream("words").process(CountAndTellSupplier()).to("told")
    assert "Processor: KSTREAM-PROCESSOR-0000000001 (stores: [counts])" in unnamed.build().describe()


@pytest.mark.parametrize(("fixed_key", "repartitions"), [(True, 0), (False, 1)])
def test_only_other_keys_repartition(fixed_key: bool, repartitions: int) -> None:
    builder = StreamsBuilder("app")
    words = builder.stream("words")
    processed = (
        words.process_values(Length, value_type=pa.int64()) if fixed_key else words.process(CountAndTellSupplier())
    )
    processed.group_by_key().count().to_stream().to("counted")
    assert sum(len(sub.repartition_sources) for sub in builder.build().sub_topologies) == repartitions


def test_stores_that_cannot_be_had() -> None:
    builder = StreamsBuilder("app").add_state_store(COUNTS).add_state_store(COUNTS)
    words = builder.stream("words")
    with pytest.raises(
        ConfigurationError,
        match=r"there is no such store .file .*test_process.py, line \d+, store other.*add_state_store",
    ):
        words.process(CountAndTell, "other")
    builder.table("names", Materialized.as_("names-store"))
    taken = Stores.key_value_store_builder(Stores.in_memory_key_value_store("names-store"), pa.string(), pa.string())
    with pytest.raises(ConfigurationError, match="two stores have one name"):
        builder.add_state_store(taken)


class Spans(FixedKeyProcessor):
    def process(self, record: FixedKeyRecord) -> None:
        assert isinstance(record.key, Windowed)
        self.context.forward(record.with_value(record.key.window_end - record.key.window_start + record.value))


class Plain(Processor):
    def process(self, record: Record) -> None:
        self.context.forward(record.with_key(record.key.key))


class StillWindowed(Processor):
    def process(self, record: Record) -> None:
        self.context.forward(record.with_key(record.key._replace(window_end=record.key.window_end + 1)))


def test_windowed_keys(tmp_path: Path) -> None:
    builder = StreamsBuilder("app")
    windows = TimeWindows.of_size_with_no_grace(timedelta(milliseconds=10))
    counted = builder.stream("words").group_by_key().windowed_by(windows).count().to_stream()
    counted.process_values(Spans).to("spans")
    counted.process(Plain, key_type=pa.string()).to("plain")
    counted.process(StillWindowed).to("windowed")
    driver = TopologyTestDriver(builder.build(), tmp_path)
    driver.create_input_topic("words").pipe_record_list([("k", "v", 12), ("k", "v", 13)])
    found = {
        topic: driver.create_output_topic(topic).read_key_values_to_list() for topic in ("spans", "plain", "windowed")
    }
    assert [value for _, value in found["spans"]] == [11, 12]
    assert found["plain"] == [("k", 1), ("k", 2)]
    key, _ = found["windowed"][0]
    assert (key["key"], key["window_end"] - key["window_start"]) == ("k", timedelta(milliseconds=11))
