"""A job's whole life, each step by the user that docs/security.md names, and with each of its rights left out once."""

from __future__ import annotations

import os
import re
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING
from unittest.mock import patch

import pyarrow as pa
from confluent_kafka import Consumer, KafkaException
from confluent_kafka.admin import AdminClient

import hindstream
from hindstream import (
    Deduplicated,
    Job,
    JsonSerde,
    KafkaTopic,
    Materialized,
    StreamsBuilder,
    TimeWindows,
    count,
    expect,
)
from hindstream.kafka.properties import client_properties
from hindstream.runs import file_policy
from hindstream.spark.kafka.archive import archive_topics
from hindstream.spark.phases import audit, commit, maintain, plan, publish, replay, report
from statelib.errors.kinds import ConfigurationError
from statelib.serdes import StringSerde
from statelib.serdes.windowed import TimeWindowedSerde
from statelib.settings.settings import load_settings
from statelib.storage import Storage
from statelib.topics.archive import TopicArchive
from tests.faults.proxy import FaultProxy
from tests.kafka.cluster import Message
from tests.kafka.maven import build
from tests.kafka.roles import Acl, acls, allow, policies, revoke, without_one

if TYPE_CHECKING:
    import http.client
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from statelib.settings.settings import Settings
    from tests.kafka.broker import Broker
    from tests.storage.s3 import S3Server

WAREHOUSE = "s3://lake/warehouse"
JOB = "orders-by-hour"
FULL = {
    "archiver": ("archiver",),
    "job": ("job",),
    "maintenance": ("job", "maintenance"),
    "reader": ("reader",),
    "viewer": ("viewer",),
}
"""By user of the store, the policies that he has; the last is the one of which something is left out."""

KAFKA_PASSWORDS = {user: f"password-of-{user}-9dKw" for user in ("archiver", "publisher", "reader")}

_BEGIN_MS = 1_700_000_000_000
_SECOND_MS = 1_000
_RECORDS = 2_000
_BAD = (7, 1_207)
_ENDS_S = (600, None)
"""Of the slices, after the first record; None: with all that is left."""

_KEYS = re.compile(r"Credential=key-id-of-([a-z0-9-]+)/")

NEEDED = {
    (0, "archive"): (
        "Names: s3:ListBucket", "Names: warehouse/topics/orders/*", "Names: warehouse/topics/orders-quarantine/*",
        "Archives: s3:GetObject", "Archives: s3:PutObject", "Archives: arn:aws:s3:::lake/warehouse/topics/orders/*",
        "Archives: arn:aws:s3:::lake/warehouse/topics/orders-quarantine/*",
    ),
    (0, "plan"): (
        "Names: s3:ListBucket", "Names: warehouse/topics/orders/*", "Sources: s3:GetObject", "Job: s3:GetObject",
        "Job: s3:PutObject", "Job: arn:aws:s3:::lake/warehouse/jobs/orders-by-hour/*",
    ),
    (0, "replay"): (
        "Job: arn:aws:s3:::lake/warehouse/topics/orders-by-hour/*",
        "Job: arn:aws:s3:::lake/warehouse/topics/orders-by-hour-*",
        "Names: warehouse/jobs/*",
    ),
    (0, "audit"): ("Names: warehouse/topics/orders-by-hour/*", "Names: warehouse/topics/orders-by-hour-*"),
    (0, "read"): (
        "Names: s3:ListBucket", "Names: warehouse/jobs/orders-by-hour/*", "Names: warehouse/topics/orders-by-hour/*",
        "Names: warehouse/topics/orders-by-hour-*", "Sink: s3:GetObject",
        "Sink: arn:aws:s3:::lake/warehouse/jobs/orders-by-hour/*",
        "Sink: arn:aws:s3:::lake/warehouse/topics/orders-by-hour/*",
        "Sink: arn:aws:s3:::lake/warehouse/topics/orders-by-hour-*/_delta_log/*",
    ),
    (0, "view"): ("Pages: s3:GetObject",),
    (1, "archive"): ("Archives: s3:DeleteObject",),
    (1, "publish"): ("ForksOfOthers: s3:GetObject",),
    (1, "maintain"): (
        "Tidy: s3:DeleteObject", "Tidy: arn:aws:s3:::lake/warehouse/jobs/orders-by-hour/*",
        "PlansOfOthers: s3:GetObject", "Tidy: arn:aws:s3:::lake/warehouse/topics/orders-by-hour/*",
        "Tidy: arn:aws:s3:::lake/warehouse/topics/orders-by-hour-*",
    ),
}  # fmt: skip
"""By slice and step, what is left out of the user's policy there, one after the other: each time the step fails."""


def users() -> dict[str, list[dict[str, object]]]:
    """By user of the store, the policies; of each role one user with all of them, and one for each line without it."""
    page = policies()
    made = {user: [page[name] for name in names] for user, names in FULL.items()}
    for user, names in FULL.items():
        *others, last = (page[name] for name in names)
        made |= {less(user, left_out): [*others, policy] for left_out, policy in without_one(last)}
    return made


def less(user: str, left_out: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", f"{user} less {left_out}".lower()).strip("-")


class Recorder(FaultProxy):
    """Passes all on, and keeps which objects were asked for in vain, by user."""

    def __init__(self, upstream: str) -> None:
        super().__init__(upstream, lambda _: None)
        self.absent: set[tuple[str, str]] = set()

    def _pass_on(
        self, method: str, target: str, headers: http.client.HTTPMessage, body: bytes
    ) -> tuple[int, dict[str, str], bytes]:
        answer = super()._pass_on(method, target, headers, body)
        user = _KEYS.search(headers.get("Authorization", ""))
        if answer[0] == 404 and user is not None:
            self.absent.add((user[1], target.removeprefix("/lake/").replace("%3D", "=")))
        return answer


@dataclass
class Story:
    """What became of it.

    Attributes:
        refused: By what was left out (a user and a line, or an ACL), the error that the user then saw.
        absent: By user, objects that he has asked for and that were not there.
        rows: What the reader has read at last, from the archive and from Kafka.
    """

    refused: dict[tuple[str, str], Exception] = field(default_factory=dict)
    absent: set[tuple[str, str]] = field(default_factory=set)
    rows: tuple[int, int] = (0, 0)


class World:
    """Servers, and a job that runs on them."""

    def __init__(self, s3: S3Server, recorder: Recorder, broker: Broker, spark: SparkSession, folder: Path) -> None:
        self.s3, self.broker, self._spark, self._recorder = s3, broker, spark, recorder
        self.store = s3.settings | {"aws_endpoint_url": recorder.endpoint}
        self.admin = Storage(WAREHOUSE, s3.options)
        self._acls = AdminClient({**broker.settings, "log_level": 2})  # nothing of a broker that has gone
        jars = sorted(map(str, (build() / "spark-jars").iterdir()))
        for jar in jars:
            spark.sql(f"ADD JAR '{jar}'")
        self._settings = {
            "warehouse": WAREHOUSE,
            "storage_options": self.store,
            "state_dir": str(folder / "state"),
            "spark_master": "local[2,4]",
            "spark_conf": {"spark.jars": ",".join(jars)},
            "kafka": {name: value for name, value in broker.settings.items() if name not in _LOGIN},
            "on_bad_record": "quarantine",
            "changelogs": ["once-STORE"],
            "keep_commits": 1,
            "keep_replaced_files_for": "0s",
            "target_file_bytes": 4_096,
            "merge_source_files": False,
        }

    def settings(self, until_ms: int | None = None) -> Settings:
        return load_settings(self._settings | {"until": until_ms}, environ={})

    @contextmanager
    def acting_as(self, user: str | None, kafka: str | None = None) -> Iterator[None]:
        """With a user's credentials in the environment, here and in Spark's workers; None: the administrator's."""
        found = self.s3.credentials if user is None else self.s3.credentials_of(user)
        if kafka is not None:
            found = {**found, "KAFKA_SASL_USERNAME": kafka, "KAFKA_SASL_PASSWORD": KAFKA_PASSWORDS[kafka]}
        with patch.dict(os.environ, found), patch.dict(self._spark.sparkContext.environment, found):
            yield

    def login(self) -> dict[str, str]:
        """What a client by librdkafka needs, with the credentials of the environment."""
        return client_properties(self.settings())

    def run(self) -> Story:
        """The story."""
        story, cluster = Story(), self.broker.cluster
        given = acls()
        allow(self._acls, *given)
        for topic in ("orders", JOB):
            cluster.create_topic(topic, 2)
        cluster.produce("orders", [_order(n) for n in range(_RECORDS)])
        for n, end_s in enumerate(_ENDS_S):
            settings = self.settings(None if end_s is None else _BEGIN_MS + end_s * _SECOND_MS)
            if n == 1:
                self._add_others(settings)
            for step in self._steps(settings, first=n == 0):
                for acl in given:
                    if acl.user == step.kafka and n == (acl.operation == "DescribeConfigs"):  # of what is there already
                        self._without_acl(acl, step, story)
                for left_out in NEEDED.get((n, step.name), ()):
                    with self.acting_as(less(step.user, left_out), step.kafka):
                        story.refused[step.user, left_out] = refusal(step.do, f"{step.name} without {left_out}")
                with self.acting_as(step.user, step.kafka):
                    step.do()
        with self.acting_as("reader", "reader"):
            story.rows = (self._read_archive(), self._read_topic())
        story.absent = self._recorder.absent
        return story

    def _without_acl(self, acl: Acl, step: Step, story: Story) -> None:
        revoke(self._acls, acl)
        with self.acting_as(step.user, step.kafka):
            story.refused[acl.user, str(acl)] = refusal(step.do, f"{step.name} without {acl}")
        allow(self._acls, acl)

    def _add_others(self, settings: Settings) -> None:
        """Another job in the warehouse, with an open run; and a file that a killed copy has left behind."""
        with self.acting_as(None):
            plan.run(job("other"), settings)
        end = TopicArchive.open(f"{WAREHOUSE}/topics/orders", options=self.s3.options).end_offsets()[0]
        self.admin.put(f"topics/orders/partition=0/{end:020d}-kafka.killed.parquet", b"half")

    def _steps(self, settings: Settings, *, first: bool) -> list[Step]:
        one = job(JOB)
        steps = [
            Step("archive", "archiver", lambda: list(archive_topics(_TOPICS, settings)), "archiver"),
            Step("plan", "job", lambda: plan.run(one, settings)),
            Step("replay", "job", lambda: replay.run(one, settings)),
            Step("audit", "job", lambda: audit.run(one, settings)),
            Step("commit", "job", lambda: commit.run(one, settings)),
            Step("publish", "job", lambda: publish.run(one, settings), "publisher"),
            Step("maintain", "maintenance", lambda: _maintain(one, settings)),
            Step("report", "job", lambda: report.run(one, settings)),
        ]
        if first:
            steps += [
                Step("read", "reader", self._read_archive),
                Step("read from Kafka", "reader", self._read_topic, "reader"),
                Step("view", "viewer", self._view),
            ]
        return steps

    def _read_archive(self) -> int:
        found = hindstream.read(JOB, job=JOB, warehouse=WAREHOUSE, storage_options=self.store)
        return len(found.to_pandas())

    def _read_topic(self) -> int:
        """As any reader of Kafka; its errors are the client's own."""
        group = {"group.id": "delays-dashboard", "auto.offset.reset": "earliest", "enable.partition.eof": True}
        consumer = Consumer({**self.login(), **group, "enable.auto.commit": False})
        consumer.subscribe([JOB])
        rows, ended = 0, set()
        try:
            while len(ended) < 2:
                message = consumer.poll(30)
                if message is None:
                    raise TimeoutError(f"nothing more from {JOB} within 30 s")
                if (error := message.error()) is None:
                    rows += 1
                elif error.code() == error._PARTITION_EOF:
                    ended.add(message.partition())
                else:
                    raise KafkaException(error)
        finally:
            consumer.close()
        return rows

    def _view(self) -> None:
        """As Airflow's API server: a page that is there, and one that is not yet."""
        warehouse = Storage(WAREHOUSE, self.store)
        assert b"</html>" in b"".join(map(bytes, warehouse.chunks(f"jobs/{JOB}/reports/index.html")))
        assert warehouse.get_if_present(f"jobs/{JOB}/reports/00000099-1.html") is None


@dataclass(frozen=True)
class Step:
    """A step of the story, and who does it."""

    name: str
    user: str
    do: Callable[[], object]
    kafka: str | None = None


_LOGIN = ("sasl.username", "sasl.password")
_ORDER = pa.struct([("id", pa.string()), ("customer", pa.string())])
_TOPICS: Sequence[KafkaTopic] = [KafkaTopic("orders", key=StringSerde(), value=JsonSerde(_ORDER))]


def job(name: str) -> Job:
    """Orders by customer and minute, without those that came twice; has a changelog and a repartition topic."""
    minute = timedelta(minutes=1)
    builder = StreamsBuilder(name)
    (
        builder.stream("orders")
        .deduplicate_by_key_value("id", timedelta(hours=1), Deduplicated.as_("once"))
        .group_by("customer")
        .windowed_by(TimeWindows.of_size_and_grace(minute, timedelta(minutes=10)))
        .aggregate({"orders": count()}, Materialized.as_("totals"))
        .to_stream()
        .to(name)
    )
    key = TimeWindowedSerde(StringSerde(), 60_000)
    return Job(
        name,
        builder.build(),
        expectations={name: (expect("expect_column_values_to_be_between", column="value.orders", min_value=1),)},
        kafka_sinks=(KafkaTopic(name, key, JsonSerde(pa.struct([("orders", pa.int64())]))),),
    )


def _maintain(one: Job, settings: Settings) -> None:
    """Also merges, which it does every 32 commits."""
    with patch.object(maintain, "file_policy", lambda given: replace(file_policy(given), every_commits=1)):
        maintain.run(one, settings)


def refusal(do: Callable[[], object], what: str) -> Exception:
    """The error of somebody who may not.

    Raises:
        AssertionError: He may.
    """
    try:
        do()
    except (ConfigurationError, KafkaException) as error:
        return error
    raise AssertionError(f"{what}: nothing was refused")


def _order(n: int) -> Message:
    value = b"bad" if n in _BAD else b'{"id": "order %d", "customer": "customer %d"}' % (n, n % 3)
    return Message(b"shop %d" % (n % 5), value, _BEGIN_MS + n * _SECOND_MS)
