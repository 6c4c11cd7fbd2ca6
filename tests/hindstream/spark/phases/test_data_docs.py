"""Data Docs of audits that have passed without Great Expectations: written from their results, once they count."""

from __future__ import annotations

import re
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hindstream.report import write
from hindstream.runs import open_warehouse
from hindstream.spark.phases import data_docs, pipeline
from statelib.commits import Runs
from statelib.commits.versions.drop_fork import drop_fork
from statelib.commits.versions.fork import fork
from statelib.errors.kinds import ConfigurationError
from statelib.job.job import load_job
from statelib.settings.settings import load_settings
from tests.command import hindstream
from tests.commits.versions.test_fork import Killed, at, kill
from tests.effort import every_other
from tests.hindstream.spark.orders import DAY_MS, JOB_FILE, archive_orders, make_settings, orders

if TYPE_CHECKING:
    from types import ModuleType

    from statelib.settings.settings import Settings

PATIENCE_S = 120.0


def made(folder: Path, data_docs: str, audit_engine: str = "auto") -> Settings:
    given = {"engine": "local", "data_docs": data_docs, "audit_engine": audit_engine}
    settings = make_settings(folder).model_copy(update=given)
    archive_orders(settings, orders())
    job = load_job(f"{JOB_FILE}:job")
    for until in (DAY_MS, None):
        pipeline.run_slice(job, settings, until)
    return settings


def page(settings: Settings, run: str) -> Path | None:
    audit = Runs(open_warehouse(settings), "orders").audit(run)
    assert audit is not None
    return None if audit.data_docs is None else Path(settings.warehouse) / "jobs/orders" / audit.data_docs


def test_the_report_phase_writes_those_of_its_run(tmp_path: Path) -> None:
    settings = made(tmp_path, "report")
    for run in ("00000001-1", "00000002-1"):
        index = page(settings, run)
        assert index is not None
        tables = {path.stem for path in (index.parent / "expectations").iterdir()}
        assert tables == {"orders-by-country", "files", "ledger"}
        (of_topic,) = index.parent.glob("validations/orders-by-country/**/*.html")
        text = of_topic.read_text()
        text = " ".join(re.sub(r"<[^>]+>", " ", text).split())
        assert "Must have greater than or equal to 1 rows." in text
        assert "key.key" in text
        assert "Status: Succeeded" in text
        assert "Data asset: orders-by-country" in text


def test_a_command_writes_those_that_are_missing(tmp_path: Path) -> None:
    settings = made(tmp_path, "beside")
    pages = [page(settings, run) for run in ("00000001-1", "00000002-1")]
    assert [path is not None and path.exists() for path in pages] == [False, False]
    done = hindstream("data-docs", "orders", "--warehouse", settings.warehouse, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert [path is not None and path.exists() for path in pages] == [True, True]
    assert data_docs.write_missing("orders", settings) == []
    with pytest.raises(ConfigurationError, match="the job has no runs"):
        data_docs.write_missing("nothing", settings)


def test_a_process_beside_a_run_writes_them(tmp_path: Path) -> None:
    settings = made(tmp_path, "beside")
    data_docs.write_beside("orders", settings)
    waited = time.monotonic() + PATIENCE_S
    index = page(settings, "00000001-1")
    assert index is not None
    while not index.exists():
        assert time.monotonic() < waited, (Path(settings.state_dir) / data_docs.LOG).read_text()
        time.sleep(0.1)
    log = (Path(settings.state_dir) / data_docs.LOG).read_text()
    assert "the Data Docs of run 00000002-1 are written" in log


@pytest.mark.parametrize("audit_engine", ["auto", "pandas"])
def test_nobody_need_write_them(tmp_path: Path, audit_engine: str) -> None:
    settings = made(tmp_path, "failed", audit_engine)
    assert page(settings, "00000001-1") is None
    assert data_docs.write_missing("orders", settings) == []


def test_who_waits_does_not_wait_for_them() -> None:
    assert data_docs.beside_by_default(load_settings({}, environ={})).data_docs == "beside"
    said = load_settings({"data_docs": "report"}, environ={})
    assert data_docs.beside_by_default(said).data_docs == "report"


@pytest.mark.parametrize(
    ("module", "what", "stopped_at"),
    every_other(
        [
            (data_docs, "keep_site", None),
            (data_docs, "keep_site", "drop.folder-gone"),
            (write, "write_job_report", "drop.folder-gone"),
            (write, "write_job_report", None),
        ]
    ),
)
def test_what_is_written_of_a_fork_that_is_dropped_goes_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: ModuleType, what: str, stopped_at: str | None
) -> None:
    """The fork is dropped when its folder has been looked at for the last time, before something more comes there."""
    settings = made(tmp_path, "report")
    warehouse = open_warehouse(settings)
    fork(warehouse, "orders", "new", 1, now_ms=0)
    before = {entry.path for entry in warehouse.list()}
    write_it, done = getattr(module, what), []

    def dropped_first(*arguments: Any) -> Any:
        if not done:
            done.append(what)
            with at(stopped_at or "", kill), suppress(Killed):
                drop_fork(warehouse, "new", now_ms=0)
        return write_it(*arguments)

    monkeypatch.setattr(module, what, dropped_first)
    pipeline.run_slice(load_job(f"{JOB_FILE}:job").as_fork("new"), settings, None)
    assert done
    if stopped_at is not None:
        drop_fork(warehouse, "new", now_ms=0)
    left = {entry.path for entry in warehouse.list()} - before
    assert {path for path in left if "maintenance" not in path} == set()
    assert not (Path(settings.warehouse) / "jobs/new").exists()
