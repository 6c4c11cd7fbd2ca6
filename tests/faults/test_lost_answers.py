"""Requests that were carried out although the client was told otherwise, or nothing, one at a time."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from statelib.settings.storage_options import RequestLimits
from statelib.storage import Storage
from statelib.topics.append import append_records
from statelib.topics.archive import TopicArchive, topic_schema
from tests.faults.proxy import Fault, FaultProxy, First
from tests.storage.s3 import S3Server

pytestmark = pytest.mark.thorough

LIMITS = RequestLimits(request_timeout_ms=1_000, retries=2, retry_backoff_ms=1, retry_backoff_max_ms=5)
CARRIED_OUT = [Fault.FAILED, Fault.LOST, Fault.SLOW, Fault.CUT]


@pytest.fixture
def proxy(s3: S3Server):
    with FaultProxy(s3.endpoint, lambda _: None, slow_seconds=1.5) as running:
        yield running


@pytest.fixture
def root(tmp_path: Path) -> str:
    return f"s3://warehouse/lost/{tmp_path.name}"


def through(proxy: FaultProxy, s3: S3Server) -> dict[str, str]:
    return s3.options | {"aws_endpoint_url": proxy.endpoint} | LIMITS.options()


@pytest.mark.parametrize("fault", CARRIED_OUT)
def test_a_create_is_one_s_own(s3, proxy, root, fault):
    proxy.decide = First("PUT", "commits", fault)
    storage = Storage(root, through(proxy, s3))
    assert storage.put_if_absent("commits/1", b"mine")
    assert proxy.happened == {fault: 1}
    assert not Storage(root, s3.options).put_if_absent("commits/1", b"theirs")
    assert storage.get("commits/1") == b"mine"


@pytest.mark.parametrize("fault", CARRIED_OUT)
def test_a_commit_to_a_table_is_one_s_own(s3, proxy, root, fault):
    """Its files must stay: they are part of the topic."""
    schema = topic_schema(pa.string(), pa.int64())
    archive = TopicArchive.create(f"{root}/topic", schema, 2, options=through(proxy, s3))
    proxy.decide = First("PUT", "_delta_log", fault)
    records = pa.table({"key": ["a", "b", "c"], "value": [1, 2, 3], "timestamp": [1, 2, 3]})
    assert append_records(archive, records, attempt="a0", app_id="job", app_version=1)
    assert proxy.happened == {fault: 1}
    newest = TopicArchive.open(f"{root}/topic", options=s3.options)
    assert newest.version == 1
    assert sum(newest.reader(partition).read_all().num_rows for partition in range(2)) == 3
    assert not append_records(newest, records, attempt="a1", app_id="job", app_version=1)
    assert sum(newest.refresh().reader(partition).read_all().num_rows for partition in range(2)) == 3


@pytest.mark.parametrize("fault", CARRIED_OUT)
def test_a_table_that_is_made(s3, proxy, root, fault):
    proxy.decide = First("PUT", "_delta_log", fault)
    archive = TopicArchive.ensure(f"{root}/topic", topic_schema(pa.string(), pa.int64()), 2, options=through(proxy, s3))
    assert (archive.version, archive.partitions, proxy.happened) == (0, 2, {fault: 1})
