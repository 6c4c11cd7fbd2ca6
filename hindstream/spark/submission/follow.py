"""Submits a phase of a run, or finds the application that does it, and tells what has come of it.

Whether the phase is done is told by the run's documents, never by the cluster.
"""

from __future__ import annotations

import json
import logging
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hindstream.runs import find_replay, now_ms, open_warehouse
from hindstream.spark.phases import audit as phases_audit
from hindstream.spark.submission.cluster import last_error
from hindstream.spark.submission.command import environment, submit_command
from hindstream.spark.submission.record import Submission, SubmissionEnd, Submissions
from hindstream.spark.submission.running import Running
from hindstream.spark.submission.same_code import code_of
from statelib.commits import Runs, read_staged
from statelib.errors.kinds import HindstreamError, RetryableError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hindstream.spark.submission.cluster import Cluster
    from statelib.job.job import Job
    from statelib.settings.settings import Settings

_LAST_LINES = 20

_log = logging.getLogger(__name__)


_KINDS: dict[int, type[HindstreamError]] = {kind.exit_code: kind for kind in HindstreamError.__subclasses__()}


@dataclass(frozen=True, slots=True)
class Submitted:
    """A phase of a run that is done elsewhere.

    Attributes:
        reference: Where the job is, as the driver finds it.
        job: The job.
        settings: Its settings, which the driver gets.
        run_id: The run; None: the newest.
        phase: ``replay`` or ``audit``.
        cluster: Where it is submitted.
        options: See `hindstream.spark.submission.command.OPTIONS`.
        running: The call of spark-submit, once there is one.
    """

    reference: str
    job: Job
    settings: Settings
    run_id: str | None
    phase: str
    cluster: Cluster
    options: Mapping[str, Any] = field(default_factory=dict)
    running: Running = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "running", Running(self.cluster))

    def attach_or_submit(self) -> str | None:
        """The id of the application to wait for; None: the phase is done.

        One that is at work is found again, unless it was submitted with other code: then it is stopped. One that is not
        known yet, since whoever has submitted it was killed, is overtaken by another. Where the driver is in the
        process of spark-submit, this waits for it.

        Raises:
            HindstreamError: See `check`; the run is not there; spark-submit has failed.
        """
        if self.is_done:
            return None
        newest = self._newest_here
        if newest is not None and self._is_at_work(newest):
            if newest.code is None or newest.code == code_of(self.reference):
                _log.info("%s: %s of run %s goes on as %s", self.job.name, self.phase, self._run, newest.application)
                return newest.application
            _log.info("%s: %s has the job of another version, and is stopped", self.job.name, newest.application)
            self.stop()
        return self._submit()

    def submit_after_killed(self) -> str | None:
        """As `attach_or_submit`, where the application has been killed, or has failed for a reason that passes.

        Returns:
            The id of another application; None: the phase is done, or nothing but `check` is in order.
        """
        newest = self._newest_here
        if self.is_done or newest is None or self._is_at_work(newest):
            return None
        end = self._submissions.ended(newest.number)
        is_final = end is not None and _kind_of(end) is not RetryableError
        return None if is_final else self._submit()

    def stop(self) -> None:
        """Stops the application that is to be waited for, if there is one.

        Raises:
            RetryableError: The cluster does not answer, or refuses.
        """
        newest = self._newest_here
        if newest is None or newest.application is None:
            return
        try:
            self.cluster.stop(newest.application)
        except OSError as error:
            what = f"the driver cannot be stopped: {error}"
            step = "stop it by hand: docs/airflow.md#stop-a-driver"
            place = {"master": self.cluster.master, "application": newest.application}
            raise RetryableError(what, **place, next_step=step) from error

    @property
    def is_done(self) -> bool:
        """By what the run has written down.

        Raises:
            InputError: It has been audited, and a check has failed.
        """
        warehouse = open_warehouse(self.settings)
        plan = find_replay(warehouse, self.job.name, self.run_id)
        if self.phase == "replay":
            return read_staged(warehouse, plan) is not None
        audit = Runs(warehouse, self.job.name).audit(plan.run_id)
        if audit is not None and not audit.success:
            phases_audit.run(self.job, self.settings, plan.run_id)  # says which check, and where the rows are
        return audit is not None

    def check(self, said: str) -> None:
        """Makes sure that the phase is done, when its application has ended.

        Args:
            said: What the cluster says of it.

        Raises:
            HindstreamError: That of the driver; `RetryableError` if it was killed.
        """
        if self.is_done:
            return
        newest = self._submissions.newest()
        end = None if newest is None else self._submissions.ended(newest.number)
        place = {"job": self.job.name, "run": self._run, "application": newest and newest.application}
        if end is not None:
            raise _kind_of(end)(end.message)
        what = f"the driver of the phase {self.phase} has ended before it was through: {said}"
        raise RetryableError(
            what, **place, next_step="run it again: what is done stays done; its log is at the cluster"
        )

    @property
    def _run(self) -> str:
        return find_replay(open_warehouse(self.settings), self.job.name, self.run_id).run_id

    @property
    def _submissions(self) -> Submissions:
        return Submissions(open_warehouse(self.settings), self.job.name, self._run, self.phase)

    @property
    def _newest_here(self) -> Submission | None:
        newest = self._submissions.newest()
        return newest if newest is not None and newest.master == self.cluster.master else None

    def _is_at_work(self, submission: Submission) -> bool:
        if submission.application is None:
            return False
        try:
            return self.cluster.status(submission.application).state in {"active", "unclear"}
        except OSError as error:
            what = f"the cluster does not answer: {error}"
            place = {"master": self.cluster.master, "application": submission.application}
            raise RetryableError(what, **place) from error

    def _submit(self) -> str | None:
        submissions = self._submissions
        claimed = submissions.claim(self.cluster.master, uuid.uuid4().hex, now_ms(), code_of(self.reference))
        name = f"{self.job.name} {self.phase} {self._run} {claimed.number}"
        command = submit_command(self.cluster, self.options, self._arguments(claimed, name), name)
        lines: list[str] = []
        application: str | None = None
        with self.running.started(command, environment(self.options)) as process:
            for line in process.stdout or ():
                lines = [*lines[1 - _LAST_LINES :], line.rstrip()]
                _log.debug("spark-submit: %s", line.rstrip())
                if application is None and (application := self.cluster.application_in(line)):
                    self.running.application = application if self.cluster.is_elsewhere else None
                    submissions.accepted(claimed, application)
        code = process.returncode
        if not self.cluster.is_elsewhere:
            self.check(f"spark-submit ended with code {code}: {last_error(lines)}")
            return None
        if application is None:
            what = f"spark-submit has not told an application: it ended with code {code}: {last_error(lines)}"
            raise RetryableError(what, master=self.cluster.master)
        _log.info("%s: %s of run %s is %s", self.job.name, self.phase, self._run, application)
        return application

    def _arguments(self, claimed: Submission, name: str) -> list[str]:
        given = self.settings.model_dump(mode="json", exclude_none=True)
        given["spark_conf"] = {"spark.app.name": name} | given["spark_conf"]
        return [
            *("--job", self.reference, "--name", self.job.name, "--run", claimed.run_id, "--phase", claimed.phase),
            *("--number", str(claimed.number), "--settings", json.dumps(given)),
        ]


def _kind_of(end: SubmissionEnd) -> type[HindstreamError]:
    return _KINDS.get(end.exit_code, RetryableError)
