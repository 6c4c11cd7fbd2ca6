"""What is handed over, and how Kafka Streams configures changelogs."""

from __future__ import annotations

import pytest

from statelib import ConfigurationError, Handover, StoreFormat
from statelib.documents.manifests import TaskPosition
from statelib.documents.topologies import StoreDescription
from statelib.job.handover import behind_ms, changelog_config, load_handover

DAY_MS = 86_400_000


def store(kind, **settings):
    return StoreDescription(
        name="s", kind=kind, node="n", sub_topology=0, families=(), settings=settings, arrow_schema=""
    )


@pytest.mark.parametrize(
    ("described", "expected"),
    [
        (store("key-value"), {"cleanup.policy": "compact"}),
        (store("suppression-buffer"), {"cleanup.policy": "compact"}),
        (
            store("versioned", history_retention_ms=1_000),
            {"cleanup.policy": "compact", "min.compaction.lag.ms": str(DAY_MS + 1_000)},
        ),
        (store("window", retention_ms=70_000), {"cleanup.policy": "compact,delete", "retention.ms": "86470000"}),
        (store("session", retention_ms=5), {"cleanup.policy": "compact,delete", "retention.ms": "86400005"}),
    ],
)
def test_changelogs_are_configured_as_kafka_streams_does(described, expected):
    assert changelog_config(described, behind_ms=0) == expected
    assert changelog_config(described, behind_ms=-9) == expected


def test_what_is_behind_the_time_of_day_is_kept_as_much_longer():
    assert changelog_config(store("window", retention_ms=70_000), 500)["retention.ms"] == "86470500"
    assert changelog_config(store("versioned", history_retention_ms=1), 500)["min.compaction.lag.ms"] == "86400501"


def test_the_task_that_is_the_furthest_behind_counts():
    def position(task_id, stream_time, **clocks):
        return TaskPosition(task_id=task_id, commit=1, fingerprint="f", stream_time=stream_time, clocks=clocks)

    described = store("window", retention_ms=1)
    positions = {
        "0_0": position("0_0", 900, n={"stream_time": 900, "arrivals": 3}),
        "0_1": position("0_1", 800, n={"store_time": 700}, other={"stream_time": 5}),
        "0_2": position("0_2", -1),
        "1_0": position("1_0", 10),
    }
    assert behind_ms(positions, described, 1_000) == 300
    assert behind_ms({"0_2": positions["0_2"]}, described, 1_000) == 0


def test_names():
    form = StoreFormat()
    handover = Handover("job", "app", {"a": form}, {"a": "b"}, {"t": "other"}, ("c",))
    assert (handover.changelog("a"), handover.changelog("c")) == ("app-b-changelog", "app-c-changelog")
    assert (handover.kafka_topic("t"), handover.kafka_topic("u")) == ("other", "u")
    assert handover.format("a") is form
    handover.check_stores({"a", "c"})
    with pytest.raises(ConfigurationError, match=r"no such store \(job job, store c\)"):
        handover.check_stores({"a", "b"})


def test_a_handover_is_loaded_from_a_file(tmp_path):
    file = tmp_path / "handovers.py"
    file.write_text("from statelib import Handover\nhandover = Handover('job', 'app')\nnumber = 7\n")
    assert load_handover(str(file)) == Handover("job", "app")
    with pytest.raises(ConfigurationError, match="this is no handover"):
        load_handover(f"{file}:number")
