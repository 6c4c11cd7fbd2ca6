"""Streams that are unfolded, split, merged and ended: nodes as Kafka Streams names them, records in its order."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from statelib import (
    Branched,
    ConfigurationError,
    KStream,
    Named,
    Printed,
    StreamsBuilder,
    TimeWindows,
    TopologyTestDriver,
    Windowed,
    per_record,
)
from statelib.operators.mappers.mapping import mapper
from tests.reference.streams import Stream
from tests.task.pipeline import Pipeline

if TYPE_CHECKING:
    from pathlib import Path

VALUE = pc.field("value")
WORD = pa.struct([("key", pa.string()), ("value", pa.int64())])


def run(builder: StreamsBuilder, folder: Path, topics: dict[str, list[tuple[Any, Any, int]]]) -> TopologyTestDriver:
    driver = TopologyTestDriver(builder.build(), folder, partitions=2)
    for topic, records in topics.items():
        driver.create_input_topic(topic, pa.string(), pa.int64()).pipe_record_list(records)
    return driver


def values(driver: TopologyTestDriver, topic: str) -> list[Any]:
    return [record.value for record in driver.create_output_topic(topic).read_records_to_list()]


def test_the_names_are_those_of_kafka_streams() -> None:
    builder = StreamsBuilder("app")
    stream = builder.stream("in")
    branches = stream.split().branch(VALUE > 5).branch(VALUE > 3, Branched.as_("-more")).default_branch()
    assert list(branches) == ["KSTREAM-BRANCH-0000000001" + end for end in ("1", "-more", "0")]
    one, more, rest = branches.values()
    one.flat_map("value").merge(rest.flat_map_values("value")).foreach(print)
    more.merge(stream, Named.as_("all")).foreach(print, Named.as_("show"))
    text = builder.build().describe()
    for name in ("FLATMAP-0000000005", "FLATMAPVALUES-0000000006", "MERGE-0000000007", "FOREACH-0000000008"):
        assert f"Processor: KSTREAM-{name} (stores: [])" in text
    assert "Processor: show (stores: [])\n      --> none\n      <-- all" in text
    assert text.count("Sub-topology") == 1


def test_a_split_has_a_name_and_its_branches_begin_with_it() -> None:
    taken: list[KStream] = []
    branches = (
        StreamsBuilder("app").stream("in").split(Named.as_("by-size-"))
        .branch(VALUE > 9, Branched.as_("big"))
        .branch(VALUE > 8, Branched.with_consumer(taken.append, "taken"))
        .branch(VALUE > 7, Branched.with_function(lambda branch: branch.map_values("key"), "mapped"))
        .branch(VALUE > 6, Branched.with_function(lambda _: None).with_name("nothing"))
        .no_default_branch()
    )  # fmt: skip
    assert list(branches) == ["by-size-big", "by-size-mapped"]
    assert branches["by-size-big"].node == "by-size-big"
    assert branches["by-size-mapped"].node.startswith("KSTREAM-MAPVALUES-")
    assert [stream.node for stream in taken] == ["by-size-taken"]


def test_a_new_key_is_repartitioned_for_whatever_needs_it() -> None:
    builder = StreamsBuilder("app")
    stream = builder.stream("in")
    rekeyed = stream.flat_map("value")
    split = rekeyed.split().branch(VALUE > 5).no_default_branch()
    for number, changed in enumerate([rekeyed, rekeyed.flat_map_values("value"), *split.values(),
                                      rekeyed.merge(stream), stream.merge(rekeyed)]):  # fmt: skip
        changed.group_by_key().count().to_stream().to(f"changed-{number}")
    for number, kept in enumerate([stream.flat_map_values("value"), stream.merge(stream.filter(VALUE > 1))]):
        kept.group_by_key().count().to_stream().to(f"kept-{number}")
    first, *others = builder.build().sub_topologies
    assert first.sinks == ("kept-0", "kept-1")
    assert [sub.sinks for sub in others] == [(f"changed-{number}",) for number in range(5)]


def test_split_and_merged_streams_have_the_models_order(tmp_path: Path) -> None:
    """One record comes through the branch first that was declared first, whatever is merged with what."""
    records = [("k", n * 7 % 10, 100 * n) for n in range(20)]
    builder = StreamsBuilder("app")
    stream = builder.stream("in")
    later = stream.map_values(VALUE + 1000)
    big, middle, rest = stream.split().branch(VALUE > 6).branch(VALUE > 3).default_branch(Branched.as_("rest")).values()
    rest.merge(later).merge(big).merge(stream).to("out")
    middle.flat_map_values(per_record(lambda value: list(range(value)), pa.list_(pa.int64()), "value")).to("unfolded")

    source = Stream()
    plus = source.then(lambda record: [(record[0], record[1] + 1000, record[2])])
    tops = source.split(lambda _, value: value > 6, lambda _, value: value > 3)
    out = tops[2].merge(plus).merge(tops[0]).merge(source)
    unfolded = tops[1].flat_map(lambda key, value: [(key, n) for n in range(value)])
    unfolded_sent = unfolded.then(lambda record: [record])
    for record in records:
        source.send(record)
    driver = run(builder, tmp_path, {"in": records})
    assert values(driver, "out") == [value for _, value, _ in out.sent]
    assert values(driver, "unfolded") == [value for _, value, _ in unfolded_sent.sent]


@pytest.mark.parametrize("first", ["a", "b"])
def test_topics_are_merged_by_time(tmp_path: Path, first: str) -> None:
    """Equal times: the topic that was declared first; which stream merges the other has no say."""
    builder = StreamsBuilder("app")
    streams = {topic: builder.stream(topic) for topic in ("a", "b")}
    second = "b" if first == "a" else "a"
    streams[first].merge(streams[second]).to("out")
    topics = {"a": [("k", 1, 10), ("k", 2, 20), ("k", 3, 20)], "b": [("k", 10, 5), ("k", 20, 20)]}
    assert values(run(builder, tmp_path, topics), "out") == [10, 1, 2, 3, 20]


def test_a_stream_that_is_merged_with_itself_gives_each_record_once(tmp_path: Path) -> None:
    """As in Kafka Streams, whose nodes have a parent once, also where a topic was read twice."""
    builder = StreamsBuilder("app")
    stream, again = builder.stream("in"), builder.stream("in")
    stream.merge(stream).to("one")
    stream.merge(again).to("other")
    driver = run(builder, tmp_path, {"in": [("k", 1, 1), ("k", 2, 2)]})
    assert [values(driver, topic) for topic in ("one", "other")] == [[1, 2]] * 2


def test_merged_topics_may_differ_in_their_partitions(tmp_path: Path) -> None:
    builder = StreamsBuilder("app")
    builder.stream("a").merge(builder.stream("b")).repartition().to("out")
    assert builder.build().partitions({"a": 1, "b": 3}) == {0: 3, 1: 3}
    pipeline = Pipeline(tmp_path, builder.build())
    for topic, partitions in {"a": 1, "b": 3}.items():
        pipeline.archive(topic, [(f"k{n}", n, n) for n in range(5)], (pa.string(), pa.int64()), partitions)
    pipeline.run()
    assert sorted(value for _, _, _, value, _ in pipeline.output("out")) == sorted([*range(5), *range(5)])


def test_words_are_counted(tmp_path: Path) -> None:
    """Kafka's word count."""
    words = per_record(lambda text: [(word, len(word)) for word in text.split()], pa.list_(WORD), "value")
    builder = StreamsBuilder("app")
    builder.stream("lines").flat_map(words).group_by_key().count().to_stream().to("counts")
    driver = TopologyTestDriver(builder.build(), tmp_path)
    driver.create_input_topic("lines").pipe_record_list([(None, "to be or not", 1), (None, "to", 2), (None, "", 3)])
    counts = driver.create_output_topic("counts").read_key_values_to_list()
    assert counts == [("to", 1), ("be", 1), ("or", 1), ("not", 1), ("to", 2)]


def test_foreach_sees_the_records_that_reach_it(tmp_path: Path) -> None:
    seen: list[int] = []
    builder = StreamsBuilder("app")
    stream = builder.stream("in")
    stream.filter(VALUE > 1).foreach(lambda columns: seen.extend(columns["value"].to_pylist()))
    stream.to("out")
    assert len(values(run(builder, tmp_path, {"in": [("k", 1, 1), ("k", 2, 2), ("k", 3, 3)]}), "out")) == 3
    assert seen == [2, 3]


def test_an_action_of_two_arguments_sees_each_record(tmp_path: Path) -> None:
    seen: list[tuple[Any, Any]] = []
    windowed: list[tuple[Any, Any]] = []
    builder = StreamsBuilder("app")
    stream = builder.stream("in").peek(lambda key, value: seen.append((key, value)))
    counts = stream.group_by_key().windowed_by(TimeWindows.of_size_with_no_grace(timedelta(seconds=1))).count()
    counts.to_stream().foreach(lambda key, value: windowed.append((key, value)))
    run(builder, tmp_path, {"in": [("k", 1, 1), ("l", None, 2), ("k", 3, 3)]}).replay()
    assert sorted(seen, key=str) == [("k", 1), ("k", 3), ("l", None)]
    assert set(windowed) == {(Windowed("k", 0, 1000), 1), (Windowed("k", 0, 1000), 2), (Windowed("l", 0, 1000), 1)}


def test_an_action_that_fails_for_a_record_names_it(tmp_path: Path) -> None:
    def fail(key: str, value: int) -> None:
        assert value < 3

    builder = StreamsBuilder("app")
    builder.stream("in").foreach(fail)
    driver = run(builder, tmp_path, {"in": [("k", 1, 1), ("k", 3, 2)]})
    with pytest.raises(ConfigurationError, match=r"a function of foreach failed: AssertionError.*offset 1"):
        driver.replay()


def test_records_are_printed_as_kafka_streams_prints_them(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "printed"
    builder = StreamsBuilder("app")
    stream = builder.stream("in")
    stream.print(Printed.to_sys_out())
    stream.print(Printed.to_file(str(file)).with_label("L").with_key_value_mapper("value"))
    counts = stream.group_by_key().windowed_by(TimeWindows.of_size_with_no_grace(timedelta(milliseconds=10))).count()
    counts.to_stream().print(Printed.to_sys_out().with_name("shown"))
    driver = TopologyTestDriver(builder.build(), tmp_path)
    topic = driver.create_input_topic("in", pa.string(), pa.int64())
    topic.pipe_input("k", 7, 3)
    driver.replay()
    topic.pipe_input("k", 8, 24)
    driver.replay()
    printed = capfd.readouterr().out
    assert "[KSTREAM-SOURCE-0000000000]: k, 7\n" in printed
    assert "[KTABLE-TOSTREAM-0000000005]: [k@20/30], 1\n" in printed
    assert file.read_text() == "[L]: 7\n[L]: 8\n"


def test_a_tables_stream_may_have_another_key(tmp_path: Path) -> None:
    builder = StreamsBuilder("app")
    by_value = builder.table("in").to_stream(per_record(lambda key, value: f"{key}{value}", pa.string()))
    by_value.group_by_key().count().to_stream().to("out")
    driver = run(builder, tmp_path, {"in": [("k", 1, 1), ("k", 1, 2), ("k", 2, 3)]})
    assert driver.create_output_topic("out").read_key_values_to_map() == {"k1": 2, "k2": 1}


def test_mappers_may_be_given_as_they_are() -> None:
    stream = StreamsBuilder("app").stream("in")
    assert stream.flat_map(mapper("value")).node != stream.flat_map_values("tags").node
