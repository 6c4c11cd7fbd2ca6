"""Groups of the protocol ``streams`` (KIP-1071): where they go on can be set, and whether they are at work is told."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hindstream.kafka.cluster import Cluster
from statelib.errors.kinds import ConfigurationError
from statelib.settings.settings import load_settings
from tests.kafka.cluster import Message
from tests.kafka.streams_app import StreamsApp

if TYPE_CHECKING:
    from pathlib import Path

    from tests.kafka.broker import Broker

pytestmark = pytest.mark.slow

SALES = [Message(b"k", b"north:%d" % amount, amount) for amount in (1, 2, 4, 8)]


def test_a_group_that_was_set_before_it_ran(broker: Broker, unique: str, tmp_path: Path) -> None:
    cluster = Cluster(load_settings({"kafka": broker.settings}, environ={}))
    sales = broker.cluster.create_topic(f"{unique}-sales", 1)
    broker.cluster.create_topic(f"{unique}-totals", 1)
    broker.cluster.produce(sales, SALES)
    assert not cluster.check_stopped(unique, topic=sales)
    cluster.set_group_offsets(unique, {(sales, 0): 2})
    assert not cluster.check_stopped(unique), "nobody has begun with it"
    streams = {"group.protocol": "streams"}
    with StreamsApp("reduce", broker, unique, tmp_path / "app", topic_prefix=f"{unique}-", settings=streams) as app:
        app.catch_up()
        assert [(row["key"], row["value"]) for row in app.dump("totals-store")] == [("north", 4 + 8)]
        with pytest.raises(ConfigurationError, match="its group is of the protocol streams, and has members"):
            cluster.check_stopped(unique, assumed=True)
    before = cluster.committed(unique)
    assert before[sales, 0].offset == 4
    assert cluster.check_stopped(unique)
    assert cluster.committed(unique) == before, "nothing is changed by asking"
    cluster.set_group_offsets(unique, {(sales, 0): 1})
    assert cluster.group_offsets(unique)[sales, 0] == 1


def test_one_that_has_committed_nothing(broker: Broker, unique: str, tmp_path: Path) -> None:
    cluster = Cluster(load_settings({"kafka": broker.settings}, environ={}))
    sales = broker.cluster.create_topic(f"{unique}-sales", 1)
    broker.cluster.create_topic(f"{unique}-totals", 1)
    streams = {"group.protocol": "streams"}
    with StreamsApp("reduce", broker, unique, tmp_path / "app", topic_prefix=f"{unique}-", settings=streams) as app:
        app.catch_up()
        assert cluster.committed(unique) == {}
        with pytest.raises(ConfigurationError, match="the application is running"):
            cluster.check_stopped(unique, topic=sales)
    cluster.check_stopped(unique, topic=sales)
    assert cluster.committed(unique) == {}
