"""What comes of a submission, without a cluster: a program in the place of spark-submit does the work at once."""

from __future__ import annotations

import os
import re
import signal
import socket
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from hindstream.runs import find_plan, open_warehouse
from hindstream.spark.phases import plan
from hindstream.spark.phases import replay as phases_replay
from hindstream.spark.submission.cluster import Cluster
from hindstream.spark.submission.follow import Submitted
from hindstream.spark.submission.record import Submissions
from hindstream.spark.submission.same_code import code_of
from statelib.commits import Runs, record_audit
from statelib.documents.manifests import Audit, AuditCheck
from statelib.errors.kinds import ConfigurationError, InputError, RetryableError
from statelib.job.job import load_job
from tests.hindstream.spark.orders import JOB_FILE, archive_orders, make_settings, orders
from tests.hindstream.spark.submission.submitter import at_once
from tests.hindstream.spark.submission.test_cluster import DRIVER, KILL
from tests.hindstream.spark.submission.test_cluster import answers as answers  # noqa: PLC0414
from tests.hindstream.spark.submission.world import until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.hindstream.spark.submission.test_cluster import Answers


@pytest.fixture
def replay(tmp_path: Path) -> Submitted:
    settings = make_settings(tmp_path, engine="local")
    archive_orders(settings, orders(30))
    job = load_job(f"{JOB_FILE}:job")
    plan.run(job, settings)
    cluster = Cluster("spark://127.0.0.1:7077", "cluster", str(at_once(tmp_path)))
    return Submitted(f"{JOB_FILE}:job", job, settings, None, "replay", cluster)


def test_one_that_is_done_is_not_submitted_again(replay: Submitted) -> None:
    assert replay.attach_or_submit() == "driver-20261129174447-0000"
    replay.check("FINISHED")
    assert replay.attach_or_submit() is None
    assert replace(replay, phase="audit").attach_or_submit() == "driver-20261129174447-0000"
    assert Runs(open_warehouse(replay.settings), "orders").audit("00000001-1") is not None


def test_an_error_of_the_driver_is_that_of_who_waits(replay: Submitted) -> None:
    missing = replace(replay, reference="/no/such.py:job")
    missing.attach_or_submit()
    host = re.escape(socket.gethostname())
    message = (
        rf"the driver's host has no such file \(file /no/such.py, host {host}\). Next: deploy it to this path on all"
    )
    with pytest.raises(ConfigurationError, match=message):
        missing.check("FAILED")


def test_a_driver_with_other_code_is_refused(tmp_path: Path, replay: Submitted) -> None:
    """The topology is the same, so nothing but the code tells."""
    theirs = tmp_path / "theirs.py"
    theirs.write_text(f"{JOB_FILE.read_text()}# of another version")
    program = at_once(tmp_path, f"{theirs}:job")
    there = replace(replay, cluster=replace(replay.cluster, binary=str(program)))
    there.attach_or_submit()
    with pytest.raises(ConfigurationError, match=r"the driver's host has another version of the code"):
        there.check("FAILED")


def test_a_driver_that_cannot_say_how_it_has_ended(replay: Submitted) -> None:
    with pytest.raises(RetryableError, match=r"before it was through: KILLED .*run 00000001-1.*Next: run it again"):
        replay.check("KILLED")


def test_a_program_that_is_not_there_or_tells_nothing(replay: Submitted) -> None:
    gone = replace(replay, cluster=replace(replay.cluster, binary="no-such-submit"))
    with pytest.raises(ConfigurationError, match="spark-submit cannot be started: No such file.*spark-binary of the"):
        gone.attach_or_submit()
    silent = replace(replay, cluster=replace(replay.cluster, binary="false"))
    with pytest.raises(RetryableError, match="has not told an application: it ended with code 1: it said nothing"):
        silent.attach_or_submit()


def test_in_client_mode_it_is_waited_for(replay: Submitted) -> None:
    client = replace(replay, cluster=replace(replay.cluster, deploy_mode="client"))
    assert client.attach_or_submit() is None
    assert client.is_done
    failing = replace(client, phase="audit", settings=client.settings, reference="/no/such.py:job")
    with pytest.raises(ConfigurationError, match="the driver's host has no such file"):
        failing.attach_or_submit()


def test_a_failed_audit_is_told_here(replay: Submitted) -> None:
    planned = find_plan(open_warehouse(replay.settings), "orders", None)
    phases_replay.run(replay.job, replay.settings)
    check = AuditCheck(topic="t", expectation="expect_it", parameters={}, success=False, unexpected_count=2)
    failed = Audit(run_id=planned.run_id, success=False, checks=(check,), data_docs=None, seconds=0)
    record_audit(open_warehouse(replay.settings), planned, failed)
    audit = replace(replay, phase="audit")
    with pytest.raises(InputError, match="expect_it"):
        audit.check("FAILED")
    with pytest.raises(InputError, match="expect_it"):
        audit.attach_or_submit()


def test_a_driver_of_other_code_is_stopped_and_followed_by_another(replay: Submitted, answers: Answers) -> None:
    """One of the same code is waited for."""
    at = replace(replay.cluster, rest_port=answers.server_port)
    here = replace(replay, cluster=at)
    submissions = Submissions(open_warehouse(replay.settings), "orders", "00000001-1", "replay")
    running = {"success": True, "driverState": "RUNNING"}
    answers.said |= {DRIVER: running, KILL: {"success": True}}
    submissions.accepted(submissions.claim(at.master, "a", 1, code_of(here.reference)), "driver-20261129174447-0000")
    assert here.attach_or_submit() == "driver-20261129174447-0000"
    assert answers.got == []
    other = code_of(here.reference) | {"orders_job.py": "of another version"}
    submissions.accepted(submissions.claim(at.master, "b", 1, other), "driver-20261129174447-0000")
    here.attach_or_submit()
    assert answers.got == [f"POST {KILL}"]
    newest = submissions.newest()
    assert newest is not None
    assert (newest.number, newest.code) == (3, code_of(here.reference))
    here.check("FINISHED")


def test_one_that_was_killed_is_followed_by_another(replay: Submitted, answers: Answers) -> None:
    at = replace(replay.cluster, rest_port=answers.server_port)
    here = replace(replay, cluster=at)
    assert here.submit_after_killed() is None  # nothing was submitted
    here.stop()
    submissions = Submissions(open_warehouse(replay.settings), "orders", "00000001-1", "replay")
    submissions.accepted(submissions.claim(at.master, "a", 1), "driver-20261129174447-0000")
    answers.said[DRIVER] = {"success": True, "driverState": "RUNNING"}
    assert here.submit_after_killed() is None  # it is at work
    with pytest.raises(
        RetryableError, match=r"cannot be stopped: .*404.*application driver-.*Next: stop it by hand: docs"
    ):
        here.stop()
    answers.said[DRIVER] = {"success": True, "driverState": "KILLED"}
    submissions.end(1, 65, "no such topic")
    assert here.submit_after_killed() is None  # another one would find the same
    submissions.end(1, 75, "SparkContext was shut down")
    assert here.submit_after_killed() == "driver-20261129174447-0000"
    assert here.submit_after_killed() is None  # it is done


PATIENT = """#!/bin/sh
echo "INFO ClientEndpoint: Driver successfully submitted as driver-20261129174447-0000"
echo $$ > {pid}
sleep 600 &
wait
"""


@pytest.mark.parametrize("deploy_mode", ["client", "cluster"])
@pytest.mark.parametrize("how", ["stopped by a signal's handler", "ended by an exception"])
def test_spark_submit_ends_with_who_has_started_it(
    tmp_path: Path, replay: Submitted, answers: Answers, deploy_mode: str, how: str
) -> None:
    """And the application that it has told of; as Airflow ends a task, and as it ends one that takes too long."""
    answers.said[KILL] = {"success": True}
    pid, program = tmp_path / "pid", tmp_path / "patient"
    program.write_text(PATIENT.format(pid=pid))
    program.chmod(0o755)
    at = replace(replay.cluster, deploy_mode=deploy_mode, binary=str(program), rest_port=answers.server_port)
    here = replace(replay, cluster=at)

    def handle(*_: object) -> None:
        if how == "ended by an exception":
            raise TimeoutError
        here.running.stop()

    before = signal.signal(signal.SIGALRM, handle)
    signal.setitimer(signal.ITIMER_REAL, 3)
    kinds: dict[str, type[Exception]] = {"client": RetryableError, "cluster": AssertionError}
    try:
        with pytest.raises(TimeoutError if how == "ended by an exception" else kinds[deploy_mode]):
            assert here.attach_or_submit() is None
    finally:
        signal.signal(signal.SIGALRM, before)
    until(lambda: not alive(int(pid.read_text())))
    assert answers.got == ([] if deploy_mode == "client" else [f"POST {KILL}"])


def alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
