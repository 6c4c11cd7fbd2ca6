"""The table of a real application becomes versioned, by KIP-889's steps, and plain again."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from hindstream.cli.live.live_migration import run_verify
from hindstream.cli.main import app
from hindstream.kafka.cluster import Cluster
from hindstream.kafka.live_migration import LiveStore, prepare, preview, verify
from statelib.errors.kinds import ConfigurationError, CorruptedDataError
from statelib.settings.settings import load_settings
from tests.docs.blocks import RUNBOOKS
from tests.kafka.cluster import Message
from tests.kafka.streams_app import StreamsApp
from tests.kafka.test_exported_changelogs import KEYS, RETENTION_MS, in_order, prices

if TYPE_CHECKING:
    from pathlib import Path

    from statelib.settings.settings import Settings
    from tests.kafka.broker import Broker
    from tests.kafka.test_exported_changelogs import Rows

pytestmark = pytest.mark.slow

RUNBOOK = RUNBOOKS / "migrating-a-live-store.md"
PARTITIONS = 2
DAY_MS = 86_400_000


class Bed:
    """An application that can have either store."""

    def __init__(self, broker: Broker, unique: str, folder: Path) -> None:
        self.broker, self.id, self.folder = broker, unique, folder
        self.settings: Settings = load_settings({"kafka": broker.settings}, environ={})
        self.cluster = Cluster(self.settings)
        self.store = LiveStore(unique, "prices-store", folder / "app", RETENTION_MS, f"{unique}-prices-store-changelog")
        for topic in ("prices", "orders", "priced"):
            broker.cluster.create_topic(f"{unique}-{topic}", PARTITIONS)

    def app(self, topology: str, protocol: str = "classic") -> StreamsApp:
        settings = {"topology.history.retention.ms": str(RETENTION_MS), "group.protocol": protocol}
        return StreamsApp(
            topology, self.broker, self.id, self.folder / "app", topic_prefix=f"{self.id}-", settings=settings
        )

    def produce(self, rows: Rows) -> None:
        messages = [Message(key.encode(), value and value.encode(), ts) for key, value, ts in rows]
        self.broker.cluster.produce(f"{self.id}-prices", messages)

    def typed(self, verb: str) -> str:
        """What the runbook's command prints, given for this application."""
        (line,) = {
            line.strip() for line in RUNBOOK.read_text().splitlines() if f"hindstream migrate live {verb} " in line
        }
        ours = {
            "rates-app": self.id,
            "rates": "prices-store",
            "7d": f"{RETENTION_MS // 60_000}min",
            "/var/lib/kafka-streams": str(self.folder / "app"),
        }
        words = [ours.get(word, word) for word in line.split()[1:]]
        for name, value in self.broker.settings.items():
            words += ["--set", f"kafka.{name}={value}"]
        result = CliRunner().invoke(app, words, obj={}, catch_exceptions=False)
        assert result.exit_code == 0
        return result.output

    @property
    def lag(self) -> str:
        return self.broker.cluster.config(self.store.changelog)["min.compaction.lag.ms"]

    @property
    def tasks(self) -> set[str]:
        return {path.parent.parent.name for path in (self.folder / "app").glob("*/*/rocksdb/prices-store")}


def in_time(rows: Rows) -> Rows:
    return sorted(rows, key=lambda row: row[2])


def latest_of(rows: Rows) -> list[dict[str, Any]]:
    """Each key's latest value, if the rows are in order of time."""
    latest = {key: {"key": key, "value": value, "timestamp_ms": ts} for key, value, ts in rows}
    return in_order([row for row in latest.values() if row["value"] is not None])


def test_a_changed_configuration_shows_at_once(broker: Broker, unique: str) -> None:
    topic = broker.cluster.create_topic(unique)
    cluster = Cluster(load_settings({"kafka": broker.settings}, environ={}))
    of_broker = cluster.topic_config(topic)
    for n in range(40):
        retention_ms = None if n % 2 else "86400000"
        cluster.set_topic_config(topic, {"min.compaction.lag.ms": str(n), "retention.ms": retention_ms})
        found = cluster.topic_config(topic)
        assert found["min.compaction.lag.ms"] == str(n)
        assert found["retention.ms"] == (retention_ms or of_broker["retention.ms"])


@pytest.mark.long
def test_a_streams_group_has_to_be_a_classic_one_in_between(broker: Broker, unique: str, tmp_path: Path) -> None:
    """KIP-1071: a broker refuses an application whose topology has changed; an empty group can become another one."""
    bed = Bed(broker, unique, tmp_path)
    first = in_time(prices(random.Random(17), 50, 1_000_000, 1_100_000))
    with bed.app("plain-table", "streams") as live:
        bed.produce(first)
        live.catch_up()
    assert "start the application once with group.protocol=classic" in bed.typed("prepare")
    with pytest.raises(RuntimeError, match="Topology updates are not supported yet"):  # noqa: SIM117
        with bed.app("versioned-join", "streams") as live:
            live.catch_up()
    for protocol in ("classic", "streams"):
        with bed.app("versioned-join", protocol) as live:
            live.catch_up()
            newest = [row["key"] for row in live.versions("prices-store", *KEYS) if row["valid_to_ms"] is None]
    assert sorted(newest) == sorted(row["key"] for row in latest_of(first))


def test_a_plain_table_becomes_versioned_and_plain_again(broker: Broker, unique: str, tmp_path: Path) -> None:
    bed, chance = Bed(broker, unique, tmp_path), random.Random(16)
    first = in_time(prices(chance, 300, 1_000_000, 1_100_000))
    later = in_time(prices(chance, 100, 1_100_001, 1_130_000))
    with bed.app("plain-table") as live:
        bed.produce(first)
        live.catch_up()
        for refused in (prepare, verify):
            with pytest.raises(ConfigurationError, match="the application is running"):
                refused(bed.cluster, bed.store)
        with pytest.raises(ConfigurationError, match="an instance of the application is running in this directory"):
            bed.store.directory.check_free()
        assert preview(bed.cluster, bed.store).tasks == (0, 1)
    assert (bed.lag, len(bed.tasks)) == ("0", PARTITIONS)
    said = bed.typed("plan")
    assert "Partitions of the store on this host, whose tasks' local state is deleted: 0, 1." in said
    assert "min.compaction.lag.ms was 0 (0 ms), and is 86460000 (1.0 d)." in bed.typed("prepare")
    assert "Local state deleted, of tasks: there was none." in bed.typed("prepare")
    assert (bed.lag, bed.tasks) == (str(RETENTION_MS + DAY_MS), set())
    with pytest.raises(ConfigurationError, match="this host has nothing of the store"):
        verify(bed.cluster, bed.store)

    with bed.app("versioned-join") as live:
        live.catch_up()
        restored = live.versions("prices-store", *KEYS)
        newest = {row["key"]: row for row in restored if row["valid_to_ms"] is None}
        assert in_order([{k: row[k] for k in ("key", "value", "timestamp_ms")} for row in newest.values()]) == [
            row for row in latest_of(first) if row["key"] in newest
        ]
        assert len(restored) > len(newest), "the history that the changelog had"
    files = set((tmp_path / "app").rglob("*"))
    assert "0 differ." in bed.typed("verify")
    assert set((tmp_path / "app").rglob("*")) == files, "nothing is left in the application's directory"
    with bed.app("versioned-join") as live:
        bed.produce(later)
        live.catch_up()
    compared = verify(bed.cluster, bed.store)
    assert sum(found.equal for _, found in compared) == len(latest_of([*first, *later]))
    assert sum(history.records for history, _ in compared) == len(first) + len(later)

    assert "min.compaction.lag.ms was 86460000 (1.0 d), and is 0 (0 ms)." in bed.typed("rollback")
    assert (bed.lag, bed.tasks) == ("0", set())
    with bed.app("plain-table") as live:
        live.catch_up()
        assert in_order(live.dump("prices-store")) == latest_of([*first, *later])


def test_what_differs_is_told(broker: Broker, unique: str, tmp_path: Path) -> None:
    bed = Bed(broker, unique, tmp_path)
    with bed.app("versioned-join") as live:
        bed.produce([("key-1", "1", 1_000), ("key-2", "2", 1_000), ("key-3", "3", 1_000)])
        live.catch_up()
    run_verify(bed.store, bed.settings)
    changed = [Message(b"key-1", b"other", 2_000), Message(b"key-2", None, 2_000), Message(b"key-9", b"new", 2_000)]
    broker.cluster.produce(bed.store.changelog, changed)
    compared = verify(bed.cluster, bed.store)
    different = {key for _, found in compared for key in found.different}
    assert different == {key.encode().hex() for key in ("key-1", "key-2", "key-9")}
    with pytest.raises(CorruptedDataError, match="latest values are not those of the changelog"):
        run_verify(bed.store, bed.settings)


def test_what_the_changelog_has_lost_and_what_comes_too_late(broker: Broker, unique: str, tmp_path: Path) -> None:
    """The broker compacts what is older than the lag; a versioned store refuses what is older than its retention."""
    bed = Bed(broker, unique, tmp_path)
    with bed.app("plain-table") as live:
        bed.produce([("key-1", f"{n}", 1_000 + n) for n in range(50)])
        bed.produce([("key-1", "last", 2_000)])
        live.catch_up()
    broker.compact(bed.store.changelog)
    with bed.app("plain-table") as live:
        bed.produce([("key-1", "now", 900_000), ("key-1", "long ago", 900_000 - RETENTION_MS - 1)])
        live.catch_up()
    found = [history for history in preview(bed.cluster, bed.store).histories if history.records]
    (history,) = found
    assert history.absent > 0
    assert history.complete_from_ms is None or history.complete_from_ms < 900_000
    assert (history.too_late, history.keys, history.newest_ms) == ({b"key-1"}, 1, 900_000)


def test_what_is_no_changelog_of_a_table(broker: Broker, unique: str, tmp_path: Path) -> None:
    bed = Bed(broker, unique, tmp_path)
    other = replace(bed.store, changelog=f"{unique}-orders")
    with pytest.raises(ConfigurationError, match="it is no changelog of a table"):
        preview(bed.cluster, other)
    with pytest.raises(ConfigurationError, match="Unknown topic"):
        prepare(bed.cluster, replace(bed.store, changelog="nowhere"))
