"""Slices through a real Airflow, Spark and Great Expectations, with a defect on the way."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from hindstream import Storage, open_state
from hindstream.airflow import embedded
from hindstream.airflow.migration import STEPS
from hindstream.airflow.replay import PHASES, RUN
from hindstream.runs import open_warehouse
from statelib.commits import CommitLog, Runs, read_hold
from statelib.errors.kinds import ConfigurationError
from tests.hindstream.spark.orders import check_published, make_settings, orders

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.spark, pytest.mark.airflow]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where `tests.hindstream.airflow.scenario` has run."""
    folder = tmp_path_factory.mktemp("scenario")
    command = [sys.executable, "-m", "tests.hindstream.airflow.scenario", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "DAG TEST" not in done.stdout + done.stderr  # Airflow's own words are in its log
    return folder


@pytest.fixture(scope="module")
def events(folder: Path) -> list[dict[str, Any]]:
    return json.loads((folder / "events.json").read_text())  # type: ignore[no-any-return]


def test_a_slice_runs_all_phases(events: list[dict[str, Any]]) -> None:
    assert events[0]["runs"] == [{"run_id": "00000001-1", "states": dict.fromkeys(PHASES, "success")}]
    assert events[0]["head"] == 1


def test_a_defect_ends_the_backfill_with_the_error_of_the_audit(events: list[dict[str, Any]]) -> None:
    error = events[1]["error"]
    assert error["type"] == "InputError"
    assert "expect_column_values_to_be_between" in error["message"]
    assert "00000002-1" in error["message"]
    assert events[1]["head"] == 1


def test_one_task_may_do_all_phases_or_find_nothing_to_do(events: list[dict[str, Any]]) -> None:
    assert events[4]["runs"] == [{"run_id": None, "states": {RUN: "skipped"}}] * 2
    assert events[4]["head"] == 3


def test_the_failing_rows_are_in_the_log(events: list[dict[str, Any]]) -> None:
    log = events[1]["log"].removeprefix(events[0]["log"])
    assert 'expect_column_values_to_be_between(column="value.amount", min_value=0, max_value=1000000) has 1' in log
    assert '"value.amount": -99' in log
    assert '"key.key"' in log


def test_the_failed_run_is_in_quarantine(folder: Path) -> None:
    audit = Runs(open_warehouse(make_settings(folder)), "orders").audit("00000002-1")
    assert audit is not None
    assert not audit.success


def test_mended_the_slice_passes_as_a_new_try(events: list[dict[str, Any]]) -> None:
    assert events[2]["runs"] == [{"run_id": "00000002-2", "states": {RUN: "success"}}]
    assert events[2]["head"] == 2


def test_a_slice_out_of_order_and_one_without_records_do_nothing(events: list[dict[str, Any]]) -> None:
    idle = {"run_id": None, "states": {"plan": "success", **dict.fromkeys(PHASES[1:], "skipped")}}
    before, rest, after = events[3]["runs"]
    assert before == after == idle
    assert rest["run_id"] == "00000003-1"
    assert events[3]["head"] == 3
    assert "has already replayed past this slice's end" in events[3]["log"]
    assert "to change what was replayed: hindstream repair /" in events[3]["log"]
    assert "nothing new since commit 3" in events[3]["log"]


def test_the_answer_is_that_of_good_data(folder: Path, events: list[dict[str, Any]]) -> None:
    assert events[3]["head"] == 3
    check_published(make_settings(folder), orders())


def test_a_migration_that_changes_values_is_taken_back(folder: Path, events: list[dict[str, Any]]) -> None:
    states = json.loads((folder / "migration.json").read_text())
    failed = {"verify": "failed", "release": "upstream_failed", "roll_back": "success", "run": "failed"}
    assert states == {**dict.fromkeys(STEPS[:6], "success"), **failed}
    log = (folder / "airflow" / "backfill.log").read_text()
    assert "latest values are not what they were" in log
    assert "The migration was undone" in log
    warehouse = folder / "rates" / "warehouse"
    head = CommitLog(Storage(str(warehouse)), "rates").head()
    assert head is not None
    assert (head.commit, head.rolled_back_to, read_hold(Storage(str(warehouse)), "rates")) == (3, 1, None)
    with open_state(warehouse, "rates", "rates", state_dir=folder / "rates" / "state") as store:
        assert (store.kind, sorted(store.read()["value"].to_pylist())) == ("key-value", [35, 36, 37, 38, 39])


def test_a_process_has_one_airflow_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(embedded._AirflowOutput(tmp_path / "one")) as output:
        monkeypatch.setattr(embedded, "_output", output)
        with pytest.raises(ConfigurationError, match="with another home"):
            embedded._started(tmp_path / "two")
