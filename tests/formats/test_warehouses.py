"""Warehouses of former versions: their documents, state and archives are read, and their jobs go on."""

from __future__ import annotations

import tarfile
from pathlib import Path
from typing import Any

import pytest

from statelib.commits import CommitLog, Retention, Runs, maintain
from statelib.commits.archives import open_archive
from statelib.documents.document import FORMAT_VERSION
from statelib.storage import Storage
from tests.commits import toy
from tests.formats.slices import JOB, run_slice
from tests.unpack import unpack

DATA = Path(__file__).parent / "data"


def content(warehouse: Storage, scratch: Path) -> dict[str, Any]:
    """What two slices have come to."""
    log, sink = CommitLog(warehouse, JOB), open_archive(warehouse, "counts")
    return {
        "counts": toy.counts_as_of(warehouse, log.read(2), scratch / "looked-at"),
        "positions": [
            {task_id: task.position.source_offsets for task_id, task in log.read(n).tasks.items()} for n in (1, 2)
        ],
        "published": [sink.reader(partition).read_all().to_pylist() for partition in range(sink.partitions)],
        "through": sink.last_transaction(JOB),
    }


@pytest.mark.parametrize("version", range(1, FORMAT_VERSION + 1))
def test_a_job_goes_on(tmp_path: Path, version: int) -> None:
    with tarfile.open(DATA / f"warehouse-{version}.tar.gz") as archive:
        unpack(archive, tmp_path)
    warehouse = Storage(str(tmp_path / "warehouse"))
    runs, log = Runs(warehouse, JOB), CommitLog(warehouse, JOB)
    first = log.read(1)
    documents = [first, runs.plan(first.run_id), runs.staged(first.run_id), runs.audit(first.run_id)]
    assert [document.format_version for document in documents if document] == [version] * 4
    run_slice(warehouse, tmp_path / "scratch", days=2)
    maintain(warehouse, JOB, Retention(1), now_ms=0)

    anew = Storage(str(tmp_path / "anew" / "warehouse"))
    toy.archive_events(anew, 0, 2)
    for days in (1, 2):
        run_slice(anew, tmp_path / "anew" / "scratch", days=days)
    assert content(warehouse, tmp_path) == content(anew, tmp_path / "anew")
