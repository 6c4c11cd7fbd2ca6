"""Over an object store that fails by chance, all is done as if it had not, or ends with an error that says: again.

``python -m tests.campaigns store`` does the same with as many seeds as one likes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.faults import object_store, storage_verbs
from tests.faults.proxy import Fault
from tests.storage.s3 import S3Server


@pytest.fixture(scope="module")
def expected(tmp_path_factory) -> dict[str, Any]:
    return object_store.undisturbed(tmp_path_factory.mktemp("undisturbed"))


@pytest.mark.parametrize("seed", [0, 4])
def test_a_job(s3: S3Server, tmp_path: Path, expected: dict[str, Any], seed: int):
    """Seeds that fail often enough for tries of a slice to fail, in all ways together."""
    outcome = object_store.run_case(seed, s3, tmp_path)
    assert outcome.faults.total() > 50
    assert outcome.failed_tries
    assert outcome.result == expected


@pytest.mark.parametrize("seed", range(6, 9))
def test_each_verb(s3: S3Server, tmp_path: Path, seed: int):
    outcome = storage_verbs.run_case(seed, s3, tmp_path)
    assert outcome.done


def test_each_fault_is_met(s3: S3Server, tmp_path: Path):
    outcome = storage_verbs.run_case(5, s3, tmp_path)
    assert set(outcome.faults) == set(Fault)
    assert outcome.failed
