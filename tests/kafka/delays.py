"""Two versions of a live application, `Windows` of the test bed: the new one counts every amount twice.

Input keeps flowing while they run. Names can have a prefix, so that each test has its own.
"""

from __future__ import annotations

import random
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from tests.kafka.cluster import Message
from tests.kafka.streams_app import StreamsApp

if TYPE_CHECKING:
    from pathlib import Path

    from tests.kafka.broker import Broker
    from tests.kafka.cluster import Record

PARTITIONS = 2
FACTOR = 2
_KEYS = [f"airport-{n}" for n in range(12)]
_STEP_MS = 400
_BATCH = 10
_PAUSE_SECONDS = 0.05
_LATE_MS = (0, 0, 8_000)

_JOB = """
from datetime import timedelta

import pyarrow as pa
import pyarrow.compute as pc

from hindstream import (
    BufferConfig, Handover, Job, KafkaTopic, Materialized, Named, StreamsBuilder, StringSerde, Suppressed, SwitchOver,
    TimeWindowedSerde, TimeWindows, count,
)
from statelib.serdes import FixedWidthSerde

LONG = FixedWidthSerde(pa.int64())


def topology(version, factor):
    builder = StreamsBuilder(f"{prefix}delays-{{version}}")
    windows = TimeWindows.of_size_and_grace(timedelta(minutes=1), timedelta(seconds=10))
    amounts = builder.stream("{prefix}delays").map_values(pc.field("value") * factor)
    windowed = amounts.group_by_key().windowed_by(windows)
    tables = {{
        "counts": windowed.count(Materialized.as_("count-store")),
        "sums": windowed.reduce(lambda total, amount: total + amount, Materialized.as_("sum-store")),
    }}
    for name, table in tables.items():
        until = Suppressed.until_window_closes(BufferConfig.unbounded()).with_name(f"final-{{name}}")
        table.suppress(until).to_stream().to(f"{{name}}-of-{prefix}delays-{{version}}")
    return builder.build()


topics = [KafkaTopic("{prefix}delays", StringSerde(), LONG)]
"""

_OLD = """
job = Job("{prefix}delays-1", topology(1, 1))
handover = Handover("{prefix}delays-1", application_id="{prefix}delays-1")
back = SwitchOver(old="{prefix}delays-2", new=Handover("{prefix}delays-1", application_id="{prefix}delays-3"))
"""

_NEW = """
job = Job("{prefix}delays-2", topology(2, 2))
KEY = TimeWindowedSerde(StringSerde(), 60_000)


def output(name):
    mine = KafkaTopic(f"{prefix}delay-{{name}}", KEY, LONG, archive=f"{{name}}-of-{prefix}delays-2")
    return mine, KafkaTopic(f"{prefix}shadow-delay-{{name}}", KEY, LONG)


shadow = Handover("{prefix}delays-2", application_id="{prefix}shadow-delays-2")
switch = SwitchOver(
    old="{prefix}delays-1",
    new=Handover("{prefix}delays-2", application_id="{prefix}delays-2"),
    shadow=shadow,
    outputs=(output("counts"), output("sums")),
    settles_after=timedelta(seconds=80),
)
"""


def write_jobs(folder: Path, prefix: str = "") -> None:
    """The files of both versions."""
    folder.mkdir()
    for name, own in (("delays_1.py", _OLD), ("delays_2.py", _NEW)):
        (folder / name).write_text((_JOB + own).format(prefix=prefix))


@dataclass
class Feed:
    """Amounts that keep coming, some a few seconds late, until the context ends."""

    broker: Broker
    topic: str
    sent: int = 0
    _stop: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """No more come."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        chance = random.Random(57)
        while not self._stop.wait(_PAUSE_SECONDS):
            times = [1_000_000 + (self.sent + n) * _STEP_MS for n in range(_BATCH)]
            self.broker.cluster.produce(self.topic, [_amount(chance, time_ms) for time_ms in times])
            self.sent += _BATCH

    def wait(self, records: int) -> None:
        """Until so many more have been sent."""
        wanted = self.sent + records
        while self.sent < wanted:
            time.sleep(_PAUSE_SECONDS)


def _amount(chance: random.Random, time_ms: int) -> Message:
    late = max(time_ms - chance.choice(_LATE_MS), 1_000_000)
    return Message(chance.choice(_KEYS).encode(), chance.randrange(1, 100).to_bytes(8), late)


@dataclass
class Delays:
    """The applications and their topics."""

    broker: Broker
    folder: Path
    prefix: str = ""

    def create_topics(self) -> None:
        """The input, what readers read, and the same of the shadow and of the reference."""
        for name in ("delays", *(f"{of}delay-{kind}" for of in ("", "shadow-", "all-") for kind in ("counts", "sums"))):
            self.broker.cluster.create_topic(f"{self.prefix}{name}", PARTITIONS)

    def feed(self) -> Feed:
        """The producer of the input."""
        return Feed(self.broker, f"{self.prefix}delays")

    def app(self, name: str, *, factor: int = 1, outputs: str = "") -> StreamsApp:
        """An application with exactly-once, as it is started by whoever runs it."""
        topics = {f"topology.topic.{kind}": f"{self.prefix}{outputs}delay-{kind}" for kind in ("counts", "sums")}
        return StreamsApp(
            "windows",
            self.broker,
            f"{self.prefix}{name}",
            self.folder / f"{name}-state",
            settings={
                "processing.guarantee": "exactly_once_v2",
                "topology.topic.amounts": f"{self.prefix}delays",
                "topology.factor": str(factor),
                **topics,
            },
        )

    def check_readers(self, versions: int) -> None:
        """That readers have, record for record, what one application without a stop gives; sums of the version.

        Args:
            versions: How many versions have written one after the other, the old one first, then the new one, ...
        """
        with self.app("delays-all", outputs="all-") as app:
            app.catch_up()
        cluster, prefix = self.broker.cluster, self.prefix
        counts, all_counts = (_told(cluster.read(f"{prefix}{of}delay-counts")) for of in ("", "all-"))
        assert counts == all_counts
        sums, all_sums = (_told(cluster.read(f"{prefix}{of}delay-sums")) for of in ("", "all-"))
        assert [told[:3] for told in sums] == [told[:3] for told in all_sums]
        for partition in range(PARTITIONS):
            factors = [mine[3] / whole[3] for mine, whole in zip(sums, all_sums, strict=True) if mine[0] == partition]
            turns = [n for n in range(1, len(factors)) if factors[n] != factors[n - 1]]
            assert {*factors} <= {1, FACTOR}
            assert len(turns) == versions - 1, factors


def _told(records: list[Record]) -> list[tuple[int, bytes | None, int, int]]:
    return [(of.partition, of.key, of.timestamp_ms, int.from_bytes(of.value or b"")) for of in records]
