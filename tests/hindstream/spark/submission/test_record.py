"""Who submits a phase: each number once, the newest counts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from hindstream.runs import open_warehouse
from hindstream.spark.submission import driver
from hindstream.spark.submission.record import Submission, SubmissionEnd, Submissions
from statelib.errors.kinds import FencedError
from statelib.settings.settings import load_settings
from statelib.storage import Storage
from tests.hindstream.spark.orders import JOB_FILE, make_settings

if TYPE_CHECKING:
    from pathlib import Path

RUN = "00000001-1"


@pytest.fixture
def submissions() -> Submissions:
    return Submissions(Storage("memory://"), "orders", RUN, "replay")


def test_the_newest_counts(submissions: Submissions) -> None:
    assert submissions.newest() is None
    first = submissions.claim("yarn", "a", 1)
    second = submissions.claim("yarn", "b", 1)
    assert (first.number, second.number) == (1, 2)
    submissions.accepted(first, "application_1_1")
    assert submissions.newest() == second
    known = submissions.accepted(second, "application_1_2")
    assert submissions.newest() == known
    assert submissions.check_newest(2) == known
    with pytest.raises(FencedError, match="submission 2 of the phase replay has taken the place of this one, 1"):
        submissions.check_newest(1)


def test_where_they_are_and_their_bytes(tmp_path: Path) -> None:
    """These never change for a version."""
    warehouse = Storage(str(tmp_path))
    submissions = Submissions(warehouse, "orders", RUN, "replay")
    submissions.claim("yarn", "a", 7, {"job.py": "1e"})
    submissions.end(1, 65, "no such topic")
    paths = [f"jobs/orders/runs/{RUN}/spark/replay-1{part}.json" for part in ("-end", "")]
    assert [entry.path for entry in warehouse.list()] == paths
    end, claimed = (b"".join(warehouse.get(path).split()) for path in paths)
    assert end == (
        b'{"checksum":"0e494976229782193cd57491752b30dc16e4e294b6528834d31720114556ddf7","exit_code":65,'
        b'"format_version":9,"message":"nosuchtopic"}'
    )
    assert claimed == (
        b'{"application":null,"checksum":"5edc4dd2e116cfff0e223dbf5b638ee696645a7f9bd70825ca1a7ae14e1931b3",'
        b'"claimed_by":"a","code":{"job.py":"1e"},"format_version":9,"master":"yarn","number":1,"phase":"replay","run_id":"00000001-1",'
        b'"submitted_at_ms":7}'
    )
    assert submissions.ended(1) == SubmissionEnd(exit_code=65, message="no such topic")
    assert isinstance(submissions.newest(), Submission)


def driven(folder: Path, **others: Any) -> tuple[int, SubmissionEnd | None]:
    settings = make_settings(folder)
    given = {"job": f"{JOB_FILE}:job", "name": "orders", "run": RUN, "phase": "replay", "number": "1", **others}
    options = [part for name, value in given.items() for part in (f"--{name}", value)]
    code = driver.main([*options, "--settings", json.dumps(settings.model_dump(mode="json", exclude_none=True))])
    return code, Submissions(open_warehouse(settings), "orders", RUN, "replay").ended(1)


def test_a_driver_says_how_it_has_failed(tmp_path: Path) -> None:
    code, end = driven(tmp_path)
    assert end is not None
    assert (code, end.exit_code) == (78, 78)
    assert end.message.startswith(f"there is no such run (job orders, run {RUN}). Next: plan one")


def test_a_driver_that_was_overtaken_ends_before_it_begins(tmp_path: Path) -> None:
    submissions = Submissions(open_warehouse(make_settings(tmp_path)), "orders", RUN, "replay")
    for claimed_by in "ab":
        submissions.claim("yarn", claimed_by, 1)
    code, end = driven(tmp_path, job="no/such.py:job")
    assert code == FencedError.exit_code
    assert end is not None


def test_a_driver_gets_the_settings_as_they_are() -> None:
    given = {"until": "2013-01-01T00:00Z", "keep_state_for": "7d", "spark_conf": {"a": "b"}, "max_future": "1h"}
    settings = load_settings(given, environ={})
    again = load_settings(settings.model_dump(mode="json", exclude_none=True), environ={})
    assert again.model_dump() == settings.model_dump()
