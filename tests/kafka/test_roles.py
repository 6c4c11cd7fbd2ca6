"""The rights that docs/security.md prints, on a broker with ACLs and an S3 server with policies."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from deltalake import DeltaTable

from hindstream.kafka.errors import kafka_errors
from hindstream.kafka.producer import Outgoing, produce, sending
from hindstream.spark.phases import plan
from statelib.errors.kinds import ConfigurationError
from statelib.storage import Storage
from tests.kafka.broker import Broker
from tests.kafka.roles import acls, policies, without_one
from tests.kafka.roles_story import FULL, JOB, KAFKA_PASSWORDS, WAREHOUSE, Recorder, World, job, less, refusal, users
from tests.storage.s3 import SECRET_ACCESS_KEY, S3Server, s3_server

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from tests.kafka.roles_story import Story

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(scope="module")
def world(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    broker = Broker(tmp_path_factory.mktemp("broker-with-acls"), secured=True, users=KAFKA_PASSWORDS)
    with ThreadPoolExecutor() as pool, ExitStack() as stack:
        starting = pool.submit(broker.start)  # while the other server starts too
        s3 = stack.enter_context(s3_server(tmp_path_factory.mktemp("s3-with-policies"), "lake", users=users()))
        recorder = stack.enter_context(Recorder(s3.endpoint))
        starting.result()
        stack.callback(broker.kill)
        yield World(s3, recorder, broker, spark, tmp_path_factory.mktemp("roles"))


@pytest.fixture(scope="module")
def told(world: World) -> Iterator[list[str]]:
    """What is logged."""
    lines: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(handler.format(record))
    loggers = [logging.getLogger(name) for name in ("", "hindstream", "statelib")]
    levels = [logger.level for logger in loggers]
    loggers[0].addHandler(handler)
    for logger in loggers[1:]:
        logger.setLevel(logging.DEBUG)
    yield lines
    loggers[0].removeHandler(handler)
    for logger, level in zip(loggers, levels, strict=True):
        logger.setLevel(level)


@pytest.fixture(scope="module")
def story(world: World, told: list[str]) -> Story:  # which listens meanwhile
    return world.run()


@pytest.mark.long
def test_each_right_is_needed(story: Story) -> None:
    """With all rights the job has run. Without any one a step has failed, and has said what is missing."""
    from_archive, from_kafka = story.rows
    assert from_archive == from_kafka > 100
    page = policies()
    lines = {(user, left_out) for user, names in FULL.items() for left_out, _ in without_one(page[names[-1]])}
    absences = {("viewer", "Names: s3:ListBucket")}  # see below
    assert story.refused.keys() == lines - absences | {(acl.user, str(acl)) for acl in acls()}
    for (user, left_out), error in story.refused.items():
        if not isinstance(error, KafkaException):
            assert missing(left_out) in str(error), (user, left_out, str(error))
            assert "docs/security.md" in str(error)


def missing(left_out: str) -> str:
    """What an error names: the action of a policy, the prefix of a bucket, or what an ACL is for."""
    what = left_out.rpartition(" ")[2]
    return what.removeprefix("arn:aws:s3:::lake/").split("*", 1)[0].rstrip("/")


@pytest.mark.long
def test_absent_objects_may_be_listed(story: Story) -> None:
    """Amazon says that an object is absent only to those who may list it; this server says so to everybody."""
    page = policies()
    asking = {user for user, _ in story.absent}
    assert asking >= FULL.keys()
    for user, key in story.absent:
        if user in FULL:
            statements = [statement for name in FULL[user] for statement in page[name]["Statement"]]
            listed = [s["Condition"]["StringLike"]["s3:prefix"] for s in statements if "s3:ListBucket" in s["Action"]]
            assert any(fnmatchcase(key, pattern) for patterns in listed for pattern in patterns), (user, key)


@pytest.mark.long
def test_readers_cannot_write(world: World, story: Story) -> None:
    assert story.rows
    report = f"jobs/{JOB}/reports/index.html"
    with world.acting_as("reader", "reader"):
        warehouse = Storage(WAREHOUSE, world.store)
        for what, do in {
            "put": lambda: warehouse.put(f"topics/{JOB}/partition=0/mine.parquet", b""),
            "create": lambda: warehouse.put_if_absent(f"jobs/{JOB}/commits/{99:020d}.json", b""),
            "copy": lambda: warehouse.copy(report, f"jobs/{JOB}/reports/mine.html"),
            "delete": lambda: warehouse.delete(report),
            "delete two": lambda: warehouse.delete([report, f"topics/{JOB}/_delta_log/{0:020d}.json"]),
            "read what is not the job's": lambda: warehouse.get(f"topics/orders/_delta_log/{0:020d}.json"),
            "run": lambda: plan.run(job(JOB), world.settings()),
        }.items():
            assert isinstance(refusal(do, what), ConfigurationError)
        refused: list[KafkaError] = []
        producer = Producer(world.login())
        producer.produce(JOB, b"mine", on_delivery=lambda error, _: refused.append(error))
        assert producer.flush(30) == 0
        assert [error.code() for error in refused] == [KafkaError.TOPIC_AUTHORIZATION_FAILED]
        with (
            pytest.raises(ConfigurationError, match="docs/security.md"),
            kafka_errors(topic=JOB),
            sending(world.login()) as once,
        ):
            produce(once, JOB, 0, Outgoing(b"mine", b""))
    assert world.admin.exists(report)


@pytest.mark.long
def test_a_delta_table_needs_no_right_on_the_job(world: World, story: Story) -> None:
    without = less("reader", f"Sink: arn:aws:s3:::lake/warehouse/jobs/{JOB}/*")
    with world.acting_as(without):
        table = DeltaTable(f"{WAREHOUSE}/topics/{JOB}", storage_options=world.store)
        assert table.to_pyarrow_table().num_rows == story.rows[0]


@pytest.mark.long
def test_no_secret_is_written_or_told(world: World, story: Story, told: list[str]) -> None:
    """Neither in the warehouse, nor in what was logged or refused."""
    secrets = [SECRET_ACCESS_KEY, *KAFKA_PASSWORDS.values()]
    secrets += [S3Server.credentials_of(user)["AWS_SECRET_ACCESS_KEY"] for user in users()]
    assert any("sent to Kafka" in line for line in told)
    said = "\n".join([*told, *map(str, story.refused.values())])
    assert not [secret for secret in secrets if secret in said]
    stored = [entry.path for entry in world.admin.list()]
    assert {"jobs", "topics"} == {path.partition("/")[0] for path in stored}
    for path in stored:
        content = world.admin.get(path)
        assert not [secret for secret in secrets if secret.encode() in content], path
