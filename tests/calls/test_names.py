"""Names of nodes, stores, topics and applications are those that Kafka Streams takes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pyarrow as pa
import pytest

from statelib import (
    Branched,
    BufferConfig,
    ConfigurationError,
    Consumed,
    Deduplicated,
    Grouped,
    Job,
    Joined,
    JoinWindows,
    KafkaTopic,
    Materialized,
    Named,
    Processor,
    Produced,
    Repartitioned,
    Stores,
    StreamJoined,
    StreamsBuilder,
    Suppressed,
    Topology,
)

HOUR = timedelta(hours=1)
IMPOSSIBLE = ["", ".", "..", "foo bar", "a:b", "a/b", "a,b", "ä", "a\n", "x" * 250]
POSSIBLE = ["a", "...", "..a", "A.b_c-9", "_", "-", "x" * 249]
STORE = Stores.key_value_store_builder(Stores.persistent_key_value_store("store"), pa.string(), pa.string())
UNBOUNDED = BufferConfig.unbounded()


def topology(name: str = "out") -> object:
    streams = StreamsBuilder("job")
    streams.stream("in").to(name)
    return streams.build()


WITH_CALLBACKS = {"Topology.add_processor", "Topology.add_read_only_state_store"}
"""What makes a store of the processor's callbacks, whose name is that of the processor with an ending."""


def sourced() -> Topology:
    return Topology("job").add_source("source", "in")


TAKE_NAMES: dict[str, Callable[[str], object]] = {
    "Named": Named.as_,
    "Consumed": Consumed.as_,
    "Consumed.with_name": lambda name: Consumed.with_().with_name(name),
    "Grouped": Grouped.as_,
    "Joined": Joined.as_,
    "StreamJoined, of stores": StreamJoined.as_,
    "StreamJoined.with_name": lambda name: StreamJoined().with_name(name),
    "StreamJoined.with_store_name": lambda name: StreamJoined().with_store_name(name),
    "Repartitioned": Repartitioned.as_,
    "Produced": lambda name: Produced().with_name(name),
    "Branched": Branched.as_,
    "Branched.with_function": lambda name: Branched.with_function(lambda branch: branch, name),
    "Branched.with_consumer": lambda name: Branched.with_consumer(lambda _: None, name),
    "Branched.with_name": lambda name: Branched().with_name(name),
    "Suppressed": lambda name: Suppressed.until_window_closes(UNBOUNDED).with_name(name),
    "Deduplicated": Deduplicated.as_,
    "Deduplicated, of a store": lambda name: Deduplicated.with_(store_name=name),
    "Materialized": Materialized.as_,
    "Stores.persistent_key_value_store": Stores.persistent_key_value_store,
    "Stores.in_memory_key_value_store": Stores.in_memory_key_value_store,
    "Stores.persistent_versioned_key_value_store": lambda name: Stores.persistent_versioned_key_value_store(name, HOUR),
    "Stores.in_memory_versioned_key_value_store": lambda name: Stores.in_memory_versioned_key_value_store(name, HOUR),
    "Stores.persistent_window_store": lambda name: Stores.persistent_window_store(name, HOUR, HOUR),
    "Stores.in_memory_window_store": lambda name: Stores.in_memory_window_store(name, HOUR, HOUR),
    "Stores.persistent_session_store": lambda name: Stores.persistent_session_store(name, HOUR),
    "Stores.in_memory_session_store": lambda name: Stores.in_memory_session_store(name, HOUR),
    "StreamsBuilder": StreamsBuilder,
    "StreamsBuilder.add_state_store": lambda name: StreamsBuilder("job").add_state_store(
        Stores.key_value_store_builder(Stores.persistent_key_value_store(name), pa.string(), pa.int64())
    ),
    "Topology": Topology,
    "Topology.add_source": lambda name: Topology("job").add_source(name, "in"),
    "Topology.add_source, of a topic": lambda name: Topology("job").add_source("source", name),
    "Topology.add_source, of one of its topics": lambda name: Topology("job").add_source("source", "in", name),
    "Topology.add_processor": lambda name: sourced().add_processor(name, Processor, "source"),
    "Topology.add_sink": lambda name: sourced().add_sink(name, "out", "source"),
    "Topology.add_sink, of a topic": lambda name: sourced().add_sink("sink", name, "source"),
    "Topology.add_sink, of one of its topics": lambda name: sourced().add_sink(
        "sink", "value", "source", topics=["a-topic", name]
    ),
    "Topology.add_global_store": lambda name: sourced().add_global_store(STORE, name, "all", "writer", Processor),
    "Topology.add_global_store, of a topic": lambda name: sourced().add_global_store(
        STORE, "reader", name, "writer", Processor
    ),
    "Topology.add_read_only_state_store": lambda name: sourced().add_read_only_state_store(
        STORE, "reader", "all", name, Processor
    ),
    "KafkaTopic": KafkaTopic,
    "KafkaTopic.archive": lambda name: KafkaTopic("topic", archive=name),
    "to()": topology,
}  # fmt: skip


@pytest.mark.parametrize("name", IMPOSSIBLE)
@pytest.mark.parametrize("take", TAKE_NAMES)
def test_an_impossible_name_is_refused_with_its_line_and_the_letters_that_can_be_in_one(take: str, name: str) -> None:
    with pytest.raises(
        ConfigurationError, match=r"is not a valid name of .*249 ASCII letters, digits, '\.', '_' and '-'"
    ) as raised:
        TAKE_NAMES[take](name)
    assert raised.value.place["file"] == __file__


@pytest.mark.parametrize("name", POSSIBLE)
@pytest.mark.parametrize("take", TAKE_NAMES)
def test_a_possible_name_is_taken(take: str, name: str) -> None:
    assert TAKE_NAMES[take](name[:200] if take in WITH_CALLBACKS else name)


def test_a_name_is_shown_no_longer_than_it_has_to_be() -> None:
    with pytest.raises(ConfigurationError) as raised:
        Named.as_("x" * 5000)
    assert "5000 characters" in str(raised.value)
    assert len(str(raised.value)) < 300


@pytest.mark.parametrize("take", ["Named", "Materialized", "Stores.persistent_key_value_store", "StreamsBuilder"])
def test_what_is_no_text_is_no_name(take: str) -> None:
    with pytest.raises(ConfigurationError, match="takes a str .*not an int: 7"):
        TAKE_NAMES[take](7)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", [*IMPOSSIBLE, "x" * 101, "-a"])
def test_a_jobs_name_begins_its_folder_and_its_topics(name: str) -> None:
    with pytest.raises(ConfigurationError, match=r"(?s)cannot be a job's name.*letters, digits"):
        Job(name, topology())  # type: ignore[arg-type]


def test_a_name_that_is_too_long_with_its_ending_is_refused() -> None:
    streams = StreamsBuilder("job")
    near = JoinWindows.of_time_difference_with_no_grace(HOUR)
    joined = StreamJoined().with_name("n" * 245)
    streams.stream("a").join(streams.stream("b"), "left", near, joined).to("out")
    with pytest.raises(ConfigurationError, match="is not a valid name of a node"):
        streams.build()
