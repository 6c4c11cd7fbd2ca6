"""Over an object store that fails by chance, all is done as if it had not, or ends with an error that says: again.

``./dev campaign faults --only store`` does the same with as many seeds as one likes.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from hindstream.spark.expectations.flat_tables import read_flat
from statelib.errors.kinds import RetryableError
from statelib.settings.storage_options import RequestLimits
from statelib.storage import Storage
from statelib.topics.append import append_records
from statelib.topics.archive import TopicArchive, topic_schema
from tests.faults import object_store, storage_verbs
from tests.faults.proxy import Fault, FaultProxy, Request
from tests.faults.subject import Result, difference
from tests.storage.s3 import S3Server

pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module")
def expected(tmp_path_factory) -> Result:
    return object_store.undisturbed(tmp_path_factory.mktemp("undisturbed"))


@pytest.mark.parametrize("seed", [0, 4])
def test_a_job(s3: S3Server, tmp_path: Path, expected: Result, seed: int):
    """Seeds that fail often enough for tries of a slice to fail, in all ways together."""
    outcome = object_store.run_case(seed, s3, tmp_path)
    assert outcome.faults.total() > 50
    assert outcome.failed_tries
    assert not difference(expected, outcome.result)


@pytest.mark.parametrize("seed", range(6, 9))
def test_each_verb(s3: S3Server, tmp_path: Path, seed: int):
    outcome = storage_verbs.run_case(seed, s3, tmp_path)
    assert outcome.done


def test_each_fault_is_met(s3: S3Server, tmp_path: Path):
    outcome = storage_verbs.run_case(5, s3, tmp_path)
    assert set(outcome.faults) == set(Fault)
    assert outcome.failed


@pytest.mark.parametrize("fault", list(Fault))
@pytest.mark.parametrize("number", [0, 1])
def test_a_failing_store_is_not_taken_for_damage(s3: S3Server, tmp_path: Path, fault: Fault, number: int):
    """What an audit reads: damage would put the run into quarantine."""
    root = f"s3://warehouse/audited/{tmp_path.name}"
    archive = TopicArchive.create(f"{root}/topics/t", topic_schema(pa.string(), pa.int64()), 1, options=s3.options)
    records = pa.table({"key": ["a", "b", "c"], "value": [1, 2, 3], "timestamp": [1, 2, 3]})
    append_records(archive, records, attempt="a0", app_id="job", app_version=1)
    (file,) = archive.refresh().files(0)
    requests: list[Request] = []

    def from_then_on(request: Request) -> Fault | None:
        requests.append(request)
        return fault if len(requests) > number else None

    with FaultProxy(s3.endpoint, from_then_on, slow_seconds=0.3) as proxy:
        limits = RequestLimits(request_timeout_ms=200, retries=1, retry_backoff_ms=1, retry_backoff_max_ms=1)
        storage = Storage(root, s3.options | {"aws_endpoint_url": proxy.endpoint} | limits.options())
        with pytest.raises(RetryableError):
            list(read_flat(storage, "t", archive.schema, file))
    assert len(requests) > number
