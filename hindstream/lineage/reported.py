"""Phases that tell what they do: a decorator of each, and one of what runs all of them in one process.

======== =============================================================================================
plan     START; ABORT of the tries that it gives up
replay   RUNNING
audit    RUNNING, and START and COMPLETE of ``<job>.audit``, with the checks
commit   RUNNING
publish  COMPLETE
maintain START and COMPLETE of ``<job>.maintain``
======== =============================================================================================

A phase that fails sends FAIL, or ABORT where another driver was quicker. Only runs that replay are told.
"""

from __future__ import annotations

import functools
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

from hindstream.lineage.wanted import emission_if_wanted, sent_before_return
from hindstream.runs import find_plan, now_ms, open_warehouse
from statelib.commits import CommitLog, Runs
from statelib.documents.plans import Plan
from statelib.errors.kinds import FencedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from openlineage.client.event_v2 import RunEvent

    from hindstream.lineage.emission import Emission
    from hindstream.lineage.events import RunEvents, State
    from statelib.documents.manifests import Commit
    from statelib.job.job import Job
    from statelib.job.topics import Topic
    from statelib.settings.settings import Settings

Phase = Literal["plan", "replay", "audit", "commit", "publish", "maintain"]

F = TypeVar("F", bound="Callable[..., Any]")


def reported(phase: Phase) -> Callable[[F], F]:
    """Has a phase tell OpenLineage what it does, where the settings say so.

    The phase is a function of a job, settings, and maybe a run's id.
    """

    def decorate(run: F) -> F:
        @functools.wraps(run)
        def telling(job: Job, settings: Settings, *args: Any, **kwargs: Any) -> Any:
            if (on_way := emission_if_wanted(settings)) is None:
                return run(job, settings, *args, **kwargs)
            asked = args[0] if args else kwargs.get("run_id")
            reporter = _Reporter(phase, job, settings, on_way, asked)
            with sent_before_return(settings):
                reporter.begins()
                try:
                    result = run(job, settings, *args, **kwargs)
                except Exception as error:
                    reporter.failed(error)
                    raise
                reporter.done(result)
                return result

        return cast("F", telling)

    return decorate


def all_reported(run: F) -> F:
    """Has a function that runs several phases wait once, at its end, for what they have to tell."""

    @functools.wraps(run)
    def waiting(job: Job, settings: Settings, *args: Any, **kwargs: Any) -> Any:
        with sent_before_return(settings):
            return run(job, settings, *args, **kwargs)

    return cast("F", waiting)


def published_late(job: Job, settings: Settings, commit: int) -> None:
    """Tells that a commit was published after all, by the plan of the next run."""
    if (on_way := emission_if_wanted(settings)) is not None:
        run_id = CommitLog(open_warehouse(settings), job.name).read(commit).run_id
        _Reporter("publish", job, settings, on_way, run_id).done(None)


def change_told(made: Commit, settings: Settings, began_ms: int, changelogs: Sequence[str] = ()) -> None:
    """Tells of a commit that replays nothing: a repair, a rollback, or what takes over from a live application.

    Args:
        made: The commit.
        settings: See `Settings`.
        began_ms: When the change began.
        changelogs: Topics of Kafka that the state was taken from.
    """
    ended_ms = now_ms()
    with sent_before_return(settings):
        if (on_way := emission_if_wanted(settings)) is not None:
            from hindstream.lineage.changes import of_change  # noqa: PLC0415 - an extra

            on_way.submit(lambda: of_change(made, settings, began_ms, ended_ms, changelogs))


@dataclass(slots=True)
class Copying:
    """What is known of a copy while it is made.

    Attributes:
        is_new: Whether there was anything to copy: if not, nobody is told.
        records: How many there were; None: nobody has counted.
    """

    is_new: bool = True
    records: int | None = None


@contextmanager
def copy_reported(topic: Topic, settings: Settings) -> Iterator[Copying]:
    """Tells of what is copied into an archive, unless it says that there was nothing new."""
    copying, began_ms, error = Copying(), now_ms(), None
    with sent_before_return(settings):
        try:
            yield copying
        except Exception as raised:
            error = str(raised)
            raise
        finally:
            ended_ms = now_ms()
            if copying.is_new and (on_way := emission_if_wanted(settings)) is not None:
                from hindstream.lineage.copies import of_copy  # noqa: PLC0415 - an extra

                on_way.submit(lambda: of_copy(topic, settings, began_ms, ended_ms, error, copying.records))


class _Reporter:
    """What one call of a phase tells. All but the times is found out by the thread that sends the events."""

    def __init__(self, phase: Phase, job: Job, settings: Settings, on_way: Emission, run_id: str | None) -> None:
        from hindstream.lineage.events import OWN_JOBS, RunEvents  # noqa: PLC0415 - an extra

        self._phase = phase
        self._is_job = phase in OWN_JOBS
        self._job = job
        self._settings = settings
        self._on_way = on_way
        self._run_id = run_id
        self._events: RunEvents = RunEvents(job, settings)

    def begins(self) -> None:
        """The phase begins."""
        if self._is_job:
            self._submit(lambda at_ms: self._of_phase("START", at_ms))

    def done(self, result: object) -> None:
        """The phase has done its work."""
        if self._phase == "plan":
            if isinstance(result, Plan):
                self._submit(lambda at_ms: self._planned(result, at_ms))
            return
        if self._is_job:
            self._submit(lambda at_ms: self._of_phase("COMPLETE", at_ms))
        if self._phase != "maintain":
            state: State = "COMPLETE" if self._phase == "publish" else "RUNNING"
            self._submit(lambda at_ms: self._of_run(state, at_ms))

    def failed(self, error: Exception) -> None:
        """The phase has failed."""
        what = str(error)
        state: State = "ABORT" if isinstance(error, FencedError) else "FAIL"
        if self._phase == "plan":
            self._submit(lambda at_ms: iter(self._events.of_no_run(at_ms, what)))
            return
        if self._is_job:
            self._submit(lambda at_ms: self._of_phase(state, at_ms, what))
        if self._phase != "maintain":
            self._submit(lambda at_ms: self._of_run(state, at_ms, what))

    def _submit(self, make: Callable[[int], Iterator[RunEvent]]) -> None:
        at_ms = now_ms()
        self._on_way.submit(lambda: make(at_ms))

    def _planned(self, plan: Plan, at_ms: int) -> Iterator[RunEvent]:
        runs = Runs(open_warehouse(self._settings), self._job.name)
        for before in runs.attempts(plan.commit):
            if before.run_id == plan.run_id:
                break
            if not runs.is_quarantined(before.run_id):
                yield self._events.of_run(before, "ABORT", at_ms, f"run {plan.run_id} takes its place")
        yield self._events.of_run(plan, "START", at_ms)

    def _of_run(self, state: State, at_ms: int, error: str | None = None) -> Iterator[RunEvent]:
        plan = self._plan()
        if plan.instead_of_replay is None and (state != "COMPLETE" or self._is_committed(plan)):
            yield self._events.of_run(plan, state, at_ms, error)

    def _of_phase(self, state: State, at_ms: int, error: str | None = None) -> Iterator[RunEvent]:
        plan = self._plan()
        if plan.instead_of_replay is None:
            yield self._events.of_phase(self._phase, plan, state, at_ms, error)

    def _plan(self) -> Plan:
        """That of the run that the phase is about; publish and maintain look at what is committed."""
        warehouse = open_warehouse(self._settings)
        if self._run_id is None and self._phase in {"publish", "maintain"}:
            head = CommitLog(warehouse, self._job.name).head()
            self._run_id = None if head is None else head.run_id
        return find_plan(warehouse, self._job.name, self._run_id)

    def _is_committed(self, plan: Plan) -> bool:
        made = CommitLog(open_warehouse(self._settings), self._job.name).read_if_present(plan.commit)
        return made is not None and made.run_id == plan.run_id
