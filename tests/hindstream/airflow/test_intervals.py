"""What a run does about records from before its data interval. (`test_scheduler` has runs at the same time.)"""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from airflow.sdk.exceptions import AirflowRescheduleException

from hindstream.airflow.intervals import check_earlier, check_parameters
from hindstream.spark.phases import pipeline, plan
from statelib.errors.kinds import ConfigurationError
from statelib.job.job import load_job
from tests.hindstream.spark.orders import DAY_MS, JOB_FILE, archive_orders, make_settings, orders

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.airflow

JOB = load_job(f"{JOB_FILE}:job")


def of_second_day(previous: Any = None) -> Any:
    task = SimpleNamespace(dag_id="orders", get_previous_dagrun=lambda state=None: previous if state is None else None)
    days = {f"data_interval_{end}": datetime(1970, 1, day, tzinfo=UTC) for end, day in (("start", 2), ("end", 3))}
    return {"ti": task, "dag_run": SimpleNamespace(run_type="scheduled"), **days}


def test_what_lies_before_is_refused_until_it_was_replayed(tmp_path: Path) -> None:
    settings = make_settings(tmp_path, engine="local")
    archive_orders(settings, orders())
    with pytest.raises(ConfigurationError, match="799 records from before this run's data interval"):
        check_earlier(of_second_day(), JOB, settings, DAY_MS)
    pipeline.run_slice(JOB, settings, DAY_MS)
    check_earlier(of_second_day(), JOB, settings, DAY_MS)


def test_while_somebody_commits_it_looks_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run before commits and publishes after this one has looked for a commit, and before it looks at the sinks."""
    settings = make_settings(tmp_path, engine="local")
    archive_orders(settings, orders())
    described, begun = plan.described, []

    def described_late(*args: Any) -> Any:
        if not begun:
            begun.append(True)
            pipeline.run_slice(JOB, settings, DAY_MS)
        return described(*args)

    monkeypatch.setattr(plan, "described", described_late)
    with pytest.raises(AirflowRescheduleException):
        check_earlier(of_second_day(), JOB, settings, DAY_MS)
    assert begun
    check_earlier(of_second_day(), JOB, settings, DAY_MS)


def test_a_run_without_an_interval_cannot_say_what_lies_before_it(tmp_path: Path) -> None:
    settings = make_settings(tmp_path, engine="local")
    archive_orders(settings, orders())
    moment = {f"data_interval_{end}": datetime(1970, 1, 2, tzinfo=UTC) for end in ("start", "end")}
    with pytest.raises(ConfigurationError, match="no data interval.*Next: give a cron expression or a timedelta"):
        check_earlier(of_second_day() | moment, JOB, settings, DAY_MS)


OF_SLICE = ("until", "end_of_input", "before_interval")


def with_parameters(conf: dict[str, Any] | None, *params: str) -> Any:
    run = SimpleNamespace(conf=conf)
    return {
        "ti": SimpleNamespace(dag_id="orders"),
        "dag": SimpleNamespace(params=dict.fromkeys(params)),
        "dag_run": run,
    }


@pytest.mark.parametrize("meant", OF_SLICE)
def test_a_misspelt_parameter_does_not_silently_make_another_slice(meant: str) -> None:
    wrong = meant + meant[-1]
    with pytest.raises(ConfigurationError, match=rf"no parameter {wrong} \(dag orders\). Next: did you mean {meant}\?"):
        check_parameters(with_parameters({wrong: "2013-01-01T00:00Z"}, *OF_SLICE))


def test_other_parameters_are_nobodys_business() -> None:
    check_parameters(with_parameters(None, *OF_SLICE))
    check_parameters(with_parameters({"until": "2013-01-01T00:00Z", "bucket": "lake"}, *OF_SLICE))
    check_parameters(with_parameters({"untill": 1}, "untill", *OF_SLICE))
    check_parameters(with_parameters({"untill": 1}, "end"))  # a DAG of somebody else's
