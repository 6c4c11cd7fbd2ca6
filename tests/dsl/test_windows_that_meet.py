"""Which windowed keys can meet: those whose windows are of one kind and size, however they came about."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from statelib import (
    ConfigurationError,
    Consumed,
    Joined,
    JoinWindows,
    KStream,
    Materialized,
    Named,
    SessionWindowedSerde,
    SessionWindows,
    SlidingWindows,
    Stores,
    StreamsBuilder,
    StringSerde,
    TimeWindowedSerde,
    TimeWindows,
    UnlimitedWindows,
    per_record,
)
from tests.operators.flow import Fed, Flow

if TYPE_CHECKING:
    from collections.abc import Callable

J = per_record(lambda left, right: f"{left}|{right}", pa.string(), "left", "right")
WITHIN = JoinWindows.of_time_difference_with_no_grace(timedelta(seconds=100))
TYPES = dict.fromkeys(("l", "r"), (pa.string(), pa.int64()))


def seconds(count: int) -> timedelta:
    return timedelta(seconds=count)


WINDOWS: dict[str, Any] = {
    "10s": TimeWindows.of_size_with_no_grace(seconds(10)),
    "hopping": TimeWindows.of_size_and_grace(seconds(10), seconds(5)).advance_by(seconds(5)),
    "20s": TimeWindows.of_size_with_no_grace(seconds(20)),
    "sliding": SlidingWindows.of_time_difference_with_no_grace(seconds(10)),
    "sessions": SessionWindows.of_inactivity_gap_with_no_grace(seconds(10)),
    "longer-sessions": SessionWindows.of_inactivity_gap_and_grace(seconds(20), seconds(5)),
    "unlimited": UnlimitedWindows.of(),
    "none": None,
}
MEET = [("10s", "10s"), ("10s", "hopping"), ("sliding", "10s"), ("sessions", "longer-sessions")]
REFUSED = [
    ("10s", "20s"), ("20s", "hopping"), ("10s", "sessions"), ("sliding", "sessions"), ("10s", "unlimited"),
    ("10s", "none"), ("none", "sessions"),
]  # fmt: skip


def counts(builder: StreamsBuilder, topic: str, windows: str) -> KStream:
    """How often each key comes, in windows or without."""
    grouped = builder.stream(topic).group_by_key()
    if WINDOWS[windows] is None:
        return grouped.count().to_stream()
    return grouped.windowed_by(WINDOWS[windows]).count().to_stream()


def stream_table(left: KStream, right: KStream) -> KStream:
    return left.join(right.to_table(Named.as_("T")), J, Joined.as_("NODE"))


def stream_versioned(left: KStream, right: KStream) -> KStream:
    store = Stores.persistent_versioned_key_value_store("v", seconds(1_000))
    waiting = Joined.as_("NODE").with_grace_period(seconds(0))
    return left.left_join(right.to_table(Named.as_("T"), Materialized.as_(store)), J, waiting)


def tables(left: KStream, right: KStream) -> KStream:
    one, other = left.to_table(Named.as_("L")), right.to_table(Named.as_("R"))
    return one.join(other, J, Named.as_("NODE")).to_stream()


def tables_outer_stored(left: KStream, right: KStream) -> KStream:
    one, other = left.to_table(Named.as_("L")), right.to_table(Named.as_("R"))
    return one.outer_join(other, J, Named.as_("NODE"), Materialized.as_("kept")).to_stream()


def streams(left: KStream, right: KStream) -> KStream:
    return left.join(right, J, WITHIN)


def repartitioned(left: KStream, right: KStream) -> KStream:
    return left.repartition().join(right.repartition().to_table(Named.as_("T")), J, Joined.as_("NODE"))


def merged_counts(left: KStream, right: KStream) -> KStream:
    return left.merge(right).group_by_key().count().to_stream()


OPERATORS: dict[str, Callable[[KStream, KStream], KStream]] = {
    of.__name__: of
    for of in (stream_table, stream_versioned, tables, tables_outer_stored, streams, repartitioned, merged_counts)
}


def flow(operator: str, left: str, right: str) -> Flow:
    builder = StreamsBuilder("app")
    OPERATORS[operator](counts(builder, "l", left), counts(builder, "r", right)).to("out")
    return Flow(builder.build(), TYPES)


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("windows", REFUSED, ids="-".join)
def test_windows_of_another_kind_or_size_are_refused(operator: str, windows: tuple[str, str]) -> None:
    """When the topology is typed; with and without a window, too."""
    for left, right in (windows, windows[::-1]):
        with pytest.raises(
            ConfigurationError, match=r"differ in type|of type .* of type|of different kinds|with one without"
        ) as refused:
            flow(operator, left, right)
        assert refused.value.next_step
        assert refused.value.place["node"]
        assert re.search("windows of|sessions|windowed", str(refused.value))


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("windows", MEET, ids="-".join)
def test_windows_of_one_kind_and_size_meet(operator: str, windows: tuple[str, str]) -> None:
    """Both sides have one of 0 to 10 s, which ends with its only record if it is a sliding one; or a session of 5 s."""
    at = {"sliding": 10_000, "sessions": 5_000}.get(windows[0], 6_000)
    fed = [Fed("r", "k", 1, 5_000), Fed("l", "k", 1, at)]
    values = [row.value for row in flow(operator, *windows).run(fed, [1])["out"]]
    if operator == "merged_counts":
        assert 2 in values
    else:
        assert "1|1" in values


SERDES = {
    "10s": TimeWindowedSerde.of(StringSerde(), seconds(10)),
    "20s": TimeWindowedSerde.of(StringSerde(), seconds(20)),
    "sessions": SessionWindowedSerde(StringSerde()),
}


def read(operator: str, left: str, right: str) -> None:
    builder = StreamsBuilder("app")
    one, other = (
        builder.stream(topic, Consumed.with_(key_serde=SERDES[of])) for topic, of in (("l", left), ("r", right))
    )
    OPERATORS[operator](one, other).to("out")
    builder.build()


@pytest.mark.parametrize("operator", ["stream_table", "stream_versioned", "tables", "streams", "merged_counts"])
@pytest.mark.parametrize(("left", "right"), [("10s", "20s"), ("20s", "sessions")])
def test_topics_with_other_windows_are_refused(operator: str, left: str, right: str) -> None:
    """When the topology is built, by their serdes."""
    with pytest.raises(
        ConfigurationError, match=r"topic . have .*, those of topic . .*: they can never match.*select_key"
    ):
        read(operator, left, right)
    read(operator, left, left)
