"""Which applications were submitted for a phase of a run, beside the documents of the run.

::

    jobs/<job>/runs/<run id>/spark/<phase>-<n>.json      Submission      claimed before spark-submit is started
                                  /<phase>-<n>-end.json  SubmissionEnd   what its driver says when it fails

Numbers count from 1, and each is claimed by one who submits: its document is created only if absent. The newest
counts. Who was killed between the claim and the application's id does not know whether there is an application: the
next one claims the next number, and a driver that finds that it is not the newest ends before it begins. (Two drivers
at once would be right as well, since each outcome of a task counts once; they would only do work twice.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from statelib.commits.layout import JobLayout
from statelib.documents.document import Document
from statelib.errors.fault_points import step
from statelib.errors.kinds import FencedError

if TYPE_CHECKING:
    from statelib.storage import Storage


class Submission(Document):
    """One call of spark-submit."""

    kind: ClassVar[str] = "submission to Spark"
    run_id: str
    phase: str
    number: int
    claimed_by: str = Field(description="what no other call is called")
    master: str
    submitted_at_ms: int
    application: str | None = Field(default=None, description="its id at the cluster; None: not known yet")
    code: dict[str, str] | None = Field(default=None, description="what it was submitted with: see `same_code`")


class SubmissionEnd(Document):
    """How a driver has failed."""

    kind: ClassVar[str] = "end of a submission to Spark"
    exit_code: int
    message: str


class Submissions:
    """Those for a phase of a run.

    Args:
        warehouse: Root of all durable data.
        job: The job's name.
        run_id: The run.
        phase: ``replay`` or ``audit``.
    """

    def __init__(self, warehouse: Storage, job: str, run_id: str, phase: str) -> None:
        self._warehouse = warehouse
        self._job = job
        self._run_id = run_id
        self._phase = phase
        self._prefix = f"{JobLayout(job).run(run_id)}/spark/{phase}"

    def newest(self) -> Submission | None:
        """The one that counts; None: nothing was submitted yet."""
        number = self._newest_number()
        return Submission.read_if_present(self._warehouse, self._path(number)) if number else None

    def claim(self, master: str, claimed_by: str, now_ms: int, code: dict[str, str] | None = None) -> Submission:
        """The next number, for one who is about to submit."""
        while True:
            claimed = Submission(
                run_id=self._run_id,
                phase=self._phase,
                number=self._newest_number() + 1,
                claimed_by=claimed_by,
                master=master,
                submitted_at_ms=now_ms,
                code=code,
            )
            step("submit.before-claim")
            if self._warehouse.put_if_absent(self._path(claimed.number), claimed.encode()):
                step("submit.claimed")
                return claimed

    def accepted(self, claimed: Submission, application: str) -> Submission:
        """Writes down the id that the cluster has given."""
        known = claimed.model_copy(update={"application": application})
        step("submit.accepted")
        self._warehouse.put(self._path(claimed.number), known.encode())
        step("submit.recorded")
        return known

    def check_newest(self, number: int) -> Submission | None:
        """In a driver: its submission, if no other was submitted later; None: nobody has written it down.

        Raises:
            FencedError: One was.
        """
        if (newest := self._newest_number()) > number:
            what = f"submission {newest} of the phase {self._phase} has taken the place of this one, {number}"
            raise FencedError(what, job=self._job, run=self._run_id, next_step="nothing needs fixing")
        return Submission.read_if_present(self._warehouse, self._path(number))

    def end(self, number: int, exit_code: int, message: str) -> None:
        """In a driver: tells whoever waits how it has failed."""
        self._warehouse.put(self._end_path(number), SubmissionEnd(exit_code=exit_code, message=message).encode())

    def ended(self, number: int) -> SubmissionEnd | None:
        """How a driver has failed; None: it has not, or could not say so."""
        return SubmissionEnd.read_if_present(self._warehouse, self._end_path(number))

    def _newest_number(self) -> int:
        number = 0
        while self._warehouse.exists(self._path(number + 1)):
            number += 1
        return number

    def _path(self, number: int) -> str:
        return f"{self._prefix}-{number}.json"

    def _end_path(self, number: int) -> str:
        return f"{self._prefix}-{number}-end.json"
