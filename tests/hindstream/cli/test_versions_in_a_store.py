"""Two versions of a job in an object store, from the fork to its end, each command on a host that has no state."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import hindstream as library
from hindstream.runs import open_warehouse
from statelib.settings.settings import load_settings
from statelib.topics.append import append_records
from statelib.topics.archive import TopicArchive
from statelib.topics.parquet.schema import topic_schema
from tests.command import hindstream
from tests.hindstream.cli.mend.test_repair import FILE, WRONG
from tests.storage.s3 import S3Server
from tests.storage.s3 import s3 as s3  # noqa: PLC0414

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from subprocess import CompletedProcess

    from statelib.storage import Storage

    Command = Callable[..., CompletedProcess[str]]

pytestmark = pytest.mark.slow


@pytest.fixture
def warehouse(s3: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Storage:
    for name, value in s3.credentials.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "old.py").write_text(FILE)
    (tmp_path / "new.py").write_text(WRONG)
    root = f"s3://warehouse/versions/{tmp_path.name}"
    settings = load_settings({"warehouse": root, "storage_options": s3.settings}, environ={})
    opened = open_warehouse(settings)
    archive = TopicArchive.ensure(
        opened.uri("topics/views"), topic_schema(pa.string(), pa.int64()), 2, options=opened.options
    )
    columns = {
        "key": pa.array([f"k{n % 3}" for n in range(100)]),
        "value": pa.array([n * 37 % 100 for n in range(100)]),
        "timestamp": pa.array([n * 1000 for n in range(100)], pa.timestamp("ms", "UTC")),
    }
    append_records(archive, pa.table(columns), attempt="a", app_id="test", app_version=1)
    return opened


@pytest.fixture
def typed(warehouse: Storage, s3: S3Server, tmp_path: Path) -> Command:
    """A command on a host that has nothing of the state."""
    hosts = iter(range(100))

    def run(*arguments: str, code: int = 0) -> CompletedProcess[str]:
        environ = {
            "HINDSTREAM_WAREHOUSE": warehouse.uri(""),
            "HINDSTREAM_STORAGE_OPTIONS": json.dumps(s3.settings),
            "HINDSTREAM_STATE_DIR": str(tmp_path / f"host{next(hosts)}"),
            "HINDSTREAM_ENGINE": "local",
        }
        done = hindstream(*arguments, cwd=tmp_path, **environ)
        assert done.returncode == code, done.stderr
        return done

    return run


def served(warehouse: Storage, s3: S3Server) -> tuple[str, dict[str, Any]]:
    """Who serves the job's readers, and the counts that they read."""
    read = library.read("counts", job="counting", warehouse=warehouse.uri(""), storage_options=s3.settings)
    return read.job, {row["key"]: row["value"] for row in read.to_arrow().to_pylist()}


def counts(least: int) -> dict[str, int]:
    values = [(f"k{n % 3}", n * 37 % 100) for n in range(100)]
    return {key: sum(of == key and value >= least for of, value in values) for key in ("k0", "k1", "k2")}


@pytest.mark.long
def test_from_the_fork_to_its_end(warehouse: Storage, s3: S3Server, typed: Command) -> None:
    typed("run", "old.py:job", "--until", "50000")
    typed("run", "old.py:job")
    before = {entry.path for entry in warehouse.list()}

    typed("try", "new.py:job", "--against", "counting", code=1)
    assert {entry.path for entry in warehouse.list()} - before <= {"jobs/counting/maintenance.json"}

    typed("fork", "counting@1", "new")
    typed("run", "new.py:job", "--fork", "new")
    assert json.loads(typed("diff", "counting", "new", "--output", "json", code=1).stdout)["b"]["job"] == "new"
    typed("promote", "new", "--over", "counting", "--allow-behind")
    assert served(warehouse, s3)[0] == "new"
    typed("promote", "--back", "--over", "counting")
    assert served(warehouse, s3) == ("counting", counts(20))
    typed("drop", "new", "--yes")

    typed("repair", "new.py:job", "--from", "0", "--yes")
    assert served(warehouse, s3) == ("counting", counts(60))
    typed("try", "new.py:job", "--against", "counting", "--sink", "counts")
    left = [
        entry.path for entry in warehouse.list() if entry.path.startswith(("jobs/new/", "jobs/try-", "jobs/repair-"))
    ]
    assert left == []
