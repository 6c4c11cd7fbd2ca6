from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from statelib.commits import commit, plan, publish, record_audit, stage
from statelib.storage import Storage
from tests.commits import toy

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from statelib.documents.manifests import Commit


@pytest.fixture
def warehouse(tmp_path: Path) -> Storage:
    return Storage(str(tmp_path / "warehouse"))


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    return tmp_path / "scratch"


@pytest.fixture
def run_slice(warehouse: Storage, scratch: Path) -> Callable[..., Commit]:
    """Runs one slice through all phases but maintenance."""

    def run(*, until_ms: int | None = None, job=None) -> Commit:
        planned = plan(job or toy.job(), warehouse, now_ms=1, until_ms=until_ms)
        stage(warehouse, planned, toy.replay(warehouse, planned, scratch))
        record_audit(warehouse, planned, toy.passed(planned))
        made = commit(warehouse, planned, now_ms=2)
        publish(warehouse, planned.job)
        return made

    return run
