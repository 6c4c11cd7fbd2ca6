"""Serdes as options of nodes: those that mean the same are taken and change nothing, others are refused."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from statelib import (
    ConfigurationError,
    Grouped,
    Joined,
    JsonSerde,
    Materialized,
    Repartitioned,
    StreamJoined,
    StreamsBuilder,
    StringSerde,
    UuidSerde,
    serde_for,
)

KEY, VALUE = StringSerde(), JsonSerde(pa.struct([("n", pa.int64())]))
OTHER_BYTES = (JsonSerde(pa.string()), JsonSerde(pa.struct([("n", pa.int64())])), UuidSerde())
OPTIONS: list[Any] = [Grouped, Joined, StreamJoined, Materialized, Repartitioned]


@pytest.mark.parametrize("options", OPTIONS)
def test_serdes_that_write_what_the_type_has_change_nothing(options: Any) -> None:
    assert options.with_(KEY, VALUE) == options.with_(serde_for(pa.int64())) == options()
    assert options.as_("n").with_key_serde(KEY).with_value_serde(VALUE) == options.as_("n")


def test_kafkas_short_forms() -> None:
    assert Grouped.key_serde(KEY) == Grouped.value_serde(VALUE) == Grouped()
    assert Joined.key_serde(KEY) == Joined.value_serde(VALUE) == Joined.other_value_serde(VALUE) == Joined()
    assert Joined.with_(KEY, VALUE, VALUE).with_other_value_serde(VALUE) == Joined()
    assert StreamJoined.with_(KEY, VALUE, VALUE).with_other_value_serde(VALUE) == StreamJoined()


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("serde", OTHER_BYTES)
def test_keys_of_other_bytes_are_refused(options: Any, serde: Any) -> None:
    for call in (options.with_, options().with_key_serde, *([options.key_serde] if options is Grouped else [])):
        with pytest.raises(
            ConfigurationError, match="by the bytes of their type between nodes.*leave it out"
        ) as raised:
            call(serde)
        assert raised.value.place["file"] == __file__


def test_a_topology_with_serdes_is_the_one_without() -> None:
    built = []
    for grouped, materialized in ((Grouped.with_(KEY, VALUE), Materialized.with_(KEY, VALUE)), (None, Materialized())):
        builder = StreamsBuilder("app")
        builder.stream("in").group_by("n", grouped).count(materialized).to_stream().to("out")
        built.append(builder.build())
    assert built[0].describe() == built[1].describe()
    assert built[0].fingerprint == built[1].fingerprint
