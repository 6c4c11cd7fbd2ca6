"""The Kafka Streams applications of the test bed: what each gives, and that it goes on where it was."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest

from tests.kafka.cluster import Message
from tests.kafka.streams_app import StreamsApp

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tests.kafka.broker import Broker

pytestmark = pytest.mark.slow

_EXACTLY_ONCE = {"processing.guarantee": "exactly_once_v2"}


def test_a_versioned_join_looks_up_the_price_of_the_time(broker: Broker, unique: str, tmp_path: Path) -> None:
    bed = _Bed("versioned-join", broker, unique, ["prices", "orders", "priced"])
    with bed.app(tmp_path / "first") as app:
        bed.produce("prices", ("x", b"1", 10), ("x", b"2", 20), ("y", b"3", 10), ("y", None, 30))
        app.catch_up()
        bed.produce("orders", ("x", b"a", 15), ("x", b"b", 20), ("y", b"c", 29), ("y", b"d", 30))
        app.catch_up()
        versions = app.versions("prices-store", "x", "y")
    assert versions == [
        {"key": "x", "value": "1", "timestamp_ms": 10, "valid_to_ms": 20},
        {"key": "x", "value": "2", "timestamp_ms": 20, "valid_to_ms": None},
        {"key": "y", "value": "3", "timestamp_ms": 10, "valid_to_ms": 30},
    ]
    assert bed.records("priced") == [
        (b"x", b"a@1", 15),
        (b"x", b"b@2", 20),
        (b"y", b"c@3", 29),
        (b"y", b"d@null", 30),
    ]
    bed.assert_all_is_committed("prices", "orders")
    with bed.app(tmp_path / "restored") as app:
        assert app.versions("prices-store", "x", "y") == versions


def test_a_plain_table_can_become_a_versioned_one(broker: Broker, unique: str, tmp_path: Path) -> None:
    classic = {"group.protocol": "classic"}  # a streams group refuses an application whose topology has changed
    bed = _Bed("plain-table", broker, unique, ["prices", "orders", "priced"], settings=classic)
    with bed.app(tmp_path / "plain") as app:
        bed.produce("prices", ("x", b"1", 10), ("x", b"2", 20))
        app.catch_up()
        bed.produce("orders", ("x", b"a", 15))
        app.catch_up()
        assert app.dump("prices-store") == [{"key": "x", "value": "2", "timestamp_ms": 20}]
        with pytest.raises(RuntimeError, match="know how to execute the given query"):
            app.versions("prices-store", "x")
    bed.topology = "versioned-join"
    with bed.app(tmp_path / "versioned") as app:  # it restores what the other has logged
        bed.produce("orders", ("x", b"b", 15))
        app.catch_up()
        assert [row["value"] for row in app.versions("prices-store", "x")] == ["1", "2"]
    assert bed.records("priced") == [(b"x", b"a@2", 15), (b"x", b"b@1", 15)]


def test_windows_are_emitted_once_when_they_have_closed(broker: Broker, unique: str, tmp_path: Path) -> None:
    bed = _Bed("windows", broker, unique, ["amounts", "counts", "sums"])
    with bed.app(tmp_path / "first") as app:
        bed.produce("amounts", *[("a", _long(n), ts) for n, ts in ((1, 1_000), (5, 61_000), (7, 59_000), (1, 71_000))])
        app.catch_up()
        sums = app.dump("sum-store")
        assert sums == [
            {"key": "a", "value": 8, "timestamp_ms": 59_000, "start_ms": 0, "end_ms": 60_000},
            {"key": "a", "value": 6, "timestamp_ms": 71_000, "start_ms": 60_000, "end_ms": 120_000},
        ]
    closed = [(b"a" + _long(0), _long(8), 59_000)]
    assert bed.records("sums") == closed
    with bed.app(tmp_path / "restored") as app:
        assert app.dump("sum-store") == sums
        assert [row["value"] for row in app.dump("count-store")] == [2, 2]
        bed.produce("amounts", ("a", _long(1), 131_000))  # closes a window that waits in the restored buffer
        app.catch_up()
    assert bed.records("sums") == [*closed, (b"a" + _long(60_000), _long(6), 71_000)]
    assert [value for _, value, _ in bed.records("counts")] == [_long(2), _long(2)]
    assert {f"{unique}-{store}-store-changelog" for store in ("sum", "count", "final-sums", "final-counts")} <= set(
        broker.cluster.topics()
    )


def test_a_session_grows_across_a_restart(broker: Broker, unique: str, tmp_path: Path) -> None:
    bed = _Bed("sessions", broker, unique, ["visits", "sessions"], settings=_EXACTLY_ONCE)
    with bed.app(tmp_path / "first") as app:
        bed.produce("visits", ("a", b"", 1_000), ("b", b"", 2_000), ("a", b"", 31_000))
        app.catch_up()
        rows = app.dump("sessions-store")
        assert rows == [
            {"key": "a", "value": 2, "start_ms": 1_000, "end_ms": 31_000},
            {"key": "b", "value": 1, "start_ms": 2_000, "end_ms": 2_000},
        ]
    with bed.app(tmp_path / "restored") as app:
        assert app.dump("sessions-store") == rows
        bed.produce("visits", ("a", b"", 40_000))
        app.catch_up()
    assert bed.records("sessions") == [
        (b"a" + _long(1_000) + _long(1_000), _long(1), 1_000),
        (b"b" + _long(2_000) + _long(2_000), _long(1), 2_000),
        (b"a" + _long(1_000) + _long(1_000), None, 1_000),
        (b"a" + _long(31_000) + _long(1_000), _long(2), 31_000),
        (b"a" + _long(31_000) + _long(1_000), None, 31_000),
        (b"a" + _long(40_000) + _long(1_000), _long(3), 40_000),
    ]


def test_a_total_goes_through_a_repartition_topic(broker: Broker, unique: str, tmp_path: Path) -> None:
    bed = _Bed("reduce", broker, unique, ["sales", "totals"], partitions=2)
    with bed.app(tmp_path / "first") as app:
        bed.produce("sales", *[(f"seller-{n}", b"north:%d" % n, n) for n in range(1, 101)])
        app.catch_up()
    bed.assert_all_is_committed("sales")
    with bed.app(tmp_path / "restored") as app:
        bed.produce("sales", ("seller-1", b"north:1", 200), ("seller-1", b"south:1", 201))
        app.catch_up()
        totals = {row["key"]: (row["value"], row["timestamp_ms"]) for row in app.dump("totals-store")}
    assert totals == {"north": (5_051, 200), "south": (1, 201)}
    assert sum(broker.cluster.end_offsets(f"{unique}-by-region-repartition").values()) == 102


def test_a_failure_is_told(broker: Broker, unique: str, tmp_path: Path) -> None:
    bed = _Bed("reduce", broker, unique, ["sales", "totals"])
    bed.produce("sales", ("seller", b"no amount", 1))
    with pytest.raises(RuntimeError, match="StringIndexOutOfBoundsException"), bed.app(tmp_path / "state") as app:
        app.catch_up()


class _Bed:
    """An application's topics, which are its test's own."""

    def __init__(
        self,
        topology: str,
        broker: Broker,
        unique: str,
        topics: list[str],
        partitions: int = 1,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self.topology = topology
        self._settings = settings
        self._broker = broker
        self._unique = unique
        for topic in topics:
            broker.cluster.create_topic(f"{unique}-{topic}", partitions)

    def app(self, state_dir: Path) -> StreamsApp:
        prefix = f"{self._unique}-"
        return StreamsApp(
            self.topology, self._broker, self._unique, state_dir, topic_prefix=prefix, settings=self._settings
        )

    def produce(self, topic: str, *records: tuple[str, bytes | None, int]) -> None:
        messages = [Message(key.encode(), value, timestamp) for key, value, timestamp in records]
        self._broker.cluster.produce(f"{self._unique}-{topic}", messages)

    def records(self, topic: str) -> list[tuple[bytes | None, bytes | None, int]]:
        name = f"{self._unique}-{topic}"
        self._broker.cluster.await_transactions(name)
        records = self._broker.cluster.read(name)
        return [(record.key, record.value, record.timestamp_ms) for record in records]

    def assert_all_is_committed(self, *topics: str) -> None:
        committed = self._broker.cluster.group_offsets(self._unique)
        for topic in topics:
            name = f"{self._unique}-{topic}"
            for partition, end in self._broker.cluster.end_offsets(name).items():
                assert committed[name, partition].offset == end
                assert committed[name, partition].metadata  # the partition's time


def _long(value: int) -> bytes:
    return struct.pack(">q", value)
